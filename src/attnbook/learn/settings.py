"""Settings of a training run: the sections of a TOML file, and each key's type and meaning."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from inspect import getdoc
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from attnbook.checks import check_range, check_whole
from attnbook.learn.loop import Precision
from attnbook.learn.optimizers import Muon
from attnbook.model.config import TransformerConfig

RECIPES = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class DataSettings:
    """The texts and how they are tokenized.

    Attributes:
        source: "sotu", the messages of US presidents to Congress, of which the years that end in 5
            are held out; or the path of a text file, or a list of paths.
        held_out: share of each file's characters, at its end, that training never reads.
        tokenizer: "bytes", "characters", or "bpe", learnt from what training reads; or a folder
            that holds one.
        vocab_size: number of tokens that "bpe" learns.
    """

    source: str | list[str] = "sotu"
    held_out: float = 0.1
    tokenizer: str = "bytes"
    vocab_size: int = 1024

    def __post_init__(self) -> None:
        if not self.source:
            raise ValueError(f"source must be 'sotu' or text files, got {self.source!r}")
        check_range(0.001, 0.9, held_out=self.held_out)
        check_whole(257, vocab_size=self.vocab_size)


@dataclass(frozen=True)
class OptimizerSettings:
    """How each update is computed.

    Attributes:
        name: "adamw", or "muon" for the matrices of the blocks and AdamW for the rest.
        lr: the highest learning rate.
        schedule: "cosine", or "stable", which falls at the end alone.
        warmup: share of the updates in which the rate rises.
        decay: share of the updates in which a "stable" rate falls.
        end: the rate at the end, as a share of `lr`.
        clip: largest norm of the gradient; `inf` for any.
        weight_decay: the weight decay of matrices, per update and learning rate.
        beta1: how much AdamW keeps of the mean of gradients.
        beta2: how much AdamW keeps of the mean of their squares.
        momentum: how much Muon keeps of the mean of gradients.
        scale: AdamW's rate beside Muon's, as a share of it.
    """

    name: Literal["adamw", "muon"] = "adamw"
    lr: float = 1e-3
    schedule: Literal["cosine", "stable"] = "cosine"
    warmup: float = 0.02
    decay: float = 0.2
    end: float = 0.0
    clip: float = 1.0
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    momentum: float = 0.95
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_range(0.0, 1.0, warmup=self.warmup, decay=self.decay, end=self.end)
        check_range(0.0, float("inf"), lr=self.lr)
        if not self.clip > 0:
            raise ValueError(f"clip must be above 0, got {self.clip}")
        self.muon  # noqa: B018, checks the others

    @property
    def muon(self) -> Muon:
        """Muon with these settings, which include those of AdamW."""
        names = ("momentum", "scale", "weight_decay", "beta1", "beta2")
        return Muon(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class TrainSettings:
    """The length of the run, its batches, and its files.

    Attributes:
        folder: where everything that the run makes is put.
        steps: number of updates. 0: as many as `seconds` allow.
        seconds: wall time of the whole run, from which `steps` is found once, by timing some
            updates. It has no effect where `steps` is given.
        batch: rows of an update, of all processes together.
        context: tokens of a row.
        accumulate: number of parts in which a process computes its rows, to need less memory.
        precision: "no", "bf16" or "fp16": half precision for matrix products, where the device has
            it.
        seed: decides the first parameters, what is read, and dropout.
        evaluate: updates between two looks at the held-out text.
        evaluate_tokens: most tokens of the held-out text that are looked at.
        checkpoint: updates between two checkpoints.
        threads: how many a process uses. 0: as PyTorch chooses.
    """

    folder: str = "runs/gpt"
    steps: int = 0
    seconds: float = 0.0
    batch: int = 16
    context: int = 128
    accumulate: int = 1
    precision: Precision = "no"
    seed: int = 0
    evaluate: int = 250
    evaluate_tokens: int = 100_000
    checkpoint: int = 250
    threads: int = 0

    def __post_init__(self) -> None:
        check_whole(0, steps=self.steps, threads=self.threads)
        check_range(0.0, float("inf"), seconds=self.seconds)
        for name in ("batch", "context", "accumulate", "evaluate", "evaluate_tokens", "checkpoint"):
            check_whole(1, **{name: getattr(self, name)})
        if not self.steps and not self.seconds:
            raise ValueError("steps or seconds must be given, above 0, got neither")
        if self.batch < self.accumulate:
            raise ValueError(
                f"accumulate must be at most batch, {self.batch}, got {self.accumulate}"
            )


@dataclass(frozen=True)
class Settings:
    """All settings of a run, by section; `model` has the keys of `TransformerConfig`.

    Raises:
        ValueError: if a section does not allow a setting, or there are fewer learned positions than
            tokens in a row.

    In other libraries: `TrainingArguments` of `transformers`.
    """

    train: TrainSettings
    data: DataSettings = field(default_factory=DataSettings)
    model: TransformerConfig = field(default_factory=TransformerConfig)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)

    def __post_init__(self) -> None:
        if self.model.positions == "learned" and self.model.max_len < self.train.context:
            wanted = f"at least train.context, {self.train.context}, for learned positions"
            raise ValueError(f"model.max_len must be {wanted}, got {self.model.max_len}")


@contextmanager
def in_section(name: str) -> Iterator[None]:
    """Prefix keys in errors with their section, as in `--set`: `train.steps`, not `steps`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}.{error}") from None


SECTIONS: dict[str, type] = {part.name: part.type for part in fields(Settings)}  # pyright: ignore
KEYS = [f"{name}.{key.name}" for name, kind in SECTIONS.items() for key in fields(kind)]


def read_settings(path: str | Path, changes: Iterable[str] = ()) -> Settings:
    """Read settings from a TOML file and apply changes to them.

    Args:
        path: the file's path, or the name of one of this package's recipes, such as "small".
        changes: such as "train.steps=200"; what follows the sign is a TOML value or plain text.

    Raises:
        ValueError: if the file does not exist or is not TOML, a key is unknown (the error suggests
            the nearest known one), or a value has the wrong type or is not allowed.
    """
    file = Path(path) if Path(path).is_file() else RECIPES / f"{path}.toml"
    if not file.is_file():
        known = ", ".join(sorted(recipe.stem for recipe in RECIPES.glob("*.toml")))
        raise ValueError(f"CONFIG must be a file, or a recipe, one of {known}, got {str(path)!r}")
    try:
        sections: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"CONFIG must be a file of TOML, got {file}: {error}") from None
    for change in changes:
        key, sign, value = change.partition("=")
        section, dot, name = key.strip().partition(".")
        if not sign:
            raise ValueError(f"--set must be as train.steps=200, got {change!r}")
        if not dot:
            raise ValueError(f"unknown key {section!r}: {_nearest(section)}")
        if isinstance(keys := sections.setdefault(section, {}), dict):
            keys[name] = _value(value.strip())
    return settings(sections)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def settings(sections: Mapping[str, Any]) -> Settings:
    """Settings from the sections of parsed TOML; raises the same errors as `read_settings`."""
    made: dict[str, Any] = {}
    for name, keys in sections.items():
        if name not in SECTIONS:
            raise ValueError(f"unknown key {name!r}: {_nearest(name)}")
        if not isinstance(keys, Mapping):
            raise ValueError(f"{name} must be a section of keys, [{name}], got {keys!r}")
        made[name] = {}
        kinds = get_type_hints(SECTIONS[name])
        for key, value in keys.items():
            if key not in kinds:
                raise ValueError(f"unknown key '{name}.{key}': {_nearest(f'{name}.{key}')}")
            if not _fits(value, kinds[key]):
                wanted = f"{name}.{key} must be {in_words(kinds[key])}"
                raise ValueError(f"{wanted}, got {value!r}")
            made[name][key] = float(value) if kinds[key] is float else value
    for name, kind in SECTIONS.items():
        with in_section(name):
            made[name] = kind(**made.get(name, {}))
    return Settings(**made)


def _nearest(key: str) -> str:
    """Suggest what may have been meant: the same name in another section, or a similar key."""
    name = key.rpartition(".")[2]
    same = [known for known in KEYS if known.rpartition(".")[2] == name]
    near = same or get_close_matches(
        key, KEYS if "." in key else [*SECTIONS, *KEYS], n=1, cutoff=0.5
    )
    return f"did you mean {near[0]!r}?" if near else f"the sections are {', '.join(SECTIONS)}"


def _fits(value: Any, kind: Any) -> bool:
    """Whether a TOML value has the annotated type; an int counts as a float, too."""
    if isinstance(kind, UnionType):
        return any(_fits(value, part) for part in get_args(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_fits(part, get_args(kind)[0]) for part in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


def in_words(kind: Any) -> str:
    """An annotated type in words, for errors and the guide."""
    if isinstance(kind, UnionType):
        return " or ".join(in_words(part) for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(json.dumps, get_args(kind)))}"
    if get_origin(kind) is list:
        return "a list of texts"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    return words[kind]


def to_toml(settings: Settings) -> str:
    """The settings as TOML, with every key that is not None; `read_settings` reads it back."""
    lines = []
    for name, keys in asdict(settings).items():
        lines += ["", f"[{name}]"]
        written = {key: value for key, value in keys.items() if value is not None}
        lines += [f"{key} = {_written(value)}" for key, value in written.items()]
    return "\n".join(lines[1:]) + "\n"


def _written(value: Any) -> str:
    if isinstance(value, float):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML wants it escaped


def described() -> list[tuple[str, str, str, str]]:
    """Each key with its kind, default and meaning, from the classes and their docstrings."""
    rows = []
    for name, section in SECTIONS.items():
        kinds, meanings = get_type_hints(section), _meanings(section)
        for key in fields(section):
            default = "" if key.default is None else _written(key.default)
            rows.append(
                (f"{name}.{key.name}", in_words(kinds[key.name]), default, meanings[key.name])
            )
    return rows


def table() -> str:
    """The rows of `described`, as the guide's table in Markdown."""
    lines = ["| key | kind | default | meaning |", "| --- | --- | --- | --- |"]
    for key, kind, default, meaning in described():
        cells = (f"`{key}`", kind, default and f"`{default}`", meaning)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _meanings(section: type) -> dict[str, str]:
    """The description of each name under "Attributes:" in a class's docstring."""
    said = (getdoc(section) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    found = {}
    for entry in re.split(r"\n    (?=\S)", f"\n{said}")[1:]:
        names, _, meaning = " ".join(entry.split()).partition(": ")
        found |= dict.fromkeys(names.split(", "), meaning)
    return found
