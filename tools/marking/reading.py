"""The marks of a person for tasks that no check can judge, by criteria, in a sheet to fill in."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from attnbook.teach.submission import Reference, Task
from tools.marking import tables
from tools.marking.roster import Person
from tools.marking.tables import TableError

Criteria = dict[str, list["Criterion"]]  # name of a task -> its criteria


@dataclass(frozen=True)
class Criterion:
    """What a person looks for, the points it is worth, and its column in a sheet."""

    points: float
    said: str
    column: str


@dataclass
class Read:
    """What a person gave for a task: points by criterion, None where nothing is entered yet."""

    points: list[float | None] = field(default_factory=list)
    comment: str = ""

    @property
    def total(self) -> float | None:
        """All points, or None as long as one is missing."""
        given = [each for each in self.points if each is not None]
        return sum(given) if given and len(given) == len(self.points) else None


def criteria(path: Path, known: Reference) -> Criteria:
    """The criteria of an assignment's reading tasks, from a TOML file.

    Raises:
        TableError: if a task has none, or they are not worth the task's points together.
    """
    try:
        said = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"{path}: {error}") from None
    found, wrong = Criteria(), []
    for task in (task for task in known.tasks if task.reader):
        rows = said.get(task.name, [])
        found[task.name] = [
            Criterion(float(row["points"]), row["said"], _column(task, n, row))
            for n, row in enumerate(rows, 1)
        ]
        whole = sum(each.points for each in found[task.name])
        if whole != task.points:
            wrong.append(
                f"{path}: the criteria of {task.name} must be worth {task.points:g} points, "
                f"got {whole:g}"
            )
    if wrong:
        raise TableError("\n".join(wrong))
    return found


def _column(task: Task, number: int, row: Mapping[str, object]) -> str:
    return f"{short(task)}.{number} (up to {row['points']}): {row['said']}"


def short(task: Task) -> str:
    """The task's name without its subject, as "Task 9"."""
    return task.title.partition(":")[0]


def comment(task: Task) -> str:
    """The column for a person's words to a student."""
    return f"{short(task)}: comment"


def sheet(path: Path, asked: Criteria, known: Reference, people: Iterable[Person]) -> int:
    """Write the sheet, or add those who are not in it yet; returns how many were added."""
    header = ["id", "name"]
    for task in known.tasks:
        if task.name in asked:
            header += [*(each.column for each in asked[task.name]), comment(task)]
    rows = tables.read(path) if path.exists() else []
    there = {row.get("id") for row in rows}
    added = [{"id": each.id, "name": each.name} for each in people if each.id not in there]
    if added:
        tables.write(
            path, header if not rows else [n for n in rows[0] if n != "line"], rows + added
        )
    return len(added)


def given(
    path: Path, asked: Criteria, known: Reference, people: Iterable[Person]
) -> dict[str, dict[str, Read]]:
    """What a person entered: id -> task -> points and comment.

    Raises:
        TableError: with a line for each missing column, unknown or double id, and impossible mark.
    """
    rows, ids = tables.read(path), {person.id for person in people}
    columns = [each.column for task in asked.values() for each in task]
    if missing := [column for column in ("id", *columns) if column not in rows[0]]:
        raise TableError("\n".join(f"{path}: no column {column!r}" for column in missing))
    found, wrong = dict[str, dict[str, Read]](), list[str]()
    for row in rows:
        where = f"{path}, line {row['line']}"
        if row["id"] not in ids:
            wrong.append(f"{where}: the id {row['id']!r} is not in the roster")
        elif row["id"] in found:
            wrong.append(f"{where}: the id {row['id']!r} stands in a line above")
        found[row["id"]] = marks = dict[str, Read]()
        for task in (task for task in known.tasks if task.name in asked):
            marks[task.name] = read = Read(comment=row.get(comment(task), ""))
            for each in asked[task.name]:
                try:
                    read.points.append(_points(row[each.column], each.points))
                except ValueError as error:
                    wrong.append(f"{where}, {each.column!r}: {error}")
    if wrong:
        raise TableError("\n".join(wrong))
    return found


def _points(cell: str, most: float) -> float | None:
    if not cell:
        return None
    try:
        points = float(cell.replace(",", "."))
    except ValueError:
        raise ValueError(f"points must be a number, got {cell!r}") from None
    if not 0 <= points <= most:
        raise ValueError(f"points must be from 0 to {most:g}, got {cell}")
    return points
