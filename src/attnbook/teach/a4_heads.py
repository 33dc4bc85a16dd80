"""Checks of assignment 4, last part: the encoder's mask, and heads for tasks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnbook.teach.asking import check
from attnbook.teach.judging import AnswerError, constant, holds, kind, numbers, parts, right, same

Answer = Callable[..., Any]
CLS, SEP, MASK, PAD = 1, 2, 3, 0


def tokens_of(seed: int, *sizes: int, low: int = 4, high: int = 60) -> Tensor:
    return torch.randint(low, high, sizes, generator=torch.Generator().manual_seed(seed))


def whole_number(got: Any, name: str) -> int:
    """Check that an answer is a whole number, or a tensor with a single one.

    Raises:
        AnswerError: if it is not.
    """
    if isinstance(got, Tensor) and got.numel() == 1:
        got = got.item()
    if isinstance(got, int) and not isinstance(got, bool):
        return got
    what = got if got is None or isinstance(got, float | bool | str) else f"a {kind(got)}"
    raise AnswerError(f"{name} must be a whole number, got {what}")


@check({"sizes": (1, 2, 3, 1)}, {"sizes": (3, 2, 1, 2)})
def classify(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 5, 4, 2)) -> None:
    """Class scores from the state at [CLS]."""
    batch, n, d, classes = sizes
    some = numbers(seed)
    states, w, b = some(batch, n, d), some(classes, d), some(classes)
    got = same(
        answer(states, w, b),
        states[:, 0] @ w.T + b,
        "classify",
        {
            "the state of the last place was read; [CLS] stands in front": states[:, -1] @ w.T + b,
            "the mean of all states was read; the state at [CLS] is asked for":
                states.mean(1) @ w.T + b,
            "the bias is missing": states[:, 0] @ w.T,
            "a softmax was taken; scores are asked for": (states[:, 0] @ w.T + b).softmax(-1),
            "every place has scores; only [CLS] should": states @ w.T + b,
            "the first row was read, not the first place of each": states[0] @ w.T + b,
            "the second place was read: counting begins at 0": states[:, 1] @ w.T + b,
            "a tanh was taken of the state (BERT's pooler), which this task does not ask for":
                states[:, 0].tanh() @ w.T + b,
            "a tanh was taken of the scores": (states[:, 0] @ w.T + b).tanh(),
            "a logarithm of the softmax was taken; scores are asked for":
                (states[:, 0] @ w.T + b).log_softmax(-1),
            "a sigmoid was taken; scores are asked for": (states[:, 0] @ w.T + b).sigmoid(),
            "the states were added up; the state at [CLS] is asked for":
                states.sum(1) @ w.T + b,
            "the largest number of all places was taken; the state at [CLS] is asked for":
                states.amax(1) @ w.T + b,
            "the bias is taken away; it should be added": states[:, 0] @ w.T - b,
            "these are the classes; their scores are asked for":
                (states[:, 0] @ w.T + b).argmax(-1),
        },
        axes="row class",
    )  # fmt: skip
    right("classify", got, seed, 0)


@check({"n": 1, "most": 1}, {"n": 6, "most": 1}, {"n": 5, "most": 9})
def best_span(answer: Answer, seed: int = 0, n: int = 8, most: int = 3) -> None:
    """The start and the end of the best answer span."""
    wanted, given, known = [], [], dict[str, list[list[int]]]()
    i, j = torch.arange(n)[:, None], torch.arange(n)
    long = j - i + 1
    for turn in range(24):
        some = numbers(seed + 100 * turn)
        low = {1: 5, 2: 1000}.get(turn, 0)  # a best sum need not be above 0
        starts, ends = some(n) - low, some(n) - low
        sums = starts[:, None] + ends
        before = torch.cat([torch.zeros(1), (starts + ends).cumsum(0)])
        within = before[1:] - before[:-1, None]

        def best(allowed: Tensor, sums: Tensor = sums) -> list[int]:
            return [*divmod(int(sums.masked_fill(~allowed, -torch.inf).argmax()), n)]

        wanted.append(best((j >= i) & (long <= most)))
        top = sums[wanted[-1][0], wanted[-1][1]]
        for words, place in {
            "a best sum may lie below 0: begin with minus infinity":
                wanted[-1] if top > 0 else [0, 0],
            "a best sum may lie far below 0: begin with minus infinity":
                wanted[-1] if top > -100 else [0, 0],
            "each end was chosen for itself; together they may be no span":
                [int(starts.argmax()), int(ends.argmax())],
            "it may be too long": best(j >= i),
            "it may have one word too many: from i to j there are j - i + 1":
                best((j >= i) & (long <= most + 1)),
            "a span of one word is a span, too": best((j > i) & (long <= most)),
            "start and end are exchanged": wanted[-1][::-1],
            "it may end before it begins": best(long <= most),
            "the last place is that of the last word, not the one behind it":
                [wanted[-1][0], wanted[-1][1] + 1],
            "the second number is a length; the last place is asked for":
                [wanted[-1][0], wanted[-1][1] - wanted[-1][0]],
            "the second number is a length; the last place is asked for ":
                [wanted[-1][0], wanted[-1][1] - wanted[-1][0] + 1],
            "scores are multiplied; they should be added":
                best((j >= i) & (long <= most), starts[:, None] * ends),
            "starts and ends are exchanged": best(
                (j >= i) & (long <= most), ends[:, None] + starts
            ),
            "the start was chosen first, then an end for it; choose both at once": [
                early := int(starts.argmax()),
                early + int(ends[early : early + most].argmax()),
            ],
            "the end was chosen first, then a start for it; choose both at once": [
                (low := max(0, (late := int(ends.argmax())) - most + 1))
                + int(starts[low : late + 1].argmax()),
                late,
            ],
            "the smallest sum was taken; take the largest":
                best((j >= i) & (long <= most), -sums),
            "the scores of all words were added up; those of the first and the last count":
                best((j >= i) & (long <= most), within),
        }.items():  # fmt: skip
            known.setdefault(words, []).append(place)
        found = answer(starts, ends, most)
        parts(found, 2, "best_span must return two whole numbers: the first and the last place")
        given.append([whole_number(place, "a place of best_span") for place in found])
    cause = next((f": {words}" for words, wrong in known.items() if given == wrong), "")
    for got, want in zip(given, wanted, strict=True):
        holds(got == want, f"best_span gives {got}, {want} is right{cause}")
    right("best_span", torch.tensor(given[0]).float(), seed)


@check({"lengths": (1,)}, {"lengths": (3, 2)})
def words_of_pieces(answer: Answer, seed: int = 0, lengths: tuple[int, ...] = (1, 3, 1, 2)) -> None:
    """One prediction per word: that of its first piece."""
    word = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    logits = numbers(seed)(len(word), 5)
    starts = torch.tensor(lengths).cumsum(0) - torch.tensor(lengths)
    ends = starts + torch.tensor(lengths) - 1
    mean = torch.stack([logits[word == i].mean(0) for i in range(len(lengths))])
    got = same(
        answer(logits, word),
        logits[starts],
        "words_of_pieces",
        {
            "the last pieces of the words were taken, not the first": logits[ends],
            "pieces were averaged; the first one decides": mean,
            "every piece has a row; every word should have one": logits,
            "the first pieces of the row were taken, not those of the words":
                logits[: len(lengths)],
            "the second pieces were taken: counting begins at 0":
                logits[(starts + 1).clamp(max=len(word) - 1)],
            "pieces were added up; the first one decides":
                mean * torch.tensor(lengths)[:, None],
            "the largest number of all pieces was taken; the first one decides":
                torch.stack([logits[word == i].amax(0) for i in range(len(lengths))]),
            "a softmax was taken; the numbers of the first pieces are asked for":
                logits[starts].softmax(-1),
            "the last word is missing: numbers begin at 0": logits[starts[:-1]],
            "the first word is missing": logits[starts[1:]],
            "these are the tags; their scores are asked for": logits[starts].argmax(-1),
            "every piece has a row; every word should have one ": logits[starts[word]],
            "the number of a word was taken for the number of a piece": logits[word],
        },
        axes="word tag",
    )  # fmt: skip
    right("words_of_pieces", got, seed, 1)


@check({"lengths": (3, 2)}, {"lengths": (1,)})
def encoder_mask(answer: Answer, seed: int = 0, lengths: tuple[int, ...] = (2, 4, 3)) -> None:
    """Every word may attend to every word on both sides, but not to padding."""
    n, pad = max(lengths) + 1, constant(seed, PAD, 99, 7)
    tokens = tokens_of(seed, len(lengths), n, low=8)
    front, ends = constant(seed, 0, 1), torch.tensor(lengths)[:, None]  # padding may come first
    words = (torch.arange(n) >= front) & (torch.arange(n) < front + ends)
    tokens[~words] = pad
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    want = words[:, None].expand(-1, n, -1)
    got = same(
        _broadcast(answer(tokens, pad), want),
        want,
        "encoder_mask",
        {
            "it holds numbers; it should hold True and False": want.float(),
            "padding may stand in front of words, too":
                (torch.arange(n) < ends)[:, None].expand(-1, n, -1),
            "0 need not be padding; `pad` says what is": (tokens != 0)[:, None].expand(-1, n, -1),
            "words may look to the left only: an encoder looks both ways": want & causal,
            "padding may not look, but may be looked at: the mask belongs on the keys":
                words[..., None].expand(-1, -1, n),
            "True and False are exchanged: True means may be looked at": ~want,
            "everybody may look at everybody, padding too": torch.ones_like(want),
            "rows of padding look at nothing: let them, nobody reads what they say":
                want & words[..., None],
            "only the causal mask is there": causal.expand(len(lengths), -1, -1),
            "a word may look at itself, too": want & ~torch.eye(n, dtype=torch.bool),
            "one of the two is a word; the word that is looked at must be one":
                want | words[..., None],
            "it says where words are; a mask says it for each query, and needs an axis for them":
                words,
        },
        axes="row query key",
    )  # fmt: skip
    tokens[:, 1:-1:2] = pad
    words = tokens != pad
    between = words.cumsum(1).bool() & words.flip(1).cumsum(1).flip(1).bool()
    same(
        _broadcast(answer(tokens, pad), want),
        words[:, None].expand(-1, n, -1),
        "encoder_mask, where padding stands between words,",
        {"all between the first and the last word is taken for words":
            between[:, None].expand(-1, n, -1),
         "padding may stand in front of words, too, and between them":
            (torch.arange(n) < words.sum(1, keepdim=True))[:, None].expand(-1, n, -1)},
        axes="row query key",
    )  # fmt: skip
    right("encoder_mask", got.float(), seed, 0, -1)


def _broadcast(got: Any, want: Tensor) -> Any:
    """An answer whose axes have the sizes of `want` or 1, in its full shape."""
    fits = isinstance(got, Tensor) and got.ndim == want.ndim
    if fits and all(n in (1, size) for n, size in zip(got.shape, want.shape, strict=True)):
        return got.expand_as(want)
    return got
