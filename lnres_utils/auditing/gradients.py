"""Which parameters are trained, and which never are?"""

import numpy as np
import torch

from lnres_utils.auditing import probing
from lnres_utils.auditing.subject import ModuleRaised

DRAWS = 3  # inputs and cotangents; a parameter that one of them reaches is fine
NAMED = 6  # names in a sentence
SMALL = 1e-3  # of the largest gradient; what is smaller may be rounding, and is asked for once more
SHRINKS = 1e-4  # in float64 rounding shrinks to 2e-9 of what it is in float32; a gradient stays


@probing.check("gradients")
def gradients(subject):
    """Parameters that require no gradient, get none, or get zeros, for random cotangents.

    A gradient of rounding errors alone counts as none: no output depends on that parameter. Where
    the input decides which parameters get one, those that never did are told, but no problem: they
    may be experts that no token chose.
    """
    names = {id(each): path for root in subject.roots for path, each in root.named_parameters()}
    parameters = list({id(each): each for root in subject.roots
                       for each in root.parameters()}.values())
    wanted = [each for each in parameters if each.requires_grad]
    frozen = [names[id(each)] for each in parameters if not each.requires_grad]
    reached, nonzero, rounded, broken = set(), set(), set(), set()
    largest = 1.0  # about that of a module with weights of usual size; the cotangents are of size 1
    for draw in range(DRAWS):
        left = [each for each in wanted if id(each) not in nonzero]
        if not left:
            break
        given = [(each, _size(grad)) for each, grad
                 in zip(left, _gradients(subject, left, draw), strict=True) if grad is not None]
        broken |= {id(each) for each, size in given if size == np.inf}
        reached |= {id(each) for each, _ in given}
        largest = max(largest, *(size for _, size in given if size < np.inf), 1.0)
        tiny = [(each, size) for each, size in given if 0 < size < SMALL * largest]
        unsure = _of_rounding(subject, tiny, draw)
        rounded |= unsure
        nonzero |= {id(each) for each, size in given if size} - unsure
    unreached = [names[id(each)] for each in wanted if id(each) not in reached]
    zero = [names[id(each)] for each in wanted if id(each) in reached - nonzero - rounded]
    rounding = [names[id(each)] for each in wanted if id(each) in rounded - nonzero]
    broken = [names[id(each)] for each in wanted if id(each) in broken]
    not_chosen = []
    if (unreached or zero) and _routes(subject, wanted):
        not_chosen, unreached, zero = unreached + zero, [], []
    facts = {"parameters": len(parameters), "frozen": frozen, "unreached": unreached, "zero": zero,
             "rounding": rounding, "not finite": broken, "not chosen": not_chosen}
    if not parameters:
        return "info", "there are no parameters: nothing here is trained", facts
    told = []
    if broken:
        told.append(f"the gradient of {_named(broken)} is NaN or infinite for ordinary inputs, "
                    "whose outputs are finite")
    if not_chosen:
        told.append(f"the gradient of {_named(not_chosen)} was zero for all {_tokens(subject)} "
                    "tokens tried; the input decides which parameters get one, as by experts, of "
                    "which these may never have been chosen")
    if unreached:
        told.append(f"no gradient reaches {_named(unreached)}")
    if zero:
        told.append(f"the gradient of {_named(zero)} is exactly zero")
    if rounding:
        told.append(f"no output depends on {_named(rounding)}: the gradient is rounding alone")
    if frozen:
        told.append(f"{_named(frozen)} {'requires' if len(frozen) == 1 else 'require'} no gradient")
    if not told:
        count = len(parameters)
        who = "the only parameter" if count == 1 else f"each of the {count} parameters"
        return "ok", f"{who} gets a finite gradient that is not zero", facts
    return "problem" if broken or unreached or zero else "info", "; ".join(told), facts


def _size(grad):
    """The size of a gradient, infinite where there is NaN in it."""
    size = float(grad.detach().double().square().mean().sqrt())
    return np.inf if np.isnan(size) else size


def _routes(subject, parameters):
    """Whether the input, and no random draw, decides which parameters get a gradient."""
    found = [tuple(grad is not None and bool(grad.any()) for grad in
                   _gradients(subject, parameters, draw, seed=0)) for draw in range(DRAWS)]
    return len(set(found)) > 1


def _tokens(subject):
    """How many rows of features all draws had."""
    x = probing.draw(subject, 10, examples=2)
    axis = subject.feature_axis
    return DRAWS * (x.numel() // (1 if axis is None else x.shape[axis]))


def _usual(subject):
    """No wider than it takes: three copies of all parameters are alive."""
    return (torch.promote_types(subject.x.dtype, torch.float32)
            if subject.x.is_floating_point() else None)


def _of_rounding(subject, tiny, draw):
    """Which of some small gradients are so much smaller in float64 than in float32: their ids."""
    if not tiny or (usual := _usual(subject)) is None:
        return set()
    other = torch.float64 if usual == torch.float32 else torch.float32
    parameters = [each for each, _ in tiny]
    try:
        again = _gradients(subject, parameters, draw, other)
    except ModuleRaised:
        return set()
    found = set()
    for (each, size), grad in zip(tiny, again, strict=True):
        sizes = (size, 0.0 if grad is None else _size(grad))
        single, double = sizes if other == torch.float64 else sizes[::-1]
        if double < SHRINKS * single:
            found.add(id(each))
    return found


def _gradients(subject, parameters, draw, dtype=None, seed=None):
    """The gradients of the parameters, None where there is none."""
    x, leaf = subject.x, None
    if x.is_floating_point():
        dtype = dtype or _usual(subject)
        leaf = probing.draw(subject, 10 + draw, examples=2).to(dtype).requires_grad_()
        x = leaf.clone()  # as behind other layers; some checkpoints need it
    y = probing.real(subject.run(x, mode="train", dtype=dtype, seed=draw if seed is None else seed,
                                 grad=True))
    if not y.requires_grad:
        return [None] * len(parameters)
    numbers = np.random.default_rng(20 + draw).normal(size=tuple(y.shape))
    cotangent = torch.from_numpy(np.asarray(numbers)).to(y.device, y.dtype)
    # some checkpoints hide the parameters from it; asked for x as well, they raise
    asked = [*parameters, leaf] if leaf is not None else parameters
    found = probing.gradients(y, asked, cotangent)[:len(parameters)]
    if not bool(y.isfinite().all()) and any(_size(each) == np.inf for each in found
                                            if each is not None):
        raise probing.CannotTell("output and gradients are not finite for the inputs tried")
    return found


def _named(names):
    """A few of many names, as a sentence has them."""
    shown = ", ".join(f"`{each}`" for each in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} others"
