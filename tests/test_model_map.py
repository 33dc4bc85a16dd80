"""ModelMap: its ledgers are counts of real models, its names those of the files."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch

from attnbook.model import costs
from attnbook.model.bert import Bert
from attnbook.model.config import BERT, GPT_1, GPT_2, QWEN_3, SMOLLM2, TINY, TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary
from attnbook.web import ModelMap
from attnbook.web.model_map.models import CHANGES, NAMES, SETTINGS, look
from attnbook.weights import llama, pretrained

WORDS = 29  # of the vocabulary, special tokens included
SMALL = replace(GPT_2, d_model=12, n_heads=6, d_ff=40, n_layers=3, max_len=17)
PARTS = {"normalizer": "rms", "activation": "silu", "gated": True, "d_ff": 27, "n_kv_heads": 2,
         "positions": "rotary", "bias": False, "tied": False}  # fmt: skip
MODERN = replace(SMALL, **PARTS)
CHANGED = [*CHANGES]


def vocabulary(n: int = WORDS) -> Vocabulary:
    return Vocabulary([f"<{i}>" for i in range(n)], pad="<0>", bos="<1>", eos="<2>")


def count(config: TransformerConfig, shape: str, n: int = WORDS) -> int:
    """Parameters of the package's model."""
    with torch.device("meta"):
        kind = Bert if shape == "encoder" else TransformerDecoder
        return sum(p.numel() for p in kind(vocabulary(n), config).parameters())


def exchange() -> ModelMap:
    return ModelMap({"GPT-2": SMALL, "Llama": MODERN}, WORDS, n_tokens=5, n_bytes=4, name="m")


def whole(widget: ModelMap) -> int:
    return sum(n for part, n in widget.ledger().items() if part != "cache")


def test_each_ledger_is_the_count_of_that_model_and_its_cache() -> None:
    widget, fields = exchange(), {name: CHANGES[name][0] for name in CHANGES}
    assert [change["name"] for change in widget.changes] == CHANGED and len(widget.ledgers) == 64
    for some in itertools.product([False, True], repeat=len(CHANGED)):
        names = list(itertools.compress(CHANGED, some))
        widget.exchanged = names[::-1]
        taken = {f: getattr(MODERN, f) for name in names for f in fields[name]}
        config = replace(SMALL, **taken)
        assert whole(widget) == count(config, "decoder")
    with torch.no_grad():
        model = TransformerDecoder(vocabulary(), MODERN)
        _, (kept, *_) = model.step(torch.ones(1, 5, dtype=torch.long), model.start())
    bytes_kept = sum(k.nbytes + v.nbytes for k, v, _ in kept.values())
    assert widget.ledger()["cache"] == bytes_kept


@pytest.mark.parametrize(
    ("config", "shape", "n"),
    [
        (GPT_2, "decoder", 50257),
        (GPT_1, "decoder", 40478),
        (SMOLLM2, "decoder", 49152),
        (QWEN_3, "decoder", 151936),
        (TINY, "decoder", WORDS),
        (replace(TINY, d_ff=0, norm="none", final_norm=True), "decoder", WORDS),
        (BERT, "encoder", 30522),
        (replace(BERT, d_model=60, bias=False, norm="pre"), "encoder", WORDS),
    ],
)
def test_parameters_by_part_are_all(config: TransformerConfig, shape: str, n: int) -> None:
    assert sum(costs.parameters(config, n, shape=shape).values()) == count(config, shape, n)


def test_a_part_has_the_parameters_of_its_modules() -> None:
    model = Bert(vocabulary(), replace(BERT, d_model=24, n_heads=4, d_ff=40, n_layers=2))
    found = costs.parameters(model.stack.config, WORDS, shape="encoder")

    def inside(*names: str) -> int:
        return sum(
            p.numel() for path, p in model.named_parameters() if any(n in path for n in names)
        )

    assert found["attention"] == inside("attention.") and found["norm"] == inside("_norm.")
    assert found["feed-forward"] == inside("feed_forward.")
    assert found["positions"] == inside("stack.positions", "stack.segments")
    assert found["words"] == inside("words.") and found["next"] == inside("pooler", "next_sent")


def test_of_the_second_model_only_what_is_exchanged_is_stored() -> None:
    one, other = exchange().pictures
    for part, n in (("norm", 3), ("keys", 2), ("rope", 3), ("bias", 2), ("feed-forward", 1)):
        assert one.count(f"data-part='{part}'") == other.count(f"data-part='{part}'") == n
    assert "data-part='add'" in one and "data-part='add'" not in other
    whole_other = ModelMap({"GPT-2": GPT_2, "SmolLM2": SMOLLM2}, [50257, 49152]).pictures[1]
    assert "data-part='add'" in whole_other and len(other) < 0.7 * len(one)


def test_known_sizes() -> None:
    sizes = {"GPT-2": GPT_2, "BERT": BERT}
    found = [whole(ModelMap({"GPT-2": sizes["GPT-2"]}, 50257))]
    found.append(whole(ModelMap({"BERT": BERT}, 30522, shape="encoder")))
    assert found == [124_439_808, 110_106_428]  # as `transformers` counts its published files


def test_unlike_sizes_are_exchanged_as_wholes() -> None:
    widget = ModelMap({"GPT-2": GPT_2, "SmolLM2": SMOLLM2}, [50257, 49152])
    assert widget.changes == [] and [*widget.ledgers] == ["", "all"]
    widget.exchanged = ["all"]
    assert whole(widget) == 134_515_008
    before = widget.png()
    widget.exchanged, widget.part = [], "attention"
    assert widget.png() != before and widget.figure_size()[1] > 3


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_names_are_those_that_the_files_are_read_by(family: str) -> None:
    for part, rows in NAMES[family].items():
        for here, _, theirs in rows:
            if theirs in ("rotary_emb", "lm_head"):
                continue  # no weights, or those of the embedding
            kind = "" if here == "words.bias" else ".weight"
            ours = here + kind if here.startswith(("stack.", "words.", "pooler", "next")) else ""
            ours = ours or f"stack.blocks.0.{here}{kind}"
            deep = ours.startswith("stack.blocks.")
            assert ours in renamed(family, theirs + kind, deep), (part, here)


def renamed(family: str, theirs: str, deep: bool) -> list[str]:
    if family == "llama":
        return [llama._ours(("model.layers.0." if deep else "model.") + theirs, MODERN)]
    weight = {"gpt2": torch.zeros(12, 12), "bert": torch.zeros(3)}[family]
    if family == "gpt2":
        name = ("transformer.h.0." if deep else "transformer.") + theirs
        return [*pretrained._gpt_renamed({name: weight}, SMALL)]
    name = "encoder.layer.0." + theirs if deep else theirs
    return [*pretrained._renamed({name if name.startswith("cls") else f"bert.{name}": weight})]


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_settings_have_the_names_of_transformers(family: str) -> None:
    transformers = pytest.importorskip("transformers")
    kinds = {"gpt2": "GPT2Config", "llama": "LlamaConfig", "bert": "BertConfig"}
    config = getattr(transformers, kinds[family])()
    for here, _, theirs in SETTINGS[family]["heads"]:
        assert hasattr(TINY, here) and hasattr(config, theirs)


def test_each_part_has_the_names_of_its_family() -> None:
    mixed = replace(SMALL, positions="rotary", gated=True, tied=False)  # with layer norm
    (model,) = ModelMap({"mixed": mixed}, WORDS).models
    theirs = {part: [row[2] for row in rows] for part, rows in model["names"].items()}
    assert theirs["norm"] == ["ln_1", "ln_2", "ln_f"] and theirs["positions"] == ["rotary_emb"]
    assert theirs["feed-forward"] == ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
    assert model["names"]["output"][0][0] == "head" and theirs["embedding"] == ["wte"]
    (model,) = ModelMap({"tiny": TINY}, WORDS).models
    assert model["names"]["positions"][0][0] == "stack.positions"


def test_our_names_are_modules() -> None:
    models = {"gpt2": SMALL, "llama": MODERN, "bert": replace(BERT, n_layers=1)}
    for family, config in models.items():
        with torch.device("meta"):
            kind = Bert if family == "bert" else TransformerDecoder
            model = kind(vocabulary(), config)
        paths = {path.removeprefix("stack.blocks.0.") for path, _ in model.named_modules()}
        paths |= {path for path, _ in model.named_parameters()}
        for rows in NAMES[family].values():
            assert {here for here, *_ in rows} <= paths


@pytest.mark.parametrize(
    ("models", "sizes", "options", "says"),
    [
        ({}, 5, {}, "models must be one or two"),
        ({"a": TINY, "b": TINY, "c": TINY}, 5, {}, "models must be one or two"),
        ({"a": TINY}, [5, 6], {}, "models must be one or two, each with a vocab_size"),
        ({"a": TINY}, 0, {}, "vocab_size must be"),
        ({"a": TINY}, 5, {"shape": "encoder-decoder"}, "shape must be one of"),
        ({"a": TINY}, 5, {"n_tokens": 0}, "n_tokens must be"),
        ({"a": replace(TINY, norm="none")}, 5, {}, "models must have the parts of the drawing"),
        ({"a": QWEN_3}, 5, {}, "models must have the parts of the drawing"),
    ],
)
def test_what_it_refuses(models: Any, sizes: Any, options: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ModelMap(models, sizes, **options)


def test_numbers_of_what_is_exchanged() -> None:
    models, rows = {"GPT-2": SMALL, "Llama": MODERN}, [("x", "state", ["1.00"], "a vector")]
    assert ModelMap(models, WORDS, worked={"norm": rows}).worked == {"norm": [[*rows[0]]]}
    assert exchange().worked == {}
    for one, name in ((models, "attention"), ({"GPT-2": SMALL}, "norm")):
        with pytest.raises(ValueError, match="worked 0 must be one of"):
            ModelMap(one, WORDS, worked={name: rows})


def test_states_it_refuses() -> None:
    widget = exchange()
    for trait, value in (("exchanged", ["all"]), ("part", "cross")):
        with pytest.raises(ValueError, match=f"{trait} must be"):
            widget.set_state({trait: value})
    assert look(MODERN, "decoder").rotary and repr(widget) == "ModelMap(decoder, GPT-2 and Llama)"
