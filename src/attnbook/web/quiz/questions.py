"""The questions at the end of each chapter: the choices, and why each is right or wrong.

A chapter's questions are in a TOML file with its name, not in the notebook, where readers would see
the answers next to them.
"""

import tomllib
from importlib import resources

from attnbook.checks import check_choice
from attnbook.web.quiz.widget import Question, Quiz


def check_yourself(chapter: str) -> Quiz:
    """The questions of a chapter, one at a time; the score stays in the reader's browser.

    Args:
        chapter: the name of its notebook, such as "10_sampling".

    Raises:
        ValueError: if no chapter of this name has questions.
    """
    files = {
        file.name.removesuffix(".toml"): file
        for file in (resources.files("attnbook") / "web/quiz/chapters").iterdir()
        if file.name.endswith(".toml")
    }
    check_choice(sorted(files), chapter=chapter)
    asked = tomllib.loads(files[chapter].read_text("utf-8"))["question"]
    return Quiz([Question(**each) for each in asked], name=f"check-{chapter[:2]}")
