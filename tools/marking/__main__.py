"""`make marks`: from graded hand-ins to points for everyone in the roster.

Reads what `make grade` wrote, and writes beside it: `a1-read.csv`, a sheet for the tasks that a
person reads, to fill in; `a1-class.csv`, a line for each student; `a1-canvas.csv` and
`a1-moodle.csv` for a learning management system; `a1-alike.html`, hand-ins to compare. It puts
points and comments on the students' pages. Run it again whenever something has changed.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from attnbook.teach import records
from attnbook.teach.exhibit import clean
from attnbook.teach.handed_in import handed_in
from attnbook.teach.report import page, text
from attnbook.teach.submission import Reference, RefusedError, cells, reference
from tools.marking import lms, reading, roster, tables, terms
from tools.marking.alike import Pair, alike
from tools.marking.reading import Criteria, Read
from tools.marking.roster import Person
from tools.marking.tables import TableError
from tools.marking.terms import Penalty
from tools.notebooks import SOLUTIONS


@dataclass
class Line:
    """A student's points.

    Attributes:
        person: who it is.
        hand_in: the name of what was handed in, or "".
        points: title of a task -> points, or None where a person has not read it yet.
        late: how late it came.
        lost: points that lateness costs.
        notes: what a person should know.
        read: name of a task -> what a person gave.
    """

    person: Person
    hand_in: str
    points: dict[str, float | None] = field(default_factory=dict)
    late: timedelta = timedelta()
    lost: float = 0.0
    notes: list[str] = field(default_factory=list)
    read: dict[str, Read] = field(default_factory=dict)
    open: bool = False

    @property
    def total(self) -> float | None:
        """What counts, or None as long as something is missing."""
        given = [each for each in self.points.values() if each is not None]
        whole = not self.open and len(given) == len(self.points)
        return round(sum(given) - self.lost, 2) if whole else None


def line(
    person: Person, row: Mapping[str, str] | None, known: Reference, read: Mapping[str, Read]
) -> Line:
    """The points of one student, from a row of the grader's table; lateness comes later."""
    made = Line(person, row["student"] if row else "")
    made.points = {task.title: 0.0 for task in known.tasks}
    if row is None:
        made.notes.append("nothing was handed in")
        return made
    made.notes += [row["note"]] if row["note"] else []
    if not row["points"]:
        made.open = True
        return made
    for task in known.tasks:
        if row[task.name] != "read":
            made.points[task.title] = float(row[task.name])
            continue
        made.read[task.name] = read.get(task.name, Read())
        made.points[task.title] = total = made.read[task.name].total
        made.notes += [] if total is not None else [f"{reading.short(task)} is not read yet"]
    return made


def delay(made: Line, time: datetime | None, until: datetime | None, rule: Penalty) -> None:
    """Take off what lateness costs; a deadline of the student's own goes first."""
    made.late = terms.lateness(made.person.handed_in or time, made.person.until or until)
    share = rule.of(made.late)
    made.lost = share * sum(each or 0.0 for each in made.points.values())
    if made.late:
        cost = f", {100 * share:g}% of the points are lost" if share else ""
        made.notes.append(f"{terms.told(made.late)} late{cost}")


def comment(made: Line, known: Reference) -> str:
    """A student's result in one line, tasks by their names."""
    given = (f"{task}: {points or 0:g}" for task, points in made.points.items())
    most = {task.title: task.points for task in known.tasks}
    parts = [f"{said} of {most[task]:g}" for said, task in zip(given, most, strict=True)]
    parts += [read.comment for read in made.read.values() if read.comment]
    return ". ".join(parts + made.notes)


def fill(out: Path, known: Reference, made: Line, asked: Criteria) -> None:
    """Put points and comments of a person on the student's page, in the places left for them."""
    path = out / known.name / f"{made.hand_in}.html"
    if not made.hand_in or not path.is_file():
        return
    most = sum(task.points for task in known.tasks)
    total = "" if made.total is None else f"<strong>{made.total:g} of {most:g} points.</strong> "
    said = {"whole": f"<p>{total}{text('. '.join(made.notes))}"}
    for name, read in made.read.items():
        rows = "".join(
            f"<tr><th scope=row>{text(each.said)}<td class=number>{points:g} of {each.points:g}"
            for each, points in zip(asked[name], read.points, strict=False)
            if points is not None
        )
        said[f"read-{name}"] = f"<table>{rows}</table>" + f"<pre>{text(read.comment)}</pre>"
    source = path.read_text("utf-8")
    for place, words in said.items():
        slot = re.compile(rf'<section id="{re.escape(place)}">.*?</section>', re.DOTALL)
        section = f'<section id="{place}">{words}</section>'
        source = slot.sub(lambda _, section=section: section, source)
    records.write(path, source)


def compared(pairs: Sequence[Pair], known: Reference) -> str:
    """The page of hand-ins that are alike."""
    rows = "".join(
        f"<tr><th scope=row>{_link(each.one, known)}<td>{_link(each.other, known)}"
        f"<td class=number>{each.share:.0%}<td class=number>{each.runs}"
        f"<td>{text(', '.join(task.partition(':')[0] for task in each.tasks))}"
        for each in pairs
    )
    head = "<tr><th>One<th>Other<th class=number>share<th class=number>runs<th>Tasks"
    said = (
        "<p>Read both before you think anything: short answers to one question are alike, and"
        " people may learn together. Counted are runs of eight tokens that few others wrote; names,"
        " numbers, comments, what the book gave and what its solution says are left out. The share"
        " is of the shorter work."
    )
    table = f"<table>{head}{rows}</table>" if pairs else "<p>None."
    return page(f"{known.name}: alike", f"<h1>{text(known.name)}: alike</h1>{said}{table}")


def _link(student: str, known: Reference) -> str:
    name = f"<bdi>{text(student)}</bdi>"
    return f'<a href="{quote(f"{known.name}/{student}.html")}">{name}</a>'


def wrote(notebooks: Mapping[str, Path]) -> dict[str, list]:
    """The cells of each notebook that is one."""
    found = {}
    for student, path in notebooks.items():
        try:
            found[student] = cells(path)
        except RefusedError:
            continue
    return found


def summary(path: Path, lines: Sequence[Line], known: Reference) -> None:
    """Write the table of the class."""
    most = sum(task.points for task in known.tasks)
    titles = [task.title for task in known.tasks]
    header = ["id", "name", "hand-in", "late", *titles, "lost", "total", "of", "note"]
    rows = [
        {"id": each.person.id, "name": each.person.name, "hand-in": each.hand_in}
        | {"late": terms.told(each.late), "lost": round(each.lost, 2), "of": most}
        | {task: "" if got is None or each.open else got for task, got in each.points.items()}
        | {"total": "" if each.total is None else each.total, "note": "; ".join(each.notes)}
        for each in lines
    ]
    tables.write(path, header, rows)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools.marking", description=__doc__)
    parser.add_argument("assignment", help="as a1")
    parser.add_argument("submissions", type=Path, help="the folder that was graded")
    parser.add_argument("--roster", type=Path, required=True, help="a CSV file with id and name")
    parser.add_argument("--out", type=Path, default=Path("graded"), help="where grades are")
    parser.add_argument("--solutions", type=Path, default=SOLUTIONS)
    parser.add_argument("--criteria", type=Path, help="TOML; else the solutions' criteria.toml")
    parser.add_argument("--deadline", help="as '2026-11-20 23:59'; the roster may have others")
    parser.add_argument("--penalty", default="0% a day", help="as '10%% a day, at most 50%%'")
    parser.add_argument("--column", help="the assignment's column in the gradebook; else its name")
    return parser.parse_args(argv)


def mark(asked: argparse.Namespace) -> list[str]:
    """Write all tables; returns what a person has to mend.

    Raises:
        TableError: if roster, sheet, criteria or terms cannot be used.
    """
    known = reference(asked.solutions / f"{asked.assignment}.ipynb")
    try:
        rule = terms.penalty(asked.penalty)
        until = roster.moment(asked.deadline) if asked.deadline else None
    except ValueError as error:
        raise TableError(str(error)) from None
    people = roster.read(asked.roster)
    wanted = reading.criteria(asked.criteria or asked.solutions / "criteria.toml", known)
    rows = {row["student"]: row for row in tables.read(asked.out / f"{known.name}.csv")}
    whose, left = roster.match(people, rows)
    base = asked.out / known.name
    to_read = base.with_name(f"{known.name}-read.csv")
    readers = [each for each in people if _to_read(rows.get(whose.get(each.id, "")), known)]
    if added := reading.sheet(to_read, wanted, known, readers) if readers else 0:
        print(f"{to_read}: {added} more to read; fill it in, and run this again")
    given = reading.given(to_read, wanted, known, people) if to_read.exists() else {}
    files = handed_in(asked.submissions, known).notebooks
    lines = []
    for person in people:
        row = rows.get(whose.get(person.id, ""))
        made = line(person, row, known, given.get(person.id, {}))
        file = files.get(made.hand_in)
        time = datetime.fromtimestamp(file.lstat().st_mtime).astimezone() if file else None
        delay(made, time, until, rule)
        fill(asked.out, known, made, wanted)
        lines.append(made)
    summary(base.with_name(f"{known.name}-class.csv"), lines, known)
    name = lms.column(asked.column or known.name, people)
    totals = [(e.person, e.total, comment(e, known)) for e in lines if e.total is not None]
    most = sum(task.points for task in known.tasks)
    lms.canvas(base.with_name(f"{known.name}-canvas.csv"), name, most, totals)
    lms.moodle(base.with_name(f"{known.name}-moodle.csv"), name, totals)
    right = [cell.source for cell in cells(asked.solutions / f"{known.name}.ipynb")]
    pairs = alike(wrote(files), known, right)
    records.write(base.with_name(f"{known.name}-alike.html"), compared(pairs, known))
    ungraded = sorted(set(files) - set(rows))
    left += [f"{student}: not graded yet, run make grade" for student in ungraded]
    print(f"{len(totals)} of {len(people)} have a total; {len(pairs)} pairs are alike")
    print(f"{base}-class.csv, -canvas.csv, -moodle.csv, -alike.html")
    return left


def _to_read(row: Mapping[str, str] | None, known: Reference) -> bool:
    return bool(row) and any(row[task.name] == "read" for task in known.tasks)


def main(argv: list[str] | None = None) -> None:
    try:
        left = mark(arguments(argv))
    except (TableError, OSError) as error:
        sys.exit(clean(str(error)))
    if left:
        sys.exit(clean("\n".join(left)))


if __name__ == "__main__":
    main()
