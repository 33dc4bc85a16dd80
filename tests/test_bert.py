"""BERT: layout, masks, heads and losses. `test_pretrained.py` holds its numbers to `transformers`.

All sizes differ, so that a transposed or mistaken dimension fails.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from attnbook.learn.loop import train
from attnbook.model.bert import Bert, Classifier, SpanFinder, Tagger, mask_tokens, pack
from attnbook.model.config import BERT, BERT_LARGE
from attnbook.text.tokenizers import SPECIAL, WordPiece
from attnbook.text.vocabulary import IGNORED
from tests.helpers.parity import close, randomise

TOKENIZER = WordPiece([*"ab", *SPECIAL, *"cdefgh"])  # special tokens stand in the middle
VOCAB, WORDS = TOKENIZER.vocab, [0, 1, 7, 8, 9, 10, 11, 12]
PAD, UNK, CLS, SEP, MASK = TOKENIZER.special
SMALL = replace(BERT, d_model=12, n_heads=3, d_ff=20, n_layers=2, max_len=16, dropout=0.0)


def bert(**options: Any) -> Bert:
    return randomise(Bert(VOCAB, replace(SMALL, **options)))


def batch() -> tuple[Tensor, Tensor]:
    """Two pairs, the second with padding."""
    return pack(VOCAB, [[7, 8, 9], [0]], [[10, 11], [1, 7]], max_len=16)


def test_a_pair_is_laid_out_as_in_the_paper() -> None:
    tokens, segments = pack(VOCAB, [[7, 8], [0]], [[9], [10, 11, 12]], max_len=9)
    assert tokens.tolist() == [[CLS, 7, 8, SEP, 9, SEP, PAD], [CLS, 0, SEP, 10, 11, 12, SEP]]
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1]]
    tokens, segments = pack(VOCAB, [[7, 8], [], [9]], max_len=4)
    assert tokens.tolist() == [[CLS, 7, 8, SEP], [CLS, SEP, PAD, PAD], [CLS, 9, SEP, PAD]]
    assert not segments.any()


@given(st.integers(0, 12), st.integers(0, 12), st.integers(5, 20))
def test_the_longer_text_is_cut(n_first: int, n_second: int, max_len: int) -> None:
    first, second = [7] * n_first, [8] * n_second
    row = pack(VOCAB, [first], [second], max_len=max_len).tokens[0].tolist()
    a, b = row.count(7), row.count(8)
    assert len(row) == a + b + 3 == min(n_first + n_second + 3, max_len)
    assert a <= n_first and b <= n_second
    if a < n_first:
        assert a >= b  # what was cut is still the longer, or as long
    if b < n_second:
        assert b >= a - 1  # of two equal ones the second is cut
    assert (first, second) == ([7] * n_first, [8] * n_second)


def shares(tokens: Tensor, **options: Any) -> tuple[Tensor, ...]:
    """Chosen; and of those: hidden, another word, the same word."""
    hidden, targets = mask_tokens(tokens, TOKENIZER, **options)
    chosen = targets != IGNORED
    assert targets[chosen].equal(tokens[chosen]) and hidden[~chosen].equal(tokens[~chosen])
    ordinary = torch.isin(tokens, torch.tensor(WORDS))
    assert not chosen[~ordinary].any()
    masked, same = hidden[chosen] == MASK, hidden[chosen] == tokens[chosen]
    return chosen[ordinary].float().mean(), *(x.float().mean() for x in (masked, ~masked & ~same))


def test_fifteen_percent_are_chosen_and_four_of_five_of_them_hidden() -> None:
    tokens = torch.tensor(WORDS)[torch.randint(8, (1000, 101))]  # more than 100,000 words
    tokens[:, 0], tokens[:, 50], tokens[:50, 90:] = CLS, SEP, PAD
    tokens[:9, 3], tokens[9:20, 3] = UNK, MASK
    before = tokens.clone()
    chosen, masked, other = shares(tokens)
    assert tokens.equal(before)
    assert abs(chosen - 0.15) < 0.005
    # Two standard deviations of 15,000 are 0.0065 and 0.0046; one draw of eight is the word itself.
    assert abs(masked - 0.8) < 0.01 and abs(other - 0.1 * 7 / 8) < 0.01
    chosen, masked, other = shares(tokens, share=1.0)  # all 100,000
    assert chosen == 1 and abs(masked - 0.8) < 0.005 and abs(other - 0.1 * 7 / 8) < 0.005
    assert shares(tokens, share=0.3, masked=1.0, random=0.0)[1:] == (1, 0)
    assert shares(tokens, masked=0.0, random=0.0)[1:] == (0, 0)
    assert shares(tokens, share=0.0)[0] == 0
    _, masked, other = shares(tokens, masked=0.8, random=0.2)  # none stays
    assert abs(masked - 0.8) < 0.01 and abs(other - 0.2 * 7 / 8) < 0.015


def test_random_words_are_all_words_alike() -> None:
    tokens = torch.full((100, 80), 7)
    hidden = mask_tokens(tokens, TOKENIZER, share=1.0, masked=0.0, random=1.0).tokens
    counts = torch.bincount(hidden.flatten(), minlength=len(VOCAB))
    assert counts[list(TOKENIZER.special)].sum() == 0
    assert (counts[WORDS] / 1000 - 1).abs().max() < 0.15  # five standard deviations


def test_masks_depend_on_the_seed_alone() -> None:
    tokens = torch.tensor(WORDS)[torch.randint(8, (5, 40))]
    first = mask_tokens(tokens, TOKENIZER, seed=3)
    torch.rand(7)
    again, other = (mask_tokens(tokens, TOKENIZER, seed=seed) for seed in (3, 4))
    assert all(a.equal(b) for a, b in zip(first, again, strict=True))
    assert not first.targets.equal(other.targets)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_padding_and_what_stands_there_change_nothing(norm: str) -> None:
    model: Any = bert(norm=norm)
    tokens, segments = batch()
    alone = tokens[1:, :6], segments[1:, :6]
    assert (tokens[1, 6:] == PAD).all()
    longer = functional.pad(tokens, (0, 3), value=PAD), functional.pad(segments, (0, 3), value=1)
    expected, states, padded = model(*alone), model(tokens, segments), model(*longer)
    close(states[1:, :6], expected)
    close(padded[:, : tokens.shape[1]][tokens != PAD], states[tokens != PAD])
    heads: list[Callable[[Tensor], Tensor]] = [model.pooled, model.next_logits]
    for head in heads:
        close(head(states[1:]), head(expected))
        close(head(padded), head(states))
    odd = states.clone()
    odd[tokens == PAD] = torch.nan
    targets = tokens.masked_fill((tokens == PAD) | (segments == 1), IGNORED)
    close(model.word_loss(odd, targets), model.word_loss(states, targets))


def test_words_at_some_places_are_those_of_all_places() -> None:
    model, (tokens, segments) = bert(), batch()
    states = model(tokens, segments)
    places = tokens == SEP
    everywhere = model.word_logits(states)
    assert everywhere.shape == (*tokens.shape, len(VOCAB))
    close(model.word_logits(states, places), everywhere[places])
    assert model.word_logits(states, torch.zeros_like(places)).shape == (0, len(VOCAB))


def test_losses_are_means_over_words_and_pairs() -> None:
    model, (tokens, segments) = bert(), batch()
    hidden, targets = mask_tokens(tokens, TOKENIZER, share=0.6, seed=1)
    states = model(hidden, segments)
    logp = model.word_logits(states).log_softmax(-1)
    found = [-logp[i, j, targets[i, j]] for i, j in (targets != IGNORED).nonzero().tolist()]
    assert 1 < len(found) < 9
    close(model.word_loss(states, targets), torch.stack(found).mean())
    assert model.word_loss(states, torch.full_like(targets, IGNORED)) == 0
    logp = model.next_logits(states).log_softmax(-1)
    follows = torch.tensor([True, False])
    close(model.next_loss(states, follows), -(logp[0, 0] + logp[1, 1]) / 2)


def test_the_output_matrix_is_the_embedding() -> None:
    model = bert()
    assert sum(p.shape == (len(VOCAB), 12) for p in model.parameters()) == 1
    states = model(*batch())
    before = model.word_logits(states)[..., 9]
    with torch.no_grad():
        model.stack.embedding.weight[9] *= 2
    assert not torch.allclose(model.word_logits(states)[..., 9], before)


def test_every_parameter_learns() -> None:
    model, (tokens, segments) = bert(), batch()
    states = model(tokens, segments)
    (model.word_loss(states, tokens) + model.next_loss(states, segments[:, 5] == 0)).backward()
    for name, parameter in model.named_parameters():
        if not name.endswith("k.bias"):  # the same for all keys: softmax forgets it
            assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


def test_segments_are_zero_unless_they_are_given() -> None:
    model, (tokens, segments) = bert(), batch()
    close(model(tokens), model(tokens, torch.zeros_like(tokens)))
    assert not torch.allclose(model(tokens), model(tokens, segments))


def test_layers_are_the_states_between_the_blocks() -> None:
    model, (tokens, segments) = bert(), batch()
    states: Any = model.layers(tokens, segments)
    assert len(states) == 3
    close(states[-1], model(tokens, segments))
    for block, before, after in zip(model.stack.blocks, states, states[1:], strict=False):
        close(block(before, mask=(tokens != PAD)[:, None]), after)
    assert not model.stack.dropout._forward_hooks


def test_heads_for_classes_tags_and_spans() -> None:
    tokens, segments = batch()
    model: Any = bert()
    states = model(tokens, segments)
    classes, tags, span = Classifier(model, 5).eval(), Tagger(model, 7).eval(), SpanFinder(model)
    found = classes(tokens, segments)
    assert found.shape == (2, 5)
    close(found, classes.out(torch.tanh(model.pooler(states[:, 0]))))
    assert tags(tokens, segments).shape == (2, 8, 7)
    close(tags(tokens, segments)[1, 4], tags.out(states[1, 4]))
    found = span.eval()(tokens, segments)
    assert found.shape == (2, 2, 8)
    assert found.isfinite().equal((tokens != PAD)[:, None].expand(2, 2, 8))
    close(found[0, :, 4], span.out(states[0, 4]))
    assert torch.allclose(found.softmax(-1).sum(-1), torch.ones(2, 2))


def test_heads_drop_what_the_encoder_drops_and_begin_as_it_does() -> None:
    model: Any = Bert(VOCAB, replace(SMALL, d_model=48, dropout=0.9))
    for matrix in (model.stack.embedding.weight, model.words.transform.weight):
        assert abs(matrix.std() - 0.02) < 0.003
    for head in (Classifier(model, 50), Tagger(model, 50), SpanFinder(model)):
        assert head.dropout.p == 0.9 and (head.out.bias == 0).all()
        assert abs(head.out.weight.std() - 0.02) < 0.005


def test_without_a_head_the_answer_names_it() -> None:
    model, (tokens, segments) = bert(), batch()
    model.pooler = model.words = model.next_sentence = None
    states = model(tokens, segments)
    for call, name in (
        (lambda: model.pooled(states), "a pooler"),
        (lambda: model.word_logits(states), "a masked-word head"),
        (lambda: model.next_logits(states), "a next-sentence head"),
        (lambda: Classifier(model, 2), "a pooler"),
    ):
        with pytest.raises(ValueError, match=f"model must have {name}, got one that was loaded"):
            call()


def test_a_state_survives_its_file() -> None:
    model, again = bert(), bert()
    again.load_state_dict(model.state_dict())
    states = model(*batch())
    close(again(*batch()), states)
    close(again.word_logits(states), model.word_logits(states))
    close(again.next_logits(states), model.next_logits(states))


@pytest.mark.parametrize(
    ("config", "millions"), [(BERT, 109.482), (BERT_LARGE, 335.142)], ids=["base", "large"]
)
def test_sizes_are_those_of_the_paper(config: Any, millions: float) -> None:
    """The paper says 110 and 340 million; `BertModel`, without its two heads, has these."""
    with torch.device("meta"):
        model = Bert(vocabulary(30522), config)
    model.words = model.next_sentence = None
    assert round(sum(p.numel() for p in model.parameters()) / 1e6, 3) == millions


def vocabulary(size: int) -> Any:
    return WordPiece([*SPECIAL, *map(str, range(size - 5))]).vocab


def test_both_losses_fall() -> None:
    """A language of a and b that repeat, c and d that repeat; a second text of the same letters
    follows."""
    tokenizer = WordPiece([*SPECIAL, *"abcd"])
    config = replace(SMALL, d_model=24, d_ff=48, max_len=20)
    torch.manual_seed(0)
    model = Bert(tokenizer.vocab, config)

    def batches(step: int) -> Any:
        generator = torch.Generator().manual_seed(step)
        kinds = torch.randint(2, (2, 32), generator=generator)
        texts = [[[5, 6] * 4 if kind == 0 else [7, 8] * 4 for kind in side] for side in kinds]
        tokens, segments = pack(tokenizer.vocab, *texts, max_len=20)
        return *mask_tokens(tokens, tokenizer, seed=step), segments, kinds[0] == kinds[1]

    def losses(batch: Any) -> tuple[Tensor, Tensor]:
        tokens, targets, segments, follows = batch
        states = model(tokens, segments)
        return model.word_loss(states, targets), model.next_loss(states, follows)

    with torch.no_grad():
        before = losses(batches(1000))
    train(model, batches, lambda batch: torch.stack(losses(batch)).sum(), 100, lr=5e-3)
    with torch.no_grad():
        after = losses(batches(1000))
    assert after[0] < 0.5 * before[0] and after[1] < 0.5 * before[1]
