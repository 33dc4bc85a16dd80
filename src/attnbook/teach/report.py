"""The results of a grading run: marks, a page for each student, a table for the class."""

import base64
import csv
import hashlib
import html
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from attnbook.teach.exhibit import clean
from attnbook.teach.submission import Reference

LONGEST = 2000  # characters of a message
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # prefixes that a spreadsheet would evaluate
NOT_ANSWERED = "not answered"
STYLE = """
:root { color-scheme: light dark; --quiet: #666; --line: #8885; --paper: #8881 }
@media (prefers-color-scheme: dark) { :root { --quiet: #aaa } }
* { box-sizing: border-box; overflow-wrap: anywhere }
body { font: 16px/1.5 system-ui, sans-serif; margin: 1em auto; max-width: 52em; padding: 0 1em }
h1 { font-size: 1.5em; line-height: 1.2 }
h2 { font-size: 1.15em; margin: 2em 0 0.5em; border-top: 1px solid var(--line); padding-top: 0.7em }
h3 { font-size: 1em; margin: 1em 0 0.2em }
table { border-collapse: collapse }
td, th { text-align: left; vertical-align: top; padding: 0.3em 0.8em 0.3em 0; font-weight: normal }
tr + tr > * { border-top: 1px solid var(--line) }
th[scope=row] { min-width: 5em }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
pre { white-space: pre-wrap; margin: 0.3em 0; font: inherit }
.code, .printed { font: 14px/1.4 ui-monospace, monospace; background: var(--paper) }
.theirs { border-left: 3px solid var(--line); padding: 0.2em 0.7em }
.printed { padding: 0.2em 0.7em; margin: 0.3em 0 }
.where, .cut, .quiet { color: var(--quiet); font-size: 0.85em; margin: 0.6em 0 0 }
.names { columns: 14em; margin: 0.3em 0; padding-left: 1.2em }
img { max-width: 100%; height: auto; background: #fff }
summary { cursor: pointer }
"""
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
ALLOWED = (  # embedded pictures and this style; nothing else, and no script
    f"default-src 'none'; img-src data:; style-src 'sha256-{STYLE_HASH}';"
    " base-uri 'none'; form-action 'none'"
)


@dataclass
class Mark:
    """The mark of a task: points out of `most`, and a message to the student."""

    task: str
    points: float | None  # None: a person has to grade it
    most: float
    message: str


@dataclass
class Graded:
    """A student's marks, or why there are none.

    Attributes:
        student: the name.
        marks: one for each task.
        refused: what is wrong with the notebook.
        walls: the walls that stood while the student's code ran.
        seconds: the running time.
        note: remarks for a person, such as which file was graded.
        failed: why the grader failed, which is not the student's fault.
        shown: task -> the student's work as HTML; only on the page.
    """

    student: str
    marks: list[Mark]
    refused: str
    walls: list[str]
    seconds: float
    note: str = ""
    failed: str = ""
    shown: dict[str, str] = field(default_factory=dict)

    @property
    def points(self) -> float:
        """Points of the automatically graded tasks."""
        return float(sum(mark.points or 0 for mark in self.marks))

    @property
    def most(self) -> float:
        """The most points that these tasks can give."""
        return float(sum(mark.most for mark in self.marks if mark.points is not None))

    @property
    def unread(self) -> float:
        """Points of the tasks that a person grades."""
        return float(sum(mark.most for mark in self.marks if mark.points is None))

    @property
    def result(self) -> str:
        """The marks in words."""
        if self.failed or self.refused:
            return self.failed or self.refused
        by_hand = f", and {self.unread:g} that a person gives" if self.unread else ""
        return f"{self.points:g} of {self.most:g} points{by_hand}"

    def notes(self, walls: Collection[str]) -> list[str]:
        """What a person should look at, besides the answers that need reading.

        Args:
            walls: the expected walls.
        """
        missing = [wall for wall in walls if wall not in self.walls]
        open_ = "without walls: " + ", ".join(missing) if missing and self.marks else ""
        return [said for said in (self.failed, self.refused, open_, self.note) if said]


def short_message(text: str) -> str:
    """A message, shortened and safe to print."""
    return clean(text[:LONGEST]).strip()


def page(title: str, body: str) -> str:
    """An HTML page that makes no requests and runs no scripts."""
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{ALLOWED}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n{body}\n</html>\n"
    )


def text(words: str) -> str:
    """Text as HTML."""
    return html.escape(clean(words))


def feedback(known: Reference, graded: Graded) -> str:
    """A page for a student: the mark of each task with its reason, and the work handed in."""
    titles = {task.name: task.title for task in known.tasks}
    title = f"{known.name}: {graded.student}"
    parts = [f"<h1>{text(known.name)}: <bdi>{text(graded.student)}</bdi></h1>"]
    if graded.failed or graded.refused:
        parts.append("<p><strong>Not graded.</strong> " + text(graded.result))
    else:
        parts.append(f"<p><strong>{text(graded.result)}.</strong>")
    parts.append('<section id="whole"></section>')  # filled by `make marks`, like those below
    if graded.note:
        parts.append(f"<p>{text(graded.note)}.")
    if graded.marks:
        rows = "".join(
            f"<tr><th scope=row>{text(titles.get(mark.task, mark.task))}"
            f"<td class=number>{_points(mark)}"
            for mark in graded.marks
        )
        parts.append(f"<table>{rows}</table>")
    for mark in graded.marks:
        parts.append(f"<h2>{text(titles.get(mark.task, mark.task))} ({_points(mark)})</h2>")
        if mark.points is None:
            parts.append(f'<section id="read-{text(mark.task)}"></section>')
        if mark.message:
            parts.append(f"<pre>{text(mark.message)}</pre>")
        if shown := graded.shown.get(mark.task):
            wanted = " open" * (mark.points != mark.most)
            parts.append(f"<details{wanted}><summary>What was handed in</summary>{shown}</details>")
        elif mark.points is None:
            parts.append("<p>Nothing stands here. Is the answer at another task?")
    return page(title, "\n".join(parts))


def _points(mark: Mark) -> str:
    given = "a person gives up to" if mark.points is None else f"{mark.points:g} of"
    return f"{given} {mark.most:g}"


def table(graded: Sequence[Graded], known: Reference, walls: Collection[str]) -> str:
    """The table as CSV, a row for each student: points of graded tasks, and tasks left to read.

    If the grader failed, through no fault of the student, the cells are empty, not 0.
    """
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    tasks = [task.name for task in known.tasks]
    writer.writerow(["student", "points", "of", "to read", *tasks, "note", "seconds"])
    for each in sorted(graded, key=lambda each: each.student):
        by_task = {mark.task: "read" if mark.points is None else mark.points for mark in each.marks}
        points = [by_task.get(task, 0) for task in tasks]
        most = each.most if each.marks else sum(task.points for task in known.tasks)
        row = [each.points, most, each.unread, *points]
        row = [""] * len(row) if each.failed else row
        row = [each.student, *row, "; ".join(each.notes(walls)), each.seconds]
        writer.writerow([f"'{x}" if str(x).startswith(FORMULA) else x for x in row])
    return rows.getvalue()
