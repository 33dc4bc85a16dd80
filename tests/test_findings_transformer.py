"""The findings of chapter 6, with other seeds than its own and smaller models."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from attnbook.learn.loop import Cosine, train
from attnbook.model.block import Block
from attnbook.model.config import TINY, TransformerConfig
from attnbook.model.norms import LayerNorm
from attnbook.model.recording import recorded
from attnbook.model.transformer import Transformer
from attnbook.text.vocabulary import Vocabulary
from book.experiments import blocks, norms, surface

SEEDS = pytest.mark.parametrize("seed", range(3))
VOCABULARIES = Vocabulary("abcdef"), Vocabulary("abcdefgh")


def states(seed: int, depth: int = 24, **changes) -> list[Tensor]:
    """What untrained blocks make of random vectors, `[batch word d_model]` each."""
    torch.manual_seed(seed)
    stack = [Block(replace(TINY, **changes)) for _ in range(depth)]
    found = [torch.randn(4, 10, TINY.d_model, requires_grad=True)]
    for block in stack:
        found.append(block(found[-1]))
    return found


def kept_gradient(found: list[Tensor], seed: int) -> float:
    """Size of a gradient at the first state, over that at the last."""
    torch.manual_seed(100 + seed)
    total = (found[-1] * torch.randn(found[-1].shape)).sum()
    first, last = torch.autograd.grad(total, (found[0], found[-1]))
    return (first.norm() / last.norm()).item()


def likeness(x: Tensor) -> float:
    """Mean cosine of two words of a sentence."""
    u = normalize(x, dim=-1)
    n = x.shape[1]
    return ((u @ u.mT).sum((1, 2)) - n).mean().item() / (n * (n - 1))


@SEEDS
@pytest.mark.parametrize("norm", ["none", "pre", "post"])
def test_residuals_keep_the_words_apart_and_the_gradient_alive(seed, norm):
    found = states(seed, norm=norm)
    assert 0.3 < kept_gradient(found, seed) < 10
    assert cosine_similarity(found[0], found[1], dim=-1).mean() > 0.9
    assert likeness(found[2]) < 0.2


@SEEDS
@pytest.mark.parametrize("norm", ["none", "pre", "post"])
def test_without_residuals_two_blocks_make_all_words_alike(seed, norm):
    found = states(seed, norm=norm, residual=False)
    assert likeness(found[2]) > 0.98
    assert cosine_similarity(found[0], found[1], dim=-1).mean().abs() < 0.3


@SEEDS
def test_norms_alone_save_the_gradient_that_is_lost_without_them(seed):
    assert kept_gradient(states(seed, norm="none", residual=False), seed) < 1e-9
    assert kept_gradient(states(seed, norm="pre", residual=False), seed) > 1e-3


@pytest.mark.full  # chapter 6 trains such a stack and asserts as much
@pytest.mark.parametrize("seed", [1, 4])
def test_deep_post_norm_makes_all_words_alike_at_a_high_rate_without_warmup(seed):
    alike = {}
    for norm in ("pre", "post"):
        torch.manual_seed(seed)
        config = TransformerConfig(32, 4, 64, 6, norm=norm)
        model = Transformer(norms.task.source_vocab, norms.task.target_vocab, config)

        def batch(step):
            return norms.task.batch(step, batch_size=32, seed=seed)

        train(model, batch, model.loss, steps=30, lr=Cosine(0.01, 100))
        source, target = batch(100)
        memory = model.read(source)
        mask = memory.mask[:, None]
        h = model.decoder.stack(target, memory.states, memory_mask=mask, causal=True)
        u = normalize(h[target != norms.task.target_vocab.pad], dim=-1)
        alike[norm] = (u @ u.T).mean()
    assert alike["post"] > 0.9 > 0.6 > alike["pre"]


@pytest.mark.parametrize("part", blocks.PARTS)
def test_a_model_without_a_part_differs_in_that_part(part):
    """The runs of the diagram are of what their name says."""
    source, target = blocks.task.encode([8_675_309])
    model = blocks.without(part, 0)
    with recorded(model) as weights:
        logits = model(source, target)
    sees_future = not model(source, target[:, :1])[:, 0].allclose(logits[:, 0], atol=1e-4)
    other = model(blocks.task.encode([1_675_309]).source, target)
    sees_source = not other.allclose(logits, atol=1e-4)
    assert sees_future == (part == "mask")
    assert sees_source == (part != "cross-attention")
    seen = weights["encoder.stack.blocks.0.attention"]
    assert seen.shape[1] == (1 if part == "heads" else 4)
    has_norms = any(isinstance(module, LayerNorm) for module in model.modules())
    assert has_norms == (part != "norm")
    order = torch.randperm(source.shape[1])
    states, shuffled = (model.encoder(s) for s in (source, source[:, order]))
    blind = states[:, order].allclose(shuffled, atol=1e-4)
    assert blind == (part == "positions")
    changed = source.clone()
    changed[:, -1] = source[:, 0]
    alone = model.encoder(changed)[:, 0].allclose(states[:, 0], atol=1e-5)
    assert alone == (part == "self-attention")


@pytest.mark.full  # chapter 3 trains such a model and asserts as much, chapter 6 of stored runs
@pytest.mark.parametrize("seed", [3, 4])
def test_without_the_mask_training_looks_good_and_writing_fails(seed):
    now, then = blocks.losses_of(blocks.trained("mask", seed)[0])
    assert now < 0.7 and then > now + 1


def test_with_the_mask_a_token_costs_the_same_in_one_pass_and_word_by_word():
    model, losses = blocks.trained("whole", 3, steps=blocks.WARMUP + 1)
    now, then = blocks.losses_of(model)
    assert now == pytest.approx(then, abs=1e-4)
    assert len(losses) == blocks.WARMUP + 1 and abs(now - losses[-1]) < 1
    now, then = blocks.losses_of(blocks.without("mask", 3))
    assert now != pytest.approx(then, abs=1e-3)


def test_detached_norms_have_the_values_of_layer_norm_and_another_gradient():
    x = torch.randn(3, 5, 8, requires_grad=True)
    weights, found = torch.randn(3, 5, 8), []
    for norm in (LayerNorm(8), norms.Detached(8)):
        out = norm(x)
        found.append((out, *torch.autograd.grad((out * weights).sum(), x)))
    (out, gradient), (same, other) = found
    assert same.allclose(out, atol=1e-5)
    deviation = (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    assert other.allclose(weights / deviation, atol=1e-5)
    assert not gradient.allclose(other, atol=1e-2)


def test_the_kinds_of_norms_replace_every_norm():
    for kind, count in (("full", 2), ("plain", 0), ("detached", 2)):
        model = norms.with_norms(Transformer(*VOCABULARIES, TINY), kind)
        found = [m for m in model.modules() if isinstance(m, LayerNorm)]
        assert len(found) == 2 * 2 + 2 * 3 + 2  # two blocks each, a last norm each
        assert all(len(list(norm.parameters())) == count for norm in found)
        assert all((type(norm) is norms.Detached) == (kind == "detached") for norm in found)


def test_a_direction_is_as_long_as_the_weights_row_by_row():
    torch.manual_seed(0)
    model = Transformer(*VOCABULARIES, TINY)
    u = surface.direction(model, torch.Generator().manual_seed(5))
    v = surface.direction(model, torch.Generator().manual_seed(6))
    for w, du, dv in zip(model.parameters(), u, v, strict=True):
        if w.ndim == 2:
            assert du.norm(dim=1).allclose(w.norm(dim=1), rtol=1e-4)
            assert not du.allclose(dv)
        else:
            assert du.eq(0).all()


def test_a_surface_holds_the_loss_at_each_point_and_leaves_the_model_as_it_was():
    torch.manual_seed(0)
    model = Transformer(surface.task.source_vocab, surface.task.target_vocab, TINY)
    before = [w.clone() for w in model.parameters()]
    found = surface.surface(model, seed=3, side=3, extent=0.5)
    assert all(w.equal(old) for w, old in zip(model.parameters(), before, strict=True))
    assert found.shape == (3, 3)
    generator = torch.Generator().manual_seed(3)
    u, v = surface.direction(model, generator), surface.direction(model, generator)
    batch = surface.numbers()
    for i, j in ((1, 1), (0, 2)):
        a, b = (j - 1) * 0.5, (i - 1) * 0.5
        with torch.no_grad():
            for w, old, du, dv in zip(model.parameters(), before, u, v, strict=True):
                w.copy_(old + a * du + b * dv)
            assert found[i, j].item() == pytest.approx(model.loss(batch).item(), rel=1e-4)
