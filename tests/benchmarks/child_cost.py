"""What a student's process costs: the boot of the zygote, and children with and without protection.

    python tests/benchmarks/child_cost.py [children]

Processor seconds, of the whole life of a child that is forked, runs one empty cell and is killed;
they say more than wall seconds on a busy machine.
"""

import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "grading"))

from zygote_client import Zygote  # noqa: E402

PROTECTIONS = {"all": (), "no Landlock": ("landlock",), "no seccomp": ("seccomp",),
               "none": ("landlock", "seccomp", "limits")}


def cost(zygote, count):
    """Medians over some children: processor seconds of one, and wall seconds."""
    busy, wall = [], []
    for _ in range(count):
        start = time.perf_counter()
        child = zygote.child()
        child.run("")
        busy.append(child.kill()["cpu"])
        wall.append(time.perf_counter() - start)
    return statistics.median(busy), statistics.median(wall)


def main(count=100):
    for label, without in PROTECTIONS.items():
        with tempfile.TemporaryDirectory() as scratch:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            zygote = Zygote(Path(scratch), without)
            boot = zygote.ready["boot"]
            busy, wall = cost(zygote, count)
            zygote.close()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            total = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"protections: {label:12} boot {boot:.2f} s; a child {1e3 * busy:5.1f} ms of the "
              f"processor, {1e3 * wall:5.1f} ms; boot and {count} children {total:.2f} "
              "processor seconds")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
