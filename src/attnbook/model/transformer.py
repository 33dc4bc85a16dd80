"""The Transformer: blocks put together as encoder, decoder, and encoder-decoder."""

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from attnbook.checks import (
    check_flags,
    check_ids,
    check_kind,
    check_mask,
    check_shapes,
    check_whole,
    numbers,
)
from attnbook.model.attention import Cache
from attnbook.model.block import Block, normalizer
from attnbook.model.config import TransformerConfig
from attnbook.model.decoding import Hypotheses, State, beam_search, evaluating
from attnbook.model.masks import padding_mask
from attnbook.model.positions import LearnedPositions, SinusoidalPositions, positions_of
from attnbook.model.sampling import PLAIN, Samples, Sampling, Seed, Stop, sample
from attnbook.model.seq2seq import Memory, Seq2Seq, word_mask
from attnbook.text.vocabulary import Vocabulary


class Stack(nn.Module):
    """Embedding, positions, and blocks on top of each other.

        x_0 = sqrt(d_model) E[token] + p + S[segment],   x_l = block_l(x_(l-1)),   l = 1 .. n_layers

    with E `[vocab_size d_model]`, whose numbers start with standard deviation 1 / sqrt(d_model), so
    that E can also be the output matrix (or with the configuration's `init_std`), and S
    `[n_segments d_model]`, where the configuration has segments. In "pre" order a last norm
    follows, as nothing has normalised the sum of all layers yet.

    Args:
        vocab_size: number of tokens.
        config: sizes and choices.
        cross: whether the blocks have cross-attention.

    Raises:
        ValueError: in `forward`, if tokens are no batch of ids, segments are no such batch or come
            to a stack that has none, or as `Block` and `LearnedPositions` do.

    Source: Vaswani et al. 2017, sections 3.1, 3.4 and 3.5; Devlin et al. 2019, figure 2 (segments).

    In other libraries: `BertModel` without its pooler, `GPT2Model`, `LlamaModel`.
    """

    def __init__(self, vocab_size: int, config: TransformerConfig, *, cross: bool = False):
        super().__init__()
        check_whole(1, vocab_size=vocab_size)
        check_kind(TransformerConfig, config=config)
        check_flags(cross=cross)
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.positions: nn.Module | None = None
        if config.positions == "sinusoidal":
            self.positions = SinusoidalPositions()
        elif config.positions == "learned":
            self.positions = LearnedPositions(config.max_len, config.d_model)
        n = config.n_segments
        self.segments = nn.Embedding(n, config.d_model) if n else None
        self.embedding_norm = normalizer(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, cross=cross) for _ in range(config.n_layers))
        last = config.norm == "pre" if config.final_norm is None else config.final_norm
        self.norm = normalizer(config) if last else nn.Identity()
        _start(self, config)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        *,
        mask: Bool[Tensor, "#batch #token key"] | None = None,
        memory_mask: Bool[Tensor, "#batch #token source"] | None = None,
        causal: bool = False,
        positions: Int[Tensor, "#batch token"] | None = None,
        segments: Int[Tensor, "batch token"] | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "batch token d_model"]:
        """Tokens through all blocks.

        Args:
            tokens: `[batch token]`.
            segments: `[batch token]` the segment of each token. None: all are of segment 0.
            memory, mask, memory_mask, causal, positions, cache: as for `Block`.
        """
        check_ids("tokens", tokens, self.embedding.num_embeddings)
        if positions is None and cache and (past := self.past(cache)):
            positions = torch.arange(past, past + tokens.shape[1], device=tokens.device)[None]
        x = self.embedding(tokens)
        if self.config.embedding_scale:
            x = x * self.config.d_model**0.5
        if self.positions is not None:
            x = self.positions(x, positions)
        if self.segments is not None:
            segments = torch.zeros_like(tokens) if segments is None else segments
            check_ids("segments", segments, self.segments.num_embeddings)
            batch, n = tokens.shape
            check_shapes(segments=(segments, "batch token"), batch=batch, token=n)
            x = x + self.segments(segments)
        elif segments is not None:
            raise ValueError("segments must be None where the configuration's n_segments is 0")
        x = self.dropout(self.embedding_norm(x))
        for block in self.blocks:
            x = block(
                x,
                memory,
                mask=mask,
                memory_mask=memory_mask,
                causal=causal,
                positions=positions,
                cache=cache,
            )
        return self.norm(x)

    def past(self, cache: Cache) -> int:
        """How many tokens a cache holds."""
        first = cast(Block, self.blocks[0]).attention
        return cache[first][0].shape[2] if first in cache else 0


def _start(part: nn.Module, config: TransformerConfig) -> None:
    """Give weights the start that `init_std` asks for (Radford et al. 2019, section 2.3)."""
    if (std := config.init_std) is None:
        return
    for name, weight in part.named_parameters():
        if weight.ndim > 1:
            last = name.endswith((".out.weight", ".down.weight"))
            nn.init.normal_(weight, std=std / (2 * config.n_layers) ** 0.5 if last else std)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)


def _check_parts(vocab: Vocabulary, config: TransformerConfig) -> None:
    check_kind(Vocabulary, vocab=vocab)
    check_kind(TransformerConfig, config=config)


class TransformerEncoder(nn.Module):
    """A stack in which every word sees every word: no mask but that of padding.

    Args:
        vocab: the tokens' vocabulary.
        config: sizes and choices.

    Raises:
        ValueError: if vocab or config are of another class; in `forward`, as `Stack` does.

    Source: Vaswani et al. 2017, section 3.1.

    In other libraries: `BertModel`.
    """

    def __init__(self, vocab: Vocabulary, config: TransformerConfig):
        super().__init__()
        _check_parts(vocab, config)
        self.vocab, self.d_model, self.n_layers = vocab, config.d_model, config.n_layers
        self.stack = Stack(len(vocab), config)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        segments: Int[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch token d_model"]:
        """States of the words; those at padding mean nothing.

        A token that is padding is never read, whatever else it is: texts to encode are words alone.

        Args:
            tokens: `[batch token]`.
            segments: as for `Stack`.
        """
        check_ids("tokens", tokens, len(self.vocab))
        mask, positions = padding_mask(tokens, self.vocab.pad), None
        late = (mask[:, 1:] & ~mask[:, :-1]).any()  # padding before a word, which does not count
        if (found := numbers(late)) is None:  # in a graph both ways are computed
            places = torch.arange(tokens.shape[1], device=tokens.device)
            positions = positions_of(mask).where(late, places)
        elif found[0]:
            positions = positions_of(mask)
        return self.stack(tokens, mask=mask[:, None], positions=positions, segments=segments)


class TransformerDecoder(nn.Module):
    """A stack in which every token sees itself and those before it, and predicts the next.

        P(token_(t+1) | tokens up to t) = softmax(W x_t)

    with x_t `[d_model]` the state and W `[vocab_size d_model]` the embedding, or where `tied` is
    off a matrix of its own. Without cross-attention it is a language model.

    Args:
        vocab: the tokens' vocabulary.
        config: sizes and choices.
        cross: whether the blocks read a memory.

    Source: Vaswani et al. 2017, sections 3.1 and 3.4; Press and Wolf 2017 (one matrix for both).

    In other libraries: `GPT2LMHeadModel`, `LlamaForCausalLM`.
    """

    def __init__(self, vocab: Vocabulary, config: TransformerConfig, *, cross: bool = False):
        super().__init__()
        _check_parts(vocab, config)
        self.vocab, self.d_model, self.n_layers = vocab, config.d_model, config.n_layers
        self.stack = Stack(len(vocab), config, cross=cross)
        self.head = None if config.tied else nn.Linear(config.d_model, len(vocab), bias=False)
        if self.head is not None:
            _start(self.head, config)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        memory: Memory | None = None,
        *,
        mask: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch token vocab"]:
        """Scores of the token after each one.

        Args:
            tokens: `[batch token]`.
            memory: what cross-attention reads.
            mask: `[batch token]` True at words. Padding at the end needs none: no word sees it.
        """
        if mask is None:
            return self.logits(self._states(tokens, memory))
        check_mask(mask, tokens=(tokens, "batch token"), mask=(mask, "batch token"))
        return self.logits(self._states(tokens, memory, mask, positions_of(mask)))

    def start(self, memory: Memory | None = None) -> State:
        """What the first step begins with: an empty cache, no padding seen, and the memory."""
        return {}, None, memory

    def step(
        self,
        tokens: Int[Tensor, "batch token"],
        state: State,
        mask: Bool[Tensor, "batch token"] | None = None,
    ) -> tuple[Float[Tensor, "batch vocab"], State]:
        """Read more tokens: scores of the token after the last one, and the state.

        Keys and values of the tokens before come from the cache, which is part of the state.

        Args:
            tokens: `[batch token]`.
            state: from `start` or the step before; it stays as it is.
            mask: `[batch token]` True at words, where prompts of unequal length have padding on the
                left.
        """
        cache, seen, memory = state
        cache, positions = dict(cache), None
        if mask is not None:
            check_mask(mask, tokens=(tokens, "batch token"), mask=(mask, "batch token"))
            if seen is None and not mask.all():  # the first padding
                seen = mask.new_ones(len(tokens), self.stack.past(cache))
        if seen is not None:
            seen = torch.cat([seen, torch.ones_like(tokens) > 0 if mask is None else mask], dim=1)
            positions = positions_of(seen)[:, -tokens.shape[1] :]
        states = self._states(tokens, memory, seen, positions, cache)
        return self.logits(states[:, -1]), (cache, seen, memory)

    def _states(
        self,
        tokens: Tensor,
        memory: Memory | None,
        mask: Tensor | None = None,
        positions: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        return self.stack(
            tokens,
            None if memory is None else memory.states,
            mask=None if mask is None else mask[:, None],
            memory_mask=None if memory is None else memory.mask[:, None],
            causal=True,
            positions=positions,
            cache=cache,
        )

    def logits(self, states: Float[Tensor, "*row d_model"]) -> Float[Tensor, "*row vocab"]:
        """Scores of the next token from the states, as `stack` gives them."""
        if self.head is None:
            return linear(states, self.stack.embedding.weight)
        return self.head(states)

    def generate(
        self,
        prompts: Int[Tensor, "batch token"],
        max_len: int,
        *,
        mask: Bool[Tensor, "batch token"] | None = None,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> Hypotheses:
        """Continue prompts by `beam_search`, without dropout; a beam of 1 is greedy decoding.

        Args:
            prompts: `[batch token]`, those that are shorter filled up with padding on the left.
            mask: `[batch token]` True at words. None: from the first that is no padding on; but
                where padding is the start or end token too, all tokens are read.
            max_len, beam, length_penalty: as for `beam_search`.

        Raises:
            ValueError: if a prompt ends in padding, learned positions are too few for it and
                max_len, or as `beam_search` does; and if there is no mask where padding is the
                start or end token too, and prompts begin with unequally many of it.
        """
        mask = self._words(prompts, max_len, mask)
        state = self.start()
        with evaluating(self):
            if prompts.shape[1] > 1:
                _, state = self.step(prompts[:, :-1], state, mask[:, :-1])
            return beam_search(
                self.step,
                state,
                prompts[:, -1:],
                max_len,
                self.vocab,
                beam=beam,
                length_penalty=length_penalty,
            )

    def sample(
        self,
        prompts: Int[Tensor, "batch token"],
        max_len: int,
        *,
        n: int = 1,
        mask: Bool[Tensor, "batch token"] | None = None,
        how: Sampling | Sequence[Sampling] = PLAIN,
        seed: Seed = 0,
        stop: Stop = (),
    ) -> Samples:
        """Continue prompts by what is drawn, without dropout.

        Args:
            prompts, mask: as for `generate`. An empty prompt is the start token alone.
            max_len, n, how, seed, stop: as for `sampling.sample`.

        Raises:
            ValueError: as `generate` does of prompts, mask and positions (those that are not
                learned have no end), or as `sampling.sample` does.
        """
        mask = self._words(prompts, max_len, mask)
        with evaluating(self):
            return sample(
                self.step,
                self.start(),
                prompts,
                max_len,
                self.vocab,
                n=n,
                mask=mask,
                how=how,
                seed=seed,
                stop=stop,
            )

    def _words(self, prompts: Tensor, max_len: int, mask: Tensor | None) -> Tensor:
        """Where prompts have words: what is no padding on their left."""
        check_ids("prompts", prompts, len(self.vocab))
        pad = self.vocab.pad
        alone = pad not in (self.vocab.bos, self.vocab.eos)
        if mask is None:
            mask = (prompts != pad).cumsum(1) > 0
            if not alone:  # a token that the caller gave, or padding?
                begin = (~mask).sum(1).unique().tolist()
                if len(begin) > 1 and prompts.shape[1] > 1:
                    raise ValueError(
                        f"mask must say which tokens are padding where {self.vocab.tokens[pad]!r}"
                        " is padding and a start or end token, and prompts begin with unequally"
                        f" many of it, got no mask and {' or '.join(map(str, begin))}"
                    )
                mask = torch.ones_like(mask)
        check_mask(mask, prompts=(prompts, "batch token"), mask=(mask, "batch token"))
        if not mask[:, -1].all() or (alone and (prompts[:, -1] == self.vocab.pad).any()):
            raise ValueError("prompts must have their padding on the left, got some at the end")
        context, longest = self.stack.config.max_len, int(mask.sum(1).max())
        check_whole(1, max_len=max_len)
        if isinstance(self.stack.positions, LearnedPositions) and longest + max_len - 1 > context:
            raise ValueError(
                f"prompts and max_len must fit into {context} learned positions, got {longest} +"
                f" {max_len} tokens, of which the last is not read"
            )
        return mask


class Transformer(Seq2Seq):
    """Encoder and decoder: a translator.

        H = encoder(source),   P(y_t | source, y before t) = decoder(y before t, H)

    with H `[batch source d_model]`, the memory of every cross-attention.

    Args:
        source_vocab: the source's vocabulary.
        target_vocab: the target's vocabulary.
        config: sizes and choices of both.
        shared: whether source and target have one vocabulary, and one embedding.

    Raises:
        ValueError: if `shared` and the vocabularies differ; in `forward`, if a target has padding
            before a word.

    Source: Vaswani et al. 2017.

    In other libraries: `torch.nn.Transformer` with embeddings, `BartForConditionalGeneration`.
    """

    def __init__(
        self,
        source_vocab: Vocabulary,
        target_vocab: Vocabulary,
        config: TransformerConfig,
        *,
        shared: bool = False,
    ):
        check_flags(shared=shared)
        if shared and source_vocab != target_vocab:
            raise ValueError(
                f"target_vocab must be source_vocab, of {len(source_vocab)} tokens, to share, got"
                f" another, of {len(target_vocab)}"
            )
        super().__init__(
            TransformerEncoder(source_vocab, config),
            TransformerDecoder(target_vocab, config, cross=True),
        )
        if config.positions == "learned":
            self.longest = config.max_len
        if shared:
            self.encoder.stack.embedding = self.decoder.stack.embedding

    def read(self, source: Int[Tensor, "batch source"]) -> Memory:
        """The encoder's states of the sentences, and where there are words."""
        check_ids("source", source, len(self.encoder.vocab))
        return Memory(self.encoder(source), padding_mask(source, self.encoder.vocab.pad))

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocab"]:
        """Scores of the token after each token of `target`, whose padding stands at the end."""
        memory, vocab = self.read(source), self.decoder.vocab
        if vocab.pad != vocab.bos:
            word_mask("target", target, vocab)
        return self.decoder(target, memory)
