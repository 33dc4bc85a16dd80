"""Tasks put as the next word: prompts with examples in front, and how likely each label word is."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnbook.checks import check_choice, check_ids, check_whole
from attnbook.model.decoding import evaluating, select_rows
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import pad_batch


class Wording(NamedTuple):
    r"""A way to put a task as the next word.

        Wording("Review: {}\nSentiment:", (" negative", " positive"))

    Attributes:
        text: what is read, with {} where the sentence goes.
        labels: the word that means each class, as it stands in a text, with its space.

    Source: Brown et al. 2020, figure 2.1; Schick and Schütze 2021, who say "pattern" and
    "verbalizer".
    """

    text: str
    labels: tuple[str, ...]

    def ask(self, sentence: str, examples: Iterable[tuple[str, int]] = ()) -> str:
        """The prompt: each example with its answer and an empty line, then the sentence.

        Args:
            sentence: whose class is asked.
            examples: sentences and their classes, 0, 1, ...

        Raises:
            ValueError: if the text has no {}, or an example a class without a word.
        """
        if self.text.count("{}") != 1:
            raise ValueError(f"text must have one {{}} for the sentence, got {self.text!r}")
        shown = []
        for each, label in examples:
            check_choice(range(len(self.labels)), label=label)
            shown.append(f"{self.text.replace('{}', each)}{self.labels[label]}\n\n")
        return "".join(shown) + self.text.replace("{}", sentence)


def next_logp(
    model: TransformerDecoder,
    rows: Sequence[Sequence[int]] | Int[Tensor, "row token"],
    words: Sequence[int],
    *,
    batch_size: int = 16,
) -> Float[Tensor, "row word"]:
    """The log-probability that each word comes next: log P(word | row), in nats.

    What all rows begin with, such as examples in a prompt, is read once; its keys and values are
    kept. The rest is read in batches of rows of about one length; shorter ones are
    padded on the left.

    Args:
        model: is asked, without dropout.
        rows: token ids of each prompt, in lists or in a tensor where all have as many.
        words: token ids of the words.
        batch_size: the most rows that are read at once.

    Returns:
        `[row word]` natural logarithms of probabilities among all tokens, in the order of the rows.

    Raises:
        ValueError: if there is no row, a row is empty, `words` are no ids of the model's tokens, or
            `batch_size` is below 1.
    """
    check_whole(1, batch_size=batch_size)
    rows = rows.tolist() if isinstance(rows, Tensor) else rows
    check_ids("words", torch.tensor(words), len(model.vocab), "word")
    if not rows or not all(rows):
        raise ValueError("rows must be at least one, each with at least one token")
    columns = zip(*(row[:-1] for row in rows), strict=False)  # a token is left to be read
    n = len([*takewhile(lambda ids: len(set(ids)) == 1, columns)])
    longer = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    found = torch.empty(len(rows), len(words))
    with evaluating(model):
        state = model.start()
        if n:
            _, state = model.step(torch.tensor([list(rows[0][:n])]), state)
        for begin in range(0, len(rows), batch_size):
            some = longer[begin : begin + batch_size]
            own = [rows[i][n:] for i in some]
            tokens = pad_batch(own, model.vocab.pad, side="left")
            width, lengths = tokens.shape[1], torch.tensor([[len(row)] for row in own])
            begun = select_rows(state, torch.zeros(len(some), dtype=torch.long))
            logits, _ = model.step(tokens, begun, torch.arange(width) >= width - lengths)
            found[some] = logits.float().log_softmax(-1)[:, list(words)]
    return found
