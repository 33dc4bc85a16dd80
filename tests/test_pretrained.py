import json
import socket
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from attnbook.model.bert import pack
from attnbook.model.recording import recorded
from attnbook.text.tokenizers import SPECIAL, BytePair
from attnbook.weights import pretrained
from attnbook.weights.pretrained import load_bert, load_gpt2
from tests.helpers.parity import close, randomise
from tests.helpers.weights import changed

SENTENCES = [
    "We wash our cats.",
    "The animal didn't cross the street because it was too tired.",
    "She gave him the book that her sister had written about the war.",
]


def compare(model: Any, batch: dict) -> int:
    """Every layer's attention, copied, gives what the layer gives; how many heads there were."""
    outputs: list[torch.Tensor] = []  # what each layer's output map gives
    for layer in model.encoder.layer:
        layer.attention.output.dense.register_forward_hook(lambda m, i, out: outputs.append(out))
    with torch.no_grad():
        result = model(**batch, output_attentions=True, output_hidden_states=True)
    mask = batch["attention_mask"].bool()[:, None]
    assert not mask.all()
    heads = 0
    for layer, x, theirs, after in zip(
        model.encoder.layer, result.hidden_states[:-1], result.attentions, outputs, strict=True
    ):
        ours = pretrained.copy_bert_attention(layer)
        with torch.no_grad():
            fused = ours(x, mask=mask)
            with recorded(ours) as found:
                out = ours(x, mask=mask)
        weights = found[""]
        torch.testing.assert_close(weights, theirs, rtol=0, atol=1e-5)
        torch.testing.assert_close(out, after, rtol=0, atol=1e-5)
        torch.testing.assert_close(fused, after, rtol=0, atol=1e-5)
        heads += weights.shape[1]
    return heads


def test_attention_of_a_random_bert():
    from transformers import BertConfig, BertModel

    sizes = {"vocab_size": 11, "hidden_size": 12, "num_attention_heads": 3, "intermediate_size": 7}
    options: dict[str, Any] = {"num_hidden_layers": 2, "attn_implementation": "eager"}
    config = BertConfig(**sizes, **options, initializer_range=0.5)  # weights far from uniform
    batch = {
        "input_ids": torch.randint(11, (2, 5)),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
    }
    assert compare(BertModel(config).eval(), batch) == 6


def test_attention_of_minilm(asset):
    asset("minilm")
    model, tokenizer = pretrained.minilm()
    assert compare(model, tokenizer(SENTENCES, padding=True, return_tensors="pt")) == 72


def test_a_copy_stays_as_it_was_when_the_layer_is_trained():
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLayer

    layer: Any = BertLayer(BertConfig(hidden_size=12, num_attention_heads=3, intermediate_size=7))
    ours = pretrained.copy_bert_attention(layer)
    before = ours.k.weight.clone()
    with torch.no_grad():
        layer.attention.self.key.weight.add_(1)
    assert torch.equal(ours.k.weight, before)


def test_minilm_knows_words_in_their_sentence(asset):
    """The weights are those of a model that learnt something: two banks, three sentences."""
    asset("minilm")
    model, tokenizer = pretrained.minilm()
    sentences = [
        "he sat on the bank of the river",
        "the bank lent me money",
        "the bank of the lake",
    ]
    batch = tokenizer(sentences, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    river, money, lake = states[batch["input_ids"] == tokenizer.convert_tokens_to_ids("bank")]
    cosine = torch.nn.functional.cosine_similarity
    assert cosine(river, lake, dim=0) > cosine(river, money, dim=0) + 0.05


def test_loading_prints_nothing_asks_nobody_and_leaves_progress_bars_on(asset, monkeypatch, capfd):
    from transformers.utils import logging

    asset("minilm")

    def nobody(*args):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", nobody)
    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, _ = pretrained.minilm()
    assert capfd.readouterr() == ("", "")
    assert not model.training
    assert logging.is_progress_bar_enabled()
    assert torch.equal(torch.get_rng_state(), state)


def test_without_transformers_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r'transformers: .*"attnbook\[pretrained\]"'):
        pretrained.minilm()


SIZES: list[dict[str, Any]] = [  # all of them differ
    {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 20},
    {
        "hidden_size": 20,
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "intermediate_size": 14,
        "hidden_act": "gelu_new",
        "layer_norm_eps": 0.1,
        "max_position_embeddings": 11,
        "type_vocab_size": 7,
    },
    {
        "hidden_size": 10,
        "num_attention_heads": 5,
        "num_hidden_layers": 1,
        "intermediate_size": 30,
        "hidden_act": "relu",
        "max_position_embeddings": 16,
    },
]
KINDS = ["BertForPreTraining", "BertForMaskedLM", "BertForNextSentencePrediction", "BertModel"]


def saved(folder: Path, kind: str = KINDS[0], **options: Any) -> Any:
    """A random model of `transformers`, and its directory."""
    import transformers

    words = [*SPECIAL[:3], *"abcdefgh", *SPECIAL[3:]]  # 13 tokens
    options = {"attn_implementation": "eager", "max_position_embeddings": 9, **SIZES[0], **options}
    config = transformers.BertConfig(vocab_size=len(words), **options)
    theirs = randomise(getattr(transformers, kind)(config))
    theirs.save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    return theirs


def pairs(vocab: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Two pairs, the second with padding."""
    return pack(vocab, [[3, 4, 5], [6]], [[7, 8], [9]], max_len=9)


@torch.no_grad()
def same(theirs: Any, folder: Path) -> Any:
    """Hidden states, attention and heads of a directory are those of `transformers`."""
    ours, tokenizer = load_bert(folder)
    tokens, segments = pairs(tokenizer.vocab)
    words = tokens != tokenizer.vocab.pad
    assert not ours.training and not words.all() and segments.any()
    with recorded(ours) as weights:
        states = ours.layers(tokens, segments)
    fused = ours(tokens, segments)
    options = {"output_hidden_states": True, "output_attentions": True}
    out = theirs(tokens, attention_mask=words.long(), token_type_ids=segments, **options)
    assert len(states) == len(out.hidden_states) == len(weights) + 1
    for mine, other in zip([*states, fused], [*out.hidden_states, states[-1]], strict=True):
        close(mine[words], other[words])
    for mine, other in zip(weights.values(), out.attentions, strict=True):
        close(mine, other)
    names = ("prediction_logits", "seq_relationship_logits", "logits")
    scores = [out[name] for name in names if name in out]
    assert len(scores) == sum(head is not None for head in (ours.words, ours.next_sentence))
    for other in scores:
        if other.ndim == 3:
            close(ours.word_logits(fused)[words], other[words])
        else:
            close(ours.next_logits(fused), other)
    if "pooler_output" in out:
        close(ours.pooled(fused), out.pooler_output)
    return ours


@pytest.mark.parametrize("sizes", SIZES, ids=["gelu", "gelu_new", "relu"])
def test_a_random_bert_is_that_of_transformers(tmp_path: Path, sizes: dict[str, Any]) -> None:
    ours = same(saved(tmp_path, **sizes), tmp_path)
    assert None not in (ours.pooler, ours.words, ours.next_sentence)


@pytest.mark.parametrize(
    ("kind", "heads"),
    [
        ("BertModel", {"pooler"}),
        ("BertForMaskedLM", {"words"}),
        ("BertForNextSentencePrediction", {"pooler", "next_sentence"}),
    ],
)
def test_heads_that_a_directory_lacks_are_none(tmp_path: Path, kind: str, heads: set[str]) -> None:
    ours = same(saved(tmp_path, kind), tmp_path)
    every = ("pooler", "words", "next_sentence")
    assert {name for name in every if getattr(ours, name) is not None} == heads


@torch.no_grad()
def test_minilm_in_our_class_is_that_of_transformers(asset: Any) -> None:
    ours, tokenizer = load_bert(asset("minilm"))
    theirs, their_tokenizer = pretrained.minilm()
    batch = their_tokenizer(SENTENCES, SENTENCES[::-1], padding=True, return_tensors="pt")
    first = [tokenizer.encode(sentence) for sentence in SENTENCES]
    packed = pack(tokenizer.vocab, first, first[::-1], max_len=512)
    assert packed.tokens.equal(batch["input_ids"])
    assert packed.segments.equal(batch["token_type_ids"])
    words = packed.tokens != tokenizer.vocab.pad
    out = theirs(**batch, output_hidden_states=True, output_attentions=True)
    with recorded(ours) as weights:
        states = ours.layers(*packed)
    for mine, other in zip(states, out.hidden_states, strict=True):
        close(mine[words], other[words])
    for mine, other in zip(weights.values(), out.attentions, strict=True):
        close(mine, other)
    close(ours.pooled(states[-1]), out.pooler_output)
    assert ours.words is None and ours.next_sentence is None


def test_files_of_old_are_read(tmp_path: Path) -> None:
    """Norms with gamma and beta, positions written out, output matrix and bias twice, halves."""
    theirs = saved(tmp_path)
    path = tmp_path / "model.safetensors"
    weights = {name: weight.half() for name, weight in load_file(path).items()}
    theirs.load_state_dict({name: weight.float() for name, weight in weights.items()}, strict=False)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): weight
        for name, weight in weights.items()
    }
    old["bert.embeddings.position_ids"] = torch.arange(9)[None]
    embedding = old["bert.embeddings.word_embeddings.weight"]
    old["cls.predictions.decoder.weight"] = embedding.clone()
    old["cls.predictions.decoder.bias"] = old["cls.predictions.bias"].clone()
    save_file(old, path)
    assert any("gamma" in name for name in old)
    same(theirs, tmp_path)


def test_capitals_are_kept_where_the_directory_says_so(tmp_path: Path) -> None:
    saved(tmp_path)
    assert load_bert(tmp_path)[1].words("Ab") == ["ab"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert load_bert(tmp_path)[1].words("Ab") == ["Ab"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "roberta", "config.json must have model_type = 'bert', got 'roberta'"),
        (
            "position_embedding_type",
            "relative_key",
            "config.json must have position_embedding_type = 'absolute', got 'relative_key'",
        ),
        ("is_decoder", True, "config.json must have is_decoder = False, got True"),
        ("hidden_size", None, "config.json must have hidden_size, got none"),
        ("hidden_act", "tanh", "hidden_act must be one of 'gelu', .*, got 'tanh'"),
        ("vocab_size", 14, "vocab.txt must hold vocab_size = 14 tokens, got 13"),
        ("num_attention_heads", 5, "n_heads must divide d_model, 12, got 5"),
        (
            "intermediate_size",
            21,
            r"must hold stack.blocks.0.feed_forward.up.weight \[21, 12\], got \[20, 12\]",
        ),
        ("num_hidden_layers", 3, r"must hold stack.blocks.2.attention.q.weight .*, got none"),
        ("num_hidden_layers", 1, "must hold no more than a Bert, got stack.blocks.1.attention"),
    ],
)
def test_another_family_is_refused(tmp_path: Path, key: str, value: Any, message: str) -> None:
    saved(tmp_path)
    path = tmp_path / "config.json"
    said = json.loads(path.read_text()) | {key: value}
    path.write_text(json.dumps({k: v for k, v in said.items() if v is not None}))
    with pytest.raises(ValueError, match=message):
        load_bert(tmp_path)


@pytest.mark.parametrize(
    ("name", "weight", "message"),
    [
        ("bert.pooler.dense.bias", None, r"must hold pooler.bias \[12\], got none"),
        ("cls.predictions.bias", torch.ones(5), r"must hold words.bias \[13\], got \[5\]"),
        ("classifier.weight", torch.ones(2, 12), "no more than a Bert, got classifier.weight"),
        (
            "cls.predictions.decoder.weight",
            torch.ones(13, 12),
            "no more than a Bert, got an output matrix apart from the embedding",
        ),
    ],
)
def test_parameters_that_do_not_fit_are_named(
    tmp_path: Path, name: str, weight: Any, message: str
) -> None:
    saved(tmp_path)
    changed(tmp_path, **{name: weight})
    with pytest.raises(ValueError, match=message):
        load_bert(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    saved(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=f"folder must hold {name}, got"):
        load_bert(tmp_path)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_our_classes_need_no_transformers(tmp_path: Path, kind: str) -> None:
    {"bert": saved, "gpt2": saved_gpt}[kind](tmp_path)
    script = (
        f"import sys; from attnbook.weights import load_{kind}; load_{kind}(sys.argv[1])\n"
        "print({'transformers', 'tokenizers'} & {*sys.modules})"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


GPT_SIZES: list[dict[str, Any]] = [  # all of them differ
    {"n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 9},
    {
        "n_embd": 20,
        "n_head": 4,
        "n_layer": 3,
        "n_inner": 14,
        "activation_function": "gelu",
        "layer_norm_epsilon": 0.1,
        "tie_word_embeddings": False,
    },
    {
        "n_embd": 10,
        "n_head": 5,
        "n_layer": 1,
        "n_inner": 30,
        "activation_function": "relu",
        "scale_attn_weights": False,
    },
    {
        "n_embd": 14,
        "n_head": 7,
        "n_layer": 3,
        "activation_function": "silu",
        "scale_attn_by_inverse_layer_idx": True,
    },
]


def saved_gpt(folder: Path, kind: str = "GPT2LMHeadModel", **options: Any) -> Any:
    """A random GPT-2 of `transformers`, and its directory."""
    import transformers

    options = {"attn_implementation": "eager", "n_positions": 11, **GPT_SIZES[0], **options}
    config = transformers.GPT2Config(vocab_size=13, **options)
    theirs = randomise(getattr(transformers, kind)(config))
    theirs.save_pretrained(folder)
    return theirs


@torch.no_grad()
def same_gpt(theirs: Any, folder: Path, tokens: torch.Tensor) -> Any:
    """Logits, states and attention of a directory are those of `transformers`."""
    ours, states = load_gpt2(folder), []
    assert not ours.training
    modules = (ours.stack.dropout, *ours.stack.blocks[:-1], ours.stack.norm)
    hooks = [m.register_forward_hook(lambda m, i, out: states.append(out)) for m in modules]
    with recorded(ours) as weights:
        logits = ours(tokens)
    for hook in hooks:
        hook.remove()
    out = theirs(tokens, output_hidden_states=True, output_attentions=True)
    for mine, other in zip(states, out.hidden_states, strict=True):
        close(mine, other)
    for mine, other in zip(weights.values(), out.attentions, strict=True):
        close(mine, other)
    for found in (logits, ours(tokens)):
        close(found, out.logits)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    mask[1:, :2] = False  # padding on the left
    position = (mask.long().cumsum(1) - 1).clamp(min=0)
    padded = theirs(tokens, attention_mask=mask.long(), position_ids=position)
    close(ours(tokens, mask=mask)[mask], padded.logits[mask])
    return ours


@pytest.mark.parametrize("sizes", GPT_SIZES, ids=["gelu_new", "untied", "unscaled", "inverse"])
def test_a_random_gpt2_is_that_of_transformers(tmp_path: Path, sizes: dict[str, Any]) -> None:
    theirs = saved_gpt(tmp_path, **sizes)
    ours = same_gpt(theirs, tmp_path, torch.randint(13, (3, 7)))
    assert (ours.head is None) is sizes.get("tie_word_embeddings", True)
    assert ours.vocab.tokens[:2] == ("<0>", "<1>") and ours.vocab.eos == 12
    prompt = torch.tensor([[3, 7, 1]])
    wanted = theirs.generate(prompt, max_new_tokens=5, do_sample=False, eos_token_id=12)
    tokens = ours.generate(prompt, 5).tokens[0].tolist()
    assert tokens == wanted[0, 3:].tolist()


def test_a_gpt2_without_head_and_one_of_old_files(tmp_path: Path) -> None:
    """Names without "transformer", causal masks as parameters, the output matrix twice, halves."""
    theirs = saved_gpt(tmp_path)
    weights = {
        name.removeprefix("transformer."): weight.half()
        for name, weight in load_file(tmp_path / "model.safetensors").items()
    }
    theirs.load_state_dict(
        {f"transformer.{name}": weight.float() for name, weight in weights.items()}, strict=False
    )
    save_file(weights, tmp_path / "model.safetensors")
    tokens = torch.randint(13, (2, 5))
    same_gpt(theirs, tmp_path, tokens)
    for layer in range(2):
        weights[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 9, 9).tril()
        weights[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    weights["lm_head.weight"] = weights["wte.weight"].clone()
    save_file(weights, tmp_path / "model.safetensors")
    same_gpt(theirs, tmp_path, tokens)


def test_a_gpt2_takes_the_tokens_of_its_folder(tmp_path: Path) -> None:
    options: Any = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    saved_gpt(tmp_path, **options)
    (tmp_path / "vocab.json").write_text(json.dumps({"Ġthe": 0, "<s>": 1, "</s>": 2, "x": 5}))
    vocab = load_gpt2(tmp_path).vocab
    assert vocab.tokens[:6] == ("Ġthe", "<s>", "</s>", "<3>", "<4>", "x")
    assert (vocab.pad, vocab.bos, vocab.eos, len(vocab)) == (0, 1, 2, 13)
    (tmp_path / "vocab.json").write_text(json.dumps({"x": 13}))
    with pytest.raises(ValueError, match=r"vocab.json must number at most 13 tokens, got 'x': 13"):
        load_gpt2(tmp_path)


def test_a_gpt2_and_its_tokenizer_have_the_same_vocabulary(tmp_path: Path) -> None:
    import transformers

    tokenizer = BytePair([("h", "e"), ("Ġ", "t")])
    tokenizer.save(tmp_path)
    ids: Any = {f"{name}_token_id": tokenizer.vocab.eos for name in ("bos", "eos")}
    config = transformers.GPT2Config(vocab_size=259, n_embd=8, n_head=2, n_layer=1, **ids)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    assert load_gpt2(tmp_path).vocab == BytePair.load(tmp_path).vocab == tokenizer.vocab


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "gptj", "config.json must have model_type = 'gpt2', got 'gptj'"),
        ("model_type", None, "config.json must have model_type = 'gpt2', got None"),
        (
            "add_cross_attention",
            True,
            "config.json must have add_cross_attention = False, got True",
        ),
        (
            "activation_function",
            "tanh",
            "activation_function must be one of 'gelu', .*, got 'tanh'",
        ),
        ("n_head", 5, "n_heads must divide d_model, 12, got 5"),
        ("vocab_size", 14, r"must hold stack.embedding.weight \[14, 12\], got \[13, 12\]"),
        ("n_positions", 8, r"stack.positions.embedding.weight \[8, 12\], got \[9, 12\]"),
        ("n_inner", 21, r"blocks.0.feed_forward.up.weight \[21, 12\], got \[48, 12\]"),
        ("n_layer", 3, r"must hold stack.blocks.2.attention.q.weight \[12, 12\], got none"),
        ("n_layer", 1, "no more than a TransformerDecoder, got stack.blocks.1.attention"),
        ("tie_word_embeddings", False, r"must hold head.weight \[13, 12\], got none"),
    ],
)
def test_another_family_than_gpt2s_is_refused(
    tmp_path: Path, key: str, value: Any, message: str
) -> None:
    saved_gpt(tmp_path)
    path = tmp_path / "config.json"
    said = json.loads(path.read_text()) | {key: value}
    path.write_text(json.dumps({k: v for k, v in said.items() if v is not None}))
    with pytest.raises(ValueError, match=message):
        load_gpt2(tmp_path)


@pytest.mark.parametrize(
    ("name", "weight", "message"),
    [
        ("transformer.h.0.attn.c_attn.bias", None, r"attention.q.bias \[12\], got none"),
        ("transformer.h.1.attn.c_attn.weight", torch.ones(12, 35), r"v.weight .*, got \[11, 12\]"),
        ("score.weight", torch.ones(2, 12), "no more than a TransformerDecoder, got score.weight"),
        (
            "lm_head.weight",
            torch.ones(13, 12),
            "no more than a TransformerDecoder, got an output matrix apart from the embedding",
        ),
    ],
)
def test_parameters_that_do_not_fit_a_gpt2_are_named(
    tmp_path: Path, name: str, weight: Any, message: str
) -> None:
    saved_gpt(tmp_path)
    changed(tmp_path, **{name: weight})
    with pytest.raises(ValueError, match=message):
        load_gpt2(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_of_a_gpt2_is_named(tmp_path: Path, name: str) -> None:
    saved_gpt(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=f"folder must hold {name}, got"):
        load_gpt2(tmp_path)
