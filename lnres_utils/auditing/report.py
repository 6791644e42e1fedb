"""What an audit found."""

from dataclasses import dataclass, field

from lnres_utils.auditing import rendering

VERDICTS = tuple(rendering.SYMBOLS)


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    check : str, its name in ``CHECKS``
    verdict : "ok", "problem", "info" or "cannot tell"
    evidence : str, one sentence or two: what was done, where it showed, how large it was beside
        which tolerance
    facts : dict of strings, numbers, booleans, and lists and dicts of them: the same as data
    """

    check: str
    verdict: str
    evidence: str
    facts: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict is {self.verdict!r}; use one of {', '.join(VERDICTS)}")


@dataclass(frozen=True)
class AuditReport:
    """The findings of an audit, in the order of its checks.

    ``report["causality"]`` is the finding of one check.

    Attributes
    ----------
    subject : str, what was audited, as people call it
    findings : tuple of Finding
    facts : dict, what holds for all of them: shape and axes of the input, dtype,
        remarks, and what sizes are measured by
    """

    subject: str
    findings: tuple[Finding, ...]
    facts: dict = field(default_factory=dict)

    def __getitem__(self, check):
        for finding in self.findings:
            if finding.check == check:
                return finding
        names = ", ".join(finding.check for finding in self.findings)
        raise KeyError(f"no finding of {check!r}; the report has {names}")

    @property
    def problems(self):
        """The findings whose verdict is "problem"."""
        return tuple(finding for finding in self.findings if finding.verdict == "problem")

    @property
    def text(self):
        """A line or more a finding, problems first."""
        return rendering.as_text(self)

    def __str__(self):
        return self.text

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return rendering.as_html(self)

    def to_dict(self):
        """Everything, as dicts, lists, strings and numbers that JSON has."""
        return rendering.as_dict(self)
