"""Which parameters are trained, and which never are?"""

import numpy as np
import torch

from lnres_utils.auditing import probing

DRAWS = 3  # inputs and cotangents; a parameter that one of them reaches is fine
NAMED = 6  # names in a sentence


@probing.check("gradients")
def gradients(subject):
    """Parameters that require no gradient, get none, or get zeros, for random cotangents."""
    names = {id(each): path for root in subject.roots for path, each in root.named_parameters()}
    parameters = list({id(each): each for root in subject.roots
                       for each in root.parameters()}.values())
    if not parameters:
        return "info", "there are no parameters: nothing here is trained", {
            "parameters": 0, "frozen": [], "unreached": [], "zero": []}
    wanted = [each for each in parameters if each.requires_grad]
    frozen = [names[id(each)] for each in parameters if not each.requires_grad]
    reached, nonzero = set(), set()
    for draw in range(DRAWS):
        left = [each for each in wanted if id(each) not in nonzero]
        if left:
            for each, grad in zip(left, _gradients(subject, left, draw), strict=True):
                if grad is not None:
                    reached.add(id(each))
                    if bool((grad != 0).any()):  # NaN, too, is a gradient
                        nonzero.add(id(each))
    unreached = [names[id(each)] for each in wanted if id(each) not in reached]
    zero = [names[id(each)] for each in wanted if id(each) in reached - nonzero]
    facts = {"parameters": len(parameters), "frozen": frozen, "unreached": unreached, "zero": zero}
    told = []
    if unreached:
        told.append(f"no gradient reaches {_named(unreached)}")
    if zero:
        told.append(f"the gradient of {_named(zero)} is exactly zero")
    if frozen:
        told.append(f"{_named(frozen)} {'requires' if len(frozen) == 1 else 'require'} no gradient")
    if not told:
        count = len(parameters)
        who = "the only parameter" if count == 1 else f"each of the {count} parameters"
        return "ok", f"{who} gets a gradient that is not zero", facts
    return "problem" if unreached or zero else "info", "; ".join(told), facts


def _gradients(subject, parameters, draw):
    """The gradients of the parameters, None where there is none."""
    dtype, x = None, subject.x
    if x.is_floating_point():  # no wider than it takes: three copies of all parameters are alive
        dtype = torch.promote_types(x.dtype, torch.float32)
        x = probing.draw(subject, 10 + draw, examples=2)
    y = probing.real(subject.run(x, mode="train", dtype=dtype, seed=draw, grad=True))
    if not y.requires_grad:
        return [None] * len(parameters)
    numbers = np.random.default_rng(20 + draw).normal(size=tuple(y.shape))
    cotangent = torch.from_numpy(np.asarray(numbers)).to(y.device, y.dtype)
    return torch.autograd.grad(y, parameters, cotangent, allow_unused=True)


def _named(names):
    """A few of many names, as a sentence has them."""
    shown = ", ".join(f"`{each}`" for each in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} others"
