"""Drives of chapter 1: feature-axis normalization."""

import numpy as np

from lnres_utils.drives.common import WrongKind, given, unpack


def standardize(answer, inputs):
    """``answer(x[, eps])`` on one vector."""
    return {"y": answer(*given(inputs, "x", "eps"))}


def layer_norm(answer, inputs):
    """``answer(x, gamma, beta[, eps])``."""
    return {"y": answer(*given(inputs, "x", "gamma", "beta", "eps"))}


def axis_norm(answer, inputs):
    """``answer(x, kind[, groups[, eps]])``."""
    return {"y": answer(*given(inputs, "x", "kind", "groups", "eps"))}


def layer_norm_backward(answer, inputs):
    """``answer(dy, x, gamma[, eps])`` gives dx, dgamma and dbeta."""
    return unpack(answer(*given(inputs, "dy", "x", "gamma", "eps")), ("dx", "dgamma", "dbeta"))


def predictions(answer, inputs):
    """``answer()`` gives a dict of numbers with the keys asked for."""
    numbers = answer()
    if not isinstance(numbers, dict):
        raise WrongKind("the returned value is not a dict of numbers")
    outputs = {}
    for name in inputs["questions"].split():
        value = numbers.get(name, ...)
        if value is ... or value is None:
            raise NotImplementedError(f"{name} is not answered yet")
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if np.isnan(number):
            raise WrongKind(f"{name} is {value!r}; a number was expected")
        outputs[name] = np.asarray(number)
    return outputs


def norm_module(answer, inputs):
    """Build ``answer(width[, eps])`` and do the ``task`` of the case with it.

    Tasks: "state" lists the names and shapes of its state, "fresh" calls it as built, "forward"
    after loading weight and bias, "backward" gives the gradient at x, and "train" the output after
    one step of gradient descent of size ``rate``.
    """
    import torch

    x = torch.tensor(inputs["x"], requires_grad=True)
    module = answer(x.shape[-1], *([inputs["eps"]] if "eps" in inputs else []))
    if not isinstance(module, torch.nn.Module):
        raise WrongKind("the object built is not a torch.nn.Module: inherit from it")
    if inputs["task"] == "state":
        entries = sorted(module.state_dict().items())
        return {"state": " ".join(f"{name}{list(value.shape)}" for name, value in entries)}
    module = module.to(torch.float64)
    if inputs["task"] == "fresh":
        return {"y": _output(module, x).detach().numpy()}
    module.load_state_dict({name: torch.tensor(inputs[name]) for name in ("weight", "bias")})
    y = _output(module, x)
    if inputs["task"] == "forward":
        return {"y": y.detach().numpy()}
    (y * torch.tensor(inputs["dy"])).sum().backward()
    if inputs["task"] == "backward":
        return {"dx": x.grad.numpy()}
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.grad is not None:
                parameter -= inputs["rate"] * parameter.grad
    return {"y": _output(module, x).detach().numpy()}


def _output(module, x):
    """What the module gives, if that is a tensor."""
    y = module(x)
    if not hasattr(y, "detach"):
        what = "None: is there a `return`?" if y is None else f"a {type(y).__name__}"
        raise WrongKind(f"`forward` returned {what}" + ("" if y is None else
                                                        "; a torch tensor was expected"))
    return y
