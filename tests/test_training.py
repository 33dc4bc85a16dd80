import copy
import math
import os
import subprocess
import sys
from collections import UserDict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from attnbook.learn import loop as training
from attnbook.learn.loop import Checkpoint, Cosine, Noam, Run, StableDecay, autocast, train


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))

    def loss(self, batch):
        return (self.layers(batch) - batch.sum(1, keepdim=True)).square().mean()


def batch(step):
    return torch.randn(16, 4, generator=torch.Generator().manual_seed(step))


def run(checkpoint=None, **options):
    model = Regression()
    hooks = [Checkpoint(checkpoint, every=10)] if checkpoint else []
    losses = train(
        model, batch, model.loss, **({"steps": 60, "lr": 0.02, "on_step": hooks} | options)
    )
    return model, losses


def test_training_lowers_the_loss_and_ends_in_evaluation_mode():
    model, losses = run(steps=300)
    assert sum(losses[-20:]) < 0.2 * sum(losses[:20])
    assert not model.training


def test_the_device_is_checked_before_anything_is_trained(monkeypatch):
    def refuse(device):
        raise RuntimeError(f"{device} computes wrongly")

    monkeypatch.setattr(training, "check_device", refuse)
    model = Regression()
    with pytest.raises(RuntimeError, match="computes wrongly"):
        train(model, batch, lambda b: pytest.fail("was trained"), steps=1, lr=0.02)


def test_the_model_comes_back_to_the_device_where_it_was(monkeypatch):
    model, moves = Regression(), []
    monkeypatch.setattr(model, "to", lambda device: moves.append(device) or model)
    train(model, batch, model.loss, steps=1, lr=0.02)
    assert len(moves) == 2 and moves[-1] == next(model.parameters()).device


@pytest.mark.parametrize("error", [KeyboardInterrupt, FloatingPointError])
def test_a_run_that_breaks_off_leaves_the_model_as_one_that_ends(monkeypatch, error):
    model, moves = Regression(), []
    monkeypatch.setattr(model, "to", lambda device: moves.append(device) or model)

    def stopped(step):
        if step == 2:
            raise error
        return batch(step)

    with pytest.raises(error):
        train(model, stopped, model.loss, steps=5, lr=0.02)
    assert not model.training and len(moves) == 2


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
    assert warm[:9] == pytest.approx([0.3 * (t + 1) / 9 for t in range(8)] + [0.3])
    assert warm[8:] == sorted(warm[8:], reverse=True) and 0 < warm[-1] < 0.001
    assert warm[8 + 16] == pytest.approx(0.15)  # half of the way down
    assert [Cosine(0.3, steps)(t) for t in (steps, 2 * steps)] == [0, 0]
    least = [Cosine(0.3, steps, warmup=8, least=0.1)(t) for t in (8, 8 + 16, steps, 2 * steps)]
    assert least == pytest.approx([0.3, 0.2, 0.1, 0.1])


def test_the_stable_rate_rises_stays_and_falls():
    rates = [StableDecay(0.3, 40, warmup=8, least=0.1, decay=10)(t) for t in range(50)]
    assert rates[:8] == pytest.approx([0.3 * (t + 1) / 9 for t in range(8)])
    assert rates[8:31] == [0.3] * 23 and rates[31] < 0.3  # the fall begins at 30
    assert rates[35] == pytest.approx(0.2) and rates[40:] == [0.1] * 10
    assert rates[30:41] == pytest.approx([0.3 - 0.02 * t for t in range(11)])
    assert [StableDecay(1.0, n, warmup=w).fall for n, w in ((40, 8), (3, 0), (20, 18))] == [8, 1, 2]
    assert StableDecay(1.0, 40)(32) == 1 > StableDecay(1.0, 40)(33) > 0


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
        train(model, killed, model.loss, steps=60, lr=0.02, on_step=[Checkpoint(path, every=10)])
    seen = []
    model = Regression()
    resumed = train(
        model,
        lambda s: seen.append(s) or batch(s),
        model.loss,
        steps=60,
        lr=0.02,
        on_step=[Checkpoint(path)],
    )
    assert seen[0] == 30
    assert resumed == losses
    for a, b in zip(model.parameters(), unbroken.parameters(), strict=True):
        assert a.equal(b)
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]


def test_a_checkpoint_of_another_run_is_refused_and_kept(tmp_path):
    path = tmp_path / "run.safetensors"
    run(checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="must be of the run with steps 61, got 60"):
        run(steps=61, checkpoint=path)
    other = nn.Linear(4, 1)
    with pytest.raises(ValueError, match="must fit the model"):
        train(
            other,
            batch,
            lambda b: other(b).sum(),
            steps=60,
            lr=0.02,
            on_step=[Checkpoint(path)],
        )
    assert path.read_bytes() == before
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match="must be a checkpoint"):
        run(checkpoint=path)
    assert path.read_bytes() == b"no checkpoint"


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop])
def test_any_optimizer_trains_and_resumes(tmp_path, optimizer):
    path = tmp_path / "run.safetensors"
    unbroken, losses = run(optimizer=optimizer)
    assert losses != run()[1]

    def killed(step):
        if step == 25:
            raise KeyboardInterrupt
        return batch(step)

    model = Regression()
    options = {"steps": 60, "lr": 0.02, "optimizer": optimizer}
    with pytest.raises(KeyboardInterrupt):
        train(model, killed, model.loss, on_step=[Checkpoint(path, every=10)], **options)
    resumed, again = run(checkpoint=path, optimizer=optimizer)
    assert again == losses
    for a, b in zip(resumed.parameters(), unbroken.parameters(), strict=True):
        assert a.equal(b)
    with pytest.raises(ValueError, match="must be of the run"):
        run(checkpoint=path)


def test_hooks_are_called_before_the_first_update_and_after_each():
    seen = []

    def watch(run: Run):
        seen.append((run.step, list(run.losses), run.steps))

    def evaluate(run: Run):
        run.model.eval()

    losses = run(steps=3, on_step=[watch])[1]
    assert seen == [(n, losses[:n], 3) for n in range(4)]
    with_evaluation = run(steps=3, on_step=[evaluate])[1]
    assert with_evaluation == losses, "a hook that evaluates must not change the training"


def test_a_loss_that_is_not_finite_stops_the_run():
    model = Regression()
    with pytest.raises(FloatingPointError, match="the loss is inf at step 0"):
        train(model, batch, lambda b: model.loss(b) * torch.inf, steps=5, lr=0.1)


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


def test_two_processes_give_the_losses_of_one(tmp_path):
    script = Path(__file__).parent / "helpers/several_processes.py"
    environment = {**os.environ, "ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"}
    # what `accelerate launch` calls where there are several devices
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    for command in ([sys.executable], launch):
        done = subprocess.run(
            [*command, script, tmp_path], capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
    names = ("1-0", "2-0", "2-1")
    alone, first, second = (load_file(tmp_path / f"{name}.safetensors") for name in names)
    rows = [part.pop("rows") for part in (alone, first, second)]
    asked = [step for step in range(20) if step % 6 != 5]  # where the second process learns
    assert rows[0].shape == rows[1].shape and rows[0][asked].equal(rows[1][asked] + rows[2])
    for name, value in alone.items():
        assert first[name].equal(second[name])
        torch.testing.assert_close(first[name], value, atol=1e-5, rtol=0)
    assert alone["losses"][-1] < alone["losses"][0] - 0.5


def weights_after(steps, scale, **options):
    """A plain gradient step shows how long the gradient is, which Adam hides."""
    model = nn.Linear(3, 1, bias=False)
    nn.init.ones_(model.weight)
    x = scale * torch.arange(6.0).reshape(2, 3)
    train(
        model,
        lambda step: x,
        lambda x: model(x).sum(),
        steps,
        lr=lambda step: 1.0,
        optimizer=torch.optim.SGD,
        **options,
    )
    return 1 - model.weight.detach().flatten()


def test_a_long_gradient_is_cut_to_the_norm_and_keeps_its_direction():
    gradient = torch.tensor([3.0, 5.0, 7.0])  # times the scale
    for clip in (1.0, 0.25):
        cut = clip * gradient / gradient.norm()
        torch.testing.assert_close(weights_after(1, 10, clip=clip), cut, atol=1e-5, rtol=0)
    for scale, options in ((0.01, {}), (10, {"clip": None})):  # short enough, or never cut
        moved = weights_after(1, scale, **options)
        torch.testing.assert_close(moved, scale * gradient, atol=1e-5, rtol=0)


def test_a_gradient_of_fp16_is_cut_as_long_as_it_is_and_not_as_it_is_scaled():
    """The first of two updates is left out: its scale, 2^16, is no number in 16 bits."""
    gradient = 0.01 * torch.tensor([3.0, 5.0, 7.0])
    for clip, expected in ((0.05, 0.05 * gradient / gradient.norm()), (1.0, gradient)):
        moved = weights_after(2, 0.01, precision="fp16", clip=clip)
        torch.testing.assert_close(moved, expected, atol=1e-4, rtol=0)


def test_each_step_draws_its_own_dropout():
    model, seen = nn.Sequential(nn.Dropout(0.5), nn.Linear(40, 1)), []
    model[0].register_forward_hook(lambda _, inputs, out: seen.append(out == 0))
    train(model, lambda step: torch.ones(1, 40), lambda x: model(x).sum(), steps=3, lr=0.1)
    assert not seen[0].equal(seen[1]) and not seen[1].equal(seen[2])


def test_a_checkpoint_keeps_the_end_whatever_its_interval(tmp_path):
    path = tmp_path / "run.safetensors"
    losses = run(steps=10, on_step=[Checkpoint(path, every=7)])[1]
    assert load_file(path)["losses"].tolist() == losses


def test_a_gradient_that_is_not_finite_stops_the_run_before_the_update(tmp_path):
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    path = tmp_path / "run.safetensors"
    with pytest.raises(FloatingPointError, match="the gradient is nan long at step 0"):
        train(
            model,
            lambda step: torch.ones(1, 1),
            lambda x: model(x).square().sum().sqrt(),  # finite, its gradient at 0 is not
            4,
            lr=0.1,
            on_step=[Checkpoint(path, 1)],
        )
    assert model.weight.item() == 0 and not path.exists()


def test_parts_of_a_batch_give_the_gradient_of_the_whole():
    """Of 16 rows in 5 parts: 4 rows, and four times 3."""
    models, found = [Regression() for _ in range(2)], []
    for model, parts in zip(models, (1, 5), strict=True):
        model.layers[2] = nn.Identity()  # dropout would differ, as each part draws its own
        options = {"steps": 9, "lr": 0.1, "optimizer": torch.optim.SGD}
        found.append(train(model, batch, model.loss, accumulate=parts, **options))
    assert found[0] == pytest.approx(found[1], abs=1e-6) and found[0][-1] < found[0][0]
    for a, b in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", [dict, UserDict, lambda x: (None, x), lambda x: [{"x": x}]])
def test_parts_of_whatever_holds_tensors_are_taken(kind):
    """As `BatchEncoding` of `transformers`, a mapping that is no dictionary."""
    seen = []

    def loss(part):
        while not isinstance(part, torch.Tensor):
            part = part["x"] if isinstance(part, Mapping) else part[-1]
        seen.append(part)
        return model.loss(part)

    model, rows = Regression(), batch(0)
    whole = kind({"x": rows}) if isinstance(kind, type) else kind(rows)
    train(model, lambda step: whole, loss, 1, lr=0.1, accumulate=2)
    assert [part.tolist() for part in seen] == [rows[0::2].tolist(), rows[1::2].tolist()]


def test_parts_count_by_their_terms_and_one_without_a_term_counts_nothing():
    lengths = torch.tensor([9.0, 1.0, 0.0, 2.0])
    moved = []
    for accumulate in (1, 2, 4):
        weight = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(weight.weight)
        train(
            weight,
            lambda step: lengths,
            lambda n, weight=weight: (weight.weight * n.square()).sum() / n.sum(),
            1,
            lr=1.0,
            clip=None,
            optimizer=torch.optim.SGD,
            accumulate=accumulate,
            count=lambda n: n.sum(),
        )
        moved.append(weight.weight.item())
    assert moved == pytest.approx(3 * [-86 / 12])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_batch_without_a_counted_term_changes_nothing(accumulate):
    model = nn.Linear(1, 1)
    before = copy.deepcopy(model.state_dict())
    train(
        model,
        lambda step: torch.ones(4, 1),
        lambda x: 0.0 * model(x).sum(),
        1,
        lr=1.0,
        optimizer=torch.optim.SGD,
        accumulate=accumulate,
        count=lambda x: 0,
    )
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.half)])
def test_half_precision_multiplies_in_half_and_learns_as_well(tmp_path, precision, dtype):
    kinds = set()
    model = Regression()
    model.layers[0].register_forward_hook(lambda _, inputs, out: kinds.add(out.dtype))
    losses = train(model, batch, model.loss, steps=60, lr=0.02, precision=precision)
    assert kinds == {dtype} and {p.dtype for p in model.parameters()} == {torch.float32}
    full = run()[1]
    assert losses != full and losses[0] == pytest.approx(full[0], rel=1e-2)
    # fp16 leaves out an update
    assert sum(losses[-20:]) == pytest.approx(sum(full[-20:]), rel=0.15)
    path = tmp_path / "run.safetensors"

    def kill(state: Run):
        if state.step == 25:
            raise KeyboardInterrupt

    hooks = [Checkpoint(path, every=10), kill]
    with pytest.raises(KeyboardInterrupt):
        run(precision=precision, on_step=hooks)
    assert run(checkpoint=path, precision=precision)[1] == losses
    with pytest.raises(ValueError, match="must be of the run"):
        run(checkpoint=path)


def test_an_update_too_large_for_fp16_is_left_out_and_the_scale_comes_back(tmp_path):
    """The first scale, 2^16, is too large here; it falls until gradients are finite."""
    model, path = nn.Linear(4, 1, bias=False), tmp_path / "run.safetensors"
    scales, weights = [], []

    def watch(state: Run):
        scales.append(state.scaler.get_scale())
        weights.append(model.weight.detach().clone())

    def go(hooks, steps=12):
        return train(
            model,
            lambda step: torch.full((3, 4), 3.0),
            lambda x: model(x).float().mean() * 60,
            steps,
            lr=Cosine(1e-4, 100),
            optimizer=torch.optim.SGD,
            precision="fp16",
            on_step=hooks,
        )

    go([watch, Checkpoint(path)])
    falls = sum(b < a for a, b in pairwise(scales))
    assert scales[0] == 2**16 and scales[-1] == 2**16 / 2**falls and 0 < falls < 11
    assert weights[falls].equal(weights[0]) and not weights[falls + 1].equal(weights[0])
    again = []
    go([Checkpoint(path), lambda state: again.append(state.scaler.get_scale())])
    assert again == scales[-1:]


def test_a_device_without_a_precision_is_said(monkeypatch):
    monkeypatch.setattr(torch.amp, "is_autocast_available", lambda kind: False)
    with pytest.raises(ValueError, match="precision must be one that the device 'cpu' computes"):
        run(precision="bf16")
    cuda = torch.device("cuda")
    monkeypatch.setattr(torch.amp, "is_autocast_available", lambda kind: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    with pytest.raises(ValueError, match="the device 'cuda' computes with, as 'no', got 'bf16'"):
        autocast("bf16", cuda)


def test_the_bar_shows_loss_and_tokens(monkeypatch, capsys):
    monkeypatch.setenv("ATTNBOOK_PROGRESS", "1")
    losses = run(steps=4, tokens=16)[1]
    shown = capsys.readouterr().err
    assert "64.0/64.0" in shown and "tokens/s" in shown and f"loss={losses[-1]:.3f}" in shown


def test_a_single_device_needs_no_accelerate():
    code = """
import sys
sys.modules["accelerate"] = None  # an import of it fails
import torch
from attnbook.learn import engine, train
model = torch.nn.Linear(3, 1)
train(model, lambda step: torch.ones(2, 3), lambda x: model(x).square().mean(), 2, lr=0.1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_several_processes_say_that_they_need_accelerate(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ImportError, match=r'pip install "attnbook\[devices\]"'):
        run(steps=1)
