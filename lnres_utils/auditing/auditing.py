"""``audit``: the practical checks, asked of any module or function."""

from lnres_utils.auditing.arithmetic import name
from lnres_utils.auditing.constant_rows import constant_rows
from lnres_utils.auditing.dtypes import autocast
from lnres_utils.auditing.epsilon import epsilon
from lnres_utils.auditing.examples import examples
from lnres_utils.auditing.gradients import gradients
from lnres_utils.auditing.half import half
from lnres_utils.auditing.invariance import scale, shift
from lnres_utils.auditing.modes import modes
from lnres_utils.auditing.padding import padding
from lnres_utils.auditing.placing import placement
from lnres_utils.auditing.report import AuditReport, Finding
from lnres_utils.auditing.subject import ModuleRaised, Subject
from lnres_utils.auditing.tokens import causality, tokens
from lnres_utils.auditing.wording import measure

CHECKS = {  # name -> function (subject) -> Finding; in the order of the report
    "examples": examples,
    "tokens": tokens,
    "causality": causality,
    "modes": modes,
    "padding": padding,
    "scale": scale,
    "shift": shift,
    "placement": placement,
    "epsilon": epsilon,
    "half": half,
    "constant rows": constant_rows,
    "autocast": autocast,
    "gradients": gradients,
}


def audit(module, x, *args, axes="BTD", causal=None, padded=None, checks=None, seed=0, output=None,
          **kwargs):
    """Ask a module the questions of this course, by calling it.

    Parameters
    ----------
    module : torch module, or function of tensors
    x : tensor, an example of the input, in the dtype you use
    *args, **kwargs : handed on in every call, such as masks
    axes : str, a letter for each axis of ``x``: B batch; T, H, W positions; C or D features. Axes
        of the output have the same places.
    causal : bool or None; with True a position that sees a later one is a problem, otherwise it is
        only told
    padded : bool or None; with True inputs get padded, and padding that moves the real positions
        is a problem. Otherwise it is one where a mask is handed on, and only told where none is
    checks : list of str, optional; names of ``CHECKS``, by default all
    seed : int, of the jitter, of the changes made to ``x``, and of the module's own random numbers
    output : function, optional; picks the tensor to look at from what the module returns. By
        default it is the first tensor, or ``last_hidden_state``.

    Returns
    -------
    AuditReport

    Raises
    ------
    TypeError, ValueError if the input cannot be used, or if the module raises on ``x`` as it is.

    Notes
    -----
    Gains and biases are jittered while the checks run. The module, its gradients and modes, the
    random state and torch's settings come back exactly as they were, also by an exception. Of other
    attributes those are put back that are numbers, tensors, arrays, or lists, dicts and sets of
    them. Hooks of yours run in each call; what they write outside of the module stays.
    """
    subject = Subject(module, x, args, kwargs, axes, causal, output, seed, padded)
    return watched_audit(iter, subject, checks)


def watched_audit(watch, subject, checks=None):
    """:func:`audit` that goes through the names of its checks by ``watch``, as a progress bar."""
    chosen, x = _chosen(checks), subject.x
    with subject:
        try:
            subject.run()
            subject.check_parameters()
            subject.enlarge()
        except ModuleRaised as error:
            raise ValueError(f"{subject.name} raised on x of shape {tuple(x.shape)}: "
                             f"{error}") from error.__cause__
        findings = tuple(_asked(check, subject) for check in watch(chosen))
        facts = {"shape": list(x.shape), "axes": subject.axes, "dtype": name(x.dtype),
                 "remarks": list(subject.remarks), "measure": measure(subject)}
    return AuditReport(subject.name, findings, facts)


def _asked(check, subject):
    """The finding of one check; a module that raises is no reason to give up the others."""
    try:
        return CHECKS[check](subject)
    except ModuleRaised as error:
        return Finding(check, "cannot tell", f"The module raised {error}", {"error": str(error)})


def _chosen(checks):
    if checks is None:
        return list(CHECKS)
    if isinstance(checks, str):
        checks = [checks]
    if not isinstance(checks, (list, tuple, set, frozenset, dict)) or not all(
            isinstance(name, str) for name in checks):
        raise TypeError(f"checks is {checks!r}; a list of names was expected, of "
                        f"{', '.join(CHECKS)}")
    if not checks:
        raise ValueError(f"checks names none; there are {', '.join(CHECKS)}")
    unknown = [name for name in checks if name not in CHECKS]
    if unknown:
        raise ValueError(f"there is no check {unknown[0]!r}; there are {', '.join(CHECKS)}")
    return [name for name in CHECKS if name in checks]
