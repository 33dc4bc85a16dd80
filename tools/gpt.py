"""Pretrain the book's own GPT, and store it in 8 bits: `make gpt`.

It reads presidents' speeches 16 times: four minutes on a GPU, hours on two cores. An interrupted
run resumes. The metadata of `src/attnbook/weights/gpt.safetensors` hold its settings, its scores,
the device, and the texts that it generated during training. A few earlier checkpoints are stored
beside it for the slider of the playground: `gpt_step_100.safetensors` and so on.
"""

import bz2
import gzip
import json
import lzma
import shutil
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnbook.learn.bits import bits_per_byte
from attnbook.learn.loop import Checkpoint, Precision, Run, StableDecay, train
from attnbook.learn.optimizers import Muon
from attnbook.learn.processes import processes
from attnbook.model.config import LLAMA_3
from attnbook.model.decoding import evaluating
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.corpus import join, windows
from attnbook.text.speeches import speeches
from attnbook.text.tokenizers import BytePair
from attnbook.text.vocabulary import Sequences
from attnbook.weights import int8
from tools.bert import Clock, about

ROOT = Path(__file__).parents[1]
PATH = ROOT / "src" / "attnbook" / "weights" / "gpt.safetensors"
KEPT = ROOT / ".cache" / "gpt"
COMMAND, SEED, STEPS, EVERY = "make gpt", 0, 3_000, 500
VOCABULARY, CONTEXT, ROWS = 2048, 256, 64  # the last two: tokens in a row, rows in a batch
CONFIG = replace(
    LLAMA_3,
    d_model=192,
    n_heads=6,
    n_kv_heads=2,
    d_ff=512,
    n_layers=6,
    rotary_base=10_000.0,
    qk_norm=True,
    tied=True,
    max_len=CONTEXT,
    dropout=0.1,
)
OPTIMIZER, RATE = Muon(weight_decay=0.4), StableDecay(0.01, STEPS, warmup=100, decay=STEPS // 2)
PROMPT, WRITTEN = "My fellow citizens,", 60  # tokens
SAMPLED = (0, 10, 100, 1000, STEPS // 2, STEPS)  # updates after which the model generates
CHECKPOINTS = (100, 1000, 0)  # the most informative first; as many as fit are stored
MOST_BYTES = 12_000_000  # of all files, including the trained model's
PACKERS = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def texts(split: str) -> list[str]:
    """The speeches of a split."""
    return [speech.text for speech in speeches(split)]


@cache
def tokenizer() -> BytePair:
    """The tokenizer, trained on the training speeches."""
    return BytePair.train(texts("train"), VOCABULARY)


@cache
def stream() -> Tensor:
    """All training tokens."""
    return join(tokenizer(), texts("train"))


def batch(step: int, rows: int = ROWS) -> Sequences:
    """The batch of a step."""
    return windows(stream(), CONTEXT, step, batch_size=rows, seed=SEED)


def untrained(**changes: Any) -> TransformerDecoder:
    """The model before its first step, with changes to its configuration."""
    torch.manual_seed(SEED)
    return TransformerDecoder(tokenizer().vocab, replace(CONFIG, **changes))


def sample(model: TransformerDecoder, pieces: BytePair) -> str:
    """A text sampled from a model after the prompt, with a fixed seed."""
    chance, device = torch.Generator().manual_seed(SEED), model.stack.embedding.weight.device
    read, state = [pieces.vocab.bos, *pieces.encode(PROMPT)], model.start()
    written: list[int] = []
    with evaluating(model):
        while len(written) < WRITTEN:
            scores, state = model.step(torch.tensor([read], device=device), state)
            read = torch.multinomial(scores[0].softmax(-1).cpu(), 1, generator=chance).tolist()
            written += read
    return pieces.decode(written)


class Writer:
    """A hook that samples texts during training and saves them across interruptions."""

    def __init__(self, path: Path):
        self.path = path

    def __call__(self, run: Run) -> None:
        if run.step in SAMPLED and isinstance(run.model, TransformerDecoder):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            told = self.told() if run.step else {}
            told[str(run.step)] = sample(run.model, tokenizer())
            self.path.write_text(json.dumps(told), "utf-8")

    def told(self) -> dict[str, str]:
        """Update -> the text sampled after it."""
        return json.loads(self.path.read_text("utf-8"))


class Keeper:
    """A hook that saves the model in 8 bits after some steps, in a separate folder."""

    def __init__(self, folder: Path, steps: Iterable[int] = CHECKPOINTS):
        self.folder, self.steps = folder, tuple(steps)

    def __call__(self, run: Run) -> None:
        if run.step in self.steps and isinstance(run.model, TransformerDecoder):
            said = {"step": run.step, "command": COMMAND}
            int8.save_int8(self.folder / f"{run.step}.safetensors", run.model, tokenizer(), said)

    def store(self, whole: Path, most: int = MOST_BYTES) -> dict[int, int]:
        """Copy the checkpoints that fit into the trained model's folder; returns step -> bytes.

        Args:
            whole: the trained model's file.
            most: the most bytes of all files together.
        """
        for old in whole.parent.glob(f"{whole.stem}_step_*.safetensors"):
            old.unlink()
        left, stored = most - whole.stat().st_size, dict[int, int]()
        for step in self.steps:
            path = self.folder / f"{step}.safetensors"
            if path.is_file() and path.stat().st_size <= left:
                shutil.copy(path, whole.with_name(f"{whole.stem}_step_{step}.safetensors"))
                left -= path.stat().st_size
                stored[step] = path.stat().st_size
        return stored


def learn(
    model: TransformerDecoder,
    steps: int = STEPS,
    on_step: Iterable[Any] = (),
    rows: int = ROWS,
    precision: Precision = "no",
) -> list[float]:
    """Train for some steps; returns the losses."""

    def loss(read: Sequences) -> Tensor:
        return cross_entropy(model(read.tokens).flatten(0, 1), read.targets.flatten())

    return train(
        model,
        partial(batch, rows=rows),
        loss,
        steps,
        lr=RATE,
        optimizer=OPTIMIZER,
        on_step=on_step,
        precision=precision,
    )


def score(model: TransformerDecoder, pieces: BytePair, some: list[str]) -> float:
    """Bits per byte of texts."""
    return round(bits_per_byte(model, pieces, some, CONTEXT), 4)


def packed(some: list[str]) -> dict[str, float]:
    """Bits per byte by file compressors, with all texts as one file.

    "xz_after" counts what these texts add to the xz file of the training texts.
    """
    data, read = ("\n".join(part).encode() for part in (some, texts("train")))
    sizes = {name: len(pack(data)) for name, pack in PACKERS.items()}
    sizes["xz_after"] = len(lzma.compress(read + data)) - len(lzma.compress(read))
    return {name: round(8 * size / len(data), 4) for name, size in sizes.items()}


def pretrain() -> tuple[TransformerDecoder, dict[str, Any]]:
    """Train the model; returns it with the metadata of its training."""
    model, writer = untrained(), Writer(KEPT / "written.json")
    clock, keeper = Clock(KEPT / "seconds", EVERY), Keeper(KEPT / "steps")
    checkpoint = Checkpoint(KEPT / "run.safetensors", EVERY)
    gpu = processes().device.type == "cuda"
    hooks, precision = [checkpoint, clock, writer, keeper], "bf16" if gpu else "no"
    losses = learn(model, STEPS, hooks, precision=precision)
    metadata = about(COMMAND, SEED, clock, losses) | {"prompt": PROMPT, "samples": writer.told()}
    return model, metadata | {"device": torch.cuda.get_device_name() if gpu else "cpu"}


def first_losses(on_step: Iterable[Any] = ()) -> list[float]:
    """Losses of two updates that any machine can repeat: with few rows and no dropout."""
    return learn(untrained(dropout=0.0), 2, on_step, rows=8)


def store(model: TransformerDecoder, metadata: dict[str, Any]) -> None:
    """Write the model in 8 bits with its scores, and its checkpoints."""
    metadata["first_losses"] = [round(loss, 4) for loss in first_losses()]
    int8.save_int8(PATH, model, tokenizer(), metadata)
    rounded, pieces = int8.load_int8(PATH, TransformerDecoder)  # score the stored model
    held_out = texts("validation")
    models = {"model": rounded, "float32": model, "untrained": untrained().eval()}
    metadata["bits_per_byte"] = {name: score(one, pieces, held_out) for name, one in models.items()}
    metadata["bits_per_byte"] |= packed(held_out)
    int8.save_int8(PATH, model, tokenizer(), metadata)
    print("checkpoints:", Keeper(KEPT / "steps").store(PATH))
    size = len(gzip.compress(PATH.read_bytes()))
    print(json.dumps(metadata["bits_per_byte"], indent=1), size, "bytes in gzip")


if __name__ == "__main__":
    store(*pretrain())
