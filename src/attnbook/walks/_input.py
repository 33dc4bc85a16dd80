"""Two texts as BERT reads them."""

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from attnbook.model.bert import Bert, pack
from attnbook.model.decoding import evaluating
from attnbook.model.recording import Calls, calls
from attnbook.show.drawing import SMALL, Part, arrow, box, cells, grid, text
from attnbook.text.tokenizers import WordPiece
from attnbook.web import Drawing, Step

SHOWN = 6  # numbers of each vector


def added(model: Bert, seen: Calls) -> dict[str, Tensor]:
    """The embeddings `[token d_model]` whose sum is the encoder's input, and `sum`."""
    stack, parts = model.stack, {"token": seen["stack.embedding"][1][0]}
    if stack.config.embedding_scale:
        parts["token"] = parts["token"] * model.d_model**0.5
    if stack.segments is not None:
        parts["segment"] = seen["stack.segments"][1][0]
    if stack.positions is not None:
        (before, *_), after = seen["stack.positions"]
        parts["position"] = (after - before)[0]
    return {**parts, "sum": seen["stack.embedding_norm"][0][0][0]}


def written_sum(numbers: Sequence[float]) -> str:
    """0.12 − 0.05 + 0.30"""
    first, *rest = (f"{x:z.2f}" for x in numbers)
    signs = [f" − {x[1:]}" if x.startswith("-") else f" + {x}" for x in rest]
    return first.replace("-", "−") + "".join(signs)


def input_layout(
    model: Bert, tokenizer: WordPiece, first: str, second: str, **options: Any
) -> Drawing:
    """Two texts as BERT reads them: the embeddings of each token, added step by step.

    Args:
        model: the first `SHOWN` numbers of its vectors are shown.
        tokenizer: the model's.
        first, second: short texts, about six tokens together.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the texts are too long for the drawing.

    Source: Devlin et al. 2019, figure 2.
    """
    pair = [[tokenizer.encode(words)] for words in (first, second)]
    packed = pack(tokenizer.vocab, *pair, max_len=len(pair[0][0]) + len(pair[1][0]) + 3)
    with evaluating(model), calls(model) as seen:
        model(packed.tokens, packed.segments if model.stack.segments is not None else None)
    vectors = added(model, seen)
    words = [tokenizer.vocab.tokens[i] for i in packed.tokens[0]]
    high = max(float(v[:, :SHOWN].abs().max()) for v in vectors.values())

    def columns(kind: str, role: str = "state") -> list[Part]:
        look = {"down": True, "span": (-high, high), "width": 26, "height": 8}
        return [cells(v[:SHOWN], role, name=kind, **look) for v in vectors[kind]]

    def small(name: str, texts: Iterable[object]) -> list[Part]:
        return [text(str(each), name=name, size=SMALL) for each in texts]

    table: list[Any] = [[box(word, name="words", size=SMALL) for word in words]]
    table += [text("vector of the token", size=SMALL, beside="token"), columns("token")]
    steps = [
        Step(
            f"Two texts become one row of {len(words)} [tokens](words). [CLS] opens it; a [SEP]"
            " closes each text.",
            "words",
        ),
        Step(
            f"Each token has a learnt [vector](token) of {model.d_model} numbers. Here are"
            f" {SHOWN} of them: the larger, the darker.",
            "token",
        ),
    ]
    if "segment" in vectors:
        table.append(text("+ vector of its text, A or B", size=SMALL, beside="segment"))
        table += [small("letters", ["AB"[s] for s in packed.segments[0]]), columns("segment")]
        steps.append(
            Step(
                "[A or B](letters) says to which text a token belongs. Each letter has one learnt"
                " [vector](segment).",
                "letters segment",
                ask="Both [SEP] have the same vector. How can the model tell them apart?",
            )
        )
    if "position" in vectors:
        table.append(text("+ vector of its place", size=SMALL, beside="position"))
        table += [small("places", range(len(words))), columns("position")]
        steps.append(
            Step(
                "Each [place](places) in the row has a [vector](position), too. Without it, “dog"
                " bites man” and “man bites dog” would be the same to the model.",
                "places position",
            )
        )
    table += [text("= what the encoder reads", size=SMALL, beside="sum"), columns("sum")]
    *parts, total = (float(vectors[kind][1, 0]) for kind in vectors)
    steps.append(
        Step(
            f"Their [sum](sum) goes into the encoder. The first number of “{words[1]}”:"
            f" {written_sum(parts)} = {written_sum([total])}.",
            "sum",
        )
    )
    kinds = [kind for kind in vectors if kind != "sum"]
    return Drawing(
        grid(table, gap=(3, 6)),
        *(arrow(kind, "sum", "state", drawn=False) for kind in kinds),
        alt=f"The tokens {' '.join(words)}, one a column. Below each stand its vectors, as cells"
        f" shaded by value, for {', '.join(kinds)}, and at the bottom their sum.",
        steps=steps,
        **options,
    )
