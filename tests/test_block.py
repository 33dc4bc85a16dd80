"""The block against PyTorch's and those of `transformers`, with copied weights, and its parts.

All sizes differ, so that a transposed or mistaken dimension fails.
"""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from itertools import product
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers.models.bart.modeling_bart import BartDecoderLayer, BartEncoderLayer
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer, Qwen3RotaryEmbedding

from attnbook.model.attention import MultiHeadAttention
from attnbook.model.block import Block, FeedForward
from attnbook.model.config import (
    BERT,
    GPT_2,
    LLAMA_3,
    QWEN_3,
    SMOLLM2,
    TINY,
    VASWANI_2017,
    TransformerConfig,
)
from attnbook.model.positions import Rotary
from attnbook.model.recording import recorded
from tests.helpers.parity import BATCH, SMALL, SOURCE, TARGET, close, randomise

WORDS = torch.ones(BATCH, SOURCE, dtype=torch.bool)
WORDS[1, 4:] = False  # the second sentence has padding


def both_ways(block: Block, x: Tensor, *memory: Tensor, **options: Any) -> Tensor:
    """A block's output, which is the same fused and step by step."""
    fused = block(x, *memory, **options)
    with recorded(block):
        close(block(x, *memory, **options), fused)
    return fused


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
        x = torch.randn(BATCH, SOURCE, 12)
        expected = theirs(x, src_key_padding_mask=~WORDS)
        close(both_ways(ours, x, mask=WORDS[:, None])[WORDS], expected[WORDS])

    def test_decoder_block(self, norm: str, activation: str) -> None:
        theirs = self.theirs(nn.TransformerDecoderLayer, norm, activation)
        ours = Block(self.config(norm, activation), cross=True).load_torch(theirs).eval()
        x, memory = torch.randn(BATCH, TARGET, 12), torch.randn(BATCH, SOURCE, 12)
        future = nn.Transformer.generate_square_subsequent_mask(TARGET)
        expected = theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~WORDS)
        close(both_ways(ours, x, memory, memory_mask=WORDS[:, None], causal=True), expected)


def stranger(layer: Any, *arguments: Any, **sizes: Any) -> Any:
    """A layer of `transformers` with its default configuration but for the sizes."""
    config = arguments[0](**sizes, attn_implementation="eager")
    return randomise(layer(config, *arguments[1:]))


def take(block: Block, theirs: nn.Module, names: dict[str, str]) -> Block:
    """Copy each of their modules into ours, and see that nothing is left over."""
    for ours, name in names.items():
        state = theirs.get_submodule(name).state_dict()
        if "GPT2" in type(theirs).__name__ and state["weight"].ndim == 2:
            state["weight"] = state["weight"].T  # its maps are x W, not W x
        block.get_submodule(ours).load_state_dict(state)
    assert sum(p.numel() for p in block.parameters()) == sum(p.numel() for p in theirs.parameters())
    return block.eval()


def additive(mask: Tensor) -> Tensor:
    """The mask as these layers want it: added to the scores, `[batch 1 query key]`."""
    return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)[:, None]


def test_it_is_berts() -> None:
    theirs = stranger(
        BertLayer,
        transformers.BertConfig,
        hidden_size=48,
        num_attention_heads=6,
        intermediate_size=20,
    )
    names = {
        "attention.q": "attention.self.query",
        "attention.k": "attention.self.key",
        "attention.v": "attention.self.value",
        "attention.out": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "feed_forward.up": "intermediate.dense",
        "feed_forward.down": "output.dense",
        "feed_forward_norm": "output.LayerNorm",
    }
    ours = take(Block(replace(BERT, d_model=48, n_heads=6, d_ff=20)), theirs, names)
    x = torch.randn(BATCH, SOURCE, 48)
    expected = theirs(x, additive(WORDS[:, None].expand(-1, SOURCE, -1)))
    expected = expected if isinstance(expected, Tensor) else expected[0]
    close(both_ways(ours, x, mask=WORDS[:, None])[WORDS], expected[WORDS])


def test_it_is_gpt_2s() -> None:
    theirs = stranger(GPT2Block, transformers.GPT2Config, 0, n_embd=48, n_head=6, n_inner=20)
    both = theirs.attn.c_attn
    for name, weight, bias in zip(
        "qkv", both.weight.split(48, 1), both.bias.split(48), strict=True
    ):
        part = nn.Linear(48, 48)
        part.load_state_dict({"weight": weight, "bias": bias})
        theirs.attn.register_module(name, part)
    del theirs.attn.c_attn
    names = {
        "attention_norm": "ln_1",
        "feed_forward_norm": "ln_2",
        "feed_forward.up": "mlp.c_fc",
        "feed_forward.down": "mlp.c_proj",
        "attention.out": "attn.c_proj",
        **{f"attention.{name}": f"attn.{name}" for name in "qkv"},
    }
    ours = take(Block(replace(GPT_2, d_model=48, n_heads=6, d_ff=20)), theirs, names)
    theirs.attn.c_attn = both
    x = torch.randn(BATCH, SOURCE, 48)
    mask = WORDS[:, None] & torch.ones(SOURCE, SOURCE, dtype=torch.bool).tril()
    expected = theirs(x, attention_mask=additive(mask))
    expected = expected if isinstance(expected, Tensor) else expected[0]
    out = both_ways(ours, x, mask=WORDS[:, None], causal=True)
    close(out[WORDS], expected[WORDS])


@pytest.mark.parametrize(
    ("preset", "config", "layer", "places"),
    [
        (LLAMA_3, transformers.LlamaConfig, LlamaDecoderLayer, LlamaRotaryEmbedding),
        (SMOLLM2, transformers.LlamaConfig, LlamaDecoderLayer, LlamaRotaryEmbedding),
        (QWEN_3, transformers.Qwen3Config, Qwen3DecoderLayer, Qwen3RotaryEmbedding),
    ],
    ids=["Llama 3", "SmolLM2", "Qwen 3"],
)
@pytest.mark.parametrize("d_head", [8, 10])
def test_it_is_llamas_and_qwens(
    preset: TransformerConfig, config: Any, layer: Any, places: Any, d_head: int
) -> None:
    """Eps and base are the preset's: `transformers` keeps those of the real models elsewhere."""
    sizes = {
        "hidden_size": 48,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "intermediate_size": 20,
        "head_dim": d_head,
        "rms_norm_eps": preset.norm_eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": preset.rotary_base},
    }
    theirs = stranger(layer, config, 0, **sizes)
    small = {"d_model": 48, "n_heads": 6, "n_kv_heads": 3, "d_ff": 20, "d_head": d_head}
    names = {f"attention.{name}": f"self_attn.{name}_proj" for name in "qkv"}
    names |= {"attention.out": "self_attn.o_proj", "attention_norm": "input_layernorm"}
    names |= {f"feed_forward.{name}": f"mlp.{name}_proj" for name in ("up", "gate", "down")}
    names |= {"feed_forward_norm": "post_attention_layernorm"}
    if preset.qk_norm:
        names |= {f"attention.{x}_norm": f"self_attn.{x}_norm" for x in "qk"}
    ours = take(Block(replace(preset, **small)), theirs, names)
    x = torch.randn(BATCH, SOURCE, 48)
    turned = places(config(**sizes))(x, torch.arange(SOURCE)[None])
    mask = WORDS[:, None] & torch.ones(SOURCE, SOURCE, dtype=torch.bool).tril()
    expected = theirs(x, attention_mask=additive(mask), position_embeddings=turned)
    expected = expected if isinstance(expected, Tensor) else expected[0]
    close(both_ways(ours, x, mask=WORDS[:, None], causal=True)[WORDS], expected[WORDS])


@pytest.mark.parametrize(
    ("config", "base", "eps"),
    [
        (transformers.LlamaConfig, 10_000.0, 1e-6),
        (transformers.Qwen3Config, 10_000.0, 1e-6),
    ],
)
def test_what_the_libraries_take_by_default(config: Any, base: float, eps: float) -> None:
    """So that a reader of these tests knows what `rms_norm_eps` and `rope_theta` stand for."""
    theirs = config()
    assert theirs.rms_norm_eps == eps and theirs.rope_parameters["rope_theta"] == base


@pytest.mark.parametrize("cross", [False, True])
def test_it_is_barts(cross: bool) -> None:
    sizes = {"d_model": 48, "dropout": 0.0}
    sizes |= {f"{side}_attention_heads": 6 for side in ("encoder", "decoder")}
    sizes |= {f"{side}_ffn_dim": 20 for side in ("encoder", "decoder")}
    theirs = stranger(
        BartDecoderLayer if cross else BartEncoderLayer, transformers.BartConfig, **sizes
    )
    names = {"feed_forward.up": "fc1", "feed_forward.down": "fc2"}
    names |= {"feed_forward_norm": "final_layer_norm", "attention_norm": "self_attn_layer_norm"}
    looks = {"attention": "self_attn"} | ({"cross": "encoder_attn"} if cross else {})
    for ours_name, name in looks.items():
        names |= {f"{ours_name}.{x}": f"{name}.{x}_proj" for x in (*"qkv", "out")}
    if cross:
        names |= {"cross_norm": "encoder_attn_layer_norm"}
    config = replace(BERT, d_model=48, n_heads=6, d_ff=20, norm_eps=1e-5)
    ours = take(Block(config, cross=cross), theirs, names)
    memory = torch.randn(BATCH, SOURCE, 48)
    if cross:
        x, future = torch.randn(BATCH, TARGET, 48), torch.ones(TARGET, TARGET, dtype=torch.bool)
        expected = theirs(
            x,
            attention_mask=additive(future.tril().expand(BATCH, -1, -1)),
            encoder_hidden_states=memory,
            encoder_attention_mask=additive(WORDS[:, None].expand(-1, TARGET, -1)),
        )
        out = both_ways(ours, x, memory, memory_mask=WORDS[:, None], causal=True)
    else:
        expected = theirs(memory, additive(WORDS[:, None].expand(-1, SOURCE, -1)))
        out = both_ways(ours, memory, mask=WORDS[:, None])[WORDS]
    expected = expected if isinstance(expected, Tensor) else expected[0]
    close(out, expected if cross else expected[WORDS])


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
    theirs = nn.TransformerEncoderLayer(12, 3, 20, norm_first=True, bias=False)  # nor in its norms
    with pytest.raises(ValueError, match="reference must have this block's parts"):
        Block(replace(SMALL, bias=False)).load_torch(theirs)
    theirs = nn.TransformerEncoderLayer(12, 3, 20, norm_first=True)
    with pytest.raises(ValueError, match="reference must have the sizes of this module"):
        Block(replace(SMALL, qk_norm=True)).load_torch(theirs)


def test_feed_forward_is_its_equation_at_every_position() -> None:
    x = torch.randn(BATCH, TARGET, 12)
    root = (2 / torch.pi) ** 0.5
    activations: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": lambda x: x.clamp(min=0),
        "gelu": lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2,
        "gelu_tanh": lambda x: x * (1 + torch.tanh(root * (x + 0.044715 * x**3))) / 2,
        "silu": lambda x: x * torch.sigmoid(x),
        "relu2": lambda x: x.clamp(min=0) ** 2,
    }
    for activation, f in activations.items():
        network = FeedForward(replace(SMALL, activation=activation))
        w1, b1, w2, b2 = network.parameters()
        assert w1.shape == (20, 12)
        expected = w2 @ f(w1 @ x[1, 3] + b1) + b2
        torch.testing.assert_close(network(x)[1, 3], expected)
        network: Any = FeedForward(replace(SMALL, activation=activation, gated=True))
        (w1, b1), (w3, b3), (w2, b2) = (
            part.parameters() for part in (network.up, network.gate, network.down)
        )
        expected = w2 @ (f(w3 @ x[1, 3] + b3) * (w1 @ x[1, 3] + b1)) + b2
        torch.testing.assert_close(network(x)[1, 3], expected)


def test_a_line_of_the_block_adds_and_normalises_in_the_order_that_its_name_says() -> None:
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
        block = Block(replace(SMALL, norm=order, residual=residual))
        own = nn.Identity() if order == "none" else norm
        torch.testing.assert_close(block.add(x, lambda x: 2 * x, own), out)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_each_layer_reads_what_the_layer_before_has_written(norm: str) -> None:
    block = randomise(Block(replace(SMALL, norm=norm), cross=True))
    x, memory = torch.randn(BATCH, TARGET, 12), torch.randn(BATCH, SOURCE, 12)
    expected = x
    for layer, own in (
        (lambda x: block.attention(x, causal=True), block.attention_norm),
        (lambda x: block.cross(x, memory), block.cross_norm),
        (block.feed_forward, block.feed_forward_norm),
    ):
        expected = (
            expected + layer(own(expected)) if norm == "pre" else own(expected + layer(expected))
        )
    close(block(x, memory, causal=True), expected)


def test_dropout_acts_on_what_a_layer_adds() -> None:
    x = torch.randn(BATCH, TARGET, 12)
    gone = Block(replace(SMALL, norm="none", dropout=1.0)).train()
    assert torch.equal(gone(x), x)
    assert not torch.equal(gone.eval()(x), x)


def test_memory_and_cross_attention_go_together() -> None:
    x, memory = torch.randn(BATCH, TARGET, 12), torch.randn(BATCH, SOURCE, 12)
    with pytest.raises(ValueError, match=r"memory must be given .*, got one"):
        Block(SMALL)(x, memory)
    with pytest.raises(ValueError, match=r"memory must be given .*, got none"):
        Block(SMALL, cross=True)(x)


def test_configs_are_frozen_and_the_presets_are_the_papers_and_a_tiny_one() -> None:
    with pytest.raises(FrozenInstanceError):
        TINY.d_model = 3  # pyright: ignore[reportAttributeAccessIssue]
    paper = VASWANI_2017
    assert (paper.d_model, paper.n_heads, paper.d_ff, paper.n_layers) == (512, 8, 2048, 6)
    assert (paper.norm, paper.dropout) == ("post", 0.1)
    block = Block(paper, cross=True)
    # Two attentions of four maps, the network, three norms, with all biases.
    expected = 2 * 4 * (512 * 512 + 512) + (2 * 512 * 2048 + 2048 + 512) + 3 * 2 * 512
    assert sum(p.numel() for p in block.parameters()) == expected


def test_rotary_positions_are_as_the_config_says() -> None:
    x = torch.randn(BATCH, TARGET, 12)
    for pairing in ("half", "interleaved"):
        config = replace(SMALL, positions="rotary", rotary_base=50.0, rotary_pairing=pairing)
        block = Block(config)
        alone = MultiHeadAttention(12, 3, positions=Rotary(4, 50.0, pairing))
        alone.load_state_dict(block.attention.state_dict())
        close(block.attention(x), alone(x))
