"""Models that are stored whole, copied, compiled, exported, traced, or mapped over a dimension.

They are asked here, where nothing checks types: no graph can be made of what does."""

import copy
import io
import pickle
from dataclasses import fields, replace
from functools import partial
from typing import Any, get_args

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from attnbook.model import config as configs
from attnbook.model.attention import MultiHeadAttention, attend, combine
from attnbook.model.bert import Bert
from attnbook.model.block import ACTIVATIONS
from attnbook.model.config import Activation, Normalizer, Positions, TransformerConfig
from attnbook.model.positions import LearnedPositions, RelativePositions, Rotary
from attnbook.model.scores import AdditiveScore
from attnbook.model.seq2seq import Decoder, Encoder, Seq2Seq
from attnbook.model.transformer import Transformer, TransformerDecoder, TransformerEncoder
from attnbook.text.vocabulary import Vocabulary

VOCAB, OTHER = Vocabulary("abcdefgh"), Vocabulary("ABCDEF")  # 11 and 9 tokens
SMALL = TransformerConfig(d_model=12, n_heads=2, d_ff=20, n_layers=2, max_len=9)
SIZES = {"d_model": 12, "n_heads": 2, "d_ff": 20, "n_layers": 2, "max_len": 9, "d_head": 6}
PRESETS = {
    name: replace(preset, **SIZES, n_kv_heads=preset.n_kv_heads and 1)
    for name, preset in vars(configs).items()
    if isinstance(preset, TransformerConfig)
}
CHOICES = {
    f"{name} {choice}": replace(SMALL, **{name: choice})
    for name, kind in {
        "activation": Activation, "normalizer": Normalizer, "positions": Positions,
        "norm": configs.Norm, "rotary_pairing": configs.Pairing,
    }.items()
    for choice in get_args(kind)
}  # fmt: skip
FLAGS = {
    f"{field.name} {value}": replace(SMALL, **{field.name: value})
    for field in fields(TransformerConfig)
    if field.type is bool
    for value in (False, True)
}
CONFIGS = {**PRESETS, **CHOICES, **FLAGS, "gated relu2": replace(SMALL, activation="relu2",
           gated=True, d_ff=0, n_segments=2, init_std=0.02, dropout=0.1)}  # fmt: skip
TOKENS = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 3, 4], [4, 4, 3, 3, 5]])
LEFT = TOKENS.masked_fill(torch.tensor([[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0]]) > 0,
                          VOCAB.pad)  # fmt: skip
RIGHT = LEFT.flip(1)


def test_every_activation_and_preset_is_here() -> None:
    assert {*ACTIVATIONS} == {*get_args(Activation)}
    assert {"GPT_2", "BERT", "LLAMA_3", "activation relu2", "tied False"} <= {*CONFIGS}


def stored(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_of_any_configuration_can_be_stored_whole_and_copied(name: str) -> None:
    """`torch.save` of the model, `pickle`, and `deepcopy`; each gives the same numbers."""
    config = CONFIGS[name]
    models: list[nn.Module] = [TransformerDecoder(VOCAB, config), Bert(VOCAB, config)]
    for model in models:
        expected = model.eval()(TOKENS)
        for again in (stored, lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy):
            other = again(model)
            assert other is not model and other(TOKENS).equal(expected)
    both = Transformer(VOCAB, OTHER, config).eval()
    target = TOKENS.clamp(max=8)
    assert stored(both)(TOKENS, target).equal(both(TOKENS, target))


def test_a_recurrent_translator_can_be_stored_whole() -> None:
    model = Seq2Seq(Encoder(VOCAB, 6), Decoder(OTHER, 6, AdditiveScore(6, 6, 4))).eval()
    target = TOKENS.clamp(max=8)
    assert stored(model)(TOKENS, target).equal(model(TOKENS, target))


@pytest.mark.parametrize("name", [*PRESETS, *(name for name in CHOICES if "activation" in name)])
def test_a_model_of_any_configuration_can_be_exported(name: str) -> None:
    model = TransformerDecoder(VOCAB, CONFIGS[name]).eval()
    graph = torch.export.export(model, (TOKENS,), strict=False).module()
    assert (graph(RIGHT) - model(RIGHT)).abs().max() < 1e-5


def traced(model: Any, *inputs: torch.Tensor) -> Any:
    return torch.jit.trace(model, inputs, check_trace=False)


def exported(model: Any, *inputs: torch.Tensor) -> Any:
    return torch.export.export(model, inputs, strict=False).module()


GRAPHS = pytest.mark.parametrize("graph", [exported, traced])


@GRAPHS
@pytest.mark.parametrize("positions", get_args(Positions))
@pytest.mark.filterwarnings("ignore")  # tracing warns of each branch
def test_a_graph_counts_positions_without_padding(graph: Any, positions: Positions) -> None:
    """It was made from tokens without padding, and gives what eager code gives with some."""
    encoder = TransformerEncoder(VOCAB, replace(SMALL, positions=positions)).eval()
    made = graph(encoder, TOKENS)
    for tokens in (TOKENS, LEFT, RIGHT):
        assert (made(tokens) - encoder(tokens))[tokens != VOCAB.pad].abs().max() < 1e-5
    moved = (encoder(LEFT)[2, 3:] - encoder(LEFT[:, 3:])[2]).abs().max()
    assert moved < 1e-5  # of eager code, too, padding changes nothing


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_a_compiled_encoder_counts_positions_without_padding(positions: Positions) -> None:
    encoder = TransformerEncoder(VOCAB, replace(SMALL, positions=positions)).eval()
    compiled: Any = torch.compile(encoder, fullgraph=True, backend="aot_eager")
    for tokens in (LEFT, TOKENS, RIGHT):
        assert (compiled(tokens) - encoder(tokens))[tokens != VOCAB.pad].abs().max() < 1e-5


def test_a_graph_refuses_a_target_with_padding_before_a_word() -> None:
    model = Transformer(VOCAB, OTHER, SMALL).eval()
    target, wrong = TOKENS.clamp(max=8), LEFT.clamp(max=8)
    message = "target must have its padding at the end, got padding before a word"
    with pytest.raises(ValueError, match=message):
        model(TOKENS, wrong)
    compiled: Any = torch.compile(model, fullgraph=True, backend="aot_eager")
    for made in (exported(model, TOKENS, target), compiled):
        assert (made(LEFT, target) - model(LEFT, target)).abs().max() < 1e-5
        with pytest.raises(RuntimeError, match=message):
            made(TOKENS, wrong)


@pytest.mark.filterwarnings("ignore")
def test_tracing_a_decoder() -> None:
    decoder = TransformerDecoder(VOCAB, replace(SMALL, positions="rotary")).eval()
    assert (traced(decoder, TOKENS)(RIGHT) - decoder(RIGHT)).abs().max() < 1e-5


def test_attention_is_mapped_over_a_dimension() -> None:
    """By `torch.func.vmap`, with masks; the same as a loop gives."""
    scores, values, mask = torch.randn(3, 4, 5), torch.randn(3, 5, 2), torch.rand(3, 4, 5) < 0.6
    alone = [attend(s, v.expand(4, 5, 2), m) for s, v, m in zip(scores, values, mask, strict=True)]
    one = lambda s, v, m: attend(s, v.expand(4, 5, 2), m)  # noqa: E731
    for ours, each in zip(vmap(one)(scores, values, mask), zip(*alone, strict=True), strict=True):
        assert (ours - torch.stack(each)).abs().max() < 1e-6
    assert (vmap(combine)(scores, values) - combine(scores, values)).abs().max() < 1e-6


@pytest.mark.parametrize("positions", [None, Rotary(6), RelativePositions(6, 2)], ids=repr)
def test_heads_are_mapped_over_a_dimension(positions: Any) -> None:
    attention = MultiHeadAttention(12, 2, positions=positions)
    x, mask = torch.randn(3, 2, 5, 12), torch.rand(3, 2, 5, 5) < 0.6
    masked = vmap(lambda x, mask: attention(x, mask=mask))(x, mask)
    loop = [attention(one, mask=seen) for one, seen in zip(x, mask, strict=True)]
    assert (masked - torch.stack(loop)).abs().max() < 1e-5
    causal = vmap(partial(attention, causal=True))(x)
    assert (causal - torch.stack([attention(one, causal=True) for one in x])).abs().max() < 1e-5


@pytest.mark.parametrize("positions", get_args(Positions))
def test_gradients_of_each_text_by_itself(positions: Positions) -> None:
    """`vmap` of `grad` through whole models, as differential privacy asks for them."""
    decoder = TransformerDecoder(VOCAB, replace(SMALL, positions=positions)).eval()
    weights = dict(decoder.named_parameters())

    def loss(weights: Any, tokens: torch.Tensor) -> torch.Tensor:
        return functional_call(decoder, weights, (tokens[None],)).square().sum()

    together = vmap(grad(loss), (None, 0))(weights, TOKENS)
    for row, tokens in enumerate(TOKENS):
        for name, alone in grad(loss)(weights, tokens).items():
            assert (together[name][row] - alone).abs().max() < 1e-3 * (1 + alone.abs().max())
    encoder = TransformerEncoder(VOCAB, replace(SMALL, positions=positions)).eval()
    mapped = vmap(lambda tokens: encoder(tokens[None])[0])(LEFT)
    assert (mapped - encoder(LEFT))[VOCAB.pad != LEFT].abs().max() < 1e-5


def test_learned_positions_are_still_checked_outside_of_graphs() -> None:
    with pytest.raises(ValueError, match=r"positions must lie in 0\.\.3, got 4"):
        LearnedPositions(4, 6)(torch.zeros(1, 2, 6), torch.tensor([[0, 4]]))
