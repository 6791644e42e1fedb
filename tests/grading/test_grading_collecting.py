"""What platforms and people hand to a teacher is collected: whose it is, and which is newest."""

import io
import os
import struct
import unicodedata
import zipfile
from pathlib import Path

import pytest

from lnres_utils.grading import files
from lnres_utils.grading.collecting import collect, opened
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.files import open_source
from lnres_utils.grading.model import Source
from lnres_utils.specs import CHAPTERS

ROOT = Path(__file__).parents[2]
FIRST = (ROOT / "solutions/feature-axis.ipynb").read_bytes()
SECOND = (ROOT / "solutions/rmsnorm.ipynb").read_bytes()


def read_submission(submission, chapter=None):
    return opened(submission.source, chapter)[1]


def in_folder(root, names, contents=b"{}"):
    """Write files below ``root``, later ones newer; a name with / at its end is a folder."""
    for number, name in enumerate(names):
        path = root / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(names[name] if isinstance(names, dict) else contents)
            os.utime(path, (1e9 + 60 * number,) * 2)
    return root


def zipped(names, contents=b"{}"):
    """The bytes of a zip file; later members are newer."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number, name in enumerate(names):
            info = zipfile.ZipInfo(name, (2026, 11, 1, number // 60 % 24, number % 60, 0))
            archive.writestr(info, names[name] if isinstance(names, dict) else contents)
    return buffer.getvalue()


def in_zip(root, names, contents=b"{}", name="download.zip"):
    (root / name).write_bytes(zipped(names, contents))
    return root / name


def students(path, pattern=None):
    return [s.student for s in collect(path, pattern)]


def taken(path, pattern=None):
    """The last name of each student's file, by student."""
    return {s.student: s.source.shown.split(": ")[-1].split("/")[-1]
            for s in collect(path, pattern)}  # fmt: skip


def only(path, pattern=None):
    (submission,) = collect(path, pattern)
    return submission


# Layouts


def test_one_notebook(tmp_path):
    found = only(in_folder(tmp_path, ["ana_feature-axis.ipynb"]) / "ana_feature-axis.ipynb")
    assert (found.student, found.assignment, found.notes) == ("ana", "", ())


@pytest.mark.parametrize("put", [in_folder, in_zip])
def test_files_side_by_side_are_called_as_their_students(put, tmp_path):
    names = ["ana_feature-axis.ipynb", "Ben Ölmez-Feature_Axis (1).ipynb", "cy.d.IPYNB",
             "feature-axis.ipynb", "student-1.ipynb", "student-2.ipynb", "roster.csv",
             "dee.ipynb.json", "data/numbers.csv", "notfeature-axis.ipynb"]  # fmt: skip
    assert students(put(tmp_path, names)) == [
        "Ben Ölmez", "ana", "cy.d", "dee", "feature-axis", "notfeature-axis",
        "student-1", "student-2"]  # fmt: skip


@pytest.mark.parametrize("base", ["submitted", ".", "hand-ins"])
def test_folders_of_nbgrader(base, tmp_path):
    names = [f"{who}/{what}/x.ipynb" for who in ("ana", "ben", "cy", "dee")
             for what in ("ps1", "ps2")]  # fmt: skip
    root = tmp_path / "course" / ("submitted" if base == "." else base)
    in_folder(root, [*names, "ana/ps1/timestamp.txt", "eve/ps1/"])
    in_folder(tmp_path / "course", ["source/ps1/x.ipynb"])
    found = collect(tmp_path / "course" if base == "." else root)
    who = [(s.student, s.assignment) for s in found]
    assert who == [(each, ps) for each in ("ana", "ben", "cy", "dee") for ps in ("ps1", "ps2")] + [
        ("eve", "ps1")
    ]
    assert all(s.notes == () for s in found)


def test_names_like_those_of_canvas_in_folders_of_nbgrader_are_files(tmp_path):
    names = ["submitted/ana/ps1/hw_1_2_x.ipynb", "submitted/ben/ps1/hw_1_2_x.ipynb"]
    assert students(in_folder(tmp_path, names)) == ["ana", "ben"]


@pytest.mark.parametrize("above", ["", "course/"])
def test_a_zip_of_the_folders_of_nbgrader(above, tmp_path):
    names = [f"{above}submitted/ana/ps1/x.ipynb", f"{above}submitted/ben/ps1/x.ipynb",
             f"{above}source/ps1/x.ipynb"]  # fmt: skip
    found = collect(in_zip(tmp_path, names))
    assert [(s.student, s.assignment) for s in found] == [("ana", "ps1"), ("ben", "ps1")]


@pytest.mark.parametrize("put", [in_folder, in_zip])
def test_a_folder_for_each_student(put, tmp_path):
    names = ["ana/x.ipynb", "b.en/deep/inside/x.ipynb", "cy/", "dee/hw.py", "notes.txt"]
    found = {s.student: s for s in collect(put(tmp_path, names, b"import numpy"))}
    assert list(found) == ["ana", "b.en", "cy", "dee"]
    assert read_submission(found["cy"]).problem == "a folder without a notebook"
    assert read_submission(found["cy"]).told == "a folder without a notebook"
    assert read_submission(found["dee"]).problem == "a file named 'hw.py', not a notebook"
    assert found["dee"].notes == ("no notebooks, and passed over: hw.py",)


def test_a_notebook_beside_the_folders_of_students_does_not_hide_the_empty_ones(tmp_path):
    names = ["template.ipynb", "ana/x.ipynb", "ben/x.ipynb", "cy/"]
    assert students(in_folder(tmp_path, names)) == ["ana", "ben", "cy", "template"]


def test_folders_that_students_made_are_no_assignments(tmp_path):
    names = ["ana/answers/x.ipynb", "ben/hw/x.ipynb", "cy/new/x.ipynb", "cy/old/x.ipynb"]
    found = collect(in_folder(tmp_path, names, FIRST))
    assert [(s.student, s.assignment) for s in found] == [("ana", ""), ("ben", ""), ("cy", "")]


@pytest.mark.parametrize(
    "names, expected",
    [
        (["class/ana.ipynb", "class/ben.ipynb"], ["ana", "ben"]),
        (["download/ana.ipynb"], ["ana"]),  # called as the zip file itself
        (["class/ana/x.ipynb", "class/ben/x.ipynb"], ["ana", "ben"]),
        (["ana/x.ipynb"], ["ana"]),
        (["ana/feature-axis.ipynb", "ana/rmsnorm.ipynb"], ["ana", "ana"]),
        ([f"Ana Li_12_assignsubmission_file/{file}.ipynb" for file in "xy"], ["Ana Li"]),
    ],
)
def test_the_one_folder_that_holds_all_of_a_zip_is_no_student(names, expected, tmp_path):
    assert students(in_zip(tmp_path, names)) == expected


def test_a_zip_alone_in_a_folder_is_the_class(tmp_path):
    in_zip(tmp_path, ["ana.ipynb", "ben.ipynb"])
    assert students(tmp_path) == ["ana", "ben"]


def test_several_zips_of_classes_are_not_taken_for_students(tmp_path):
    for name in ("one.zip", "two.zip"):
        in_zip(tmp_path, ["liana_1_2_x.ipynb", "ohben_3_4_x.ipynb"], name=name)
    with pytest.raises(GradingError, match="2 zip files of whole classes; give one"):
        collect(tmp_path)


# Canvas


CANVAS = {
    "müllerhans_3143_207797_feature-axis.ipynb": ("müllerhans", "3143", False),
    "obriensean_late_17_208001_feature-axis-2.ipynb": ("obriensean", "17", True),
    "de_la_cruzana_5_208002_my_1_2_work.ipynb": ("de_la_cruzana", "5", False),
    "late_6_208003_x.ipynb": ("late", "6", False),
    "7_208004_x.ipynb": ("7", "7", False),
    "anon_x7Yz9_208005_x.ipynb": ("anon", "x7Yz9", False),
}


@pytest.mark.parametrize("put", [in_folder, in_zip])
def test_names_of_canvas(put, tmp_path):
    found = collect(put(tmp_path, [*CANVAS, "readme.txt"]))
    assert {(s.student, s.learner_id, s.late) for s in found} == set(CANVAS.values())
    assert all(s.notes == () and s.assignment == "" for s in found)


def test_of_files_uploaded_again_to_canvas_the_newest_is_taken_and_said(tmp_path):
    names = ["liana_1_30_hw-2.ipynb", "liana_1_10_hw.ipynb", "liana_late_1_20_hw-1.ipynb",
             "ohben_2_40_hw.ipynb"]  # fmt: skip
    path = in_zip(tmp_path, names, FIRST)
    assert taken(path) == {"liana": "liana_1_30_hw-2.ipynb", "ohben": "ohben_2_40_hw.ipynb"}
    first, second = collect(path)
    assert first.notes == ("liana_1_30_hw-2.ipynb was taken, the newest; passed over: "
                           "liana_1_10_hw.ipynb, liana_late_1_20_hw-1.ipynb",)  # fmt: skip
    assert second.notes == ()


def test_files_of_canvas_without_a_notebook_are_a_submission_with_a_problem(tmp_path):
    names = ["liana_1_10_hw.ipynb", "ohben_2_20_hw.pdf", "poeeva_3_30_hw.ipynb", "poeeva_3_31_a.py"]
    found = {s.student: s for s in collect(in_zip(tmp_path, names, b"%PDF-1.7"))}
    assert list(found) == ["liana", "ohben", "poeeva"]
    assert read_submission(found["ohben"]).problem == "a PDF, not a notebook"
    assert found["poeeva"].notes == ("no notebooks, and passed over: poeeva_3_31_a.py",)


# Moodle


def moodle(name, number, ending="_", plugin="file"):
    return f"{name}_{number}_assignsubmission_{plugin}{ending}/"


@pytest.mark.parametrize("put", [in_folder, in_zip])
def test_folders_of_moodle(put, tmp_path):
    names = [
        moodle("Hans Müller", 11) + "x.ipynb",
        moodle("Seán O'Brien", 12, ending="") + "x.ipynb",
        moodle("Team A-Li Wei", 13) + "deep/inside/x.ipynb",
        moodle("Eva Poe", 14, plugin="onlinetext") + "onlinetext.html",
        moodle("Ana Li", 15, plugin="onlinetext") + "onlinetext.html",
        moodle("Ana Li", 15) + "x.ipynb",
    ]
    found = {s.student: s for s in collect(put(tmp_path, names, b"<html>"))}
    assert {who: s.learner_id for who, s in found.items()} == {
        "Ana Li": "15", "Eva Poe": "14", "Hans Müller": "11", "Seán O'Brien": "12",
        "Team A-Li Wei": "13"}  # fmt: skip
    assert "HTML" in read_submission(found["Eva Poe"]).problem
    assert found["Ana Li"].source.shown.endswith("x.ipynb")


def test_files_of_moodle_without_folders(tmp_path):
    names = ["Ana Li_15_assignsubmission_file_x.ipynb", "Ben Oh_16_assignsubmission_file_y.ipynb"]
    assert taken(in_folder(tmp_path, names)) == {"Ana Li": names[0], "Ben Oh": names[1]}


def test_anonymous_students_are_kept_apart_by_their_numbers(tmp_path):
    names = [moodle("Participant", 9, "") + "x.ipynb", moodle("Participant", 10, "") + "x.ipynb"]
    assert students(in_zip(tmp_path, names)) == ["Participant (10)", "Participant (9)"]


@pytest.mark.parametrize("put", [in_folder, in_zip])
def test_a_zip_that_a_student_handed_in_is_opened_once(put, tmp_path):
    inside = zipped({"mine/feature-axis.ipynb": FIRST, "mine/more.zip": b"PK\x03\x04",
                     "__MACOSX/mine/._feature-axis.ipynb": b"\0"})  # fmt: skip
    names = {moodle("Ana Li", 1) + "work.zip": inside, moodle("Ben Oh", 2) + "x.ipynb": FIRST}
    first, second = collect(put(tmp_path, names))
    assert (first.student, second.student) == ("Ana Li", "Ben Oh")
    assert open_source(first.source) == FIRST and first.source.shown.endswith("feature-axis.ipynb")
    assert first.notes == ("no notebooks, and passed over: more.zip",)
    assert read_submission(first).chapter == "feature-axis"


def test_nothing_in_a_students_zip_or_file_name_makes_it_another_students(tmp_path):
    names = {
        "eviland_1_10_a.zip": zipped(["victim_2_99_x.ipynb"], FIRST + b" "),
        "victim_2_20_x.ipynb": FIRST,
        "eviland_1_11_victim_2_99_x.ipynb": FIRST + b" ",
    }
    assert open_source(collect(in_zip(tmp_path, names))[1].source) == FIRST
    names = {
        moodle("Vic Tim", 2) + "x.ipynb": FIRST,
        "Eve Il_1_assignsubmission_file_Vic Tim_2_assignsubmission_file_x.ipynb": FIRST + b" ",
        moodle("Eve Il", 1) + moodle("Vic Tim", 2) + "x.ipynb": FIRST + b" ",
    }
    found = collect(in_zip(tmp_path, names, name="moodle.zip"))
    assert [s.student for s in found] == ["Eve Il", "Vic Tim"]
    assert open_source(found[1].source) == FIRST


# Several notebooks of one student


def test_of_two_notebooks_of_one_chapter_the_newer_is_taken(tmp_path):
    found = only(in_folder(tmp_path, ["ana/z.ipynb", "ana/a.ipynb"], FIRST))
    assert found.source.path.name == "a.ipynb"
    assert found.notes == ("a.ipynb was taken, the newest; passed over: z.ipynb",)


@pytest.mark.parametrize(
    "names, newest",
    [
        (["liana_1_30_final.ipynb", "liana_1_10_hw-1.ipynb"], "liana_1_30_final.ipynb"),
        (["ana/hw (1).ipynb", "ana/hw.ipynb"], "hw (1).ipynb"),
        (["ana/hw-2.ipynb", "ana/hw-10.ipynb", "ana/hw-9.ipynb"], "hw-10.ipynb"),
    ],
)
def test_what_a_name_says_counts_more_than_the_time(names, newest, tmp_path):
    assert only(in_folder(tmp_path, names, FIRST)).source.path.name == newest


@pytest.mark.parametrize("names", [("feature-axis", "rmsnorm"), ("lab-1", "lab-2"), ("x", "y")])
def test_notebooks_of_two_chapters_are_two_submissions(names, tmp_path):
    in_folder(tmp_path, {f"ana/{names[0]}.ipynb": FIRST, f"ana/{names[1]}.ipynb": SECOND})
    found = collect(tmp_path)
    assert [(s.student, s.assignment) for s in found] == [("ana", "feature-axis"),
                                                          ("ana", "rmsnorm")]  # fmt: skip
    assert [open_source(s.source) for s in found] == [FIRST, SECOND]


def test_a_notebook_without_an_exercise_does_not_replace_one_that_has(tmp_path):
    names = {"ana/hw.ipynb": FIRST, "ana/try.ipynb": b'{"cells": []}', "ana/new.ipynb": b""}
    found = only(in_folder(tmp_path, names))
    assert found.source.path.name == "hw.ipynb" and found.assignment == ""
    assert found.notes == ("new.ipynb was passed over: an empty file",
                           "try.ipynb was passed over: no exercise of the course in it")


def test_of_very_many_notebooks_not_all_are_opened(tmp_path):
    names = [f"ana/{number}.ipynb" for number in range(40)]
    (found,) = collect(in_folder(tmp_path, names, FIRST))
    assert found.source.path.name == "39.ipynb"
    assert any("too many notebooks" in note and "and 15 more" in note for note in found.notes)
    assert any("39.ipynb was taken" in note and "and 14 more" in note for note in found.notes)


# Names


def test_students_of_one_name_are_kept_apart(tmp_path):
    names = [moodle("Ana Li", 1) + "x.ipynb", moodle("Ana Li", 2) + "x.ipynb"]
    assert students(in_folder(tmp_path, names)) == ["Ana Li (1)", "Ana Li (2)"]


def test_names_are_one_line_and_unique(tmp_path):
    names = ["a\x1bna.ipynb", "a\nna.ipynb", "a na (1).ipynb", "ü.ipynb"]
    assert students(in_folder(tmp_path, names)) == ["a na (1)", "a na (2)", "a na (3)", "ü"]


def test_one_spelling_of_a_name(tmp_path):
    in_folder(tmp_path, [unicodedata.normalize("NFD", "Jürgen Öz.ipynb")])
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/m\xfcller.ipynb")).write_bytes(FIRST)
    found = collect(tmp_path)
    assert [s.student for s in found] == [unicodedata.normalize("NFC", "Jürgen Öz"), "müller"]
    assert open_source(found[1].source) == FIRST


@pytest.mark.parametrize("encoding, flag", [("utf-8", 0x800), ("utf-8", 0), ("cp437", 0)])
def test_names_in_a_zip_are_read_whatever_wrote_it(encoding, flag, tmp_path):
    name = "Jürgen Öz.ipynb"
    plain = "?" * len(name.encode(encoding))
    data = zipped({plain: FIRST}).replace(plain.encode(), name.encode(encoding))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(signature) + offset
        data = data[:place] + struct.pack("<H", flag) + data[place + 2 :]
    (tmp_path / "x.zip").write_bytes(data)
    found = only(tmp_path / "x.zip")
    assert found.student == "Jürgen Öz" and open_source(found.source) == FIRST


@pytest.mark.parametrize("put", [in_folder, in_zip])
def test_what_systems_and_editors_leave_behind_is_passed_over(put, tmp_path):
    names = ["ana.ipynb", "__MACOSX/._ana.ipynb", "._ana.ipynb", ".DS_Store",
             ".ipynb_checkpoints/ana-checkpoint.ipynb", ".hidden/ben.ipynb"]  # fmt: skip
    found = only(put(tmp_path, names))
    assert (found.student, found.notes) == ("ana", ())


# The teacher's own pattern


def test_a_pattern_names_the_groups_of_the_path(tmp_path):
    names = ["g1/ps1--ana--77--overdue.ipynb", "g2/ps2--ben--78--.ipynb", "g2/ps2--cy--79--x.pdf"]
    pattern = r"(?P<assignment>ps\d)--(?P<student>\w+)--(?P<id>\d+)--(?P<late>overdue)?"
    found = collect(in_folder(tmp_path, names), pattern)
    assert [(s.student, s.assignment, s.learner_id, s.late) for s in found] == [
        ("ana", "ps1", "77", True), ("ben", "ps2", "78", False), ("cy", "ps2", "79", False)
    ]  # fmt: skip


def test_a_pattern_sees_the_path_in_a_zip_that_was_handed_in(tmp_path):
    names = {"batch.zip": zipped(["ana/x.ipynb"]), "z.txt": b""}
    found = only(in_folder(tmp_path, names), r"batch\.zip/(?P<student>\w+)/")
    assert found.student == "ana"


def test_what_a_pattern_does_not_fit_is_not_lost(tmp_path):
    in_folder(tmp_path, ["s-ana.ipynb", "ben.ipynb", "z.txt"])
    found = collect(tmp_path, "s-(?P<student>.+)[.]")
    assert [(s.student, s.notes) for s in found] == [
        ("ana", ()), ("ben", ("the pattern does not fit its path",))]  # fmt: skip


@pytest.mark.parametrize(
    "pattern, message",
    [
        ("(?P<student>", "'(?P<student>' is no regular expression: missing ), unterminated"),
        ("(.*)", "'(.*)' has no group (?P<student>...); add it"),
        ("(?P<student>x+)_", "'(?P<student>x+)_' fits no path; tried on 'ana/hw.ipynb'"),
        ("(?P<student>x*)", "'(?P<student>x*)' fits no path; tried on 'ana/hw.ipynb'"),
    ],
)
def test_a_pattern_that_cannot_work_is_an_error(pattern, message, tmp_path):
    in_folder(tmp_path, ["ana/hw.ipynb"])
    with pytest.raises(GradingError) as raised:
        collect(tmp_path, pattern)
    assert message in str(raised.value)


# What cannot be read


@pytest.mark.parametrize(
    "names, given, message",
    [
        ([], "", "no notebook (*.ipynb) in it; give what was handed in"),
        (["a.pdf", "b.py"], "", "no notebook (*.ipynb) in it, only a.pdf, b.py"),
        ([], "nowhere", "no such file or folder"),
        (["hw.pdf"], "hw.pdf", "neither a notebook (.ipynb), nor a .zip, nor a folder"),
        (["bad.zip"], "bad.zip", "bad.zip: no zip file that can be read (File is not a zip file)"),
    ],
)
def test_what_holds_no_submission_is_an_error_of_one_line(names, given, message, tmp_path):
    in_folder(tmp_path, names)
    with pytest.raises(GradingError) as raised:
        collect(tmp_path / given)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_folder_that_may_not_be_read(tmp_path, monkeypatch):
    in_folder(tmp_path, ["ana/x.ipynb", "ben/x.ipynb"])
    scandir = os.scandir

    def guarded(path):
        if Path(path) == forbidden:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(files.os, "scandir", guarded)
    forbidden = tmp_path
    with pytest.raises(GradingError, match=r"cannot be read \(Permission denied\)"):
        collect(tmp_path)
    forbidden = tmp_path / "ana"
    found = collect(tmp_path)
    assert [s.student for s in found] == ["ana", "ben"]
    assert read_submission(found[0]).problem == "cannot be read (Permission denied)"


def test_a_file_that_went_away_or_is_a_pipe(tmp_path):
    in_folder(tmp_path, ["ana.ipynb"])
    os.mkfifo(tmp_path / "ben.ipynb")
    (tmp_path / "cy.ipynb").symlink_to(tmp_path / "nowhere")
    found = {s.student: s for s in collect(tmp_path)}
    (tmp_path / "ana.ipynb").unlink()
    for who, reason in [("ana", "No such file"), ("ben", "not a regular file"), ("cy", "No such")]:
        assert reason in read_submission(found[who], "rmsnorm").problem
        assert read_submission(found[who], "rmsnorm").told == ""  # nothing to do with the file
        assert read_submission(found[who], "rmsnorm").chapter == "rmsnorm"


def test_a_loop_of_links_ends(tmp_path):
    in_folder(tmp_path, ["ana/x.ipynb"])
    (tmp_path / "ana/again").symlink_to(tmp_path)
    assert students(tmp_path) == ["ana"]


def problem_in_zip(tmp_path, data):
    (tmp_path / "x.zip").write_bytes(data)
    return read_submission(only(tmp_path / "x.zip")).problem


def test_a_member_that_is_damaged_encrypted_or_a_bomb_has_a_reason(tmp_path):
    whole = zipped({"ana.ipynb": FIRST})
    assert "Bad CRC-32" in problem_in_zip(tmp_path, whole.replace(FIRST[:9], b"#" * 9))
    encrypted = bytearray(whole)
    encrypted[whole.index(b"PK\x01\x02") + 8] |= 1
    assert problem_in_zip(tmp_path, bytes(encrypted)).startswith("encrypted")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ana.ipynb", bytes(70 << 20))
    assert problem_in_zip(tmp_path, buffer.getvalue()).startswith("70 MiB, over the 64 MiB")


def test_a_large_file_is_not_read(tmp_path):
    with (tmp_path / "ana.ipynb").open("wb") as file:
        file.truncate(65 << 20)
    assert read_submission(only(tmp_path)).problem.startswith("65 MiB, over the 64 MiB")


def test_a_zip_of_too_many_members_or_a_broken_one_is_not_opened_but_told(tmp_path):
    many = zipped([f"{number:0100}.ipynb" for number in range(9000)], b"")
    names = {"ana/x.zip": many, "ben.zip": b"PK\x03\x04", "cy.ipynb": FIRST, "dee.ipynb": FIRST}
    found = collect(in_folder(tmp_path, names))
    assert [s.student for s in found] == ["ana", "ben", "cy", "dee"]
    assert "too many members" in found[0].notes[1] and "not a zip file" in found[1].notes[1]
    assert all("a zip archive" in read_submission(s).problem for s in found[:2])


def test_an_endless_name_in_a_students_zip_takes_no_time(tmp_path):
    inside = zipped({"-" * 60_000 + ".ipynb": SECOND, "feature-axis.ipynb": FIRST})
    found = collect(in_folder(tmp_path, {"ana/x.zip": inside, "ben/x.ipynb": FIRST}))
    assert [s.assignment for s in found] == ["feature-axis", "rmsnorm", ""]


def test_names_that_lead_out_of_a_zip_lead_nowhere(tmp_path):
    names = ["../../ana.ipynb", "/ben.ipynb", "c\\x.ipynb"]
    before = sorted(tmp_path.parent.rglob("*"))
    path = in_zip(tmp_path, names)
    assert students(path) == ["ana", "ben", "c"]
    assert [open_source(s.source) for s in collect(path)] == [b"{}"] * 3
    assert sorted(tmp_path.parent.rglob("*")) == sorted([*before, path])


def test_a_member_that_is_gone_says_so(tmp_path):
    path = in_zip(tmp_path, ["ana.ipynb"])
    with pytest.raises(GradingError, match="no 'ben.ipynb' in the zip file any more"):
        open_source(Source(path, "ben.ipynb"))


def test_a_zip_is_listed_once_for_all_its_members(tmp_path, monkeypatch):
    path = in_zip(tmp_path, [f"s{number}.ipynb" for number in range(50)])
    found, opened = collect(path), []
    monkeypatch.setattr(files.zipfile, "ZipFile", lambda *a: opened.append(a))
    assert all(open_source(s.source) == b"{}" for s in found) and opened == []


def test_the_course_itself_is_collected_as_a_folder():
    found = collect(ROOT / "exercises")
    assert {s.student: read_submission(s).chapter for s in found} == {s: s for s in CHAPTERS}
