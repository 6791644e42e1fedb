"""The table of model families in chapter 3, found again by the audit, row by row."""

import json
import re
from pathlib import Path

import pytest
import torch
import transformers

from lnres_utils import audit

from .families import FAMILIES, Tail

LESSON = Path(__file__).parents[2] / "chapters/pre-and-post-norm/order-is-part-of-the-weights.ipynb"
AXES = {3: "BTD", 4: "BHWC"}  # of what a norm inside a block is given


def section():
    cells = ["".join(cell["source"]) for cell in json.loads(LESSON.read_text())["cells"]]
    return next(cell for cell in cells if cell.startswith("## Where public models stand"))


def table():
    """{family: [order, norm, final norm]} as the lesson has it."""
    lines = [line for line in section().splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows[0] == ["family", "order", "norm", "final norm"]
    return {row[0]: row[1:] for row in rows[2:]}


def several(x):
    """An input of three examples, in the shape of the one that the model handed on."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(3, *x.shape[1:], generator=generator) + 0.3


def order(family):
    x, args, kwargs = family.called
    found = audit(family.block, several(x), *args, axes=family.axes, checks=["placement"], **kwargs)
    return found["placement"].facts.get("placement", found["placement"].evidence)


def final_norm(family):
    """(whether what comes behind the last block is a norm, the kind of it)."""
    report = audit(Tail(family), several(family.called[0]), axes=family.axes,
                   checks=["scale", "shift"])
    return report["scale"].facts["invariant"], kind(report)


def kind(report):
    return "LayerNorm" if report["shift"].facts["invariant"] else "RMSNorm"


def kinds_inside(family):
    """The kinds of all parts of the block that are norms."""
    x, args, kwargs = family.called
    seen = {}
    leaves = [each for each in family.block.modules() if not list(each.children())]
    hooks = [each.register_forward_pre_hook(lambda leaf, inputs: seen.setdefault(leaf, inputs[0]))
             for each in leaves]
    with torch.no_grad():
        family.block(several(x), *args, **kwargs)
    for hook in hooks:
        hook.remove()
    reports = [audit(leaf, x.detach(), axes=AXES[x.ndim], checks=["scale", "shift", "placement"])
               for leaf, x in seen.items() if x.ndim in AXES]
    return {kind(report) for report in reports
            if report["placement"].facts.get("placement") == "norm"}


def test_the_table_has_the_families_of_this_file_and_names_the_version():
    assert list(table()) == list(FAMILIES) and len(FAMILIES) >= 10
    assert re.search(r"transformers\S* (\d+\.\d+\.\d+)", section())[1] == transformers.__version__


@pytest.mark.parametrize("name", FAMILIES)
def test_a_row_is_what_the_audit_finds(name):
    family = FAMILIES[name]()
    is_there, of_kind = final_norm(family)
    inside = kinds_inside(family)
    assert len(inside) == 1
    if is_there:
        assert inside == {of_kind}
    assert [order(family), inside.pop(), "yes" if is_there else "no"] == table()[name]
