"""What a run writes: the gradebook, a page for each student, and one on the class."""

import csv
import io
import re
import tracemalloc
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path, PurePath
from urllib.parse import urljoin, urlsplit
from urllib.request import url2pathname

import pytest
from answers.graded_class import CHAPTER, STUDENTS, graded, results
from hypothesis import given
from hypothesis import strategies as st

from lnres_utils import specs
from lnres_utils.grading import class_page as class_module
from lnres_utils.grading.class_page import class_page
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.feedback import feedback
from lnres_utils.grading.gradebook import COLUMNS, NBGRADER, gradebook, nbgrader
from lnres_utils.grading.model import Graded, Result
from lnres_utils.grading.pages import address
from lnres_utils.grading.texts import clean, file_stem, harmless

BOOK = "https://book.example/ln/"
CANARY = "cAnArY"
RIGHT, WRONG = graded("layer_norm", 0), graded("layer_norm", 1)


def one(*exercises, student="ada", **more):
    return Result(student, CHAPTER, "x.ipynb", "", exercises, **more)


def rows(lines):
    return list(csv.reader(io.StringIO("".join(lines), newline="")))


# The gradebook


def test_the_gradebook_has_a_row_a_student_and_exercise_in_course_order():
    header, *body = rows(gradebook(results()))
    assert tuple(header) == COLUMNS
    names = specs.CHAPTERS[CHAPTER]
    assert [row[1] for row in body] == [*names] * (len(STUDENTS) + 1)
    expected = [(each.points, each.outcome) for result in results() for each in result.exercises]
    read = [(int(row[2]), row[4]) for row in body if row[0] != "unreadable"]
    assert read == expected


def test_the_gradebook_names_reason_and_mistakes():
    told = replace(WRONG, reason="Two\nlines, with a comma",
                   public={"mistakes": [{"id": "a"}, {"id": "b + c"}]})
    assert rows(gradebook([one(told)]))[1] == [
        "ada", "layer_norm", "0", "10", "wrong", "Two lines, with a comma", "a; b + c"]


def test_the_chapters_of_a_student_follow_the_course_too():
    hunt = replace(one(Graded("TinyTransformer", "right", 20, 20, "")), chapter="bug-hunt")
    assert [row[1] for row in rows(gradebook([hunt, one(RIGHT)]))[1:]] == [
        "layer_norm", "TinyTransformer"]


def test_the_same_results_give_the_same_bytes_in_whatever_order_the_exercises_come():
    turned = [replace(each, exercises=each.exercises[::-1]) for each in results()]
    text = "".join(gradebook(results()))
    assert "".join(gradebook(turned)) == text
    assert text.isascii() is False and not text.startswith("\ufeff") and "\r" not in text


def test_a_submission_that_could_not_be_read_has_rows_without_points():
    result = one(problem="This is no notebook.")
    body = rows(gradebook([result]))[1:]
    assert [row[1] for row in body] == [*specs.CHAPTERS[CHAPTER]]
    assert {(row[2], row[4], row[5]) for row in body} == {
        ("0", "not attempted", "This is no notebook.")}
    assert sum(int(row[3]) for row in body) == 56
    no_chapter = replace(result, chapter="")
    assert rows(gradebook([no_chapter]))[1:] == [
        ["ada", "", "0", "0", "not attempted", "This is no notebook.", ""]]


@pytest.mark.parametrize("text", [
    '=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", ' "=1', "  =1", "'=1", "＝1",
    "a;=1", 'a"=1', "\u200e=1", "\u200d=1", "\u202e=1", "\x00=1", "a\n=1"])
def test_no_text_is_a_formula_of_a_spreadsheet(text):
    row = rows(gradebook([one(replace(RIGHT, reason=text), student=text)]))[1]
    for field in (row[0], row[5]):
        assert not any(re.match(r'[\s\u200d"]*[=+\-@＝]', part) for part in re.split('[;"]', field))


@given(st.text())
def test_harmless_text_has_no_control_characters_and_starts_no_formula(text):
    made = harmless(text)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", made)
    assert not any(re.match(r'[\s"]*[=+\-@＝＋－＠]', part) for part in re.split('[;"]', made))
    made.encode()


def test_names_are_kept_as_they_are_written():
    for name in ("Siobhán O'Neill", "李小龙", "नीलम शर्मा", "محمد علي", "Doe, Jane"):
        assert rows(gradebook([one(RIGHT, student=name)]))[1][0] == name
    assert clean("a\ud800b") == "a�b"
    assert clean("\u202ea\u200e\u2066b\u00ad") == "ab"  # what turns text around is taken out


def test_nbgraders_columns_have_a_row_a_submission():
    header, first, *_ = rows(nbgrader([one(WRONG, RIGHT, student="=a")]))
    assert tuple(header) == NBGRADER
    assert first == [CHAPTER, "", "", "'=a", "", "", "", "10.0", "0.0", "10.0", "20.0"]


def test_the_gradebook_is_written_while_results_are_read():
    read = []

    def reading():
        for number in range(50):
            read.append(number)
            yield one(RIGHT, student=f"{number:02}")

    lines = gradebook(reading())
    for _ in range(3):
        next(lines)
    assert len(read) < 5


# Names of files


def test_no_two_students_share_a_file_even_where_case_and_accents_do_not_count():
    names = [*STUDENTS, "ADA", "a/da", "a\\da", "ada.", " ada", "ada ", "CON", "nul.x", "..", "/",
             "", "e\u0301", "é", "straße", "strasse", "ﬁ", "fi", "x" * 300, "x" * 301,
             file_stem("Ada"), "ada-0123abcd", "a\x00b", "a:b", "~root", "-rf"]
    stems = [file_stem(name) for name in names]
    assert len({stem.casefold() for stem in stems}) == len(set(names))
    for stem in stems:
        assert PurePath(stem).name == stem and not set(stem) & set('<>:"/\\|?*\0')
        assert not stem.startswith((".", "-")) and not stem.endswith((".", " "))
        assert 0 < len(stem.encode()) < 100
        assert stem.partition(".")[0].upper() not in ("CON", "NUL", "AUX", "PRN")


def test_plain_names_are_kept():
    assert [file_stem(name) for name in ("ada", "jane.doe", "s1234_x", "李小龙")] == [
        "ada", "jane.doe", "s1234_x", "李小龙"]
    assert file_stem("Zoë Müller").startswith("zoë-müller-")


# Feedback


class Reader(HTMLParser):
    """Tags, attributes, the text that is seen, and the levels of headings."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.levels, self.seen = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))

    def handle_data(self, data):
        self.seen.append(data)

    @property
    def text(self):
        return " ".join("".join(self.seen).split())


def with_canaries():
    """A result whose private fields all hold a canary, fields of later versions included."""
    secret = {name: (CANARY,) if name == "notes" else {"printed": CANARY, "evidence": {
        "given": CANARY, "error": CANARY}} if name == "report" else CANARY
        for name in ("reason", "report", "notes")}
    exercises = tuple(replace(graded(name, place), **secret)
                      for name in specs.CHAPTERS[CHAPTER] for place in (1, -2))
    private = {field.name: CANARY for field in fields(Result)
               if field.type is str and field.name not in ("student", "chapter", "problem", "told")}
    return Result(**private | {"student": "ada", "chapter": CHAPTER, "exercises": exercises,
                               "notes": (CANARY,)})


def test_the_private_fields_are_those_that_hold_canaries():
    known = {"exercise", "outcome", "points", "max_points", "public"}
    assert {field.name for field in fields(Graded)} - known == {"reason", "report", "notes"}


@pytest.mark.parametrize("problem", ["", CANARY])
def test_feedback_shows_what_is_public_and_nothing_else(problem):
    (_, page), = feedback([replace(with_canaries(), problem=problem)], BOOK)
    assert CANARY not in page
    assert CANARY not in class_page([replace(with_canaries(), problem=problem)], BOOK)
    if not problem:
        assert "It raised an exception." in page and "invented error" not in page


def test_feedback_names_the_mistake_the_lesson_a_hint_and_the_points_of_each_part():
    (name, page), = feedback([one(RIGHT, WRONG)], BOOK)
    assert name == "ada.html"
    read = Reader(page)
    spec, mistake = specs.get("layer_norm"), WRONG.public["mistakes"][0]
    assert "The variance is divided by N − 1" in read.text and spec.hints[0] in read.text
    assert ("href", f"{BOOK}chapters/{mistake['lesson']}.html") in read.attributes
    assert all(f"{group} 0 of {most}" in read.text for group, most in spec.groups.items())
    assert "10 of 20 points" in read.text and "✓ right" in read.text and "✗ wrong" in read.text


def test_without_a_book_the_lesson_is_named_and_not_linked():
    (_, page), = feedback([one(WRONG)])
    read = Reader(page)
    assert "“One vector”" in read.text
    assert [value for key, value in read.attributes if key == "href"] == ["#exercise-1-1"]


@pytest.mark.parametrize(("certainty", "sentence"), [
    ("both", "Two mistakes at once explain this exactly:"), ("one of", "it is one of them:")])
def test_feedback_says_how_sure_a_name_is(certainty, sentence):
    several = WRONG.public | {"certainty": certainty, "mistakes": WRONG.public["mistakes"] * 2}
    (_, page), = feedback([one(replace(WRONG, public=several))])
    assert sentence in page
    for single in (WRONG.public, several | {"mistakes": []}):
        (_, page), = feedback([one(replace(WRONG, public=single))])
        assert sentence not in page


def test_feedback_of_a_notebook_that_could_not_be_graded_says_so():
    (_, page), = feedback([one(problem="secret.json: line 1")])
    assert "Nothing in this notebook could be graded" in page and "0</strong> of 56" in page
    assert "secret" not in page


def test_feedback_says_why_a_notebook_could_not_be_read():
    told = "truncated: its JSON ends too early (line 3, column 7)"
    (_, page), = feedback([one(problem=told, told=told)])
    assert f"The reason: {told}. See that it is the notebook" in Reader(page).text
    (_, page), = feedback([one(problem="x", told="a file named '<b x>.txt', not a notebook")])
    assert "<b x>" not in page and "'<b x>.txt'" in Reader(page).text
    (_, page), = feedback([one(told=told)])
    assert "truncated" not in page


def test_a_student_with_two_chapters_has_one_page():
    second = replace(one(Graded("rms_norm", "right", 8, 8, "")), chapter="rmsnorm")
    pages = dict(feedback([one(RIGHT), second, one(RIGHT, student="bob")]))
    assert sorted(pages) == ["ada.html", "bob.html"]
    assert "Feature axis" in pages["ada.html"] and "RMSNorm" in pages["ada.html"]


def test_pages_are_complete_in_themselves():
    for page in [*dict(feedback(results(), BOOK)).values(), class_page(results(), BOOK)]:
        read = Reader(page)
        assert not set(read.tags) & {"script", "link", "img", "iframe", "object", "form", "base"}
        addresses = [value for key, value in read.attributes if key in ("href", "src")]
        assert all(value.startswith(("#", BOOK)) for value in addresses)
        assert "url(" not in page and "@import" not in page and 'lang="en"' in page
        assert not any(key.startswith("on") for key, _ in read.attributes)
        assert read.levels[0] == 1 and read.levels.count(1) == 1
        steps = zip(read.levels, read.levels[1:], strict=False)
        assert all(after <= before + 1 for before, after in steps)


def test_students_cannot_write_html():
    nasty = '"><script>alert(1)</script><b x="'
    public = WRONG.public | {"reason": nasty}
    (_, page), = feedback([one(replace(WRONG, public=public), student=nasty)], BOOK)
    assert "<script" not in page and "<b x" not in page and "&lt;script&gt;" in page


@pytest.mark.parametrize("book", ["javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,x",
                                  "java\tscript:alert(1)", "ftp://book", "C:\\book", "foo", ".",
                                  "https:book", "file:///book", "//book", "http://[", "a\0b",
                                  "x" * 5000])
def test_the_book_is_an_address_that_a_page_may_link_to(book):
    with pytest.raises(GradingError, match="https://.* folder") as raised:
        address(book, Path("feedback"))
    assert "\n" not in str(raised.value)


def test_the_folder_of_a_built_book_is_linked_to_from_where_the_pages_lie(tmp_path, monkeypatch):
    lesson = tmp_path / "my book #1: 100%" / "chapters" / "feature-axis" / "one-vector.html"
    lesson.parent.mkdir(parents=True)
    lesson.touch()
    monkeypatch.chdir(tmp_path)
    pages = Path("grades", "feedback")
    (_, page), = feedback([one(WRONG)], address("my book #1: 100%", pages))
    link = next(value for key, value in Reader(page).attributes if "one-vector" in (value or ""))
    to = urljoin((tmp_path / pages / "ada.html").as_uri(), link)
    assert Path(url2pathname(urlsplit(to).path)) == lesson and str(tmp_path) not in page
    assert address(str(lesson.parents[2]), Path("grades")) == "../my%20book%20%231%3A%20100%25/"
    assert address("", pages) == "" and address("HTTPS://a.b//", pages) == "HTTPS://a.b/"


# The class


def test_the_class_page_has_no_name():
    page = class_page(results(), BOOK)
    seen = Reader(page).text
    assert not [name for name in STUDENTS if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", seen)]


def counted(*graded_exercises):
    chapter = class_module.Chapter()
    for each in graded_exercises:
        class_module._count(chapter, one(each))
    return class_module._shown(CHAPTER, chapter)


def test_the_class_page_counts_mistakes_the_most_frequent_first():
    other = graded("layer_norm", 2)
    shown = counted(WRONG, other, other, RIGHT, Graded("layer_norm", "not attempted", 0, 10, ""))
    assert [(row["mistakes"][0]["id"], row["count"], row["answers"], row["share"])
            for row in shown["mistakes"]] == [
        ("eps-outside-root", 2, 4, 50), ("unbiased-variance", 1, 4, 25)]
    assert shown["exercises"][0]["counts"] == {
        "right": 1, "wrong": 3, "raised": 0, "not attempted": 1}


def test_the_class_page_keeps_one_of_several_apart_and_counts_both_of_two():
    pair = [{"id": id_, "sentence": id_, "lesson": "x", "title": "X"} for id_ in ("b", "a")]
    public = {"mistakes": pair, "certainty": "one of"}
    shown = counted(replace(WRONG, public=public), replace(WRONG, public=public | {
        "mistakes": pair[::-1]}))
    assert shown["mistakes"] == [] and [row["count"] for row in shown["one_of"]] == [2]
    shown = counted(replace(WRONG, public=public | {"certainty": "both"}))
    assert shown["one_of"] == [] and len(shown["mistakes"]) == 2


def test_the_class_page_counts_what_no_name_fits():
    unknown, of_a_kind = graded("layer_norm", -3), graded("LayerNorm", -1)
    assert unknown.outcome == "wrong" and of_a_kind.outcome == "wrong"
    shown = counted(unknown, of_a_kind, WRONG)
    assert shown["unnamed"] == [{"exercise": "layer_norm", "unknown": 1, "untold": 0},
                                {"exercise": "LayerNorm", "unknown": 0, "untold": 1}]
    changes_input = {"id": "changes-its-input", "sentence": "It does.", "lesson": "", "title": ""}
    shown = counted(replace(of_a_kind, public={"mistakes": [changes_input]}))
    assert shown["unnamed"] == [] and shown["mistakes"][0]["mistakes"] == [changes_input]


@pytest.mark.parametrize(("scores", "median", "mean"), [
    ([10], "10", "10"), ([0, 10], "5", "5"), ([0, 0, 10], "0", "3.3"), ([1, 2, 4, 10], "3", "4.2")])
def test_median_mean_and_histogram(scores, median, mean):
    shown = counted(*(replace(RIGHT, points=score) for score in scores))
    facts = {label: value for label, value, _ in shown["facts"]}
    assert (facts["Median"], facts["Mean"]) == (median, mean)
    assert [bin_["count"] for bin_ in shown["bins"]] == [
        scores.count(low) + (scores.count(10) if low == 9 else 0) for low in range(10)]


@pytest.mark.parametrize(("count", "warned"), [(4, True), (5, False)])
def test_a_small_class_is_warned_about(count, warned):
    class_ = [one(RIGHT, student=f"s{number}") for number in range(count)]
    assert ("can guess whose" in class_page(class_)) is warned


def test_an_empty_class_has_a_page():
    assert "There are no submissions." in class_page([])


def test_every_plot_of_the_class_page_is_a_table_too():
    page = class_page(results())
    for kind, plot in (("Scores", "histogram"), ("Exercises", "stacks"), ("Mistakes", "bars")):
        assert f'class="{plot}"' in page and f"{kind} as a table</summary>" in page


def test_the_class_page_needs_no_more_memory_for_more_students():
    def peak(count):
        tracemalloc.start()
        class_page(one(RIGHT, WRONG, student=f"{number:05}", seconds=0.1)
                   for number in range(count))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(50)  # what is made once
    assert peak(3000) < 1.1 * peak(300) + 20_000
