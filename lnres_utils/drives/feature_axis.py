"""Drives of chapter 1: feature-axis normalization."""

import numpy as np

from lnres_utils.drives.common import WrongKind, brief, given, unpack
from lnres_utils.drives.tensors import NO_GRADIENT, array, output, pull_back, rounded, shape


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
    """``answer()`` gives a dict of numbers with the keys asked for.

    ``questions`` names those of this case, ``asked`` those of all cases.
    """
    numbers = answer()
    if not isinstance(numbers, dict):
        raise WrongKind("the returned value is not a dict of numbers")
    asked = inputs["asked"].split()
    unknown = [key for key in numbers if key not in asked]
    if not any(name in numbers for name in asked):
        raise WrongKind(f"none of the keys asked for, {', '.join(asked)}, is in the dict"
                        + _listed(unknown, "; it has "))
    return {name: np.asarray(_number(numbers, name, asked, unknown))
            for name in inputs["questions"].split()}


def _number(numbers, name, asked, unknown):
    """The number under ``name``, or a clear line on why there is none."""
    missing = [key for key in asked if numbers.get(key) is None or numbers[key] is ...]
    if name in missing:
        if unknown:
            raise WrongKind(f"{', '.join(missing)} not found"
                            + _listed(unknown, "; unknown keys of the dict: "))
        raise NotImplementedError(f"{name} is not answered yet")
    value = numbers[name]
    try:
        number = np.nan if isinstance(value, (str, bytes)) else float(value)
    except OverflowError:
        raise WrongKind(f"{name} is a number too large for a float") from None
    except Exception:  # a learner's object may fail in any way
        number = np.nan
    if np.isnan(number):
        raise WrongKind(f"{name} is {brief(value)}; a number was expected")
    return number


def _listed(keys, before):
    more = f" and {len(keys) - 5} more" if len(keys) > 5 else ""
    return before + ", ".join(map(brief, keys[:5])) + more if keys else ""


def norm_module(answer, inputs):
    """Build ``answer(width[, eps])`` and do the ``task`` of the case with it.

    Tasks: "state" lists the names and shapes of its state, "fresh" calls it as built, "forward"
    after loading weight and bias, "eval" too but in evaluation mode, "backward" gives the gradient
    at x, "train" the output after one step of gradient descent of size ``rate``, and "half" that
    for an x of half precision: ``dtype`` names it, ``weights`` the dtype of the parameters. The
    module is made float64 for a float64 x; for a float32 x it stays as it was built.
    """
    import torch

    x = torch.from_numpy(inputs["x"]).requires_grad_()  # shared: a module that writes to it shows
    module = answer(x.shape[-1], *([inputs["eps"]] if "eps" in inputs else []))
    if not isinstance(module, torch.nn.Module):
        raise WrongKind("the object built is not a torch.nn.Module: inherit from it")
    if inputs["task"] == "state":
        return {"state": " ".join(f"{name}{shape(value)}"
                                  for name, value in sorted(module.state_dict().items()))}
    if x.dtype == torch.float64:
        module = module.to(torch.float64)
    if inputs["task"] == "fresh":
        return {"y": array(output(module, x))}
    module.load_state_dict({name: torch.tensor(inputs[name]) for name in ("weight", "bias")
                            if name in inputs})
    if inputs["task"] == "half":
        dtype = getattr(torch, inputs["dtype"])
        y = output(module.to(getattr(torch, inputs["weights"])), x.detach().to(dtype))
        numbers, given = rounded(y, dtype)
        return {f"y in {inputs['dtype']}": numbers, "dtype": given}
    if inputs["task"] == "eval":
        module.eval()
    y = output(module, x)
    if inputs["task"] in ("forward", "eval"):
        return {"y": array(y), "hidden": x.detach().numpy().copy()}
    pull_back(y, torch.tensor(inputs["dy"]))
    if inputs["task"] == "backward":
        if x.grad is None:
            raise WrongKind(NO_GRADIENT)
        return {"dx": array(x.grad)}
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.grad is not None:
                parameter -= inputs["rate"] * parameter.grad
    return {"y": array(output(module, x))}
