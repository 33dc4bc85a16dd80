"""The training engine: trains a language model made of the book's parts from a settings file.

    python -m attnbook.train CONFIG                                      a TOML file, or a recipe
    python -m attnbook.train CONFIG --set train.steps=200                with a changed setting
    accelerate launch --num_processes 8 -m attnbook.train CONFIG         on eight devices

`python -m attnbook.train --keys` prints all settings. Running the same command again resumes a run
that was stopped in any way. See the guide `book/training.md`.
"""

import argparse
import csv
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm.auto import tqdm

from attnbook import assets
from attnbook.files import atomic
from attnbook.learn.bits import bits_and_bytes
from attnbook.learn.loop import Checkpoint, Cosine, Run, StableDecay, autocast, train
from attnbook.learn.optimizers import AdamW, Muon
from attnbook.learn.processes import processes
from attnbook.learn.settings import Settings, described, in_section, read_settings, to_toml
from attnbook.learn.token_files import (
    digest,
    documents,
    load_tokenizer,
    make_tokenizer,
    read_tokens,
    write_tokens,
)
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.corpus import Tokenizer, token_bytes, windows
from attnbook.text.speeches import SPLITS
from attnbook.text.tokenizers.bytepair import FILES
from attnbook.text.vocabulary import Sequences

CONFIG, TOKENS, TOKENIZER, LOG = "config.toml", "tokens.json", "tokenizer", "log.csv"
WEIGHTS, CHECKPOINT = "model.safetensors", "checkpoint.safetensors"
COLUMNS = ("step", "loss", "seconds", "tokens", "bits_per_byte")
STRETCHES = 16  # parts of a held-out text on which a model is evaluated
TIMED, SKIPPED = 12, 3  # updates timed to choose the number of steps; the first 3 only warm up


def next_token_loss(model: TransformerDecoder, batch: Sequences) -> Tensor:
    """Mean cross-entropy of the next token, in nats per token."""
    return cross_entropy(model(batch.tokens).flatten(0, 1), batch.targets.flatten())


class Evaluate:
    """Computes `bits_per_byte` of a held-out text, whose parts are shared among the processes.

    Args:
        ids: `[token]` ids of the held-out text. Of a long text, only `STRETCHES` evenly spaced
            parts are read.
        tokenizer: the one that produced the ids.
        settings: provide the context, `evaluate_tokens`, the batch size and the precision.

    Every process must call it.

    Raises:
        ValueError: if the text is too short for each part to have a token to predict.
    """

    def __init__(self, ids: np.ndarray, tokenizer: Tokenizer, settings: Settings):
        self.settings, self.sizes = settings.train, token_bytes(tokenizer)
        if not (most := (len(ids) - 1) // STRETCHES):
            wanted = f"over {STRETCHES} tokens of data.source"
            raise ValueError(f"data.held_out must leave {wanted}, got {len(ids)}")
        n = min(most, max(1, self.settings.evaluate_tokens // STRETCHES))
        begins = [i * (len(ids) - 1) // STRETCHES for i in range(STRETCHES)]
        self.parts = [ids[begin : begin + n + 1] for begin in begins]

    def __call__(self, model: nn.Module) -> float:
        """Bits per byte of the model, which is left in evaluation mode."""
        team, chosen = processes(), self.settings
        device = next((weight.device for weight in model.parameters()), team.device)

        def scores(tokens: Tensor) -> Tensor:
            with autocast(chosen.precision, device):
                return model(tokens.to(device)).float().cpu()

        model.eval()
        found = torch.zeros(2)
        for part in self.parts[team.index :: team.size]:
            read = bits_and_bytes(scores, part, self.sizes, chosen.context, batch_size=chosen.batch)
            found += torch.tensor(read)
        bits, size = team.sum(found.to(team.device))
        return (bits / size).item()


class Log:
    """A hook that writes a line of `log.csv` after each update and evaluates the held-out text.

    When a stopped run resumes, the lines it wrote after its last checkpoint are removed.

    Args:
        path: the log file. Its columns: step, loss (nats per token), seconds (wall time since the
            first update, not counting the time while the run was stopped), tokens read so far, and
            bits per byte of the held-out text where measured.
        evaluate: measures the bits per byte.
        every: updates between two measurements; the last update is always followed by one.
        tokens: number of tokens that an update reads.

    Raises:
        ValueError: when called, if another process has meanwhile written to the file: a second
            run in the same folder, which then continues alone.
    """

    def __init__(self, path: Path, evaluate: Callable[[nn.Module], float], every: int, tokens: int):
        self.path, self.evaluate, self.every, self.tokens = path, evaluate, every, tokens
        self.goes_on, self.begin, self.left = False, 0.0, (0, 0)

    def __call__(self, run: Run) -> None:
        """Start the clock before the first update (a checkpoint may load later); then log each."""
        if not run.step:
            self.begin = time.perf_counter()
            return
        bits = None
        if run.step % self.every == 0 or run.step == run.steps:
            bits = self.evaluate(run.model)
        if not run.is_main:
            return
        if not self.goes_on:
            self._go_on(run.step)
        elif self._state() != self.left:
            wanted = f"a folder in which nobody else runs, got {self.path.parent}"
            raise ValueError(f"train.folder must be {wanted}, where {self.path.name} was changed")
        seconds = time.perf_counter() - self.begin
        row = (run.step, run.losses[-1], f"{seconds:.3f}", run.step * self.tokens, bits)
        with self.path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow("" if x is None else x for x in row)
        self.left = self._state()
        if bits is not None:
            said = f"step {run.step} of {run.steps}: {bits:.4f} bits a byte held out"
            tqdm.write(f"{said}, {seconds:.0f} s")

    def _state(self) -> tuple[int, int]:
        """The file's inode number and size, which change if another process writes to it."""
        said = self.path.stat() if self.path.is_file() else None
        return (said.st_ino, said.st_size) if said else (0, 0)

    def _go_on(self, step: int) -> None:
        """Keep the lines before this step, and continue from their last time."""
        rows, self.goes_on = [row for row in read_log(self.path) if int(row["step"]) < step], True
        if rows:
            self.begin -= float(rows[-1]["seconds"])
        with atomic(self.path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            lines = [COLUMNS, *(row.values() for row in rows)]
            csv.writer(file, lineterminator="\n").writerows(lines)


def read_log(path: Path) -> list[dict[str, str]]:
    """The complete lines of a log; a truncated last line is dropped."""
    text = path.read_text("utf-8") if path.is_file() else ""
    return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))


def optimizer_of(settings: Settings) -> AdamW | Muon:
    """The optimizer that the settings name."""
    chosen = settings.optimizer
    if chosen.name == "muon":
        return chosen.muon
    return AdamW(chosen.weight_decay, chosen.beta1, chosen.beta2)


def schedule_of(settings: Settings) -> Cosine | StableDecay:
    """The learning-rate schedule that the settings name."""
    chosen, steps = settings.optimizer, settings.train.steps
    warmup = min(round(chosen.warmup * steps), steps - 1)
    least = chosen.end * chosen.lr
    if chosen.schedule == "cosine":
        return Cosine(chosen.lr, steps, warmup, least)
    decay = min(max(1, round(chosen.decay * steps)), steps - warmup)
    return StableDecay(chosen.lr, steps, warmup, least, decay)


def learn(
    model: TransformerDecoder, ids: np.ndarray, settings: Settings, **options: Any
) -> list[float]:
    """Call `attnbook.learn.loop.train` with arguments from the settings, and with `options`."""
    chosen = settings.train
    read = {"batch_size": chosen.batch, "seed": chosen.seed}
    return train(
        model,
        lambda step: windows(ids, chosen.context, step, **read),
        partial(next_token_loss, model),
        chosen.steps,
        lr=schedule_of(settings),
        optimizer=optimizer_of(settings),
        clip=settings.optimizer.clip,
        seed=chosen.seed,
        accumulate=chosen.accumulate,
        precision=chosen.precision,
        tokens=chosen.batch * chosen.context,
        **options,
    )


def steps_in(
    model: TransformerDecoder,
    ids: np.ndarray,
    evaluate: Callable[[nn.Module], float],
    settings: Settings,
    begun: float,
) -> int:
    """The number of updates, with their evaluations, that fit into `train.seconds`.

    Args:
        model, ids, evaluate, settings: those of the run; the model is not changed.
        begun: when the run began, by `time.perf_counter`.
    """
    copy, times = deepcopy(model), [time.perf_counter()]
    timed = replace(settings, train=replace(settings.train, steps=TIMED))
    learn(copy, ids, timed, on_step=[lambda run: times.append(time.perf_counter())])
    update = median(b - a for a, b in list(pairwise(times))[SKIPPED:])
    start = time.perf_counter()
    evaluate(copy.to(processes().device))
    look = time.perf_counter() - start
    left = settings.train.seconds - (time.perf_counter() - begun) - look
    return max(1, int(left / (update + look / settings.train.evaluate)))


def kept_settings(settings: Settings, folder: Path) -> Settings:
    """The settings of the run in the folder, or the given settings if it holds no run.

    Raises:
        ValueError: if the folder holds another run; the error names the first setting that differs.
    """
    if not (folder / CONFIG).is_file():
        return settings
    kept = read_settings(folder / CONFIG)
    steps = settings.train.steps or kept.train.steps
    mine, theirs = (
        asdict(some)
        for some in (replace(settings, train=replace(settings.train, steps=steps)), kept)
    )
    for section, keys in mine.items():
        for key, value in keys.items():
            if value != (other := theirs[section][key]) and key != "folder":
                raise ValueError(
                    f"train.folder must be that of no other run, got {folder}, where"
                    f" {section}.{key} is {other!r}, not {value!r}. Name another, or remove it"
                )
    return replace(kept, train=replace(kept.train, folder=str(folder)))


def run(settings: Settings) -> Path:
    """Train a model or resume its training, and write the files of the run.

    Args:
        settings: the run's settings.

    Returns:
        The folder, with the settings as run, the tokenizer, the names of the token files, the log,
        the last checkpoint and the weights.

    Raises:
        ValueError: if the folder holds another run, is in use by another process or is not
            writable, the settings do not fit the text, the processes or the device, or the text or
            the tokenizer has changed since the run began.
    """
    begun, folder, team = time.perf_counter(), Path(settings.train.folder), processes()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        wanted = f"a folder that can be written, got {folder}"
        raise ValueError(f"train.folder must be {wanted}: {error.strerror}") from None
    settings = team.from_first(lambda: kept_settings(settings, folder))
    chosen = settings.train
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    with in_section("train"):
        autocast(chosen.precision, team.device)
    if chosen.batch < (parts := chosen.accumulate * team.size):
        wanted = f"at least {parts}, train.accumulate times the processes"
        raise ValueError(f"train.batch must be {wanted}, got {chosen.batch}")
    team.from_first(lambda: _keep_tokenizer(settings, folder))
    tokenizer = load_tokenizer(folder / TOKENIZER)
    names = team.from_first(lambda: _named_tokens(settings, tokenizer, folder))
    files = {split: _tokens(settings, tokenizer, split, name) for split, name in names.items()}
    if (n := len(files["train"])) <= chosen.context:
        wanted = f"below the {n} tokens of data.source that training reads"
        raise ValueError(f"train.context must be {wanted}, got {chosen.context}")
    torch.manual_seed(chosen.seed)
    model = TransformerDecoder(tokenizer.vocab, settings.model)
    evaluate = Evaluate(files["validation"], tokenizer, settings)
    if not chosen.steps:
        found = steps_in(model, files["train"], evaluate, settings, begun)
        settings = replace(settings, train=replace(chosen, steps=team.from_first(lambda: found)))
    team.from_first(lambda: _keep_settings(settings, names, folder))
    hooks = [
        Log(folder / LOG, evaluate, chosen.evaluate, chosen.batch * chosen.context),
        Checkpoint(folder / CHECKPOINT, every=chosen.checkpoint),
    ]
    learn(model, files["train"], settings, on_step=hooks)
    if team.is_main:
        with atomic(folder / WEIGHTS) as file:
            save_file(model.state_dict(), file)
    return folder


def _keep_tokenizer(settings: Settings, folder: Path) -> None:
    """Make the run's tokenizer, replacing one left by a start that failed before the run began."""
    if (folder / CONFIG).is_file():
        return
    if other := {path.name for path in (folder / TOKENIZER).glob("*")} - {*FILES[0]}:
        wanted = f"train.folder must be the run's own, got {folder}, where {TOKENIZER}"
        raise ValueError(f"{wanted} holds {min(other)}")
    data = settings.data
    with in_section("data"):
        texts = chain.from_iterable(documents(data.source, "train", data.held_out))
        tokenizer = make_tokenizer(data.tokenizer, texts, data.vocab_size)
    shutil.rmtree(folder / TOKENIZER, ignore_errors=True)
    with atomic(folder / TOKENIZER) as partial:
        tokenizer.save(partial)


def _named_tokens(settings: Settings, tokenizer: Tokenizer, folder: Path) -> dict[str, str]:
    """The name of each split's token file, a hash of text and tokenizer.

    If a run resumes, they must be the names it began with.
    """
    data = settings.data
    with in_section("data"):
        names = {split: digest(data.source, tokenizer, split, data.held_out) for split in SPLITS}
    if (folder / CONFIG).is_file() and json.loads((folder / TOKENS).read_text("utf-8")) != names:
        wanted = f"the text that the run in {folder} began with"
        raise ValueError(f"data.source must be {wanted}, got another, or another {TOKENIZER}")
    return names


def _tokens(settings: Settings, tokenizer: Tokenizer, split: str, name: str) -> np.memmap:
    """The tokens of a split, from a file that the first process of each machine writes."""
    with processes().main_first():
        texts = documents(settings.data.source, split, settings.data.held_out)
        return read_tokens(write_tokens(texts, tokenizer, name))


def _keep_settings(settings: Settings, names: Mapping[str, str], folder: Path) -> None:
    """Write the token files' names, then the settings, which mark the folder as that of a run."""
    with atomic(folder / TOKENS) as file:
        file.write_text(json.dumps(names), "utf-8")
    with atomic(folder / CONFIG) as file:
        file.write_text(to_toml(settings), "utf-8")


def load(folder: str | Path) -> tuple[TransformerDecoder, Tokenizer]:
    """The trained model of a run, in evaluation mode, and its tokenizer.

    Args:
        folder: the run's folder.

    Raises:
        ValueError: if the folder holds no run, or one that has not finished.
    """
    folder = Path(folder)
    if not (folder / WEIGHTS).is_file():
        raise ValueError(f"folder must hold a run that has ended, got {folder} without {WEIGHTS}")
    tokenizer = load_tokenizer(folder / TOKENIZER)
    model = TransformerDecoder(tokenizer.vocab, read_settings(folder / CONFIG).model)
    model.load_state_dict(load_file(folder / WEIGHTS))
    return model.eval(), tokenizer


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m attnbook.train", description="Train a language model."
    )
    parser.add_argument("config", nargs="?", metavar="CONFIG", help="a TOML file, or a recipe")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="as train.steps=200"
    )
    parser.add_argument("--keys", action="store_true", help="print every key, and end")
    asked = parser.parse_args(arguments)
    if asked.keys:
        for key, kind, default, meaning in described():
            print(f"{key} = {default}\n    {kind}: {meaning}")
        return
    if asked.config is None:
        parser.error("CONFIG must be given: a TOML file, or a recipe")
    try:
        folder = run(read_settings(asked.config, asked.set))
    except (ValueError, OSError, FloatingPointError, assets.AssetError) as error:
        advice = ": try a lower optimizer.lr" * isinstance(error, FloatingPointError)
        parser.exit(2, f"{parser.prog}: {error}{advice}\n")
    if processes().is_main:
        print(f"{folder} holds {WEIGHTS}, {TOKENIZER}, {LOG} and {CONFIG}")
