"""What `make test-models` prints at the end."""


def pytest_terminal_summary(terminalreporter):
    from .test_modules import CELLS, DISSENT

    if not CELLS:
        return
    say = terminalreporter.write_line
    terminalreporter.section("the audit and the table")
    modules = {module for module, *_ in CELLS}
    differ = [cell for cell in CELLS if cell[2] != cell[3]]
    unexplained = {cell[0] for cell in differ if cell[:2] not in DISSENT}
    explained = {cell[0] for cell in differ} - unexplained
    agree = modules - explained - unexplained
    say(f"modules: {len(agree)} of {len(modules)} agree in every column; {len(explained)} differ "
        f"by definition, {len(unexplained)} without a reason")
    for column in dict.fromkeys(column for _, column, *_ in CELLS):
        cells = [cell for cell in CELLS if cell[1] == column]
        same = sum(cell[2] == cell[3] for cell in cells)
        say(f"  {column:10} {same} of {len(cells)}")
    say(f"cells:   {len(CELLS) - len(differ)} of {len(CELLS)}")
    for module, column, expected, found in differ:
        reason = DISSENT.get((module, column), ("", "not explained"))[1]
        say(f"{module}, {column}: table {expected}, audit {found}. {reason}")
