"""Sequence to sequence with GRUs: cell, encoder, decoder, greedy decoding."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnbook.attention import Score, attend
from attnbook.data import BOS, EOS, PAD, Batch
from attnbook.masks import padding_mask


class GRUCell(nn.Module):
    """One step of a gated recurrent unit, written from its equations.

        r  = sigmoid(W_r x + b_r + U_r h + c_r)          reset gate
        z  = sigmoid(W_z x + b_z + U_z h + c_z)          update gate
        n  = tanh(W_n x + b_n + r * (U_n h + c_n))       proposal, reset="after"
        n  = tanh(W_n x + b_n + U_n (r * h) + c_n)       proposal, reset="before"
        h' = (1 - z) * n + z * h

    with x `[d_input]`, h `[d_state]`, every W `[d_state d_input]`, U `[d_state d_state]`, b and c
    `[d_state]`, and * elementwise.

    Args:
        d_input: size of x.
        d_state: size of h.
        reset: where the reset gate acts: "after" the matrix product, as PyTorch and cuDNN do, or
            "before" it, as in the paper.

    The parameters have the names and layout of `torch.nn.GRUCell` (gates stacked in the order
    r, z, n), so that its `state_dict` can be loaded.

    Raises:
        ValueError: if `reset` is neither "after" nor "before".

    Source: Cho et al. 2014, equations 5 to 8 (reset "before"); the documentation of `torch.nn.GRU`
    (reset "after").
    """

    def __init__(self, d_input: int, d_state: int, reset: str = "after"):
        super().__init__()
        if reset not in ("after", "before"):
            raise ValueError(f'reset must be "after" or "before", got {reset!r}')
        self.reset = reset
        bound = d_state**-0.5
        self.weight_ih = nn.Parameter(torch.empty(3 * d_state, d_input).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(3 * d_state, d_state).uniform_(-bound, bound))
        self.bias_ih = nn.Parameter(torch.empty(3 * d_state).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(3 * d_state).uniform_(-bound, bound))

    def forward(
        self, x: Float[Tensor, "batch d_input"], h: Float[Tensor, "batch d_state"]
    ) -> Float[Tensor, "batch d_state"]:
        """The next state."""
        x_r, x_z, x_n = (x @ self.weight_ih.T + self.bias_ih).chunk(3, dim=-1)
        h_r, h_z, h_n = (h @ self.weight_hh.T + self.bias_hh).chunk(3, dim=-1)
        r = torch.sigmoid(x_r + h_r)
        z = torch.sigmoid(x_z + h_z)
        if self.reset == "before":
            u_n, c_n = self.weight_hh.chunk(3)[2], self.bias_hh.chunk(3)[2]
            n = torch.tanh(x_n + (r * h) @ u_n.T + c_n)
        else:
            n = torch.tanh(x_n + r * h_n)
        return (1 - z) * n + z * h


class GRU(nn.Module):
    """A GRU cell run over a sequence: h_t = GRUCell(x_t, h_(t-1)), h_0 = 0.

    Args:
        d_input: size of each x_t.
        d_state: size of each h_t.
        reset: as for `GRUCell`.
    """

    def __init__(self, d_input: int, d_state: int, reset: str = "after"):
        super().__init__()
        self.cell = GRUCell(d_input, d_state, reset)

    def load_torch(self, gru: nn.GRU, *, backward: bool = False) -> "GRU":
        """Copy the weights of a `torch.nn.GRU`'s first layer; `backward`: of its direction that
        reads from the end. Returns self."""
        end = "_l0_reverse" if backward else "_l0"
        weights = gru.state_dict().items()
        self.cell.load_state_dict(
            {name.removesuffix(end): value for name, value in weights if name.endswith(end)}
        )
        return self

    def forward(
        self, x: Float[Tensor, "batch token d_input"]
    ) -> Float[Tensor, "batch token d_state"]:
        """All states h_1 .. h_T."""
        h = x.new_zeros(x.shape[0], self.cell.weight_hh.shape[1])
        states = []
        for x_t in x.unbind(1):
            h = self.cell(x_t, h)
            states.append(h)
        return torch.stack(states, dim=1)


class Memory(NamedTuple):
    """What an encoder hands to a decoder.

    Attributes:
        states: `[batch source d_model]` the top layer's state at each word, zeros at padding.
        last: `[layer batch d_model]` each layer's state when all is read: after the last word, and
            in a two-way encoder that joined with the backward state at the first word.
        mask: `[batch source]` True at words, False at padding.
    """

    states: Float[Tensor, "batch source d_model"]
    last: Float[Tensor, "layer batch d_model"]
    mask: Bool[Tensor, "batch source"]


class Encoder(nn.Module):
    """Embedding and GRU: one state h_j for each word x_j.

        h_j = GRU(x_j, h_(j-1))                                          one way
        h_j = [GRU(x_j, forward h_(j-1)); GRU'(x_j, backward h_(j+1))]   two ways

    with x_j and h_j `[d_model]`. With two ways each direction has half the numbers, so that h_j
    has the same size.

    Args:
        vocab_size: number of source tokens.
        d_model: size of embeddings and states.
        two_way: whether a second GRU reads from the end of the sentence.
        n_layers: GRUs on top of each other; each reads the states of the one below.

    Raises:
        ValueError: if `two_way` and `d_model` is odd, or if a source has padding before a word.

    Source: Cho et al. 2014, section 2.2; Sutskever et al. 2014, section 2 (layers); Bahdanau et
    al. 2015, section 3.2 (two ways).
    """

    def __init__(self, vocab_size: int, d_model: int, *, two_way: bool = False, n_layers: int = 1):
        super().__init__()
        if two_way and d_model % 2:
            raise ValueError(f"d_model must be even for two directions, got {d_model}")
        self.d_model, self.n_layers = d_model, n_layers
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.rnn = nn.GRU(
            d_model,
            d_model // 2 if two_way else d_model,
            n_layers,
            bidirectional=two_way,
            batch_first=True,
        )

    def forward(self, source: Int[Tensor, "batch source"]) -> Memory:
        """Read the sentences; padding at the end changes nothing, only padding gives zeros."""
        mask = padding_mask(source)
        if (mask[:, 1:] & ~mask[:, :-1]).any():
            raise ValueError("source must have its padding at the end, got padding before a word")
        lengths = mask.sum(1)
        packed = pack_padded_sequence(
            self.embedding(source), lengths.clamp(min=1).cpu(), True, enforce_sorted=False
        )
        states, last = self.rnn(packed)
        states, _ = pad_packed_sequence(states, True, total_length=source.shape[1])
        # [layer*direction batch d] -> [layer batch direction*d]
        last = last.unflatten(0, (self.rnn.num_layers, -1)).transpose(1, 2).flatten(2)
        return Memory(states * mask[:, :, None], last * (lengths > 0)[:, None], mask)


class Step(NamedTuple):
    """What one step of a decoder gives.

    Attributes:
        state: `[layer batch d_model]` the next state of each layer.
        predictor: `[batch d_model]` the vector that the next token is predicted from.
        weights: `[batch source]` the attention weights, or None for a decoder without attention.
    """

    state: Float[Tensor, "layer batch d_model"]
    predictor: Float[Tensor, "batch d_model"]
    weights: Float[Tensor, "batch source"] | None


class Decoder(nn.Module):
    """GRU decoder that starts from the encoder's last state and may attend to all of them.

        s_0 = memory.last, which is h_T after a one-way encoder
        s_t = GRU(y_(t-1), s_(t-1))                              without a score
        s_t = GRU([y_(t-1); c_t], s_(t-1))                       with one, where
        c_t = sum_j alpha_tj h_j,   alpha_t = softmax_j score(s_(t-1), h_j)
        P(y_t | x, y before t) = softmax(W s_t + b)

    with y_(t-1) the embedding `[d_model]` of the token before, s_t `[d_model]`, h_j and c_t
    `[d_model]`, W `[vocab_size d_model]`. With several layers each has a state of its own, which
    starts from the same layer of the encoder; layer l reads the state of layer l-1, and the top
    layer's state is the s_t that asks and predicts.

    Args:
        vocab_size: number of target tokens.
        d_model: size of embeddings and of the states of encoder and decoder.
        score: a score function of `attnbook.attention`, or None.
        n_layers: GRU cells on top of each other, as many as the encoder has.

    Source: Sutskever et al. 2014, section 2 (without a score); Cho et al. 2014, section 2.2
    (`LastKeyScore`); Bahdanau et al. 2015, section 3.1 (`AdditiveScore`; there y_(t-1) and c_t also
    go to the prediction, through a maxout layer, and s_0 is a layer over the backward state alone).
    """

    reads_context = True  # whether the lowest cell reads [y_(t-1); c_t], if there is a score

    def __init__(
        self, vocab_size: int, d_model: int, score: Score | None = None, *, n_layers: int = 1
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.score = score
        d_input = 2 * d_model if score is not None and self.reads_context else d_model
        sizes = [d_input] + [d_model] * (n_layers - 1)
        self.cells = nn.ModuleList(nn.GRUCell(size, d_model) for size in sizes)
        self.out = nn.Linear(d_model, vocab_size)

    def start(self, memory: Memory) -> Float[Tensor, "layer batch d_model"]:
        """The state before the first step."""
        return memory.last

    def prepare(self, memory: Memory) -> Tensor | None:
        """What the score computes of the encoder's states once a sentence."""
        return None if self.score is None else self.score.prepare(memory.states)

    def move(
        self, x: Float[Tensor, "batch d_input"], state: Float[Tensor, "layer batch d_model"]
    ) -> Float[Tensor, "layer batch d_model"]:
        """The next state of each layer when the lowest one reads x."""
        layers = []
        for cell, s in zip(self.cells, state, strict=True):
            x = cell(x, s)
            layers.append(x)
        return torch.stack(layers)

    def step(
        self,
        token: Int[Tensor, " batch"],
        state: Float[Tensor, "layer batch d_model"],
        memory: Memory,
        prepared: Tensor | None,
    ) -> Step:
        """One step: look, then move."""
        x, weights = self.embedding(token), None
        if self.score is not None:
            context, weights = attend(self.score(state[-1], prepared), memory.states, memory.mask)
            x = torch.cat([x, context], dim=-1)
        state = self.move(x, state)
        return Step(state, state[-1], weights)

    def forward(
        self, target: Int[Tensor, "batch target"], memory: Memory
    ) -> tuple[Float[Tensor, "batch target vocab"], Float[Tensor, "batch target source"] | None]:
        """Teacher forcing: logits for the token after each given one, and the weights if any."""
        prepared, state = self.prepare(memory), self.start(memory)
        predictors, weights = [], []
        for token in target.unbind(1):
            state, predictor, row = self.step(token, state, memory, prepared)
            predictors.append(predictor)
            weights.append(row)
        logits = self.out(torch.stack(predictors, dim=1))
        return logits, None if self.score is None else torch.stack(weights, dim=1)


class LuongDecoder(Decoder):
    """GRU decoder that moves first, then attends, and predicts from context and state together.

        s_0 = memory.last
        s_t = GRU(y_(t-1), s_(t-1))
        c_t = sum_j alpha_tj h_j,   alpha_t = softmax_j score(s_t, h_j)
        a_t = tanh(W_c [c_t; s_t])
        P(y_t | x, y before t) = softmax(W a_t + b)

    with W_c `[d_model 2*d_model]`, without bias, and all else as in `Decoder`: there the query is
    s_(t-1) and the context is read by the GRU, here the query is s_t and the GRU never sees the
    context.

    Args:
        vocab_size: number of target tokens.
        d_model: size of embeddings and of the states of encoder and decoder.
        score: a score function of `attnbook.attention`.
        n_layers: GRU cells on top of each other, as many as the encoder has.

    Source: Luong et al. 2015, section 3, equations 5 to 7 (global attention without input feeding;
    there with LSTMs, and no b).
    """

    reads_context = False
    score: Score

    def __init__(self, vocab_size: int, d_model: int, score: Score, *, n_layers: int = 1):
        super().__init__(vocab_size, d_model, score, n_layers=n_layers)
        self.combine = nn.Linear(2 * d_model, d_model, bias=False)

    def step(
        self,
        token: Int[Tensor, " batch"],
        state: Float[Tensor, "layer batch d_model"],
        memory: Memory,
        prepared: Tensor | None,
    ) -> Step:
        """One step: move, then look."""
        state = self.move(self.embedding(token), state)
        context, weights = attend(self.score(state[-1], prepared), memory.states, memory.mask)
        a = torch.tanh(self.combine(torch.cat([context, state[-1]], dim=-1)))
        return Step(state, a, weights)


class Translation(NamedTuple):
    """What greedy decoding gives.

    Attributes:
        tokens: `[batch target]` up to and with the end token, padding after it.
        logits: `[batch target vocab]` the scores each token was chosen from.
        weights: `[batch target source]`, or None for a decoder without attention.
    """

    tokens: Int[Tensor, "batch target"]
    logits: Float[Tensor, "batch target vocab"]
    weights: Float[Tensor, "batch target source"] | None


class Seq2Seq(nn.Module):
    """Encoder and decoder: P(y | x) = product over t of P(y_t | x, y before t).

    Args:
        encoder: an `Encoder`, or another module that gives a `Memory` and has its `d_model` and
            `n_layers`.
        decoder: reads it.

    Raises:
        ValueError: if encoder and decoder differ in `d_model` or in `n_layers`.
    """

    def __init__(self, encoder: nn.Module, decoder: Decoder):
        super().__init__()
        sizes = [
            {"d_model": encoder.d_model, "n_layers": encoder.n_layers},
            {"d_model": decoder.embedding.embedding_dim, "n_layers": len(decoder.cells)},
        ]
        if sizes[0] != sizes[1]:
            raise ValueError(f"decoder must have the sizes of encoder, {sizes[0]}, got {sizes[1]}")
        self.encoder = encoder
        self.decoder = decoder

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> tuple[Float[Tensor, "batch target vocab"], Float[Tensor, "batch target source"] | None]:
        """Logits for the token after each token of `target`, and the attention weights if any."""
        return self.decoder(target, self.encoder(source))

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Mean cross-entropy in nats a target token, teacher forced; padding does not count."""
        logits, _ = self(batch.source, batch.target[:, :-1])
        return cross_entropy(logits.transpose(1, 2), batch.target[:, 1:], ignore_index=PAD)

    @torch.no_grad()
    def translate(self, source: Int[Tensor, "batch source"], max_len: int = 32) -> Translation:
        """Greedy decoding: at each step the likeliest word, until the end token is the likeliest.

        Padding and the start token are never chosen.

        Args:
            source: `[batch source]` token ids.
            max_len: stop after this many tokens.
        """
        memory = self.encoder(source)
        prepared, state = self.decoder.prepare(memory), self.decoder.start(memory)
        token = torch.full_like(source[:, 0], BOS)
        done = torch.zeros_like(token, dtype=torch.bool)
        tokens, logits, weights = [], [], []
        for _ in range(max_len):
            state, predictor, row = self.decoder.step(token, state, memory, prepared)
            logits.append(self.decoder.out(predictor))
            token = (logits[-1][:, EOS:].argmax(-1) + EOS).masked_fill(done, PAD)
            tokens.append(token)
            weights.append(row)
            done |= token == EOS
            if done.all():
                break
        return Translation(
            torch.stack(tokens, dim=1),
            torch.stack(logits, dim=1),
            None if self.decoder.score is None else torch.stack(weights, dim=1),
        )
