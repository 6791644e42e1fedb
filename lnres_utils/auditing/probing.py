"""What several checks of numbers share: inputs, sizes, and how far rounding may move an output."""

import functools

import numpy as np
import torch

from lnres_utils.auditing.arithmetic import logic_dtype, name
from lnres_utils.auditing.report import Finding
from lnres_utils.auditing.subject import ModuleRaised
from lnres_utils.markup import one_line

LEAST = 1e-300  # beside which nothing is divided
SAME = 1e-4  # relative to the output; for numbers of size 30 even an epsilon of 0.1 changes less
ROUNDING = 16  # an honest algorithm stays within this many times what one rounding does


class CannotTell(Exception):
    """A question that this module leaves open; the message is the reason, in one line."""


class BackwardRaised(Exception):
    """The backward pass raised; the message is torch's, in one line."""

    @property
    def is_fault(self):
        """Whether it is the module's: something overwrites what its backward pass needs."""
        return "modified by an inplace operation" in str(self)

    def sentence(self):
        hint = ("; the check needs `use_reentrant=False`" if "use_reentrant" in str(self) else "")
        return f"the backward pass raises {self}{hint}"


def check(name):
    """Make a function of a subject a check: it always ends in a finding."""

    def decorate(function):
        @functools.wraps(function)
        def asked(subject):
            try:
                verdict, evidence, facts = function(subject)
            except CannotTell as reason:
                verdict, evidence, facts = "cannot tell", str(reason), {}
            except ModuleRaised as error:
                verdict, evidence = "cannot tell", f"the module raised {error}"
                facts = {"error": str(error)}
            except BackwardRaised as error:
                verdict = "problem" if error.is_fault else "cannot tell"
                evidence, facts = error.sentence(), {"error": str(error)}
            return Finding(name, verdict, _sentence(evidence), facts)

        return asked

    return decorate


def _sentence(text):
    """With a capital letter in front and a full stop behind."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "…")) else ".")


def draw(subject, seed=0, size=1.5, offset=0.3, examples=None):
    """An input of the subject's shape in float64, of rows with a spread and a mean.

    ``examples`` cuts the batch, if the module and its arguments take fewer; most questions need
    no more.
    """
    if not subject.x.is_floating_point():
        raise CannotTell(f"the input is {kind(subject.x)}; only floating-point numbers can be "
                         "made larger, shifted or rounded")
    shape = list(subject.x.shape)
    if examples is not None:
        shape[subject.axis("B")] = few(subject, examples)
    numbers = size * np.random.default_rng(seed).normal(size=shape) + offset
    return torch.from_numpy(np.asarray(numbers)).to(subject.x.device)


def few(subject, examples):
    """So many examples, or as many as there are where arguments, such as masks, ask for them."""
    there = subject.x.shape[subject.axis("B")]
    if examples >= there:
        return there
    if ("few", examples) not in subject.cache:
        try:
            subject.run(subject.x.narrow(subject.axis("B"), 0, examples))
            subject.cache["few", examples] = examples
        except ModuleRaised:
            subject.cache["few", examples] = there
    return subject.cache["few", examples]


def example(subject, examples=None):
    """The user's own input, or a drawn one where that says nothing, such as zeros."""
    x = subject.x
    if examples is not None:
        x = x.narrow(subject.axis("B"), 0, few(subject, examples))
    if not rms(x - x.mean()):
        return draw(subject, examples=examples)
    return x.double()


def precise(subject):
    """The dtype of the questions of logic: float64, where the module runs in it."""
    return logic_dtype(subject) or subject.x.dtype


def outputs(subject, *inputs, dtype, mode="eval"):
    """What the module gives for each input, as float64, with the same random numbers for each."""
    found = []
    for x in inputs:
        found.append(real(subject.run(x, dtype=dtype, mode=mode)).double())
        if not bool(found[-1].isfinite().all()):
            raise CannotTell(f"the output has numbers that are not finite for an input of size "
                             f"{short(largest(x))} in {name(dtype)}")
    return found


def gradients(y, inputs, cotangent):
    """The gradient for each input, None where there is none."""
    try:
        return torch.autograd.grad(y, inputs, cotangent, allow_unused=True)
    except Exception as error:
        raise BackwardRaised(one_line(error)) from error


def real(y):
    """``y``, if it is a tensor of real floating-point numbers."""
    if y.is_complex() or not y.is_floating_point():
        raise CannotTell(f"the output is {kind(y)}; real floating-point numbers were expected")
    return y


def sensitivity(subject, x, y, spacing, mode="eval"):
    """How far the output moves from ``y`` when each number of ``x`` moves by up to ``spacing``.

    Asked in float64. With the spacing of numbers in a dtype, no algorithm in it does much better.
    """
    moved = 0.0
    for seed in (1, 2):
        turns = np.random.default_rng(seed).uniform(-1, 1, size=tuple(x.shape))
        near = x + spacing * torch.from_numpy(turns).to(x.device)
        moved = max(moved, largest(outputs(subject, near, dtype=torch.float64, mode=mode)[0] - y))
    return moved


def rms(x):
    return float(x.double().square().mean().sqrt()) if x.numel() else 0.0


def largest(x):
    return float(x.abs().max()) if x.numel() else 0.0


def part(change, y):
    """A change of an output, beside its size."""
    size = rms(y)
    if not size:
        return short(change)
    percent = 100 * change / size
    if percent >= 1:
        return f"{float(f'{percent:.1g}'):.0f} % of its size"
    return f"{float(f'{change / size:.1g}'):.1g} of its size" if change else "nothing"


def kind(x):
    """What a tensor is, for a sentence: its dtype and shape."""
    return f"{name(x.dtype)} of shape {tuple(x.shape)}"


def short(number):
    """A number as a reader takes it in: three digits at most."""
    if number != number or number in (float("inf"), float("-inf")):
        return str(number)
    if number == 0 or 1e-3 <= abs(number) < 1e5:
        return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"
    mantissa, exponent = f"{number:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
