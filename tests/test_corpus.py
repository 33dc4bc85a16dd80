"""A stream of tokens: every piece of it, and what a model needs for all of it."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from attnbook.learn.bits import bits_per_byte, nats
from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.corpus import join, windows
from attnbook.text.tokenizers import BytePair, Characters

TOKENIZER = Characters("abc")
END = TOKENIZER.vocab.eos


def model(n_layers: int = 2) -> TransformerDecoder:
    torch.manual_seed(0)
    config = TransformerConfig(
        d_model=8, n_heads=2, d_ff=12, n_layers=n_layers, positions="learned"
    )
    return TransformerDecoder(TOKENIZER.vocab, config).eval()


def test_texts_are_joined_by_end_tokens() -> None:
    assert join(TOKENIZER, ["ab", "", "c"]).tolist() == [END, 0, 1, END, END, 2, END]
    assert join(TOKENIZER, []).tolist() == [END]


def test_windows_are_pieces_of_the_stream_and_reach_all_of_it() -> None:
    stream, seen = torch.arange(40), set()
    for step in range(60):
        tokens, targets = windows(stream, 7, step, batch_size=3)
        assert tokens.shape == (3, 7) and (targets == tokens + 1).all()
        assert (tokens.diff() == 1).all()
        seen |= set(tokens[:, 0].tolist())
    assert seen == set(range(33))


def test_windows_depend_on_seed_and_step_alone() -> None:
    stream = torch.arange(4000)
    first = windows(stream, 5, 3, seed=1).tokens
    assert first.equal(windows(stream, 5, 3, seed=1).tokens)
    assert not first.equal(windows(stream, 5, 4, seed=1).tokens)
    assert not first.equal(windows(stream, 5, 3, seed=2).tokens)


def test_a_stream_may_lie_in_a_file(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).integers(0, 4, 50).astype(np.uint16)
    ids.tofile(tmp_path / "ids")
    kept = np.memmap(tmp_path / "ids", np.uint16, "r")
    here = torch.from_numpy(ids.astype(np.int64))
    assert windows(kept, 6, 2).targets.equal(windows(here, 6, 2).targets)
    assert nats(model(), kept, 6).equal(nats(model(), here, 6))


@pytest.mark.parametrize("length", [2, 5, 8, 9, 10, 23, 24, 25])
@pytest.mark.parametrize("n", [1, 4, 7, 8])
def test_each_token_counts_once_with_half_a_window_before_it(length: int, n: int) -> None:
    torch.manual_seed(length)
    stream, one = torch.randint(4, (length,)), model()
    found = nats(one, stream, n, batch_size=3)
    assert found.shape == (length - 1,) and found.dtype == torch.float64
    for place in range(1, length):
        candidates = []
        for before in range(max(1, min(place, n // 2)), min(place, n) + 1):
            scores = one(stream[None, place - before : place])[0, -1].log_softmax(-1)
            candidates.append(-scores[stream[place]].item())
        assert min(abs(found[place - 1].item() - c) for c in candidates) < 1e-5


def test_where_all_fits_into_a_window_it_is_the_cross_entropy() -> None:
    torch.manual_seed(3)
    stream, one = torch.randint(4, (30,)), model()
    scores = one(stream[None, :-1])[0]
    expected = torch.nn.functional.cross_entropy(scores, stream[1:], reduction="none")
    torch.testing.assert_close(nats(one, stream, 50).float(), expected)


def even(tokens: Tensor) -> Tensor:
    """All tokens are as likely."""
    return torch.zeros(*tokens.shape, 257)


def test_bits_per_byte_counts_bytes_and_ends() -> None:
    tokenizer = BytePair([])
    texts = ["aé", "\N{GRINNING FACE}"]  # of 3 and 4 bytes
    assert bits_per_byte(even, tokenizer, texts, 4) == pytest.approx(9 * math.log2(257) / 7)
    assert bits_per_byte(even, tokenizer, iter(texts), 4) == bits_per_byte(
        even, tokenizer, texts, 4
    )
