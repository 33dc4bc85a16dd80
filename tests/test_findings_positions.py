"""What chapter 4 found, for several seeds: why positions fail beyond the training length."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from attnbook.learn.loop import train
from attnbook.model.attention import MultiHeadAttention
from attnbook.model.positions import Rotary, SinusoidalPositions
from attnbook.text.tasks import look_back

TAUGHT, FAR = 64, 256


class Reader(nn.Module):
    def __init__(self, add: nn.Module, inside: Rotary | None) -> None:
        super().__init__()
        self.embedding, self.add = nn.Embedding(16, 64), add
        self.attention = MultiHeadAttention(64, 4, positions=inside)
        self.answer = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 16))

    def forward(self, tokens, mask=None):
        x = self.add(self.embedding(tokens))
        return self.answer(self.attention(x, causal=True, mask=mask))


@pytest.mark.full  # chapter 4 trains these models and asserts as much
@pytest.mark.parametrize("seed", [1, 2])
def test_a_window_cures_unseen_distances_and_not_unseen_positions(seed):
    i = torch.arange(FAR)
    window = (i[:, None] - i < TAUGHT)[None]
    test = look_back(FAR, seed, batch=16)
    found = {}
    for name, schemes in {
        "rotary": (nn.Identity(), Rotary(16)),
        "waves": (SinusoidalPositions(), None),
    }.items():
        torch.manual_seed(seed)
        model = Reader(*schemes)

        def loss(batch, model=model):
            return cross_entropy(model(batch.tokens).flatten(0, 1), batch.targets.flatten())

        train(
            model, lambda step: look_back(TAUGHT, 10_000 * seed + step), loss, steps=400, lr=0.003
        )
        for kind, mask in (("free", None), ("window", window)):
            right = model(test.tokens, mask=mask).argmax(-1) == test.targets
            found[name, kind] = right[:, -64:].float().mean().item()
        found[name, "taught"] = right[:, 3:TAUGHT].float().mean().item()
    assert min(found[name, "taught"] for name in ("rotary", "waves")) > 0.8
    assert found["rotary", "window"] > 0.95
    assert found["rotary", "free"] < 0.7
    assert found["waves", "window"] < 0.6
