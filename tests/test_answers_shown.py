"""What a student sees of a check: what is wrong, in one sentence, and never what is right."""

import ast
import contextlib
import io
import json
import subprocess
import sys
import traceback
from functools import cache
from typing import Any

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from attnbook.model.attention import scaled_dots
from attnbook.teach import a1, a3
from attnbook.teach.judging import AnswerError
from attnbook.teach.student import Nursery, Student
from attnbook.teach.submission import answers, python, reference
from attnbook.teach.submission import cells as stored_cells
from tests.helpers.assignments import NAMES, known, listed, needed, solution
from tools.notebooks import BOOK, ROOT

SOLUTIONS = needed()
TASKS = [(name, answer) for name in NAMES for answer in listed(name)]
FOLDER = ROOT / "src" / "attnbook" / "teach"


@cache
def lines() -> set[str]:
    """The lines of all checks that say something, docstrings and imports left out."""
    found: set[str] = set()
    for path in FOLDER.glob("a[0-9]*.py"):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                inside = source.splitlines()[node.body[0].lineno : node.end_lineno]
                found |= {line.strip() for line in inside if len(line.strip()) > 8}
    return found


@cache
def cell_of(name: str, answer: str) -> str:
    """The cell of a student's notebook that calls the check, without hidden tests."""
    (task,) = (task for task in known(name).tasks if answer in task.answers)
    return cells(name)[task.name]


@cache
def shell(name: str) -> InteractiveShell:
    """IPython, after the cells of an assignment that are given."""
    found = InteractiveShell(colors="nocolor")
    assert found.history_manager
    found.history_manager.enabled = False
    for cell in known(name).given.values():
        found.run_cell(cell)
    return found


def shown(name: str, answer: str, source: str) -> str:
    """All that a notebook shows when an answer and its check are run."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        for cell in (source, cell_of(name, answer)):
            shell(name).run_cell(cell)
    return said.getvalue()


def plain(name: str, answer: str, source: str) -> str:
    """What Python shows without IPython."""
    names: dict[str, Any] = {}
    try:
        for cell in (*known(name).given.values(), source, cell_of(name, answer)):
            exec(python(cell), names)
    except Exception:
        return traceback.format_exc()
    return ""


@cache
def cells(name: str) -> dict[str, str]:
    """The sources of a student's notebook, by their names."""
    return solution(BOOK / "assignments" / f"{name}.ipynb")


def gives_away(said: str) -> list[str]:
    """The lines of checks that are shown."""
    return sorted(line for line in lines() if line in said)


def test_all_tasks_with_a_check_are_tried():
    assert len(TASKS) == 46
    assert "plain / d**0.5," in lines()


@pytest.mark.parametrize(("name", "answer"), TASKS)
def test_an_unsolved_notebook_says_not_solved_yet_and_nothing_else(name, answer):
    blank = cells(name)[answer]
    said = shown(name, answer, blank)
    check = cell_of(name, answer).split("(")[0].split(".")[1]
    assert said.strip() == f"AnswerError: {check}: not solved yet"
    assert not gives_away(plain(name, answer, blank))


@pytest.mark.parametrize(("name", "answer"), TASKS)
def test_a_wrong_answer_shows_no_line_of_a_check(name, answer):
    for each in listed(name)[answer]["wrong"]:
        said = shown(name, answer, each["source"])
        assert said.count("\n") < 2 and said.startswith("AnswerError: "), each["source"]
        assert not gives_away(said)
        assert not gives_away(plain(name, answer, each["source"]))


@pytest.mark.parametrize(("name", "answer"), TASKS)
def test_an_error_in_an_answer_shows_the_answers_lines_alone(name, answer):
    source = cells(name)[answer]
    source = source.replace("raise NotImplementedError()", "here = [][9]  # mine")
    said = shown(name, answer, source)
    assert "here = [][9]  # mine" in said and "IndexError: list index out of range" in said
    assert not gives_away(said) and len(said.splitlines()) < 25
    assert "here" not in plain(name, answer, "") and not gives_away(plain(name, answer, source))


def test_an_error_in_a_function_that_a_check_handed_over_shows_no_line_of_it():
    source = "def block(x, attend, *_):\n    try:\n        return attend(x[0, 0])  # mine\n"
    source += "    except Exception as error:\n        raise ValueError('no') from error"
    said = shown("a3", "a3-block", source)
    assert "attend(x[0, 0])  # mine" in said and "ValueError: no" in said
    assert not gives_away(said)


def test_an_interrupted_check_shows_no_line_of_it():
    source = "def block(*_): raise KeyboardInterrupt"
    assert not gives_away(shown("a3", "a3-block", source))


def test_an_answer_that_breaks_a_check_is_told_so_in_one_sentence():
    class Strange(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.Tensor.isnan:
                raise ZeroDivisionError("mine")
            return super().__torch_function__(func, types, args, kwargs or {})

    with pytest.raises(AnswerError, match="could not use your answer: ZeroDivisionError: mine"):
        a1.dot_scores(lambda q, k: (q @ k.mT).as_subclass(Strange))
    with pytest.raises(AnswerError, match="must be a function, got a int"):
        a1.dot_scores(3)


def test_an_error_of_no_known_cause_names_the_shapes_that_were_handed_over():
    with pytest.raises(AnswerError, match=r"is right \(called with \[2, 3, 4\], \[2, 5, 4\]\)$"):
        a1.dot_scores(lambda queries, keys: 1.2 * queries @ keys.mT)
    with pytest.raises(AnswerError, match=r"nothing was shifted$"):
        a3.shift(lambda answers, start: answers)
    with pytest.raises(RuntimeError) as said:
        a1.dot_scores(lambda queries, keys: queries + keys)
    assert said.value.__notes__ == ["dot_scores was called with [2, 3, 4], [2, 5, 4]"]


@pytest.mark.parametrize("wrong", [False, True])
def test_what_an_answer_prints_is_shown_where_it_is_wrong(wrong, capsys):
    def dot_scores(queries, keys):
        import warnings

        print("my shape", list(queries.shape))
        warnings.warn("careful", stacklevel=1)
        return queries @ (keys if wrong else keys.mT)

    with pytest.raises(RuntimeError) if wrong else contextlib.nullcontext():
        a1.dot_scores(dot_scores)
    said = capsys.readouterr()
    assert not said.err
    assert said.out.startswith("my shape [2, 3, 4]" if wrong else "dot_scores: right.")
    assert ("my shape" in said.out) == wrong


def test_a_check_leaves_other_profilers_alone_and_hears_its_own_functions_not():
    """What a check hands over may use what the answer may not."""
    heard = []
    before = sys.getprofile()
    sys.setprofile(mine := lambda *event: heard.append(event))
    try:
        with pytest.raises(AnswerError, match="where `pre` is False"):
            a3.block(lambda x, a, f, n, m, _: (y := x + a(n(x))) + f(m(y)))
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(before)


def test_nothing_is_heard_after_the_first_call_that_counts():
    """An answer that calls `flex_attention` waited minutes for a hook on all that it compiles."""
    hooks = []

    def dot_scores(q, k):
        hooks.append(sys.getprofile())
        found = scaled_dots(q, k) * q.shape[-1] ** 0.5
        hooks.append(sys.getprofile())
        return found

    with pytest.raises(AnswerError, match="calls attnbook's scaled_dots, which"):
        a1.dot_scores(dot_scores)
    assert hooks[0] is not None and hooks[1] is None


def test_nbval_shows_no_line_of_a_check_and_lets_prints_pass(tmp_path):
    """Of the first assignment: one answer right, one wrong, all others blank."""
    nb = json.loads((BOOK / "assignments" / "a1.ipynb").read_text("utf-8"))
    for cell in nb["cells"]:
        match cell["metadata"].get("nbgrader", {}).get("grade_id"):
            case "a1-dot-scores":
                cell["source"] = "def dot_scores(q, k):\n    print('x')\n    return q @ k.mT"
            case "a1-context":
                cell["source"] = "def context(weights, values): return weights"
    (tmp_path / "a1.ipynb").write_text(json.dumps(nb))
    run = [sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "a1.ipynb"]
    said = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "7 failed" in said, said
    assert said.count("not solved yet") >= 6 and "context must have the shape" in said
    assert not gives_away(said)


def test_a_notebook_with_a_mark_in_front_is_read(tmp_path):
    path = SOLUTIONS / "a1.ipynb"
    (tmp_path / "a1.ipynb").write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    read = stored_cells(tmp_path / "a1.ipynb")
    assert answers(read, reference(path)) == answers(stored_cells(path), reference(path))


def test_the_grader_says_not_solved_yet():
    with Nursery() as nursery:
        student = Student(nursery)
        student.run("def f(q, k): raise NotImplementedError()", "f")
        with pytest.raises(AnswerError, match=r"^dot_scores: not solved yet$"):
            a1.dot_scores(student.get("f"))
        student.end()
