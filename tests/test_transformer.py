"""The Transformer against PyTorch with copied weights, and what must hold whatever the weights.

All sizes differ, so that a transposed or mistaken dimension fails.
"""

from dataclasses import FrozenInstanceError, replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import LlamaConfig, Qwen3Config
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer, Qwen3RotaryEmbedding

from attnbook.data import BOS, PAD, Batch, pad_batch
from attnbook.positions import sinusoidal
from attnbook.training import label_smoothing_loss
from attnbook.transformer import (
    BASE,
    MODERN,
    TINY,
    Block,
    FeedForward,
    Sublayer,
    Transformer,
    TransformerConfig,
    TransformerDecoder,
    TransformerEncoder,
)

BATCH, SOURCE, TARGET, VOCAB, WORDS = 2, 7, 5, 13, 11
SMALL = TransformerConfig(12, 3, 20, 2)
EVERY = [
    SMALL,
    replace(SMALL, norm="post", activation="gelu", positions="learned", dropout=0.3),
    replace(SMALL, norm="none", positions="none", bias=False),
    replace(SMALL, residual=False, d_ff=0),
    replace(MODERN, d_model=12, n_heads=3, n_kv_heads=1, d_ff=20, n_layers=2),
]
NAMES = ["classic", "post", "bare", "no-feed-forward", "modern"]


def randomise(module: nn.Module) -> Any:
    """Every parameter random: biases and gains start at 0 and 1, which hides slips."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.eval()


def sources() -> Tensor:
    """Two sentences, the second with padding."""
    rows = torch.randint(3, VOCAB, (BATCH, SOURCE))
    rows[1, 4:] = PAD
    return rows


def model(config: TransformerConfig = SMALL) -> Transformer:
    return Transformer(VOCAB, WORDS, config).eval()


def targets() -> Tensor:
    return torch.cat([torch.full((BATCH, 1), BOS), torch.randint(3, WORDS, (BATCH, TARGET - 1))], 1)


@pytest.mark.parametrize(("norm", "activation"), list(product(("pre", "post"), ("relu", "gelu"))))
class TestParity:
    def config(self, norm: str, activation: str) -> TransformerConfig:
        return replace(SMALL, norm=norm, activation=activation, dropout=0.4)

    def theirs(self, layer: type, norm: str, activation: str) -> Any:
        own = layer(12, 3, 20, 0.4, activation, batch_first=True, norm_first=norm == "pre")
        return randomise(own)

    def test_encoder_block(self, norm: str, activation: str) -> None:
        theirs = self.theirs(nn.TransformerEncoderLayer, norm, activation)
        ours = Block(self.config(norm, activation)).load_torch(theirs).eval()
        x, words = torch.randn(BATCH, SOURCE, 12), sources() != PAD
        expected = theirs(x, src_key_padding_mask=~words)
        out = ours(x, mask=words[:, None], need_weights=True)
        assert out.weights.shape == (BATCH, 3, SOURCE, SOURCE) and out.cross is None
        torch.testing.assert_close(out.x[words], expected[words], atol=1e-5, rtol=0)
        quiet = ours(x, mask=words[:, None])
        assert quiet.weights is None
        torch.testing.assert_close(quiet.x, out.x, atol=1e-5, rtol=0)

    def test_decoder_block(self, norm: str, activation: str) -> None:
        theirs = self.theirs(nn.TransformerDecoderLayer, norm, activation)
        ours = Block(self.config(norm, activation), cross=True).load_torch(theirs).eval()
        x, memory, words = torch.randn(BATCH, TARGET, 12), torch.randn(BATCH, SOURCE, 12), sources()
        ahead = nn.Transformer.generate_square_subsequent_mask(TARGET)
        expected = theirs(x, memory, tgt_mask=ahead, memory_key_padding_mask=words == PAD)
        out = ours(x, memory, memory_mask=(words != PAD)[:, None], causal=True, need_weights=True)
        assert out.cross.shape == (BATCH, 3, TARGET, SOURCE)
        torch.testing.assert_close(out.x, expected, atol=1e-5, rtol=0)

    def test_whole_model(self, norm: str, activation: str) -> None:
        theirs = nn.Transformer(
            12, 3, 2, 2, 20, 0.0, activation, batch_first=True, norm_first=norm == "pre"
        )
        randomise(theirs)
        ours = model(self.config(norm, activation))
        stacks = [(ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)]
        for mine, other in stacks:
            for block, layer in zip(mine.blocks, other.layers, strict=True):
                block.load_torch(layer)
        if norm == "pre":
            for mine, other in stacks:
                mine.norm.load_state_dict(other.norm.state_dict())
        else:  # in this order their last norm is one too many
            theirs.encoder.norm = theirs.decoder.norm = None
        source, target = sources(), targets()
        x, y = (
            stack.embedding(tokens) * 12**0.5 + sinusoidal(tokens.shape[1], 12)
            for stack, tokens in ((ours.encoder, source), (ours.decoder, target))
        )
        states = theirs(
            x,
            y,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(TARGET),
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
        )
        expected = states @ ours.decoder.embedding.weight.T
        torch.testing.assert_close(ours(source, target).logits, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("config", "layer", "places", "qk_norm"),
    [
        (LlamaConfig, LlamaDecoderLayer, LlamaRotaryEmbedding, False),
        (Qwen3Config, Qwen3DecoderLayer, Qwen3RotaryEmbedding, True),
    ],
)
def test_a_modern_block_is_llamas_and_qwens(
    config: Any, layer: Any, places: Any, qk_norm: bool
) -> None:
    sizes = config(
        hidden_size=48,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=8,
        intermediate_size=20,
        rms_norm_eps=1e-5,
        attn_implementation="eager",
    )
    theirs = randomise(layer(sizes, layer_idx=0))
    ours: Any = Block(replace(MODERN, d_model=48, n_heads=6, n_kv_heads=3, d_ff=20)).eval()
    assert ours.config.qk_norm
    if not qk_norm:
        ours = Block(replace(ours.config, qk_norm=False)).eval()
    attention, network = ours.attention.layer, ours.feed_forward.layer
    pairs = {f"self_attn.{name}_proj": getattr(attention, name) for name in "qkv"}
    pairs |= {"self_attn.o_proj": attention.out, "input_layernorm": ours.attention.norm}
    pairs |= {f"mlp.{name}_proj": getattr(network, name) for name in ("up", "gate", "down")}
    pairs |= {"post_attention_layernorm": ours.feed_forward.norm}
    if qk_norm:
        pairs |= {f"self_attn.{x}_norm": getattr(attention, f"{x}_norm") for x in "qk"}
    for name, own in pairs.items():
        own.load_state_dict(theirs.get_submodule(name).state_dict())
    assert len([*ours.parameters()]) == len([*theirs.parameters()])
    x = torch.randn(BATCH, SOURCE, 48)
    hidden = torch.full((SOURCE, SOURCE), -torch.inf).triu(1)[None, None]
    turned = places(sizes)(x, torch.arange(SOURCE)[None])
    expected = theirs(x, attention_mask=hidden, position_embeddings=turned)
    torch.testing.assert_close(ours(x, causal=True).x, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("change", "reference"),
    [
        ({"norm": "post"}, nn.TransformerEncoderLayer),
        ({"activation": "gelu"}, nn.TransformerEncoderLayer),
        ({"normalizer": "rms"}, nn.TransformerEncoderLayer),
        ({"residual": False}, nn.TransformerEncoderLayer),
        ({"positions": "rotary"}, nn.TransformerEncoderLayer),
        ({"d_ff": 0}, nn.TransformerEncoderLayer),
        ({"d_ff": 19}, nn.TransformerEncoderLayer),
        ({}, nn.TransformerDecoderLayer),
    ],
)
def test_weights_of_another_block_are_refused(change: dict, reference: type) -> None:
    theirs = reference(12, 3, 20, batch_first=True, norm_first=True)
    with pytest.raises(ValueError, match="reference must have this block's parts"):
        Block(replace(SMALL, **change)).load_torch(theirs)


def test_weights_of_another_norm_or_attention_are_refused() -> None:
    theirs = nn.TransformerEncoderLayer(12, 3, 20, layer_norm_eps=1e-9, norm_first=True)
    with pytest.raises(ValueError, match="reference must have this block's parts"):
        Block(SMALL).load_torch(theirs)
    theirs = nn.TransformerEncoderLayer(12, 3, 20, activation=nn.ReLU(), norm_first=True)
    with pytest.raises(ValueError, match="reference must have this block's parts"):
        Block(SMALL).load_torch(theirs)
    theirs = nn.TransformerEncoderLayer(12, 3, 20, norm_first=True)
    with pytest.raises(ValueError, match="reference must have the sizes of this module"):
        Block(replace(SMALL, qk_norm=True)).load_torch(theirs)


def test_feed_forward_is_its_equation_at_every_position() -> None:
    x = torch.randn(BATCH, TARGET, 12)
    for activation, f in (("relu", functional.relu), ("gelu", functional.gelu)):
        network = FeedForward(replace(SMALL, activation=activation))
        w1, b1, w2, b2 = network.parameters()
        assert w1.shape == (20, 12)
        expected = w2 @ f(w1 @ x[1, 3] + b1) + b2
        torch.testing.assert_close(network(x)[1, 3], expected)
    network: Any = FeedForward(replace(SMALL, activation="swiglu"))
    (w1, b1), (w3, b3), (w2, b2) = (
        part.parameters() for part in (network.up, network.gate, network.down)
    )
    gate = w3 @ x[1, 3] + b3
    expected = w2 @ (gate * torch.sigmoid(gate) * (w1 @ x[1, 3] + b1)) + b2
    torch.testing.assert_close(network(x)[1, 3], expected)


class Double(nn.Module):
    """A layer with a result that is easy to foresee."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


def test_sublayer_adds_and_normalises_in_the_order_that_its_name_says() -> None:
    x = torch.randn(BATCH, TARGET, 12)
    norm = nn.LayerNorm(12)
    expected = {
        ("pre", True): x + 2 * norm(x),
        ("post", True): norm(3 * x),
        ("none", True): 3 * x,
        ("pre", False): 2 * norm(x),
        ("post", False): norm(2 * x),
        ("none", False): 2 * x,
    }
    for (order, residual), out in expected.items():
        sublayer = Sublayer(Double(), replace(SMALL, norm=order, residual=residual))
        torch.testing.assert_close(sublayer(x)[0], out)


@pytest.mark.parametrize("config", EVERY, ids=NAMES)
class TestEveryConfig:
    def test_future_tokens_change_nothing(self, config: TransformerConfig) -> None:
        ours, source, target = model(config), sources(), targets()
        before = ours(source, target).logits
        for j in range(1, TARGET):
            changed = target.clone()
            changed[:, j] = (target[:, j] - 2) % (WORDS - 3) + 3
            after = ours(source, changed).logits
            assert torch.equal(after[:, :j], before[:, :j])
            assert not torch.equal(after[:, j], before[:, j])

    def test_padding_of_the_source_changes_nothing(self, config: TransformerConfig) -> None:
        ours, source, target = model(config), sources(), targets()
        longer = functional.pad(source, (0, 3))
        expected = ours(source, target).logits
        torch.testing.assert_close(ours(longer, target).logits, expected, atol=1e-5, rtol=0)
        short = ours(source[1:, :4], target[1:]).logits
        torch.testing.assert_close(short, expected[1:], atol=1e-5, rtol=0)

    def test_weights_are_given_on_demand_and_change_nothing(
        self, config: TransformerConfig
    ) -> None:
        ours, source, target = model(config), sources(), targets()
        quiet, told = ours(source, target), ours(source, target, need_weights=True)
        assert quiet.encoder is quiet.decoder is quiet.cross is None
        torch.testing.assert_close(quiet.logits, told.logits, atol=1e-5, rtol=0)
        assert told.encoder.shape == (2, BATCH, 3, SOURCE, SOURCE)
        assert told.decoder.shape == (2, BATCH, 3, TARGET, TARGET)
        assert told.cross.shape == (2, BATCH, 3, TARGET, SOURCE)
        for weights in told[1:]:
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert (told.decoder.triu(1) == 0).all()
        assert (told.cross[:, 1, :, :, 4:] == 0).all() and (told.encoder[:, 1, :, :, 4:] == 0).all()

    def test_every_parameter_learns(self, config: TransformerConfig) -> None:
        ours = model(config)
        ours.loss(Batch(sources(), targets())).backward()
        for name, parameter in ours.named_parameters():
            if not name.endswith("k.bias"):  # the same for all keys: softmax forgets it
                assert parameter.grad is not None and parameter.grad.abs().max() > 0, name

    def test_a_language_model_is_the_decoder_without_cross_attention(
        self, config: TransformerConfig
    ) -> None:
        decoder = TransformerDecoder(WORDS, config).eval()
        target = targets()
        out = decoder(target, need_weights=True)
        assert out.logits.shape == (BATCH, TARGET, WORDS) and out.cross is None
        torch.testing.assert_close(
            decoder(target[:, :3]).logits, out.logits[:, :3], atol=1e-5, rtol=0
        )


def test_the_encoder_sees_both_sides() -> None:
    encoder = TransformerEncoder(VOCAB, SMALL).eval()
    source = sources()[:1]
    changed = source.clone()
    changed[0, -1] = (source[0, -1] - 2) % (VOCAB - 3) + 3
    assert not torch.allclose(encoder(changed).states[0, 0], encoder(source).states[0, 0])


def test_without_positions_the_encoder_is_blind_to_order() -> None:
    order = torch.randperm(SOURCE)
    source = sources()[:1]
    for positions in ("none", "sinusoidal", "learned", "rotary"):
        encoder = TransformerEncoder(VOCAB, replace(SMALL, positions=positions)).eval()
        moved = encoder(source[:, order]).states
        same = torch.allclose(moved, encoder(source).states[:, order], atol=1e-5)
        assert same == (positions == "none")


def test_embedding_is_output_matrix_and_can_be_shared() -> None:
    ours = model()
    assert sum(p.shape == (WORDS, 12) for p in ours.parameters()) == 1
    shared = Transformer(WORDS, WORDS, SMALL, shared=True)
    assert shared.encoder.embedding is shared.decoder.embedding
    assert sum(p.shape == (WORDS, 12) for p in shared.parameters()) == 1
    with pytest.raises(ValueError, match=r"target_vocab must be source_vocab, 13, .* got 11"):
        Transformer(VOCAB, WORDS, SMALL, shared=True)
    large = TransformerDecoder(500, replace(SMALL, d_model=48))
    assert abs(large.embedding.weight.std().item() - 48**-0.5) < 0.01


def test_dropout_acts_in_training_alone() -> None:
    ours, source, target = model(replace(SMALL, dropout=0.3)), sources(), targets()
    assert torch.equal(ours(source, target).logits, ours(source, target).logits)
    ours.train()
    assert not torch.allclose(ours(source, target).logits, ours(source, target).logits)


def test_dropout_acts_on_what_a_layer_adds_and_on_the_embeddings() -> None:
    x = torch.randn(BATCH, TARGET, 12)
    gone = replace(SMALL, norm="none", dropout=1.0)
    assert torch.equal(Sublayer(Double(), gone).train()(x)[0], x)
    encoder = TransformerEncoder(VOCAB, replace(gone, norm="pre")).train()
    assert (encoder(sources()).states == 0).all()


def test_learned_positions_end_where_the_config_says() -> None:
    encoder = TransformerEncoder(VOCAB, replace(SMALL, positions="learned", max_len=SOURCE - 1))
    with pytest.raises(ValueError, match="x must have at most 6 tokens"):
        encoder(sources())


def test_memory_and_cross_attention_go_together() -> None:
    x, memory = torch.randn(BATCH, TARGET, 12), torch.randn(BATCH, SOURCE, 12)
    with pytest.raises(ValueError, match=r"memory must be given .*, got one"):
        Block(SMALL)(x, memory)
    with pytest.raises(ValueError, match=r"memory must be given .*, got none"):
        Block(SMALL, cross=True)(x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": "before"}, "norm must be one of .*, got 'before'"),
        ({"normalizer": "batch"}, "normalizer must be one of"),
        ({"activation": "tanh"}, "activation must be one of"),
        ({"positions": "alibi"}, "positions must be one of"),
        ({"n_layers": 0}, "n_layers must be at least 1, got 0"),
        ({"max_len": 0}, "max_len must be at least 1, got 0"),
        ({"d_ff": -1}, "d_ff must be at least 0, got -1"),
        ({"dropout": 1.5}, "dropout must lie in 0..1, got 1.5"),
    ],
)
def test_configs_refuse_what_makes_no_sense(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)


def test_configs_are_frozen_and_the_presets_are_the_papers_and_a_tiny_one() -> None:
    with pytest.raises(FrozenInstanceError):
        TINY.d_model = 3  # pyright: ignore[reportAttributeAccessIssue]
    assert (BASE.d_model, BASE.n_heads, BASE.d_ff, BASE.n_layers) == (512, 8, 2048, 6)
    assert (BASE.norm, BASE.dropout) == ("post", 0.1)
    block = Block(BASE, cross=True)
    # Two attentions of four maps, the network, three norms, with all biases.
    expected = 2 * 4 * (512 * 512 + 512) + (2 * 512 * 2048 + 2048 + 512) + 3 * 2 * 512
    assert sum(p.numel() for p in block.parameters()) == expected


def test_the_loss_counts_words_and_the_end_but_no_padding() -> None:
    ours = model()
    short, long = targets()[:1, :3], targets()[1:]
    source = sources()
    both = Batch(source, pad_batch([short[0].tolist(), long[0].tolist()]))
    losses = [ours.loss(Batch(source[:1], short)), ours.loss(Batch(source[1:], long))]
    expected = (2 * losses[0] + (TARGET - 1) * losses[1]) / (TARGET + 1)
    torch.testing.assert_close(ours.loss(both), expected, atol=1e-5, rtol=0)
    logits = ours(both.source, both.target[:, :-1]).logits
    smooth = label_smoothing_loss(logits, both.target[:, 1:], 0.5)
    torch.testing.assert_close(ours.loss(both, 0.5), smooth)
    assert abs(smooth - ours.loss(both)) > 1e-3
