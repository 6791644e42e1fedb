"""The audit and the table agree about 56 layers of public libraries, cell by cell."""

import pytest

from lnres_utils import assert_causal, audit

from . import modules
from .dissent import DISSENT
from .reading import COLUMNS

ROWS = modules.rows()
CELLS = []  # (module, column, expected, found) of all that was compared; for the summary


def test_the_table_and_the_modules_have_the_same_rows():
    assert [row["module"] for row in ROWS] == list(modules.BUILD)
    assert set(ROWS[0]) == {"module", *COLUMNS}


def test_a_dissent_is_about_a_cell_of_the_table():
    cells = {(row["module"], column) for row in ROWS for column in COLUMNS if row[column]}
    assert set(DISSENT) <= cells


@pytest.mark.parametrize("row", ROWS, ids=[row["module"] for row in ROWS])
def test_the_audit_agrees_with_the_table(row):
    subject = modules.build(row)
    report = audit(subject.module, subject.example(), axes=subject.axes)
    found = {column: read(report) for column, read in COLUMNS.items() if row[column]}
    CELLS.extend((row["module"], column, row[column], value) for column, value in found.items())
    expected = {column: DISSENT.get((row["module"], column), (row[column], ""))[0]
                for column in found}
    evidence = "\n".join(report[CHECK_OF.get(column, column)].evidence
                         for column in found if found[column] != expected[column])
    assert found == expected, evidence


CHECK_OF = {"future": "causality", "x300": "half", "zero row": "constant rows"}


def test_a_causal_convolution_leaks_where_it_is_padded_with_its_own_beginning():
    """EnCodec's default: in front of position 0 stands a mirror image, positions 2 and 1."""
    layer, x = modules.encodec(pad_mode="reflect"), modules.Subject("BCT", None).example()
    report = audit(layer, x, axes="BCT", causal=True, checks=["causality"])
    assert [finding.check for finding in report.problems] == ["causality"]
    with pytest.raises(AssertionError, match="position 2 moves position 0"):
        assert_causal(layer, x, axes="BCT")
