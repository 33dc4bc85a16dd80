"""What a grading run makes of files, essays and a class: nothing is lost, nothing of it runs."""

import base64
import csv
import importlib
import io
import json
import linecache
import os
import random
import re
import socket
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from attnbook.teach import exhibit, grade, records, report, sitting
from attnbook.teach.exhibit import Exhibit, harmless
from attnbook.teach.handed_in import HandedIn, handed_in
from attnbook.teach.overview import overview
from attnbook.teach.report import Graded, Mark, feedback, table
from attnbook.teach.student import Nursery
from attnbook.teach.submission import Cell, cells, reference, work
from attnbook.teach.walls import WALLS as ALL_WALLS
from attnbook.teach.walls import Stood
from attnbook.teach.wire import GoneError, Peer, RaisedError
from tests.helpers.assignments import needed
from tools.notebooks import BOOK

SOLUTIONS = needed()
KNOWN = reference(SOLUTIONS / "a1.ipynb")
ESSAY, CHECK, TASK = "a1-bottleneck", "a1-check-dot-scores", "a1-dot-scores"
WALLS = ("files",)
ARGUMENTS = [f"--solutions={SOLUTIONS}", "a1"]


def notebook(
    changed: Mapping[str, str] = MappingProxyType({}), answered: int = 8
) -> dict[str, Any]:
    """A student's notebook, in which the first tasks are answered."""
    nb = json.loads((BOOK / "assignments" / "a1.ipynb").read_text("utf-8"))
    for cell in nb["cells"]:
        cell["source"] = "".join(cell["source"])
        if name(cell) in changed:
            cell["source"] = changed[name(cell)]
        elif "    raise NotImplementedError()" in cell["source"] and answered:
            cell["source"], answered = "pass", answered - 1
    return nb


def name(cell: dict[str, Any]) -> str:
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def text(source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source, **more}


def code(source: str, *outputs: Any) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": list(outputs)}


def store(path: Path, nb: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(nb))
    return path


def found_in(folder: Path, files: dict[str, int]) -> HandedIn:
    """What is seen of files, each with so many answers, and each newer than the one before."""
    for when, (file, answered) in enumerate(files.items()):
        path = store(folder / file, notebook(answered=answered))
        os.utime(path, (when, when))
    return handed_in(folder, KNOWN)


@pytest.mark.parametrize(
    ("files", "graded", "passed"),
    [
        ({"ada/a1-Copy1.ipynb": 0, "ada/a1.ipynb": 8}, "ada/a1.ipynb", ["a1-Copy1"]),
        ({"ada/a1.ipynb": 8, "ada/a1 (1).ipynb": 0}, "ada/a1.ipynb", ["a1 (1)"]),
        ({"ada/a1.ipynb": 1, "ada/a1-Copy1.ipynb": 8}, "ada/a1.ipynb", ["more tasks", "a1-Copy1"]),
        ({"ada/a1/a1.ipynb": 8, "ada/a1/old/a1.ipynb": 8}, "ada/a1/a1.ipynb", ["a1/old/a1.ipynb"]),
        ({"ada/a1 (2).ipynb": 8, "ada/a1-Copy1.ipynb": 0}, "ada/a1 (2).ipynb", ["a1-Copy1"]),
        ({"ada/a1_old.ipynb": 3, "ada/a1_new.ipynb": 3}, "ada/a1_new.ipynb", ["a1_old"]),
        ({"ada/mine.ipynb": 0, "ada/ada_a1.ipynb": 8}, "ada/ada_a1.ipynb", []),
        ({"ada/a2.ipynb": 8, "ada/homework.ipynb": 0}, "ada/homework.ipynb", []),
        ({"ada/a10.ipynb": 8, "ada/a1.ipynb": 0}, "ada/a1.ipynb", []),
        ({"ada/__MACOSX/a1.ipynb": 8, "ada/._a1.ipynb": 8, "ada/x.ipynb": 0}, "ada/x.ipynb", []),
        ({"ada/.ipynb_checkpoints/a1.ipynb": 8, "ada/x.ipynb": 0}, "ada/x.ipynb", []),
        ({"ada-Copy1.ipynb": 8, "ada.ipynb": 0}, "ada.ipynb", ["ada-Copy1.ipynb", "more tasks"]),
        ({"ada.ipynb": 0, "ada (1).ipynb": 0}, "ada.ipynb", ["ada (1).ipynb"]),
        ({"ada.ipynb": 0, "ada - Copy (2).ipynb": 0}, "ada.ipynb", ["ada - Copy (2).ipynb"]),
        (
            {"ada_11111_222_a1.ipynb": 0, "ada_11111_333_a1-Copy1.ipynb": 0},
            "ada_11111_222_a1.ipynb",
            ["ada_11111_333_a1-Copy1.ipynb"],
        ),
    ],
)
def test_of_several_files_the_right_one_is_graded_and_the_others_are_named(
    tmp_path, files, graded, passed
):
    found = found_in(tmp_path, files)
    ((student, path),) = found.notebooks.items()
    assert path == tmp_path / graded
    assert bool(passed) == bool(found.notes)
    assert all(each in found.notes[student] for each in passed)
    assert student == (graded.split("/")[0] if "/" in graded else path.stem)


@pytest.mark.parametrize(
    "files",
    [
        ["team (1).ipynb", "team (2).ipynb"],
        ["ada_11111_222_a1.ipynb", "bob_11112_333_a1.ipynb"],
        ["cs_2026_12345_a1.ipynb", "cs_2026_23456_a1.ipynb", "cs_2026_34567_a1-Copy1.ipynb"],
        ["ada.ipynb", "ada/a1.ipynb"],
        ["ada.ipynb", "ada2.ipynb"],
    ],
)
def test_two_students_are_not_taken_for_one(tmp_path, files):
    found = found_in(tmp_path, dict.fromkeys(files, 0))
    assert sorted(found.notebooks.values()) == sorted(tmp_path / file for file in files)
    assert not found.notes


def test_a_stray_file_is_no_student(tmp_path):
    strays = ["grades.csv", ".DS_Store", "readme.txt", "essay.pdf", "._ada.ipynb"]
    for stray in strays:
        (tmp_path / stray).write_text("x")
    store(tmp_path / "__MACOSX" / "._bob.ipynb", "")
    (tmp_path / "zoe").mkdir()
    (tmp_path / "eve.ipynb").symlink_to(tmp_path / "grades.csv")
    found = found_in(tmp_path, {"ada.IPYNB": 0})
    assert set(found.notebooks) == {"ada", "zoe", "eve"}
    assert set(found.strays) == {*strays, "__MACOSX"}


def without(nb: dict[str, Any], *names: str) -> dict[str, Any]:
    return {**nb, "cells": [cell for cell in nb["cells"] if name(cell) not in names]}


def more(nb: dict[str, Any], *added: dict[str, Any], behind: str = ESSAY) -> dict[str, Any]:
    (where,) = (n for n, cell in enumerate(nb["cells"], 1) if name(cell) == behind)
    return {**nb, "cells": [*nb["cells"][:where], *added, *nb["cells"][where:]]}


MINE = "Attention helps where numbers are long."
HEADING = next(c for c in notebook()["cells"] if c["source"].startswith("## Task 9"))["source"]
ESSAYS = {
    "where it belongs": notebook({ESSAY: MINE}),
    "below what was given": notebook({ESSAY: f"YOUR ANSWER HERE\n\n{MINE}"}),
    "in the cell below": more(notebook(), text(MINE)),
    "in code below": more(notebook(), code(f"# {MINE}")),
    "in a raw cell": more(notebook(), {**text(MINE), "cell_type": "raw"}),
    "deleted and rewritten": {
        **notebook(),
        "cells": [*without(notebook(), ESSAY)["cells"], text(MINE)],
    },
    "above its text": more(notebook(), text(MINE), behind="a1-check-attention-error"),
    "in the text of the task": {
        **notebook(),
        "cells": [
            {**cell, "source": f"{HEADING}\n\n{MINE}"} if cell["source"] == HEADING else cell
            for cell in notebook()["cells"]
        ],
    },
    "in a copy of a check": more(
        notebook(), {**text(MINE), "metadata": {"nbgrader": {"grade_id": ESSAY}}}
    ),
    "in a cell of another assignment": more(
        notebook(), {**code(f"# {MINE}"), "metadata": {"nbgrader": {"grade_id": "a2-order"}}}
    ),
    "printed": more(notebook(), code("", {"output_type": "stream", "name": "x", "text": MINE})),
    "checks deleted": {
        **notebook(),
        "cells": [
            *without(notebook(), ESSAY, *(task.name for task in KNOWN.tasks))["cells"],
            text(MINE),
        ],
    },
}


@pytest.mark.parametrize("where", ESSAYS)
def test_an_essay_is_shown_wherever_it_stands(tmp_path, where):
    theirs = work(cells(store(tmp_path / "ada.ipynb", ESSAYS[where])), KNOWN)
    assert MINE in Exhibit("ada.ipynb").show(theirs[ESSAY])


@pytest.mark.parametrize("behind", [name(cell) for cell in notebook()["cells"] if name(cell)])
def test_no_cell_of_a_student_is_lost(tmp_path, behind):
    added = [text(MINE), code(MINE), {**code(MINE), "metadata": {"nbgrader": {"grade_id": behind}}}]
    theirs = work(
        cells(store(tmp_path / "ada.ipynb", more(notebook(), *added, behind=behind))), KNOWN
    )
    shown = "".join(Exhibit("ada.ipynb").show(each) for each in theirs.values())
    assert shown.count(MINE) == 3
    own = [cell for each in theirs.values() for cell in each]
    assert len(own) == 8 + 3  # and nothing that the book gave


START = next(cell["source"] for cell in notebook()["cells"] if name(cell) == "a1-start")
FIRST = {
    "replaced": MINE,
    "a line below": f"{START}\n# {MINE}",
    "a line above": f"# {MINE}\n{START}",
    "a line between": START.replace("import torch", f"import torch  # {MINE}"),
}


@pytest.mark.parametrize("edit", FIRST)
def test_no_edit_of_the_first_cell_is_lost(tmp_path, edit):
    path = store(tmp_path / "ada.ipynb", notebook({"a1-start": FIRST[edit]}))
    theirs = [cell for each in work(cells(path), KNOWN).values() for cell in each]
    assert len(theirs) == 8 + 1
    assert Exhibit("ada.ipynb").show(theirs).count(MINE) == 1


@pytest.mark.parametrize("source", ["https://x.org/attnbook.whl", None])
def test_the_first_cell_of_another_edition_is_given(tmp_path, monkeypatch, source):
    monkeypatch.syspath_prepend(str(BOOK / "_ext"))
    door = importlib.import_module("attnbook_site.door")
    first = door.handed_out(START, source, "attnbook.whl")
    assert first != START
    path = store(tmp_path / "ada.ipynb", notebook({"a1-start": first}))
    assert sum(map(len, work(cells(path), KNOWN).values())) == 8


def test_a_text_of_many_brackets_is_read_at_once(tmp_path):
    """By steps in its length, where steps in its square would take half an hour."""
    many = "](" * 500_000
    path = store(tmp_path / "ada.ipynb", more(notebook(), text(many)))
    assert many in [cell.source for cell in work(cells(path), KNOWN)[ESSAY]]


@pytest.mark.parametrize("piece", ["<a ", "<a a=", "<a '", "<a/", "<a '>", "&", "<![ "])
def test_many_halves_of_tags_are_text_at_once(piece):
    """By steps in their number, where steps in its square would take half an hour."""
    many = piece * 100_000
    shown = harmless(many)
    assert "<" not in shown and shown.count("&lt;") == ("<" in piece and ">" not in piece) * 100_000


def test_what_the_book_gave_is_no_answer(tmp_path, sat):
    nb = notebook()
    for cell in nb["cells"]:  # as the site rewrites them
        cell["source"] = re.sub(r"\]\(\.\./(\w+)\)", r"](https://x.org/\1.html)", cell["source"])
    assert "https://x.org" in json.dumps(nb)
    graded = sat(store(tmp_path / "ada.ipynb", nb))
    assert graded.marks[-1] == Mark(ESSAY, 0.0, 4.0, "not answered")
    assert "not answered" in feedback(KNOWN, graded)


@pytest.fixture
def sat(monkeypatch):
    """Grade without running anything: all tasks but one are right."""

    class Quick:
        student = SimpleNamespace(walls=list(WALLS), end=lambda: None)

        def __init__(self, known: Any, *_: Any):
            self.known = known

        def marks(self) -> list[Mark]:
            return [marked(task) for task in self.known.tasks]

    monkeypatch.setattr(sitting, "Sitting", Quick)
    nobody = object.__new__(Nursery)
    return lambda path: sitting.grade(path.stem, path, KNOWN, nobody, 1.0)


def marked(task: Any, wrong: tuple[str, ...] = (CHECK,), said: str = "3 * too large") -> Mark:
    if task.reader:
        return Mark(task.name, None, task.points, "")
    if task.name in wrong:
        return Mark(task.name, 0.0, task.points, said)
    return Mark(task.name, task.points, task.points, "right.")


@pytest.mark.parametrize("where", ESSAYS)
def test_an_essay_is_left_to_a_person_wherever_it_stands(tmp_path, sat, where):
    graded = sat(store(tmp_path / "ada.ipynb", ESSAYS[where]))
    assert graded.marks[-1].points is None
    assert MINE in feedback(KNOWN, graded)
    assert graded.result == "15 of 16 points, and 4 that a person gives"


def test_an_essay_at_another_task_is_left_to_a_person(tmp_path, sat):
    graded = sat(store(tmp_path / "ada.ipynb", more(notebook(), text(MINE), behind=TASK)))
    assert graded.marks[-1].points is None
    assert "Is the answer at another task?" in feedback(KNOWN, graded)


def test_a_mark_that_begins_with_a_byte_order_is_a_notebook(tmp_path):
    path = tmp_path / "ada.ipynb"
    path.write_text(json.dumps(notebook()), "utf-8-sig")
    assert len(cells(path)) == len(notebook()["cells"])


def png(wide: int = 2, high: int = 2, kind: str = "PNG", colour: int = 255) -> str:
    file = io.BytesIO()
    Image.new("RGB", (wide, high), (colour, 0, 0)).save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


def shown(*outputs: Any, source: str = "x", is_code: bool = True, attachments: Any = ()) -> str:
    return Exhibit("ada.ipynb").show([Cell(7, "", is_code, source, list(outputs), attachments)])


def data(**forms: Any) -> dict[str, Any]:
    kinds = {"png": "image/png", "jpeg": "image/jpeg", "svg": "image/svg+xml"}
    return {
        "output_type": "display_data",
        "data": {kinds.get(form, f"text/{form}"): said for form, said in forms.items()},
    }


SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def test_pictures_are_data_of_the_page():
    said = shown(data(png=png(), plain="<Figure>"), data(jpeg=png(kind="JPEG")), data(svg=[SVG]))
    found = re.findall(
        r'<img alt="picture of cell 7"[^<>"]* src="data:([^;]+);base64,(.+?)">', said
    )
    assert [kind for kind, _ in found] == ["image/png", "image/jpeg", "image/svg+xml"]
    assert base64.b64decode(found[2][1]).decode() == SVG
    assert "Figure" not in said and "alert" not in said


def test_pictures_in_a_text_are_shown():
    inline = f"See ![it](data:image/png;base64,{png(9, 9)})"
    said = shown(source=inline, is_code=False, attachments={"x.png": {"image/png": png()}})
    assert said.count("<img") == 2
    assert "(picture 1 below)" in said and said.count("base64,") == 2


@pytest.mark.parametrize(
    "output",
    [
        data(png="no picture"),
        data(png=png() + '"onerror="alert(1)'),
        data(png=base64.b64encode(b"\x89PNG but no more").decode()),
        data(png=base64.b64encode(b"GIF89a" + bytes(40)).decode()),
        data(png=png(7000, 7000)),
        data(png=base64.b64encode(random.Random(0).randbytes(99)).decode()),
        data(svg='<!DOCTYPE svg [<!ENTITY a "b">]>' + SVG),
        data(png={"a": "list"}),
        data(png=[1, 2]),
        data(html="<script>alert(1)</script>", plain=""),
        {"output_type": "display_data", "data": "x"},
        {"output_type": "display_data"},
        {"data": {'image/png" onerror="alert(1)': png()}},
        {"output_type": "stream", "text": 7},
        {},
        7,
    ],
)
def test_what_cannot_be_shown_is_named_and_runs_nothing(output):
    said = shown(output)
    assert "cell 7 of ada.ipynb" in said
    assert "<img" not in said and "alert" not in said and "onerror" not in said


def test_attachments_are_pictures_or_nothing():
    kinds = {'image/png" onerror="alert(1)': png()}
    for attachments in ({"x": kinds}, {"x": 7}, 7, [7], {"x": {"text/html": "<script>"}}):
        said = shown(is_code=False, attachments=attachments)
        assert "<img" not in said and "onerror" not in said and "<script" not in said


def test_what_is_too_large_is_cut_and_said():
    said = shown(source="x" * exhibit.TEXT + "y" * 1234)
    assert said.count("x") >= exhibit.TEXT and "y" * 9 not in said
    assert "Cut here: 1,234 more letters are in cell 7 of ada.ipynb." in said
    noise = base64.b64encode(png(1200, 1200).encode() * 999).decode()
    assert "cannot show" in shown(data(png=noise))
    file = io.BytesIO()
    Image.frombytes("RGB", (1200, 1200), random.Random(0).randbytes(1200 * 1200 * 3)).save(
        file, "PNG"
    )
    large = base64.b64encode(file.getvalue()).decode()
    assert re.search(
        r"A picture of 4\.\d MB is not shown, it is in cell 7 of", shown(data(png=large))
    )


def test_a_page_has_an_end(monkeypatch):
    monkeypatch.setattr(exhibit, "ALL", 10**6)
    full = [Cell(n, "", False, "<" * exhibit.TEXT) for n in range(1, 1000)]
    said = Exhibit("ada.ipynb").show(full)
    assert len(said) < 1.1 * exhibit.ALL
    number = re.search(r"(\d+) more cells begin with cell (\d+) of ada.ipynb", said)
    assert number and int(number[1]) + int(number[2]) == 1000
    many = shown(*[data(plain="x")] * 10**4)
    assert len(many) < 1.1 * exhibit.ALL and "more texts and pictures are in cell 7" in many


def test_printed_text_is_what_a_screen_shows():
    bar = {"output_type": "stream", "name": "stderr", "text": ["1 %\r", "50 %\r100 %\r\n", "done"]}
    assert '<pre class="printed" dir=auto>100 %\ndone</pre>' in shown(bar)
    assert ">red<" in shown({"output_type": "stream", "text": "\x1b[31mred\x1b[0m"})
    error = {"output_type": "error", "ename": "ValueError", "evalue": "<b>", "traceback": ["x"]}
    assert "ValueError: &lt;b&gt;" in shown(error)
    assert "<td>1</td>" in shown(data(html="<table><tr><td>1</table>", plain="1"))
    long = shown(data(html="<b>x</b>" * exhibit.TEXT, plain="instead"))
    assert "instead" in long and "More than this page can show is in cell 7" in long


class Strict(HTMLParser):
    """Nothing but plain tags, each of them closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in exhibit.PLAIN and not attrs
        self.open += [tag] * (tag != "br")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


BITS = (
    "<table> <tr> <td> </td> </table> <b> </b> <i> </p> <p> <div> </div> <script> </script> <style>"
    " </style> <svg onload=alert(1)> </svg> <img src=x onerror=alert(1)> <a href=javascript:x> </a>"
    " <!-- --> <![CDATA[ ]]> <?x ?> <! > &lt;script&gt; &#60;b&#62; <td/onclick=x> <br/> x < > \" '"
    " <textarea> <title> </title> <math> <template> <iframe srcdoc='<b>'> <plaintext> <p <p> </p <"
).split()


def test_somebodys_html_is_harmless():
    draw = random.Random(0)
    for _ in range(3000):
        source = "".join(draw.choices(BITS, k=draw.randint(1, 12)))
        parser = Strict()
        parser.feed(said := harmless(source))
        parser.close()
        assert not parser.open, (source, said)


def class_of(*said: str) -> list[Graded]:
    """Students who all made a mistake in one task, told so."""
    return [
        Graded(f"s{n}", [marked(task, said=each) for task in KNOWN.tasks], "", list(WALLS), 0.1)
        for n, each in enumerate(said)
    ]


def words(page: str) -> str:
    """What a page says, without its tags."""
    body = page.partition("</style>")[2]
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", body))


def test_the_class_is_counted():
    graded = class_of("2.5 is too large", "-7 is too large", "no tensor")
    graded[2].marks[0].points = 0.0
    graded[2].marks[-1] = Mark(ESSAY, 0.0, 4.0, "not answered")
    graded.append(Graded("<b>zoe", [], "zoe.ipynb: no notebook", [], 0.0))
    graded.append(Graded("gus", [], "", [], 0.0, failed="needs a person: the grader failed"))
    graded[0].note, graded[1].walls = "a1.ipynb was graded", []
    stood = Stood(["files"], {}, ["namespaces"], "/usr/bin/bwrap")
    page = overview(graded, KNOWN, WALLS, ["grades.csv"], str(stood))
    said = words(page)
    assert "walls: files; made of: bubblewrap, namespaces" in said
    assert "5 hand-ins , 3 of them graded" in said
    assert "Task 1: the last state 1 0.67 1" in said
    assert "Task 2: dot products 1 0.00 0" in said
    assert "Together 16 14.67 15" in said
    assert "Task 9: what does the experiment show? 4 a person reads it" in said
    assert "(4 points) s0 s1 Not answered by s2 ." in said
    assert "Without a result gus needs a person: the grader failed" in said
    assert "Refused &lt;b&gt;zoe zoe.ipynb: no notebook" in said
    assert "To look at s0 a1.ipynb was graded s1 without walls: files" in said
    assert "no student's grades.csv" in said
    assert "Task 2: dot products (3 of 3 wrong) 2 2.5 is too large s0 , s1 1 no tensor s2" in said
    assert "s0 15 of 16 points, and 4 that a person gives" in said
    assert "s2 14 of 20 points" in said
    assert "a1-check" not in said
    assert 'href="a1/s0.html"' in page and 'href="a1/%3Cb%3Ezoe.html"' in page


def test_a_class_without_hand_ins_has_a_page():
    assert "0 hand-ins" in words(overview([], KNOWN, WALLS))


def test_many_mistakes_are_counted_together():
    graded = class_of(*(letter * 3 for letter in "aabcdefgh"))
    assert "(9 of 9 wrong) 2 aaa" in words(overview(graded, KNOWN, WALLS))
    assert "And 3 more." in words(overview(graded, KNOWN, WALLS))


def test_a_students_page_names_tasks_and_shows_code(tmp_path, sat):
    graded = sat(store(tmp_path / "ada.ipynb", notebook({TASK: "x < '</pre>'"})))
    said = words(feedback(KNOWN, graded))
    assert "Task 2: dot products (0 of 1) 3 * too large What was handed in cell 7 x &lt; " in said
    assert "a1-check" not in said


@pytest.mark.parametrize(
    "make", [lambda each: feedback(KNOWN, each), lambda each: overview([each], KNOWN, ())]
)
def test_a_page_allows_its_own_style_and_nothing_else(make):
    evil = "<script>alert(1)</script><img src=https://x.org>\" onload='x'"
    graded = Graded(evil, [marked(task, said=evil) for task in KNOWN.tasks], "", [], 0.0, evil)
    page = make(graded)
    (style,) = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    digest = records.hashlib.sha256(style.encode()).digest()
    allowed = re.search('Content-Security-Policy" content="(.*?)"', page)
    assert allowed and f"style-src 'sha256-{base64.b64encode(digest).decode()}'" in allowed[1]
    assert allowed[1].startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in allowed[1] and "script-src" not in allowed[1]
    assert "<script" not in page and "<img" not in page


def rows(graded: list[Graded]) -> dict[str, dict[str, str]]:
    return {row["student"]: row for row in csv.DictReader(io.StringIO(table(graded, KNOWN, WALLS)))}


def test_a_table_separates_points_from_what_is_to_be_read():
    (row,) = rows(class_of("x")).values()
    assert (row["points"], row["of"], row["to read"]) == ("15.0", "16.0", "4.0")
    assert (row[CHECK], row[ESSAY], row["note"]) == ("0.0", "read", "")


def test_an_error_of_the_grader_is_no_students_zero():
    row = rows([Graded("eve", [], "", [], 0.0, failed="needs a person: it failed")])["eve"]
    assert row["note"] == "needs a person: it failed"
    assert not any(row[column] for column in ("points", "of", "to read", CHECK, ESSAY))


@pytest.fixture
def record(tmp_path):
    (graded,) = class_of("x")
    records.keep(tmp_path, KNOWN, graded, "digest")
    assert records.kept(tmp_path, KNOWN, "s0", "digest") == graded
    return tmp_path / "a1" / "s0.json"


def again(record: Path, student: str = "s0", digest: str = "digest") -> Graded | None:
    return records.kept(record.parents[1], KNOWN, student, digest)


def test_marks_are_nobody_elses(record):
    for path in (record, record.with_suffix(".html")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_record_that_others_may_write_is_not_trusted(record, mode):
    record.chmod(mode)
    assert again(record) is None


def test_a_record_that_was_changed_is_not_trusted(record):
    record.write_text(record.read_text().replace('"points": 0.0', '"points": 2.0'))
    assert again(record) is None


def test_a_record_is_trusted_for_its_own_student_and_notebook(record):
    assert again(record, digest="of a new notebook") is None
    record.rename(record.with_name("s1.json"))
    record.with_suffix(".html").rename(record.with_name("s1.html"))
    assert again(record, "s1") is None


def test_a_record_that_is_a_link_or_has_no_page_is_not_trusted(record):
    real = record.rename(record.with_name("real"))
    record.symlink_to(real)
    assert again(record) is None
    real.replace(record)
    record.with_suffix(".html").unlink()
    assert again(record) is None


def test_a_failure_replaces_what_was_known(record):
    failed = Graded("s0", [], "", [], 0.0, failed="needs a person: it failed")
    records.keep(record.parents[1], KNOWN, failed, "digest")
    assert not record.exists()
    assert "Not graded" in record.with_suffix(".html").read_text()


def test_other_limits_files_and_checks_make_other_results(tmp_path, monkeypatch):
    path = tmp_path / "a1.ipynb"
    path.write_text("")
    monkeypatch.setattr(records, "PACKAGE", tmp_path)

    def digest(seconds: float = 60.0, note: str = "") -> str:
        return records.digest((seconds, records.package()), note, path)

    first = digest()
    assert first == digest()
    assert first not in (digest(6.0), digest(note="a1.ipynb"))
    (tmp_path / "teach").mkdir()
    for file in ("attention.py", "teach/a1.py"):
        (tmp_path / file).write_text("")
        before, first = first, digest()
        assert first != before
    monkeypatch.setattr(records.torch, "__version__", "another")
    before, first = first, digest()
    assert first != before
    path.write_text("other")
    assert digest() != first


def ends(then: BaseException | Graded) -> Iterator[Graded]:
    """A run that grades Ada, and comes to Bob."""
    (ada,) = class_of("x")
    ada.student = "ada"
    yield ada
    if not isinstance(then, Graded):
        raise then
    yield then


@pytest.mark.parametrize(
    ("then", "code", "note"),
    [
        (KeyboardInterrupt(), 130, "not graded yet: the run was stopped"),
        (MemoryError(), 1, "not graded yet: the run was stopped"),
        (
            Graded("bob", [], "", [], 0.0, failed="it failed"),
            "1 could not be graded: bob",
            "it failed",
        ),
        (Graded("bob", [], "no notebook", [], 0.0), None, "no notebook"),
    ],
)
def test_a_table_is_whole_however_a_run_ends(tmp_path, monkeypatch, capsys, then, code, note):
    """With rows also for those who were not graded, and a page."""
    for student in ("ada", "bob"):
        store(tmp_path / "in" / f"{student}.ipynb", notebook())
    (tmp_path / "in" / "grades.csv").write_text("x")
    monkeypatch.setattr(grade, "admitted", lambda *_: Stood([*ALL_WALLS], {}, []))
    monkeypatch.setattr(grade, "_all", lambda *_: ends(then))
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit) if code else nullcontext() as end:
        grade.main([*ARGUMENTS, str(tmp_path / "in"), f"--out={tmp_path}"])
    assert not end or end.value.code == code
    found = {row["student"]: row for row in csv.DictReader((tmp_path / "a1.csv").open())}
    assert found["ada"]["points"] == "15.0"
    assert (found["bob"]["points"], found["bob"]["note"]) == ("" if code else "0.0", note)
    assert "2 hand-ins" in words((tmp_path / "a1.html").read_text())
    assert capsys.readouterr().out.count("grades.csv") == 1


def test_a_page_that_cannot_be_written_costs_no_points(tmp_path, monkeypatch, capsys):
    store(tmp_path / "in" / "ada.ipynb", notebook())
    (tmp_path / "a1" / "ada.html").mkdir(parents=True)
    (graded,) = class_of("x")
    graded.student = "ada"
    monkeypatch.setattr(grade, "admitted", lambda *_: Stood([*ALL_WALLS], {}, []))
    monkeypatch.setattr(grade, "_all", lambda *_: (each for each in [graded]))
    grade.main(["a1", str(tmp_path / "in"), f"--out={tmp_path}", f"--solutions={SOLUTIONS}"])
    (row,) = csv.DictReader((tmp_path / "a1.csv").open())
    assert row["points"] == "15.0" and "could not be written" in row["note"]


def test_an_error_says_its_line_in_the_cell():
    ours, theirs = socket.socketpair()
    source = "def f():\n    x = 1\n    return x / 0\nf()"

    def run() -> None:
        lines = [*source.splitlines(True)]
        linecache.cache["<a1-x>"] = len(source), None, lines, "<a1-x>"
        exec(compile(source, "<a1-x>", "exec"), {})

    def serve() -> None:
        with suppress(GoneError):  # the line is closed
            Peer(theirs, {"run": run, "other": lambda: 1 / 0}).serve()

    threading.Thread(target=serve, daemon=True).start()
    peer = Peer(ours, {})
    with pytest.raises(RaisedError, match=r"division by zero \(line 3: return x / 0\)$"):
        peer.ask("run")
    with pytest.raises(RaisedError, match=r"division by zero$"):
        peer.ask("other")
    ours.close()


def test_what_a_screen_would_obey_is_not_shown():
    assert report.short_message(" \x1b]0;x\x07 \ud800 né\n\t日 ") == "?]0;x? ? né\n\t日"
    assert len(report.short_message("x" * 10**6)) == report.LONGEST
