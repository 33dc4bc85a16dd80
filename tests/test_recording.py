"""Weights are asked for from outside, one way for every model."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel
from transformers.models.bert.modeling_bert import BertSelfAttention

from attnbook.model.attention import MultiHeadAttention, ScoredAttention
from attnbook.model.config import TransformerConfig
from attnbook.model.recording import calls, recorded
from attnbook.model.scores import AdditiveScore
from attnbook.model.seq2seq import Decoder, Encoder, LuongDecoder, Seq2Seq
from attnbook.model.transformer import Transformer, TransformerDecoder
from attnbook.text.vocabulary import Vocabulary

ENGLISH, GERMAN = Vocabulary("abcdefghi"), Vocabulary("ABCDEFGH")
SOURCE = torch.tensor([[5, 6, 7, 8, 9], [4, 3, 0, 0, 0], [6, 6, 6, 0, 0]])
CONFIG = TransformerConfig(12, 3, 20, 2)


def translator(decoder: type[Decoder] = Decoder) -> Seq2Seq:
    score = AdditiveScore(6, 6, 4)
    return Seq2Seq(Encoder(ENGLISH, 6), decoder(GERMAN, 6, score)).eval()


def targets(n: int) -> torch.Tensor:
    return torch.cat([torch.full((3, 1), GERMAN.bos), torch.randint(3, 11, (3, n - 1))], 1)


def test_an_attention_by_itself_has_the_empty_path() -> None:
    attention = MultiHeadAttention(24, 4)
    with recorded(attention) as weights:
        attention(torch.randn(2, 5, 24), torch.randn(2, 7, 24))
    assert list(weights) == [""] and weights[""].shape == (2, 4, 5, 7)
    torch.testing.assert_close(weights[""].sum(-1), torch.ones(2, 4, 5))


def test_paths_are_those_of_the_modules() -> None:
    ours = Transformer(ENGLISH, GERMAN, CONFIG).eval()
    with recorded(ours) as weights:
        assert weights == {}
        ours(SOURCE, targets(4))
    modules: dict[str, Any] = dict(ours.named_modules())
    assert weights.keys() == {
        path for path, m in modules.items() if isinstance(m, MultiHeadAttention)
    }
    assert weights["encoder.stack.blocks.1.attention"].shape == (3, 3, 5, 5)
    assert weights["decoder.stack.blocks.0.attention"].shape == (3, 3, 4, 4)
    assert weights["decoder.stack.blocks.1.cross"].shape == (3, 3, 4, 5)


@pytest.mark.parametrize("kind", [Decoder, LuongDecoder])
def test_steps_of_a_recurrent_decoder_are_joined(kind: type[Decoder]) -> None:
    """Row by row what the steps attend, taught or on their own."""
    ours = translator(kind)
    with recorded(ours) as written:
        found = ours.translate(SOURCE, max_len=6).tokens
    fed = torch.cat([torch.full((3, 1), GERMAN.bos), found[:, :-1]], 1)
    with recorded(ours) as taught:
        ours(SOURCE, fed)
    path = "decoder.attention"
    assert list(taught) == list(written) == [path]
    assert taught[path].shape == written[path].shape == (3, found.shape[1], 5)
    torch.testing.assert_close(written[path], taught[path])
    state = ours.decoder.start(ours.read(SOURCE))
    for t in range(fed.shape[1]):
        with recorded(ours) as each:
            _, state = ours.decoder.step(fed[:, t : t + 1], state)
        torch.testing.assert_close(each[path][:, 0], taught[path][:, t])


@pytest.mark.parametrize("cuts", [(6,), (1,) * 6, (2, 3, 1)])
def test_decoding_with_a_cache_gives_the_weights_of_one_pass(cuts: tuple[int, ...]) -> None:
    """The triangle of self-attention fills up: what was not there yet has the weight 0."""
    decoder: Any = TransformerDecoder(GERMAN, CONFIG).eval()
    tokens = targets(6)
    with recorded(decoder) as whole:
        decoder(tokens)
    state, done = decoder.start(), 0
    with recorded(decoder) as weights:
        for n in cuts:
            _, state = decoder.step(tokens[:, done : done + n], state)
            done += n
    assert weights.keys() == whole.keys() and len(whole) == 2
    for path, found in weights.items():
        torch.testing.assert_close(found, whole[path])


def test_weights_of_another_librarys_class() -> None:
    config: Any = BertConfig(
        hidden_size=12, num_attention_heads=3, num_hidden_layers=2, intermediate_size=20,
        vocab_size=30,
    )  # fmt: skip
    config._attn_implementation = "eager"  # the only one that gives weights
    bert: Any = BertModel(config).eval()
    tokens = torch.randint(30, (2, 5))
    with recorded(bert, BertSelfAttention) as weights:
        out = bert(tokens, output_attentions=True)
    assert list(weights) == [f"encoder.layer.{i}.attention.self" for i in range(2)]
    for found, theirs in zip(weights.values(), out.attentions, strict=True):
        assert found.shape == (2, 3, 5, 5)
        assert found.equal(theirs)


def hooks(model: nn.Module) -> list[Any]:
    parts = list(model.modules())
    return [m.record for m in parts if isinstance(m, (MultiHeadAttention, ScoredAttention))] + [
        hook for m in parts for hook in m._forward_hooks.values()
    ]


def test_afterwards_the_model_is_as_it_was_whatever_happened() -> None:
    ours, linear = Transformer(ENGLISH, GERMAN, CONFIG).eval(), nn.Linear
    before, target = hooks(ours), targets(4)
    plain = ours(SOURCE, target)
    with pytest.raises(RuntimeError, match="by hand"), recorded(ours, nn.Dropout) as weights:
        raise RuntimeError("by hand")
    assert hooks(ours) == before and set(before) == {None}
    assert ours(SOURCE, target).equal(plain) and weights == {}
    with recorded(ours) as first:
        ours(SOURCE, target)
    kept = {path: found.clone() for path, found in first.items()}
    ours(SOURCE, targets(5))
    assert all(first[path].equal(found) for path, found in kept.items())
    assert linear is nn.Linear


def test_weights_let_gradients_through() -> None:
    attention, x = MultiHeadAttention(24, 4), torch.randn(2, 5, 24, requires_grad=True)
    with recorded(attention) as weights:
        attention(x)
    weights[""][..., 0].sum().backward()
    assert x.grad is not None and x.grad.abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_half_precision_sum_to_one(dtype: torch.dtype) -> None:
    attention = MultiHeadAttention(24, 4).to(dtype)
    with recorded(attention) as weights:
        out = attention(torch.randn(2, 300, 24, dtype=dtype))
    assert out.dtype == dtype and weights[""].dtype == torch.float32
    torch.testing.assert_close(weights[""].sum(-1), torch.ones(2, 4, 300))


def test_calls_are_seen_whole_and_leave_nothing_behind() -> None:
    model = TransformerDecoder(ENGLISH, CONFIG).eval()
    tokens = SOURCE[:1]
    with torch.no_grad():
        alone = model(tokens)
        with calls(model) as seen:
            together = model(tokens)
        torch.testing.assert_close(together, alone)
        (x,), out = seen["stack.blocks.1.feed_forward"]
        feed_forward = model.get_submodule("stack.blocks.1.feed_forward")
        torch.testing.assert_close(feed_forward(x), out)
        (q, k, _), scores = seen["stack.blocks.0.attention.scores"]
        torch.testing.assert_close(scores, q @ k.mT / q.shape[-1] ** 0.5)
        (weights, v), heads = seen["stack.blocks.0.attention.combine"]
        torch.testing.assert_close(weights @ v, heads)
        (given,), _ = seen["stack.blocks.0.attention.out"]
        torch.testing.assert_close(heads.transpose(1, 2).flatten(2), given)
        seen.clear()
        model(tokens)
    assert seen == {} and all("scores" not in vars(module) for module in model.modules())


def test_what_a_search_attended_can_be_trained_with() -> None:
    ours, scale = Transformer(ENGLISH, GERMAN, CONFIG).eval(), torch.ones(1, requires_grad=True)
    with recorded(ours) as weights:
        ours.translate(SOURCE, max_len=4)
    (weights["decoder.stack.blocks.1.cross"] * scale).sum().backward()
    assert scale.grad is not None and scale.grad > 0


def test_a_replaced_step_is_there_again_and_blocks_can_be_nested() -> None:
    attention, x = MultiHeadAttention(24, 4), torch.randn(2, 5, 24)
    attention.weights = lambda scores, mask: torch.ones_like(scores) / scores.shape[-1]
    replaced, plain = attention.weights, attention(x)
    with calls(attention) as outer:
        with calls(attention) as inner:
            assert attention(x).equal(plain)
        assert "weights" in "".join(inner) and inner.keys() == outer.keys()
        inner.clear()
        attention(x)
    assert inner == {} and outer and attention.weights is replaced
    assert set(vars(attention)) & {"scores", "weights", "combine"} == {"weights"}
