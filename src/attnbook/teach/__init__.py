"""For courses: checks that say what is wrong, and grading that cannot be fooled."""

from attnbook.teach.judging import AnswerError, holds, number, same

__all__ = ["AnswerError", "holds", "number", "same"]
