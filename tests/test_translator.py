"""The translators in the page: number words, the engine against PyTorch, the stored table, and the
widget in Python."""

import json
import random
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from num2words import num2words

from attnbook import bundles
from attnbook.learn import evaluate
from attnbook.model.config import TINY
from attnbook.model.recording import recorded
from attnbook.model.seq2seq import GRUCell, Seq2Seq
from attnbook.model.transformer import Transformer
from attnbook.text.number_words import MAX_DIGITS, Numbers, has_unsettled_german, number_pair
from attnbook.text.vocabulary import pad_batch
from attnbook.web import Translator
from attnbook.weights.int8 import metadata
from attnbook.weights.translators import FOLDER, HEADS, TRANSLATORS, translator
from tests.helpers.engine import node, same, shaken, written
from tools import translators

RUN = """
import { readFileSync } from "node:fs";
import { gruCell } from "ENGINE/recurrent.js";
import { read } from "ENGINE/safetensors.js";
import { openTranslator } from "ENGINE/translator.js";
import { compare } from "ENGINE/../translator/compare.js";
import { english, german, longer, another, readNumber, spelled, unsettled }
  from "ENGINE/../translator/numbers.js";
const buffer = (file) => new Uint8Array(readFileSync(file)).buffer;
const told = (n) => [english(n), german(n), spelled(german(n)), unsettled(n)];
const jobs = {
  words: ({ numbers }) => numbers.map(told),
  read: ({ texts }) => texts.map(readNumber),
  compare: ({ pairs }) => pairs.map((pair) => compare(...pair)),
  longer: ({ numbers }) => numbers.map(longer),
  another: ({ digits }) => digits.map((n) => another(n)),
  gru({ file, x, h, reset }) {
    const { parameters } = read(buffer(file)), next = gruCell((name) => parameters.get(name), "",
      Float32Array.from(x), Float32Array.from(h), reset);
    return { data: [...next], shape: [next.length] };
  },
  translate({ file, sentences }) {
    const { translate } = openTranslator(read(buffer(file)));
    const plain = ({ data, shape }) => ({ data: [...data], shape });
    return sentences.map((words) => translate(words)).map(({ states, steps, written, looked }) => ({
      written,
      looked: looked && Object.fromEntries(Object.entries(looked)
        .map(([part, blocks]) => [part, blocks.map(({ weights }) => plain(weights))])),
      states: states.map((state) => [...state]),
      steps: steps.map(({ word, logits, heads, context }) => ({
        word, logits: [...logits], context: context && [...context],
        weights: heads?.map((head) => [...head.weights]),
        scores: heads?.map((head) => [...head.scores]),
      })),
    }));
  },
};
const { job, ...given } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(jobs[job](given)));
"""


def page(job: str, **given: Any) -> Any:
    return node(job, RUN, **given)


def some_numbers(count: int, seed: int = 0) -> list[int]:
    """Numbers of every length, most of them settled."""
    chance = random.Random(seed)
    return [
        chance.randrange(10 ** (d - 1), 10**d)
        for _, d in zip(range(count), np.tile(range(1, MAX_DIGITS + 1), count), strict=False)
    ]


# ---- numbers in words


def test_number_words_are_the_packages() -> None:
    powers = [10**d + k for d in range(3, 12) for k in (-1, 0, 1, 20, 21, 100)]
    numbers = [*range(2200), *powers, *some_numbers(6000), 101_101_101_101]
    for number, (english, german, spelled, unsettled) in zip(
        numbers, page("words", numbers=numbers), strict=True
    ):
        pair = number_pair(number)
        assert (tuple(english), tuple(german)) == (pair.source, pair.target), number
        assert unsettled == has_unsettled_german(number), number
        assert unsettled or spelled == num2words(number, lang="de"), number


def test_what_is_typed_is_read_as_a_number() -> None:
    numbers = some_numbers(600)
    digits = page("read", texts=[str(n) for n in numbers])
    grouped = page("read", texts=[f"{n:,}" for n in numbers])
    words = page("read", texts=[" ".join(number_pair(n).source) for n in numbers])
    usual = page("read", texts=[num2words(n).title() for n in numbers])
    wanted = [{"number": n} for n in numbers]
    assert digits == grouped == words == usual == wanted


ODD = {
    "": "Write a whole number, in digits or in English words.",
    " \t ": "Write a whole number, in digits or in English words.",
    "blue": "“blue” is no English number word. Write",
    "<img src=x>": "“<img” is no English number word.",
    "two forty": "“two forty” is no number in English.",
    "hundred": "“hundred” is no number in English.",
    "-5": "No signs, and nothing below zero.",
    "−5": "No signs, and nothing below zero.",
    "minus five": "No signs, and nothing below zero.",
    "3.5": "Whole numbers only, without a fraction.",
    "1,5": "Whole numbers only, without a fraction.",
    ".5": "Whole numbers only, without a fraction.",
    "1.234": "Whole numbers only, without a fraction.",
    "1e6": "“1e6” is no number that can be read here.",
    "12 thousand": "“12 thousand” is no number that can be read here.",
    str(10**12): "13 digits are too many: the words that the models know end with 12 digits.",
    "10^12": "13 digits are too many",
    "9" * 40: "40 digits are too many",
    "one trillion": "“trillion” is no word of the models: theirs end with billions.",
    "a" * 100: f"“{'a' * 39}…” is no English number word.",
    "billion " * 9: "is no number in English.",
    "👩‍👩‍👧‍👦": "is no English number word.",
}
FINE = {"007": 7, "a hundred": 100, "10^3": 1000, "1 234": 1234, "1.234.567": 1234567, "４２": 42}
FINE |= {"0": 0, "zero": 0, "Forty-Two": 42, "two thousand five": 2005, str(10**12 - 1): 10**12 - 1}


def test_odd_input_gets_a_sentence() -> None:
    for text, told in zip(ODD, page("read", texts=list(ODD)), strict=True):
        assert ODD[text] in told["problem"] and "number" not in told, text
        assert told["problem"].endswith(".")
    assert page("read", texts=list(FINE)) == [{"number": n} for n in FINE.values()]


def test_one_digit_longer_and_another_number() -> None:
    numbers = [0, *range(1, 1000), 123_456, 3_729_468_515]
    for number, more in zip(numbers, page("longer", numbers=numbers), strict=True):
        assert (more // 10 == number) and (number == 0 or len(str(more)) == len(str(number)) + 1)
    digits = [*range(1, MAX_DIGITS + 1)] * 20
    for size, number in zip(digits, page("another", digits=digits), strict=True):
        assert len(str(number)) == size and not has_unsettled_german(number)


def test_wrong_parts_are_found() -> None:
    said = [(["a", "b"], ["a", "b"]), (["a", "x"], ["a", "b"]), (["a"], ["a", "b"]), ([], ["a"])]
    said += [(["a", "x", "b"], ["a", "b"]), ([], [])]
    found = [
        [(place["is"], place["should"], place["at"]) for place in places]
        for places in page("compare", pairs=said)
    ]
    assert found == [
        [("a", "a", 0), ("b", "b", 1)],
        [("a", "a", 0), ("x", "b", 1)],
        [("a", "a", 0), (None, "b", -1)],
        [(None, "a", -1)],
        [("a", "a", 0), ("x", None, 1), ("b", "b", 2)],
        [],
    ]


# ---- the engine against PyTorch


@pytest.mark.parametrize("reset", ["after", "before"])
def test_a_gru_cell(reset: Any, tmp_path: Path) -> None:
    cell, x, h = shaken(GRUCell(5, 7, reset)), torch.randn(1, 5), torch.randn(1, 7)
    file = written(cell.state_dict(), tmp_path / "weights")
    told = page("gru", file=file, x=x[0].tolist(), h=h[0].tolist(), reset=reset)
    same(told, cell(x, h)[0], 1e-6)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_the_page_translates_as_pytorch_does(name: str) -> None:
    """200 sentences: the same words; logits, states and weights within the engine's tolerance."""
    numbers, model = some_numbers(200, seed=1), translator(name)
    sentences = [number_pair(n).source for n in numbers]
    told = page("translate", file=str(FOLDER / f"{name}.safetensors"), sentences=sentences)
    for words, said in zip(sentences, told, strict=True):
        tokens, logits, states, weights = by_pytorch(model, words)
        assert said["written"] == model.decoder.vocab.decode(tokens)
        assert [step["word"] for step in said["steps"]] == [
            model.decoder.vocab.tokens[i] for i in tokens
        ]
        ours = np.array([step["logits"] for step in said["steps"]])
        np.testing.assert_allclose(ours, logits, rtol=0, atol=1e-4)
        np.testing.assert_allclose(np.array(said["states"]), states, rtol=0, atol=1e-4)
        if isinstance(weights, dict):  # a Transformer's, of every attention
            looked = said["looked"].items()
            ours = {(part, n): w for part, blocks in looked for n, w in enumerate(blocks)}
            assert ours.keys() == weights.keys() and len(ours) == 6
            for where, told_weights in ours.items():
                same(told_weights, weights[where])
            continue
        if weights is None:
            assert name == "one_vector" and "weights" not in said["steps"][0]
            continue
        ours = np.array([step["weights"] for step in said["steps"]])
        np.testing.assert_allclose(ours, weights, rtol=0, atol=1e-4)


def by_pytorch(model: Seq2Seq, words: Any) -> tuple[list[int], Any, Any, Any]:
    """Tokens, logits [step vocab], states [word d], weights [step head word]; of a Transformer
    weights [head row column] by part and block."""
    source, vocab = model.encoder.vocab, model.decoder.vocab
    read = pad_batch([source.encode(words)], source.pad)
    tokens = model.translate(read, max_len=32).tokens[0].tolist()
    tokens = tokens[: tokens.index(vocab.eos) + 1] if vocab.eos in tokens else tokens
    given = torch.tensor([[vocab.bos, *tokens[:-1]]])
    with torch.no_grad():
        states = model.read(read).states[0].numpy()
        if isinstance(model, Transformer):
            with recorded(model) as weights:
                logits = model(read, given)[0].numpy()
            return tokens, logits, states, {place(name): w[0] for name, w in weights.items()}
        if not hasattr(model.decoder, "heads") and model.decoder.attention is None:
            return tokens, model(read, given)[0].numpy(), states, None
        with recorded(model) as weights:
            logits = model(read, given)[0].numpy()
    (found,) = weights.values()
    rows = found[0] if found.ndim == 4 else found
    return tokens, logits, states, rows.numpy().swapaxes(0, 1)


def place(path: str) -> tuple[str, int]:
    """Of an attention inside a Transformer: which part's it is, in which block."""
    stack, _, _, block, kind = path.split(".")
    return "cross" if kind == "cross" else stack, int(block)


# ---- what is stored


@pytest.mark.parametrize("name", TRANSLATORS)
def test_the_file_is_small_and_says_what_made_it(name: str) -> None:
    path = FOLDER / f"{name}.safetensors"
    said = metadata(path)
    most = 100_000 if name == "transformer" else 40_000
    assert path.stat().st_size <= most and path.parent == translators.FOLDER
    recipe = {"translator": name, "n_heads": HEADS.get(name, 1), "d_model": translators.WIDTH}
    recipe |= {"command": translators.COMMAND, "seed": translators.SEED}
    recipe |= {"steps": translators.STEPS, "digits": translators.DIGITS}
    if name == "transformer":  # two blocks each, pre-norm, as chapter 6's
        config = replace(TINY, d_model=translators.WIDTH, d_ff=4 * translators.WIDTH)
        recipe |= {"rate": translators.RATE, "config": asdict(config)}  # other files say no rate
        assert (config.n_layers, config.n_heads, config.norm) == (2, 4, "pre")
    assert {key: said[key] for key in recipe} == recipe
    model, losses = translators.learn(name, 2)
    assert losses == pytest.approx(said["first_losses"][:2], abs=1e-3)
    assert said["target"] == list(model.decoder.vocab.tokens)
    assert said["source"] == list(model.encoder.vocab.tokens)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_the_table_is_that_of_the_stored_weights(name: str) -> None:
    told, task = metadata(FOLDER / f"{name}.safetensors")["exact"], Numbers(translators.DIGITS)
    assert list(told) == [str(d) for d in range(1, MAX_DIGITS + 1)]
    for digits, numbers in task.held_out.items():
        found = evaluate(translator(name), task.encode(numbers)).exact
        assert abs(found - told[str(digits)]) <= 0.02, digits  # a tie may fall the other way


def test_one_vector_breaks_as_numbers_grow_and_attention_does_not() -> None:
    told = {name: metadata(FOLDER / f"{name}.safetensors")["exact"] for name in TRANSLATORS}
    one = list(told.pop("one_vector").values())
    assert one[0] == 1 and one[3] > 0.5 > one[5] and max(one[7:]) < 0.1
    for exact in told.values():
        assert min(list(exact.values())[: translators.DIGITS]) > 0.95
        assert max(list(exact.values())[translators.DIGITS :]) == 0


def test_the_five_differ_in_what_is_read_alone() -> None:
    models = {name: translator(name) for name in TRANSLATORS if name != "transformer"}
    states = [
        {key: value.sum().item() for key, value in model.state_dict().items()}
        for model in models.values()
    ]
    assert all(a != b for n, a in enumerate(states) for b in states[:n])
    sizes = {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()}
    assert sizes["one_head"] == sizes["four_heads"] and len(set(sizes.values())) == 4
    shapes = [
        {key: value.shape for key, value in model.encoder.state_dict().items()}
        for model in models.values()
    ]
    assert all(each == shapes[0] for each in shapes)


# ---- the widget in Python


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"models": ["additive", "rnn"]},
            "models must be one or two different ones of one_vector,",
        ),
        ({"models": ["dot", "dot"]}, "models must be one or two different ones"),
        ({"models": []}, "models must be one or two different ones"),
        ({"models": TRANSLATORS}, "models must be one or two different ones"),
        ({"models": "additive"}, "models must be a list of tokens, not 'additive'"),
        ({"number": -1}, r"number must be a whole number of at least 0"),
        ({"number": 10**12}, r"number must lie in 0..999999999999"),
        ({"stage": 7}, r"stage must be 0\.\.6, not 7"),
        ({"at": -2}, r"at must be -1\.\.31, not -2"),
        ({"which": 2}, r"which must be 0\.\.1, not 2"),
        ({"head": 4}, r"head must be 0\.\.3, not 4"),
        ({"attention": 6}, r"attention must be 0\.\.5, not 6"),
        ({"name": "a b"}, "name must be like"),
    ],
)
def test_what_it_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Translator(**options)


@pytest.mark.parametrize("attention", range(6))
def test_the_stored_answer_has_the_attention_that_is_drawn(attention: int) -> None:
    shown = Translator(["additive", "transformer"], 437, attention=attention)
    _, told = shown.answers["models"]
    tokens, _, _, weights = by_pytorch(translator("transformer"), number_pair(437).source)
    assert told["written"] == translator("transformer").decoder.vocab.decode(tokens)
    part = ("cross", "encoder", "decoder")[attention // 2]
    wanted = weights[part, attention % 2]
    np.testing.assert_allclose(told["maps"], wanted, rtol=0, atol=6e-4)
    figure = Figure()
    shown.draw(figure)
    read, wrote = number_pair(437).source, number_pair(437).target
    axis = figure.axes[1]
    found = [
        [label.get_text() for label in ticks]
        for ticks in (axis.get_yticklabels(), axis.get_xticklabels())
    ]
    rows = read if part == "encoder" else (*wrote, "(end)")
    assert found == [[*rows], [*(("(start)", *wrote) if part == "decoder" else read)]]
    shown.attention = 0
    assert shown.answers["models"][1]["attention"] == 0


@pytest.mark.parametrize("models", [("one_vector", "additive"), ("four_heads",)])
def test_the_stored_answer_is_the_models(models: tuple[str, ...]) -> None:
    shown = Translator(models, 43_729)
    assert shown.answers["number"] == 43_729
    for name, told, exact in zip(models, shown.answers["models"], shown.exact, strict=True):
        tokens, _, _, weights = by_pytorch(translator(name), number_pair(43_729).source)
        assert told["written"] == translator(name).decoder.vocab.decode(tokens)
        maps = [] if weights is None else weights.swapaxes(0, 1)
        np.testing.assert_allclose(told["maps"], maps, rtol=0, atol=6e-4)
        assert exact == list(metadata(FOLDER / f"{name}.safetensors")["exact"].values())


def test_it_follows_the_browser_and_python() -> None:
    shown = Translator(["one_vector", "additive"], 42)
    assert (shown.text, shown.which, shown.stage, shown.at) == ("42", 1, 0, -1)
    shown.set_state({"text": "437", "stage": 2, "at": 1, "head": 3})
    assert shown.answers["number"] == 437 and shown.answers["models"][1]["written"][0] == "vier"
    for text in ("forty two", "", "-5", "9" * 40, "٣", "1e5"):  # the page reads these itself
        shown.text = text
        assert shown.answers["number"] == 437
    shown.text = "007"
    assert shown.answers["number"] == 7
    with pytest.raises(ValueError, match="text must have at most 100 characters, not 101"):
        shown.text = "1" * 101
    assert shown.text == "007"


def test_shares_are_shown_unless_the_reader_is_to_guess() -> None:
    shown = [Translator(["dot"]), Translator(["dot"], guess=True)]
    assert [each.get_state()["guess"] for each in shown] == [False, True]


def test_weights_go_to_the_page_when_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, sent = Translator(["one_vector", "dot"]), []
    monkeypatch.setattr(Translator, "send", lambda _, *message: sent.append(message))
    for asked in ({"weights": "additive"}, "weights", {"weights": "dot"}, {"weights": ["dot"]}):
        shown._handle_custom_msg(asked, [])
    assert sent == [({"weights": "dot"}, [(FOLDER / "dot.safetensors").read_bytes()])]


@pytest.mark.parametrize(
    "models",
    [("one_vector", "additive"), ("one_head", "four_heads"), ("four_heads", "transformer")],
)
def test_a_notebook_stores_little(models: tuple[str, ...]) -> None:
    shown = Translator(models, 999_999_999_999)
    state = {k: v for k, v in shown.get_state().items() if k not in ("_esm", "_css")}
    assert len(json.dumps(state, default=str)) < 25_000
    assert len(bundles.stored("Translator")["_esm"]) < 45_000


def test_picture_draws_each_model() -> None:
    figure = Figure()
    shown = Translator(["one_vector", "additive"], 842, title="842")
    shown.draw(figure)
    text, grid = figure.axes
    assert text.texts[0].get_text().split() == shown.answers["models"][0]["written"]
    rows = [*shown.answers["models"][1]["written"], "(end)"]
    assert [label.get_text() for label in grid.get_yticklabels()] == rows
    drawn = np.asarray(grid.images[0].get_array())
    np.testing.assert_allclose(drawn, shown.answers["models"][1]["maps"][0])
    assert shown.png() == Translator(["one_vector", "additive"], 842, title="842").png()


def test_its_name_tells_contents_apart() -> None:
    names = {Translator(models, n).name for models in (["dot"], ["additive"]) for n in (4, 42)}
    assert len(names) == 4
    assert repr(Translator(["dot"], 42)) == "Translator(dot: 42)"
