"""Answers of the wrong kind to the exercises of chapter 2 get one clear line."""

import copy

import numpy as np
import pytest
import torch
from conftest import checked
from torch import nn

NAMES = ("ResidualBlock", "StochasticDepth")


def update_that(does):
    def residual_update(x, update):
        if x.shape != update.shape:
            raise ValueError("shapes")
        return does(x + update)

    return residual_update


def writing(x, update):
    if x.shape != update.shape:
        raise ValueError("shapes")
    x += update
    return x


@pytest.mark.parametrize(("answer", "outcome", "words"), [
    (update_that(lambda y: None), "wrong", "the returned value is None: is there a `return`?"),
    (update_that(np.ndarray.tolist), "wrong", "is a list of length 7; a NumPy array was expected"),
    (update_that(torch.tensor), "wrong", "is a torch tensor of shape (7,); a NumPy array was"),
    (update_that(lambda y: y[None]), "wrong", "y has shape (1, 7); (7,) was expected"),
    (update_that(lambda y: float(y.sum())), "wrong", "is a float; a NumPy array was expected"),
    (update_that(lambda y: y * np.nan), "wrong", "y has NaN"),
    (lambda x: x, "wrong", "cannot be called as residual_update(x, update)"),
    (nn.Identity, "wrong", "is a class; a function residual_update(x, update)"),
    (writing, "wrong", "The values are right, but x changed during the call."),
])
def test_an_update_of_the_wrong_kind(answer, outcome, words):
    report = checked("residual_update", answer)
    assert report.outcome == outcome
    assert words in report.text


def test_who_refuses_everything_gets_nothing():
    def residual_update(x, update):
        raise ValueError("no")

    report = checked("residual_update", residual_update)
    assert (report.outcome, report.points) == ("raised", 0)


@pytest.mark.parametrize(("answer", "words"), [
    (lambda weights, c: None, "the returned value is None"),
    (lambda weights, c: 0.0, "is a float; a NumPy array was expected"),
    (lambda weights, c: [c for _ in weights], "is a list of length 1; a NumPy array"),
    (lambda weights, c: np.stack([c for _ in range(3)]), "dx has shape (3, 4); (4,) was expected"),
    (lambda weights, c: torch.tensor(c), "is a torch tensor of shape (4,)"),
    (lambda weights: weights, "cannot be called as linear_stack_gradient(weights, cotangent)"),
])
def test_a_gradient_of_the_wrong_kind(answer, words):
    report = checked("linear_stack_gradient", answer)
    assert (report.outcome, report.points) == ("wrong", 0)
    assert words in report.text


class Base(nn.Module):
    def __init__(self, sublayer, p=0.1):
        super().__init__()
        self.sublayer = sublayer

    def forward(self, x):
        return x + self.sublayer(x)


class NotAModule:
    def __init__(self, sublayer, p=0.1):
        self.sublayer = sublayer


class WithoutSuper(nn.Module):
    def __init__(self, sublayer, p=0.1):
        self.sublayer = sublayer


class WithAWidth(Base):
    def __init__(self, width, sublayer, p):
        super().__init__(sublayer, p)


def forwarding(does):
    return type("Wrong", (Base,), {"forward": lambda self, x: does(x, self.sublayer(x))})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("answer", "outcome", "words"), [
    (lambda sublayer, p=0.1: Base(sublayer, p), "wrong", "a class was expected"),
    (Base(nn.Identity()), "wrong", "a class was expected"),
    (NotAModule, "wrong", "not a torch.nn.Module: inherit from it"),
    (WithoutSuper, "raised", "raised an AttributeError"),
    (WithAWidth, "wrong", "cannot be called as"),
    (type("Empty", (Base,), {"forward": None}), "raised", "raised a TypeError"),
    (forwarding(lambda x, u: None), "wrong", "`forward` returned None: is there a `return`?"),
    (forwarding(lambda x, u: (x + u, u)), "wrong", "`forward` returned a tuple; a torch tensor"),
    (forwarding(lambda x, u: (x + u).detach().numpy()), "wrong", "`forward` returned a ndarray"),
    (forwarding(lambda x, u: (x + u).sum()), "wrong", "a tensor of shape ()"),
    (forwarding(lambda x, u: torch.cat((x, u), -1)), "wrong", "a tensor of shape ("),
    (forwarding(lambda x, u: (x + u).detach()), "wrong", "no gradient reaches the input"),
    (forwarding(lambda x, u: (x + u).to(torch.bfloat16)), "wrong", "of dtype torch.bfloat16"),
    (forwarding(lambda x, u: (x + u) * float("nan")), "wrong", "nan"),
    (forwarding(lambda x, u: x + u @ u), "raised", "raised a RuntimeError"),
])
def test_a_block_of_the_wrong_kind(name, answer, outcome, words):
    report = checked(name, answer)
    assert report.outcome == outcome, report.text
    assert words in report.text
    assert report.points < report.max_points and len(report.text) < 2500
    assert "Traceback" not in report.text


class Shortcut(nn.Module):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__()
        self.sublayer, same = sublayer, width_in == width_out
        self.skip = nn.Identity() if same else nn.Linear(width_in, width_out, bias=False)

    def forward(self, x):
        return self.join(x, self.skip(x), self.sublayer(x))


def joining(does):
    return type("Wrong", (Shortcut,), {"join": lambda self, x, skip, u: does(x, skip, u)})


@pytest.mark.parametrize(("answer", "outcome", "words"), [
    (Base, "wrong", "cannot be called as ProjectedResidual(width_in, width_out, sublayer)"),
    (joining(lambda x, skip, u: None), "wrong", "`forward` returned None"),
    (joining(lambda x, skip, u: torch.cat((skip, u), -1)), "wrong", "was expected"),
    (joining(lambda x, skip, u: (skip + u)[0]), "wrong", "was expected"),
    (joining(lambda x, skip, u: x + u), "raised", "must match the size"),
    (joining(lambda x, skip, u: u.add_(skip) if u.shape == skip.shape else 1 / 0), "raised",
     "raised a RuntimeError"),
])
def test_a_projection_of_the_wrong_kind(answer, outcome, words):
    report = checked("ProjectedResidual", answer)
    assert report.outcome == outcome, report.text
    assert words in report.text and report.points < report.max_points


class Gain(nn.Module):
    def __init__(self, width, sublayer, start=1e-4):
        super().__init__()
        self.sublayer, self.gain = sublayer, nn.Parameter(torch.full((width,), float(start)))

    def forward(self, x):
        return x.add_(self.gain * self.sublayer(x))


def test_a_gain_that_writes_to_its_input():
    report = checked("ScaledResidual", Gain)
    assert report.outcome == "raised"
    assert [mistake.id for mistake in report.mistakes] == ["changes-its-input"]


def linears(model):
    return [module for module in model.modules() if isinstance(module, nn.Linear)]


def on_a_copy(model, depth, std=0.02):
    model = copy.deepcopy(model)
    for module in linears(model):
        nn.init.normal_(module.weight, std=std)
    return model


def by_assignment(model, depth, std=0.02):
    for module in linears(model):
        module.weight = std * torch.randn(module.weight.shape)


def under_autograd(model, depth, std=0.02):
    for module in linears(model):
        module.weight.normal_(0, std)


def all_biases(model, depth, std=0.02):
    for module in linears(model):
        nn.init.normal_(module.weight, std=std)
        nn.init.zeros_(module.bias)


def to_nan(model, depth, std=0.02):
    for module in linears(model):
        nn.init.constant_(module.weight, float("nan"))


def to_zero(model, depth, std=0.02):
    for module in linears(model):
        nn.init.zeros_(module.weight)


def of_one_known_model(model, depth, std=0.02):
    for block in model.transformer.h:
        nn.init.normal_(block.mlp.c_proj.weight, std=std)


@pytest.mark.parametrize(("answer", "outcome", "words"), [
    (lambda model, depth, std=0.02: None, "wrong", "no weight of the model changed"),
    (on_a_copy, "wrong", "no weight of the model changed: draw them in place"),
    (by_assignment, "raised", "raised a TypeError"),
    (under_autograd, "raised", "a leaf Variable that requires grad is being used in an in-place"),
    (all_biases, "raised", "raised a"),
    (to_nan, "wrong", "std of output maps has NaN"),
    (to_zero, "wrong", "your std of output maps  [  0,"),
    (of_one_known_model, "raised", "has no attribute 'transformer'"),
    (lambda model: None, "wrong", "cannot be called as depth_scaled_init(model, depth)"),
])
def test_an_initialization_of_the_wrong_kind(answer, outcome, words):
    report = checked("depth_scaled_init", answer)
    assert report.outcome == outcome, report.text
    assert words in report.text and report.points < report.max_points


def test_a_sum_in_single_precision_is_not_the_sum():
    report = checked("residual_update", update_that(lambda y: y.astype(np.float32)))
    assert report.outcome == "wrong"
    missed = {group for group, points, whole in report.scores if points < whole}
    assert missed == {"sum", "other ranks"}
    assert "dtype float32; float64 was expected" in report.text
