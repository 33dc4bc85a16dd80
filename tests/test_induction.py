"""Scores of induction against a loop; silenced heads against an attention without them."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from attnbook.model.config import GPT_2
from attnbook.model.induction import induction, silenced
from attnbook.model.recording import calls
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary

CONFIG = replace(GPT_2, d_model=12, n_heads=3, d_ff=20, n_layers=2, max_len=40, init_std=0.3)


def decoder() -> TransformerDecoder:
    torch.manual_seed(0)
    return TransformerDecoder(Vocabulary([str(i) for i in range(26)]), CONFIG).eval()


def test_scores_against_a_loop() -> None:
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(5, (4, 7), generator=draw)
    weights = torch.rand(4, 3, 7, 7, generator=draw).tril()
    found: list[list[float]] = []
    for row, maps in zip(tokens.tolist(), weights, strict=True):
        for i, token in enumerate(row):
            if places := [j + 1 for j in range(i) if row[j] == token]:
                found.append([sum(float(each[i, k]) for k in places) for each in maps])
    torch.testing.assert_close(induction(weights, tokens), torch.tensor(found).mean(0))


def test_a_head_that_copies_has_one_and_one_that_looks_back_none() -> None:
    tokens = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3]])
    maps = torch.zeros(1, 2, 8, 8)
    for i in range(8):
        maps[0, 0, i, max(0, i - 3)] = 1  # after the same token, four places ago
        maps[0, 1, i, max(0, i - 1)] = 1
    assert induction(maps, tokens).tolist() == [1, 0]


def test_a_silenced_head_adds_nothing_and_comes_back() -> None:
    model, tokens = decoder(), torch.tensor([[5, 6, 7, 5, 6]])
    before = {name: each.clone() for name, each in model.state_dict().items()}
    with torch.no_grad(), calls(model) as whole:
        model(tokens)
    path = "stack.blocks.1.attention.out"
    (heads,), _ = whole[path]
    left = heads.clone()
    left[..., 4:8] = 0  # the second of three heads of four numbers
    block: Any = model.stack.blocks[1]
    out = block.attention.out
    with torch.no_grad(), silenced(model, [(1, 1)]), calls(model) as less:
        model(tokens)
    torch.testing.assert_close(less[path][1], left @ out.weight.T + out.bias)
    torch.testing.assert_close(less["stack.blocks.0"][1], whole["stack.blocks.0"][1])
    with pytest.raises(RuntimeError), silenced(model, [(0, 0), (0, 2), (1, 1)]):
        raise RuntimeError
    assert all(before[name].equal(each) for name, each in model.state_dict().items())


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"weights must be \[batch head token token\]"):
        induction(torch.zeros(1, 2, 3, 4), torch.zeros(1, 3, dtype=torch.long))
    with pytest.raises(ValueError, match="a token twice in a row, got none"):
        induction(torch.zeros(1, 2, 3, 3), torch.tensor([[1, 2, 3]]))
    for heads, what in (([(2, 0)], "layer"), ([(0, 3)], "head")):
        with pytest.raises(ValueError, match=f"{what} must be one of"), silenced(decoder(), heads):
            pass
