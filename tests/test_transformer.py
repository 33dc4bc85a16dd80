"""Encoder, decoder and translator: against PyTorch with copied weights, what must hold whatever the
weights, and generation with a cache.

All sizes differ, so that a transposed or mistaken dimension fails.
"""

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnbook.model.config import TransformerConfig
from attnbook.model.positions import sinusoidal
from attnbook.model.recording import recorded
from attnbook.model.transformer import Transformer, TransformerDecoder, TransformerEncoder
from attnbook.text.vocabulary import Pairs, Vocabulary, pad_batch
from tests.helpers.parity import BATCH, SMALL, SOURCE, TARGET, close, randomise
from tests.helpers.translator import (
    BOS,
    ENGLISH,
    EOS,
    EVERY,
    GERMAN,
    LAYOUTS,
    NAMES,
    ONE,
    PAD,
    VOCAB,
    WORDS,
    model,
    prompts,
    sources,
    targets,
)


@pytest.mark.parametrize(("norm", "activation"), list(product(("pre", "post"), ("relu", "gelu"))))
def test_the_whole_model_is_pytorchs(norm: str, activation: str) -> None:
    theirs = nn.Transformer(
        12, 3, 2, 2, 20, 0.0, activation, batch_first=True, norm_first=norm == "pre"
    )
    randomise(theirs)
    ours = model(replace(SMALL, norm=norm, activation=activation, dropout=0.4))
    stacks = [(ours.encoder.stack, theirs.encoder), (ours.decoder.stack, theirs.decoder)]
    for mine, other in stacks:
        for block, layer in zip(mine.blocks, other.layers, strict=True):
            block.load_torch(layer)
    if norm == "pre":
        for mine, other in stacks:
            mine.norm.load_state_dict(other.norm.state_dict())
    else:  # in this order their last norm is one too many
        theirs.encoder.norm = theirs.decoder.norm = None
    source, target = sources(), targets()
    x, y = (
        stack.embedding(tokens) * 12**0.5 + sinusoidal(tokens.shape[1], 12)
        for stack, tokens in ((ours.encoder.stack, source), (ours.decoder.stack, target))
    )
    states = theirs(
        x,
        y,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(TARGET),
        src_key_padding_mask=source == PAD,
        memory_key_padding_mask=source == PAD,
    )
    expected = states @ ours.decoder.stack.embedding.weight.T
    close(ours(source, target), expected)


@pytest.mark.parametrize("config", EVERY, ids=NAMES)
class TestEveryConfig:
    def test_future_tokens_change_nothing(self, config: TransformerConfig) -> None:
        ours, source, target = model(config).double(), sources(), targets()  # small changes, too
        before = ours(source, target)
        for j in range(1, TARGET):
            changed = target.clone()
            changed[:, j] = (target[:, j] - 2) % (WORDS - 3) + 3
            after = ours(source, changed)
            assert torch.equal(after[:, :j], before[:, :j])
            assert not torch.equal(after[:, j], before[:, j])

    def test_padding_of_the_source_changes_nothing(self, config: TransformerConfig) -> None:
        ours, source, target = model(config), sources(), targets()
        longer = functional.pad(source, (0, 3))
        expected = ours(source, target)
        torch.testing.assert_close(ours(longer, target), expected, atol=1e-5, rtol=0)
        short = ours(source[1:, :4], target[1:])
        torch.testing.assert_close(short, expected[1:], atol=1e-5, rtol=0)

    def test_weights_are_given_on_demand_and_change_nothing(
        self, config: TransformerConfig
    ) -> None:
        ours, source, target = model(config), sources(), targets()
        quiet = ours(source, target)
        with recorded(ours) as weights:
            close(ours(source, target), quiet)
        assert len(weights) == 3 * config.n_layers
        for layer in range(config.n_layers):
            own = weights[f"encoder.stack.blocks.{layer}.attention"]
            looks = weights[f"decoder.stack.blocks.{layer}.attention"]
            cross = weights[f"decoder.stack.blocks.{layer}.cross"]
            assert own.shape == (BATCH, 3, SOURCE, SOURCE)
            assert looks.shape == (BATCH, 3, TARGET, TARGET)
            assert cross.shape == (BATCH, 3, TARGET, SOURCE)
            for found in (own, looks, cross):
                torch.testing.assert_close(found.sum(-1), torch.ones(found.shape[:-1]))
            assert (looks.triu(1) == 0).all()
            assert (cross[1, ..., 4:] == 0).all() and (own[1, ..., 4:] == 0).all()

    def test_every_parameter_learns(self, config: TransformerConfig) -> None:
        ours = model(config)
        ours.loss(Pairs(sources(), targets())).backward()
        for name, parameter in ours.named_parameters():
            if not name.endswith("k.bias"):  # the same for all keys: softmax forgets it
                assert parameter.grad is not None and parameter.grad.abs().max() > 0, name

    def test_a_language_model_is_the_decoder_without_cross_attention(
        self, config: TransformerConfig
    ) -> None:
        decoder = TransformerDecoder(GERMAN, config).eval()
        target = targets()
        out = decoder(target)
        assert out.shape == (BATCH, TARGET, WORDS)
        torch.testing.assert_close(decoder(target[:, :3]), out[:, :3], atol=1e-5, rtol=0)


def test_the_encoder_sees_both_sides() -> None:
    encoder = TransformerEncoder(ENGLISH, SMALL).eval()
    source = sources()[:1]
    changed = source.clone()
    changed[0, -1] = (source[0, -1] - 2) % (VOCAB - 3) + 3
    assert not torch.allclose(encoder(changed)[0, 0], encoder(source)[0, 0])


def test_without_positions_the_encoder_is_blind_to_order() -> None:
    order = torch.randperm(SOURCE)
    source = sources()[:1]
    for positions in ("none", "sinusoidal", "learned", "rotary"):
        encoder = TransformerEncoder(ENGLISH, replace(SMALL, positions=positions)).eval()
        moved = encoder(source[:, order])
        same = torch.allclose(moved, encoder(source)[:, order], atol=1e-5)
        assert same == (positions == "none")


def test_embedding_is_output_matrix_and_can_be_shared() -> None:
    ours = model()
    assert sum(p.shape == (WORDS, 12) for p in ours.parameters()) == 1
    untied = model(replace(SMALL, tied=False))
    assert sum(p.shape == (WORDS, 12) for p in untied.parameters()) == 2
    shared = Transformer(GERMAN, GERMAN, SMALL, shared=True)
    assert shared.encoder.stack.embedding is shared.decoder.stack.embedding
    assert sum(p.shape == (WORDS, 12) for p in shared.parameters()) == 1
    with pytest.raises(ValueError, match=r"target_vocab must be source_vocab, of 13 .* of 11"):
        Transformer(ENGLISH, GERMAN, SMALL, shared=True)
    large = TransformerDecoder(Vocabulary(map(str, range(500))), replace(SMALL, d_model=48))
    assert abs(large.stack.embedding.weight.std().item() - 48**-0.5) < 0.01


def test_dropout_acts_in_training_alone() -> None:
    ours, source, target = model(replace(SMALL, dropout=0.3)), sources(), targets()
    assert torch.equal(ours(source, target), ours(source, target))
    ours.train()
    assert not torch.allclose(ours(source, target), ours(source, target))


def test_dropout_acts_on_the_embeddings() -> None:
    gone = replace(SMALL, norm="pre", dropout=1.0)
    encoder = TransformerEncoder(ENGLISH, gone).train()
    assert (encoder(sources()) == encoder.stack.norm.bias).all()


def test_the_embedding_is_scaled_placed_and_normalised_as_the_config_says() -> None:
    source = sources()
    for scale, norm in product((True, False), repeat=2):
        config = replace(SMALL, embedding_scale=scale, embedding_norm=norm, norm="none")
        stack = randomise(TransformerEncoder(ENGLISH, config)).stack
        seen = []
        stack.blocks[0].register_forward_pre_hook(lambda _, args: seen.append(args[0]))  # noqa: B023
        stack(source)
        expected = stack.embedding.weight[source] * (12**0.5 if scale else 1)
        expected = expected + sinusoidal(SOURCE, 12)
        close(seen[0], stack.embedding_norm(expected) if norm else expected)
        assert isinstance(stack.embedding_norm, nn.Identity) != norm


def test_the_last_norm_stands_where_the_config_says() -> None:
    for norm, asked in product(("pre", "post", "none"), (None, True, False)):
        config = replace(SMALL, norm=norm, final_norm=asked)
        stack = randomise(TransformerEncoder(ENGLISH, config)).stack
        seen = []
        stack.blocks[-1].register_forward_hook(lambda _, args, out: seen.append(out))  # noqa: B023
        out = stack(sources())
        wanted = norm == "pre" if asked is None else asked
        close(out, stack.norm(seen[0]))
        assert out.equal(seen[0]) != wanted


def test_learned_positions_end_where_the_config_says() -> None:
    encoder = TransformerEncoder(ENGLISH, replace(SMALL, positions="learned", max_len=SOURCE - 1))
    with pytest.raises(ValueError, match="x must have at most 6 tokens"):
        encoder(sources())


def test_the_loss_counts_words_and_the_end_but_no_padding() -> None:
    ours = model()
    short, long = targets()[:1, :3], targets()[1:]
    source = sources()
    both = Pairs(source, pad_batch([short[0].tolist(), long[0].tolist()], PAD))
    losses = [ours.loss(Pairs(source[:1], short)), ours.loss(Pairs(source[1:], long))]
    expected = (2 * losses[0] + (TARGET - 1) * losses[1]) / (TARGET + 1)
    torch.testing.assert_close(ours.loss(both), expected, atol=1e-5, rtol=0)
    logits, wanted = ours(both.source, both.target[:, :-1]), both.target[:, 1:]
    q = 0.5 * functional.one_hot(wanted, WORDS) + 0.5 / WORDS
    each = -(q * logits.log_softmax(-1)).sum(-1)
    torch.testing.assert_close(ours.loss(both, 0.5), each[wanted != PAD].mean())
    assert abs(ours.loss(both, 0.5) - ours.loss(both)) > 1e-3


def slowly(
    decoder: TransformerDecoder, prompt: Tensor, max_len: int, beam: int
) -> tuple[Tensor, float]:
    """Beam search for one sentence in plain Python, each step from the first token on."""
    found = [(0.0, [], False)]
    for _ in range(max_len):
        longer = []
        for score, words, ended in found:
            if ended:
                longer.append((score, words, True))
                continue
            tokens = torch.cat([prompt, torch.tensor(words, dtype=torch.long)])
            logp = decoder(tokens[None])[0, -1].log_softmax(-1).tolist()
            for word, value in enumerate(logp):
                if word not in (PAD, BOS):
                    longer.append((score + value, [*words, word], word == EOS))
        found = sorted(longer, key=lambda x: -x[0])[:beam]
        if found[0][2]:
            break
    return torch.tensor(found[0][1]), found[0][0]


@pytest.mark.parametrize("config", LAYOUTS, ids=["GPT", "ALiBi", "modern"])
@pytest.mark.parametrize("beam", [1, 3])
@torch.no_grad()
def test_unequal_prompts_with_a_cache_give_what_each_gives_alone_without(
    config: TransformerConfig, beam: int
) -> None:
    torch.manual_seed(beam)
    decoder: Any = randomise(TransformerDecoder(GERMAN, config))
    begun = prompts()
    together = decoder.generate(begun, 7, beam=beam)
    for row, tokens, score in zip(begun, *together, strict=True):
        words, sum_ = slowly(decoder, row[row != PAD], 7, beam)
        assert tokens[: len(words)].equal(words) and (tokens[len(words) :] == PAD).all()
        assert abs(score.item() - sum_) < 1e-4


@pytest.mark.parametrize("config", [*EVERY, *LAYOUTS], ids=[*NAMES, "GPT", "ALiBi", "modern 2"])
@torch.no_grad()
def test_steps_of_any_length_give_the_logits_of_one_pass(config: TransformerConfig) -> None:
    decoder: Any = randomise(TransformerDecoder(GERMAN, config)).double()  # logits of 50
    tokens = prompts()
    mask = tokens != PAD
    whole = decoder(tokens, mask=mask)
    for cuts in ((6,), (1, 1, 1, 1, 1, 1), (2, 3, 1)):
        state, done = decoder.start(), 0
        for n in cuts:
            part = slice(done, done + n)
            before = [t.clone() for tensors in state[0].values() for t in tensors]
            kept = state
            logits, state = decoder.step(tokens[:, part], state, mask[:, part])
            done += n
            real = mask[:, done - 1]
            close(logits[real], whole[real, done - 1])
            after = [t for tensors in kept[0].values() for t in tensors]
            assert all(a.equal(b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("config", EVERY, ids=NAMES)
@torch.no_grad()
def test_translation_with_a_cache_is_translation_without(config: TransformerConfig) -> None:
    ours: Any = randomise(model(config))
    source = sources()
    found = ours.translate(source, max_len=6)
    tokens = torch.full((BATCH, 1), BOS)
    ended = torch.zeros(BATCH, dtype=torch.bool)
    for _ in range(found.tokens.shape[1]):
        logits = ours(source, tokens)[:, -1].index_fill(1, torch.tensor([PAD, BOS]), -torch.inf)
        word = logits.argmax(-1).masked_fill(ended, PAD)
        ended |= word == EOS
        tokens = torch.cat([tokens, word[:, None]], dim=1)
    assert found.tokens.equal(tokens[:, 1:])
    with recorded(ours) as weights:
        ours.translate(source, max_len=6)
    with recorded(ours) as at_once:
        ours(source, tokens[:, :-1])
    assert weights.keys() == at_once.keys()
    for path, found_weights in weights.items():
        rows = ~(tokens[:, :-1] == PAD) if path.startswith("decoder") else source != PAD
        close(found_weights.transpose(1, 2)[rows], at_once[path].transpose(1, 2)[rows])


def test_each_key_of_a_translation_is_computed_once() -> None:
    ours: Any = model()
    counts: Counter[str] = Counter()
    for path, module in ours.named_modules():
        if path.endswith(".k"):
            module.register_forward_hook(
                lambda _, inputs, out, path=path: counts.update({path: inputs[0].shape[1]})
            )
    written = ours.translate(sources(), max_len=6, beam=3).tokens.shape[1]
    assert len(counts) == 3 * SMALL.n_layers and written > 1
    for path, count in counts.items():
        own = path.startswith("decoder") and path.endswith("attention.k")
        assert count == (written if own else SOURCE), path


@torch.no_grad()
def test_other_ids_change_nothing_but_the_ids() -> None:
    """The same words in another order, the special ones in the middle."""
    order = torch.arange(WORDS).roll(4)
    other, ids = Vocabulary([GERMAN.tokens[i] for i in order]), order.argsort()
    config = replace(SMALL, final_norm=False)  # its bias would favour one word
    ours: Any = randomise(Transformer(GERMAN, GERMAN, config))
    theirs: Any = Transformer(other, other, config)
    theirs.load_state_dict(ours.state_dict())
    for stack in (theirs.encoder.stack, theirs.decoder.stack):
        stack.embedding.weight.copy_(stack.embedding.weight[order])
    source = torch.randint(3, WORDS, (20, SOURCE))
    source[::2, 4:] = PAD
    target = torch.cat([torch.full((20, 1), BOS), source], dim=1)
    close(theirs(ids[source], ids[target])[..., ids], ours(source, target))
    close(theirs.loss(Pairs(ids[source], ids[target])), ours.loss(Pairs(source, target)))
    for beam in (1, 3):
        expected = ours.translate(source, 6, beam=beam).tokens
        assert theirs.translate(ids[source], 6, beam=beam).tokens.equal(ids[expected])
        assert (expected == PAD).any()


def test_beam_and_length_penalty_are_handed_on_to_the_search() -> None:
    """Where all words are nearly alike, the shortest sentence is the likeliest."""
    ours: Any = model()
    alone: Any = TransformerDecoder(GERMAN, SMALL).eval()
    source = torch.randint(3, WORDS, (BATCH, SOURCE))
    for stack in (ours.decoder.stack, alone.stack):
        nn.init.constant_(stack.norm.weight, 0.01)
    for write in (ours.translate, alone.generate):
        assert (write(source, 5, beam=9).tokens[:, 0] == EOS).all()
        long = write(source, 5, beam=9, length_penalty=2.0).tokens
        assert long.shape == (BATCH, 5) and (long[:, :-1] > EOS).all()


@pytest.mark.parametrize("config", EVERY, ids=NAMES)
@torch.no_grad()
def test_a_stack_goes_on_where_its_cache_ends(config: TransformerConfig) -> None:
    stack: Any = randomise(TransformerDecoder(GERMAN, config)).stack.double()
    tokens, cache = targets(), {}
    parts = [
        stack(tokens[:, part], causal=True, cache=cache) for part in (slice(2), slice(2, None))
    ]
    close(torch.cat(parts, dim=1), stack(tokens, causal=True))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi"])
@torch.no_grad()
def test_padding_in_front_moves_no_word(positions: Any) -> None:
    encoder = TransformerEncoder(ENGLISH, replace(SMALL, positions=positions)).eval()
    source = sources()[:1]
    close(encoder(functional.pad(source, (2, 0)))[:, 2:], encoder(source))


@torch.no_grad()
def test_one_token_for_start_end_and_padding() -> None:
    decoder: Any = randomise(TransformerDecoder(ONE, SMALL))
    for prompt in ([[0, 2, 3]], [[2, 3, 0, 4]], [[0]]):
        tokens = torch.tensor(prompt)
        mask = torch.ones_like(tokens, dtype=torch.bool)
        best = decoder(tokens)[:, -1].log_softmax(-1).max(-1).values
        close(decoder.generate(tokens, 1, mask=mask).scores, best)
        close(decoder.generate(tokens, 1).scores, best)  # without a mask all are read
    assert decoder.generate(torch.tensor([[0]]), 2).tokens.shape[1] <= 2


def test_the_end_counts_in_the_loss_where_it_is_padding_too() -> None:
    ours = Transformer(ENGLISH, Vocabulary("abcdefg", pad="<e>", eos="<e>"), SMALL).eval()
    vocab = ours.decoder.vocab
    target = torch.tensor([[vocab.bos, 3, 4, vocab.eos, vocab.pad]])
    source = sources()[:1]
    logp = ours(source, target[:, :-1])[0].log_softmax(-1)
    expected = -(logp[0, 3] + logp[1, 4] + logp[2, vocab.eos]) / 3
    torch.testing.assert_close(ours.loss(Pairs(source, target)), expected)


def test_one_embedding_is_for_one_vocabulary() -> None:
    other = Vocabulary([*"ABC", "<pad>", *"DEFGH"])
    assert len(other) == len(GERMAN)
    with pytest.raises(ValueError, match="target_vocab must be source_vocab"):
        Transformer(other, GERMAN, SMALL, shared=True)
    Transformer(Vocabulary("ABCDEFGH"), GERMAN, SMALL, shared=True)


def test_weights_start_as_init_std_says() -> None:
    config = replace(SMALL, d_model=60, n_heads=6, d_ff=90, n_layers=8, positions="learned")
    torch.manual_seed(0)
    started = TransformerDecoder(GERMAN, replace(config, init_std=0.3, tied=False))
    for name, weight in started.named_parameters():
        if weight.ndim > 1:
            ends = name.endswith(("attention.out.weight", "feed_forward.down.weight"))
            wanted = 0.3 / 4 if ends else 0.3
            assert abs(weight.std().item() / wanted - 1) < 0.1, name
        else:
            assert weight.eq(float("norm" in name and name.endswith("weight"))).all(), name
    torch.manual_seed(0)
    usual = TransformerDecoder(GERMAN, config).stack
    assert abs(usual.embedding.weight.std().item() * 60**0.5 - 1) < 0.1
    assert usual.blocks.get_parameter("0.attention.out.bias").abs().max() > 0


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_padding_alone_costs_nothing(smoothing):
    """As `Bert.word_loss` does; it was NaN, which one such batch brings into all weights."""
    model = Transformer(ENGLISH, GERMAN, SMALL)
    source, pad = torch.tensor([[3, 4], [5, 6]]), GERMAN.pad
    loss = model.loss(Pairs(source, torch.tensor([[1, pad, pad], [1, pad, pad]])), smoothing)
    assert loss == 0
    loss.backward()
    assert all(p.grad is None or p.grad.eq(0).all() for p in model.parameters())
    assert model.loss(Pairs(source, torch.tensor([[1, 2, pad], [1, pad, pad]])), smoothing) > 0
