"""Pretrained models, in the book's own classes and in those of `transformers`.

The latter need `transformers`, which the extra `attnbook[pretrained]` installs.
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
    check_values,
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
NAMES = {  # parts of a parameter's name in BERT's files, and their names here, in this order
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
GPT_SIZES = {  # name in GPT-2's config.json: name here, default
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

    All models of the family add embeddings of tokens, segments and learned positions, have norms
    after each layer, and tie the output matrix to the embedding: BERT of any size and language,
    models distilled from it (MiniLM, TinyBERT), and sentence encoders.

    Args:
        folder: holds `config.json`, `model.safetensors` and `vocab.txt`; a `tokenizer_config.json`
            may say that capitals are kept.

    Returns:
        The model, in evaluation mode, and the tokenizer. Heads that the files lack are None.

    Raises:
        ValueError: if a file is missing, the configuration is of another family, a parameter is
            missing, unknown or of another shape, or the vocabulary has another size.

    Source: Devlin et al. 2019.

    In other libraries: `BertForPreTraining.from_pretrained` of `transformers`.
    """
    folder = Path(folder)
    hf_config = read(folder, "model.safetensors", "vocab.txt")
    config = _bert_config(hf_config)
    more = folder / "tokenizer_config.json"
    options = json.loads(more.read_text("utf-8")) if more.is_file() else {}
    lowercase = options.get("do_lower_case", True)
    tokenizer = WordPiece.load(folder / "vocab.txt", lowercase=lowercase)
    if len(tokenizer.vocab) != hf_config["vocab_size"]:
        expected, actual = hf_config["vocab_size"], len(tokenizer.vocab)
        raise ValueError(f"vocab.txt must hold vocab_size = {expected} tokens, got {actual}")
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

    All models of the family add embeddings of tokens and learned positions, have norms before each
    layer and after the last block, and map to queries, keys and values by one matrix: GPT-2 of any
    size and language, and models distilled from it.

    Args:
        folder: holds `config.json` and `model.safetensors`. The tokens are named by `vocab.json`,
            or "<0>", "<1>", ... without such a file.

    Returns:
        The model, in evaluation mode. If the configuration scales scores by anything other than
        1 / sqrt(d_head), the query weights are rescaled instead.

    Raises:
        ValueError: if a file is missing, the configuration is of another family or needs something
            that the decoder lacks, or a parameter is missing, unknown or of another shape.

    Source: Radford et al. 2019, section 2.3.

    In other libraries: `GPT2LMHeadModel.from_pretrained` of `transformers`. It also applies
    dropout to attention weights; this model does not.
    """
    folder = Path(folder)
    hf_config = read(folder, "model.safetensors")
    check_values(hf_config, model_type=("gpt2", None), add_cross_attention=(False, False))
    options = {ours: hf_config.get(theirs, value) for theirs, (ours, value) in GPT_SIZES.items()}
    options["activation"] = activation(hf_config, "activation_function", "gelu_new")
    options["d_ff"] = options["d_ff"] or 4 * options["d_model"]
    config = replace(GPT_2, **options)
    model = bare_decoder(vocabulary(folder, hf_config.get("vocab_size", 50257), hf_config), config)
    weights = _gpt_renamed(load_file(folder / "model.safetensors"), config)
    for layer in range(config.n_layers):
        scale = 1.0 if hf_config.get("scale_attn_weights", True) else config.head_size**0.5
        scale /= layer + 1 if hf_config.get("scale_attn_by_inverse_layer_idx", False) else 1
        for kind in ("weight", "bias"):
            if (name := f"stack.blocks.{layer}.attention.q.{kind}") in weights:
                weights[name] = weights[name] * scale
    return fill(model, weights)


def _gpt_renamed(weights: dict[str, Tensor], config: TransformerConfig) -> dict[str, Tensor]:
    """Parameters by the names of this package; GPT-2 stores matrices transposed, q, k, v as one."""
    ours = {}
    for name, weight in weights.items():
        name, weight = name.removeprefix("transformer."), weight.float()
        if name.endswith((".attn.bias", ".attn.masked_bias")):  # old files store the causal mask
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


def _bert_config(hf_config: dict[str, Any]) -> TransformerConfig:
    """The `TransformerConfig` for a `config.json`."""
    check_values(
        hf_config,
        model_type=("bert", None),
        position_embedding_type=("absolute", "absolute"),
        is_decoder=(False, False),
    )
    check_names(hf_config, *SIZES, "vocab_size", "hidden_act")
    options: dict[str, Any] = {ours: hf_config[theirs] for theirs, ours in SIZES.items()}
    options["activation"] = activation(hf_config, "hidden_act")
    options["norm_eps"] = hf_config.get("layer_norm_eps", BERT.norm_eps)
    options["dropout"] = hf_config.get("hidden_dropout_prob", BERT.dropout)
    return replace(BERT, **options)


def _renamed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Parameters by the names of this package."""
    ours = {}
    for name, weight in weights.items():
        name = name.removeprefix("bert.")
        for theirs, new in NAMES.items():
            name = name.replace(theirs, new)
        ours[name] = weight.float()
    ours.pop("embeddings.position_ids", None)  # old files store 0, 1, ..
    return without_tied(ours)


def sotu_bert() -> tuple[Bert, WordPiece]:
    """The book's own BERT and its tokenizer: a million parameters, trained on the speeches.

    It never read the years that end in 5. `int8.metadata(SOTU_BERT)` has its training settings and
    scores; `make bert` trains it again.

    Returns:
        The model, in evaluation mode, its weights rounded to 8 bits, and the tokenizer.
    """
    return load_int8(SOTU_BERT, Bert)


def sotu_gpt() -> tuple[TransformerDecoder, BytePair]:
    """The book's own GPT and its tokenizer, trained on presidents' speeches.

    It never read the years that end in 5. `int8.metadata(SOTU_GPT)` has its training settings and
    scores; `make gpt` trains it again.

    Returns:
        The model, in evaluation mode, its weights rounded to 8 bits, and the tokenizer.
    """
    return load_int8(SOTU_GPT, TransformerDecoder)


def minilm() -> tuple[Any, Any]:
    """MiniLM, a small encoder of the BERT family, and its tokenizer.

        batch = tokenizer(["We wash our cats."], padding=True, return_tensors="pt")
        with recorded(model, type(model.encoder.layer[0].attention.self)) as weights:
            model(**batch)

    `weights` then has a tensor `[batch head query key]` for each layer, such as
    `weights["encoder.layer.0.attention.self"]`. No token attends to padding, where
    `batch["attention_mask"]` is 0.

    Returns:
        The model, a `BertModel` in evaluation mode, and the tokenizer, a `BertTokenizer`. The model
        uses "eager" attention, since the default implementation returns no weights.

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

    For a layer's input x `[batch token d_model]` it computes the layer's attention weights, and the
    output that the layer then adds to x and normalises.

    Args:
        layer: a `BertLayer` of `transformers`, e.g. `model.encoder.layer[0]`. Its `query`, `key`,
            `value` and `output.dense` are called `q`, `k`, `v` and `out` here.
    """
    theirs = layer.attention.self
    ours = MultiHeadAttention(theirs.query.in_features, theirs.num_attention_heads)
    ours.q.load_state_dict(theirs.query.state_dict())
    ours.k.load_state_dict(theirs.key.state_dict())
    ours.v.load_state_dict(theirs.value.state_dict())
    ours.out.load_state_dict(layer.attention.output.dense.state_dict())
    return ours
