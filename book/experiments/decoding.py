"""Chapter 10: what each way to choose the next token makes of a text.

`make experiments NAME=decoding` makes every run below and stores a row for each. A run continues 20
passages of speeches of years that end in 5: SmolLM2 reads 32 tokens from the beginning of a
sentence and writes 100, or fewer where it ends the text. A seed chooses the passages and the draws;
all methods have the same passages. `human` is what the president said next. SmolLM2, which is
tuned to instructions, gets the bare text; it may have read the speeches.

    bits      what a token costs, by the model's own probability at temperature 1
    tail      share of tokens to which the model gave less than 0.001
    loops     share of texts that end in a phrase of two tokens or more, three times in a row
              (Holtzman et al. 2020, section 5.3)
    repeats   share of runs of four tokens that stood in the same text before (Welleck et al. 2020,
              section 6.1, seq-rep-4)
    distinct  distinct pairs of neighbours among all pairs of the 20 texts (Li et al. 2016)
    self_bleu BLEU of a text with the other 19 as references, from 0 to 1 (Zhu et al. 2018)
    ended     share of texts that the model ended
    empty     share of texts that it ended at once; they count in bits, tail and ended alone

`value` is the setting of the method; `penalty` goes with temperature 0, all others with 1.
"""

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from sacrebleu.metrics.bleu import BLEU
from torch import Tensor

from attnbook.learn.tables import Experiment
from attnbook.model import Sampling, TransformerDecoder
from attnbook.text import BytePair
from attnbook.text.speeches import sentences, speeches
from attnbook.weights import load_smollm2

TEXTS, READ, WRITTEN, BATCH, CHUNK = 20, 32, 100, 20, 5
RARE = 1e-3
HOW = {
    "greedy": lambda _: Sampling(temperature=0),
    "temperature": lambda t: Sampling(temperature=t),
    "top_k": lambda k: Sampling(top_k=round(k)),
    "top_p": lambda p: Sampling(top_p=p),
    "min_p": lambda p: Sampling(min_p=p),
    "typical": lambda p: Sampling(typical=p),
    "penalty": lambda r: Sampling(temperature=0, repetition_penalty=r),
}


class Written(NamedTuple):
    """Tokens of each text, and the natural logarithm of the probability of each."""

    texts: list[list[int]]
    logp: list[list[float]]
    ended: list[bool]


@cache
def model_and_tokenizer() -> tuple[TransformerDecoder, BytePair]:
    return load_smollm2()


@cache
def passages(seed: int) -> Tensor:
    """Pieces of speeches, each from the beginning of a sentence: [text token]."""
    _, tokenizer = model_and_tokenizer()
    rng, found = Random(f"decoding {seed}"), []
    spoken = [sentences(speech.text) for speech in speeches("validation")]
    while len(found) < TEXTS:
        lines = rng.choice(spoken)
        begin = rng.randrange(len(lines))
        ids = tokenizer.encode(" ".join(lines[begin : begin + 30]))[: READ + WRITTEN]
        if len(ids) == READ + WRITTEN:
            found.append(ids)
    return torch.tensor(found)


@torch.no_grad()
def rated(rows: Tensor) -> Tensor:
    """Log-probability of each token of the rows after the prompt: [row token]."""
    model, _ = model_and_tokenizer()
    found = []
    for part in rows.split(CHUNK):
        logp = model(part[:, :-1])[:, READ - 1 :].log_softmax(-1)
        found.append(logp.gather(-1, part[:, READ:, None])[..., 0])
    return torch.cat(found)


def written(method: str, value: float, seed: int) -> Written:
    """What a method makes of the passages."""
    model, tokenizer = model_and_tokenizer()
    rows = passages(seed)
    if method == "human":
        tokens, logp = rows[:, READ:], rated(rows)
    else:
        found = []
        for n, prompts in enumerate(rows[:, :READ].split(BATCH)):
            if method == "beam":
                tokens = model.generate(prompts, WRITTEN, beam=round(value)).tokens
                logp = rated(torch.cat([prompts, tokens], 1))
            else:
                drawn = model.sample(
                    prompts, WRITTEN, how=HOW[method](value), seed=1000 * seed + n, stop=END
                )
                tokens, logp = drawn.tokens, drawn.logp
            found.append((tokens, logp))
        tokens, logp = (
            torch.cat(
                [torch.nn.functional.pad(part, (0, WRITTEN - part.shape[1])) for part in each]
            )
            for each in zip(*found, strict=True)
        )
    special = torch.isin(tokens, torch.tensor(tokenizer.special))
    lengths = special.int().argmax(1).masked_fill(~special.any(1), WRITTEN).tolist()
    return Written(
        [row[:n] for row, n in zip(tokens.tolist(), lengths, strict=True)],
        [row[: n + 1] for row, n in zip(logp.tolist(), lengths, strict=True)],
        special.any(1).tolist(),
    )


END = [[0]]  # <|endoftext|>, which parts texts; <|im_end|> ends a text anyway


def loops(text: Sequence[int]) -> bool:
    """Whether a text ends in a phrase of two tokens or more, three times in a row."""
    end = text[::-1]
    lengths = range(2, len(end) // 3 + 1)
    return any(end[:n] == end[n : 2 * n] == end[2 * n : 3 * n] for n in lengths)


def runs_of(n: int, text: Sequence[int]) -> list[tuple[int, ...]]:
    """Every n neighbours."""
    return [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]


def self_bleu(texts: list[list[int]]) -> float:
    """Mean BLEU of each text with all others as references."""
    words = [" ".join(map(str, text)) for text in texts]
    bleu = BLEU(tokenize="none", effective_order=True)
    scores = [
        bleu.sentence_score(text, words[:i] + words[i + 1 :]).score for i, text in enumerate(words)
    ]
    return sum(scores) / len(scores) / 100


def run(method: str, value: float, seed: int) -> Iterator[dict[str, Any]]:
    """One run."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    drawn, logp, ended = written(method, value, seed)
    texts = [text for text in drawn if text]
    flat = [x for row in logp for x in row]
    fours = [runs_of(4, text) for text in texts]
    pairs = [pair for text in texts for pair in runs_of(2, text)]
    found = {
        "bits": -sum(flat) / len(flat) / math.log(2),
        "tail": sum(x < math.log(RARE) for x in flat) / len(flat),
        "loops": sum(map(loops, texts)) / len(texts),
        "repeats": 1 - sum(len({*each}) for each in fours) / sum(map(len, fours)),
        "distinct": len({*pairs}) / len(pairs),
        "self_bleu": self_bleu(texts),
        "ended": sum(ended) / len(ended),
        "empty": 1 - len(texts) / len(drawn),
    }
    yield {name: round(number, 4) for name, number in found.items()}


SEEDS = 5
METHODS = (
    ("human", 0.0),
    ("greedy", 0.0),
    ("temperature", 1.0),
    ("top_p", 0.9),
    ("top_k", 50.0),
    ("temperature", 0.7),
    ("min_p", 0.1),
    ("penalty", 1.2),
    ("typical", 0.95),
    ("top_p", 0.95),
    ("top_p", 0.8),
    ("temperature", 0.5),
    ("temperature", 0.9),
    ("temperature", 1.2),
    ("top_k", 10.0),
    ("top_k", 640.0),
    ("min_p", 0.05),
    ("beam", 4.0),
    ("beam", 8.0),
)
MEASURED = ("bits", "tail", "loops", "repeats", "distinct", "self_bleu")
SETTINGS: list[dict[str, Any]] = [
    {"method": method, "value": value, "seed": seed}
    for seed in range(SEEDS)
    for method, value in METHODS
]
EXPERIMENT = Experiment("decoding", SETTINGS, run, MEASURED)

if __name__ == "__main__":
    EXPERIMENT.store()
