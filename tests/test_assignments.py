"""Assignments: what students get, and that checks see wrong answers and let right ones pass."""

import contextlib
import io
import json
import re
from typing import Any

import pytest

from attnbook.teach.judging import AnswerError
from attnbook.teach.student import Nursery, Student
from attnbook.teach.submission import python
from tests.helpers.assignments import NAMES, known, listed, needed, solution
from tools import assignments, notebooks
from tools.notebooks import BOOK

SOLUTIONS = needed()
WRONG, RIGHT = 5, 2  # at least so many of each task


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(name, task, each, id=f"{task}-{number}")
        for name in NAMES
        for task, kinds in listed(name).items()
        for number, each in enumerate(kinds.get(kind, []))
    ]


def judged(name: str, answer: str, source: str, student: Student | None = None) -> str:
    """What the check of a task says to an answer: in the student's notebook, or when graded."""
    names: dict[str, Any] = {}
    (task,) = (task for task in known(name).tasks if answer in task.answers)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        for given in known(name).given.values():
            exec(python(given), names)
        if student:
            student.run(python("\n".join([*known(name).given.values(), source])), answer)
            names |= {each: student.get(each) for each in task.names}
            student.hurry()
        else:
            exec(python(source), names)
        exec(python(task.check), names)
    return said.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_the_students_notebook_is_made_of_the_solution(name):
    stored = notebooks.read(BOOK / "assignments" / f"{name}.ipynb")
    assert stored == assignments.student(SOLUTIONS / f"{name}.ipynb")


@pytest.mark.parametrize("name", NAMES)
def test_a_student_gets_no_solution_and_no_hidden_test(name):
    given = (BOOK / "assignments" / f"{name}.ipynb").read_text("utf-8")
    assert not re.search("HIDDEN|BEGIN SOLUTION|END SOLUTION", given)
    own = solution(SOLUTIONS / f"{name}.ipynb")
    answers = [answer for task in known(name).tasks for answer in task.answers if answer in own]
    assert answers
    for answer in answers:
        found = re.search(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", own[answer], re.DOTALL)
        assert found, f"{answer} marks no solution"
        assert json.dumps(found[1].strip())[1:-1] not in given
    hidden = re.findall(r"BEGIN HIDDEN TESTS\\n(.*?)END HIDDEN", json.dumps(own), re.DOTALL)
    assert len(hidden) == sum(not task.reader for task in known(name).tasks)
    assert not any(line in given for text in hidden for line in text.split("\\n") if len(line) > 9)


@pytest.mark.parametrize("name", NAMES)
def test_a_check_stores_what_it_prints_so_that_nbval_can_judge(name):
    tasks = {task.name for task in known(name).tasks if not task.reader}
    for cell in notebooks.read(BOOK / "assignments" / f"{name}.ipynb").cells:
        said = cell.metadata.get("nbgrader", {})
        if said.get("grade_id") in tasks:
            tasks.remove(said["grade_id"])
            assert cell.execution_count and cell.outputs[0].text.strip()
            assert "nbval-ignore-output" not in cell.metadata.get("tags", [])
        elif said.get("solution") and cell.cell_type == "code":
            assert cell.execution_count is None and not cell.outputs
            assert "raise NotImplementedError()" in cell.source
    assert not tasks


@pytest.mark.parametrize("name", NAMES)
def test_a_task_has_wrong_and_right_answers_to_be_tried(name):
    found = listed(name)
    wanted = {answer for task in known(name).tasks if not task.reader for answer in task.answers}
    assert set(found) == wanted
    for answer, kinds in found.items():
        assert len(kinds["wrong"]) >= WRONG and len(kinds["right"]) >= RIGHT, answer
        assert len({each["source"] for each in kinds["wrong"]}) == len(kinds["wrong"])


@pytest.mark.parametrize("name", NAMES)
def test_tasks_and_points_are_those_of_the_text(name):
    nb = notebooks.read(SOLUTIONS / f"{name}.ipynb")
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    points = re.findall(r"^## Task \d+: .*\((\d+) points?, \d+ minutes\)$", text, re.MULTILINE)
    assert [float(each) for each in points] == [task.points for task in known(name).tasks]
    assert f"{sum(map(int, points))} points" in text.split("##")[0]


@pytest.mark.parametrize(("name", "answer", "each"), cases("right"))
def test_a_right_answer_passes(name, answer, each):
    assert "right" in judged(name, answer, each["source"])


@pytest.mark.parametrize(("name", "answer", "each"), cases("wrong"))
def test_a_wrong_answer_is_told_what_is_wrong(name, answer, each):
    with pytest.raises(AssertionError) as said:
        judged(name, answer, each["source"])
    assert each["says"] in str(said.value)


@pytest.mark.parametrize("name", NAMES)
def test_the_grader_says_the_same_as_the_notebook(name):
    """There the answers run in another process, and the check sees only what travels."""
    with Nursery() as nursery:
        student = Student(nursery)
        for answer, kinds in listed(name).items():
            for each in kinds["right"]:
                assert "right" in judged(name, answer, each["source"], student)
            for each in kinds["wrong"]:
                with pytest.raises(AssertionError) as said:
                    judged(name, answer, each["source"], student)
                assert each["says"] in str(said.value)
        student.end()


@pytest.mark.parametrize(
    ("name", "answer"), [(name, answer) for name in NAMES for answer in listed(name)]
)
def test_a_blank_fails(name, answer):
    blank = solution(BOOK / "assignments" / f"{name}.ipynb")[answer]
    with pytest.raises(AnswerError, match=r"^[a-z_]+: not solved yet$"):
        judged(name, answer, blank)
