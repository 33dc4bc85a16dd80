"""Real pretrained models, from the files of an asset, beside the book's own modules.

They are classes of `transformers`, which the extra `attnbook[pretrained]` brings.
"""

from types import ModuleType
from typing import Any

from attnbook import assets
from attnbook.attention import MultiHeadAttention


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
