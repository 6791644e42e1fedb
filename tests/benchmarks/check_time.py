"""How long a check takes: right, named, two mistakes at once, and no known mistake.

    python tests/benchmarks/check_time.py [runs]

Wall time and processor time of one check; the second says more on a busy machine.
"""

import statistics
import sys
import time

import numpy as np
import torch

from lnres_utils import norms, specs
from lnres_utils.checking import judge, seed_of
from lnres_utils.checking.diagnosing import hypothesis


def unnamed_layer_norm(x, gamma, beta, eps=1e-5):
    """Agrees with no hypothesis: all of them are tried."""
    return np.tanh(norms.layer_norm(x, gamma, beta, eps))


class UnnamedLayerNorm(norms.LayerNorm):
    def forward(self, x):
        return torch.tanh(super().forward(x))


def answers(name, right, unnamed):
    exercise = specs.get(name)
    knobs = {knob.id: knob for knob in exercise.knobs}
    yield "right", right
    yield "unbiased variance", hypothesis(exercise, [knobs["unbiased-variance"]])
    yield "two mistakes", hypothesis(exercise, [knobs["unbiased-variance"], knobs["over-tokens"]])
    yield "no known mistake", unnamed


def main(runs=50):
    torch.set_num_threads(1)
    for name, right, unnamed in (
        ("layer_norm", norms.layer_norm, unnamed_layer_norm),
        ("LayerNorm", norms.LayerNorm, UnnamedLayerNorm),
    ):
        for label, answer in answers(name, right, unnamed):
            wall, processor = [], []
            rng = np.random.default_rng(seed_of(name))
            exercise = specs.get(name)
            cases = exercise.cases(rng)  # drawn once, as in a notebook
            for _ in range(runs):
                start, busy = time.perf_counter(), time.process_time()
                judge(exercise, answer, rng, cases)
                wall.append(time.perf_counter() - start)
                processor.append(time.process_time() - busy)
            print(f"{name:11} {label:18} first {1e3 * wall[0]:6.1f} ms, "
                  f"median {1e3 * statistics.median(wall):6.1f} ms, "
                  f"processor {1e3 * statistics.median(processor):6.1f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
