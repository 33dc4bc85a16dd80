"""The class: who is in it, and which hand-in is whose."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import permutations
from pathlib import Path

from tools.marking import tables
from tools.marking.tables import TableError

# Columns of tables that learning management systems write -> ours. Moodle may write two for a name.
COLUMNS = {
    "id": ("id", "ID number", "ID", "Identifier", "Username"),
    "name": ("name", "Student", "Full name", "First name", "Last name", "Surname"),
    "email": ("email", "Email address"),
    "hand-in": ("hand-in",),
    "handed in": ("handed in",),
    "until": ("until",),
}
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS = "points possible"  # the second line of Canvas's table is no student


@dataclass
class Person:
    """A line of the roster.

    Attributes:
        id: what the roster knows the student by.
        name: of the student.
        email: or "".
        hand_in: the name under which the grader knows the student, or "".
        handed_in: when it was handed in, if the roster says so.
        until: a deadline of the student's own.
        row: the line, with the columns of the system that wrote it.
    """

    id: str
    name: str
    email: str = ""
    hand_in: str = ""
    handed_in: datetime | None = None
    until: datetime | None = None
    row: dict[str, str] = field(default_factory=dict)


def read(path: Path) -> list[Person]:
    """The roster: columns `id` and `name`, and perhaps `email`, `hand-in`, `handed in`, `until`; or
    a gradebook as Canvas or Moodle exports it.

    Raises:
        TableError: with a line for each missing column, double id, and time that is none.
    """
    rows = [row for row in tables.read(path) if POINTS not in next(iter(row.values())).lower()]
    names = rows[0] if rows else {}
    has = {ours: [name for name in theirs if name in names] for ours, theirs in COLUMNS.items()}
    if missing := [name for name in ("id", "name") if not has[name]]:
        wanted = " and ".join(f"`{name}`" for name in missing)
        raise TableError(f"{path}: the column {wanted} is missing, it has: {', '.join(names)}")
    found, wrong = [], list[str]()
    for row in rows:
        where = f"{path}, line {row['line']}"
        got = {ours: row[theirs[0]] if theirs else "" for ours, theirs in has.items()}
        if "Student" not in row and "name" not in row and "Full name" not in row:
            got["name"] = " ".join(row[part] for part in has["name"])
        if not got["id"] and got["email"]:  # Moodle's ID number is often empty
            got["id"] = got["email"]
        if not got["id"]:
            wrong.append(f"{where}: no id")
        person = Person(got["id"], got["name"], got["email"], got["hand-in"], row=row)
        try:
            person.handed_in = moment(got["handed in"]) if got["handed in"] else None
            person.until = moment(got["until"]) if got["until"] else None
        except ValueError as error:
            wrong.append(f"{where}: {error}")
        found.append(person)
    for name, number in Counter(person.id for person in found).items():
        if number > 1:
            wrong.append(f"{path}: the id {name} stands in {number} lines")
    if wrong:
        raise TableError("\n".join(wrong))
    return found


def moment(text: str) -> datetime:
    """A time as 2026-11-20 23:59 or 2026-11-20T23:59+01:00; without a zone, of this machine.

    Raises:
        ValueError: if it is no such time.
    """
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise ValueError(f"a time must look like 2026-11-20 23:59, got {text!r}") from None


def match(people: Iterable[Person], hand_ins: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Whose each hand-in is.

    The roster's column `hand-in` decides; else the id, as a whole or between underscores (as Canvas
    and Moodle name files); else the name, in any order of its words. What fits two is nobody's.

    Returns:
        id -> hand-in, and a sentence for each hand-in that was given to nobody.
    """
    people, found, left = list(people), dict[str, str](), list[str]()
    for hand_in in sorted(hand_ins):
        fits = _fits(people, hand_in)
        if len(fits) == 1 and fits[0].id not in found:
            found[fits[0].id] = hand_in
        elif not fits:
            left.append(f"{hand_in}: nobody in the roster; a column `hand-in` can say whose it is")
        elif len(fits) > 1:
            left.append(f"{hand_in}: it fits {', '.join(person.id for person in fits)}")
        else:
            left.append(f"{hand_in}: {fits[0].id} has handed in {found[fits[0].id]} already")
    return found, left


def _fits(people: list[Person], hand_in: str) -> list[Person]:
    parts = hand_in.split("_")
    said = [person for person in people if person.hand_in == hand_in]
    free = [person for person in people if not person.hand_in]
    whole = [person for person in free if person.id == hand_in or person.email == hand_in]
    number = [person for person in free if person.id in parts]
    named = [person for person in free if _letters(parts[0]) in _orders(person.name)]
    return next((each for each in (said, whole, number, named) if each), [])


def _orders(name: str) -> set[str]:
    """The letters of a name, with its words in every order."""
    words = [letters for word in re.split(r"[\s,]+", name) if (letters := _letters(word))]
    return {"".join(order) for order in permutations(words[:5])} if words else set()


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if letter.isalnum())
