"""Real pretrained models, in the book's own classes and in those of `transformers`.

The latter need `transformers`, which the extra `attnbook[pretrained]` brings.
"""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from attnbook import assets
from attnbook.model.attention import MultiHeadAttention
from attnbook.model.bert import Bert
from attnbook.model.config import BERT, GPT_2, TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair, WordPiece
from attnbook.weights.checkpoints import (
    TIED,
    activation,
    bare_decoder,
    by_columns,
    check_names,
    check_said,
    fill,
    read,
    vocabulary,
    without_tied,
)
from attnbook.weights.int8 import load_int8
from attnbook.weights.llama import chat, load_llama, load_smollm2

__all__ = [
    "SOTU_BERT",
    "SOTU_GPT",
    "chat",
    "copy_bert_attention",
    "load_bert",
    "load_gpt2",
    "load_llama",
    "load_smollm2",
    "minilm",
    "sotu_bert",
    "sotu_gpt",
]
SOTU_BERT = Path(__file__).parent / "bert.safetensors"
SOTU_GPT = SOTU_BERT.with_name("gpt.safetensors")
SIZES = {
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "intermediate_size": "d_ff",
    "num_hidden_layers": "n_layers",
    "max_position_embeddings": "max_len",
    "type_vocab_size": "n_segments",
}
NAMES = {  # parts of a parameter's name in BERT's files, and what they are here, in this order
    "embeddings.word_embeddings": "stack.embedding",
    "embeddings.position_embeddings": "stack.positions.embedding",
    "embeddings.token_type_embeddings": "stack.segments",
    "embeddings.LayerNorm": "stack.embedding_norm",
    "encoder.layer.": "stack.blocks.",
    "attention.self.query": "attention.q",
    "attention.self.key": "attention.k",
    "attention.self.value": "attention.v",
    "attention.output.dense": "attention.out",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "feed_forward.up",
    "output.dense": "feed_forward.down",
    "output.LayerNorm": "feed_forward_norm",
    "pooler.dense": "pooler",
    "cls.predictions.transform.dense": "words.transform",
    "cls.predictions.transform.LayerNorm": "words.norm",
    "cls.predictions.decoder.bias": "words.bias",
    "cls.predictions.bias": "words.bias",
    "cls.predictions.decoder.weight": TIED,
    "cls.seq_relationship": "next_sentence",
    ".gamma": ".weight",  # of a norm, in old files
    ".beta": ".bias",
}
GPT_SIZES = {  # names in GPT-2's configuration, and their values where a file has none
    "n_embd": ("d_model", 768),
    "n_head": ("n_heads", 12),
    "n_layer": ("n_layers", 12),
    "n_positions": ("max_len", 1024),
    "n_inner": ("d_ff", None),
    "layer_norm_epsilon": ("norm_eps", 1e-5),
    "resid_pdrop": ("dropout", 0.1),
    "tie_word_embeddings": ("tied", True),
}
GPT_NAMES = {
    "wte": "stack.embedding",
    "wpe": "stack.positions.embedding",
    "ln_f": "stack.norm",
    "ln_1": "attention_norm",
    "ln_2": "feed_forward_norm",
    "attn.c_proj": "attention.out",
    "attn.c_attn": "attention",
    "mlp.c_fc": "feed_forward.up",
    "mlp.c_proj": "feed_forward.down",
}


def load_bert(folder: str | Path) -> tuple[Bert, WordPiece]:
    """A model of the BERT family, and its tokenizer, from the files that `transformers` writes.

        model, tokenizer = load_bert(assets.fetch("minilm"))
        tokens, segments = pack(tokenizer.vocab, [tokenizer.encode("We wash our cats.")], max_len=9)
        states = model(tokens, segments)

    The family is what one code computes: vectors of tokens, segments and learned positions, norms
    after each layer, the output matrix tied to the embedding. So are BERT of any size and language,
    the models that were distilled into its layers (MiniLM, TinyBERT), and those for sentences.

    Args:
        folder: holds `config.json`, `model.safetensors` and `vocab.txt`; where a
            `tokenizer_config.json` says so, capitals are kept.

    Returns:
        The model, in evaluation mode, and the tokenizer. Heads that the files lack are None.

    Raises:
        ValueError: if a file is missing, the configuration is of another family, a parameter is
            missing, unknown or of another shape, or the vocabulary has another size.

    Source: Devlin et al. 2019.

    In other libraries: `BertForPreTraining.from_pretrained` of `transformers`.
    """
    folder = Path(folder)
    said = read(folder, "model.safetensors", "vocab.txt")
    config = _bert_config(said)
    more = folder / "tokenizer_config.json"
    options = json.loads(more.read_text("utf-8")) if more.is_file() else {}
    lowercase = options.get("do_lower_case", True)
    tokenizer = WordPiece.load(folder / "vocab.txt", lowercase=lowercase)
    if len(tokenizer.vocab) != said["vocab_size"]:
        wanted, came = said["vocab_size"], len(tokenizer.vocab)
        raise ValueError(f"vocab.txt must hold vocab_size = {wanted} tokens, got {came}")
    model = Bert(tokenizer.vocab, config)
    weights = _renamed(load_file(folder / "model.safetensors"))
    for head in ("pooler", "words", "next_sentence"):
        if not any(name.startswith(f"{head}.") for name in weights):
            setattr(model, head, None)
    return fill(model, weights), tokenizer


def load_gpt2(folder: str | Path) -> TransformerDecoder:
    """A model of the GPT-2 family, from the files that `transformers` writes.

        model, tokenizer = load_gpt2(folder), BytePair.load(folder)
        prompt = torch.tensor([tokenizer.encode("We wash our")])
        print(tokenizer.decode(model.generate(prompt, max_len=9).tokens[0]))

    The family is what one code computes: vectors of tokens and learned positions, norms before each
    layer and after the last block, queries, keys and values from one matrix. So are GPT-2 of any
    size and language, and the models that were distilled into its layers.

    Args:
        folder: holds `config.json` and `model.safetensors`; the tokens are called as in
            `vocab.json`, or where there is none "<0>", "<1>", ...

    Returns:
        The model, in evaluation mode. Where the configuration divides scores otherwise than by the
        root of d_head, its queries are multiplied instead.

    Raises:
        ValueError: if a file is missing, the configuration is of another family or asks for what
            the decoder has not, or a parameter is missing, unknown or of another shape.

    Source: Radford et al. 2019, section 2.3.

    In other libraries: `GPT2LMHeadModel.from_pretrained` of `transformers`. It drops attention
    weights in training, too; this model does not.
    """
    folder = Path(folder)
    said = read(folder, "model.safetensors")
    check_said(said, model_type=("gpt2", None), add_cross_attention=(False, False))
    options = {ours: said.get(theirs, value) for theirs, (ours, value) in GPT_SIZES.items()}
    options["activation"] = activation(said, "activation_function", "gelu_new")
    options["d_ff"] = options["d_ff"] or 4 * options["d_model"]
    config = replace(GPT_2, **options)
    model = bare_decoder(vocabulary(folder, said.get("vocab_size", 50257), said), config)
    weights = _gpt_renamed(load_file(folder / "model.safetensors"), config)
    for layer in range(config.n_layers):
        scale = 1.0 if said.get("scale_attn_weights", True) else config.head_size**0.5
        scale /= layer + 1 if said.get("scale_attn_by_inverse_layer_idx", False) else 1
        for kind in ("weight", "bias"):
            if (name := f"stack.blocks.{layer}.attention.q.{kind}") in weights:
                weights[name] = weights[name] * scale
    return fill(model, weights)


def _gpt_renamed(weights: dict[str, Tensor], config: TransformerConfig) -> dict[str, Tensor]:
    """Parameters by our names. GPT-2 stores its maps transposed, and three of them as one."""
    ours = {}
    for name, weight in weights.items():
        name, weight = name.removeprefix("transformer."), weight.float()
        if name.endswith((".attn.bias", ".attn.masked_bias")):  # the causal mask, in old files
            continue
        if name == "lm_head.weight":
            name = TIED if config.tied else "head.weight"
        if name.startswith("h."):
            name, weight = f"stack.blocks.{name[2:]}", weight.T if weight.ndim == 2 else weight
        for theirs, new in GPT_NAMES.items():
            name = name.replace(theirs, new)
        where, _, kind = name.rpartition(".")
        if where.endswith(".attention"):
            parts = zip("qkv", weight.chunk(3), strict=False)
            ours |= {f"{where}.{part}.{kind}": by_columns(piece) for part, piece in parts}
        else:
            ours[name] = by_columns(weight)
    return without_tied(ours)


def _bert_config(said: dict[str, Any]) -> TransformerConfig:
    """Our configuration for what a `config.json` says."""
    check_said(
        said,
        model_type=("bert", None),
        position_embedding_type=("absolute", "absolute"),
        is_decoder=(False, False),
    )
    check_names(said, *SIZES, "vocab_size", "hidden_act")
    options: dict[str, Any] = {ours: said[theirs] for theirs, ours in SIZES.items()}
    options["activation"] = activation(said, "hidden_act")
    options["norm_eps"] = said.get("layer_norm_eps", BERT.norm_eps)
    options["dropout"] = said.get("hidden_dropout_prob", BERT.dropout)
    return replace(BERT, **options)


def _renamed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Parameters by our names."""
    ours = {}
    for name, weight in weights.items():
        name = name.removeprefix("bert.")
        for theirs, new in NAMES.items():
            name = name.replace(theirs, new)
        ours[name] = weight.float()
    ours.pop("embeddings.position_ids", None)  # 0, 1, .. in old files
    return without_tied(ours)


def sotu_bert() -> tuple[Bert, WordPiece]:
    """The book's own BERT and its tokenizer: a million parameters, taught on presidents' speeches.

    It never read the years that end in 5. `int8.said(SOTU_BERT)` tells what made it and its scores;
    `make bert` makes it again.

    Returns:
        The model, in evaluation mode, its weights rounded to 8 bits, and the tokenizer.
    """
    return load_int8(SOTU_BERT, Bert)


def sotu_gpt() -> tuple[TransformerDecoder, BytePair]:
    """The book's own GPT and its tokenizer, taught on presidents' speeches.

    It never read the years that end in 5. `int8.said(SOTU_GPT)` tells what made it and its scores;
    `make gpt` makes it again.

    Returns:
        The model, in evaluation mode, its weights rounded to 8 bits, and the tokenizer.
    """
    return load_int8(SOTU_GPT, TransformerDecoder)


def minilm() -> tuple[Any, Any]:
    """MiniLM, a small encoder of the BERT family, and its tokenizer.

        batch = tokenizer(["We wash our cats."], padding=True, return_tensors="pt")
        with recorded(model, type(model.encoder.layer[0].attention.self)) as weights:
            model(**batch)

    `weights` then has a tensor `[batch head query key]` for each layer, as
    `weights["encoder.layer.0.attention.self"]`. Padding is attended by nobody:
    `batch["attention_mask"]` is 0 there.

    Returns:
        The model, a `BertModel` in evaluation mode which computes its attention step by step, as
        the default would give no weights, and the tokenizer, a `BertTokenizer`.

    Raises:
        ImportError: if `transformers` is missing.
        AssetError: if the weights are not in the cache and cannot be fetched.

    Source: Wang et al. 2020; Reimers and Gurevych 2019.
    """
    transformers, folder = _transformers(), assets.fetch("minilm")
    logging = transformers.utils.logging
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # loading takes less than a second
    try:
        model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager")
    finally:
        if bars:
            logging.enable_progress_bar()
    return model, transformers.BertTokenizer.from_pretrained(folder)


def _transformers() -> ModuleType:
    try:
        import transformers
    except ImportError as error:
        raise ImportError(
            "a pretrained model needs the package transformers:"
            ' python -m pip install "attnbook[pretrained]"'
        ) from error
    return transformers


def copy_bert_attention(layer: Any) -> MultiHeadAttention:
    """The book's own attention with the weights of a BERT layer.

    For input x `[batch token d_model]` of the layer it gives the layer's attention weights, and
    what the layer then adds to x and normalizes.

    Args:
        layer: a `BertLayer` of `transformers`, as `model.encoder.layer[0]`. Its `query`, `key`,
            `value` and `output.dense` are called `q`, `k`, `v` and `out` here.
    """
    theirs = layer.attention.self
    ours = MultiHeadAttention(theirs.query.in_features, theirs.num_attention_heads)
    ours.q.load_state_dict(theirs.query.state_dict())
    ours.k.load_state_dict(theirs.key.state_dict())
    ours.v.load_state_dict(theirs.value.state_dict())
    ours.out.load_state_dict(layer.attention.output.dense.state_dict())
    return ours
