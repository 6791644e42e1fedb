"""Run every notebook again on simulated older CPUs: do readers get the outputs that the book shows?

    python tests/robust.py            all notebooks of chapters/, solutions/ and exercises/
    python tests/robust.py PATH ...   these notebooks or folders

Numerical libraries choose their instructions by the CPU, and other instructions round sums in
another order. Environment variables hold them to the instructions of older x86 CPUs; nbval then
compares what each cell gives with what is stored. First a notebook asks the libraries, in a kernel
started like all others, what they really use: if a simulation is not in effect, the run fails.
Not simulated: ARM, other versions of the libraries, and NNPACK, a small part of PyTorch.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import nbformat

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("chapters", "solutions", "exercises")

# One thread each: with more, sums come out in another order, and both simulations run at once.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
ENVIRONMENTS = {
    "AVX2": {  # Intel's Haswell of 2013, AMD's Zen of 2017
        "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own kernels
        "ONEDNN_MAX_CPU_ISA": "AVX2",  # oneDNN, PyTorch's convolutions and bfloat16 products
        "MKL_CBWR": "AVX2",  # MKL, PyTorch's matrix products
        "OPENBLAS_CORETYPE": "Haswell",  # OpenBLAS, NumPy's matrix products
    },
    "SSE4": {  # Intel's Nehalem of 2008, the least that NumPy runs on
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_CBWR": "COMPATIBLE",
        "OPENBLAS_CORETYPE": "Nehalem",
    },
}
# What the libraries must then say that they use.
STATES = {
    "AVX2": {"PyTorch": "AVX2", "oneDNN": "Intel AVX2", "MKL": "AVX2", "OpenBLAS": "Haswell",
             "NumPy": "AVX2"},
    "SSE4": {"PyTorch": "DEFAULT", "oneDNN": "Intel SSE4.1", "MKL": "COMPATIBLE",
             "OpenBLAS": "Nehalem", "NumPy": "SSE4"},
}  # fmt: skip
# NumPy's names, old and new, for what each CPU has; whatever is not named here is newer.
SSE4 = {"SSE", "SSE2", "SSE3", "SSSE3", "SSE41", "POPCNT", "SSE42", "X86_V2"}
AVX2 = {"AVX", "F16C", "FMA3", "AVX2", "X86_V3"}
FEATURES = {"SSE4": SSE4, "AVX2": SSE4 | AVX2}


class Problem(Exception):
    """Why there is no result: one line that says what to do."""


def numpy_features():
    """The CPU features that NumPy uses in this process: those it must have, those it found."""
    import numpy

    simd = numpy.show_config(mode="dicts")["SIMD Extensions"]
    return simd.get("baseline", []), simd.get("found", [])


def numpy_level(features):
    """The oldest simulated CPU that has these features, or what is beyond all of them."""
    for cpu in ("SSE4", "AVX2"):
        if FEATURES[cpu].issuperset(features):
            return cpu
    return " ".join(sorted(set(features) - FEATURES["AVX2"]))


def environment(cpu, found):
    """The variables that simulate ``cpu`` on a machine where NumPy found these features."""
    # NumPy's own loops. Only what was found is named: NumPy warns of names that the machine lacks,
    # and refuses those it was built for.
    disabled = " ".join(name for name in found if name not in FEATURES[cpu])
    return {**ONE_THREAD, **ENVIRONMENTS[cpu], "NPY_DISABLE_CPU_FEATURES": disabled}


# One product in MKL and one convolution in oneDNN; OpenBLAS reports when NumPy loads it.
PROBE = """
import numpy, torch
x = torch.ones(64, 64, dtype=torch.float64)
x @ x
torch.nn.functional.conv2d(torch.ones(2, 16, 32, 32), torch.ones(16, 16, 3, 3))
"""
VERBOSE = {"MKL_VERBOSE": "1", "ONEDNN_VERBOSE": "1", "OPENBLAS_VERBOSE": "2"}
REPORTS = {
    "oneDNN": r"^onednn_verbose.*,cpu,isa:(.+)$",
    "MKL": r"^MKL_VERBOSE DGEMM.* CNR:(\w+)",
    "OpenBLAS": r"^Core: (\w+)$",
}


def state():
    """What the libraries use here: PyTorch and NumPy in this process, the others in its child."""
    import torch

    child = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={**os.environ, **VERBOSE},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    found = {name: re.search(pattern, child.stdout, re.M) for name, pattern in REPORTS.items()}
    return {
        "PyTorch": torch.backends.cpu.get_cpu_capability(),
        **{name: match[1] if match else "does not report" for name, match in found.items()},
        "NumPy": numpy_level(sum(numpy_features(), [])),
    }


def maker():
    """A text that names who made this machine's CPU."""
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.read_text() if cpuinfo.exists() else platform.processor()


def expected(cpu):
    """What ``state`` must give; MKL's part only where MKL promises it."""
    wanted = dict(STATES[cpu])
    # MKL's manual: settings other than AUTO and COMPATIBLE are for Intel processors only.
    if wanted["MKL"] != "COMPATIBLE" and "GenuineIntel" not in maker():
        del wanted["MKL"]
    return wanted


def lines(state):
    return "".join(f"{library}: {used}\n" for library, used in state.items())


def witness(wanted):
    """A notebook whose stored output is the wanted state, and whose cell prints the real one."""
    source = (
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import robust\nfound = robust.state()\n"
        f"print(robust.lines({{name: found[name] for name in {list(wanted)}}}), end='')"
    )
    stored = nbformat.v4.new_output("stream", name="stdout", text=lines(wanted))
    cell = nbformat.v4.new_code_cell(source, execution_count=1, outputs=[stored])
    return nbformat.v4.new_notebook(cells=[cell])


def notebooks(paths):
    """The notebooks among these paths, each with the number of its cells that have to be run."""
    found = {}
    for path in paths:
        if not path.exists():
            raise Problem(f"{path}: no such notebook or folder")
        inside = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        for each in inside:
            if not any(part.startswith(".") for part in each.relative_to(path).parts):
                found[each.resolve()] = _cells(each)
    if not sum(found.values()):
        raise Problem(f"no code cells in {', '.join(map(str, paths))}; name a folder that has some")
    return found


def _cells(path):
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        run = [c["execution_count"] is not None for c in cells if c["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Problem(f"{path}: not a notebook ({type(error).__name__}); restore it") from None
    if not all(run):  # nbval would pass these without comparing anything
        raise Problem(f"{path}: has cells that were never run; run `make refresh`")
    return len(run)


def run(cpu, paths, found, report):
    """Run nbval on these notebooks on the simulated CPU, showing each line as it comes."""
    root = os.path.commonpath([ROOT, *paths])  # nbval names no notebook outside of it
    command = [sys.executable, "-m", "pytest", "--nbval", "--no-header", "--color=no", "-rfE"]
    # No cache: two runs at once would write the same files.
    command += ["-p", "no:cacheprovider", f"--rootdir={root}", f"--junitxml={report}"]
    with subprocess.Popen(
        [*command, *map(str, paths)],
        env={**os.environ, **environment(cpu, found)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in filter(str.strip, process.stdout):
            print(f"{cpu} | {line.rstrip()}", flush=True)
    return process.returncode


def differing(report, cells):
    """How many cells differ by nbval's report; all ``cells`` of them must have been run."""
    try:
        cases = list(ElementTree.parse(report).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        raise Problem("nbval gave no report; see its lines above") from None
    ran = [case for case in cases if case.find("skipped") is None]
    if len(ran) != cells:
        raise Problem(f"{len(ran)} of {cells} cells were run; see nbval's lines above")
    return sum(case.find("failure") is not None or case.find("error") is not None for case in ran)


def on_each_cpu(paths, found, folder):
    """Run notebooks on both CPUs at once; return how many cells differ on each."""

    def one(cpu):
        report = folder / f"{cpu}.xml"
        report.unlink(missing_ok=True)
        code = run(cpu, paths[cpu], found, report)
        count = differing(report, sum(paths[cpu].values()))
        if code != int(count > 0):
            raise Problem(f"nbval ended with code {code}; see its lines above")
        return count

    with ThreadPoolExecutor(len(paths)) as pool:
        return dict(zip(paths, pool.map(one, paths), strict=True))


def robust(paths):
    """Simulate, make sure of it, compare; return whether all outputs are the stored ones."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise Problem(f"older x86 CPUs cannot be simulated on {platform.machine()}; use an x86 CPU")
    books = notebooks(paths)
    found = numpy_features()[1]
    print("this machine:", ", ".join(lines(state()).splitlines()), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        witnesses = {}
        for cpu in STATES:
            nbformat.write(witness(expected(cpu)), folder / f"{cpu}.ipynb")
            witnesses[cpu] = {folder / f"{cpu}.ipynb": 1}
        for cpu, count in on_each_cpu(witnesses, found, folder).items():
            if count:
                raise Problem(f"the simulated {cpu} CPU is not in effect; see nbval's lines above")
        counts = on_each_cpu(dict.fromkeys(STATES, books), found, folder)
    for cpu, count in counts.items():
        cells = f"{sum(books.values())} cells in {len(books)} notebooks"
        print(f"simulated {cpu} CPU: {cells}, {count} differing")
        for library in STATES[cpu].keys() - expected(cpu).keys():
            print(f"  but {library} ran as on this machine: it can be held back on Intel CPUs only")
    return not any(counts.values())


def main(argv=None):
    """Run the command line; return 0 if no output differs, else 1."""
    parser = argparse.ArgumentParser(
        prog="python tests/robust.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks or folders (default: all)")
    args = parser.parse_args(argv)
    try:
        return int(not robust(args.paths or [ROOT / folder for folder in FOLDERS]))
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
