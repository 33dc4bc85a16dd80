"""Chapter 11: praise or blame as the next word, over wordings, examples, and ways to decide.

`make experiments NAME=prompting` asks SmolLM2 (135 million parameters, tuned to instructions, in
the book's own decoder) about 240 snippets of film reviews, the first of chapter 8's test, and
stores a row for each way to ask:

    lecture   The sentiment of the sentence "..." is:
    review    Review: ... Sentiment:
    question  Review: ... Question: Is this review positive or negative? Answer:
    was       ... It was
    film      ... All in all, the film is
    chat      the conversation that the model was tuned to: the user asks, the answer has begun

Without examples (`shots` 0) each is asked with five pairs of label words, named by that for praise.
With 2, 4 or 8 examples, as many of praise as of blame, drawn and put in order by the seed from the
snippets for training, the first four ways are asked with a pair of their own. Nothing is trained,
and nothing was chosen on these snippets.

`mass` is P(praise word) + P(blame word), a mean over snippets, and `positive` the share of snippets
that are called praise. Four ways to decide give shares of right answers:

    plain     the likelier word
    na        log P(word | prompt with "N/A" as the sentence) is subtracted first
    free      the same for the mean of "N/A", "[MASK]" and no sentence, after a softmax over the two
              words (Zhao et al. 2021)
    halved    the half of the snippets with the largest log P(praise word) - log P(blame word) is
              called praise: no label, but all snippets at once, and that half of them are praise
"""

import os
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import Tensor

from attnbook.learn.tables import Experiment
from attnbook.model.prompting import Wording, next_logp
from attnbook.text.sentiment import snippets
from attnbook.weights import chat, load_smollm2

ASKED, FREE = 240, ("N/A", "[MASK]", "")
PAIRS = {  # blame, praise; by the word for praise
    "positive": (" negative", " positive"),
    "Positive": (" Negative", " Positive"),
    "good": (" bad", " good"),
    "great": (" terrible", " great"),
    "wonderful": (" awful", " wonderful"),
}
ASKS = "Is this film review positive or negative?"
TEXTS = {
    "lecture": 'The sentiment of the sentence "{}" is:',
    "review": "Review: {}\nSentiment:",
    "question": "Review: {}\nQuestion: Is this review positive or negative?\nAnswer:",
    "was": "{} It was",
    "film": "{} All in all, the film is",
    "chat": chat(("user", ASKS + ' "{}"')) + "The review is",
}
OWN = {"lecture": "positive", "review": "positive", "question": "Positive", "was": "great"}


@cache
def model() -> Any:
    return load_smollm2()


def ids(wording: str, labels: str, examples: tuple[tuple[str, int], ...]) -> list[list[int]]:
    """Prompts of all snippets, then those without content."""
    way = Wording(TEXTS[wording], PAIRS[labels])
    sentences = [*(snippet.text for snippet in snippets("test")[:ASKED]), *FREE]
    return [model()[1].encode(way.ask(each, examples), special=True) for each in sentences]


def of_words(labels: str) -> list[int]:
    """The pair's token ids."""
    encoded = [model()[1].encode(word) for word in PAIRS[labels]]
    assert all(len(each) == 1 for each in encoded)
    return [each[0] for each in encoded]


@cache
def unprompted(wording: str) -> Tensor:
    """[snippet, pair, word] without an example, which has no pair."""
    words = [each for labels in PAIRS for each in of_words(labels)]
    return next_logp(model()[0], ids(wording, "positive", ()), words).unflatten(1, (-1, 2))


def drawn(wording: str, shots: int, seed: int) -> tuple[tuple[str, int], ...]:
    """Examples, of each class equally many, in any order."""
    rng, pool = Random(f"prompting {wording} {shots} {seed}"), snippets("train")
    some = [
        (snippet.text, label)
        for label in (0, 1)
        for snippet in rng.sample([s for s in pool if s.label == label], shots // 2)
    ]
    return tuple(rng.sample(some, shots))


def run(wording: str, labels: str, shots: int, seed: int) -> Iterator[dict]:
    """One way to ask."""
    torch.set_num_threads(1)
    if shots:
        rows = ids(wording, labels, drawn(wording, shots, seed))
        logp = next_logp(model()[0], rows, of_words(labels))
    else:
        logp = unprompted(wording)[:, [*PAIRS].index(labels)]
    truth = torch.tensor([snippet.label for snippet in snippets("test")[:ASKED]])
    more = logp[:, 1] - logp[:, 0]
    asked, na = more[:ASKED], more[ASKED]
    free = more[ASKED:].sigmoid().mean().logit()
    share = {
        "plain": asked > 0,
        "na": asked > na,
        "free": asked > free,
        "halved": asked > asked.median(),
    }
    found = {name: (said == truth).float().mean().item() for name, said in share.items()}
    found["positive"] = share["plain"].float().mean().item()
    found["mass"] = logp[:ASKED].exp().sum(1).mean().item()
    yield {name: round(found[name], 4) for name in MEASURED}


SHOTS, SEEDS = (2, 4, 8), 2
MEASURED = ("plain", "na", "free", "halved", "positive", "mass")
COLUMNS = ("wording", "labels", "shots", "seed")
SETTINGS: list[dict[str, Any]] = [
    dict(zip(COLUMNS, values, strict=True))
    for values in (
        *((wording, labels, 0, 0) for wording in TEXTS for labels in PAIRS),
        *(
            (wording, labels, shots, seed)
            for seed in range(SEEDS)
            for shots in SHOTS
            for wording, labels in OWN.items()
        ),
    )
]
EXPERIMENT = Experiment("prompting", SETTINGS, run, MEASURED)

if __name__ == "__main__":
    EXPERIMENT.store()
