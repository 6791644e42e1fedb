"""Drives of chapter 3: pre-norm and post-norm."""

import numpy as np

from lnres_utils.drives.common import WrongKind, brief, given
from lnres_utils.drives.tensors import NO_GRADIENT, array, output, pull_back


def block(answer, inputs):
    """Build ``answer(width, attention, feed_forward[, alpha])`` and do the ``task`` of the case.

    Tasks: "forward" gives the output, "gradient" the gradient at x, and "modes" also tells in words
    whether training and evaluation give the same and which sublayers the module knows as its own.
    ``attention`` and ``feed_forward`` are "active", "zero" or "constant". Their weights, and the
    gains and biases put into the norms that the block made, follow from ``seed``.
    """
    import torch

    from lnres_utils.drives import sublayers

    rng = np.random.default_rng(inputs["seed"])
    x = torch.from_numpy(inputs["x"])  # shared: a module that writes to it shows
    width = x.shape[-1]
    parts = {name: sublayers.Sublayer(name, inputs[name], width, rng)
             for name in ("attention", "feed_forward")}
    with sublayers.double_precision():
        module = sublayers.built(answer(width, *parts.values(), *given(inputs, "alpha")))
        module.eval()
        with sublayers.NormsSet(module, width, rng):
            if inputs["task"] == "modes":
                return _modes(module, x, parts)
            if inputs["task"] == "gradient":
                return {"dx": _gradient(module, x, rng)}
            return {"y": array(output(module, x))}


def _gradient(module, x, rng):
    """The gradient at x of the sum of y·dy, for a random dy."""
    import torch

    leaf = x.clone().requires_grad_()
    pull_back(output(module, leaf * 1), torch.from_numpy(rng.normal(size=x.shape)))
    if leaf.grad is None:
        raise WrongKind(NO_GRADIENT)
    return array(leaf.grad)


def _modes(module, x, parts):
    outputs, told = [], set(parts)
    for mode in (True, False):
        module.train(mode)
        outputs.append(array(output(module, x)))
        told &= {name for name, part in parts.items() if part.training == mode}
    same = outputs[0].shape == outputs[1].shape and np.allclose(*outputs, rtol=1e-9, atol=1e-9)
    return {"y": outputs[1], "modes": "alike" if same else "different",
            "parts": " ".join(sorted(told)) or "none"}


def stack(answer, inputs):
    """Build ``answer(width, make_block, depth)`` and do the ``task`` of the case with it.

    Tasks: "forward" gives the output, "states" those of the method of that name, "gradient" the
    gradient at x, and "train" the output after one step of gradient descent of size ``rate``.
    Random numbers follow from ``seed``; each block that ``make_block`` gives has other weights.
    """
    import torch

    from lnres_utils.drives import sublayers

    rng = np.random.default_rng(inputs["seed"])
    x = torch.from_numpy(inputs["x"])
    width, depth, task = x.shape[-1], inputs["depth"], inputs["task"]
    ready = [sublayers.ResidualMap(width, rng) for _ in range(depth + 2)]

    def make_block():
        if not ready:
            raise WrongKind(f"`make_block` was called more than {depth + 2} times for a stack of "
                            f"depth {depth}: call it `depth` times, in `__init__`")
        return ready.pop(0)

    with sublayers.double_precision():
        module = sublayers.built(answer(width, make_block, depth))
        with sublayers.NormsSet(module, width, rng):
            if task == "states":
                return {"states": sublayers.states_of(module.states(x))}
            if task == "gradient":
                return {"dx": _gradient(module, x, rng)}
            y = output(module, x)
        if task == "train":
            pull_back(y, torch.from_numpy(rng.normal(size=x.shape)))
            with torch.no_grad():
                for parameter in module.parameters():
                    if parameter.grad is not None:
                        parameter -= inputs["rate"] * parameter.grad
            y = output(module, x)
        return {"y": array(y)}


def warmup_rate(answer, inputs):
    """``answer(step, peak, warmup)`` gives a number, or an array for an array of steps."""
    rate = answer(*given(inputs, "step", "peak", "warmup"))
    return {"rate": np.asarray(float(rate)) if type(rate) in (int, float) else rate}


def norm_order(answer, inputs):
    """``answer(block)`` names the order of a black box, one of the ``labels``."""
    labels = inputs["labels"].split()
    label = answer(inputs["block"])
    if not isinstance(label, str):
        raise WrongKind(f"the returned value is {brief(label)}; a label was expected"
                        + (": is there a `return`?" if label is None else ""))
    if label not in labels:
        raise WrongKind(f"the label {brief(label)} is unknown; use one of {', '.join(labels)}")
    return {"label": str(label)}
