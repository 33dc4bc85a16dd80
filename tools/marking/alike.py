"""Hand-ins that are alike: a list to look at, not a verdict.

A student's own cells are cut into runs of `RUN` tokens, after comments, layout, names and numbers
are taken away, so that a renamed variable hides nothing. What the book gave, what the solution
also says, and what a good part of the class wrote says nothing; what is left is counted.
"""

import keyword
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from attnbook.teach.submission import Cell, Reference, work

RUN = 8  # tokens, or words of a text
COMMON = 0.1  # the share of the class that makes a run common, if it is more than three
LEAST, SHARE = 12, 0.4  # runs, and the share of the shorter work, from which two are named
TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\"[^\"\n]*\"|'[^'\n]*'|\S")
COMMENT = re.compile(r"#[^\n]*|\"\"\".*?\"\"\"", re.DOTALL)


@dataclass(frozen=True)
class Pair:
    """Two students, what share of the shorter work's rare runs both have, and how many."""

    one: str
    other: str
    share: float
    runs: int
    tasks: tuple[str, ...]


def normal(source: str, code: bool) -> list[str]:
    """The tokens of a cell: names, numbers and strings are alike, or a text's words."""
    if not code:
        return re.findall(r"\w+", source.casefold())
    return [
        token if keyword.iskeyword(token) else "name" if token[0].isidentifier() else
        "0" if token[0].isdigit() else "text" if token[0] in "\"'" else token
        for token in TOKEN.findall(COMMENT.sub("", source))
    ]  # fmt: skip


def runs(source: str, code: bool) -> set[tuple[str, ...]]:
    """All runs of tokens of a cell."""
    tokens = normal(source, code)
    return {tuple(tokens[n : n + RUN]) for n in range(len(tokens) - RUN + 1)}


def alike(
    wrote: Mapping[str, list[Cell]], known: Reference, solutions: Iterable[str] = ()
) -> list[Pair]:
    """The pairs of students whose own cells have much in common that others lack, most first.

    Args:
        wrote: student -> the cells of the notebook.
        known: the assignment, whose given cells count for nothing.
        solutions: texts of right answers, which count for nothing either.
    """
    given = set[tuple[str, ...]]()
    for source in (*known.given.values(), *(task.check for task in known.tasks), *solutions):
        given |= runs(source, True) | runs(source, False)
    titles = {task.name: task.title for task in known.tasks}
    where: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)  # run -> student -> task
    for student, cells in wrote.items():
        for task, theirs in work(cells, known).items():
            for cell in theirs:
                for run in runs(cell.source, cell.code) - given:
                    where[run].setdefault(student, titles[task])
    common = max(3, COMMON * len(wrote))
    own, shared = defaultdict[str, int](int), defaultdict[tuple[str, str], list[str]](list)
    for who in where.values():
        if len(who) <= common:
            for student in who:
                own[student] += 1
            for one, other in combinations(sorted(who), 2):
                shared[one, other].append(who[one])
    pairs = [
        Pair(
            one, other, len(tasks) / min(own[one], own[other]), len(tasks), tuple(sorted({*tasks}))
        )
        for (one, other), tasks in shared.items()
        if len(tasks) >= LEAST
    ]
    found = [pair for pair in pairs if pair.share >= SHARE]
    return sorted(found, key=lambda pair: (-pair.share, -pair.runs, pair.one, pair.other))
