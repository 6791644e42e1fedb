"""What an audit costs beside one forward and backward pass: time, and growth of peak memory.

    python tests/benchmarks/audit_cost.py [runs] [check ...]

The module is a pre-norm encoder of 6 layers and width 512 on an input of (4, 64, 512). Each figure
is from a fresh process: a peak never falls again. Seconds of the processor say more on a busy
machine. With names of checks only these are run.
"""

import json
import resource
import statistics
import subprocess
import sys
import time

DEPTH, SHAPE = 6, (4, 64, 512)


def encoder():
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(SHAPE[-1], 8, norm_first=True, batch_first=True)
    final = nn.LayerNorm(SHAPE[-1])
    return nn.TransformerEncoder(layer, DEPTH, norm=final, enable_nested_tensor=False)


def one_pass(module, x, checks):
    module.train()
    x.requires_grad_()
    module(x).square().mean().backward()


def one_audit(module, x, checks):
    from lnres_utils import audit

    audit(module, x, checks=checks or None)


def peak():
    """The most memory this process has had so far, in MB (Linux counts in KB, macOS in bytes)."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measured(what, checks):
    """(seconds, of the processor, MB) of one call in this process; imports come before."""
    import torch

    module, x = encoder(), torch.randn(SHAPE)
    warm = torch.nn.Linear(4, 4)
    what(warm, torch.randn(2, 3, 4), checks)  # imports and buffers of threads are not its cost
    before, busy, start = peak(), time.process_time(), time.perf_counter()
    what(module, x, checks)
    return time.perf_counter() - start, time.process_time() - busy, peak() - before


def fresh(what, checks):
    command = [sys.executable, __file__, "--one", what, *checks]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def main(runs=3, checks=()):
    import torch

    figures = {}
    for what in ("one_pass", "one_audit"):
        each = [fresh(what, checks) for _ in range(runs)]
        figures[what] = [statistics.median(column) for column in zip(*each, strict=True)]
        print("{:10} {:8.2f} s  of the processor {:8.2f} s  peak memory + {:6.0f} MB".format(
            what, *figures[what]))
    ratios = (b / a for a, b in zip(*figures.values(), strict=True))
    print("ratio      {:8.1f}  {:24.1f}  {:23.2f}".format(*ratios))
    print(f"torch {torch.__version__}, medians of {runs} processes")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(globals()[sys.argv[2]], sys.argv[3:])))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 3, sys.argv[2:])
