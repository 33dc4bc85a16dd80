"""Tables of points for a learning management system, in the columns that its import reads.

Canvas: name, ids, section and a column for each assignment, with "Points Possible" in the second
line (Instructor Guide, "How do I import grades in the Gradebook?"). Moodle: any columns, of which
one names the user and others are mapped to a grade and its feedback when they are imported
(docs.moodle.org, "Grade import"). A student without a total is left out: an import changes nothing
for whoever is not in it.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from tools.marking import tables
from tools.marking.roster import CANVAS, Person

Totals = Sequence[tuple[Person, float, str]]  # of whom, points, and a comment


def column(name: str, people: Sequence[Person]) -> str:
    """The assignment's column: as the roster has it, with the system's number, else the name."""
    known = people[0].row if people else {}
    return next((has for has in known if re.fullmatch(rf"{re.escape(name)}( \(\d+\))?", has)), name)


def canvas(path: Path, name: str, most: float, totals: Totals) -> None:
    """Write Canvas's table."""
    rows: list[dict[str, object]] = [{"Student": "    Points Possible", name: most}]
    for person, points, _ in totals:
        own = {key: person.row.get(key, "") for key in CANVAS}
        if "Student" not in person.row:
            own |= {"Student": person.name, "SIS Login ID": person.id}
        rows.append({**own, name: points})
    tables.write(path, [*CANVAS, name], rows)


def moodle(path: Path, name: str, totals: Totals) -> None:
    """Write Moodle's table."""
    header = ["ID number", "Email address", "Full name", name, f"{name} (feedback)"]
    rows = [
        dict(zip(header, (who.id, who.email, who.name, points, said), strict=True))
        for who, points, said in totals
    ]
    tables.write(path, header, rows)
