"""GPT-1's layouts as they are written, its heads by hand, and what must not change an answer."""

from copy import deepcopy
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.nn.functional import cross_entropy, pad

from attnbook.learn.loop import train
from attnbook.model.config import GPT_1, QWEN_3, TransformerConfig
from attnbook.model.gpt import (
    MARKS,
    Classifier,
    MultipleChoice,
    Similarity,
    both_ways,
    lay_out,
    options,
    with_marks,
)
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.text.vocabulary import Vocabulary

SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2, "d_head": 4, "max_len": 16}
CONFIGS = [
    replace(GPT_1, **SIZES, dropout=0.0),
    replace(QWEN_3, **SIZES, n_kv_heads=1, tied=False),
]
VOCAB = Vocabulary("abcdef", pad="<end>", bos="<end>", eos="<end>")  # <end> is 0
START, DELIMITER, EXTRACT = 7, 8, 9
A, B, C = [1, 2, 3, 4], [5, 6], [2]


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def made(config: TransformerConfig = CONFIGS[0]) -> TransformerDecoder:
    """A random model with marks."""
    torch.manual_seed(1)
    return with_marks(TransformerDecoder(VOCAB, config)).eval()


MARKED = made().vocab


@pytest.mark.parametrize("config", CONFIGS, ids=["GPT_1", "QWEN_3"])
def test_marks_are_three_more_tokens_of_the_same_model(config: TransformerConfig) -> None:
    old = TransformerDecoder(VOCAB, config).eval()
    before = deepcopy(old.state_dict())
    new, tokens = with_marks(old), torch.randint(7, (3, 5))
    assert new.vocab.tokens == (*VOCAB.tokens, *MARKS) and old.vocab == VOCAB
    assert (new.vocab.pad, new.vocab.bos, new.vocab.eos) == (0, 0, 0)
    assert new.vocab.encode(MARKS) == [START, DELIMITER, EXTRACT]
    close(new(tokens)[..., :7], old(tokens))
    assert new(tokens + 3).shape == (3, 5, 10) and new(tokens + 3).isfinite().all()
    for weight in new.parameters():
        assert weight.requires_grad
        torch.nn.init.ones_(weight)
    assert all(weight.equal(before[name]) for name, weight in old.state_dict().items())


def test_vectors_of_marks_are_as_large_as_others() -> None:
    torch.manual_seed(0)
    old = TransformerDecoder(VOCAB, replace(CONFIGS[0], d_model=600))
    with torch.no_grad():
        old.stack.embedding.weight.mul_(3).add_(2)
    rows = with_marks(old).stack.embedding.weight[7:]
    assert abs(rows.mean().item() - 2) < 0.02
    assert 0.8 < (rows.std() / old.stack.embedding.weight.std()).item() < 1.2


def test_rows_are_those_of_the_papers_figure() -> None:
    assert lay_out(MARKED, [A, C], max_len=9).tolist() == [[7, *A, 9], [7, *C, 9, 0, 0, 0]]
    pairs = lay_out(MARKED, [A, C], [B, C], max_len=9)
    assert pairs.tolist() == [[7, *A, 8, *B, 9], [7, *C, 8, *C, 9, 0, 0, 0, 0]]
    orders = both_ways(MARKED, [A, B], [B, C], max_len=9)
    assert orders.tolist() == [
        [[7, *A, 8, *B, 9], [7, *B, 8, *A, 9]],
        [[7, *B, 8, *C, 9, 0, 0, 0], [7, *C, 8, *B, 9, 0, 0, 0]],
    ]
    choice = options(MARKED, [A, B], [[B, C, C], [A, A, B]], max_len=16)
    assert choice.shape == (2, 3, 9)
    assert choice[0, 1].tolist() == [7, *A, 8, *C, 9, 0]
    assert choice[1, 2].tolist() == [7, *B, 8, *B, 9, 0, 0]


def test_the_longer_text_is_cut_at_its_end() -> None:
    assert lay_out(MARKED, [A], max_len=4).tolist() == [[7, 1, 2, 9]]
    assert lay_out(MARKED, [A], [B], max_len=8).tolist() == [[7, 1, 2, 3, 8, 5, 6, 9]]
    assert lay_out(MARKED, [A], [B], max_len=6).tolist() == [[7, 1, 2, 8, 5, 9]]
    assert lay_out(MARKED, [B], [A], max_len=5).tolist() == [[7, 5, 8, 1, 9]]
    assert lay_out(MARKED, [[], A], [B, []], max_len=5).tolist() == [
        [7, 8, 5, 6, 9],
        [7, 1, 2, 8, 9],
    ]


@pytest.mark.parametrize("config", CONFIGS, ids=["GPT_1", "QWEN_3"])
@torch.no_grad()
def test_heads_are_linear_in_the_state_at_extract(config: TransformerConfig) -> None:
    gpt = made(config)

    def h(row: list[int]) -> torch.Tensor:
        return gpt.stack(torch.tensor([row]), causal=True)[0, -1]

    head = Classifier(gpt, 5).eval()
    scores = head(lay_out(gpt.vocab, [A, C], [B, B], max_len=9))
    close(scores[0], head.out.weight @ h([7, *A, 8, *B, 9]) + head.out.bias)
    close(scores[1], head.out.weight @ h([7, *C, 8, *B, 9]) + head.out.bias)
    same = Similarity(gpt, 2).eval()
    scores = same(both_ways(gpt.vocab, [A], [B], max_len=9))
    both = h([7, *A, 8, *B, 9]) + h([7, *B, 8, *A, 9])
    close(scores[0], same.out.weight @ both + same.out.bias)
    choice = MultipleChoice(gpt).eval()
    scores = choice(options(gpt.vocab, [A, C], [[B, C, C], [A, B, C]], max_len=9))
    assert scores.shape == (2, 3)
    close(scores[0, 0], choice.out.weight[0] @ h([7, *A, 8, *B, 9]) + choice.out.bias[0])
    close(scores[1, 1], choice.out.weight[0] @ h([7, *C, 8, *B, 9]) + choice.out.bias[0])


@pytest.mark.parametrize("config", CONFIGS, ids=["GPT_1", "QWEN_3"])
@torch.no_grad()
def test_order_padding_and_neighbours_change_nothing(config: TransformerConfig) -> None:
    gpt = made(config)
    same, choice = Similarity(gpt, 3).eval(), MultipleChoice(gpt).eval()
    rows = both_ways(gpt.vocab, [A, B], [C, A], max_len=9)
    close(same(rows), same(both_ways(gpt.vocab, [C, A], [A, B], max_len=9)))
    close(same(rows), same(pad(rows, (0, 3))))
    close(same(rows)[:1], same(rows[:1]))
    one_way = Classifier(gpt, 3).eval()
    forth, back = (one_way(lay_out(gpt.vocab, *p, max_len=9)) for p in ([[A], [C]], [[C], [A]]))
    assert (forth - back).abs().max() > 1e-3
    answers = options(gpt.vocab, [A, C], [[B, C, A], [A, B, C]], max_len=9)
    close(choice(answers)[:, [2, 0, 1]], choice(answers[:, [2, 0, 1]]))


@pytest.mark.parametrize(("config", "part"), list(product(CONFIGS, (0.0, 0.5, 2.0))))
@torch.no_grad()
def test_the_loss_is_that_of_answers_and_of_words(config: TransformerConfig, part: float) -> None:
    gpt = made(config)
    head, labels = Classifier(gpt, 4).eval(), torch.tensor([3, 1])
    rows = [[7, *A, 8, *B, 9], [7, *C, 9]]
    tokens = torch.tensor([rows[0], [*rows[1], *[0] * 6]])
    words = []
    for row in rows:
        scores = gpt(torch.tensor([row]))[0].log_softmax(-1)
        words += [-scores[i, row[i + 1]] for i in range(len(row) - 1)]
    wanted = cross_entropy(head(tokens), labels) + part * torch.stack(words).mean()
    close(head.loss(tokens, labels, auxiliary=part), wanted)
    close(head.loss(pad(tokens, (0, 3)), labels, auxiliary=part), wanted)
    if part == 0.5:
        close(head.loss(tokens, labels), wanted)


def test_each_head_learns_its_task() -> None:
    """Whether a text has an a; whether one of two has; which answer is how a text begins."""
    torch.manual_seed(0)
    words = torch.randint(1, 7, (400, 2)).tolist()
    other = words[1:] + words[:1]
    right = torch.randint(2, (400,))
    begun = [[[w[0]], [1 + w[0] % 6]] for w in words]  # the first letter, and another
    answers = [some[:: 1 - 2 * i] for some, i in zip(begun, right.tolist(), strict=True)]
    found = {}
    for kind in (Classifier, Similarity, MultipleChoice):
        gpt = with_marks(TransformerDecoder(VOCAB, replace(CONFIGS[0], d_model=24)))
        if kind is MultipleChoice:
            head, labels = MultipleChoice(gpt), right
            rows = options(gpt.vocab, words, answers, max_len=9)
        elif kind is Similarity:
            pairs = zip(words, other, strict=True)
            head, labels = Similarity(gpt, 2), torch.tensor([int(1 in a + b) for a, b in pairs])
            rows = both_ways(gpt.vocab, words, other, max_len=9)
        else:
            head, labels = Classifier(gpt, 2), torch.tensor([int(1 in w) for w in words])
            rows = lay_out(gpt.vocab, words, max_len=9)
        train(
            head,
            lambda step, rows=rows, labels=labels: (rows[step % 8 :: 8], labels[step % 8 :: 8]),
            lambda drawn, head=head: head.loss(*drawn, auxiliary=0.1),
            200,
            lr=0.01,
        )
        found[kind.__name__] = (head(rows).argmax(-1) == labels).double().mean().item()
    assert min(found.values()) > 0.95, found


def test_a_byte_pair_vocabulary_takes_marks() -> None:
    words = BytePair([("h", "e")])
    gpt = with_marks(TransformerDecoder(words.vocab, CONFIGS[0]))
    rows = lay_out(gpt.vocab, [words.encode("the")], max_len=16)
    assert [gpt.vocab.tokens[i] for i in rows[0].tolist()] == ["<start>", "t", "he", "<extract>"]
