"""The coder gives back what it was given, and needs as many bits as the model's cross-entropy."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnbook.model.coding import TOTAL, bounds, compress, restore
from attnbook.model.config import GPT_2, QWEN_3
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.text.vocabulary import Vocabulary

VOCAB = Vocabulary("abcde", pad="<end>", bos="<end>", eos="<end>")  # the end is 0
SIZES: dict[str, Any] = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2, "d_head": 4}


class Table:
    """Scores of the next token from the last one alone; counts how it was asked."""

    def __init__(self, scores: torch.Tensor, vocab: Vocabulary = VOCAB):
        self.scores, self.vocab, self.asked = scores, vocab, []

    def start(self) -> int:
        return 0

    def step(self, tokens: torch.Tensor, state: int) -> tuple[torch.Tensor, int]:
        self.asked.append((tokens.tolist()[0], state))
        return self.scores[tokens[:, -1]], state + tokens.shape[1]


def bits(scores: torch.Tensor, ids: Sequence[int], end: int = 0) -> float:
    """The model's cross-entropy of a text and its end, after an end."""
    logs = scores.double().log_softmax(-1)
    pairs = zip([end, *ids], [*ids, end], strict=True)
    return -sum(logs[a, b].item() for a, b in pairs) / math.log(2)


@given(st.lists(st.integers(1, 5), max_size=300), st.integers(0, 9), st.floats(0, 2))
def test_a_text_comes_back_from_as_many_bits_as_it_is_worth(
    ids: list[int], seed: int, sharpness: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = sharpness * torch.randn(6, 6, generator=generator)
    data = compress(Table(scores), ids)
    assert restore(Table(scores), data) == ids
    assert 8 * len(data) <= 1.01 * bits(scores, ids) + 16
    assert 8 * len(data) >= 0.99 * bits(scores, ids) - 16


def test_a_likely_text_is_short_and_an_unlikely_one_is_long() -> None:
    scores = torch.full((6, 6), -20.0)
    scores[:, 1] = 0.0
    assert len(compress(Table(scores), [1] * 5000)) <= 6  # one end, of 2^-24
    worst = compress(Table(scores), [2] * 500)
    assert len(worst) == pytest.approx(500 * 24 / 8, abs=5)
    assert restore(Table(scores), worst) == [2] * 500


def test_near_the_middle_bits_wait() -> None:
    """Pieces around the half are not decided for long."""
    scores = torch.tensor([[-8.0, 0.0, 3.0, 0.0]]).repeat(4, 1)
    model = Table(scores, Vocabulary("abc", pad="<end>", bos="<end>", eos="<end>"))
    for ids in ([2] * 400, [2] * 400 + [3] + [2] * 90, [2] * 57 + [1]):
        assert restore(model, compress(model, ids)) == ids


@given(st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=50))
def test_every_token_has_a_piece_and_all_are_the_whole(scores: list[float]) -> None:
    found = bounds(torch.tensor(scores))
    assert found[0] == 0 and found[-1] == TOTAL and len(found) == len(scores) + 1
    assert (found.diff() >= 1).all()
    share = torch.tensor(scores).double().softmax(0)
    assert ((found.diff() / TOTAL - share).abs() <= 2 * len(scores) / TOTAL).all()


def test_the_model_begins_anew_with_half_of_what_it_read() -> None:
    model, ids = Table(torch.randn(6, 6)), [1, 2, 3, 4, 5, 1, 2]
    data = compress(model, ids, context=4)
    written, model.asked = model.asked, []
    assert restore(model, data, context=4) == ids
    assert model.asked == written[:-1]
    assert written[:6] == [([0], 0), ([1], 1), ([2], 2), ([3], 3), ([3, 4], 0), ([5], 2)]
    assert max(state + len(tokens) for tokens, state in written) == 4


@pytest.mark.parametrize(
    "config",
    [replace(GPT_2, **SIZES, max_len=16), replace(QWEN_3, **SIZES, n_kv_heads=1)],
    ids=["GPT_2", "QWEN_3"],
)
@torch.no_grad()
def test_a_gpt_gives_every_byte_back(config: Any) -> None:
    tokenizer = BytePair([("t", "h"), ("th", "e")])
    torch.manual_seed(0)
    gpt = TransformerDecoder(tokenizer.vocab, config).eval()
    said = "the other thé 👍 ".encode() + bytes(range(0, 256, 7))
    ids = tokenizer.encode(said)
    data = compress(gpt, ids, context=16)
    assert tokenizer.decode_bytes(restore(gpt, data, context=16)) == said
    end = tokenizer.vocab.eos
    scores = gpt(torch.tensor([[end, *ids[:10]]])).double().log_softmax(-1)[0]
    wanted = -scores[range(10), ids[:10]].sum() - 0.0
    short = compress(gpt, ids[:10], context=16)
    wanted = (wanted - scores[10, end]).item() / math.log(2)
    assert abs(8 * len(short) - wanted) <= 0.01 * wanted + 16


def test_bad_data_and_ids_are_named() -> None:
    model = Table(torch.randn(6, 6))
    data = compress(model, [1, 2, 3, 4, 5] * 20)
    with pytest.raises(ValueError, match="ids must not hold the end token, 0"):
        compress(model, [1, 0, 2])
    with pytest.raises(ValueError, match=r"ids must be token ids in 0..5, got 6"):
        compress(model, [6])
    with pytest.raises(ValueError, match="context must be a whole number of at least 2, got 1"):
        compress(model, [1], context=1)
    with pytest.raises(ValueError, match="scores must be finite, got nan"):
        compress(Table(torch.full((6, 6), math.nan)), [1])
    never = torch.zeros(6, 6)
    never[:, 0] = -30.0
    with pytest.raises(ValueError, match="data must hold an end token, got none in 3 bytes"):
        restore(Table(never), data[:3])
    assert restore(model, compress(model, [])) == []
