import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from attnbook.data import PAD
from attnbook.training import Cosine, Noam, label_smoothing_loss, train


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))

    def loss(self, batch):
        return (self.layers(batch) - batch.sum(1, keepdim=True)).square().mean()


def batch(step):
    return torch.randn(16, 4, generator=torch.Generator().manual_seed(step))


def run(**options):
    model = Regression()
    losses = train(model, batch, model.loss, **({"steps": 60, "lr": 0.02} | options))
    return model, losses


def test_training_lowers_the_loss_and_ends_in_evaluation_mode():
    model, losses = run(steps=300)
    assert sum(losses[-20:]) < 0.2 * sum(losses[:20])
    assert not model.training


def test_the_first_step_is_adam_with_the_given_rate():
    model, _ = run(steps=1)
    start = Regression()
    moved = (model.get_parameter("layers.0.weight") - start.get_parameter("layers.0.weight")).abs()
    assert torch.allclose(moved, torch.full_like(moved, 0.02), rtol=1e-2)


def test_the_cosine_falls_from_the_rate_to_nothing_and_a_warm_up_leads_to_it():
    steps = 40
    plain = [Cosine(0.3, steps)(t) for t in range(steps)]
    half = [0.3 * (1 + math.cos(math.pi * t / steps)) / 2 for t in range(steps)]
    assert plain == pytest.approx(half) and run(lr=0.3)[1] == run(lr=Cosine(0.3, 60))[1]
    warm = [Cosine(0.3, steps, warmup=8)(t) for t in range(steps)]
    assert warm[:9] == pytest.approx([0.3 * (t + 1) / 8 for t in range(8)] + [0.3])
    assert warm[8:] == sorted(warm[8:], reverse=True) and 0 < warm[-1] < 0.001
    assert warm[8 + 16] == pytest.approx(0.15)  # half of the way down
    assert [Cosine(0.3, steps)(t) for t in (steps, 2 * steps)] == [0, 0]


def test_noam_is_the_papers_schedule():
    rate = Noam(512, 4000)
    assert [rate(t) for t in range(4)] == pytest.approx(
        [t * 512**-0.5 * 4000**-1.5 for t in (1, 2, 3, 4)]
    )
    rates = [rate(t) for t in range(16000)]
    assert max(rates) == rates[3999] == pytest.approx((512 * 4000) ** -0.5)
    assert rates[15999] == pytest.approx(rates[3999] / 2)  # one over the root: four times later
    assert Noam(512, 4000, factor=3.0)(99) == pytest.approx(3 * rate(99))


def test_a_schedule_is_followed_step_by_step():
    model = Regression()
    before = [p.detach().clone() for p in model.parameters()]
    train(model, batch, model.loss, steps=3, lr=lambda step: 0.0 if step else 0.02)
    once = Regression()
    train(once, batch, once.loss, steps=1, lr=0.02)
    for old, new, expected in zip(before, model.parameters(), once.parameters(), strict=True):
        assert torch.equal(new, expected) and not torch.equal(new, old)


def test_a_checkpoint_knows_its_schedule(tmp_path):
    path = tmp_path / "run.safetensors"
    run(lr=Noam(8, 10), checkpoint=path)
    run(lr=Noam(8, 10), checkpoint=path)
    with pytest.raises(ValueError, match="must be of the run"):
        run(lr=Noam(8, 20), checkpoint=path)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (lambda: Cosine(0.1, 10, warmup=10), r"warmup must lie in 0..9, got 10"),
        (lambda: Cosine(0.1, 10, warmup=-1), r"warmup must lie in 0..9, got -1"),
        (lambda: Noam(512, 0), r"warmup must be at least 1, got Noam\(.*warmup=0"),
    ],
)
def test_schedules_that_make_no_sense(schedule, message):
    with pytest.raises(ValueError, match=message):
        schedule()


def test_same_seed_same_run_other_seed_other_dropout():
    assert run(seed=1)[1] == run(seed=1)[1]
    assert run(seed=1)[1] != run(seed=2)[1]


def test_a_killed_run_resumes_with_the_same_result(tmp_path):
    unbroken, losses = run()
    path = tmp_path / "run.safetensors"

    def killed(step):
        if step == 37:
            raise KeyboardInterrupt
        return batch(step)

    model = Regression()
    with pytest.raises(KeyboardInterrupt):
        train(model, killed, model.loss, steps=60, lr=0.02, checkpoint=path, checkpoint_every=10)
    seen = []
    model = Regression()
    resumed = train(
        model, lambda s: seen.append(s) or batch(s), model.loss, steps=60, lr=0.02, checkpoint=path
    )
    assert seen[0] == 30
    assert resumed == losses
    for a, b in zip(model.parameters(), unbroken.parameters(), strict=True):
        assert a.equal(b)
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]


def test_a_checkpoint_of_another_run_is_refused_and_kept(tmp_path):
    path = tmp_path / "run.safetensors"
    run(checkpoint=path)
    before = load_file(path)
    with pytest.raises(ValueError, match=r"must be of the run .*'steps': '61'"):
        run(steps=61, checkpoint=path)
    other = nn.Linear(4, 1)
    with pytest.raises(ValueError, match="must fit the model"):
        train(other, batch, lambda b: other(b).sum(), steps=60, lr=0.02, checkpoint=path)
    assert load_file(path).keys() == before.keys()


def test_a_loss_that_is_not_finite_stops_the_run():
    model = Regression()
    with pytest.raises(FloatingPointError, match="the loss is inf at step 0"):
        train(model, batch, lambda b: model.loss(b) * torch.inf, steps=5, lr=0.1)


@pytest.mark.parametrize("name", ["steps", "checkpoint_every"])
def test_counts_below_one(name):
    with pytest.raises(ValueError, match=f"must be at least 1, got .*{name}=0"):
        run(**{name: 0})


def test_a_checkpoint_makes_its_folder_and_knows_every_setting(tmp_path):
    path = tmp_path / "runs" / "a.safetensors"
    run(checkpoint=path)
    for changed in ({"clip": 2.0}, {"seed": 1}, {"lr": 0.01}):
        with pytest.raises(ValueError, match="must be of the run"):
            run(checkpoint=path, **changed)


def test_a_write_that_breaks_off_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"

    def power_cut(*_):
        raise OSError("power cut")

    run(checkpoint=path)
    before = path.read_bytes()
    path.rename(tmp_path / "kept")
    monkeypatch.setattr("os.replace", power_cut)
    with pytest.raises(OSError, match="power cut"):
        run(checkpoint=path)
    assert not path.exists()
    assert (tmp_path / "kept").read_bytes() == before


def test_two_processes_average_their_gradients(tmp_path):
    script = Path(__file__).with_name("several_processes.py")
    # what `accelerate launch` calls where there are several devices
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launch, script, tmp_path], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    first, second = (load_file(tmp_path / f"{i}.safetensors") for i in range(2))

    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        for part in (2 * step, 2 * step + 1):
            x = torch.randn(5, 3, generator=torch.Generator().manual_seed(part))
            (model(x).square().mean() / 2).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = 0.1 * (1 + math.cos(math.pi * step / 4)) / 2
        optimizer.step()
    for name, value in model.state_dict().items():
        assert first[name].equal(second[name])
        assert (first[name] - value).abs().max() < 1e-6


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_label_smoothing_is_pytorchs_and_the_definition(smoothing):
    logits = 3 * torch.randn(2, 5, 11, requires_grad=True)
    target = torch.randint(1, 11, (2, 5))
    target[1, 3:] = PAD
    ours = label_smoothing_loss(logits, target, smoothing)
    theirs = functional.cross_entropy(
        logits.transpose(1, 2), target, ignore_index=PAD, label_smoothing=smoothing
    )
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    q = (1 - smoothing) * functional.one_hot(target, 11) + smoothing / 11
    each = -(q * logits.softmax(-1).log()).sum(-1)
    torch.testing.assert_close(ours, each[target != PAD].mean(), atol=1e-5, rtol=0)
    for a, b in zip(*(torch.autograd.grad(x, logits) for x in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=0)


def test_label_smoothing_at_extremes():
    barred = torch.tensor([[0.5, 1.0, -torch.inf]])
    assert label_smoothing_loss(barred, torch.tensor([1])).isfinite()
    logits = torch.tensor([[1e4, 0.0, -1e4]])
    assert label_smoothing_loss(logits, torch.tensor([0]), ignore_index=-1) == 0
    assert label_smoothing_loss(logits, torch.tensor([2]), 0.1, ignore_index=-1).isfinite()
    with pytest.raises(ValueError, match=r"smoothing must lie in 0..1, got 1.1"):
        label_smoothing_loss(logits, torch.tensor([0]), 1.1)
