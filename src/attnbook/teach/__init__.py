"""For courses: checks that explain mistakes, and grading that runs answers in isolation."""

from attnbook.teach.judging import AnswerError, holds, number, same

__all__ = ["AnswerError", "holds", "number", "same"]
