"""What ``import lnres_utils`` adds to ``import numpy``: medians of fresh interpreters.

    python tests/benchmarks/import_time.py [runs]
"""

import statistics
import subprocess
import sys
import time

MODULES = ("numpy", "numpy, lnres_utils")


def seconds(modules):
    """Wall time of one fresh interpreter that imports ``modules``."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
    return time.perf_counter() - start


def main(runs=15):
    for modules in MODULES:
        seconds(modules)  # the files come into memory, the byte code is written
    times = {modules: [] for modules in MODULES}
    for _ in range(runs):  # in turn, so that a busy moment hits both
        for modules in MODULES:
            times[modules].append(seconds(modules))
    medians = [statistics.median(times[modules]) for modules in MODULES]
    for modules, median in zip(MODULES, medians, strict=True):
        print(f"import {modules:20} {median:.3f} s")
    print(f"added: {medians[1] - medians[0]:.3f} s, ratio {medians[1] / medians[0]:.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
