"""Chapter 11: sums with and without their steps written down.

`make experiments NAME=scratchpad` gives SmolLM2 (tuned to instructions, without its chat template)
three solved sums and then a fourth, 15 times for each seed, and asks whether what it would write
(the likeliest token each time) is right to the sum's last digit. The `task` is a sum of two
numbers of three digits (3_digits), or of five numbers of one digit (5_numbers). `way` says how
sums are shown:

    direct      3 + 8 + 6 + 2 + 9 = 28
    steps       3 + 8 + 6 + 2 + 9: 3 + 8 = 11, 11 + 6 = 17, 17 + 2 = 19, 19 + 9 = 28
    direct      345 + 278 = 623
    steps       345 + 278: 300 + 200 = 500, 40 + 70 = 110, 5 + 8 = 13, 500 + 110 = 610,
                610 + 13 = 623

With steps, `right` asks for each step, so one slip counts as wrong; `last` asks for the sum alone,
after the true steps. The same sums are asked in all ways. Nothing is trained.
"""

import os
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch

from attnbook.learn.tables import Experiment
from attnbook.weights import load_smollm2

ASKED, SHOTS, SEEDS = 15, 3, 3
TASKS = {"3_digits": 2, "5_numbers": 5}


@cache
def model() -> Any:
    return load_smollm2()


def drawn(task: str, rng: Random) -> list[int]:
    """The numbers of a sum."""
    least, most = (100, 999) if task == "3_digits" else (1, 9)
    return [rng.randint(least, most) for _ in range(TASKS[task])]


def steps(task: str, numbers: list[int]) -> str:
    """The way to a sum, up to the sum itself."""
    lines = []
    if task == "3_digits":  # hundreds, tens, ones
        parts = [[number // p % 10 * p for number in numbers] for p in (100, 10, 1)]
        lines = [f"{a} + {b} = {a + b}" for a, b in parts]
        numbers = [*map(sum, parts)]
    so_far = numbers[0]
    for each in numbers[1:]:
        lines.append(f"{so_far} + {each} = {so_far + each}")
        so_far += each
    return ", ".join(lines).rpartition(" ")[0]


def asked(task: str, way: str, numbers: list[int]) -> tuple[str, str, str]:
    """A sum's question, its steps, and the sum."""
    question = " + ".join(map(str, numbers))
    if way == "direct":
        return f"{question} =", "", f" {sum(numbers)}"
    return f"{question}:", f" {steps(task, numbers)}", f" {sum(numbers)}"


def run(task: str, way: str, seed: int) -> Iterator[dict]:
    """One way to show sums."""
    torch.set_num_threads(1)
    lm, tokenizer = model()
    rng = Random(f"scratchpad {task} {seed}")
    right = last = 0
    for _ in range(ASKED):
        some = [asked(task, way, drawn(task, rng)) for _ in range(SHOTS + 1)]
        shown = "".join("".join(each) + "\n" for each in some[:-1])
        question, middle, total = some[-1]
        begun, end = tokenizer.encode(shown + question), tokenizer.encode(total)
        middle = tokenizer.encode(middle) if middle else []
        tokens = torch.tensor([[*begun, *middle, *end]])
        with torch.no_grad():
            said = lm(tokens)[0, len(begun) - 1 :].argmax(-1)
        fits = said[:-1] == tokens[0, len(begun) :]
        ends = not tokenizer.decode([int(said[-1])]).isdigit()  # no digit more
        right += ends and fits.all().item()
        last += ends and fits[-len(end) :].all().item()
    yield {"right": right / ASKED, "last": last / ASKED}


SETTINGS: list[dict[str, Any]] = [
    {"task": task, "way": way, "seed": seed}
    for seed in range(SEEDS)
    for task in TASKS
    for way in ("direct", "steps")
]
EXPERIMENT = Experiment("scratchpad", SETTINGS, run, ("right", "last"))

if __name__ == "__main__":
    EXPERIMENT.store()
