"""From graded hand-ins to points for everyone: roster, reading, lateness, tables, likeness."""

import csv
import json
import os
import random
import re
import stat
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from attnbook.teach import report
from attnbook.teach.report import Graded, Mark
from attnbook.teach.submission import Cell, reference
from attnbook.teach.walls import WALLS
from tests.helpers.assignments import NAMES, known, needed
from tools.marking import __main__ as marking
from tools.marking import alike, lms, reading, roster, tables, terms
from tools.marking.tables import TableError
from tools.notebooks import BOOK

SOLUTIONS = needed()
KNOWN = reference(SOLUTIONS / "a1.ipynb")
ESSAY, MOST = "a1-bottleneck", sum(task.points for task in KNOWN.tasks)
ROSTER = "id,name\nada,Ada Doe\n12345,Bob Ray\ncy,Cy Ng\ndee,Dee Fox\n"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def hand_in(path: Path, changed: dict[str, str], when: str = "2026-11-20 12:00") -> None:
    """Write a student's notebook, as it was saved at a time."""
    nb = json.loads((BOOK / "assignments" / "a1.ipynb").read_text("utf-8"))
    for cell in nb["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = changed.get(grade_id, "".join(cell["source"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(nb), "utf-8")
    seconds = datetime.fromisoformat(when).timestamp()
    os.utime(path, (seconds, seconds))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A folder with three graded hand-ins, one of them late, and a roster of four."""
    names = {
        "ada": "2026-11-20 12:00",
        "rayb_12345": "2026-11-22 13:00",
        "ng cy": "2026-11-20 9:00",
    }
    every = []
    for student, when in names.items():
        hand_in(
            tmp_path / "in" / f"{student}.ipynb", {ESSAY: "An essay."}, when.replace(" 9", " 09")
        )
        marks = [Mark(task.name, task.points, task.points, "right") for task in KNOWN.tasks]
        marks[-1] = Mark(ESSAY, None, 4.0, "")
        every.append(Graded(student, marks, "", list(WALLS), 0.1, shown={ESSAY: "<p>An essay."}))
    every[2].marks[-1] = Mark(ESSAY, 0.0, 4.0, report.NOT_ANSWERED)
    every[2].marks[0].points = 0.0
    graded = tmp_path / "graded"
    for each in every:
        marking.records.keep(graded, KNOWN, each, "digest")
    marking.records.write(graded / "a1.csv", report.table(every, KNOWN, list(WALLS)))
    (tmp_path / "roster.csv").write_text(ROSTER)
    return tmp_path


def run(course: Path, *more: str, roster: str = "roster.csv") -> None:
    said = ["a1", str(course / "in"), f"--roster={course / roster}", f"--out={course / 'graded'}"]
    marking.main([*said, f"--solutions={SOLUTIONS}", "--deadline=2026-11-20 23:59", *more])


def entered(course: Path, **values: str) -> None:
    """Fill in the sheet, as a person does with a spreadsheet."""
    sheet = course / "graded" / "a1-read.csv"
    text = sheet.read_text("utf-8")
    header, *lines = csv.reader(text.splitlines(), delimiter=text[2])  # behind "id"
    for cells in lines:
        cells[2:] = values.get(cells[0], ",,,,").split(",")
    with sheet.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows([header, *lines])


def test_from_grades_to_the_tables_of_two_systems(course: Path, capsys: Any) -> None:
    run(course, "--penalty=10% a day, at most 50%")
    sheet = rows(course / "graded" / "a1-read.csv")
    assert [row["id"] for row in sheet] == ["ada", "12345"]  # the third wrote nothing to read
    assert "2 more to read" in capsys.readouterr().out
    before = {row["id"]: row for row in rows(course / "graded" / "a1-class.csv")}
    assert [before[name]["total"] for name in ("ada", "12345", "cy", "dee")] == ["", "", "15", "0"]
    entered(course, ada="1,1,1,1,Well seen.")
    run(course, "--penalty=10% a day, at most 50%")
    entered(course, **{"ada": "1,1,1,1,Well seen.", "12345": "1,0.5,1,1,<b>Which</b> seeds?"})
    run(course, "--penalty=10% a day, at most 50%")
    after = {row["id"]: row for row in rows(course / "graded" / "a1-class.csv")}
    # 36 hours and a minute late are two days begun: 20 % of 19.5 points.
    totals = {name: row["total"] for name, row in after.items()}
    assert totals == {"ada": "20", "12345": "15.6", "cy": "15", "dee": "0"}
    assert (after["12345"]["late"], after["12345"]["lost"]) == ("1 d 13 h 1 min", "3.9")
    assert after["dee"]["note"] == "nothing was handed in" and after["dee"]["hand-in"] == ""
    assert not any(name.startswith("a1-") for row in after.values() for name in row)
    canvas = rows(course / "graded" / "a1-canvas.csv")
    assert canvas[0]["Student"].strip() == "Points Possible" and canvas[0]["a1"] == f"{MOST:g}"
    assert [(row["SIS Login ID"], row["a1"]) for row in canvas[1:]] == list(totals.items())
    moodle = rows(course / "graded" / "a1-moodle.csv")
    assert [(row["ID number"], row["a1"]) for row in moodle] == list(totals.items())
    assert "Task 9: what does the experiment show?: 3.5 of 4" in moodle[1]["a1 (feedback)"]
    assert "20% of the points are lost" in moodle[1]["a1 (feedback)"]
    page = (course / "graded" / "a1" / "rayb_12345.html").read_text("utf-8")
    assert "15.6 of 20 points" in page and "&lt;b&gt;Which&lt;/b&gt; seeds?" in page
    assert "0.5 of 1" in page and "<p>An essay." in page and page.count("</section>") == 2
    for path in (course / "graded").rglob("*.csv"):
        assert path.name == "a1-read.csv" or stat.S_IMODE(path.stat().st_mode) == 0o600


def test_who_is_in_no_roster_is_named_and_the_rest_is_written(course: Path) -> None:
    (course / "small.csv").write_text("id;name\nada;Ada Doe\n12345;Bob Ray\n")
    hand_in(course / "in" / "late.ipynb", {})
    with pytest.raises(SystemExit) as said:
        run(course, roster="small.csv")
    assert "ng cy: nobody in the roster" in str(said.value)
    assert "late: not graded yet" in str(said.value)
    assert len(rows(course / "graded" / "a1-class.csv")) == 2


@pytest.mark.parametrize(
    ("sheet", "says"),
    [
        ("1,3,1,1,", "from 0 to 1, got 3"),
        ("-1,1,1,1,", "from 0 to 1, got -1"),
        ("good,1,1,1,", "must be a number, got 'good'"),
    ],
)
def test_an_impossible_mark_is_told_with_its_line(course: Path, sheet: str, says: str) -> None:
    run(course)
    entered(course, **{"12345": sheet})
    with pytest.raises(SystemExit) as said:
        run(course)
    assert says in str(said.value) and "a1-read.csv, line 3" in str(said.value)


def test_a_sheet_names_only_the_class_and_keeps_what_stands_in_it(course: Path) -> None:
    run(course)
    entered(course, ada="1,1,1,1,kept")
    sheet = course / "graded" / "a1-read.csv"
    sheet.write_text(sheet.read_text("utf-8") + "eve;Eve;1;1;1;1;\n", "utf-8")
    with pytest.raises(SystemExit, match="'eve' is not in the roster"):
        run(course)
    sheet.write_text(sheet.read_text("utf-8").replace("eve;", "ada;"), "utf-8")
    with pytest.raises(SystemExit, match="'ada' stands in a line above"):
        run(course)
    asked = reading.criteria(SOLUTIONS / "criteria.toml", KNOWN)
    sheet.write_text("\n".join(sheet.read_text("utf-8").splitlines()[:2]), "utf-8")
    assert reading.sheet(sheet, asked, KNOWN, roster.read(course / "roster.csv")) == 3
    assert rows(sheet)[0]["Task 9: comment"] == "kept" and len(rows(sheet)) == 4


@pytest.mark.parametrize("name", NAMES)
def test_each_reading_task_has_criteria_worth_its_points(name: str) -> None:
    found = reading.criteria(SOLUTIONS / "criteria.toml", known(name))
    wanted = {task.name: task.points for task in known(name).tasks if task.reader}
    assert wanted and {task: sum(c.points for c in each) for task, each in found.items()} == wanted


def test_criteria_that_are_not_worth_the_task_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "criteria.toml"
    path.write_text(f'[[{ESSAY}]]\npoints = 3\nsaid = "x"\n')
    with pytest.raises(TableError, match=f"{ESSAY} must be worth 4 points, got 3"):
        reading.criteria(path, KNOWN)


# The roster


@pytest.mark.parametrize(
    ("table", "people"),
    [
        ("\ufeffname;id;email\nDoe, Ada;7;a@b.c\n\n", [("7", "Doe, Ada", "a@b.c")]),
        (
            "Student,ID,SIS User ID,SIS Login ID,Section,a1 (99)\n    Points Possible,,,,,20\n"
            '"Doe, Ada",7,u7,ada,S1,\n',
            [("7", "Doe, Ada", "")],
        ),
        (
            "First name,Last name,ID number,Email address\nAda,Doe,,a@b.c\nBob,Ray,8,b@b.c\n",
            [("a@b.c", "Ada Doe", "a@b.c"), ("8", "Bob Ray", "b@b.c")],
        ),
    ],
    ids=["own", "Canvas", "Moodle"],
)
def test_a_roster_is_ours_or_a_systems_export(tmp_path: Path, table: str, people: list) -> None:
    (tmp_path / "r.csv").write_text(table, "utf-8")
    found = roster.read(tmp_path / "r.csv")
    assert [(each.id, each.name, each.email) for each in found] == people


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("name\nAda\n", "the column `id` is missing, it has: name"),
        ("id,name\n7,Ada\n7,Bob\n", "the id 7 stands in 2 lines"),
        ("id,name\n,Ada\n", "line 2: no id"),
        ("id,name,until\n7,Ada,tomorrow\n", "must look like 2026-11-20 23:59, got 'tomorrow'"),
        ("id,name\n7,Ada,8,9\n", "more cells than the header"),
        ("id,name\n", "it has no rows"),
    ],
)
def test_a_roster_says_what_is_wrong(tmp_path: Path, table: str, says: str) -> None:
    (tmp_path / "r.csv").write_text(table, "utf-8")
    with pytest.raises(TableError, match=says.replace("(", r"\(")):
        roster.read(tmp_path / "r.csv")


@pytest.mark.parametrize(
    ("hand_in", "whose"),
    [
        ("u1", "u1"),
        ("doeada_12_99", "u1"),  # Canvas
        ("Ada Doe_4711_assignsubmission_file", "u1"),  # Moodle
        ("x_u2_y", "u2"),
        ("Müller, Zoë", "u2"),
        ("secret name", "u3"),
        ("u3", None),  # the roster says what its hand-in is called
        ("Ada", None),
        ("Ann Lee", None),  # two of that name
    ],
)
def test_a_hand_in_is_given_to_whom_it_fits(hand_in: str, whose: str | None) -> None:
    people = [
        roster.Person("u1", "Ada Doe"),
        roster.Person("u2", "Zoe Muller"),
        roster.Person("u3", "Cy Ng", hand_in="secret name"),
        roster.Person("u4", "Ann Lee"),
        roster.Person("u5", "Lee, Ann"),
    ]
    found, left = roster.match(people, [hand_in])
    assert found == ({whose: hand_in} if whose else {}) and bool(left) == (whose is None)


def test_a_student_has_one_hand_in() -> None:
    found, left = roster.match([roster.Person("u1", "Ada Doe")], ["ada doe", "u1"])
    assert found == {"u1": "ada doe"} and left == ["u1: u1 has handed in ada doe already"]


# Lateness


@pytest.mark.parametrize(
    ("rule", "hours", "share"),
    [
        ("10% a day", 0, 0.0),
        ("10% a day", 1, 0.1),
        ("10% a day", 24, 0.1),
        ("10% a day", 25, 0.2),
        ("10% a day", 24 * 30, 1.0),
        ("5% an hour, at most 50%", 3, 0.15),
        ("5% an hour, at most 50%", 48, 0.5),
        ("12.5% a week", 200, 0.25),
    ],
)
def test_lateness_costs_what_the_lecturer_said(rule: str, hours: int, share: float) -> None:
    assert terms.penalty(rule).of(timedelta(hours=hours)) == pytest.approx(share)


@pytest.mark.parametrize("rule", ["", "10", "10% per day", "200% a day", "5% a day, at most 101%"])
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="penalty"):
        terms.penalty(rule)


def test_the_roster_goes_before_file_times_and_the_common_deadline(course: Path) -> None:
    table = "id,name,handed in,until\nada,Ada Doe,2026-11-21 10:00,\n"
    table += "12345,Bob Ray,,2026-11-30 12:00\ncy,Cy Ng,,\ndee,Dee Fox,,\n"
    (course / "times.csv").write_text(table)
    run(course, roster="times.csv")
    late = {row["id"]: row["late"] for row in rows(course / "graded" / "a1-class.csv")}
    assert late == {"ada": "10 h 1 min", "12345": "", "cy": "", "dee": ""}


# Tables


def test_a_formula_is_text_and_comes_back_as_it_was(tmp_path: Path) -> None:
    name = "=HYPERLINK(1)"
    tables.write(tmp_path / "t.csv", ["id", "points"], [{"id": name, "points": -1.5}])
    assert (tmp_path / "t.csv").read_text() == f"id,points\n'{name},-1.5\n"
    assert tables.read(tmp_path / "t.csv")[0]["id"] == name


def test_canvas_gets_back_its_own_columns(tmp_path: Path) -> None:
    table = "Student,ID,SIS User ID,SIS Login ID,Section,a1 (99)\nPoints Possible,,,,,20\n"
    (tmp_path / "r.csv").write_text(table + '"Doe, Ada",7,u7,ada,S1,\n')
    people = roster.read(tmp_path / "r.csv")
    assert lms.column("a1", people) == "a1 (99)" and lms.column("a11", people) == "a11"
    lms.canvas(tmp_path / "c.csv", "a1 (99)", 20.0, [(people[0], 15.5, "")])
    assert rows(tmp_path / "c.csv")[1] == dict(
        zip((*lms.CANVAS, "a1 (99)"), ("Doe, Ada", "7", "u7", "ada", "S1", "15.5"), strict=True)
    )


# Likeness


def answer(source: str) -> Cell:
    return Cell(1, "a1-dot-scores", True, source)


def scrambled(seed: int) -> str:
    """Twenty lines that nobody else writes."""
    draw = random.Random(seed)
    signs = [" + ", " - ", " * ", " @ ", " % ", " < ", " & ", ".", "[0], ", " if ", " for ", "("]
    return "\n".join("x" + "".join(f"{draw.choice(signs)}a" for _ in range(9)) for _ in range(20))


def test_a_renamed_copy_is_named_and_others_are_not() -> None:
    wrote = {f"s{n}": [answer(scrambled(n))] for n in range(6)}
    renamed = re.sub("x|a", "value", scrambled(3)).replace("0", "17")
    wrote["copy"] = [answer("# my own\n" + renamed.replace(" + ", "   +  "))]
    (pair,) = alike.alike(wrote, KNOWN)
    assert (pair.one, pair.other) == ("copy", "s3") and pair.share > 0.9
    assert pair.tasks[0].startswith("Task 2")


def test_what_the_book_gave_the_solution_says_or_the_class_wrote_is_no_likeness() -> None:
    same = scrambled(0)
    two = {"one": [answer(same)], "two": [answer(same)]}
    assert alike.alike(two, KNOWN) and not alike.alike(two, KNOWN, [same])
    assert not alike.alike({f"s{n}": [answer(same)] for n in range(9)}, KNOWN)
    given = next(iter(KNOWN.given.values()))
    assert not alike.alike({"one": [answer(given)], "two": [answer(given)]}, KNOWN)
    broken = [answer("def f(:\n  'open " + "(" * 99)]
    assert not alike.alike({"one": broken, "two": [answer("")]}, KNOWN)


def test_honest_answers_to_one_assignment_are_not_alike() -> None:
    """The right answers that the tests know, one for each task, in two sets."""
    from tests.helpers.assignments import listed

    sets = {}
    for n in range(2):
        found = [
            Cell(1, task, True, kinds["right"][n]["source"]) for task, kinds in listed("a1").items()
        ]
        sets[f"s{n}"] = found
    right = [cell.source for cell in marking.cells(SOLUTIONS / "a1.ipynb")]
    assert all(len(cells) > 5 for cells in sets.values())
    assert not alike.alike(sets, KNOWN, right)


def test_essays_are_compared_by_their_words() -> None:
    words = [f"word{n}" for n in range(60)]
    one = Cell(1, ESSAY, False, " ".join(words))
    other = Cell(1, ESSAY, False, "But " + ", ".join(words).upper())
    (pair,) = alike.alike({"one": [one], "two": [other]}, KNOWN)
    assert pair.tasks == ("Task 9: what does the experiment show?",)


def test_the_page_of_likeness_says_that_it_is_no_verdict() -> None:
    page = marking.compared([alike.Pair("<one>", "two", 0.5, 20, ("Task 2: x",))], KNOWN)
    assert "&lt;one&gt;" in page and "50%" in page and "before you think anything" in page
    assert "None." in marking.compared([], KNOWN)
