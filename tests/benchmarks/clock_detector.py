"""How many points a detector gets that goes by the time of one call of its black box.

    python tests/benchmarks/clock_detector.py [seeds]

It says one label of the boxes that take longer than the median of all and the other label of the
rest; both directions are tried. Beside it, what a coin gets that is thrown once a kind of box.
"""

import copy
import statistics
import sys
import time

import numpy as np

from lnres_utils import specs
from lnres_utils.checking import Run, judge
from lnres_utils.checking.scoring import scores
from lnres_utils.drives.boxes import NormFailed

DETECTORS = ("mixes_examples", "leaks_future", "norm_test")
X, ONE, ZERO = np.random.default_rng(0).normal(size=(2, 3, 5)), np.ones(5), np.zeros(5)


def seconds(box, *arrays):
    """The time of one call, whatever comes of it."""
    start = time.perf_counter()
    try:
        box(*arrays)
    except NormFailed:
        pass
    return time.perf_counter() - start


def by_the_clock(name, cases, flipped):
    """The detector; how long a call usually takes it knows beforehand."""
    def slow(box, x):
        return (seconds(box, *arrays(x)) > usual) != flipped

    def norm_test(norm):
        assert not slow(norm, X)

    def arrays(x):
        return (x, ONE, ZERO) if name == "norm_test" else (x,)

    each = [copy.deepcopy(case.inputs) for case in cases]
    usual = statistics.median(
        seconds(inputs.get("fn", inputs.get("norm")), *arrays(inputs.get("x", X)))
        for inputs in each)
    return norm_test if name == "norm_test" else slow


def clock_points(name, seed, flipped):
    exercise = specs.get(name)
    cases = exercise.cases(np.random.default_rng(seed))
    answer = by_the_clock(name, cases, flipped)
    return judge(exercise, answer, np.random.default_rng(seed), cases).points


def coin_points(name, seed):
    """The points of a guess that is the same for all boxes of a kind."""
    exercise, rng = specs.get(name), np.random.default_rng(seed)
    cases = [exercise.opened(case) for case in exercise.cases(rng)]
    lucky = {kind: rng.random() < 0.5
             for kind in sorted({(case.group, case.kind) for case in cases})}
    runs = [Run(case, None) for case in cases]
    good = {id(run): lucky[run.case.group, run.case.kind] for run in runs}
    (_, points, _), = scores(exercise, runs, good, [])
    return points


def main(seeds=20):
    for name in DETECTORS:
        clock = [clock_points(name, seed, flipped)
                 for seed in range(seeds) for flipped in (False, True)]
        coin = [coin_points(name, seed) for seed in range(2 * seeds)]
        for label, points in (("the clock", clock), ("a coin a kind", coin)):
            print(f"{name:15} {label:14} median {statistics.median(points):4.1f}, mean "
                  f"{statistics.mean(points):4.1f}, maximum {max(points):2} of "
                  f"{specs.get(name).max_points} points")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
