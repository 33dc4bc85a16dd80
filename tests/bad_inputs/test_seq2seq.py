"""Bad input to recurrent models: the error says what is wrong."""

# pyright: reportArgumentType=false, reportOptionalSubscript=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.model.scores import AdditiveScore, DotScore
from attnbook.model.seq2seq import (
    GRU,
    Decoder,
    Encoder,
    GRUCell,
    LuongDecoder,
    Memory,
    MultiHeadDecoder,
    RNNsearchDecoder,
    Seq2Seq,
)
from attnbook.text.vocabulary import Pairs, Vocabulary

NAN = float("nan")
VOCAB = Vocabulary("abcdefgh")  # ids 0 .. 10
TOKENS = torch.tensor([[5, 6, 7], [4, 0, 0]])
TARGET = torch.tensor([[1, 6, 7, 2], [1, 2, 0, 0]])
LEFT = torch.tensor([[0, 1, 6, 2], [1, 6, 7, 2]])


def model() -> Seq2Seq:
    return Seq2Seq(Encoder(VOCAB, 6), Decoder(VOCAB, 6, AdditiveScore(6, 6, 4))).eval()


def read(memory: Memory, target: torch.Tensor = TARGET) -> torch.Tensor:
    return model().decoder(target, memory)


def step(tokens: torch.Tensor) -> object:
    m = model()
    return m.decoder.step(tokens, m.decoder.start(m.read(TOKENS)))


MEMORY = model().read(TOKENS)

BAD = [
    (lambda: GRUCell(0, 5), "d_input must be a whole number of at least 1, got 0"),
    (lambda: GRUCell(3, 2.0), "d_state must be a whole number of at least 1, got 2.0"),
    (lambda: GRUCell(2, 3, reset="middle"), "reset must be one of 'after', 'before', got 'middle'"),
    (
        lambda: GRUCell(3, 5)(torch.ones(2, 4), torch.ones(2, 5)),
        "x must be [batch d_input] with d_input = 3, got [2, 4]",
    ),
    (
        lambda: GRUCell(3, 5)(torch.ones(2, 3), torch.ones(2, 3)),
        "h must be [batch d_state] with batch = 2, d_state = 5, got [2, 3]",
    ),
    (
        lambda: GRUCell(3, 5)(torch.ones(2, 3), torch.ones(1, 5)),
        "h must be [batch d_state] with batch = 2, d_state = 5, got [1, 5]",
    ),
    (lambda: GRU(2, 3, "middle"), "reset must be one of 'after', 'before', got 'middle'"),
    (
        lambda: GRU(3, 5)(torch.ones(2, 3)),
        "x must be [batch token d_input] with d_input = 3, got [2, 3]",
    ),
    (lambda: GRU(3, 5)(torch.ones(2, 0, 3)), "tokens must be a whole number of at least 1, got 0"),
    (
        lambda: GRU(3, 5).load_torch(torch.nn.GRU(3, 4)),
        "gru must have the weights of this one, got GRU(3, ",
    ),
    (
        lambda: GRU(3, 5).load_torch(torch.nn.GRU(3, 5, bias=False)),
        "gru must have the weights of this one, got GRU(3, ",
    ),
    (
        lambda: GRU(3, 5).load_torch(torch.nn.GRU(3, 5), backward=True),
        "gru must have the weights of this one, got GRU(3, ",
    ),
    (lambda: Encoder(VOCAB, 0), "d_model must be a whole number of at least 1, got 0"),
    (lambda: Encoder(VOCAB, 6, n_layers=0), "n_layers must be a whole number of at least 1, got 0"),
    (lambda: Encoder(VOCAB, 7, two_way=True), "d_model must be even for two directions, got 7"),
    (lambda: model().read(TOKENS[0]), "source must be [batch token], got [3]"),
    (lambda: model().read(TOKENS[:0]), "source must hold at least one token, got [0, 3]"),
    (lambda: model().read(TOKENS[:, :0]), "source must hold at least one token, got [2, 0]"),
    (
        lambda: model().read(TOKENS.float()),
        "source must be token ids, whole numbers, got torch.float32",
    ),
    (lambda: model().read(TOKENS + 9), "source must be token ids in 0..10, got 16"),
    (lambda: model().read(TOKENS - 1), "source must be token ids in 0..10, got -1"),
    (
        lambda: model().read(TOKENS.flip(1)),
        "source must have its padding at the end, got padding before a word",
    ),
    (
        lambda: Decoder(VOCAB, 6, n_layers=-5),
        "n_layers must be a whole number of at least 1, got -5",
    ),
    (lambda: Decoder(VOCAB, 0), "d_model must be a whole number of at least 1, got 0"),
    (lambda: Decoder(VOCAB, 6, "dot"), "score must be a Score of attnbook.model.scores, got 'dot'"),
    (
        lambda: Decoder(VOCAB, 6, DotScore),
        "score must be a Score of attnbook.model.scores, got <class",
    ),
    (
        lambda: LuongDecoder(VOCAB, 6, None),
        "score must be a Score of attnbook.model.scores, got None",
    ),
    (
        lambda: RNNsearchDecoder(VOCAB, 6, None),
        "score must be a Score of attnbook.model.scores, got None",
    ),
    (
        lambda: RNNsearchDecoder(VOCAB, 7, DotScore()),
        "d_model must be even for two directions, got 7",
    ),
    (
        lambda: MultiHeadDecoder(VOCAB, 6, 0),
        "n_heads must be a whole number of at least 1, got 0",
    ),
    (lambda: MultiHeadDecoder(VOCAB, 6, 4), "n_heads must divide d_model, 6, got 4"),
    (
        lambda: MultiHeadDecoder(VOCAB, 6, 2)(TARGET, MEMORY._replace(last=None)),
        "memory must have each layer's last state, got None",
    ),
    (
        lambda: read(MEMORY._replace(last=None)),
        "memory must have each layer's last state, got None",
    ),
    (
        lambda: read(MEMORY._replace(last=MEMORY.last[:, :0])),
        "last must be [batch n_layers d_model]",
    ),
    (lambda: read(MEMORY._replace(last=MEMORY.last[:1])), "last must be [batch n_layers d_model]"),
    (
        lambda: read(MEMORY._replace(states=MEMORY.states[..., 1:])),
        "states must be [batch source d_model]",
    ),
    (lambda: read(MEMORY._replace(mask=MEMORY.mask[:, 1:])), "mask must be [#... key]"),
    (lambda: read(MEMORY, TARGET[:1]), "target must be [batch token] with batch = 2, got [1, 4]"),
    (lambda: model()(TOKENS, TARGET[0]), "target must be [batch token], got [4]"),
    (lambda: model()(TOKENS, TARGET[:, :0]), "target must hold at least one token, got [2, 0]"),
    (lambda: model()(TOKENS, TARGET + 9), "target must be token ids in 0..10, got 16"),
    (
        lambda: model()(TOKENS, TARGET.float()),
        "target must be token ids, whole numbers, got torch.float32",
    ),
    (
        lambda: model()(TOKENS, LEFT),
        "target must have its padding at the end, got padding before a word",
    ),
    (
        lambda: model()(TOKENS[:1], TARGET),
        "target must be [batch token] with batch = 1, got [2, 4]",
    ),
    (lambda: step(TARGET[:, :0]), "tokens must hold at least one token, got [2, 0]"),
    (lambda: step(TARGET[0]), "tokens must be [batch token], got [4]"),
    (lambda: step(TARGET[:1]), "tokens must be [batch token] with batch = 2, got [1, 4]"),
    (lambda: step(TARGET + 9), "tokens must be token ids in 0..10, got 16"),
    (lambda: model().loss(Pairs(TOKENS, TARGET), -0.1), "smoothing must lie in 0..1, got -0.1"),
    (lambda: model().loss(Pairs(TOKENS, TARGET), 1.5), "smoothing must lie in 0..1, got 1.5"),
    (lambda: model().loss(Pairs(TOKENS, TARGET), NAN), "smoothing must lie in 0..1, got nan"),
    (lambda: model().loss(Pairs(TOKENS, TARGET[:, :1])), "target must hold"),
    (
        lambda: model().loss(Pairs(TOKENS, TARGET[:1])),
        "target must be [batch token] with batch = 2, got [1, 3]",
    ),
    (
        lambda: model().translate(TOKENS, max_len=0),
        "max_len must be a whole number of at least 1, got 0",
    ),
    (lambda: model().translate(TOKENS, beam=0), "beam must be a whole number of at least 1, got 0"),
    (
        lambda: model().translate(TOKENS, length_penalty=NAN),
        "length_penalty must be finite, at least 0, got nan",
    ),
    (lambda: model().translate(TOKENS[:0]), "source must hold at least one token, got [0, 3]"),
    (
        lambda: Seq2Seq(Encoder(VOCAB, 6), Decoder(VOCAB, 6, n_layers=2)),
        "decoder must have the sizes of encoder, {'d_model': 6, 'n_layers': 1}, got",
    ),
    (lambda: Seq2Seq(Encoder(VOCAB, 6), Decoder(VOCAB, 4)), "got {'d_model': 4, 'n_layers': 1}"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
