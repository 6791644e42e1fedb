"""How long the check of each exercise takes: right, named, and with all hypotheses tried.

    python tests/benchmarks/check_time.py [runs]

Wall time and processor time of one check; the second says more on a busy machine. The first check
of a kernel also computes what the hypotheses give, and imports what the exercise needs.
"""

import statistics
import sys
import time
from dataclasses import replace

import numpy as np

from lnres_utils import specs
from lnres_utils.checking import judge, seed_of
from lnres_utils.checking.diagnosing import hypothesis


def answers(exercise):
    """(label, exercise, answer): an answer whose mistake is not known has all of them tried."""
    first, *others = exercise.knobs
    yield "right", exercise, hypothesis(exercise, ())
    yield "named", exercise, hypothesis(exercise, [others[-1]])
    yield "unknown", replace(exercise, knobs=tuple(others)), hypothesis(exercise, [first])


def main(runs=15):
    for name in specs.exercises:
        exercise = specs.get(name)
        cases = exercise.cases(np.random.default_rng(seed_of(name)))  # once, as in a notebook
        for label, asked, answer in answers(exercise):
            wall, processor = [], []
            for _ in range(runs):
                start, busy = time.perf_counter(), time.process_time()
                judge(asked, answer, np.random.default_rng(0), cases)
                wall.append(time.perf_counter() - start)
                processor.append(time.process_time() - busy)
            print(f"{name:22} {label:8} first {1e3 * wall[0]:7.1f} ms ({1e3 * processor[0]:6.1f} "
                  f"of processor), median {1e3 * statistics.median(wall):6.1f} ms "
                  f"({1e3 * statistics.median(processor):6.1f})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
