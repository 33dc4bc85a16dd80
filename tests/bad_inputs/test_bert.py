"""Bad input to tokenizers and BERT: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from attnbook.model.bert import Bert, Classifier, Tagger, mask_tokens, pack
from attnbook.model.config import BERT
from attnbook.model.transformer import Stack
from attnbook.text.tokenizers import SPECIAL, WordPiece

TOKENIZER = WordPiece([*SPECIAL, *"abc"])  # ids 0 .. 7
VOCAB, NAN = TOKENIZER.vocab, float("nan")
SMALL = replace(BERT, d_model=12, n_heads=3, d_ff=20, n_layers=2, max_len=6)
MODEL = Bert(VOCAB, SMALL).eval()
TOKENS = torch.tensor([[2, 5, 3, 6, 3], [2, 7, 3, 0, 0]])
STATES = MODEL(TOKENS)

BAD = [
    (
        lambda: WordPiece(["[PAD]", "[UNK]", "[CLS]", "[MASK]", "a"]),
        "tokens must hold [PAD], [UNK], [CLS], [SEP], [MASK], got none that is [SEP]",
    ),
    (lambda: WordPiece(SPECIAL), "tokens must hold more than the special ones"),
    (lambda: WordPiece([*SPECIAL, "a", "a"]), "words must be distinct, got twice: ['a']"),
    (lambda: WordPiece([*SPECIAL, 3]), "words must be strings, got 3"),
    (lambda: TOKENIZER.decode([5, 8]), "ids must be token ids in 0..7, got 8"),
    (lambda: TOKENIZER.decode([0.5]), "ids must be token ids, whole numbers, got torch.float32"),
    (
        lambda: WordPiece.train(["ab ba"], 8),
        "vocab_size must be at least 9, the characters and special tokens, got 8",
    ),
    (lambda: WordPiece.train(["ab"], 0), "vocab_size must be a whole number of at least 1, got 0"),
    (lambda: WordPiece.train(["  "], 90), "texts must hold at least one word, got none"),
    (
        lambda: WordPiece.train(["ab"], 90, min_count=0),
        "min_count must be a whole number of at least 1, got 0",
    ),
    (lambda: pack(VOCAB, [], max_len=9), "sequences must hold at least one sequence, got none"),
    (
        lambda: pack(VOCAB, [[5], [6]], [[7]], max_len=9),
        "second must hold 2 texts, as first, got 1",
    ),
    (
        lambda: pack(VOCAB, [[5]], [[7]], max_len=4),
        "max_len must be a whole number of at least 5, got 4",
    ),
    (lambda: pack(VOCAB, [[5]], max_len=2), "max_len must be a whole number of at least 3, got 2"),
    (
        lambda: pack(VOCAB, [["a"]], max_len=9),
        "sequences and pad must be token ids, whole numbers, got 'a'",
    ),
    (lambda: mask_tokens(TOKENS + 5, TOKENIZER), "tokens must be token ids in 0..7, got 12"),
    (lambda: mask_tokens(TOKENS[0], TOKENIZER), "tokens must be [batch token], got [5]"),
    (lambda: mask_tokens(TOKENS, TOKENIZER, share=15), "share must lie in 0..1, got 15"),
    (lambda: mask_tokens(TOKENS, TOKENIZER, masked=NAN), "masked must lie in 0..1, got nan"),
    (
        lambda: mask_tokens(TOKENS, TOKENIZER, masked=0.75, random=0.5),
        "random must lie in 0..0.25, got 0.5",
    ),
    (lambda: MODEL(TOKENS + 5), "tokens must be token ids in 0..7, got 12"),
    (lambda: MODEL(TOKENS, TOKENS), "segments must be token ids in 0..1, got 7"),
    (
        lambda: MODEL(TOKENS, torch.zeros(2, 4, dtype=torch.long)),
        "segments must be [batch token] with batch = 2, token = 5, got [2, 4]",
    ),
    (
        lambda: Stack(8, replace(SMALL, n_segments=0))(TOKENS, segments=TOKENS),
        "segments must be None where the configuration's n_segments is 0",
    ),
    (
        lambda: replace(SMALL, n_segments=-1),
        "n_segments must be a whole number of at least 0, got -1",
    ),
    (lambda: MODEL(torch.ones(1, 7, dtype=torch.long)), "x must have at most 6 tokens, got 7"),
    (lambda: MODEL.word_logits(STATES, TOKENS), "places must be boolean, got torch.int64"),
    (
        lambda: MODEL.word_logits(STATES, TOKENS[:1] == 0),
        "places must be [batch token] with batch = 2, token = 5, got [1, 5]",
    ),
    (
        lambda: MODEL.word_loss(STATES, TOKENS[:, 1:]),
        "targets must be [batch token] with batch = 2, token = 5, got [2, 4]",
    ),
    (
        lambda: MODEL.next_loss(STATES, torch.tensor([0, 1])),
        "follows must be boolean, got torch.int64",
    ),
    (
        lambda: MODEL.next_loss(STATES, torch.tensor([True])),
        "follows must be [batch] with batch = 2, got [1]",
    ),
    (lambda: Classifier(MODEL, 0), "n_classes must be a whole number of at least 1, got 0"),
    (lambda: Tagger(MODEL, 2.0), "n_tags must be a whole number of at least 1, got 2.0"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
