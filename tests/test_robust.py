"""`make robust` finds an output that depends on the CPU, and is never green without simulating."""

import platform
from xml.etree.ElementTree import Element, ElementTree, SubElement

import nbformat
import pytest
import robust
from nbformat.v4 import new_code_cell, new_notebook, new_output

NUMPY = {  # what two generations of NumPy call the features of one machine with AVX-512
    "2.4": ["X86_V3", "X86_V4", "AVX512_ICL", "AVX512_SPR"],
    "2.0": ["SSSE3", "SSE41", "POPCNT", "SSE42", "AVX", "F16C", "FMA3", "AVX2", "AVX512F",
            "AVX512CD", "AVX512_SKX", "AVX512_CLX"],
}  # fmt: skip
x86 = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="only x86 CPUs are simulated"
)


def notebook(path, source, text, **settings):
    """Write a notebook of one cell with this stored output."""
    stored = [new_output("stream", name="stdout", text=text)]
    cell = new_code_cell(source, **{"execution_count": 1, "outputs": stored, **settings})
    nbformat.write(new_notebook(cells=[cell]), path)
    return path


@pytest.mark.parametrize("found", NUMPY.values(), ids=NUMPY)
def test_numpy_is_told_to_leave_out_what_the_older_cpu_lacks(found):
    for cpu in robust.STATES:
        disabled = robust.environment(cpu, found)["NPY_DISABLE_CPU_FEATURES"].split()
        kept = [name for name in found if name not in disabled]
        assert robust.numpy_level(kept) == robust.STATES[cpu]["NumPy"]
        assert any("AVX512" in name for name in disabled)
        assert ("X86_V3" in kept or "AVX2" in kept) == (cpu == "AVX2")


def test_no_feature_is_named_that_the_machine_lacks():
    variables = robust.environment("SSE4", ["SSE42", "AVX"])
    assert variables["NPY_DISABLE_CPU_FEATURES"] == "AVX"
    assert variables["OMP_NUM_THREADS"] == "1"


def test_features_without_a_name_yet_are_beyond_the_simulated_cpus():
    assert robust.numpy_level(["X86_V2", "X86_V9"]) == "X86_V9"
    assert robust.environment("AVX2", ["X86_V9"])["NPY_DISABLE_CPU_FEATURES"] == "X86_V9"


def test_mkl_is_not_expected_to_obey_on_other_makes_of_cpu(monkeypatch):
    monkeypatch.setattr(robust, "maker", lambda: "vendor_id : AuthenticAMD")
    assert "MKL" not in robust.expected("AVX2")
    assert robust.expected("SSE4")["MKL"] == "COMPATIBLE"
    monkeypatch.setattr(robust, "maker", lambda: "vendor_id : GenuineIntel")
    assert robust.expected("AVX2") == robust.STATES["AVX2"]


def report(path, *outcomes):
    suite = Element("testsuite")
    for outcome in outcomes:
        case = SubElement(suite, "testcase")
        if outcome != "passed":
            SubElement(case, outcome)
    ElementTree(suite).write(path)
    return path


def test_failures_and_errors_are_counted(tmp_path):
    path = report(tmp_path / "nbval.xml", "passed", "failure", "error", "passed")
    assert robust.differing(path, 4) == 2


@pytest.mark.parametrize("outcomes", [[], ["passed"], ["passed", "skipped"]])
def test_cells_that_were_not_run_are_no_success(tmp_path, outcomes):
    path = report(tmp_path / "nbval.xml", *outcomes)
    with pytest.raises(robust.Problem, match="of 2 cells were run"):
        robust.differing(path, 2)


def test_no_report_is_no_success(tmp_path):
    with pytest.raises(robust.Problem, match="no report"):
        robust.differing(tmp_path / "missing.xml", 2)


def test_wrong_arguments_are_errors_of_one_line(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.ipynb").write_text("no notebook")
    notebook(tmp_path / "unrun.ipynb", "print(1)", "", execution_count=None, outputs=[])
    for name, error in {
        "missing": "no such notebook",
        "empty": "no code cells",
        "text.ipynb": "not a notebook",
        "unrun.ipynb": "never run",
    }.items():
        assert robust.main([str(tmp_path / name)]) == 1
        message = capsys.readouterr().err
        assert error in message and message.startswith("error: ") and message.count("\n") == 1


def test_another_kind_of_cpu_is_an_error(tmp_path, capsys, monkeypatch):
    path = notebook(tmp_path / "steady.ipynb", "print(1 + 1)", "2\n")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert robust.main([str(path)]) == 1
    assert "cannot be simulated on arm64" in capsys.readouterr().err


@x86
def test_an_output_that_depends_on_the_cpu_is_reported(tmp_path, capsys):
    notebook(tmp_path / "steady.ipynb", "print(1 + 1)", "2\n")
    asks = "import torch\nprint(torch.backends.cpu.get_cpu_capability())"
    notebook(tmp_path / "unsteady.ipynb", asks, "AVX2\n")
    assert robust.main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "simulated AVX2 CPU: 2 cells in 2 notebooks, 0 differing" in printed
    assert "simulated SSE4 CPU: 2 cells in 2 notebooks, 1 differing" in printed
    assert "unsteady.ipynb::Cell 0" in printed


@x86
def test_a_simulation_without_effect_is_an_error(tmp_path, capsys, monkeypatch):
    path = notebook(tmp_path / "steady.ipynb", "print(1 + 1)", "2\n")
    monkeypatch.delitem(robust.STATES, "AVX2")  # one CPU is enough here
    monkeypatch.setitem(robust.ENVIRONMENTS["SSE4"], "OPENBLAS_CORETYPE", "misspelt")
    assert robust.main([str(path)]) == 1
    printed = capsys.readouterr()
    assert printed.err == (
        "error: the simulated SSE4 CPU is not in effect; see nbval's lines above\n"
    )
    assert "steady.ipynb" not in printed.out, "notebooks are not run for nothing"
