"""`lnres grade` beside nbgrader and otter-grader: the same class, one run, side by side.

    python tests/benchmarks/grading_peers.py
    python tests/benchmarks/grading_peers.py --students 5 --tools lnres nbgrader

Each tool grades the same class of mixed quality on chapter 1, with the same checks: those of
lnres_utils, called by nbgrader's check cells, by otter's test files, and by `lnres grade` outside
the student's process. nbgrader writes its feedback, too; `lnres grade` writes a page a student and
one on the class; otter has results only. nbgrader and otter know right and not right of a check:
that the tools agree is therefore tested on the exercises that are right.

nbgrader and otter get environments of their own in _build/benchmarks/, made when first asked for.
"""

import argparse
import csv
import json
import shutil
import subprocess
import sys

import nbformat
from measuring import CHAPTER, ROOT, WORK, Cost, Problem, lnres_grade, load, measure, write_class
from tabulate import tabulate

from lnres_utils import specs

TOOLS = ("lnres", "nbgrader", "otter")
PINS = {"nbgrader": ["nbgrader==0.9.6"], "otter": ["otter-grader==7.0.0", "ipykernel"]}
ASSIGNMENT = "chapter1"
TEST_FILE = '''from otter.test_files import test_case

OK_FORMAT = False
name = "{name}"
points = {points}


@test_case()
def test_check(env):
    from lnres_utils import check

    check(env["{name}"])
'''


# Environments.


def environment(tool, torch_index):
    """The folder with the programs of ``tool``, installed with the course's pins if it is new."""
    folder = WORK / tool
    stamp, programs = folder / ".installed", folder / "bin"
    wanted = " ".join(PINS[tool])
    if stamp.exists() and stamp.read_text() == wanted:
        return programs
    print(f"making an environment for {tool}: a minute or two ...", flush=True)
    _install([sys.executable, "-m", "venv", "--clear", folder], tool)
    pip = [programs / "pip", "install", "--quiet", "-c", ROOT / "requirements.txt"]
    if torch_index:
        _install([*pip, "--index-url", torch_index, "torch"], tool)
    _install([*pip, *PINS[tool], "-e", f"{ROOT}[lessons]"], tool)
    stamp.write_text(wanted)
    return programs


def _install(command, tool):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        said = (errors or done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise Problem(f"no environment for {tool}: {said[:300]}; look at the package index of pip, "
                      f"or leave it out with --tools")


# The tools: each grades the class in ``folder`` and tells the points of right exercises.


def run_lnres(folder, members, programs, workers):
    out = folder / f"lnres-{workers}"
    cost = measure([lnres_grade(folder / "class", out, workers)])
    scores = {}
    with open(out / "gradebook.csv", encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            points = int(row["points"]) if row["outcome"] == "right" else 0
            scores[row["student"]] = scores.get(row["student"], 0) + points
    return {"grade": cost}, scores


def run_nbgrader(folder, members, programs, workers):
    course = folder / "nbgrader"
    shutil.rmtree(course, ignore_errors=True)
    source = course / "source" / ASSIGNMENT
    source.mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / f"{CHAPTER}.ipynb", source)
    (course / "nbgrader_config.py").write_text(
        'c = get_config()\nc.CourseDirectory.course_id = "course"\n')
    env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(course)}  # it calls alembic by name
    nbgrader = programs / "nbgrader"
    measure([[nbgrader, "generate_assignment", ASSIGNMENT]], env, course)
    for member in members:
        submitted = course / "submitted" / member.student / ASSIGNMENT
        submitted.mkdir(parents=True)
        (submitted / f"{CHAPTER}.ipynb").write_bytes(member.notebook)
    costs = {step: measure([[nbgrader, step, ASSIGNMENT]], env, course)
             for step in ("autograde", "generate_feedback")}
    measure([[nbgrader, "export"]], env, course)
    with open(course / "grades.csv", encoding="utf-8", newline="") as file:
        scores = {row["student_id"]: float(row["raw_score"]) for row in csv.DictReader(file)}
    return costs, scores


def run_otter(folder, members, programs, workers):
    course = folder / "otter"
    shutil.rmtree(course, ignore_errors=True)
    (course / "tests").mkdir(parents=True)
    for name in specs.CHAPTERS[CHAPTER]:
        test = TEST_FILE.format(name=name, points=specs.get(name).max_points)
        (course / "tests" / f"{name}.py").write_text(test)
    env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(course)}
    otter = programs / "otter"
    measure([[otter, "generate", "-t", "tests", "-o", "autograder.zip", "--no-config",
              "--no-requirements", "--no-environment"]], env, course)
    commands = []
    for member in members:
        (course / member.student).mkdir()
        submitted = course / f"{member.student}.ipynb"
        submitted.write_text(_without_checks(member.notebook), encoding="utf-8")
        commands.append([otter, "run", "-a", "autograder.zip", "-o", member.student, "--no-logo",
                         submitted])
    costs = {"run": measure(commands, env, course, "otter run")}
    return costs, {member.student: _otter_score(course / member.student) for member in members}


def _without_checks(data):
    """Its test files are its checks; a notebook made for otter has no others."""
    nb = nbformat.reads(data.decode(), as_version=4)
    nb.cells = [cell for cell in nb.cells if "role" not in cell.metadata.get("lnres", {})]
    return nbformat.writes(nb)


def _otter_score(folder):
    results = folder / "results.json"
    tests = json.loads(results.read_text())["tests"] if results.exists() else []
    return sum(test.get("score") or 0 for test in tests)


RUN = {"lnres": run_lnres, "nbgrader": run_nbgrader, "otter": run_otter}


# The comparison.


def compare(count, tools, worker_counts, programs, seed):
    """Print the table for a class of ``count``."""
    folder = WORK / f"peers-{count}"
    members = write_class(folder / "class", count, seed)
    deserved = {member.student: _right_points(member) for member in members}
    rows, totals = [], {}
    for tool in tools:
        for workers in worker_counts if tool == "lnres" else [1]:
            name = f"lnres grade, workers: {workers}" if tool == "lnres" else tool
            print(f"{count} students, {name}: {load()}", flush=True)
            costs, scores = RUN[tool](folder, members, programs.get(tool), workers)
            agreed = sum(scores.get(student) == points for student, points in deserved.items())
            for step, cost in costs.items():
                rows.append([name, step, *_numbers(cost, count), f"{agreed} of {count}"])
            totals[name] = _sum(costs.values())
            if len(costs) > 1:
                rows.append([name, "both", *_numbers(totals[name], count), f"{agreed} of {count}"])
    print(tabulate(rows, ["tool", "step", "wall s", "CPU s", "CPU s a submission", "peak MiB",
                          "scores as deserved"], floatfmt=(None, None, ".1f", ".1f", ".3f", ".0f")))
    ours = [name for name in totals if name.startswith("lnres")]
    ratios = [[f"{its} against {mine}", totals[its].wall / totals[mine].wall,
               totals[its].cpu / totals[mine].cpu]
              for its in totals if its not in ours for mine in ours]
    if ratios:
        print()
        print(tabulate(ratios, [f"{count} students", "wall, times", "CPU, times"], floatfmt=".1f"))
        print("wanted at 30 students: nbgrader at least 20 times, otter at least 30 times")
    print()


def _right_points(member):
    return sum(points for outcome, points in member.expected.values() if outcome == "right")


def _numbers(cost, count):
    return cost.wall, cost.cpu, cost.cpu / count, cost.peak


def _sum(costs):
    costs = list(costs)
    return Cost(sum(cost.wall for cost in costs), sum(cost.cpu for cost in costs),
                max(cost.peak for cost in costs))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="of lnres grade")
    parser.add_argument("--seed", type=int, default=0, help="of the class")
    parser.add_argument("--torch-index", metavar="URL", help="take torch from that package index")
    args = parser.parse_args(argv)
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        programs = {tool: environment(tool, args.torch_index) for tool in args.tools
                    if tool in PINS}
        for count in args.students:
            compare(count, args.tools, args.workers, programs, args.seed)
    except Problem as problem:
        sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()
