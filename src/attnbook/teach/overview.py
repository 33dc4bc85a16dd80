"""A page for the class: results of the tasks, common mistakes, and who needs a human grader."""

import re
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import quote

from attnbook.teach.report import NOT_ANSWERED, Graded, Mark, page, text
from attnbook.teach.submission import Reference, Task

COMMON = 5  # mistakes listed per task
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?|\b(nan|inf)\b")


def overview(
    graded: Sequence[Graded],
    known: Reference,
    walls: Collection[str],
    strays: Sequence[str] = (),
    stood: str = "",
) -> str:
    """The page of a class.

    Args:
        graded: the results of all students.
        known: the assignment.
        walls: the expected walls.
        strays: names of files that belong to no student.
        stood: a line about the walls that held, and what they were made of.
    """
    graded = sorted(graded, key=lambda each: each.student)
    judged = [each for each in graded if each.marks]
    less = f", {len(judged)} of them graded" if len(judged) < len(graded) else ""
    parts = [
        f"<h1>{text(known.name)}: the class</h1>",
        f"<p><strong>{_many(len(graded), 'hand-in')}</strong>{less}.",
        _tasks(judged, known),
        "<h2>For a person</h2>",
        *(_for_a_person(graded, known, walls, strays) or ["<p>Nothing."]),
        *_mistakes(judged, known),
        "<h2>All hand-ins</h2>",
        _students(graded, known),
        f"<p class=quiet>{text(stood)}" * bool(stood),
    ]
    return page(f"{known.name}: the class", "\n".join(part for part in parts if part))


def _tasks(judged: Sequence[Graded], known: Reference) -> str:
    """Mean and median of each task, and of all tasks that were graded for everyone."""
    if not judged:
        return ""
    rows = []
    for task in known.tasks:
        got = [mark.points for mark in _marks(judged, task) if mark.points is not None]
        read = task.reader and "<td class=number colspan=2>a person reads it"
        rows.append((text(task.title), task.points, read or _middle(got)))
    whole = sum(task.points for task in known.tasks if not task.reader)
    rows.append(("<strong>Together</strong>", whole, _middle([each.points for each in judged])))
    return (
        "<table><tr><th>Task<th class=number>of<th class=number>mean<th class=number>median"
        + "".join(
            f"<tr><th scope=row>{title}<td class=number>{most:g}{middle}"
            for title, most, middle in rows
        )
        + "</table>"
    )


def _middle(got: Sequence[float]) -> str:
    if not got:
        return "<td class=number>–<td class=number>–"
    return f"<td class=number>{statistics.mean(got):.2f}<td class=number>{statistics.median(got):g}"


def _for_a_person(
    graded: Sequence[Graded], known: Reference, walls: Collection[str], strays: Sequence[str]
) -> list[str]:
    parts = []
    for task in (task for task in known.tasks if task.reader):
        open_ = [each for each in graded if any(m.points is None for m in _marks([each], task))]
        blank = [
            each for each in graded if any(m.message == NOT_ANSWERED for m in _marks([each], task))
        ]
        if open_:
            parts.append(f"<h3>To read: {text(task.title)} ({task.points:g} points)</h3>")
            parts.append(_names(open_, known))
        if blank:
            parts.append(f"<p>Not answered by {_links(blank, known)}.")
    for title, who in (
        ("Without a result", [each for each in graded if each.failed]),
        ("Refused", [each for each in graded if each.refused]),
        ("To look at", [each for each in graded if each.marks and each.notes(walls)]),
    ):
        if who:
            rows = "".join(
                f"<tr><th scope=row>{_link(each, known)}<td>{text('; '.join(each.notes(walls)))}"
                for each in who
            )
            parts.append(f"<h3>{title}</h3><table>{rows}</table>")
    if strays:
        parts.append("<h3>Files that are no student's</h3><p>" + text(", ".join(strays)))
    return parts


def _mistakes(judged: Sequence[Graded], known: Reference) -> list[str]:
    """Messages for wrong answers, with counts; those that differ only in numbers count as one."""
    parts = []
    for task in (task for task in known.tasks if not task.reader):
        alike: dict[str, list[tuple[Graded, str]]] = defaultdict(list)
        for each in judged:
            for mark in _marks([each], task):
                if mark.points != mark.most:
                    alike[NUMBER.sub("#", mark.message)].append((each, mark.message))
        if not alike:
            continue
        often = sorted(alike.values(), key=len, reverse=True)
        rows = "".join(
            f"<tr><td class=number>{len(who)}<td><pre>{text(who[0][1])}</pre>"
            f"<p class=quiet>{_links([each for each, _ in who], known)}"
            for who in often[:COMMON]
        )
        wrong = sum(map(len, often))
        parts.append(f"<h3>{text(task.title)} ({wrong} of {len(judged)} wrong)</h3>")
        parts.append(f"<table>{rows}</table>")
        if rest := sum(map(len, often[COMMON:])):
            parts.append(f"<p class=quiet>And {rest} more.")
    return ["<h2>The commonest mistakes</h2>", *parts] if parts else []


def _students(graded: Sequence[Graded], known: Reference) -> str:
    rows = "".join(
        f"<tr><th scope=row>{_link(each, known)}<td>{text(_short(each))}" for each in graded
    )
    return f"<table>{rows}</table>"


def _short(each: Graded) -> str:
    return "no result" if each.failed else "refused" if each.refused else each.result


def _marks(graded: Iterable[Graded], task: Task) -> list[Mark]:
    return [mark for each in graded for mark in each.marks if mark.task == task.name]


def _names(who: Sequence[Graded], known: Reference) -> str:
    return f"<ul class=names>{''.join(f'<li>{_link(each, known)}' for each in who)}</ul>"


def _links(who: Sequence[Graded], known: Reference) -> str:
    return ", ".join(_link(each, known) for each in who)


def _link(each: Graded, known: Reference) -> str:
    name = f"<bdi>{text(each.student)}</bdi>"
    where = quote(f"{known.name}/{each.student}.html")
    return name if each.failed else f'<a href="{where}">{name}</a>'


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
