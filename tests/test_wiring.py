"""Chapter 3's checks: what the drives do, tame answers, odd answers, and the right of refusal."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from answers.fresh import fresh_inputs
from conftest import checked, hypotheses, rng_of
from torch import nn
from torch.nn import functional as F

from lnres_utils import norms, specs
from lnres_utils.checking import judge
from lnres_utils.drives import pre_and_post_norm as drive
from lnres_utils.drives.sublayers import NORMS, NormsSet, Sublayer
from lnres_utils.schedules import warm_up

BLOCKS = ("PostNormBlock", "PreNormBlock", "SandwichBlock", "DeepNormBlock")


class Base(nn.Module):
    """The pieces of a pre-norm block; ``right`` puts them together."""

    def __init__(self, width, attention, feed_forward):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def right(self, x):
        h = x + self.attention(self.norm1(x))
        return h + self.feed_forward(self.norm2(h))


def block(forward, **more):
    return type("PreNormBlock", (Base,), {"forward": forward, **more})


# What the drives do.


class Recorder(nn.Module):
    """Three norms, made in another order than they are used."""

    def __init__(self, width):
        super().__init__()
        self.third, self.first = nn.LayerNorm(width), nn.LayerNorm(width)
        self.second = nn.LayerNorm(width)
        self.unused = nn.LayerNorm(width)
        self.other = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x):
        return self.third(self.second(self.first(x))) * self.other


def test_norms_are_set_in_the_order_of_use_and_nothing_else_is():
    module, x = Recorder(6).double(), torch.randn(2, 3, 6, dtype=torch.float64)
    setter = NormsSet(module, 6, np.random.default_rng(0))
    with setter:
        y = module(x)
    expected = x.numpy()
    for gain, bias in zip(setter.rows[1][:3], setter.rows[0][:3], strict=True):
        expected = norms.layer_norm(expected, gain, bias)
    np.testing.assert_allclose(y.detach().numpy() * 2, expected, rtol=1e-9, atol=1e-9)
    assert (module.unused.weight == 1).all() and (module.other == 0.5).all()


def test_gains_and_biases_show_what_the_start_hides():
    setter = NormsSet(nn.Identity(), 8, np.random.default_rng(1))
    gains, biases = setter.rows[1], setter.rows[0]
    assert gains.shape == biases.shape == (NORMS, 8)
    assert (np.abs(gains) >= 0.3).all() and (np.abs(np.abs(gains) - 1) >= 0.2).all()
    assert (np.abs(biases) >= 0.5).all()
    assert len(np.unique(gains)) == gains.size


def test_attention_looks_back_and_the_feed_forward_network_at_one_token():
    rng = np.random.default_rng(2)
    attention, feed_forward = (Sublayer(name, "active", 8, rng)
                               for name in ("attention", "feed_forward"))
    x = torch.from_numpy(rng.normal(size=(2, 5, 8)))
    changed = x.clone()
    changed[0, 2] += 1
    moved = [(part(changed) - part(x)).abs().amax(-1) > 1e-9 for part in (attention, feed_forward)]
    assert moved[0].tolist() == [[False, False, True, True, True], [False] * 5]
    assert moved[1].tolist() == [[False, False, True, False, False], [False] * 5]


def test_the_parts_of_a_reference_are_those_of_the_formulas():
    """With sublayers that give zero or a constant, the formula can be written down in NumPy."""
    exercise = specs.get("PostNormBlock")
    inputs = exercise.cases(np.random.default_rng(3))[3].inputs
    assert (inputs["attention"], inputs["feed_forward"]) == ("zero", "zero")
    width = inputs["x"].shape[-1]
    rng = np.random.default_rng(inputs["seed"])
    for name in ("attention", "feed_forward"):
        Sublayer(name, "zero", width, rng)
    rows = NormsSet(nn.Identity(), width, rng).rows
    h = norms.layer_norm(inputs["x"], rows[1][0], rows[0][0])
    y = norms.layer_norm(h, rows[1][1], rows[0][1])
    np.testing.assert_allclose(exercise.reference(inputs)["y"], y, rtol=1e-9, atol=1e-9)
    pre = specs.get("PreNormBlock").reference({**inputs, "attention": "constant"})["y"]
    update = pre - inputs["x"]
    np.testing.assert_allclose(update, np.broadcast_to(update[:1, :1], update.shape), atol=1e-12)


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_references_agree_with_torchs_own_layer(norm_first):
    """torch's layer with its attention and feed-forward replaced by the probes."""

    class Encoder(nn.TransformerEncoderLayer):
        def __init__(self, width, attention, feed_forward):
            super().__init__(width, 1, norm_first=norm_first, batch_first=True)
            self.attention, self.feed_forward = attention, feed_forward

        def forward(self, x):
            a, f = self.attention, self.feed_forward
            if self.norm_first:
                x = x + a(self.norm1(x))
                return x + f(self.norm2(x))
            x = self.norm1(x + a(x))
            return self.norm2(x + f(x))

    name = "PreNormBlock" if norm_first else "PostNormBlock"
    exercise = specs.get(name)
    for inputs in fresh_inputs(exercise, np.random.default_rng(4), 10):
        given, right = drive.block(Encoder, inputs), exercise.reference(inputs)
        for key in right:
            if isinstance(right[key], str):
                assert given[key] == right[key]
            else:
                np.testing.assert_allclose(given[key], right[key], rtol=1e-9, atol=1e-9)


def test_warm_up_takes_one_step_or_many():
    steps = np.arange(1, 50)
    for warmup in (1, 7, 30):
        rates = [0.02 * min(1, step / warmup) for step in range(1, 50)]
        np.testing.assert_allclose(warm_up(steps, 0.02, warmup), rates, rtol=1e-12)
        assert warm_up(5, 0.02, warmup) == rates[4]
    assert (warm_up(steps, 0.02, 0) == 0.02).all() and warm_up(1, 0.02, 0) == 0.02


def test_warm_up_can_be_checked_without_torch():
    code = ("import sys; sys.modules['torch'] = None\n"
            "from lnres_utils import check\n"
            "import numpy as np\n"
            "def warmup_rate(step, peak, warmup): return peak * np.minimum(step / warmup, 1)\n"
            "try: check(warmup_rate)\n"
            "except AssertionError as error: print(error)\n")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "A warm-up of 0 steps divides by zero" in run.stdout


# Answers that are tame, odd or broken.

TAME = {
    "gives x back": block(lambda self, x: x * 1),
    "gives x itself": block(lambda self, x: x),
    "gives zero": block(lambda self, x: x * 0),
    "gives noise": block(lambda self, x: x + torch.randn_like(x)),
    "norms x": block(lambda self, x: self.norm2(self.norm1(x))),
    "squares": block(lambda self, x: self.right(x.square())),
    "a little more": block(lambda self, x: self.right(x) * 1.001),
    "sees later tokens": block(lambda self, x: self.right(x) + 0.1 * x.mean(1, keepdim=True)),
    "sees other examples": block(lambda self, x: self.right(x) + 0.1 * x.mean(0, keepdim=True)),
}


@pytest.mark.parametrize("way", TAME)
def test_a_tame_answer_wins_no_points_and_no_wrong_name(way):
    report = checked("PreNormBlock", TAME[way])
    assert report.outcome == "wrong" and report.points == 0, report.text
    assert not report.mistakes, report.text


@pytest.mark.parametrize(("way", "words"), [
    ("gives noise", "Called again with the same input, it gives another result."),
    ("sees later tokens", "A token's output changes when only a later token changes"),
    ("sees other examples", "An example's output changes when only another example changes."),
])
def test_a_broken_law_is_told(way, words):
    assert words in checked("PreNormBlock", TAME[way]).text


def lazy(self, x):
    h = x + self.attention(nn.LayerNorm(x.shape[-1])(x))
    return h + self.feed_forward(F.layer_norm(h, h.shape[-1:]))


def in_place(self, x):
    x += self.attention(self.norm1(x))
    x += self.feed_forward(self.norm2(x))
    return x


def unregistered(self, width, attention, feed_forward):
    Base.__init__(self, width, nn.Identity(), nn.Identity())
    self.attention = self.feed_forward = None
    self.parts = [attention, feed_forward]


def of_parts(self, x):
    h = x + self.parts[0](self.norm1(x))
    return h + self.parts[1](self.norm2(h))


NAMED = {  # other hands: (answer, id)
    "norms made in each call": (block(lazy), "norms-untrained"),
    "dropout on the sum": (block(lambda self, x: F.dropout(self.right(x), 0.1, self.training)),
                           "own-dropout"),
    "a plain list": (block(of_parts, __init__=unregistered), "parts-not-registered"),
    "as with MultiheadAttention": (block(
        lambda self, x: (lambda h: h + self.feed_forward(self.norm2(h)))(
            x + self.attention(self.norm1(x))[0])), "first-output-only"),
}


@pytest.mark.parametrize("way", NAMED)
def test_a_slip_in_another_hand_is_named(way):
    answer, id = NAMED[way]
    report = checked("PreNormBlock", answer)
    assert [mistake.id for mistake in report.mistakes] == [id], report.text


def test_a_sum_in_place_is_told_from_its_broken_backward_pass():
    report = checked("PreNormBlock", block(in_place))
    assert [mistake.id for mistake in report.mistakes] == ["changes-its-input"]
    assert report.outcome == "raised" and "inplace operation" in report.text
    lost = {group for group, points, most in report.scores if points < most}
    assert lost == {"gradient", "both modes", "input kept"}, report.scores


ODD = {  # (answer, outcome, words of the report)
    "None": (block(lambda self, x: None), "wrong", "returned None: is there a `return`?"),
    "a tuple": (block(lambda self, x: (x, None)), "wrong",
                "`forward` returned a tuple; a torch tensor was expected"),
    "integers": (block(lambda self, x: self.right(x).long()), "wrong", "torch.int64"),
    "an array": (block(lambda self, x: x.detach().numpy()), "wrong", "returned a ndarray"),
    "another shape": (block(lambda self, x: self.right(x)[:, :1]), "wrong", "of shape"),
    "half of a gradient": (block(lambda self, x: self.right(x.detach())), "wrong",
                           "no gradient reaches the input"),
    "three arguments": (block(lambda self, x: self.attention(x, x, x)), "raised",
                        "takes 2 positional arguments but 4 were given"),
    "a sublayer without tokens": (block(lambda self, x: self.attention(x[0, 0])), "wrong",
                                  "`attention` was given a tensor of shape (9,)"),
    "a sublayer of another width": (block(lambda self, x: self.feed_forward(x[..., 1:])), "wrong",
                                    "`feed_forward` was given a tensor of shape (2, 3, 8)"),
    "a sublayer of None": (block(lambda self, x: self.attention(None)), "wrong",
                           "`attention` was given None"),
    "no module": (type("PreNormBlock", (), {"__init__": lambda self, w, a, f: None}), "wrong",
                  "not a torch.nn.Module: inherit from it"),
    "without super": (type("PreNormBlock", (nn.Module,), {
        "__init__": lambda self, w, a, f: setattr(self, "attention", a)}), "raised",
        "cannot assign module before Module.__init__() call"),
    "a function": (lambda width, attention, feed_forward: nn.Identity(), "wrong",
                   "a class was expected"),
    "batch norm": (block(Base.right, __init__=lambda self, w, a, f: (
        Base.__init__(self, w, a, f), setattr(self, "norm1", nn.BatchNorm1d(w)))[0]), "raised",
        "RuntimeError"),
}


@pytest.mark.parametrize("way", ODD)
def test_an_odd_block_gets_a_clear_line(way):
    answer, outcome, words = ODD[way]
    report = checked("PreNormBlock", answer)
    assert report.outcome == outcome and words in report.text, report.text
    assert report.points < report.max_points and not report.mistakes
    assert "Traceback" not in report.text and len(report.text) < 2500


class Stack(nn.Module):
    def __init__(self, width, make_block, depth):
        super().__init__()
        self.blocks = nn.ModuleList(make_block() for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def states(self, x):
        found = [x]
        for each in self.blocks:
            found.append(each(found[-1]))
        return found

    def forward(self, x):
        return self.norm(self.states(x)[-1])


def stack(**methods):
    return type("PreNormStack", (Stack,), methods)


def in_every_call(self, width, make_block, depth):
    Stack.__init__(self, width, make_block, depth)
    self.make_block = make_block


def through(self, x):
    for each in self.blocks:
        x = each(x)
    return self.norm(x)


ODD_STACKS = {
    "states without return": (stack(states=lambda self, x: None, forward=lambda self, x: x),
                              "wrong", "`states` returned None: is there a `return`?"),
    "one number": (stack(states=lambda self, x: 3, forward=lambda self, x: x), "wrong",
                   "`states` returned 3; a list of tensors was expected"),
    "no states": (stack(states=lambda self, x: [], forward=lambda self, x: x), "wrong",
                  "an empty list"),
    "arrays": (stack(states=lambda self, x: [x.detach().numpy()], forward=lambda self, x: x),
               "wrong", "in its list; tensors were expected"),
    "another shape": (stack(states=lambda self, x: [x, x[:1]], forward=lambda self, x: x), "wrong",
                      "all should have that of the input"),
    "too few states": (stack(states=lambda self, x: [x], forward=through), "wrong",
                       "states has shape (1, 3, 2, 5); (3, 3, 2, 5) was expected"),
    "blocks made in each call": (stack(
        __init__=in_every_call,
        forward=lambda self, x: [x := self.make_block()(x) for _ in range(4)][-1]), "wrong",
        "`make_block` was called more than"),
    "another name": (stack(states=property(lambda self: self.hidden_states)), "raised",
                     "has no attribute 'states'"),
}


@pytest.mark.parametrize("way", ODD_STACKS)
def test_an_odd_stack_gets_a_clear_line(way):
    answer, outcome, words = ODD_STACKS[way]
    report = checked("PreNormStack", answer)
    assert report.outcome == outcome and words in report.text, report.text
    assert report.points < report.max_points


@pytest.mark.parametrize(("returned", "words"), [
    (None, "the returned value is None"), ("0.1", "is a str"), ([0.1], "is a list of length 1"),
    (torch.tensor(0.1), "is a torch tensor of shape ()"), (True, "is a bool"),
    (0.1 + 0j, "is a complex"), (np.array(["a"]), "real numbers were expected"),
])
def test_an_odd_rate_gets_a_clear_line(returned, words):
    report = checked("warmup_rate", lambda step, peak, warmup: returned)
    assert report.outcome == "wrong" and words in report.text, report.text
    assert report.points == 0


def test_a_loop_over_steps_that_gives_a_list_loses_the_arrays_only():
    def rate(step, peak, warmup):
        if isinstance(step, np.ndarray):
            return [rate(int(each), peak, warmup) for each in step.ravel()]
        return peak if step >= warmup else peak * step / warmup

    report = checked("warmup_rate", rate)
    assert report.points == report.max_points - 2
    assert "is a list of length" in report.text


# The limits of what can be told, and the time it takes.


def test_alpha_on_the_skip_is_its_inverse_on_the_update():
    """Up to epsilon; so the check accepts both, and says of alpha on the update that it is not."""
    from lnres_utils.blocks import Block

    class DeepNormBlock(Block):
        def __init__(self, width, attention, feed_forward, alpha):
            super().__init__(width, [attention, feed_forward], "post", branch_scale=1 / alpha)

    assert checked("DeepNormBlock", DeepNormBlock).outcome == "right"


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("eps", [1e-12, 1e-6])
@pytest.mark.parametrize("seed", range(6))
def test_another_epsilon_costs_nothing(name, eps, seed):
    from lnres_utils.blocks import Block

    placement = {"PostNormBlock": "post", "PreNormBlock": "pre", "SandwichBlock": "sandwich",
                 "DeepNormBlock": "deepnorm"}[name]
    exercise = specs.get(name)

    def build(width, attention, feed_forward, alpha=1.0):
        return Block(width, [attention, feed_forward], placement,
                     lambda width: nn.LayerNorm(width, eps=eps), skip_scale=alpha)

    for case in exercise.cases(np.random.default_rng(seed)):
        given, right = drive.block(build, case.inputs), exercise.reference(case.inputs)
        for key, expected in right.items():
            if not isinstance(expected, str):  # a third of the tolerance is left
                gap = np.abs(given[key] - expected) / (1 + np.abs(expected))
                assert gap.max() < 0.67 * exercise.outputs[key].tolerance, (case.group, gap.max())


@pytest.mark.parametrize("name", [*BLOCKS, "PreNormStack", "warmup_rate"])
def test_the_reference_ignores_the_state_of_random_numbers(name):
    exercise = specs.get(name)
    inputs = exercise.cases(np.random.default_rng(5))[0].inputs
    first = exercise.reference(inputs)
    torch.manual_seed(1)
    second = exercise.reference(inputs)
    assert all(np.array_equal(first[key], second[key]) for key in first)
    assert torch.get_default_dtype() == torch.float32


def test_each_hypothesis_is_tried_once_however_often_one_checks():
    """The slowest answer is one that nothing explains: every hypothesis is tried on it."""
    exercise, unknown, driven = specs.get("PreNormBlock"), TAME["a little more"], []

    def drive_and_note(answer, inputs):
        driven.append(answer)
        return exercise.drive(answer, inputs)

    watched, cases = replace(exercise, drive=drive_and_note), exercise.cases(rng_of(exercise))
    for tried in (len(hypotheses(exercise)), 0):
        driven.clear()
        report = judge(watched, unknown, rng_of(exercise), cases)
        assert report.outcome == "wrong" and not report.mistakes
        assert len({id(answer) for answer in driven} - {id(unknown)}) == tried
