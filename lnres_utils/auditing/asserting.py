"""Assertions for your own test suite: an audit of one question, and its evidence if it fails."""

from lnres_utils.auditing.auditing import audit

TOLD = ("ok", "info")
PRECISION = "A float64 input whose rows are not far from zero beside their spread tells most."
POSITIONS = "Name the positions in axes, T or H and W, and give x at least two of them."
ADVICE = {
    "examples": f"Give x at least two examples that differ. {PRECISION}",
    "causality": f"{POSITIONS} {PRECISION}",
    "modes": f"See that the module can be called in both modes on x. {PRECISION}",
    "padding": "The module must take another number of positions: make masks and positions inside "
               "it, or hand on a padding mask that hides nothing.",
    "half": "Ask about a module whose layers have kernels for half precision on this device.",
    "constant rows": "Give x floating-point numbers and an axis of features, C or D.",
    "gradients": "Ask about a module whose output is differentiable.",
}


class CannotTell(Exception):
    """The question could not be answered for this module or this input; the message says why.

    It is no ``AssertionError``: nothing is known to be wrong with the module.
    """


def assert_no_example_mixing(module, x, *args, **kwargs):
    """Assert that the output of an example does not depend on the other examples of the batch.

    Asked in evaluation and in training: batch normalization fails in training.

    Parameters
    ----------
    module, x, *args, **kwargs : as :func:`lnres_utils.audit` takes them, such as ``axes="BCHW"``

    Raises
    ------
    AssertionError with what was changed, where it showed and how large it was.
    CannotTell if the question cannot be answered, with what to change.
    """
    _assert("no example mixing", "examples", TOLD, module, x, args, kwargs)


def assert_causal(module, x, *args, **kwargs):
    """Assert that no position sees a later one.

    Every position is tried in evaluation; and in training, unless this is found to be evaluation
    with dropout: then a few sets of positions are.

    Parameters and errors are those of :func:`assert_no_example_mixing`. The call is asserted, not
    the class: hand on the mask that your model hands on.
    """
    _assert("causal", "causality", ("ok",), module, x, args, kwargs | {"causal": True})


def assert_same_in_train_and_eval(module, x, *args, **kwargs):
    """Assert that the module computes the same in both modes: no dropout, no running statistics.

    Parameters and errors are those of :func:`assert_no_example_mixing`.
    """
    _assert("the same in training and in evaluation", "modes", ("ok",), module, x, args, kwargs)


def assert_padding_ignored(module, x, *args, **kwargs):
    """Assert that zeros behind a sequence leave the real positions as they are.

    Parameters and errors are those of :func:`assert_no_example_mixing`. If the module takes a
    padding mask, hand one on that hides nothing: the audit marks the padding in it.
    """
    _assert("padding ignored", "padding", TOLD, module, x, args,
            kwargs | {"padded": True})


def assert_half_safe(module, x, *args, **kwargs):
    """Assert that half precision, float16 and bfloat16, gives numbers that are finite and right.

    Parameters and errors are those of :func:`assert_no_example_mixing`.
    """
    _assert("safe in half precision", "half", TOLD, module, x, args, kwargs)


def assert_finite_on_constant_rows(module, x, *args, **kwargs):
    """Assert that constant and zero rows give finite outputs and gradients.

    Parameters and errors are those of :func:`assert_no_example_mixing`.
    """
    _assert("finite on constant rows", "constant rows", TOLD, module, x, args, kwargs)


def assert_all_parameters_train(module, x, *args, **kwargs):
    """Assert that each parameter wants a gradient and gets one.

    Parameters and errors are those of :func:`assert_no_example_mixing`.
    """
    _assert("all parameters train", "gradients", ("ok",), module, x, args, kwargs)


def _assert(claim, check, passes, module, x, args, kwargs):
    __tracebackhide__ = True  # pytest then shows the line of the test, not this one
    if "checks" in kwargs:
        raise TypeError("checks was given; an assertion asks one question, use audit for more")
    report = audit(module, x, *args, checks=[check], **kwargs)
    finding = report[check]
    if finding.verdict in passes or finding.facts.get("parameters") == 0:  # nothing to train
        return
    told = "\n".join(filter(None, [finding.evidence, report.facts["measure"]]))
    lines = f"{report.subject}, x of shape {tuple(x.shape)}\n{told}"
    if finding.verdict == "cannot tell":
        raise CannotTell(f"cannot tell whether {claim}: {lines}\n{ADVICE[check]}")
    raise AssertionError(f"not {claim}: {lines}")
