"""Training in the page's engine, run by Node, against PyTorch: gradients, updates, a lesson."""

import random
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, SequentialLR

from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import IGNORED, Vocabulary
from attnbook.web import Laboratory
from tests.helpers.engine import array, node, same, shaken, written

RUN = """
import { readFileSync } from "node:fs";
import { read } from "ENGINE/safetensors.js";
import { backward, pass } from "ENGINE/tape.js";
import { begin } from "ENGINE/lesson.js";
import { adamW, clip, OPTIMIZERS, rate } from "ENGINE/optimizers.js";
import { crossEntropy, firstParameters, nextLogits } from "ENGINE/training.js";
import { causal } from "ENGINE/transformer.js";
const named = (parameters, of) => Object.fromEntries(
  [...parameters].map(([name, x]) => [name, { data: [...of(x)], shape: x.shape }]));
const jobs = {
  train({ file, config, tokens, targets, seen, batch, steps, clipped, rates, options }) {
    const { parameters } = read(new Uint8Array(readFileSync(file)).buffer);
    const all = [...parameters.values()];
    for (const x of all) x.grad = new Float32Array(x.data.length);
    const p = (name) => parameters.get(name), update = adamW(parameters, options);
    const mask = seen === "causal" ? causal() : seen ? (i, j) => seen[i][j] : undefined;
    let gradients;
    const losses = [], lengths = [];
    for (let n = 0; n < steps; n++) {
      losses.push(pass(() => backward(() =>
        crossEntropy(nextLogits(p, config, tokens, { mask, batch }).logits, targets))));
      gradients ??= named(parameters, ({ grad }) => grad);
      lengths.push(clip(all, clipped));
      update(rates[n]);
    }
    return { losses, lengths, gradients, parameters: named(parameters, ({ data }) => data) };
  },
  rates: ({ settings, steps }) => Array.from({ length: steps }, (_, n) => rate(n, settings)),
  moved({ optimizer, named: given, gradients, lr }) {
    const tensor = ([name, { data, shape }]) =>
      [name, { data: Float32Array.from(data), shape, grad: new Float32Array(data.length) }];
    const parameters = new Map(Object.entries(given).map(tensor));
    const update = OPTIMIZERS[optimizer](parameters);
    for (const step of gradients) {
      for (const [name, x] of parameters) x.grad.set(step[name]);
      update(lr);
    }
    const rest = [...parameters.values()].some(({ grad }) => grad.some((g) => g !== 0));
    return { rest, parameters: named(parameters, ({ data }) => data) };
  },
  first: ({ config, size, seed }) => named(firstParameters(config, size, seed), ({ data }) => data),
  lesson({ settings, steps, texts }) {
    const lesson = begin(settings), { losses, tests } = lesson.train({ steps });
    const looks = texts.map((text) => lesson.look({ text }));
    return { losses, tests, looks, sizes: lesson.sizes };
  },
};
const { job, ...given } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(jobs[job](given)));
"""
BATCH, N, SIZE = 3, 7, 11
WORDS = ("norm", "normalizer", "activation", "positions", "rotary_pairing")


def drawn(seed: int) -> TransformerConfig:
    """A configuration by chance, of all choices that there are."""
    rng = random.Random(seed)
    hints = get_type_hints(TransformerConfig)
    chosen: dict[str, Any] = {name: rng.choice(get_args(hints[name])) for name in WORDS}
    flags = ("residual", "gated", "qk_norm", "bias", "embedding_scale", "embedding_norm", "tied")
    chosen |= {flag: rng.random() < 0.5 for flag in flags}
    heads, groups = rng.choice([(3, 3), (4, 2), (2, 1), (6, 3)])
    return TransformerConfig(
        d_model=24,
        n_heads=heads,
        n_kv_heads=groups,
        d_head=rng.choice([None, 10]),
        d_ff=rng.choice([0, 20, 36]),
        n_layers=rng.choice([1, 2, 3]),
        max_len=N + 2,
        final_norm=rng.choice([None, True, False]),
        rotary_base=rng.choice([100.0, 10000.0]),
        **chosen,
    )


def decoder(config: TransformerConfig) -> TransformerDecoder:
    letters = [chr(97 + n) for n in range(SIZE - 3)]
    model = shaken(TransformerDecoder(Vocabulary(letters), config))
    with torch.no_grad():  # without norms, larger numbers grow from layer to layer
        for name, parameter in model.named_parameters():
            parameter.mul_(1.0 if "norm" in name else 0.4)
    return model


def logits(model: TransformerDecoder, tokens: Tensor, mask: Tensor | None) -> Tensor:
    """Scores under any mask; the decoder itself knows the causal one alone."""
    states = model.stack(tokens, mask=None if mask is None else mask[None])
    return states @ model.stack.embedding.weight.T if model.head is None else model.head(states)


MASKS = {
    "causal": torch.ones(N, N).tril().bool(),
    "any": torch.rand(N, N, generator=torch.Generator().manual_seed(2)) < 0.6,
    "all": None,
}


@pytest.mark.parametrize("seed", range(12))
def test_gradients_are_torchs(seed: int, tmp_path: Path) -> None:
    """Twelve configurations by chance: losses, all gradients, and three steps of AdamW."""
    torch.manual_seed(seed)
    config, kind = drawn(seed), list(MASKS)[seed % 3]
    model, mask = decoder(config), MASKS[kind]
    tokens = torch.randint(SIZE, (BATCH, N))
    targets = torch.randint(SIZE, (BATCH, N)).masked_fill(torch.rand(BATCH, N) < 0.4, IGNORED)
    rates, options = [1e-2, 3e-3, 2e-2], {"betas": [0.8, 0.95], "eps": 1e-6, "decay": 0.2}
    told = node(
        "train",
        RUN,
        file=written(model.state_dict(), tmp_path / "weights"),
        config=asdict(config),
        tokens=tokens.flatten().tolist(),
        targets=targets.flatten().tolist(),
        seen="causal" if kind == "causal" else None if mask is None else mask.tolist(),
        batch=BATCH,
        steps=len(rates),
        clipped=0.5,
        rates=rates,
        options=options,
    )
    betas, eps, decay = options.values()
    optimizer = torch.optim.AdamW(model.parameters(), betas=betas, eps=eps, weight_decay=decay)
    for n, rate in enumerate(rates):
        optimizer.zero_grad()
        scores = model(tokens) if kind == "causal" else logits(model, tokens, mask)
        loss = cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        loss.backward()
        assert told["losses"][n] == pytest.approx(loss.item(), rel=1e-5, abs=1e-4)
        if n == 0:
            assert set(told["gradients"]) == {name for name, _ in model.named_parameters()}
            for name, parameter in model.named_parameters():
                grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                same(told["gradients"][name], grad, 1e-4 * max(1.0, grad.abs().max().item()))
        length = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        assert told["lengths"][n] == pytest.approx(length.item(), rel=1e-3)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
    for name, parameter in model.named_parameters():
        if not name.endswith(
            "k.bias"
        ):  # its gradient is zero but for rounding, and AdamW scales it
            same(told["parameters"][name], parameter, 2e-4)


SHAPES = {
    "stack.embedding.weight": (11, 12),
    "stack.blocks.0.attention.q.weight": (12, 12),
    "stack.blocks.0.attention.q.bias": (12,),
    "stack.blocks.0.feed_forward.up.weight": (20, 12),
    "stack.blocks.0.feed_forward.down.weight": (12, 20),
}


def theirs(optimizer: str, model: nn.ParameterDict, lr: float) -> list[torch.optim.Optimizer]:
    """PyTorch's optimizers of that name, with the settings of the laboratory."""
    if optimizer == "muon":
        blocks = [w for name, w in model.items() if "/blocks/" in name and w.ndim == 2]
        others = [w for w in model.values() if all(w is not mine for mine in blocks)]
        like = {"weight_decay": 0.01, "adjust_lr_fn": "match_rms_adamw"}
        return [torch.optim.Muon(blocks, lr, **like), torch.optim.AdamW(others, lr)]
    weights = list(model.values())
    if optimizer == "sgd":
        return [torch.optim.SGD(weights, lr, momentum=0.9)]
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[optimizer]
    return [kind(weights, lr, weight_decay=0.01)]


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd", "muon"])
def test_updates_are_torchs(optimizer: str) -> None:
    """Six steps of each optimizer, with gradients by chance; torch's Muon works in 16 bits."""
    draw, lr = torch.Generator().manual_seed(4), 0.02
    model = nn.ParameterDict(
        {
            name.replace(".", "/"): torch.randn(shape, generator=draw)
            for name, shape in SHAPES.items()
        }
    )
    before = {name: weight.detach().clone() for name, weight in model.items()}
    gradients = [
        {name: 0.3 * torch.randn(shape, generator=draw) for name, shape in SHAPES.items()}
        for _ in range(6)
    ]
    told = node(
        "moved",
        RUN,
        optimizer=optimizer,
        named={
            name.replace("/", "."): {"data": w.flatten().tolist(), "shape": list(w.shape)}
            for name, w in before.items()
        },
        gradients=[{name: g.flatten().tolist() for name, g in step.items()} for step in gradients],
        lr=lr,
    )
    updaters = theirs(optimizer, model, lr)
    for step in gradients:
        for name, weight in model.items():
            weight.grad = step[name.replace("/", ".")].clone()
        for updater in updaters:
            updater.step()
    assert not told["rest"]  # gradients are zero again
    for name, weight in model.items():
        path = name.replace("/", ".")
        mine = optimizer == "muon" and "blocks" in path and weight.ndim == 2
        way = (weight.detach() - before[name]).square().mean().sqrt().item()
        same(told["parameters"][path], weight, 0.1 * way if mine else 2e-5)


def test_adam_with_l2_is_not_adamw() -> None:
    """Decoupled, the decay is the same share of a large gradient's number and of a small one's."""
    name, data = "w", [1.0, 1.0]
    moved = {
        optimizer: node(
            "moved",
            RUN,
            optimizer=optimizer,
            named={name: {"data": data, "shape": [2]}},
            gradients=[{name: [10.0, 0.0]}],
            lr=0.1,
        )["parameters"][name]["data"]
        for optimizer in ("adamw", "adam")
    }
    assert moved["adamw"] == pytest.approx([1 - 0.1 - 0.001, 1 - 0.001], abs=1e-6)
    assert moved["adam"] == pytest.approx([1 - 0.1, 1 - 0.1], abs=1e-5)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
@pytest.mark.parametrize(("warmup", "end"), [(0, 30), (20, 50), (5, 0)])
def test_rates_are_torchs(schedule: str, warmup: int, end: int) -> None:
    settings = {"schedule": schedule, "warmup": warmup, "decay_steps": end, "steps": 60}
    told = node("rates", RUN, settings=settings, steps=60)
    last = end or 60
    updater = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    warm = LinearLR(updater, 1 / (warmup + 1), 1.0, warmup) if warmup else None
    falls = {
        "cosine": lambda: CosineAnnealingLR(updater, last - warmup),
        "linear": lambda: LinearLR(updater, 1.0, 0.0, last - warmup),
        "constant": lambda: ConstantLR(updater, 1.0),
    }[schedule]()
    scheduler = SequentialLR(updater, [warm, falls], [warmup]) if warm else falls
    for n in range(last if schedule == "cosine" else 60):  # torch's cosine would rise again
        assert told[n] == pytest.approx(updater.param_groups[0]["lr"], abs=1e-6), n
        updater.step()
        scheduler.step()
    if schedule != "constant":
        assert max(told[last:], default=0) == 0


@pytest.mark.parametrize("seed", range(4))
def test_first_parameters_are_spread_as_pytorchs(seed: int) -> None:
    """Names, shapes, and the standard deviation of each, within what chance explains."""
    config = drawn(seed)
    model = TransformerDecoder(Vocabulary([chr(97 + n) for n in range(SIZE - 3)]), config)
    told = node("first", RUN, config=asdict(config), size=SIZE, seed=5)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert {name: tuple(each["shape"]) for name, each in told.items()} == shapes
    scores = []
    for name, parameter in model.named_parameters():
        theirs, ours = array(told[name]), parameter.detach().numpy()
        if ours.std() == 0:  # gains and biases of norms
            np.testing.assert_array_equal(theirs, ours)
        else:
            scores.append((theirs.std() / ours.std() - 1) * ours.size**0.5)
            assert abs(theirs.mean()) < 5 * ours.std() / ours.size**0.5
            assert abs(theirs).max() < 5 * ours.std()
    assert abs(np.array(scores)).max() < 5 and other(told, config)


def other(told: dict[str, Any], config: TransformerConfig) -> bool:
    """Whether another seed gives other numbers, and the same seed the same."""
    again, another = (
        node("first", RUN, config=asdict(config), size=SIZE, seed=seed) for seed in (5, 6)
    )
    name = "stack.embedding.weight"
    return again == told and another[name]["data"] != told[name]["data"]


SETTINGS: dict[str, Any] = {
    **Laboratory(d_model=16, n_heads=2, batch=16, steps=100, seed=3).settings,
    "text": "",
    "table": Laboratory().table,
}


def test_a_lesson_learns_to_sort_what_it_has_not_seen() -> None:
    told = node("lesson", RUN, settings=SETTINGS, steps=100, texts=["hcadbe", "abc"])
    assert [test["step"] for test in told["tests"]] == [0, 25, 50, 75, 100]
    first, last = told["tests"][0], told["tests"][-1]
    assert first["loss"] > 2 and first["exact"] == 0 and len(told["losses"]) == 100
    assert last["loss"] < 1.2 and last["tokens"] > first["tokens"] + 0.2
    assert np.mean(told["losses"][-10:]) == pytest.approx(last["loss"], abs=0.3)
    look, refused = told["looks"]
    assert look["input"] == [*"hcadbe", ">"] and look["wanted"] == list("abcdeh")
    weights = np.array(look["weights"]["data"]).reshape(2, 2, 13, 13)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert (weights[..., *np.triu_indices(13, 1)] == 0).all()
    assert refused == {"error": "Type 6 letters of a to j."}


def test_without_the_mask_training_finds_the_answer_and_writing_does_not() -> None:
    told = node("lesson", RUN, settings={**SETTINGS, "causal": 0}, steps=100, texts=["hcadbe"])
    last = told["tests"][-1]
    assert last["loss"] < 0.7 and last["exact"] < 0.2 and last["tokens"] < 0.7
    weights = np.array(told["looks"][0]["weights"]["data"]).reshape(2, 2, 13, 13)
    assert (weights[..., *np.triu_indices(13, 1)] > 0).all()


@pytest.mark.parametrize("task", ["reverse", "copy", "add", "add_reversed", "words", "text"])
def test_every_task_trains(task: str) -> None:
    settings = {**SETTINGS, "task": task, "text": Laboratory().text, "positions": "rotary"}
    told = node("lesson", RUN, settings=settings, steps=50, texts=["nation"])
    assert told["tests"][-1]["loss"] < 0.9 * told["tests"][0]["loss"]
    assert (told["tests"][-1]["exact"] is None) == (task == "text")
    assert ("error" in told["looks"][0]) == (task != "text")


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [
        node("lesson", RUN, settings={**SETTINGS, "seed": seed}, steps=5, texts=[])
        for seed in (3, 3, 4)
    ]
    assert runs[0] == runs[1] and runs[0]["losses"] != runs[2]["losses"]


def test_the_first_steps_of_a_long_schedule_are_those_of_a_longer_run() -> None:
    """What `steps` alone changes is when a run ends, if the schedule's end is set."""

    def losses(**changed: Any) -> list[float]:
        return node("lesson", RUN, settings={**SETTINGS, **changed}, steps=50, texts=[])["losses"]

    longer = losses(steps=200, decay_steps=200)
    assert losses(steps=50, decay_steps=200) == longer and losses(steps=50) != longer
    assert losses(steps=50, schedule="constant") == losses(steps=200, schedule="constant")


def test_training_obeys_its_switches() -> None:
    def told(**changed: Any) -> dict[str, Any]:
        return node("lesson", RUN, settings={**SETTINGS, **changed}, steps=25, texts=[])

    base = told()
    for changed in ({"optimizer": "muon"}, {"optimizer": "adam"}, {"clip": 0}, {"warmup": 0}):
        other = told(**changed)["losses"]
        assert other[0] == base["losses"][0] and other[-1] != base["losses"][-1], changed
    assert told(optimizer="sgd", lr=0.3)["losses"][-1] < base["losses"][0] - 0.2
    assert set(base["sizes"]) == {"size", "body", "length", "operations"}


def test_parameters_are_counted_as_the_books_decoder() -> None:
    told = node("lesson", RUN, settings=SETTINGS, steps=1, texts=[])["sizes"]
    config = TransformerConfig(
        d_model=16, n_heads=2, d_ff=64, n_layers=2, max_len=13, activation="relu",
        positions="learned", tied=True, norm="pre", normalizer="layer", gated=False, bias=True,
    )  # fmt: skip
    model = TransformerDecoder(Vocabulary([chr(97 + n) for n in range(SIZE - 3)]), config)
    assert told["size"] == sum(p.numel() for p in model.parameters())
    assert told["body"] == sum(p.numel() for p in model.stack.blocks.parameters())
