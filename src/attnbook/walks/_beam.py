"""Beam search as a tree: kept and dropped hypotheses at each step, and the winner."""

import textwrap
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnbook.checks import check_whole
from attnbook.model.decoding import Hypotheses, beam_search, evaluating
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import SMALL, Part, arrow, box, cells, column, grid, row, text
from attnbook.show.lettering import text_width
from attnbook.text.tokenizers import BytePair
from attnbook.web import Drawing, Step

MOST, ROOM, GAP = 5, 66, 24  # boxes side by side; units of one's width, and between two rows


class Node(NamedTuple):
    """An extended hypothesis."""

    before: int  # index of its parent among the hypotheses kept at the step before
    ids: tuple[int, ...]
    total: float
    score: float


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

    Each token has the sum of log-probabilities up to it, in nats, and with a length penalty the
    resulting score. The numbers are those of `beam_search`.

    Args:
        model: generates the continuations.
        tokenizer: the model's.
        words: the prompt.
        beam: number of kept hypotheses, 2 to 4; with the best of the others, five are shown.
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
    kept: list[list[Node]] = []  # of each step, best first
    dropped: list[list[Node]] = []

    def watch(total: Tensor, ranked: Tensor, best: Tensor) -> None:
        sums, scores, size = total[0].flatten(), ranked[0].flatten(), ranked.shape[-1]
        begun = [node.ids for node in kept[-1]] if kept else [()]
        stay, more = best[0].tolist(), scores.topk(2 * MOST).indices.tolist()
        others = [i for i in more if i not in stay and scores[i] > -torch.inf]
        for where, some in ((kept, stay), (dropped, others[: MOST - beam])):
            where.append(
                [
                    Node(
                        i // size,
                        (*begun[i // size], i % size),
                        float(sums[i]),
                        float(scores[i]),
                    )
                    for i in some
                ]
            )

    def search(**how: Any) -> Hypotheses:
        state = model.start()
        if ids.shape[1] > 1:
            _, state = model.step(ids[:, :-1], state)
        return beam_search(model.step, state, ids[:, -1:], max_len, model.vocab, **how)

    with evaluating(model):
        found = search(beam=beam, length_penalty=length_penalty, watch=watch)
        greedy = search()

    def part(node: Node, name: str, **look: Any) -> Part:
        label = "(end)" if node.ids[-1] == model.vocab.eos else shown(tokenizer, node.ids[-1:])
        while text_width(label, SMALL) > ROOM - 8:
            label = label.removesuffix("…")[:-1] + "…"
        lines = [box(label, width=ROOM, size=SMALL, **look)]
        lines.append(cells([node.total], name=f"{name}sum", digits=1, width=ROOM, **look))
        if length_penalty:
            lines.append(cells([node.score], name=f"{name}score", digits=2, width=ROOM, **look))
        return column(*lines, gap=0, name=name)

    rows, arrows = [], []
    names: dict[tuple[int, ...], str] = {(): "words"}
    places: dict[tuple[int, ...], int] = {(): 0}  # from left to right
    for n in range(1, len(kept) + 1):
        level = [(node, f"kept{n}") for node in kept[n - 1]]
        level += [(node, f"dropped{n}") for node in dropped[n - 1]]
        level.sort(key=lambda each: (places[each[0].ids[:-1]], -each[0].score))
        for name, some in ((f"kept{n}", kept), (f"dropped{n}", dropped)):
            for k, node in enumerate(node for node, kind in level if kind == name):
                own = name if len(some[n - 1]) == 1 else f"{name}.{k}"
                role = "weight" if some is kept else ""
                arrows.append(arrow(names[node.ids[:-1]], own, role))
                if some is kept:
                    names[node.ids], places[node.ids] = own, k
        looks = {f"kept{n}": {"role": "weight"}, f"dropped{n}": {}}
        rows.append(row(*(part(node, kind, **looks[kind]) for node, kind in level), gap=5))

    results = {"winner": (f"beam {beam}", found), "greedy": ("greedy", greedy)}
    ways = {name: tuple(each.tokens[0].tolist()) for name, (_, each) in results.items()}
    said = {name: shown(tokenizer, way).strip("␣").replace("␣", " ") for name, way in ways.items()}
    sums = {name: float(each.scores[0]) for name, (_, each) in results.items()}
    ends = [
        [
            text(label, beside=name),
            box(
                textwrap.fill(said[name], 34), "weight" * (name == "winner"), name=name, size=SMALL
            ),
            cells([sums[name]], name=f"{name}sum", digits=1),
        ]
        for name, (label, _) in results.items()
    ]
    body = column(
        text(textwrap.fill(words, 48), name="words"),
        *rows,
        grid(ends, gap=(6, 6), align="rlr"),
        gap=GAP,
    )
    size, measure = len(model.vocab), "score" if length_penalty else "sum"
    steps = [
        Step(
            f"Beam search keeps {beam} beginnings at once. It starts from the [text](words). Below"
            " each token will stand the sum of log-probabilities up to it, in nats.",
            "words",
        )
    ]
    rank = 0  # of the greedy hypothesis
    for n, level in enumerate(kept, 1):
        of = f"{size:,} tokens" if n == 1 else f"{len(kept[n - 2])} × {size:,} {measure}s"
        caption = f"Token {n}: of {of} the best {len(level)} [stay](kept{n})"
        caption += f", the [others](dropped{n}) are dropped." if dropped[n - 1] else "."
        best = shown(tokenizer, level[0].ids).strip("␣").replace("␣", " ")
        caption += f" Best: “{best}”, {measure} {level[0].score:.2f}.".replace("-", "−")
        begun, before = [node.ids for node in level], rank
        rank = begun.index(ways["greedy"][:n]) if ways["greedy"][:n] in begun else -1
        if before >= 0 > rank:
            caption += " The greedy beginning is among the dropped."
        elif rank > before == 0:
            caption += " The greedy beginning has been overtaken."
        elif before > rank == 0:
            caption += " The greedy beginning leads again."
        parts = [f"kept{n}"] + [f"dropped{n}"] * bool(dropped[n - 1])
        steps.append(Step(caption, parts))
    way = [names[ways["winner"][:n]] for n in range(1, len(kept) + 1)]
    alone = f"Greedy search says “{said['greedy']}”: its [sum](greedysum) is {sums['greedy']:.2f}."
    steps += [
        Step(f"The best {measure} wins. This is its way through the tree.", way),
        Step(
            f"Beam search says [“{said['winner']}”](winner): its [sum](winnersum) is"
            f" {sums['winner']:.2f}.".replace("-", "−"),
            "winner winnersum",
            ask="Would greedy search, which keeps one beginning, say the same?",
        ),
        Step(
            "Greedy search says the same."
            if ways["greedy"] == ways["winner"]
            else alone.replace("-", "−"),
            "greedy greedysum",
        ),
    ]
    height = sum(part.height + GAP for part in rows)
    return Drawing(
        body,
        *arrows,
        alt=f"A tree below the words {words}: at each step five tokens with their sums, the {beam}"
        " that are kept in colour, the others grey. At the bottom what beam search and what greedy"
        " search have found, each with its sum.",
        steps=steps,
        window=int(max(400, height)),
        **options,
    )


def shown(tokenizer: BytePair, ids: tuple[int, ...]) -> str:
    return tokenizer.decode(list(ids)).replace(" ", "␣").replace("\n", "↵")
