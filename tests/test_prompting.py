"""Prompts, and the probabilities of words after them: against one prompt at a time."""

from dataclasses import replace

import pytest
import torch

from attnbook.model.config import GPT_2
from attnbook.model.prompting import Wording, next_logp
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary

CONFIG = replace(GPT_2, d_model=12, n_heads=3, d_ff=20, n_layers=2, max_len=40, init_std=0.3)
REVIEW = Wording("Review: {}\nSentiment:", (" negative", " positive"))


def decoder(**options: object) -> TransformerDecoder:
    torch.manual_seed(0)
    vocab = Vocabulary([str(i) for i in range(26)])
    return TransformerDecoder(vocab, replace(CONFIG, **options)).eval()


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize("shared", [0, 1, 5])
@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_as_one_row_at_a_time(positions: str, shared: int, batch_size: int) -> None:
    model = decoder(positions=positions)
    draw = torch.Generator().manual_seed(shared)
    begun = torch.randint(3, 29, (shared,), generator=draw).tolist()
    lengths = (7, 2, 9, 2, 7, 7, 1, 7)
    rows = [begun + torch.randint(3, 29, (n,), generator=draw).tolist() for n in lengths]
    words = [11, 4, 23]
    with torch.no_grad():
        wanted = [model(torch.tensor([row]))[0, -1].log_softmax(-1)[words] for row in rows]
    found = next_logp(model, rows, words, batch_size=batch_size)
    torch.testing.assert_close(found, torch.stack(wanted))
    same = torch.tensor([row for row in rows if len(row) == shared + 7])
    expected = found[[len(row) == shared + 7 for row in rows]]
    torch.testing.assert_close(next_logp(model, same, words), expected)
    assert not found.requires_grad


def test_what_all_have_in_common_is_read_once() -> None:
    model, read = decoder(), []
    model.stack.embedding.register_forward_hook(lambda _, given, __: read.append(given[0].shape))
    next_logp(model, [[5, 6, 7, 8, 20], [5, 6, 7, 9, 21], [5, 6, 7, 8]], [3])
    assert read == [(1, 3), (3, 2)]
    read.clear()
    next_logp(model, [[5, 6], [5, 6]], [3])  # the last token is left to be read
    assert read == [(1, 1), (2, 1)]
    read.clear()
    next_logp(model, [[5], [6]], [3])
    assert read == [(2, 1)]


def test_a_prompt() -> None:
    assert REVIEW.ask("So {it} goes.") == "Review: So {it} goes.\nSentiment:"
    shown = REVIEW.ask("Fine.", [("Bad {}.", 0), ("Good.", 1)])
    assert shown == (
        "Review: Bad {}.\nSentiment: negative\n\nReview: Good.\nSentiment: positive\n\n"
        "Review: Fine.\nSentiment:"
    )


def test_bad_arguments() -> None:
    for text in ("no place", "{} and {}"):
        with pytest.raises(ValueError, match=r"text must have one \{\} for the sentence"):
            Wording(text, ("a", "b")).ask("so")
    with pytest.raises(ValueError, match="label must be one of 0, 1, got 2"):
        REVIEW.ask("so", [("so", 2)])
    for rows in ([], [[3], []]):
        with pytest.raises(ValueError, match="rows must be at least one"):
            next_logp(decoder(), rows, [3])
    for words in ([], [29], [-1]):
        with pytest.raises(ValueError, match="words must"):
            next_logp(decoder(), [[3]], words)
    with pytest.raises(ValueError, match="batch_size must be a whole number"):
        next_logp(decoder(), [[3]], [3], batch_size=0)
