"""Grades into tables of Canvas and Moodle: one column changes, every other byte stays."""

import codecs
import csv

import pytest
from answers.graded_class import CHAPTER, graded

from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.model import Result
from lnres_utils.grading.platforms import (
    Total,
    fill_canvas,
    fill_moodle_gradebook,
    fill_moodle_worksheet,
    moodle_names,
    totals,
)

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Notes,Layer norm (201),"
    '"Quiz: data, part 1 (111)",Assignments Current Score,Final Grade\n'
    ",,,,,,Manual Posting,,,\n"
    "    Points Possible,,,,,,56.00,10.00,(read only),(read only)\n"
    '"Lovelace, Ada",1001,U1,ada,"S1, morning","said ""hi""",,8.00,80.00,B\n'
    "\"O'Neill, Siobhán\",1002,U2,siobhan@x.edu,S1,,12.00,,0.00,F\n"
    '"Doe, Jane",1003,U3,jane.a,S1,"two\nlines",EX,N/A,,\n'
    '"Doe, Jane",1004,U4,jane.b,S2,,,9.00,90.00,A\n'
    '"Student, Test",9999,,,S1,,,,,\n'
)
WORKSHEET = (
    'Identifier,"Full name","ID number","Email address",Status,Grade,"Maximum grade",'
    '"Grade can be changed","Last modified (submission)","Last modified (grade)",'
    '"Feedback comments"\n'
    '"Participant 501","Ada Lovelace",A1,ada@x.edu,"Submitted for grading",,"56.00",Yes,'
    '"Wednesday, 10 June 2026, 2:14 PM",-,\n'
    '"Participant 502","Siobhán O\'Neill",A2,sio@x.edu,"Submitted",12.00,56.00,Yes,-,-,'
    '"Hi,\n""well"" done"\n'
    '"Participant 503","Jane Doe",A3,jane@x.edu,"No submission",,56.00,No,-,-,\n'
)
GRADES = (
    '"First name","Last name","ID number","Email address","Assignment: Layer norm (Real)",'
    '"Quiz: Data (Real)","Course total (Real)","Last downloaded from this course"\n'
    "Ada,Lovelace,A1,ada@x.edu,-,8.00,8.00,1767225600\n"
    "Jane,Doe,,jane@x.edu,3.00,-,3.00,1767225600\n"
)


def total(student, points=41, **more):
    return Total(student, points, 56, **more)


def filled(export, *claims, fill=fill_canvas, column="201", **options):
    data, notes = fill(export.encode(), [each if isinstance(each, Total) else total(each)
                                         for each in claims], column, **options)
    return data.decode(), notes


# Canvas


def test_one_cell_of_one_line_is_filled():
    text, notes = filled(CANVAS, "ada")
    assert text == CANVAS.replace('"said ""hi""",,8', '"said ""hi""",41.00,8')
    assert notes == ("O'Neill, Siobhán: no submission", "Doe, Jane: no submission",
                     "Doe, Jane: no submission")


@pytest.mark.parametrize("student", ["1001", "U1", "u1", "ada", "ADA", "Lovelace, Ada",
                                     "Ada Lovelace", "  ada   lovelace "])
def test_students_are_found_by_id_login_and_name(student):
    assert '""hi""",41.00,8' in filled(CANVAS, student)[0]


def test_the_number_in_the_name_of_a_file_finds_a_student():
    text, _ = filled(CANVAS, total("doejane", learner_id="1004"))
    assert '1004,U4,jane.b,S2,,41.00,' in text
    text, notes = filled(CANVAS, total("ada", learner_id="1004"))
    assert text == CANVAS and "ada: 41 points, not filled in: 2 lines of the table fit" in notes


def test_who_is_in_doubt_is_told_and_not_guessed():
    text, notes = filled(CANVAS, "Jane Doe", "nobody")
    assert text == CANVAS
    assert "Jane Doe: 41 points, not filled in: 2 lines of the table fit" in notes
    assert "nobody: 41 points, not filled in: no line of the table fits" in notes
    text, notes = filled(CANVAS, "ada", "1001")
    assert text == CANVAS
    assert "Lovelace, Ada: not filled in: several submissions fit (ada, 1001)" in notes


def test_an_id_of_one_that_is_the_login_of_another_is_in_doubt():
    export = CANVAS.replace("siobhan@x.edu", "1001")
    text, notes = filled(export, "1001")
    assert text == export and "1001: 41 points, not filled in: 2 lines of the table fit" in notes


def test_a_grade_that_is_there_stays_unless_it_is_to_be_replaced():
    text, notes = filled(CANVAS, "siobhan@x.edu")
    assert text == CANVAS
    assert "O'Neill, Siobhán: 12.00 is there and kept; graded were 41.00" in notes
    text, notes = filled(CANVAS, "siobhan@x.edu", overwrite=True)
    assert text == CANVAS.replace("S1,,12.00,,", "S1,,41.00,,")
    assert "O'Neill, Siobhán: 12.00 is replaced by 41.00" in notes
    text, notes = filled(CANVAS, total("U2", 12))
    assert text == CANVAS and not any("Siobhán" in note for note in notes)


def test_excused_students_and_the_test_student_are_left_alone():
    text, notes = filled(CANVAS, "jane.a", "9999", overwrite=True)
    assert text == CANVAS
    assert "Doe, Jane: 41.00 not filled in: EX stands there" in notes
    assert "9999: 41 points, not filled in: no line of the table fits" in notes
    assert not any("Test" in note for note in notes)


@pytest.mark.parametrize("column", ["Layer norm (201)", "Layer norm", "layer NORM", "201"])
def test_a_column_is_named_by_title_or_number(column):
    assert filled(CANVAS, "ada", column=column)[0] != CANVAS


def test_the_only_assignment_needs_no_name():
    export = CANVAS.replace('"Quiz: data, part 1 (111)"', "Quiz")
    assert ",41.00," in filled(export, "ada", column=None)[0]
    with pytest.raises(GradingError, match=r"name one of .*'Layer norm \(201\)', 'Quiz: data"):
        filled(CANVAS, "ada", column=None)


@pytest.mark.parametrize(("column", "said"), [
    ("Layer", "'Layer' is not in this file"), ("Final Grade", "'Final Grade' is not in"),
    ("ID", "'ID' is not in")])
def test_a_column_that_cannot_be_filled_is_an_error(column, said):
    with pytest.raises(GradingError, match=said):
        filled(CANVAS, "ada", column=column)


def test_a_column_that_canvas_does_not_read_is_an_error():
    with pytest.raises(GradingError, match="does not read this column"):
        filled(CANVAS.replace(",56.00,", ",(läs endast),"), "ada")


@pytest.mark.parametrize("points", [57, -1])
def test_points_that_the_column_does_not_allow_are_an_error(points):
    with pytest.raises(GradingError, match=f"ada has {points}.00 points, but the column allows 0 "):
        filled(CANVAS, total("ada", points))


def test_points_are_scaled_to_the_column_when_asked():
    assert '""hi""",41.00,7.32,' in filled(
        CANVAS.replace(",8.00,80", ",,80").replace('""",,,', '""",41.00,,'), "ada", column="111",
        scale=True)[0]
    _, notes = filled(CANVAS, total("ada", 5), column="111", overwrite=True)
    assert notes[0].startswith("The column allows 10.00 points, the exercises are worth 56")
    with pytest.raises(GradingError, match="cannot be scaled"):
        filled(CANVAS.replace(",56.00,", ",,"), "ada", scale=True)


@pytest.mark.parametrize("change", [
    lambda text: codecs.BOM_UTF8 + text.encode(),
    lambda text: text.replace("\n", "\r\n").encode(),
    lambda text: text.rstrip("\n").encode(),
    lambda text: text.encode() + b"\n\n",
    lambda text: text.encode("cp1252"),
], ids=["byte order mark", "CRLF", "no end of line", "empty lines", "cp1252"])
def test_bytes_beside_the_cell_stay(change):
    before = change(CANVAS)
    after, _ = fill_canvas(before, [total("ada"), total("Siobhán O'Neill")], "201", overwrite=True)
    assert after == change(CANVAS.replace('""",,8', '""",41.00,8').replace("12.00", "41.00"))


def test_semicolons_and_decimal_commas_stay():
    export = ("Student;ID;SIS Login ID;Section;A, b (7)\n    Points Possible;;;;56,00\n"
              '"Lovelace; Ada";1;ada;"S1, x";\n')
    assert filled(export, "ada", column="7")[0] == export.replace('S1, x";', 'S1, x";41,00')
    export = export.replace("A, b", "A").replace("S1, x", "S1").replace(";", ",").replace(
        "56,00", '"56,00"')
    assert filled(export, "ada", column="7")[0].endswith('"S1","41,00"\n')


def test_a_quoted_cell_stays_quoted():
    export = CANVAS.replace('""",,8', '""","",8')
    assert '""","41.00",8' in filled(export, "ada")[0]


def test_first_and_last_names_in_two_columns():
    export = CANVAS.replace("Student,ID", "LastName,FirstName,ID").replace(
        '"Lovelace, Ada"', "Lovelace,Ada").replace("\n    P", "\n    P").replace(
        "    Points Possible,", "    Points Possible,,")
    assert '""hi""",41.00,8' in filled(export, "Ada Lovelace")[0]


@pytest.mark.parametrize(("export", "said"), [
    (b"", "has the column 'ID', 'Section'; the first line of this file has nothing"),
    (b"a,b\n1,2\n", "this file has 'a', 'b'"),
    (b"\xff\xfea\x00", "UTF-16"),
    (CANVAS.replace('lines"', 'lines').encode(), "quote in line 6"),
    (CANVAS.replace(',"Quiz', ',"Quiz" "').encode(), "quote in line 1"),
    (CANVAS.encode() + b'"', "quote in line 10"),
    (CANVAS.replace("Student,", "Name,", 1).encode(), "'Student'"),
])
def test_another_table_is_an_error_of_one_line(export, said):
    with pytest.raises(GradingError, match=said) as raised:
        fill_canvas(export, [total("ada")], "201")
    assert "\n" not in str(raised.value)


def test_a_line_without_the_cell_is_left_alone():
    text, notes = filled(CANVAS.replace(",1004,U4,jane.b,S2,,,9.00,90.00,A", ",1004,U4"), "U4")
    assert text.count("41.00") == 0
    assert "Doe, Jane: the line ends before the column; it is left as it is" in notes


def test_notes_are_single_lines_whatever_students_are_called():
    _, notes = filled(CANVAS, "a\nb\x1b[31m")
    assert "a b [31m: 41 points, not filled in: no line of the table fits" in notes


# Moodle


def worksheet(*claims, export=WORKSHEET, **options):
    data, notes = fill_moodle_worksheet(export.encode(), list(claims), **options)
    return data.decode(), notes


@pytest.mark.parametrize("claim", [
    total("Ada Lovelace", learner_id="501"), total("ada@x.edu"), total("A1"), total("501"),
    total("Participant 501")])
def test_the_grade_of_a_worksheet_is_filled(claim):
    text, notes = worksheet(claim)
    assert text == WORKSHEET.replace('grading",,"56', 'grading",41.00,"56')
    assert notes == ("Siobhán O'Neill: no submission", "Jane Doe: no submission")


def test_a_worksheet_keeps_grades_and_lines_that_moodle_keeps():
    text, notes = worksheet(total("A2"), total("A3"))
    assert text == WORKSHEET
    assert notes[1:] == ("Siobhán O'Neill: 12.00 is there and kept; graded were 41.00",
                         "Jane Doe: 41.00 not filled in: Moodle lets nobody change it")
    assert worksheet(total("A2"), overwrite=True)[0] == WORKSHEET.replace("12.00", "41.00")


def test_a_worksheet_gets_comments_when_asked():
    told = total("A1", comment="layer_norm: right, 10 of 10; rms_norm: wrong, 0 of 8")
    assert "layer_norm" not in worksheet(told)[0]
    text, _ = worksheet(told, comments=True)
    assert '2:14 PM",-,"layer_norm: right, 10 of 10; rms_norm: wrong, 0 of 8"\n' in text
    text, _ = worksheet(total("A2", 12, comment="new"), comments=True)
    assert text == WORKSHEET
    assert worksheet(total("A2", 12, comment="new"), comments=True, overwrite=True)[0].endswith(
        WORKSHEET[WORKSHEET.index('"Participant 503'):])


GERMAN = {
    "Identifier": "ID", "Full name": "Vollständiger Name", "ID number": "ID-Nummer",
    "Email address": "E-Mail-Adresse", "Grade": "Bewertung", "Maximum grade": "Bestwertung",
    "Grade can be changed": "Bewertung kann geändert werden",
    "Last modified (grade)": "Zuletzt geändert (Bewertung)",
    "Feedback comments": "Feedback als Kommentar", "First name": "Vorname",
    "Last name": "Nachname",
}


def in_german(export):
    header, *body = export.replace("Participant ", "Teilnehmer/in").splitlines(keepends=True)
    names = [f'"{GERMAN.get(name, name)}"' for name in next(csv.reader([header]))]
    return ",".join(names) + "\n" + "".join(body).replace("Yes", "Ja").replace("No,", "Nein,")


def has(export, name):
    return f'"{GERMAN[name]}"' in export


def test_a_worksheet_in_another_language_is_filled_when_its_columns_are_named():
    export = in_german(WORKSHEET)
    names = moodle_names(f"{name}={GERMAN[name]}" for name in GERMAN if has(export, name))
    told = [total("x", learner_id="501", comment="all right"), total("Jane Doe")]
    text, notes = worksheet(*told, export=export, names=names, comments=True)
    assert text == export.replace('grading",,"56', 'grading",41.00,"56').replace(
        '2:14 PM",-,', '2:14 PM",-,all right')
    assert notes == ("Siobhán O'Neill: no submission",
                     "Jane Doe: 41.00 not filled in: Moodle lets nobody change it")
    few = {name: GERMAN[name] for name in ("Identifier", "Grade", "Last modified (grade)")}
    text, notes = worksheet(told[0], export=export, names=few)
    assert 'grading",41.00,"56' in text
    assert notes[0] == ("not in this table, or not named with --moodle-columns: 'Full name', "
                        "'Maximum grade', 'Grade can be changed', 'Feedback comments'")


@pytest.mark.parametrize(("names", "said"), [
    ({}, "'Identifier', 'Grade', 'Last modified .*has 'ID', 'Vollständiger Name'.*--moodle-col"),
    ({"Grade": "Note"}, "called 'Note'; its first line has 'ID', 'Vollständiger Name'"),
])
def test_columns_in_another_language_that_are_not_named_are_an_error(names, said):
    with pytest.raises(GradingError, match=said) as raised:
        worksheet(total("A1"), export=in_german(WORKSHEET), names=names)
    assert "\n" not in str(raised.value)


def test_a_name_that_means_another_column_there_is_not_taken_for_it():
    export = WORKSHEET.replace('Grade,"Maximum grade"', "Note,Grade")
    text, _ = worksheet(total("A1"), export=export,
                        names=moodle_names(["grade=Note", "Maximum grade = Grade"]))
    assert text == export.replace('grading",,"56', 'grading",41.00,"56')


@pytest.mark.parametrize("pair", ["Bewertung", "Grade=", "Note=Bewertung", "=", ""])
def test_a_name_without_a_column_is_an_error(pair):
    with pytest.raises(GradingError, match="'Grade=Bewertung', with one of Identifier, Grade,"):
        moodle_names([pair])


def test_a_worksheet_checks_the_maximum_and_scales():
    with pytest.raises(GradingError, match="allows 0 to 20.00"):
        worksheet(total("A1"), export=WORKSHEET.replace("56.00", "20.00"))
    text, _ = worksheet(total("A1"), export=WORKSHEET.replace("56.00", "20.00"), scale=True)
    assert 'grading",14.64,"20' in text


@pytest.mark.parametrize("student", ["ada@x.edu", "A1", "Ada Lovelace"])
def test_the_grades_of_a_course_are_filled(student):
    text, notes = filled(GRADES, student, fill=fill_moodle_gradebook, column="Layer norm")
    assert text == GRADES.replace("edu,-,8", "edu,41.00,8")
    assert notes == ("Jane Doe: no submission",)
    names = {name: GERMAN[name] for name in GERMAN if has(in_german(GRADES), name)}
    assert filled(in_german(GRADES), student, fill=fill_moodle_gradebook, column="Layer norm",
                  names=names) == (in_german(text), notes)


def test_the_grades_of_a_course_know_a_maximum_only_when_told():
    options = {"fill": fill_moodle_gradebook, "column": "Assignment: Layer norm (Real)"}
    with pytest.raises(GradingError, match="allows 0 to 20"):
        filled(GRADES, "A1", maximum=20, **options)
    assert "edu,14.64,8" in filled(GRADES, "A1", maximum=20, scale=True, **options)[0]
    with pytest.raises(GradingError, match="Tell its maximum"):
        filled(GRADES, "A1", scale=True, **options)


@pytest.mark.parametrize("column", [None, "(Real)", "Course total (Real", "ID number", "nothing"])
def test_the_column_of_a_course_must_be_certain(column):
    with pytest.raises(GradingError, match="'Assignment: Layer norm"):
        filled(GRADES, "A1", fill=fill_moodle_gradebook, column=column)


def test_grades_of_a_course_without_ids_are_an_error():
    export = GRADES.replace("ID number", "a").replace("Email address", "b")
    with pytest.raises(GradingError, match="'Email address' or 'ID number'.* has 'First name'"):
        filled(export, "A1", fill=fill_moodle_gradebook)


# Totals


def test_totals_of_one_chapter_or_of_all():
    exercises = graded("layer_norm", 0), graded("axis_norm", 1)
    first = Result("ada", CHAPTER, "", "", exercises, learner_id="7")
    second = Result("ada", "rmsnorm", "", "", (), problem="This is no notebook.")
    both, = totals([first, second])
    assert (both.points, both.max_points, both.learner_id) == (16, 20 + 56, "7")
    assert both.comment.startswith("layer_norm: right, 10 of 10; axis_norm: wrong, 6 of 10")
    assert totals([first, second], CHAPTER) == [Total(
        "ada", 16, 20, "7", "layer_norm: right, 10 of 10; axis_norm: wrong, 6 of 10")]


def test_one_that_could_not_be_read_is_left_as_it_is_and_noted():
    text, notes = filled(CANVAS, total("ada", 0, problem="This is no notebook."))
    assert text == filled(CANVAS)[0]
    assert ("Lovelace, Ada: nothing could be graded: This is no notebook.; left as it is"
            in notes)
