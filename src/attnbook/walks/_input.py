"""Two texts as BERT reads them."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from attnbook.model.bert import Bert, pack
from attnbook.model.decoding import evaluating
from attnbook.model.recording import Calls, calls
from attnbook.show.drawing import SMALL, Part, arrow, box, cells, grid, text
from attnbook.text.tokenizers import WordPiece
from attnbook.walks._pieces import SHOWN, small, written_sum
from attnbook.web import Drawing, Step


def added(model: Bert, seen: Calls) -> dict[str, Tensor]:
    """The embeddings `[token d_model]` that add up to the encoder's input, and their `sum`."""
    stack, parts = model.stack, {"token": seen["stack.embedding"][1][0]}
    if stack.config.embedding_scale:
        parts["token"] = parts["token"] * model.d_model**0.5
    if stack.segments is not None:
        parts["segment"] = seen["stack.segments"][1][0]
    if stack.positions is not None:
        (before, *_), after = seen["stack.positions"]
        parts["position"] = (after - before)[0]
    return {**parts, "sum": seen["stack.embedding_norm"][0][0][0]}


def input_layout(
    model: Bert, tokenizer: WordPiece, first: str, second: str, **options: Any
) -> Drawing:
    """Two texts as BERT reads them: the embeddings of each token, added step by step.

    Args:
        model: the first `SHOWN` numbers of its vectors are shown.
        tokenizer: the model's.
        first, second: short texts, about six tokens in total.
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
    kinds = [kind for kind in vectors if kind != "sum"]
    return Drawing(
        _body(words, packed.segments[0], vectors),
        *(arrow(kind, "sum", "state", drawn=False) for kind in kinds),
        alt=f"The tokens {' '.join(words)}, one a column. Below each stand its vectors, as cells"
        f" shaded by value, for {', '.join(kinds)}, and at the bottom their sum.",
        steps=_steps(words, vectors),
        **options,
    )


def _body(words: list[str], segments: Tensor, vectors: dict[str, Tensor]) -> Part:
    high = max(float(v[:, :SHOWN].abs().max()) for v in vectors.values())

    def columns(kind: str) -> list[Part]:
        look = {"down": True, "span": (-high, high), "width": 26, "height": 8}
        return [cells(v[:SHOWN], "state", name=kind, **look) for v in vectors[kind]]

    def labels(name: str, texts: Iterable[object]) -> list[Part]:
        return [text(str(each), name=name, size=SMALL) for each in texts]

    rows: list[Any] = [[box(word, name="words", size=SMALL) for word in words]]
    rows += [small("vector of the token", "token"), columns("token")]
    if "segment" in vectors:
        rows.append(small("+ vector of its text, A or B", "segment"))
        rows += [labels("letters", ["AB"[s] for s in segments]), columns("segment")]
    if "position" in vectors:
        rows.append(small("+ vector of its place", "position"))
        rows += [labels("places", range(len(words))), columns("position")]
    rows += [small("= their sum", "sum"), columns("sum")]
    return grid(rows, gap=(3, 6))


def _steps(words: list[str], vectors: dict[str, Tensor]) -> list[Step]:
    *parts, total = (float(each[1, 0]) for each in vectors.values())
    segment = Step(
        "[A or B](letters) says to which text a token belongs. Each letter has one learnt"
        " [vector](segment).",
        "letters segment",
        ask="Both [SEP] have the same vector. How can the model tell them apart?",
    )
    position = Step(
        "Each [place](places) in the row has a [vector](position), too. Without it, “dog"
        " bites man” and “man bites dog” would be the same to the model.",
        "places position",
    )
    return [
        Step(
            f"Two texts become one row of {len(words)} [tokens](words). [CLS] opens it; a [SEP]"
            " closes each text.",
            "words",
        ),
        Step(
            f"Each token has a learnt [vector](token) of {vectors['token'].shape[1]} numbers. Here"
            f" are {SHOWN} of them: the larger, the stronger the colour.",
            "token",
        ),
        *([segment] if "segment" in vectors else []),
        *([position] if "position" in vectors else []),
        Step(
            f"Their [sum](sum) goes into the encoder. The first number of “{words[1]}”:"
            f" {written_sum(parts)} = {written_sum([total])}.",
            "sum",
        ),
    ]
