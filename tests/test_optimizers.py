from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import nn

from attnbook.learn.loop import Checkpoint, train
from attnbook.learn.optimizers import AdamW, Muon
from attnbook.model.config import TINY
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary

VOCAB = Vocabulary("abcdefg")
CONFIG = replace(TINY, d_model=12, n_heads=3, d_ff=20, positions="learned", max_len=9, tied=False)


def model() -> TransformerDecoder:
    torch.manual_seed(5)
    return TransformerDecoder(VOCAB, CONFIG)


def batch(step: int) -> torch.Tensor:
    return torch.randint(3, 10, (4, 9), generator=torch.Generator().manual_seed(step))


def run(optimizer, steps=6, hooks=(), lr=0.01):
    gpt = model()

    def loss(tokens):
        return nn.functional.cross_entropy(gpt(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].ravel())

    losses = train(gpt, batch, loss, steps, lr=lr, optimizer=optimizer, on_step=hooks)
    return gpt, losses


def moved(optimizer) -> dict[str, torch.Tensor]:
    """What one update with the rate 1 and a gradient of known numbers does to each parameter."""
    gpt = model()
    before = {name: value.detach().clone() for name, value in gpt.named_parameters()}
    updater = optimizer(gpt.named_parameters())
    for i, weight in enumerate(gpt.parameters()):
        weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(i))
    for group in updater.param_groups:
        group["lr"] = group.get("scale", 1.0)
    updater.step()
    return {name: value.detach() - before[name] for name, value in gpt.named_parameters()}


def test_muon_makes_the_steps_of_blocks_as_long_in_every_direction_and_leaves_the_rest_to_adamw():
    steps = moved(Muon(weight_decay=0.0))
    plain = moved(AdamW(weight_decay=0.0))
    for name, step in steps.items():
        if "blocks" in name and step.ndim == 2:
            long = torch.linalg.svdvals(step) / (0.2 * max(step.shape) ** 0.5)
            assert long.min() > 0.6 and long.max() < 1.3, name
            other = torch.linalg.svdvals(plain[name])
            assert other.max() > 4 * other.min(), name
            torch.testing.assert_close(
                step.square().mean().sqrt(), torch.tensor(0.2), atol=0.06, rtol=0
            )
        else:
            assert step.equal(plain[name]), name
    assert steps["stack.embedding.weight"].abs().max() > 0


def test_muons_steps_are_torchs():
    matrices = [p for name, p in model().named_parameters() if "blocks" in name and p.ndim == 2]
    theirs = torch.optim.Muon(matrices, lr=1.0, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    before = [p.detach().clone() for p in matrices]
    gradients = dict(zip([n for n, _ in model().named_parameters()], range(99), strict=False))
    ours = moved(Muon())
    names = [n for n, p in model().named_parameters() if "blocks" in n and p.ndim == 2]
    for name, weight in zip(names, matrices, strict=True):
        seed = torch.Generator().manual_seed(gradients[name])
        weight.grad = torch.randn(weight.shape, generator=seed)
    theirs.step()
    for name, old, new in zip(names, before, matrices, strict=True):
        assert (new - old).equal(ours[name]), name


@pytest.mark.parametrize("optimizer", [AdamW, Muon])
def test_matrices_decay_and_vectors_do_not(optimizer):
    none, some = moved(optimizer(weight_decay=0.0)), moved(optimizer(weight_decay=0.25))
    start = dict(model().named_parameters())
    for name, step in some.items():
        decayed = -0.25 * start[name].detach() if step.ndim == 2 else torch.zeros(())
        torch.testing.assert_close(step - none[name], decayed.expand(step.shape), atol=1e-5, rtol=0)


def test_a_scale_is_a_factor_of_adamws_rate_alone():
    one, half = moved(Muon(weight_decay=0.0)), moved(Muon(weight_decay=0.0, scale=0.5))
    for name, step in half.items():
        inside = "blocks" in name and step.ndim == 2
        torch.testing.assert_close(step, one[name] * (1.0 if inside else 0.5), atol=1e-6, rtol=0)
    fast, slow = (run(Muon(weight_decay=0.0, scale=scale), steps=1)[0] for scale in (1.0, 0.5))
    for (name, a), b, c in zip(
        fast.named_parameters(), slow.parameters(), model().parameters(), strict=True
    ):
        inside = "blocks" in name and a.ndim == 2
        torch.testing.assert_close(b - c, (a - c) * (1.0 if inside else 0.5), atol=1e-6, rtol=0)


@pytest.mark.parametrize("optimizer", [AdamW(), Muon(), Muon(scale=0.3)])
def test_training_goes_on_bit_by_bit_after_a_kill(tmp_path, optimizer):
    unbroken, losses = run(optimizer)
    path = tmp_path / "run.safetensors"

    def kill(state):
        if state.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(optimizer, hooks=[Checkpoint(path, every=2), kill])
    resumed, again = run(optimizer, hooks=[Checkpoint(path, every=2)])
    assert again == losses
    for a, b in zip(resumed.parameters(), unbroken.parameters(), strict=True):
        assert a.equal(b)
    with pytest.raises(ValueError, match="must be of the run"):
        run(replace(optimizer, weight_decay=0.2), hooks=[Checkpoint(path, every=2)])


def test_a_state_travels_whole():
    updaters = []
    for _ in range(2):
        gpt = model()
        updater = Muon()(gpt.named_parameters())
        for weight in gpt.parameters():
            weight.grad = torch.ones_like(weight)
        updater.step()
        updaters.append((gpt, updater))
    (first, one), (second, other) = updaters
    one.step()
    other.load_state_dict(deepcopy(one.state_dict()))
    second.load_state_dict(first.state_dict())
    assert one.step(lambda: torch.tensor(3.0)) == 3 and other.step() is None
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert a.equal(b)


def test_muon_lowers_the_loss_as_one_optimizer():
    losses = run(Muon(weight_decay=0.0), steps=60, lr=0.02)[1]
    assert sum(losses[-5:]) < 0.98 * sum(losses[:5])
