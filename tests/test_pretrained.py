import socket
import sys
import warnings
from typing import Any

import pytest
import torch

from attnbook import pretrained
from attnbook.recording import recorded

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
