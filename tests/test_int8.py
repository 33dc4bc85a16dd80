"""8 bits: what rounding costs a number, that a file gives back what was written, bad files."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from attnbook.model.bert import Bert, pack
from attnbook.model.config import GPT_2, QWEN_3, TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import SPECIAL, BytePair, WordPiece
from attnbook.weights.int8 import load_int8, metadata, quantize, save_int8

CONFIG = TransformerConfig(
    d_model=12,
    n_heads=3,
    d_ff=20,
    n_layers=2,
    norm="post",
    activation="gelu",
    positions="learned",
    max_len=9,
    n_segments=2,
)


def made() -> tuple[Bert, WordPiece]:
    tokenizer = WordPiece(["é", *SPECIAL, "a", "##b", "c"], lowercase=False)
    return Bert(tokenizer.vocab, CONFIG).eval(), tokenizer


def test_a_number_moves_by_half_a_step_at_most_and_the_largest_of_a_row_stays() -> None:
    X = torch.randn(5, 7) * torch.tensor([[1.0], [100.0], [0.0], [1e-6], [3.0]])
    Q, scale = quantize(X)
    assert Q.dtype == torch.int8 and Q.shape == X.shape and scale.shape == (5,)
    back = Q * scale[:, None]
    assert ((back - X).abs() <= scale[:, None] * 0.5001).all()
    assert Q.abs().amax(1).tolist() == [127, 127, 0, 127, 127]
    torch.testing.assert_close(back.abs().amax(1), X.abs().amax(1))
    again, same = quantize(back)
    assert again.equal(Q)
    torch.testing.assert_close(same, scale)


def test_a_file_gives_back_model_and_tokenizer(tmp_path: Path) -> None:
    model, tokenizer = made()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    path = tmp_path / "new" / "model.safetensors"
    save_int8(path, model, tokenizer, {"seed": 3, "scores": {"words": 0.5}})
    assert all(weight.equal(before[name]) for name, weight in model.state_dict().items())
    loaded, theirs = load_int8(path)
    assert not loaded.training and loaded.stack.config == CONFIG
    assert theirs.vocab == tokenizer.vocab and theirs.lowercase is False
    for name, weight in loaded.state_dict().items():
        if weight.ndim == 1:
            assert weight.equal(before[name]), name
        else:
            Q, scale = quantize(before[name])
            assert weight.equal(Q * scale[:, None]) and not weight.equal(before[name]), name
    assert metadata(path)["scores"] == {"words": 0.5} and metadata(path)["tokens"][0] == "é"
    save_int8(tmp_path / "twice.safetensors", loaded, theirs)
    twice, _ = load_int8(tmp_path / "twice.safetensors")
    tokens, segments = pack(tokenizer.vocab, [[6, 7, 8]], [[8]], max_len=9)
    with torch.no_grad():
        torch.testing.assert_close(twice(tokens, segments), loaded(tokens, segments))
        rounded = (loaded(tokens, segments) - model(tokens, segments)).abs().max()
    assert 0 < rounded < 0.3


def test_the_file_is_what_the_page_reads(tmp_path: Path) -> None:
    model, tokenizer = made()
    save_int8(tmp_path / "model.safetensors", model, tokenizer)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        texts = file.metadata()
        kinds = {name: file.get_tensor(name).dtype for name in file.keys()}  # noqa: SIM118
        scale = file.get_tensor("pooler.weight.scale")
    assert set(texts) == {"config", "tokens", "lowercase"}
    assert json.loads(texts["lowercase"]) is False
    assert scale.shape == (12,)
    for name, weight in model.state_dict().items():
        assert kinds[name] == (torch.int8 if weight.ndim == 2 else torch.float32)
        assert (f"{name}.scale" in kinds) == (weight.ndim == 2)


SIZES: dict[str, Any] = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2, "d_head": 6}
MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("Ã", "©")]


@pytest.mark.parametrize(
    "config",
    [
        replace(GPT_2, **SIZES, max_len=9),
        replace(QWEN_3, **SIZES, n_kv_heads=1),
        replace(QWEN_3, **SIZES, n_kv_heads=3, tied=False, activation="relu2", gated=False),
    ],
    ids=["GPT_2", "QWEN_3", "untied"],
)
def test_a_file_gives_back_a_decoder_and_its_merges(
    tmp_path: Path, config: TransformerConfig
) -> None:
    tokenizer = BytePair(MERGES, ("<end>", "<start>"))
    model, path = TransformerDecoder(tokenizer.vocab, config).eval(), tmp_path / "gpt.safetensors"
    save_int8(path, model, tokenizer, {"steps": 3})
    loaded, theirs = load_int8(path, TransformerDecoder)
    assert not loaded.training and loaded.stack.config == config
    assert (theirs.vocab, theirs.merges) == (tokenizer.vocab, tokenizer.merges)
    assert (theirs.special, loaded.vocab) == (tokenizer.special, tokenizer.vocab)
    for name, weight in model.state_dict().items():
        if weight.ndim == 2:
            Q, scale = quantize(weight)
            weight = Q * scale[:, None]
        assert loaded.state_dict()[name].equal(weight), name
    tokens = torch.tensor([tokenizer.encode(" the thé")])
    assert 0 < (loaded(tokens) - model(tokens)).abs().max() < 0.3
    given = metadata(path)
    assert {name: given[name] for name in ("merges", "special", "steps")} == {
        "merges": ["Ġ t", "h e", "Ġt he", "Ã ©"],
        "special": ["<end>", "<start>"],
        "steps": 3,
    }
    assert given["config"] == asdict(config) and set(given) == {
        "config",
        "merges",
        "special",
        "steps",
    }


def test_a_model_and_its_tokenizer_belong_together(tmp_path: Path) -> None:
    (model, words), path = made(), tmp_path / "model.safetensors"
    pairs = BytePair(MERGES)
    decoder = TransformerDecoder(pairs.vocab, replace(GPT_2, **SIZES))
    other: Any = BytePair(MERGES, tokens=pairs.vocab.tokens[::-1])
    for bad, message in (
        ((model, pairs), "tokenizer must be one for a Bert, got a BytePair"),
        ((decoder, words), "tokenizer must be one for a TransformerDecoder, got a WordPiece"),
        ((decoder, BytePair(MERGES[:2])), "must have the model's tokens, in their usual order"),
        ((decoder, BytePair(MERGES, digits=True)), "must not put digits apart to be stored"),
        ((TransformerDecoder(other.vocab, CONFIG), other), "tokens, in their usual order"),
    ):
        with pytest.raises(ValueError, match=message):
            save_int8(path, *bad)
    with pytest.raises(ValueError, match="more must not have merges, which the model says"):
        save_int8(path, decoder, pairs, {"merges": []})
    save_int8(path, decoder, pairs)
    with pytest.raises(ValueError, match="must hold a Bert, got a TransformerDecoder"):
        load_int8(path, Bert)
    texts = {name: json.dumps(value) for name, value in metadata(path).items()}
    save_file({"a": torch.ones(2)}, path, {**texts, "config": '{"later": 1}'})
    with pytest.raises(ValueError, match=r"must say a config that is known here: .* 'later'"):
        load_int8(path)
    save_file({"a": torch.ones(2)}, path, texts)
    with pytest.raises(ValueError, match="must hold the weights of a TransformerDecoder"):
        load_int8(path)
    del texts["special"]
    save_file({"a": torch.ones(2)}, path, texts)
    with pytest.raises(ValueError, match=r"must say its special, got \['config', 'merges'\]"):
        load_int8(path)


def test_bad_matrices_and_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"X must be finite, got inf"):
        quantize(torch.tensor([[1.0, torch.inf]]))
    model, tokenizer = made()
    path = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match="more must not have tokens, which the model says"):
        save_int8(path, model, tokenizer, {"tokens": []})
    with pytest.raises(ValueError, match="path must be a safetensors file"):
        load_int8(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="path must be a safetensors file"):
        metadata(path)
    save_file({"a": torch.ones(2)}, path, {"config": "{}"})
    with pytest.raises(ValueError, match=r"must say its tokens, got \['config'\]"):
        load_int8(path)
    texts = {"config": "{}", "tokens": json.dumps([*SPECIAL, "a"]), "lowercase": "true"}
    save_file({"a": torch.ones(2)}, path, texts)
    with pytest.raises(ValueError, match="must hold the weights of a Bert"):
        load_int8(path)
