"""What a widget says of a wrong argument: which one, what it must be, what came."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import traitlets

from attnbook.model.config import TINY
from attnbook.model.transformer import TransformerDecoder
from attnbook.web import (
    AblationMap,
    AttentionHeatmap,
    AttentionPlane,
    AttentionSheet,
    CostCalculator,
    DecodingBench,
    LossSurface,
    ModelMap,
    PositionExplorer,
    Preset,
    PromptBench,
    Question,
    Quiz,
    RotaryDial,
    SoftmaxTemperature,
    Translator,
)
from attnbook.weights.int8 import load_int8
from tests.helpers.tiny_gpt import tiny_gpt

ROWS = [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]
RUN = {
    "off": [],
    "steps": [0, 50, 200],
    "loss": [4.0, 1.0, 0.5],
    "exact": [0.5],
    "translations": [["zwei", "two", "two"]],
}
SIZES = {"d_model": 64, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1, "size": 4}
NUMBERS = "must be a full array of numbers"
TRAIT = "trait of .* expected"  # what traitlets says of a wrong type
NAME = "name must be like 'learnt-map' .a-z, 0-9, hyphens., not"


def heatmap(**options: Any) -> AttentionHeatmap:
    return AttentionHeatmap(**{"weights": ROWS, "queries": ["a", "b"], "keys": [*"xyz"], **options})


def sheet(**options: Any) -> AttentionSheet:
    given = dict.fromkeys(("x", "w_q", "w_k", "w_v"), np.eye(2))
    return AttentionSheet(**{**given, "tokens": ["a", "b"], **options})


def plane(**options: Any) -> AttentionPlane:
    given = {what: np.eye(2) for what in ("queries", "keys", "values")}
    return AttentionPlane(**{**given, "words": ["a", "b"], **options})


def temperature(**options: Any) -> SoftmaxTemperature:
    return SoftmaxTemperature(**{"logits": [1, 2, 3], "labels": [*"abc"], **options})


def ablation(**options: Any) -> AblationMap:
    return AblationMap(**{"runs": [RUN, {**RUN, "off": "mask"}], **options})


def machine(**options: Any) -> ModelMap:
    return ModelMap(**{"models": {"a": TINY}, "vocab_size": 5, **options})


def surface(**options: Any) -> LossSurface:
    return LossSurface(**{"surfaces": np.ones((2, 3, 3)), "names": ["a", "b"], **options})


def calculator(**options: Any) -> CostCalculator:
    given = {"models": {"a": SIZES}, "machines": {"b": {"speed": 1e10, "bandwidth": 1e10}}}
    return CostCalculator(**{**given, **options})


def bench(**options: Any) -> DecodingBench:
    model, tokenizer = load_int8(tiny_gpt(), TransformerDecoder)
    return DecodingBench(**{"model": model, "tokenizer": tokenizer, "prompt": "We"} | options)


def prompts(**options: Any) -> PromptBench:
    model, tokenizer = load_int8(tiny_gpt(), TransformerDecoder)
    given = {"model": model, "tokenizer": tokenizer, "presets": [Preset("we", "We must")]}
    return PromptBench(**{**given, **options})


def preset(**changes: Any) -> dict[str, Any]:
    """The argument, with a change in a preset."""
    return {"presets": [Preset("we", "We must {}", "ask", (" the",))._replace(**changes)]}


def quiz(**changes: Any) -> Quiz:
    given = {"ask": "Which?", "choices": ["a", "b"], "right": 0, "why": "so", **changes}
    return Quiz([Question(**given)])


def second(**changes: Any) -> dict[str, Any]:
    """The runs, with a change in the second."""
    return {"runs": [RUN, {**RUN, "off": "mask", **changes}]}


BAD: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (heatmap, {"weights": None}, f"weights {NUMBERS}, not None"),
    (heatmap, {"weights": "text"}, f"weights {NUMBERS}, not 'text'"),
    (heatmap, {"weights": [["0.5", "0.5"]]}, f"weights {NUMBERS}, not .*'0.5'"),
    (heatmap, {"weights": [[1j]]}, f"weights {NUMBERS}, not .*1j"),
    (heatmap, {"weights": [[1, 0], [1]]}, f"weights {NUMBERS}: .* inhomogeneous"),
    (heatmap, {"weights": torch.zeros(2, 3, device="meta")}, f"weights {NUMBERS}: .*meta"),
    (heatmap, {"weights": 0.5}, r"weights must be \[..., query, key\] of shape \(2, 3\),.* \(\)"),
    (heatmap, {"weights": []}, r"weights must be .* of shape \(2, 3\),.* not of shape \(0,\)"),
    (heatmap, {"weights": [*ROWS, ROWS[0]]}, r"of shape \(2, 3\), .* not of shape \(3, 3\)"),
    (heatmap, {"weights": [[np.nan] * 3, ROWS[0]]}, r"weights: row 0 \('a'\) holds NaN"),
    (heatmap, {"weights": [[1.5, -0.5, 0], ROWS[0]]}, r"row 0 \('a'\) holds the negative weight"),
    (heatmap, {"weights": [[0.3] * 3, ROWS[0]]}, r"row 0 \('a'\) must sum to 1.* its sum is 0.9"),
    (heatmap, {"weights": np.zeros((0, 2, 3))}, r"weights of shape \(0, 2, 3\) holds no weight"),
    (heatmap, {"queries": None}, "queries must be a list of tokens, not None"),
    (heatmap, {"queries": "ab"}, "queries must be a list of tokens, not 'ab'"),
    (heatmap, {"queries": ["a"]}, r"of shape \(1, 3\), as .* queries .* not of shape \(2, 3\)"),
    (heatmap, {"queries": [], "weights": np.zeros((0, 3))}, r"of shape \(0, 3\) holds no weight"),
    (heatmap, {"keys": [1, 2, 3]}, "keys must be strings, not int: 1"),
    (heatmap, {"keys": np.array("xyz")}, "keys must be a list of tokens, not array"),
    (heatmap, {"other": ROWS[0]}, r"other has shape \(3,\); it must be \(2, 3\) like weights"),
    (heatmap, {"other": [[0.3] * 3] * 2}, r"other: row 0 \('a'\) must sum to 1"),
    (heatmap, {"other": "gold"}, f"other {NUMBERS}, not 'gold'"),
    (heatmap, {"names": ["one"]}, "names must be 2 texts, not 1"),
    (heatmap, {"names": 2}, "names must be a list of tokens, not 2"),
    (heatmap, {"axes": 3}, "axes must be a list of a name and its labels .*, not 3"),
    (heatmap, {"axes": [3]}, "each of axes must be a list of name and labels, not 3"),
    (heatmap, {"axes": [("layer",)]}, r"axes must be a list of .*, not \['layer'\] in it"),
    (heatmap, {"axes": [(1, ["a"])]}, r"axes must be a list of .*, not \[1, \['a'\]\] in it"),
    (heatmap, {"axes": [("layer", "ab")]}, "axes: labels of 'layer' must be a list of tokens"),
    (heatmap, {"axes": [("layer", ["1"])]}, r"of shape \(1, 2, 3\), as axes.* \(2, 3\)"),
    (heatmap, {"query_label": None}, f"'query_label' {TRAIT} a unicode string, not .*None"),
    (heatmap, {"key_label": 3}, f"'key_label' {TRAIT} a unicode string, not the int 3"),
    (heatmap, {"title": None}, f"'title' {TRAIT} a unicode string, not .*None"),
    (heatmap, {"stretch": "yes"}, f"'stretch' {TRAIT} a boolean, not the str 'yes'"),
    (heatmap, {"name": 3}, f"'name' {TRAIT} a unicode string, not the int 3"),
    (heatmap, {"name": "Learnt map"}, f"{NAME} 'Learnt map'"),
    (heatmap, {"name": ""}, f"{NAME} ''"),
    (machine, {"models": {"a": 3}}, r"models\['a'\] must be a TransformerConfig, not 3"),
    (temperature, {"logits": None}, f"logits {NUMBERS}, not None"),
    (temperature, {"logits": ["1", "2", "3"]}, f"logits {NUMBERS}, not .*'1'"),
    (temperature, {"logits": 1}, r"logits must be \[label\] or \[context, label\] .*, not \(\)"),
    (temperature, {"logits": []}, r"logits must be .* and not empty, not \(0,\)"),
    (temperature, {"logits": [1, 2]}, r"logits must be .* for 3 labels and 0 contexts, not \(2,\)"),
    (temperature, {"logits": [1, np.nan, 2]}, "logits: row 0 holds NaN or plus infinity"),
    (temperature, {"logits": [-np.inf] * 3}, "logits: row 0 holds only minus infinity"),
    (temperature, {"labels": None}, "labels must be a list of tokens, not None"),
    (temperature, {"labels": "abc"}, "labels must be a list of tokens, not 'abc'"),
    (temperature, {"labels": []}, r"logits must be .* for 0 labels and 0 contexts, not \(3,\)"),
    (temperature, {"labels": ["a", "b", 3]}, "labels must be strings, not int: 3"),
    (temperature, {"contexts": 0}, "contexts must be a list of tokens, not 0"),
    (temperature, {"contexts": ["x"]}, r"for 3 labels and 1 contexts, not \(3,\)"),
    (temperature, {"temperature": "hot"}, f"'temperature' {TRAIT} a float, not the str 'hot'"),
    (temperature, {"temperature": None}, f"'temperature' {TRAIT} a float, not .*None"),
    (temperature, {"temperature": -0.1}, "temperature must be .* of at least 0, not -0.1"),
    (temperature, {"temperature": np.nan}, "temperature must be .* of at least 0, not nan"),
    (temperature, {"temperature": np.inf}, "temperature must be .* of at least 0, not inf"),
    (temperature, {"top": 0}, "top must be at least 1, not 0"),
    (temperature, {"top": 2.5}, f"'top' {TRAIT} an int, not the float 2.5"),
    (temperature, {"editable": None}, f"'editable' {TRAIT} a boolean, not .*None"),
    (temperature, {"title": 3}, f"'title' {TRAIT} a unicode string, not the int 3"),
    (temperature, {"name": "a&b"}, f"{NAME} 'a&b'"),
    (ablation, {"runs": None}, "runs must be a list of dicts, the whole model's first, not None"),
    (ablation, {"runs": []}, r"runs must be a list of dicts, the whole model's first, not \[\]"),
    (ablation, {"runs": "whole"}, "runs must be a list of dicts, .* not 'whole'"),
    (ablation, {"runs": np.array(3)}, "runs must be a list of dicts, .* not array"),
    (ablation, {"runs": [3]}, r"runs\[0\] must be a dict with the keys off, .*, not 3"),
    (ablation, {"runs": [{}]}, r"runs\[0\] must be a dict with the keys off, .*, not set"),
    (ablation, {"runs": [RUN, RUN]}, r"runs\[0\] must be the whole model's .*, and no other"),
    (ablation, second(off=None), r"runs\[1\]: off must be a list of parts, not None"),
    (ablation, second(off=[["mask"]]), r"runs\[1\]: off must be .* one of .*, not \[\['mask'\]\]"),
    (ablation, second(off="gate"), r"runs\[1\]: off must be .* one of .*, not \['gate'\]"),
    (ablation, second(steps="abc"), rf"runs\[1\]: steps {NUMBERS}, not 'abc'"),
    (ablation, second(steps=[0, np.nan, 1]), r"runs\[1\]: steps must be .* increasing numbers"),
    (ablation, second(loss=[1, 2]), r"runs\[1\]: loss must be .* for 3 steps, not \(1, 2\)"),
    (ablation, second(loss=[1, 2, np.nan]), r"runs\[1\]: loss must be .* NaN or infinity in it"),
    (ablation, second(loss=None), rf"runs\[1\]: loss {NUMBERS}, not None"),
    (ablation, second(exact=[2]), r"runs\[1\]: exact must be a share 0..1 .*, not \[2.\]"),
    (ablation, second(exact=[]), r"runs\[1\]: exact must be a share 0..1 for each seed"),
    (ablation, second(translations=3), r"runs\[1\]: translations must be a list of .*, not 3"),
    (ablation, second(translations=["abc"]), r"runs\[1\]: translations must be a list of tokens"),
    (ablation, second(translations=[["a", "b"]]), r"runs\[1\]: translations must be \[source, out"),
    (ablation, second(translations=[]), r"runs\[1\] must translate the same sources as runs\[0\]"),
    (surface, {"surfaces": None}, f"surfaces {NUMBERS}, not None"),
    (surface, {"surfaces": np.ones((3, 3))}, r"surfaces must be \[k, n, n\] .*, not \(3, 3\)"),
    (surface, {"surfaces": np.ones((2, 4, 4))}, r"surfaces must be .* n odd, .*, not \(2, 4, 4\)"),
    (surface, {"surfaces": []}, r"surfaces must be \[k, n, n\] .*, not \(0,\)"),
    (surface, {"surfaces": np.full((2, 3, 3), np.nan)}, "surfaces must be losses of .* not nan"),
    (surface, {"surfaces": np.zeros((2, 3, 3))}, "surfaces must be losses of 0.0001 .* not 0 to 0"),
    (surface, {"names": ["a"]}, "names must be 2 texts, not 1"),
    (surface, {"names": []}, "names must be 2 texts, not 0"),
    (surface, {"names": "ab"}, "names must be a list of tokens, not 'ab'"),
    (surface, {"extent": 0}, "extent must be a number above 0, not 0"),
    (surface, {"extent": np.nan}, "extent must be a number above 0, not nan"),
    (surface, {"extent": "1"}, f"'extent' {TRAIT} a float, not the str '1'"),
    (surface, {"log": "yes"}, f"'log' {TRAIT} a boolean, not the str 'yes'"),
    (bench, {"prompt": 3}, "prompt must be strings, not int: 3"),
    (bench, {"steps": 1.5}, r"steps must be 0\.\.\d+, not 1\.5"),
    (bench, {"seeds": "2"}, r"seeds must be 0\.\.1000, not 2"),
    (bench, {"keep": None}, r"keep must be 10\.\.\d+, the vocabulary's size, not None"),
    (bench, {"methods": {"hot": 2.0}}, r"methods must be of Sampling\(...\), not 'hot': 2\.0"),
    (bench, {"temperature": "hot"}, f"'temperature' {TRAIT} a float, not the str 'hot'"),
    (bench, {"top_k": 2.5}, f"'top_k' {TRAIT} an int, not the float 2.5"),
    (bench, {"written": 3}, "written must be a list of ids, not 3"),
    (bench, {"written": [0.5]}, "'written' trait of .* expected an int, not the float 0.5"),
    (prompts, {"presets": 3}, "presets must be a list of Preset, not 3"),
    (prompts, {"presets": []}, r"presets must be one Preset or more, not \[\]"),
    (prompts, {"presets": ["We must"]}, r"presets must be one Preset or more, not \['We must'\]"),
    (prompts, preset(form=3), "presets: 'we': asked must be strings, not int: 3"),
    (prompts, preset(form="{} {}"), "presets: 'we': the prompt must have one {} at most"),
    (prompts, preset(form=" "), "presets: 'we': the prompt must not be empty"),
    (prompts, preset(form="We " * 99), "presets: 'we': the prompt has .* model reads 40 at most"),
    (prompts, preset(text="x" * 2001), "presets: 'we': a text must have 2000 characters at most"),
    (prompts, preset(text="\ud800"), "presets: 'we': asked must be Unicode text"),
    (prompts, preset(candidates=" the"), "presets: 'we': candidates must be a list of texts"),
    (prompts, preset(candidates=["a", "a"]), "presets: 'we': each candidate must be written once"),
    (prompts, preset(candidates=["a\n"]), "presets: 'we': candidates must be texts without a line"),
    (prompts, preset(candidates=[*"abcdefghi"]), "presets: 'we': candidates must be 8 texts at"),
    (prompts, preset(examples=["ab"]), "presets: 'we': examples must be a list of pairs"),
    (prompts, preset(examples=[["a"]]), "presets: 'we': examples must be 12 pairs of a text"),
    (prompts, preset(system="Be brief."), "presets: 'we': the tokenizer has no <.im_start.>"),
    (prompts, {"shown": 1}, r"shown must be 0\.\.0, not 1"),
    (prompts, {"steps": 1.5}, r"steps must be 0\.\.40, not 1\.5"),
    (prompts, {"temperature": -1}, r"temperature must be 0\.\.20, not -1"),
    (prompts, {"seed": 10**7}, r"seed must be 0\.\.1000000, not 10000000"),
    (quiz, {"choices": ["a", 3]}, "choices of question 0 must be strings, not int: 3"),
    (quiz, {"choices": None}, "choices of question 0 must be a list of tokens, not None"),
    (quiz, {"right": "a"}, r"right of question 0 must be 0\.\.1, not 'a'"),
    (quiz, {"right": 1.5}, r"right of question 0 must be 0\.\.1, not 1\.5"),
    (quiz, {"why": None}, "why of question 0 must be a list of tokens, not None"),
    (quiz, {"ask": 3}, "ask of question 0 must be strings, not int: 3"),
    (quiz, {"texts": ["a"]}, r"texts of question 0 must be texts by their .*, not \['a'\]"),
    (quiz, {"texts": {"a": 1}}, "texts of question 0 must be strings, not int: 1"),
    (PositionExplorer, {"d_model": 7}, "d_model must be an even number from 2 to 512, not 7"),
    (PositionExplorer, {"d_model": 0}, "d_model must be an even number from 2 to 512, not 0"),
    (PositionExplorer, {"d_model": "64"}, f"'d_model' {TRAIT} an int, not the str '64'"),
    (PositionExplorer, {"max_len": 0}, "max_len must be a number from 2 to 512, not 0"),
    (PositionExplorer, {"max_len": None}, f"'max_len' {TRAIT} an int, not .*None"),
    (PositionExplorer, {"base": 0}, "base must be a number of at least 1, not 0"),
    (PositionExplorer, {"base": np.nan}, "base must be a number of at least 1, not nan"),
    (PositionExplorer, {"base": "big"}, f"'base' {TRAIT} a float, not the str 'big'"),
    (PositionExplorer, {"position": 128}, r"position must be 0\.\.127, not 128"),
    (PositionExplorer, {"position": 0.5}, f"'position' {TRAIT} an int, not the float 0.5"),
    (PositionExplorer, {"pair": -1}, r"pair must be 0\.\.31, not -1"),
    (sheet, {"x": None}, f"x {NUMBERS}, not None"),
    (sheet, {"tokens": [1, 2]}, "tokens must be strings, not int: 1"),
    (sheet, {"words": ["a"]}, r"words must be numbers by word, not \['a'\]"),
    (sheet, {"words": {1: [1, 2]}}, "words must be strings, not int: 1"),
    (sheet, {"outputs": "ab"}, "outputs must be a list of tokens, not 'ab'"),
    (sheet, {"mask": "yes"}, f"'mask' {TRAIT} a boolean, not the str 'yes'"),
    (sheet, {"cell": 3}, f"'cell' {TRAIT} a unicode string, not the int 3"),
    (plane, {"queries": None}, f"queries {NUMBERS}, not None"),
    (plane, {"queries": [1, 2]}, r"queries must have a row for each word, not be of shape \(2,\)"),
    (plane, {"queries": np.ones((2, 3))}, "queries must be two numbers a word, not 3"),
    (plane, {"queries": np.ones((3, 2))}, "queries must be 2 rows, as askers are, not 3"),
    (plane, {"keys": [["1", "2"]] * 2}, f"keys {NUMBERS}, not .*'1'"),
    (plane, {"keys": np.ones((3, 2))}, "keys must be 2 rows, as words are, not 3"),
    (plane, {"keys": [[1, np.nan], [0, 1]]}, "keys must hold numbers from -20 to 20, not nan"),
    (plane, {"values": np.full((2, 1), 21)}, "values must hold numbers from -20 to 20, not 21"),
    (plane, {"values": np.ones((2, 7))}, "values must be 1 to 6 wide, not 7"),
    (plane, {"values": np.ones((2, 0))}, r"values must have a row .*, not be of shape \(2, 0\)"),
    (plane, {"words": "ab"}, "words must be a list of tokens, not 'ab'"),
    (plane, {"words": ["a"]}, "words must be 2 to 8, not 1"),
    (plane, {"askers": ["a", 2]}, "askers must be strings, not int: 2"),
    (plane, {"outputs": ["one"]}, "outputs must be 2 texts, not 1"),
    (plane, {"query": 2}, r"query must be 0\.\.1, not 2"),
    (plane, {"query": "a"}, f"'query' {TRAIT} an int, not the str 'a'"),
    (plane, {"key": -2}, r"key must be -1\.\.1, not -2"),
    (plane, {"root": "yes"}, f"'root' {TRAIT} a boolean, not the str 'yes'"),
    (RotaryDial, {"q": None}, f"q {NUMBERS}, not None"),
    (RotaryDial, {"q": 1.0}, f"'q' {TRAIT} a list, not the float 1.0"),
    (RotaryDial, {"q": []}, r"q must be two numbers of length at most 2, not \[\]"),
    (RotaryDial, {"q": [1, 2, 3]}, r"q must be two numbers of length at most 2, not \[1. 2. 3.\]"),
    (RotaryDial, {"k": [np.nan, 0]}, r"k must be two numbers of length at most 2, not \[nan  0.\]"),
    (RotaryDial, {"k": ["1", "0"]}, f"k {NUMBERS}, not .*'1'"),
    (RotaryDial, {"i": 65}, r"i must be 0\.\.64, not 65"),
    (RotaryDial, {"i": "3"}, f"'i' {TRAIT} an int, not the str '3'"),
    (RotaryDial, {"j": -1}, r"j must be 0\.\.64, not -1"),
    (RotaryDial, {"theta": 4}, "theta must be 0 to pi, not 4"),
    (RotaryDial, {"theta": np.nan}, "theta must be 0 to pi, not nan"),
    (RotaryDial, {"theta": "wide"}, f"'theta' {TRAIT} a float, not the str 'wide'"),
    (RotaryDial, {"mode": "turn"}, "mode must be 'rotate' or 'add', not 'turn'"),
    (RotaryDial, {"mode": 1}, f"'mode' {TRAIT} a unicode string, not the int 1"),
    (calculator, {"models": None}, "models must have d_model, n_layers, .* each, not None"),
    (calculator, {"models": {"a": 3}}, "models must have d_model, n_layers, .* each, not {'a': 3}"),
    (
        calculator,
        {"models": {"a": {**SIZES, "d_model": "64"}}},
        r"models\['a'\]: d_model must be a whole number, not '64'",
    ),
    (calculator, {"machines": [1]}, r"machines must have speed, bandwidth each, not \[1\]"),
    (calculator, {"points": 3}, "points must be a list of measurements, not 3"),
    (calculator, {"points": [3]}, "points must have n, batch, .* each, not {}"),
    (calculator, {"n": "3"}, f"'n' {TRAIT} an int, not the str '3'"),
    (calculator, {"cache": "yes"}, f"'cache' {TRAIT} a boolean, not the str 'yes'"),
    (calculator, {"chart": 1}, f"'chart' {TRAIT} a unicode string, not the int 1"),
    (Translator, {"models": None}, "models must be a list of tokens, not None"),
    (Translator, {"models": [3]}, "models must be strings, not int: 3"),
    (Translator, {"models": []}, "models must be one or two different ones of one_vector, .*, not"),
    (Translator, {"models": ["rnn"]}, r"models must be one or two .*, not \['rnn'\]"),
    (Translator, {"number": "42"}, "number must be a whole number of at least 0, got '42'"),
    (Translator, {"number": 4.5}, "number must be a whole number of at least 0, got 4.5"),
    (Translator, {"number": -1}, "number must be a whole number of at least 0, got -1"),
    (Translator, {"number": np.nan}, "number must be a whole number of at least 0, got nan"),
    (Translator, {"number": 10**12}, "number must lie in 0..999999999999, got 1000000000000"),
    (Translator, {"stage": "1"}, f"'stage' {TRAIT} an int, not the str '1'"),
    (Translator, {"at": -2}, r"at must be -1\.\.31, not -2"),
    (Translator, {"which": 2}, r"which must be 0\.\.1, not 2"),
    (Translator, {"head": 4}, r"head must be 0\.\.3, not 4"),
]


@pytest.mark.parametrize(("widget", "options", "says"), BAD)
def test_a_wrong_argument_is_named(
    widget: Callable[..., Any], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(traitlets.TraitError, match=says) as refused:
        widget(**options)
    assert re.search(rf"\b({'|'.join(options)})\b", str(refused.value))


@pytest.mark.parametrize("widget", {row[0] for row in BAD}, ids=lambda make: make.__name__)
def test_what_the_table_starts_from_is_shown(widget: Callable[..., Any]) -> None:
    """Else every row would be refused, whatever it changes."""
    assert widget().png()
