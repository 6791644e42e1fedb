"""The command ``lnres grade``."""

import sys
from pathlib import Path

import click

from lnres_utils.markup import flat

BAD_USE, INTERRUPTED = 2, 130
SHOWN = 20  # lines of one kind that the terminal gets; all of them are in results.jsonl
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("submissions", type=click.Path(path_type=Path, exists=True))
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False),
              help="Folder for results and pages. The same folder again: only what is new or "
              "changed is graded.")
@click.option("--chapter", metavar="SLUG",
              help="Whose exercises count, such as feature-axis. Default: told by each notebook.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1),
              help="Of the inputs. Default: a new one, kept in run.json.")
@click.option("--workers", type=click.IntRange(min=1), help="Default: one a processor.")
@click.option("--strict", is_flag=True,
              help="Refuse if something cannot be closed to the code of students here.")
@click.option("--pattern", metavar="REGEX",
              help="What file names say, as groups: student, and if wanted id, late, assignment.")
@click.option("--seconds", type=click.FloatRange(0.1), default=10.0, show_default=True,
              help="Of the processor, for one cell and for one exercise.")
@click.option("--memory", type=click.IntRange(64), default=1024, show_default=True, metavar="MIB",
              help="For each submission.")
@click.option("--book", metavar="URL|FOLDER", default="",
              help="Where students find the book: the pages link to its lessons. For a folder the "
              "links are relative.")
@click.option("--nbgrader", is_flag=True, help="Also write nbgrader.csv, with nbgrader's columns.")
@click.option("--canvas", type=FILE, metavar="CSV",
              help="A gradebook exported from Canvas: a copy gets one column filled.")
@click.option("--moodle", type=FILE, metavar="CSV",
              help="A grading worksheet or gradebook exported from Moodle: likewise.")
@click.option("--moodle-columns", metavar="ENGLISH=YOURS", multiple=True,
              help="What a column is called where Moodle speaks another language, such as "
              "'Grade=Bewertung'; once for each.")
@click.option("--column", metavar="NAME", help="Which column of that table.")
@click.option("--scale", is_flag=True, help="Stretch points to what that column allows.")
@click.option("--overwrite", is_flag=True, help="Replace grades that the table has already.")
@click.pass_context
def grade(context, submissions, out, chapter, seed, workers, strict, pattern, seconds, memory,
          book, nbgrader, canvas, moodle, moodle_columns, column, scale, overwrite):
    """Grade the notebooks of a class.

    SUBMISSIONS is a folder of notebooks or of a folder for each student, a zip file from Canvas or
    Moodle, nbgrader's folder `submitted`, or one notebook.

    \b
    In the folder --out:
      gradebook.csv           a row for each student and exercise
      totals.csv              a row for each submission
      class.html              scores, and which mistakes the class made; no names
      feedback/STUDENT.html   a page for each student
      results.jsonl           everything, a line for each submission

    \b
    Example:
      lnres grade submitted.zip --out grades --chapter feature-axis

    Exit code: 0 each submission has a score or a reason why not, 1 the grader failed at one, 2 bad
    use, 130 interrupted. The same command goes on where it stopped.
    """
    from lnres_utils.grading import publishing
    from lnres_utils.grading.collecting import collect
    from lnres_utils.grading.errors import GradingError, Interrupted
    from lnres_utils.grading.grading import grade as run
    from lnres_utils.grading.model import Limits
    from lnres_utils.grading.pages import address
    from lnres_utils.grading.platforms import moodle_names

    table = {"column": column, "scale": scale, "overwrite": overwrite}
    if not (canvas or moodle) and any(table.values()):
        raise click.UsageError("--column, --scale and --overwrite are about the table that "
                               "--canvas or --moodle names; name one")
    if moodle_columns and not moodle:
        raise click.UsageError("--moodle-columns are those of the table that --moodle names; "
                               "name one")
    try:
        table["names"] = moodle_names(moodle_columns)
        address(book, out)  # before the work, not after it
        publishing.examine(canvas, moodle, **table)
        if out.resolve() == submissions.resolve():
            raise GradingError(f"--out is {str(out)!r}, where the submissions lie; name another "
                               "folder")
        summary = run(collect(submissions, pattern), out, chapter=chapter, seed=seed,
                      workers=workers, strict=strict, watch=_bar("grading"),
                      limits=Limits(seconds=seconds, memory=memory << 20))
        publishing.publish(out, book=book, for_nbgrader=nbgrader, watch=_bar("writing pages"))
        filled = publishing.fill(out, canvas, moodle, chapter, **table)
    except Interrupted as error:
        click.echo(f"lnres: {flat(error)}", err=True)
        context.exit(INTERRUPTED)
    except GradingError as error:
        raise click.UsageError(flat(error)) from None
    _tell(out, summary, filled)
    context.exit(1 if summary.failed else 0)


def _bar(what):
    """A bar for somebody who waits at a terminal."""
    from tqdm import tqdm

    def watch(steps, total=None):
        return tqdm(steps, desc=what, total=total, delay=1, leave=False, unit="",
                    disable=not sys.stderr.isatty())

    return watch


def _tell(out, summary, filled):
    """Print what the run did, and where it lies."""
    from lnres_utils.grading import storing
    from lnres_utils.grading.class_page import counted

    students, chapters = counted(storing.results(out))
    for name, chapter in chapters.items():
        _tell_chapter(name or "no chapter", chapter)
    _tell_lines("Without a score", [f"{who}: {why}" for who, why in summary.unscored])
    _tell_lines("In an earlier run, but not among these submissions; their results are kept, and "
                "the tables are without them", summary.gone)
    for path, notes in filled:
        _tell_lines(f"{path}", notes)
    closed = "; ".join(f"{what}: {how}" for what, how in summary.sandbox.items()
                       if isinstance(how, str) and how)
    kept = f", {summary.kept} unchanged since an earlier run" if summary.kept else ""
    stopped = f", {summary.stopped} cells or calls stopped" if summary.stopped else ""
    _tell_lines("Closed to students' code", [closed or "nothing", *summary.notes])
    click.echo(f"{summary.graded} graded{kept}{stopped}; {summary.seconds:.1f} s, seed "
               f"{summary.seed}. Open {out / 'class.html'}; grades are in "
               f"{out / 'gradebook.csv'}, {_counted(students, 'page')} in "
               f"{out / 'feedback'}")


def _tell_chapter(name, chapter):
    from tabulate import tabulate

    from lnres_utils.grading.pages import OUTCOMES

    rows = [[exercise, *(counts[outcome] for outcome in OUTCOMES)]
            for exercise, counts in chapter.outcomes.items()]
    mean = sum(points * many for points, many in chapter.points.items()) / chapter.submissions
    click.echo(f"{name}: {_counted(chapter.submissions, 'submission')}, on average {mean:.1f} of "
               f"{chapter.max_points} points")
    if rows:
        click.echo(tabulate(rows, headers=["exercise", *OUTCOMES], tablefmt="simple") + "\n")


def _counted(count, what):
    return f"{count} {what}{'' if count == 1 else 's'}"


def _tell_lines(title, lines):
    if not lines:
        return
    click.echo(f"{title}:")
    for line in lines[:SHOWN]:
        click.echo(f"  {line}")
    if len(lines) > SHOWN:
        click.echo(f"  and {len(lines) - SHOWN} more")
    click.echo()
