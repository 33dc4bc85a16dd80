"""Quiz: multiple-choice questions that explain why each choice is right or wrong."""

import json
import random
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.web._widget import Widget, WidgetError, as_list, as_tokens, check_size, short


@dataclass(frozen=True)
class Question:
    """One question of a quiz.

    Attributes:
        ask: the question.
        choices: two or more answers.
        right: index of the correct answer, from 0.
        why: an explanation for each choice, or one for all; shown after a choice.
        texts: heading -> a text that the question is about; shown above the choices.
    """

    ask: str
    choices: Sequence[str]
    right: int
    why: str | Sequence[str]
    texts: Mapping[str, str] = field(default_factory=dict)


class Quiz(Widget):
    """Questions, one at a time: choosing shows at once whether it was right, why, and the score.

    Only the first choice counts; after it, every choice shows its explanation. On a page of the
    book, answers are stored only in the reader's browser.

    Args:
        questions: the `Question`s.
        title: the heading.
        name: a short slug for links, and the key under which the browser stores the answers.

    With a kernel, `at` (the current question, from 0) and `chosen` (the choice for each question,
    -1: none yet) track the reader's choices; setting them changes what is shown.

    Raises:
        ValueError: if a question has fewer than two choices, `right` is out of range, or `why` is
            neither one text nor one for each choice.
    """

    _esm, _css = bundles.load("Quiz")

    questions = traitlets.List(traitlets.Dict()).tag(sync=True)
    at = traitlets.Int(0).tag(sync=True)
    chosen = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(
        self, questions: Sequence[Question], *, title: str = "", name: str | None = None
    ) -> None:
        stored = [_stored(n, each) for n, each in enumerate(as_list(questions, "questions", "Q"))]
        if not stored:
            raise WidgetError("questions must hold at least one Question(...), not none")
        super().__init__(name=name, title=title, questions=stored, chosen=[-1] * len(stored))

    @traitlets.validate("questions")
    def _check_questions(self, proposal: Any) -> list[dict[str, Any]]:
        check_size(len(json.dumps(proposal["value"])), "the questions", "ask fewer")
        return proposal["value"]

    @traitlets.validate("at")
    def _check_at(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < len(self.questions):
            raise WidgetError(f"at must be 0..{len(self.questions) - 1}, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("chosen")
    def _check_chosen(self, proposal: Any) -> list[int]:
        value, sizes = proposal["value"], [len(each["choices"]) for each in self.questions]
        fits = len(value) == len(sizes)
        if not fits or not all(-1 <= n < size for n, size in zip(value, sizes, strict=True)):
            raise WidgetError(
                f"chosen must be a choice, or -1, of each of {len(sizes)} questions, not {value}"
            )
        return value

    @property
    def score(self) -> int:
        """How many questions were answered correctly."""
        return sum(n == each["right"] for n, each in zip(self.chosen, self.questions, strict=True))

    def content(self) -> bytes:
        return json.dumps(self.questions).encode()

    def summary(self) -> str:
        return f"{len(self.questions)} questions"

    def figure_size(self) -> tuple[float, float]:
        return 5.6, 0.4 + 0.2 * len(self._lines()) + 0.5 * bool(self.title)

    def _lines(self) -> list[str]:
        """The lines of the picture, which show the current question."""
        each = self.questions[self.at]
        lines = textwrap.wrap(f"{self.at + 1} of {len(self.questions)}: {each['ask']}", 76)
        for heading, text in each["texts"]:
            wrapped = textwrap.wrap(short(" ".join(text.split()), 300), 72)
            lines += ["", heading, *(f"    {line}" for line in wrapped)]
        choices = [f"○  {short(' '.join(choice.split()), 70)}" for choice in each["choices"]]
        return [*lines, "", *choices]

    def draw(self, figure: Figure) -> None:
        axis = figure.subplots()
        axis.set_axis_off()
        options = {"va": "top", "fontsize": 9, "parse_math": False, "linespacing": 1.4}
        axis.text(0, 1, "\n".join(self._lines()), transform=axis.transAxes, **options)


def _stored(n: int, question: Any) -> dict[str, Any]:
    if not isinstance(question, Question):
        raise WidgetError(f"questions must be a list of Question(...), not of {question!r:.60}")
    what = f"of question {n}"
    choices = as_tokens(question.choices, f"choices {what}")
    whys = [question.why] * len(choices) if isinstance(question.why, str) else question.why
    whys = as_tokens(whys, f"why {what}")
    texts = question.texts
    if not isinstance(texts, Mapping):
        raise WidgetError(f"texts {what} must be texts by their headings, not {texts!r:.60}")
    if len(choices) < 2 or len(set(choices)) < len(choices):
        raise WidgetError(f"choices {what} must be two or more different texts, not {choices}")
    if question.right not in range(len(choices)):
        last = len(choices) - 1
        raise WidgetError(f"right {what} must be 0..{last}, not {question.right!r}")
    if len(whys) != len(choices):
        wanted = f"one text or {len(choices)}"
        raise WidgetError(f"why {what} must be {wanted}, a reason for each, not {len(whys)}")
    (ask,) = as_tokens([question.ask], f"ask {what}")
    shown = [as_tokens([heading, text], f"texts {what}") for heading, text in texts.items()]
    return {
        "ask": ask,
        "choices": choices,
        "right": int(question.right),
        "why": whys,
        "texts": shown,
    }


def which_wrote(
    settings: tuple[str, str],
    pairs: Sequence[tuple[str, str]],
    why: Sequence[tuple[str, str]],
    *,
    prompts: Sequence[str] = (),
    seed: int = 0,
) -> list[Question]:
    """Questions for a game: which of two settings wrote which of two texts?

    Args:
        settings: names of the two settings.
        pairs: for each question, the texts of the first and of the second setting.
        why: for each pair, a telltale fact about each text, such as its share of repetitions.
        prompts: the prompt of each pair; optional.
        seed: determines the order of the two texts.

    Raises:
        ValueError: if the settings are alike, or `why` or `prompts` does not match `pairs`.
    """
    prompts = list(prompts) or [""] * len(pairs)
    if len(settings) != 2 or settings[0] == settings[1]:
        raise WidgetError(f"settings must be two different names, not {settings}")
    if not len(pairs) == len(why) == len(prompts):
        wanted = f"as many as the {len(pairs)} pairs"
        raise WidgetError(f"why and prompts must be {wanted}, not {len(why)} and {len(prompts)}")
    chance, questions = random.Random(seed), []
    for texts, facts, prompt in zip(pairs, why, prompts, strict=True):
        order = (0, 1) if chance.random() < 0.5 else (1, 0)
        one, other = settings
        reasons = "; ".join(f"{'AB'[n]} ({settings[i]}): {facts[i]}" for n, i in enumerate(order))
        shown = {"AB"[n]: texts[i] for n, i in enumerate(order)}
        questions.append(
            Question(
                f"Which setting wrote which? Both go on with “{prompt}”."
                if prompt
                else "Which setting wrote which?",
                [f"A: {one}, B: {other}", f"A: {other}, B: {one}"],
                order[0],
                f"{reasons}.",
                shown,
            )
        )
    return questions
