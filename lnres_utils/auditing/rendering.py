"""An audit report as text, as HTML that any notebook shows, and as plain data."""

import math
import textwrap
from html import escape

from lnres_utils.markup import code, flat

SYMBOLS = {"problem": "✗", "cannot tell": "?", "info": "i", "ok": "✓"}  # the gravest first
LINE = 100  # characters of a line of text


def headline(report):
    """What was audited, on which input, and how many findings there are of each verdict."""
    shape, dtype = report.facts.get("shape"), report.facts.get("dtype")
    given = ""
    if shape is not None:
        sizes = ", ".join(map(str, shape))
        given = f" on {dtype} of shape ({sizes}), axes {report.facts.get('axes', '')}"
    return f"Audit of {report.subject}{given}: {_counts(report)}"


def _counts(report):
    verdicts = [finding.verdict for finding in report.findings]
    told = [f"{count} {verdict}{'s' * (verdict == 'problem' and count > 1)}"
            for verdict in SYMBOLS if (count := verdicts.count(verdict))]
    if "problem" not in verdicts:
        told.insert(0, "no problem")
    return ", ".join(told)


def _notes(report):
    """What the reader should know about the input, and about the sizes."""
    return [*report.facts.get("remarks", ()), *filter(None, [report.facts.get("measure")])]


def gravest_first(findings):
    """Problems, then what could not be told, then the rest; within each as they were asked."""
    order = list(SYMBOLS)
    return sorted(findings, key=lambda finding: order.index(finding.verdict))


def as_text(report):
    lines = textwrap.wrap(headline(report), LINE, subsequent_indent="  ")
    for note in _notes(report):
        lines += textwrap.wrap(f"Note: {flat(note)}", LINE, initial_indent="  ",
                               subsequent_indent="  ", break_on_hyphens=False)
    checks = max((len(finding.check) for finding in report.findings), default=0)
    verdicts = max((len(finding.verdict) for finding in report.findings), default=0)
    for finding in gravest_first(report.findings):
        start = (f"{SYMBOLS[finding.verdict]} {finding.verdict.ljust(verdicts)}  "
                 f"{finding.check.ljust(checks)}  ")
        lines += textwrap.wrap(flat(finding.evidence), LINE, initial_indent=start,
                               subsequent_indent=" " * len(start), break_on_hyphens=False) or [
            start.rstrip()]
    return "\n".join(lines)


def as_html(report):
    """HTML with inline styles and inherited colors only: it survives untrusted notebooks."""
    parts = [f'<p style="margin:.3em 0"><strong>{escape(headline(report))}</strong></p>']
    parts += [f'<p style="margin:.3em 0">Note: {code(flat(note))}</p>' for note in _notes(report)]
    rows = "".join(map(_row, gravest_first(report.findings)))
    if rows:
        parts.append('<table style="border-collapse:collapse;margin:.4em 0;width:100%;'
                     f'font-size:inherit"><tbody>{rows}</tbody></table>')
    return (f'<div role="group" aria-label="Audit of {escape(report.subject)}" '
            f'style="border-left:.25em solid;padding:.2em .8em">{"".join(parts)}</div>')


def _row(finding):
    cell = ("text-align:left;vertical-align:top;padding:.35em .8em .35em 0;"
            "border-top:1px dotted")
    weight = "bold" if finding.verdict == "problem" else "normal"
    symbol = f'<span aria-hidden="true">{SYMBOLS[finding.verdict]}</span>'
    return ('<tr style="background:none">'
            f'<th scope="row" style="{cell};font-weight:{weight};white-space:nowrap;width:1%">'
            f"{symbol} {escape(finding.verdict)}<br>{escape(finding.check)}</th>"
            f'<td style="{cell};font-weight:normal;white-space:normal;overflow-wrap:anywhere">'
            f"{code(flat(finding.evidence))}</td></tr>")


def plain(value):
    """``value`` as JSON has it: dicts with strings as keys, lists, strings, numbers, null.

    What JSON has no number for, such as infinity, becomes a string.
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=str)
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy and torch
        return plain(value.tolist())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    return str(value)


def as_dict(report):
    findings = [{"check": finding.check, "verdict": finding.verdict, "evidence": finding.evidence,
                 "facts": finding.facts} for finding in report.findings]
    return plain({"subject": report.subject, "facts": report.facts, "findings": findings})
