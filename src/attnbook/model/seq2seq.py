"""Sequence to sequence: GRU cell, encoder, decoders, and the two of them as a translator."""

from math import inf
from typing import Any, Literal, NamedTuple, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnbook.checks import (
    check_choice,
    check_flags,
    check_ids,
    check_kind,
    check_range,
    check_shapes,
    check_whole,
    refuse,
)
from attnbook.model.attention import MultiHeadAttention, ScoredAttention
from attnbook.model.decoding import Hypotheses, State, beam_search, evaluating
from attnbook.model.masks import padding_mask
from attnbook.model.scores import Score
from attnbook.text.vocabulary import IGNORED, Pairs, Vocabulary

Reset = Literal["after", "before"]


class GRUCell(nn.Module):
    """One step of a gated recurrent unit, written from its equations.

        r  = sigmoid(W_r x + b_r + U_r h + b'_r)          reset gate
        z  = sigmoid(W_z x + b_z + U_z h + b'_z)          update gate
        g  = tanh(W_g x + b_g + r * (U_g h + b'_g))       proposal, reset="after"
        g  = tanh(W_g x + b_g + U_g (r * h) + b'_g)       proposal, reset="before"
        h' = (1 - z) * g + z * h

    with x `[d_input]`, h `[d_state]`, every W `[d_state d_input]`, U `[d_state d_state]`, b and b'
    `[d_state]`, and * elementwise.

    Args:
        d_input: size of x.
        d_state: size of h.
        reset: where the reset gate acts: "after" the matrix product, as PyTorch and cuDNN do, or
            "before" it, as in the paper.

    The parameters have the names and layout of `torch.nn.GRUCell` (gates stacked in the order
    r, z, g), so that its `state_dict` can be loaded.

    Raises:
        ValueError: if a size is below 1, or `reset` is another word; in `forward`, if x or h is of
            another size.

    Source: Cho et al. 2014, equations 5 to 8 (reset "before"); the documentation of `torch.nn.GRU`
    (reset "after").

    In other libraries: `torch.nn.GRUCell`; Keras has both kinds, `GRU(reset_after=...)`.
    """

    def __init__(self, d_input: int, d_state: int, reset: Reset = "after"):
        super().__init__()
        check_whole(1, d_input=d_input, d_state=d_state)
        check_choice(get_args(Reset), reset=reset)
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
        d_state, d_input = self.weight_hh.shape[1], self.weight_ih.shape[1]
        check_shapes(
            x=(x, "batch d_input"), h=(h, "batch d_state"), d_input=d_input, d_state=d_state
        )
        x_r, x_z, x_g = (x @ self.weight_ih.T + self.bias_ih).chunk(3, dim=-1)
        h_r, h_z, h_g = (h @ self.weight_hh.T + self.bias_hh).chunk(3, dim=-1)
        r = torch.sigmoid(x_r + h_r)
        z = torch.sigmoid(x_z + h_z)
        if self.reset == "before":
            u_g, b_g = self.weight_hh.chunk(3)[2], self.bias_hh.chunk(3)[2]
            g = torch.tanh(x_g + (r * h) @ u_g.T + b_g)
        else:
            g = torch.tanh(x_g + r * h_g)
        return (1 - z) * g + z * h


class GRU(nn.Module):
    """A GRU cell run over a sequence: h_t = GRUCell(x_t, h_(t-1)), h_0 = 0.

    Args:
        d_input: size of each x_t.
        d_state: size of each h_t.
        reset: as for `GRUCell`.

    In other libraries: `torch.nn.GRU(batch_first=True)`, whose first result is this one.
    """

    def __init__(self, d_input: int, d_state: int, reset: Reset = "after"):
        super().__init__()
        self.cell = GRUCell(d_input, d_state, reset)

    def load_torch(self, gru: nn.GRU, *, backward: bool = False) -> "GRU":
        """Copy the weights of a `torch.nn.GRU`'s first layer; `backward`: of its direction that
        reads from the end. Returns self."""
        check_flags(backward=backward)
        check_choice(("after",), reset=self.cell.reset)  # PyTorch's
        end = "_l0_reverse" if backward else "_l0"
        weights = gru.state_dict().items()
        try:
            self.cell.load_state_dict(
                {name.removesuffix(end): value for name, value in weights if name.endswith(end)}
            )
        except RuntimeError as error:
            raise ValueError(f"gru must have the weights of this one, got {gru}") from error
        return self

    def forward(
        self, x: Float[Tensor, "batch token d_input"]
    ) -> Float[Tensor, "batch token d_state"]:
        """All states h_1 .. h_T."""
        check_shapes(x=(x, "batch token d_input"), d_input=self.cell.weight_ih.shape[1])
        check_whole(1, tokens=x.shape[1])
        h = x.new_zeros(x.shape[0], self.cell.weight_hh.shape[1])
        states = []
        for x_t in x.unbind(1):
            h = self.cell(x_t, h)
            states.append(h)
        return torch.stack(states, dim=1)


class Memory(NamedTuple):
    """What an encoder hands to a decoder.

    Attributes:
        states: `[batch source d_model]` the top layer's state at each word; of a GRU zeros at
            padding, of a Transformer anything.
        mask: `[batch source]` True at words, False at padding.
        last: `[batch layer d_model]` each layer's state when all is read: after the last word, and
            in a two-way encoder that joined with the backward state at the first word. None where
            nothing is recurrent.

    In other libraries: `encoder_outputs` of `transformers`, with its `attention_mask`.
    """

    states: Float[Tensor, "batch source d_model"]
    mask: Bool[Tensor, "batch source"]
    last: Float[Tensor, "batch layer d_model"] | None = None


def _check_even(d_model: int) -> None:
    if d_model % 2:
        raise ValueError(f"d_model must be even for two directions, got {d_model}")


def _check_attends(score: Score | None) -> None:
    if score is None:
        raise ValueError("score must be a Score of attnbook.model.scores, got None")


class Encoder(nn.Module):
    """Embedding and GRU: one state h_j for each word x_j.

        h_j = GRU(x_j, h_(j-1))                                          one way
        h_j = [GRU(x_j, forward h_(j-1)); GRU'(x_j, backward h_(j+1))]   two ways

    with x_j and h_j `[d_model]`. With two ways each direction has half the numbers, so that h_j
    has the same size.

    Args:
        vocab: the source's vocabulary.
        d_model: size of embeddings and states.
        two_way: whether a second GRU reads from the end of the sentence.
        n_layers: GRUs on top of each other; each reads the states of the one below.

    Raises:
        ValueError: if a size is below 1, or `two_way` and `d_model` is odd; in `forward`, if a
            source is no batch of token ids or has padding before a word.

    Source: Cho et al. 2014, section 2.2; Sutskever et al. 2014, section 2 (layers); Bahdanau et
    al. 2015, section 3.2 (two ways).

    In other libraries: `nn.Embedding` and `nn.GRU(bidirectional=two_way)` of PyTorch.
    """

    def __init__(
        self, vocab: Vocabulary, d_model: int, *, two_way: bool = False, n_layers: int = 1
    ):
        super().__init__()
        check_kind(Vocabulary, vocab=vocab)
        check_whole(1, d_model=d_model, n_layers=n_layers)
        check_flags(two_way=two_way)
        if two_way:
            _check_even(d_model)
        self.vocab, self.d_model, self.n_layers = vocab, d_model, n_layers
        self.embedding = nn.Embedding(len(vocab), d_model)
        size = d_model // 2 if two_way else d_model
        self.rnn = nn.GRU(d_model, size, n_layers, bidirectional=two_way, batch_first=True)

    def forward(self, source: Int[Tensor, "batch source"]) -> Memory:
        """Read the sentences; padding at the end changes nothing, only padding gives zeros."""
        mask = word_mask("source", source, self.vocab)
        lengths = mask.sum(1)
        packed = pack_padded_sequence(
            self.embedding(source), lengths.clamp(min=1).cpu(), True, enforce_sorted=False
        )
        states, last = self.rnn(packed)
        states, _ = pad_packed_sequence(states, True, total_length=source.shape[1])
        # [layer*direction batch d] -> [batch layer direction*d]
        last = last.unflatten(0, (self.rnn.num_layers, -1)).permute(2, 0, 1, 3).flatten(2)
        return Memory(states * mask[:, :, None], mask, last * (lengths > 0)[:, None, None])


def word_mask(
    name: str, tokens: Int[Tensor, "batch token"], vocab: Vocabulary
) -> Bool[Tensor, "batch token"]:
    """True at words, False at padding, which must stand at the end.

    Raises:
        ValueError: names the argument, if it is no batch of token ids with some words, or has
            padding before a word.
    """
    check_ids(name, tokens, len(vocab))
    mask = padding_mask(tokens, vocab.pad)
    late = (mask[:, 1:] & ~mask[:, :-1]).any()
    refuse(late, f"{name} must have its padding at the end, got padding before a word")
    return mask


class Decoder(nn.Module):
    """GRU decoder that starts from the encoder's last state and may attend to all of them.

        s_0 = memory.last, which is h_T after a one-way encoder
        s_t = GRU(y_(t-1), s_(t-1))                              without a score
        s_t = GRU([y_(t-1); c_t], s_(t-1))                       with one, where
        c_t = sum_j alpha_tj h_j,   alpha_t = softmax_j score(s_(t-1), h_j)
        P(y_t | x, y before t) = softmax(out(s_t))

    with y_(t-1) the embedding `[d_model]` of the token before, s_t `[d_model]`, h_j and c_t
    `[d_model]`, out a linear layer to `[vocab_size]`. With several layers each has a state of its
    own, which starts from the same layer of the encoder; layer l reads the state of layer l-1, and
    the top layer's state is the s_t that asks and predicts.

    Args:
        vocab: the target's vocabulary.
        d_model: size of embeddings and of the states of encoder and decoder.
        score: a score function of `attnbook.model.scores`, or None. `attention` holds it.
        n_layers: GRU cells on top of each other, as many as the encoder has.

    Raises:
        ValueError: if a size is below 1, or the score is no `Score`; in `start`, `step` and
            `forward`, if memory, state or tokens do not fit.

    Source: Sutskever et al. 2014, section 2 (without a score); Cho et al. 2014, section 2.2
    (`LastKeyScore`); Bahdanau et al. 2015, section 3.1 (`AdditiveScore`; all of that model is in
    `RNNsearchDecoder`).

    In other libraries: `BahdanauAttention` in an `AttentionWrapper` of TensorFlow Addons.
    """

    reads_context = True  # whether the lowest cell reads [y_(t-1); c_t], if there is a score

    def __init__(
        self, vocab: Vocabulary, d_model: int, score: Score | None = None, *, n_layers: int = 1
    ):
        super().__init__()
        check_kind(Vocabulary, vocab=vocab)
        check_whole(1, d_model=d_model, n_layers=n_layers)
        self.vocab, self.d_model, self.n_layers = vocab, d_model, n_layers
        self.embedding = nn.Embedding(len(vocab), d_model)
        self.attention = None if score is None else ScoredAttention(score)
        d_input = 2 * d_model if self.attention and self.reads_context else d_model
        sizes = [d_input] + [d_model] * (n_layers - 1)
        self.cells = nn.ModuleList(nn.GRUCell(size, d_model) for size in sizes)
        self.out = nn.Linear(d_model, len(vocab))

    def start(self, memory: Memory) -> State:
        """What the first step begins with: each layer's state, the memory, and its keys."""
        if memory.last is None:
            raise ValueError("memory must have each layer's last state, got None")
        sizes = {"n_layers": self.n_layers, "d_model": self.d_model}
        last = (memory.last, "batch n_layers d_model")
        check_shapes(states=(memory.states, "batch source d_model"), last=last, **sizes)
        prepared = None if self.attention is None else self.attention.prepare(memory.states)
        return memory.last, memory, prepared

    def move(
        self, x: Float[Tensor, "batch d_input"], hidden: Float[Tensor, "batch layer d_model"]
    ) -> Float[Tensor, "batch layer d_model"]:
        """The next state of each layer when the lowest one reads x."""
        layers = []
        for cell, s in zip(self.cells, hidden.unbind(1), strict=True):
            x = cell(x, s)
            layers.append(x)
        return torch.stack(layers, dim=1)

    def look(self, token: Int[Tensor, " batch"], state: State) -> Float[Tensor, "batch d_input"]:
        """What the lowest cell reads: [y_(t-1); c_t], or y_(t-1) alone without a score."""
        hidden, memory, prepared = state
        x = self.embedding(token)
        if self.attention is None:
            return x
        context = self.attention(hidden[:, -1], memory.states, prepared, memory.mask)
        return torch.cat([x, context], dim=-1)

    def advance(
        self, token: Int[Tensor, " batch"], state: State
    ) -> tuple[Float[Tensor, "batch d_model"], State]:
        """One token: look, then move. Gives what the next token is predicted from, and the state.

        Args:
            token: `[batch]` the one before.
            state: from `start` or the step before.
        """
        hidden, *read = state
        hidden = self.move(self.look(token, state), hidden)
        return hidden[:, -1], (hidden, *read)

    def step(
        self, tokens: Int[Tensor, "batch token"], state: State
    ) -> tuple[Float[Tensor, "batch vocab"], State]:
        """Read tokens one after another: scores of the token after the last one, and the state."""
        check_ids("tokens", tokens, len(self.vocab))
        check_shapes(state=(state[0], "batch layer d_model"), tokens=(tokens, "batch token"))
        for token in tokens.unbind(1):
            predictor, state = self.advance(token, state)
        return self.out(predictor), state

    def forward(
        self, target: Int[Tensor, "batch target"], memory: Memory
    ) -> Float[Tensor, "batch target vocab"]:
        """Teacher forcing: scores of the token after each given one."""
        check_ids("target", target, len(self.vocab))
        if self.vocab.pad != self.vocab.bos:  # else the start looks like padding before a word
            word_mask("target", target, self.vocab)
        state, predictors = self.start(memory), []
        check_shapes(states=(memory.states, "batch source d_model"), target=(target, "batch token"))
        for token in target.unbind(1):
            predictor, state = self.advance(token, state)
            predictors.append(predictor)
        return self.out(torch.stack(predictors, dim=1))


class RNNsearchDecoder(Decoder):
    """The decoder of RNNsearch: it starts from the backward states, and predicts by a deep output.

        s_0 = tanh(W_s b_1)
        c_t = sum_j alpha_tj h_j,   alpha_t = softmax_j score(s_(t-1), h_j)
        u_t = W_u [s_(t-1); y_(t-1); c_t] + b_u
        m_t = [max(u_t1, u_t2); max(u_t3, u_t4); ...]            a maxout layer
        P(y_t | x, y before t) = softmax(W m_t + b)
        s_t = GRU([y_(t-1); c_t], s_(t-1))

    with b_1 `[d_model/2]` the backward state at the first word, W_s `[d_model d_model/2]`, u_t
    `[2*d_model]`, W_u `[2*d_model 3*d_model]` and b_u in `deep` (in the paper [U V C]), m_t
    `[d_model]`, and all else as in `Decoder`. W_s is the same for every layer.

    Args:
        vocab: the target's vocabulary.
        d_model: size of embeddings and of the states of encoder and decoder.
        score: a score function of `attnbook.model.scores`, `AdditiveScore` in the paper.
        n_layers: GRU cells on top of each other, as many as the encoder has; 1 in the paper.

    The encoder must be two-way.

    Raises:
        ValueError: as `Decoder` does, and if there is no score or d_model is odd.

    Source: Bahdanau et al. 2015, appendix A.2.2 (whose section 3.1 predicts from s_t, not s_(t-1);
    there 1,000 numbers a direction and a state, 620 an embedding, 500 for the maxout layer, and
    GRUs with the reset "before").

    In other libraries: GroundHog's `RNNsearch` is the authors' own.
    """

    def __init__(self, vocab: Vocabulary, d_model: int, score: Score, *, n_layers: int = 1):
        super().__init__(vocab, d_model, score, n_layers=n_layers)
        _check_attends(score)
        _check_even(d_model)
        self.begin = nn.Linear(d_model // 2, d_model, bias=False)
        self.deep = nn.Linear(3 * d_model, 2 * d_model)

    def start(self, memory: Memory) -> State:
        """What the first step begins with; of `memory.last` the backward halves are read."""
        last, *read = super().start(memory)
        return torch.tanh(self.begin(last[..., self.d_model // 2 :])), *read

    def advance(
        self, token: Int[Tensor, " batch"], state: State
    ) -> tuple[Float[Tensor, "batch d_model"], State]:
        """One token: look, predict from what the step begins with, then move."""
        hidden, *read = state
        x = self.look(token, state)
        u = self.deep(torch.cat([hidden[:, -1], x], dim=-1))
        m = u.unflatten(-1, (-1, 2)).amax(-1)  # [batch d_model]
        return m, (self.move(x, hidden), *read)


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
        vocab: the target's vocabulary.
        d_model: size of embeddings and of the states of encoder and decoder.
        score: a score function of `attnbook.model.scores`.
        n_layers: GRU cells on top of each other, as many as the encoder has.

    Raises:
        ValueError: as `Decoder` does, and if there is no score.

    Source: Luong et al. 2015, section 3, equations 5 to 7 (global attention without input feeding;
    there with LSTMs, and no b).

    In other libraries: `LuongAttention` in an `AttentionWrapper` of TensorFlow Addons.
    """

    reads_context = False

    def __init__(self, vocab: Vocabulary, d_model: int, score: Score, *, n_layers: int = 1):
        super().__init__(vocab, d_model, score, n_layers=n_layers)
        _check_attends(score)
        self.combine = nn.Linear(2 * d_model, d_model, bias=False)

    def advance(
        self, token: Int[Tensor, " batch"], state: State
    ) -> tuple[Float[Tensor, "batch d_model"], State]:
        """One token: move, then look."""
        hidden, memory, prepared = state
        hidden = self.move(self.embedding(token), hidden)
        assert self.attention is not None
        context = self.attention(hidden[:, -1], memory.states, prepared, memory.mask)
        a = torch.tanh(self.combine(torch.cat([context, hidden[:, -1]], dim=-1)))
        return a, (hidden, memory, prepared)


class MultiHeadDecoder(Decoder):
    """GRU decoder that looks at the encoder's states with several heads at once.

        s_t = GRU([y_(t-1); c_t], s_(t-1))
        c_t = [head_1 ... head_h] W^O,   head_l = sum_j alpha_tlj W_l^V h_j
        alpha_tl = softmax_j (W_l^Q s_(t-1) . W_l^K h_j / sqrt(d_head))

    with W_l^Q, W_l^K, W_l^V `[d_head d_model]` and W^O as in `MultiHeadAttention`, which `heads`
    is, and all else as in `Decoder`.

    Args:
        vocab: the target's vocabulary.
        d_model: size of embeddings and of the states of encoder and decoder.
        n_heads: number of heads, each of size d_model / n_heads.

    Raises:
        ValueError: as `Decoder` and `MultiHeadAttention` do.
    """

    def __init__(self, vocab: Vocabulary, d_model: int, n_heads: int):
        super().__init__(vocab, d_model)
        self.heads = MultiHeadAttention(d_model, n_heads)
        self.cells = nn.ModuleList([nn.GRUCell(2 * d_model, d_model)])

    def look(self, token: Int[Tensor, " batch"], state: State) -> Float[Tensor, "batch d_input"]:
        """What the cell reads: [y_(t-1); c_t]."""
        hidden, memory, _ = state
        context = self.heads(hidden[:, -1:], memory.states, mask=memory.mask[:, None])
        return torch.cat([self.embedding(token), context[:, 0]], dim=-1)


class Seq2Seq(nn.Module):
    """Encoder and decoder, a translator: P(y | x) = product over t of P(y_t | x, y before t).

    Args:
        encoder: an `Encoder`, or another module that gives a `Memory` and has its `d_model` and
            `n_layers`.
        decoder: reads it, by `forward(target, memory)`, `start(memory)` and `step(tokens, state)`.

    Raises:
        ValueError: if encoder and decoder differ in `d_model` or in `n_layers`.

    In other libraries: `EncoderDecoderModel` of `transformers`.
    """

    encoder: Any
    decoder: Any
    longest: float = inf  # how many tokens it can write

    def __init__(self, encoder: nn.Module, decoder: nn.Module):
        super().__init__()
        sizes = [{"d_model": m.d_model, "n_layers": m.n_layers} for m in (encoder, decoder)]
        if sizes[0] != sizes[1]:
            raise ValueError(f"decoder must have the sizes of encoder, {sizes[0]}, got {sizes[1]}")
        self.encoder = encoder
        self.decoder = decoder

    def read(self, source: Int[Tensor, "batch source"]) -> Memory:
        """What the encoder makes of the sentences."""
        return self.encoder(source)

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocab"]:
        """Scores of the token after each token of `target`."""
        return self.decoder(target, self.read(source))

    def loss(self, batch: Pairs, smoothing: float = 0.0) -> Float[Tensor, ""]:
        """Mean cross-entropy in nats a target token, teacher forced; padding does not count, and
        padding alone costs 0.

            loss = - sum_k q_k log P_k,   q_k = (1 - smoothing) [k = target] + smoothing / vocab

        Args:
            batch: sentences and their translations.
            smoothing: how much of the probability goes to all tokens, 0 to 1 (label smoothing).

        Raises:
            ValueError: if smoothing is not in 0 .. 1, or the batch does not fit the model.

        Source: Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4.
        """
        check_range(0, 1, smoothing=smoothing)
        logits, target = self(batch.source, batch.target[:, :-1]), batch.target[:, 1:]
        target = target.masked_fill(~self.decoder.vocab.written(target), IGNORED)
        loss = cross_entropy(logits.transpose(1, 2), target, label_smoothing=smoothing)
        return loss.where((target != IGNORED).any(), 0.0)

    def translate(
        self,
        source: Int[Tensor, "batch source"],
        max_len: int = 32,
        *,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> Hypotheses:
        """Translate by `beam_search`, without dropout; a beam of 1 is greedy decoding.

        Args:
            source: `[batch source]` token ids.
            max_len, beam, length_penalty: as for `beam_search`.

        Raises:
            ValueError: if learned positions are too few for max_len, or as `beam_search` does.
        """
        if max_len > self.longest:
            wanted = f"at most {self.longest}, as many as there are learned positions"
            raise ValueError(f"max_len must be {wanted}, got {max_len}")
        vocab, step = self.decoder.vocab, self.decoder.step
        with evaluating(self):
            state = self.decoder.start(self.read(source))
            bos = torch.full_like(source[:, :1], vocab.bos)
            return beam_search(
                step, state, bos, max_len, vocab, beam=beam, length_penalty=length_penalty
            )
