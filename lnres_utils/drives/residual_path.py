"""Drives of chapter 2: the residual path."""

import numpy as np

from lnres_utils.drives.common import WrongKind, given
from lnres_utils.drives.tensors import NO_GRADIENT, array, output, pull_back

SHAPES = {2: (3,), 3: (2, 3), 4: (2, 4, 3)}  # the axes after the batch, by the number of all axes
CALLS = {"train": 200, "eval": 24}  # at most: so many that one draw for the batch goes both ways
AGAIN = 90  # examples of a call that is to show other draws than the first
NEAR = 1e-6


def residual_update(answer, inputs):
    """``answer(x, update)`` and, where the case has one, what comes of ``answer(x, misfit)``."""
    y = answer(inputs["x"], inputs["update"])
    if y is None:
        raise WrongKind("the returned value is None: is there a `return`?")
    if "misfit" not in inputs:
        return {"y": y}
    return {"y": y, "misfit": refusal(answer, inputs["x"], inputs["misfit"])}


def refusal(call, *arguments):
    """In words, what comes of a call that should raise a ValueError."""
    try:
        returned = call(*arguments)
    except NotImplementedError:
        raise
    except Exception as error:  # whatever else an answer raises is told by its name
        return "ValueError" if isinstance(error, ValueError) else type(error).__name__
    if hasattr(returned, "shape"):
        return f"a result of shape {tuple(returned.shape)}"
    return "None returned" if returned is None else f"a {type(returned).__name__} returned"


def linear_stack_gradient(answer, inputs):
    """``answer(weights, cotangent)``."""
    return {"dx": answer(*given(inputs, "weights", "cotangent"))}


def dropping_block(answer, inputs):
    """Build ``answer(sublayer[, p])`` and do the ``task`` of the case in its ``mode``.

    Tasks: "forward" gives the output, "step" the gradient at x and the output after one step of
    gradient descent of size ``rate``, "levels" outputs for an x whose numbers are all ``level``,
    and "ratio" the output for one draw. Where the sub-layer has no weights it is an identity.
    """
    import torch
    from torch import nn

    if inputs["task"] == "levels":
        block = _module(answer(nn.Softplus(), *given(inputs, "p")))
        return _levels(block.train(inputs["mode"] == "train"), inputs)
    sublayer = _sublayer(inputs) if "weight" in inputs else nn.Identity()
    block = _module(answer(sublayer, *given(inputs, "p"))).train(inputs["mode"] == "train")
    x = torch.tensor(inputs["x"], requires_grad=inputs["task"] == "step")
    if inputs["task"] == "ratio":
        return {"y": _drawn(block, x)}
    y = _steady(block, x)
    if y is None:
        return {"second call": "different"}
    same = {"second call": "the same"}
    if inputs["task"] == "forward":
        return {**same, "y": array(y), "x after the call": array(x)}
    return {**same, **_step(block, x, inputs)}


def scaled_residual(answer, inputs):
    """Build ``answer(width, sublayer[, start])`` and do the ``task``: "forward" or "step"."""
    import torch

    sublayer = _sublayer(inputs)
    block = _module(answer(len(inputs["weight"]), sublayer, *given(inputs, "start")))
    x = torch.from_numpy(inputs["x"])  # shared: a block that writes to it shows
    if inputs["task"] == "forward":
        return {"y": array(output(block, x))}
    return _step(block, x.clone().requires_grad_(), inputs)


def projected_residual(answer, inputs):
    """Build ``answer(width_in, width_out, sublayer)``; what tells its shortcut from its update.

    The shortcut is what is left when the sub-layer gives zeros, and the update the rest; so the
    random start of a projection does not matter. Tasks: "forward"; "step" adds the same after one
    step of gradient descent; "misfit" gives it a sub-layer of another output shape.
    """
    import torch

    sublayer = _sublayer(inputs)
    width_out, width_in = inputs["weight"].shape
    block = _module(answer(width_in, width_out, sublayer))
    x, before = torch.from_numpy(inputs["x"]), inputs["x"].copy()
    if inputs["task"] == "misfit":
        output(block, x)  # who refuses everything refuses nothing
        wrong = _module(answer(width_in, width_out, _misfit(sublayer, inputs["misfit"])))
        return {"misfit": refusal(wrong, x)}
    y = _steady(block, x)
    if y is None:
        return {"second call": "different"}
    _fitting(y, (*x.shape[:-1], width_out), x)
    facts = {
        "second call": "the same",
        "parameters": np.asarray(_own_parameters(block, sublayer)),
        "y": array(y), **_shortcut(block, sublayer, width_in),
    }
    if inputs["task"] == "forward":
        return facts
    _descend(block, y, inputs)
    after = {"y": array(output(block, torch.tensor(before))),
             **_shortcut(block, sublayer, width_in)}
    return {**facts, **{f"{name} after": value for name, value in after.items()}}


def _module(built):
    """The object built, if it is a torch module, in double precision."""
    import torch

    if not isinstance(built, torch.nn.Module):
        raise WrongKind("the object built is not a torch.nn.Module: inherit from it")
    return built.to(torch.float64)


def _sublayer(inputs):
    """A linear map and an activation, by default tanh, which needs its output for its gradient."""
    import torch
    from torch import nn

    width_out, width_in = inputs["weight"].shape
    linear = nn.Linear(width_in, width_out, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(inputs["weight"]))
        linear.bias.copy_(torch.tensor(inputs["bias"]))
    return nn.Sequential(linear, getattr(nn, inputs.get("activation", "Tanh"))())


def _seed(number):
    """From here on the same answer draws the same."""
    import torch

    torch.default_generator.manual_seed(number)  # torch.manual_seed also keeps notes for GPUs
    np.random.seed(number)


def _steady(block, x):
    """The output, or None if a second call with other random numbers gives another one."""
    import torch

    _seed(1)
    kept = x.detach().clone()  # a block that writes to its input gets the same one again
    first = output(block, x)
    _seed(2)
    second = output(block, kept)
    alike = first.shape == second.shape and torch.allclose(first, second, equal_nan=True)
    return first if alike else None


def _fitting(y, shape, x):
    if tuple(y.shape) != tuple(shape):
        raise WrongKind(f"`forward` returned a tensor of shape {tuple(y.shape)} for an input of "
                        f"shape {tuple(x.shape)}; {tuple(shape)} was expected")
    return y


def _descend(block, y, inputs):
    """One step of gradient descent on the sum of y·dy."""
    import torch

    pull_back(y, torch.tensor(inputs["dy"]))
    with torch.no_grad():
        for parameter in block.parameters():
            if parameter.grad is not None:
                parameter -= inputs["rate"] * parameter.grad


def _step(block, x, inputs):
    """The gradient at x, and the output after one step of gradient descent, or some ``steps``."""
    _descend(block, output(block, x), inputs)
    if x.grad is None:
        raise WrongKind(NO_GRADIENT)
    dx = array(x.grad)
    for _ in range(inputs.get("steps", 1) - 1):
        block.zero_grad()
        _descend(block, output(block, x), inputs)
    return {"dx": dx, "y after a step": array(output(block, x.detach().clone()))}


def _drawn(block, x):
    """The output for one draw."""
    import torch

    _seed(1)
    with torch.no_grad():
        return array(_fitting(output(block, x.clone()), x.shape, x))


def _levels(block, inputs):
    """The outputs for a constant x: many examples, and more calls while all numbers are alike."""
    import torch

    def call(seed, examples):
        _seed(seed)
        x = torch.full((examples, *SHAPES[inputs["axes"]]), inputs["level"], dtype=torch.float64)
        return array(_fitting(output(block, x), x.shape, x))

    many = call(0, inputs["examples"])
    constant = np.ptp(many) < NEAR
    few = []
    for each in range(CALLS[inputs["mode"]] if constant else 2):
        few.append(call(1 + each, AGAIN))
        if constant and abs(few[-1].flat[0] - many.flat[0]) > NEAR:
            break
    return {"y": many, "again": np.stack(few)}


def _own_parameters(block, sublayer):
    """How many numbers of the block train, those of the sub-layer left out."""
    others = {id(parameter) for parameter in sublayer.parameters()}
    return sum(parameter.numel() for parameter in block.parameters()
               if parameter.requires_grad and id(parameter) not in others)


def _shortcut(block, sublayer, width_in):
    """What the block gives for unit vectors and for zeros while its sub-layer gives zeros."""
    import torch

    linear = sublayer[0]
    kept = linear.weight.detach().clone(), linear.bias.detach().clone()
    with torch.no_grad():
        linear.weight.zero_()
        linear.bias.zero_()
        unit = torch.eye(width_in, dtype=torch.float64)[None]
        rows = array(_fitting(output(block, unit), (1, width_in, len(linear.weight)), unit))[0]
        offset = array(output(block, torch.zeros_like(unit)))[0, 0]
        linear.weight.copy_(kept[0])
        linear.bias.copy_(kept[1])
    return {"rows": rows, "offset": offset}


def _misfit(sublayer, kind):
    """A sub-layer whose output has another shape than the shortcut."""
    from torch import nn

    class Misfit(nn.Module):
        def __init__(self):
            super().__init__()
            self.sublayer = sublayer

        def forward(self, x):  # (B, T, in)
            update = self.sublayer(x)
            return {"one feature": lambda: update[..., :1],
                    "fewer features": lambda: update[..., :-1],
                    "one token": lambda: update.mean(1, keepdim=True),
                    "no token axis": lambda: update.mean(1)}[kind]()

    return Misfit()
