"""What a report of the audit says: text, HTML in light, dark and narrow pages, plain data."""

import json
import re

import numpy as np
import pytest
import torch
from torch import nn

from lnres_utils import AuditReport, Finding, audit

FINDINGS = (
    Finding("examples", "ok", "No example moves."),
    Finding("epsilon", "info", "Epsilon is 1e-5 inside the root."),
    Finding("padding", "cannot tell", "The module raised ValueError: <12> tokens & no more."),
    Finding("half", "problem", "Float16: NaN, first in `layers.0.mlp`.", {"cases": [1]}),
    Finding("scale", "problem", "The output does not depend on the input."),
)
REPORT = AuditReport("Block<5>", FINDINGS, {"shape": [2, 3, 5], "axes": "BTD", "dtype": "float32",
                                            "remarks": ["x is constant; it was replaced."]})


def in_order(text):
    return sorted(("half", "scale", "padding", "epsilon", "examples"), key=text.index)


def test_problems_come_first_in_text_and_page():
    graver = ["half", "scale", "padding", "epsilon", "examples"]
    assert in_order(REPORT.text) == graver
    assert in_order(re.sub("<[^>]*>", " ", REPORT._repr_html_())) == graver
    assert [finding.check for finding in REPORT.problems] == ["half", "scale"]


def test_the_headline_counts_verdicts_and_names_the_input():
    first = " ".join(REPORT.text.splitlines()[:2])
    for part in ("Block<5>", "(2, 3, 5)", "BTD", "float32", "2 problems", "1 cannot tell",
                 "1 info", "1 ok"):
        assert part in first
    assert "no problem, 1 ok" in AuditReport("f", FINDINGS[:1]).text
    assert "x is constant" in REPORT.text and "x is constant" in REPORT._repr_html_()


def test_text_keeps_to_its_width_and_says_each_verdict_in_words():
    long = AuditReport("f", (Finding("half", "problem", "one word after another " * 30),))
    assert max(map(len, long.text.splitlines())) <= 100
    assert str(long) == repr(long) == long.text
    for line in REPORT.text.splitlines()[2:]:
        assert re.match(r"[✗?i✓] (problem|cannot tell|info|ok) ", line)


def test_the_page_has_inline_styles_and_inherited_colors_only():
    html = REPORT._repr_html_()
    assert not re.search(r"<(script|style|link|img)|\b(class|id)=|color|#[0-9a-f]{3}|rgb", html)
    assert 'role="group" aria-label="Audit of Block&lt;5&gt;"' in html
    assert html.count('<th scope="row"') == len(FINDINGS)
    assert "<code>layers.0.mlp</code>" in html and "&lt;12&gt; tokens &amp; no more" in html
    for verdict in ("problem", "cannot tell", "info", "ok"):
        assert verdict in html


def test_a_report_as_data_is_what_json_has():
    facts = {"numbers": (np.float32(0.5), np.int64(3), 2, True, None, float("inf"), float("nan")),
             "tensor": torch.tensor([1.0, 2.0]), "dtype": torch.float16, 3: {"a", "b"}}
    data = AuditReport("f", (Finding("half", "ok", "It is.", facts),)).to_dict()
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again == data
    assert data["findings"][0]["facts"] == {
        "numbers": [0.5, 3, 2, True, None, "inf", "nan"], "tensor": [1.0, 2.0],
        "dtype": "torch.float16", "3": ["a", "b"]}


def test_a_whole_audit_reads_well():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    report = audit(layer, torch.randn(3, 6, 16), causal=True)
    json.dumps(report.to_dict(), allow_nan=False)
    for finding in report.findings:
        assert re.match(r"[A-Z`0-9]", finding.evidence), finding
        assert finding.evidence.endswith("."), finding
        assert "  " not in finding.evidence and "\n" not in finding.evidence, finding
    assert report["causality"].verdict == "problem"


def test_an_unknown_verdict_is_refused():
    with pytest.raises(ValueError, match="verdict is 'bad'; use one of problem"):
        Finding("half", "bad", "")
