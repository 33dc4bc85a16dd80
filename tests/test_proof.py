"""The page of what was measured: it shows what is stored, and no benchmark is left out."""

import json
import subprocess
import sys
from dataclasses import asdict

import pytest

from benchmarks import _stored
from benchmarks._stored import Row, against, budget
from tools import proof
from tools.notebooks import BOOK, ROOT

PAIRS = [(2.0, 3.0), (4.0, 2.0), (2.0, 5.0)]


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Some rows of `attention`, put into a folder and read again."""
    monkeypatch.setattr(_stored, "FOLDER", tmp_path)
    monkeypatch.setattr(_stored, "BEFORE", 7.0)

    def put(*rows: Row, **more) -> proof.Stored:
        _stored.store("benchmarks/attention.py", rows, **more)
        return proof.read(tmp_path)

    return put


def test_the_page_shows_what_is_stored():
    text = (BOOK / "proof.md").read_text("utf8")
    assert proof.filled(text, proof.read()) == text


def test_each_benchmark_has_its_row_and_each_stored_one_is_there():
    text, read = (BOOK / "proof.md").read_text("utf8"), proof.read()
    assert set(read) <= set(proof.names())
    for name in proof.names():
        (line,) = [line for line in text.splitlines() if f"| `make bench NAME={name}` |" in line]
        assert ("not measured on this machine" in line) == (name not in read)
        assert proof.first(name) in line
    for row in proof.rows(read):
        assert f"| {row.what} |" in text


def test_each_benchmark_hands_its_rows_over():
    for name in proof.names():
        source = (proof.BENCHMARKS / f"{name}.py").read_text("utf8")
        assert "_stored.finish(__file__, rows" in source, name


def test_the_first_page_leads_to_it():
    assert "](proof)" in (BOOK / "index.md").read_text("utf8")


def test_no_number_of_the_page_is_typed():
    bare = proof.PLACE.sub("", (BOOK / "proof.md").read_text("utf8"))
    assert [word for word in bare.split() if any(letter.isdigit() for letter in word)] == ["1", "1"]


def test_a_ratio_says_how_many_times_as_good_ours_is():
    time = against("a step", "ms", PAIRS, "torch", package="torch", bar=1.0)
    assert (time.ours, time.theirs, time.ratio) == (2.0, 3.0, 1.5)
    assert (time.least, time.most, time.kept) == (0.5, 2.5, True)
    assert time.peer.split()[0] == "torch" and time.peer.split()[1][0].isdigit()
    rate = against("writing", "tokens/s", PAIRS, "peer", bar=1.0, more=True)
    assert rate.ratio == pytest.approx(2 / 3) and not rate.kept


@pytest.mark.parametrize(
    ("values", "bar", "more", "kept"),
    [([1, 3, 9], 3, False, True), ([1, 4, 9], 3, False, False), ([1, 4, 9], 3, True, True)],
)
def test_a_budget_holds_for_the_median(values, bar, more, kept):
    row = budget("a page", "kB", values, bar, more=more)
    assert (row.ours, row.least, row.most, row.kept) == (values[1], 1, 9, kept)


def test_a_row_comes_back_as_it_was(stored):
    rows = [against("a step", "ms", PAIRS, "torch"), budget("a page", "kB", [1.0], 3.0)]
    read = stored(*rows)
    assert [asdict(row) for row in proof.rows(read)] == [asdict(row) for row in rows]


def test_what_is_behind_is_named(stored):
    ahead = against("quick", "ms", [(1.0, 2.0)], "peer")
    behind = against("slow", "ms", [(4.0, 2.0)], "peer", bar=1.0)
    heavy = budget("a heavy page", "kB", [400.0], 350.0)
    assert proof.worse(stored(ahead, budget("a page", "kB", [300.0], 350.0))) == "Nothing.\n"
    short = against("ahead, and not enough", "ms", [(1.0, 2.0)], "peer", bar=3.0)
    said = proof.worse(stored(ahead, behind, short, heavy, right=False))
    assert said.splitlines() == [
        "- slow: 0.5 of peer.",
        "- ahead, and not enough: ratio 2, at least 3 was asked for.",
        "- a heavy page: 400 kB, at most 350 was asked for, with 7 other processes beside.",
        "- what `make bench NAME=attention` asks to be equal was not.",
    ]
    assert "| slow | peer | 4 ms | 2 ms | **0.5** |  | at least 1 **missed** |" in proof.peers(
        proof.read(_stored.FOLDER)
    )


def test_a_missed_bar_is_an_error_and_is_stored(stored, tmp_path, monkeypatch):
    with pytest.raises(SystemExit) as ended:
        _stored.finish("attention.py", [budget("a page", "kB", [400.0], 350.0)])
    assert ended.value.code == 1
    found = json.loads((tmp_path / "attention.json").read_text())
    assert found["command"] == "make bench NAME=attention" and found["rows"][0]["ours"] == 400


def test_a_benchmark_that_does_not_exist_is_refused():
    run = [sys.executable, "-m", "tools.proof", "nothing"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "invalid choice: 'nothing'" in done.stderr
