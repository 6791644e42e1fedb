"""What `lnres grade` costs as a class grows, and what a second worker brings.

    python tests/benchmarks/grading_scale.py
    python tests/benchmarks/grading_scale.py --students 10 20

Classes of mixed quality on chapter 1, which has seven exercises; a submission of five is 5/7 of
one. Boot is what one untouched notebook takes. All figures hold the pages that are written, too.
"""

import argparse
import itertools
import sys

from measuring import CHAPTER, WORK, Problem, lnres_grade, load, measure, write_class
from tabulate import tabulate
from tqdm import tqdm

from lnres_utils import specs

FIVE = 5 / len(specs.CHAPTERS[CHAPTER])


def one_untouched(folder):
    """A class of one, who has answered nothing."""
    from grading import classroom

    write_class(folder, 0)
    (folder / "nobody.ipynb").write_bytes(classroom.unsolved(CHAPTER))


def costs(counts, worker_counts):
    """{(students, workers): Cost}; 1 student is the untouched notebook."""
    found, base = {}, WORK / "scale"
    one_untouched(base / "class-1")
    for count in counts:
        write_class(base / f"class-{count}", count)
    runs = list(itertools.product([1, *counts], worker_counts))
    for count, workers in tqdm(runs, desc="grading", unit="run", disable=None):
        command = lnres_grade(base / f"class-{count}", base / "grades", workers)
        found[count, workers] = measure([command])
    return found


def report(found, counts, worker_counts):
    """Print the figures, and beside them what is wanted."""
    rows = [[count, workers, cost.wall, cost.cpu, cost.peak]
            for (count, workers), cost in found.items()]
    print(tabulate(rows, ["students", "workers", "wall s", "CPU s", "peak MiB"], floatfmt=".1f"))
    first, last = min(counts), max(counts)
    facts = [["boot, CPU s (one untouched notebook)", found[1, worker_counts[0]].cpu, "<= 2.5"]]
    for workers in worker_counts:
        low, high = found[1, workers], found[last, workers]
        slope = FIVE * (high.cpu - low.cpu) / (last - 1)
        facts.append([f"CPU s a submission of five exercises, {workers} workers", slope, "<= 0.08"])
        growth = found[last, workers].peak / found[first, workers].peak
        facts.append([f"peak memory at {last} to that at {first}, {workers} workers", growth,
                      "<= 1.10"])
        wanted = "<= 500" if workers == 2 else ""
        facts.append([f"peak MiB, {workers} workers",
                      max(found[count, workers].peak for count in counts), wanted])
    if {1, 2} <= set(worker_counts):
        facts += [[f"two workers against one, wall, {count} students",
                   found[count, 1].wall / found[count, 2].wall, ">= 1.7 at 200"]
                  for count in counts]
    print()
    print(tabulate(facts, ["figure", "measured", "wanted"], floatfmt=".3f"))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, nargs="+", default=[100, 200, 1000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args(argv)
    WORK.mkdir(parents=True, exist_ok=True)
    print(load())
    try:
        report(costs(args.students, args.workers), args.students, args.workers)
    except Problem as problem:
        sys.exit(f"error: {problem}")
    print(load())


if __name__ == "__main__":
    main()
