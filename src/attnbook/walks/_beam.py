"""Beam search as a tree: kept and dropped hypotheses at each step, and the winner."""

import textwrap
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnbook.checks import check_whole
from attnbook.model.decoding import Hypotheses, beam_search, evaluating
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import SMALL, Arrow, Part, arrow, box, cells, column, grid, row, text
from attnbook.show.lettering import text_width
from attnbook.text.tokenizers import BytePair
from attnbook.web import Drawing, Step

MOST, ROOM, GAP = 5, 66, 24  # boxes side by side; in units, a box's width, the gap between rows
Ids = tuple[int, ...]


class Node(NamedTuple):
    """An extended hypothesis."""

    ids: Ids
    total: float
    score: float


Level = list[tuple[Node, str]]  # hypotheses with the names of the parts that show them


class Found(NamedTuple):
    """The result of a search."""

    ids: Ids
    said: str
    sum: float


@dataclass(frozen=True)
class Search:
    """A beam search step by step, and what greedy search finds."""

    kept: list[list[Node]]  # at each step, best first
    dropped: list[list[Node]]  # at each step, the best of the others
    winner: Found
    greedy: Found


def beam_tree(
    model: TransformerDecoder,
    tokenizer: BytePair,
    words: str,
    *,
    beam: int = 3,
    max_len: int = 5,
    length_penalty: float | int = 0.0,
    **options: Any,
) -> Drawing:
    """Beam search step by step: the extended hypotheses, which of them stay, and the winner.

    Each token shows the sum of log-probabilities up to it, in nats, and with a length penalty also
    the resulting score. The numbers are those of `beam_search`.

    Args:
        model: generates the continuations.
        tokenizer: the model's.
        words: the prompt.
        beam: number of hypotheses kept, 2 to 4; with the best of the others, five are shown.
        max_len: number of tokens, 2 to 7.
        length_penalty: as for `beam_search`.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if `beam` or `max_len` is out of range, or `words` has no token.

    Source: Sutskever et al. 2014, section 3.2.
    """
    check_whole(2, beam=beam, max_len=max_len)
    if beam >= MOST or max_len > 7:
        raise ValueError(f"beam must be at most 4 and max_len 7, got {beam} and {max_len}")
    ids = torch.tensor([tokenizer.encode(words)])
    if not ids.numel():
        raise ValueError("words must have at least one token, got none")
    search = _searched(
        model, tokenizer, ids, max_len=max_len, beam=beam, length_penalty=length_penalty
    )
    levels = _levels(search)
    names, rows = _names(levels), []
    for level in levels:
        rows.append(row(*(_node(*each, tokenizer, bool(length_penalty)) for each in level), gap=5))
    size, measure = len(model.vocab), "score" if length_penalty else "sum"
    fresh = any("↵" in shown(tokenizer, node.ids) for level in levels for node, _ in level)
    opening = Step(
        f"Beam search keeps {beam} hypotheses at once. It starts from the [text](words). Below"
        " each token will stand the sum of ln P up to it." + " ↵ is a new line." * fresh,
        "words",
    )
    return Drawing(
        column(text(textwrap.fill(words, 48), name="words"), *rows, _ends(search, beam), gap=GAP),
        *_branches(levels, names),
        alt=f"A tree below the words {words}: at each step five tokens with their sums, the {beam}"
        " that are kept in colour, the others grey. At the bottom what beam search and what greedy"
        " search have found, each with its sum.",
        steps=[
            opening,
            *_growth(search, tokenizer, size, measure),
            *_outcome(search, names, measure),
        ],
        window=int(max(400, sum(part.height + GAP for part in rows))),
        **options,
    )


def _searched(
    model: TransformerDecoder,
    tokenizer: BytePair,
    ids: Tensor,
    *,
    max_len: int,
    beam: int,
    length_penalty: float | int,
) -> Search:
    kept: list[list[Node]] = []
    dropped: list[list[Node]] = []

    def watch(total: Tensor, ranked: Tensor, best: Tensor) -> None:
        sums, scores, size = total[0].flatten(), ranked[0].flatten(), ranked.shape[-1]
        begun = [node.ids for node in kept[-1]] if kept else [()]

        def node(i: int) -> Node:
            parent, token = divmod(i, size)
            return Node((*begun[parent], token), float(sums[i]), float(scores[i]))

        stay, more = best[0].tolist(), scores.topk(2 * MOST).indices.tolist()
        others = [i for i in more if i not in stay and scores[i] > -torch.inf]
        kept.append([node(i) for i in stay])
        dropped.append([node(i) for i in others[: MOST - beam]])

    def search(**how: Any) -> Hypotheses:
        state = model.start()
        if ids.shape[1] > 1:
            _, state = model.step(ids[:, :-1], state)
        return beam_search(model.step, state, ids[:, -1:], max_len, model.vocab, **how)

    with evaluating(model):
        found = search(beam=beam, length_penalty=length_penalty, watch=watch)
        greedy = search()
    return Search(kept, dropped, _found(found, tokenizer), _found(greedy, tokenizer))


def _found(hypotheses: Hypotheses, tokenizer: BytePair) -> Found:
    ids = tuple(hypotheses.tokens[0].tolist())
    return Found(ids, _text(tokenizer, ids), float(hypotheses.scores[0]))


def _levels(search: Search) -> list[Level]:
    """Each step's hypotheses from left to right: siblings side by side, in their parents' order."""
    levels: list[Level] = []
    places: dict[Ids, int] = {(): 0}
    for n, (kept, dropped) in enumerate(zip(search.kept, search.dropped, strict=True), 1):
        level = [(node, f"kept{n}") for node in kept] + [(node, f"dropped{n}") for node in dropped]
        level.sort(key=lambda each: (places[each[0].ids[:-1]], -each[0].score))
        places.update({node.ids: place for place, (node, _) in enumerate(level)})
        levels.append(level)
    return levels


def _names(levels: list[Level]) -> dict[Ids, str]:
    """The name by which arrows and steps refer to each hypothesis, and to the prompt."""
    names: dict[Ids, str] = {(): "words"}
    for level in levels:
        alike = [name for _, name in level]
        for k, (node, name) in enumerate(level):
            single = alike.count(name) == 1
            names[node.ids] = name if single else f"{name}.{alike[:k].count(name)}"
    return names


def _branches(levels: list[Level], names: dict[Ids, str]) -> list[Arrow]:
    return [
        arrow(names[node.ids[:-1]], names[node.ids], role)
        for level in levels
        for kind, role in (("kept", "weight"), ("dropped", ""))
        for node, name in level
        if name.startswith(kind)
    ]


def _node(node: Node, name: str, tokenizer: BytePair, scored: bool) -> Part:
    role = "weight" if name.startswith("kept") else ""
    label = "(end)" if node.ids[-1] == tokenizer.vocab.eos else shown(tokenizer, node.ids[-1:])
    while text_width(label, SMALL) > ROOM - 8:
        label = label.removesuffix("…")[:-1] + "…"
    lines = [box(label, role, width=ROOM, size=SMALL)]
    lines.append(cells([node.total], role, name=f"{name}sum", digits=1, width=ROOM))
    if scored:
        lines.append(cells([node.score], role, name=f"{name}score", digits=2, width=ROOM))
    return column(*lines, gap=0, name=name)


def _ends(search: Search, beam: int) -> Part:
    """The results of both searches."""
    rows = [
        [
            text(label, beside=name),
            box(textwrap.fill(found.said, 34), role, name=name, size=SMALL),
            cells([found.sum], name=f"{name}sum", digits=1),
        ]
        for label, name, role, found in (
            (f"beam {beam}", "winner", "weight", search.winner),
            ("greedy", "greedy", "", search.greedy),
        )
    ]
    return grid(rows, gap=(6, 6), align="rlr")


def _growth(search: Search, tokenizer: BytePair, size: int, measure: str) -> list[Step]:
    """A step for each token."""
    steps, rank = [], 0  # of the greedy hypothesis
    for n, level in enumerate(search.kept, 1):
        of = f"{size:,} tokens" if n == 1 else f"{len(search.kept[n - 2])} × {size:,} {measure}s"
        caption = f"Token {n}: of {of} the best {len(level)} [stay](kept{n})"
        others = search.dropped[n - 1]
        caption += f", the [others](dropped{n}) are dropped." if others else "."
        best = _text(tokenizer, level[0].ids)
        caption += f" Best: “{best}”, {measure} {level[0].score:.2f}.".replace("-", "−")
        begun, before = [node.ids for node in level], rank
        greedy = search.greedy.ids[:n]
        rank = begun.index(greedy) if greedy in begun else -1
        steps.append(
            Step(caption + _overtaken(before, rank), [f"kept{n}"] + [f"dropped{n}"] * bool(others))
        )
    return steps


def _overtaken(before: int, rank: int) -> str:
    """What happened to the greedy hypothesis; its rank is 0 while it leads, −1 once dropped."""
    if before >= 0 > rank:
        return " The greedy hypothesis is among the dropped."
    if rank > before == 0:
        return " The greedy hypothesis has been overtaken."
    if before > rank == 0:
        return " The greedy hypothesis leads again."
    return ""


def _outcome(search: Search, names: dict[Ids, str], measure: str) -> list[Step]:
    winner, greedy = search.winner, search.greedy
    way = [names[winner.ids[:n]] for n in range(1, len(search.kept) + 1)]
    alone = f"Greedy search says “{greedy.said}”: its [sum](greedysum) is {greedy.sum:.2f}."
    return [
        Step(f"The best {measure} wins. This is its way through the tree.", way),
        Step(
            f"Beam search says [“{winner.said}”](winner): its [sum](winnersum) is"
            f" {winner.sum:.2f}.".replace("-", "−"),
            "winner winnersum",
            ask="Would greedy search, which keeps one hypothesis, say the same?",
        ),
        Step(
            "Greedy search says the same." if greedy.ids == winner.ids else alone.replace("-", "−"),
            "greedy greedysum",
        ),
    ]


def shown(tokenizer: BytePair, ids: Ids) -> str:
    return tokenizer.decode(list(ids)).replace(" ", "␣").replace("\n", "↵")


def _text(tokenizer: BytePair, ids: Ids) -> str:
    """Like `shown`, but with plain spaces, and none at the ends."""
    return shown(tokenizer, ids).strip("␣").replace("␣", " ")
