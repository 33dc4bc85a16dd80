"""TokenizerBench: its worker, run by Node, against the library `tokenizers` and the package; what
the widget refuses, stores and sends."""

import json
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

from attnbook.text.tokenizers import BytePair, WordPiece, learn_merges
from attnbook.text.tokenizers.bytepair import LETTERS
from attnbook.web import TokenizerBench
from attnbook.weights.vocabularies import FOLDER, VOCABULARIES, load_vocabulary
from tests.helpers.engine import node
from tests.helpers.texts import nasty

TEXT = "We can't wash the unaffordable cats; the cats can't wash naïve 🙂 taxes."
# The worker itself, with its messages. `ids` are what its vocabularies give; no page sees them.
RUN = """
import { readFileSync } from "node:fs";
import { read } from "ENGINE/safetensors.js";
const answers = [];
globalThis.postMessage = (answer) => answers.push(answer);
await import("ENGINE/tokenizers.js");
const { openVocabulary } = await import("ENGINE/vocabularies.js");
const { Merging } = await import("ENGINE/merging.js");
const { job, files, calls, texts, apart, merges } = JSON.parse(readFileSync(0, "utf8"));
const buffers = (files ?? []).map((file) => new Uint8Array(readFileSync(file)).buffer);
const jobs = {
  ids: () => buffers.map((one) => texts.map(openVocabulary(read(one)).encode)),
  worker() {
    globalThis.onmessage({ data: { name: "load", given: buffers } });
    for (const [name, given] of calls) globalThis.onmessage({ data: { name, given } });
    return answers.slice(1).map(({ result, error }) => result ?? error);
  },
  merges: () => texts.map((text) => {
    const learnt = new Merging(text, apart), { tokens } = learnt;
    while (learnt.learnt.length < merges && learnt.step());
    return learnt.learnt.map(({ a, b }) => [tokens[a], tokens[b]]);
  }),
};
console.log(JSON.stringify(jobs[job]()));
"""
FILES = [str(FOLDER / f"{name}.safetensors") for name in VOCABULARIES]


def worker(*calls: tuple[str, dict[str, Any]]) -> list[Any]:
    return node("worker", RUN, files=FILES, calls=calls)


def cut(text: str, word: int = 0) -> Any:
    return worker(("cut", {"text": text, "word": word}))[0]


@cache
def texts() -> list[str]:
    return nasty(1000)


def test_texts_are_nasty() -> None:
    found = texts()
    letters = set("".join(found))
    kinds = {unicodedata.category(c) for c in letters}
    assert kinds >= {"Cc", "Cf", "Co", "Lo", "Mn", "Mc", "Nd", "No", "Sm", "So", "Zs", "Zl"}
    assert len(set(found)) > 990 and len(letters) > 5_000 and "" in found
    assert sum(max(map(len, text.split()), default=0) > 100 for text in found) > 50


@pytest.mark.parametrize("n", [0, 1])
def test_byte_pairs_are_the_librarys(n: int, tmp_path: Path) -> None:
    """Of this book's GPT, and of GPT-2."""
    ours = load_vocabulary([*VOCABULARIES][n])
    assert isinstance(ours, BytePair)
    ours.save(tmp_path)
    theirs: Any = ByteLevelBPETokenizer(*(str(tmp_path / f) for f in ("vocab.json", "merges.txt")))
    (found,) = node("ids", RUN, files=[FILES[n]], texts=texts())
    wanted = [each.ids for each in theirs.encode_batch(texts())]
    assert [text for text, a, b in zip(texts(), found, wanted, strict=True) if a != b] == []


def test_word_pieces_are_the_librarys(tmp_path: Path) -> None:
    ours = load_vocabulary("pieces_minilm")
    assert isinstance(ours, WordPiece)
    ours.save(tmp_path / "vocab.txt")
    theirs: Any = BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=True)

    def library(text: str) -> list[int]:  # step by step: as a whole it would find special tokens
        words = theirs.pre_tokenizer.pre_tokenize_str(theirs.normalizer.normalize_str(text))
        return [each.id for word, _ in words for each in theirs._tokenizer.model.tokenize(word)]

    (found,) = node("ids", RUN, files=[FILES[2]], texts=texts())
    wanted = [library(text) for text in texts()]
    assert [text for text, a, b in zip(texts(), found, wanted, strict=True) if a != b] == []


def test_merges_are_the_librarys_and_those_of_the_code_that_is_shown() -> None:
    given = [text for text in texts()[:60] if text] + [TEXT * 3]
    found = node("merges", RUN, texts=given, apart=True, merges=40)
    for text, pairs in zip(given, found, strict=True):
        theirs: Any = ByteLevelBPETokenizer()
        options = {"vocab_size": 256 + 40, "min_frequency": 2, "show_progress": False}
        theirs.train_from_iterator([text], **options)
        wanted = json.loads(theirs.to_str())["model"]["merges"]
        assert len({a + b for a, b in pairs}) < len(pairs) or pairs == wanted
        letters = ["".join(LETTERS[byte] for byte in w.encode()) for w in BytePair([]).words(text)]
        assert pairs == [list(pair) for pair in learn_merges(letters, 40)]
    whole = node("merges", RUN, texts=given, apart=False, merges=40)
    for text, pairs in zip(given, whole, strict=True):
        letters = "".join(LETTERS[byte] for byte in text.encode())
        assert pairs == [list(pair) for pair in learn_merges([letters], 40)]


def test_words_kept_apart_or_not() -> None:
    text = "we have the time; the people give the votes. " * 4
    apart, whole = worker(
        *(("learn", {"text": text, "apart": x, "merges": 1}) for x in (True, False))
    )
    assert len(apart["shown"]) > 10 and len(whole["shown"]) == 1
    assert whole["learnt"][0]["made"] == "e " and apart["learnt"][0]["made"] == " t"
    assert apart["pieces"] == apart["bytes"] - apart["learnt"][0]["count"]
    counts = [pair["count"] for pair in apart["pairs"]]
    assert counts == sorted(counts, reverse=True) and len(counts) == 8


def test_forward_and_back_give_the_same() -> None:
    def learn(n: int) -> tuple[str, dict[str, Any]]:
        return "learn", {"text": TEXT, "apart": True, "merges": n}

    there = worker(learn(3), learn(4), learn(5), learn(4))
    assert there[1] == there[3] != there[2] and there[2]["done"] == 5
    (end,) = worker(learn(1000))
    assert end["done"] < 1000 and all(pair["count"] < end["least"] for pair in end["pairs"])
    (nothing,) = worker(("learn", {"text": "", "apart": False, "merges": 3}))
    assert (nothing["done"], nothing["pairs"], nothing["shown"]) == (0, [], [])


@pytest.mark.parametrize("n", range(8))
def test_steps_end_in_the_pieces_of_the_word(n: int) -> None:
    word = TEXT.split()[n]
    found = cut(TEXT, n)
    assert found["words"][n] == word
    book, gpt2, minilm = found["lanes"]
    for lane, name in ((book, "pieces_book"), (gpt2, "pieces_gpt2")):
        ours: Any = load_vocabulary(name)
        shown, frames = " " * (n > 0) + word, lane["steps"]
        ids = ours.encode(shown)
        last = [part["name"] for row in frames[-1]["rows"] for part in row]
        assert len(last) == len(ids) and all("rank" not in p for r in frames[-1]["rows"] for p in r)
        merged = [f for f in frames if f["next"] >= 0]
        for frame in merged:  # the lowest rank of the word's is merged
            row = frame["rows"][frame["word"]]
            ranks = [part["rank"] for part in row if "rank" in part]
            assert row[frame["next"]]["rank"] == min(ranks)
        assert len(shown.encode()) - len(merged) == len(ids)
    ours = load_vocabulary("pieces_minilm")
    pieces = [ours.vocab.tokens[i] for i in ours.encode(word)]
    assert [step["tries"][-1] for step in minilm["steps"]] == pieces
    for step in minilm["steps"]:
        assert step["tries"][-1] in ours.vocab.tokens
        assert not any(each in ours.vocab.tokens for each in step["tries"][:-1])


def test_only_what_changed_is_cut_again() -> None:
    """What a keystroke costs: at 100,000 bytes the word that is typed, for each vocabulary."""
    text = " ".join(f"{word}{n}" for n in range(1800) for word in TEXT.split()[:8])[:100_000]
    calls = [("cut", {"text": text + end, "word": 0}) for end in ("", " peac", " peace", " peace")]
    fresh = [[lane["fresh"] for lane in told["lanes"]] for told in worker(*calls)]
    assert min(fresh[0]) > 1000
    assert fresh[1] == fresh[2] == [1, 1, 1] and fresh[3] == [0, 0, 0]


def test_what_is_sent_to_the_page_is_bounded() -> None:
    sizes = [len(json.dumps(cut(TEXT * n, 3))) for n in (20, 1000)]
    assert sizes[1] < 1.2 * sizes[0] < 100_000
    long, empty = cut("é" * 5000), cut(" \n ")
    assert long["cutShort"] == 5000 and len(json.dumps(long)) < 300_000
    assert empty["words"] == [] and [lane["steps"] for lane in empty["lanes"]][2] == []


# ---- the widget


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"text": "x" * 2001}, "text must have at most 2000 characters, not 2001"),
        ({"text": "a\ud83d"}, "text must be Unicode text; half a character"),
        ({"view": "both"}, "view must be learn or cut, not 'both'"),
        ({"merges": -1}, r"merges must be 0\.\.1000, not -1"),
        ({"merges": 1001}, r"merges must be 0\.\.1000, not 1001"),
        ({"word": -1}, r"word must be 0\.\.200000, not -1"),
        ({"step": -2}, r"step must be 0\.\.200000, not -2"),
    ],
)
def test_what_it_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TokenizerBench(**{"text": TEXT, **options})
    with pytest.raises(ValueError, match="text must have at most 200000 characters, not 200001"):
        TokenizerBench(TEXT).text = "x" * 200_001


def test_a_notebook_stores_no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, sent = TokenizerBench(TEXT), []
    state = {name: value for name, value in shown.get_state().items() if name[0] != "_"}
    assert len(json.dumps(state)) < 5_000 and "min(known" in state["code"]["by_rank"]
    monkeypatch.setattr(TokenizerBench, "send", lambda _, *message: sent.append(message))
    for name in ("another", "pieces_gpt2"):
        shown._handle_custom_msg({"weights": name}, [])
    assert len(sent) == 1 and Path(FILES[1]).read_bytes() in sent[0][1]


def test_pictures_say_what_one_sees() -> None:
    def said(**options: Any) -> str:
        figure = Figure()
        TokenizerBench(TEXT, **options).draw(figure)
        return figure.texts[0].get_text()

    first = worker(("learn", {"text": TEXT, "apart": True, "merges": 1}))[0]["learnt"][0]
    assert f"{first['a']} + {first['b']}".replace(" ", "␣").replace("␣+␣", " + ") in said()
    assert said() != said(apart=False)
    assert "MiniLM:  we | can | ' | t | wash | the" in said(view="cut")
    assert TokenizerBench(TEXT).png() == TokenizerBench(TEXT).png()
