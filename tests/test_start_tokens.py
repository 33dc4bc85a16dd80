"""What is read of prompts where one token is start, end and padding; models that still train."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbook.learn.bits import nats
from attnbook.learn.metrics import evaluate
from attnbook.model.coding import compress, restore
from attnbook.model.decoding import evaluating
from attnbook.model.prompting import next_logp
from attnbook.model.sampling import GREEDY, Sampling, row_seeds
from attnbook.model.transformer import Transformer, TransformerDecoder
from attnbook.text.vocabulary import Pairs, Vocabulary, pad_batch
from attnbook.weights.pretrained import sotu_gpt
from tests.helpers.parity import SMALL, close, randomise
from tests.helpers.translator import ENGLISH, GERMAN, ONE

TWO = Vocabulary("abcdefgh", pad="<e>", eos="<e>")  # padding and end alone, as in SmolLM2's


def prompts(vocab: Vocabulary) -> list[Tensor]:
    end = vocab.eos
    rows = ([end], [end, 4, 5], [4, end, 5], [4, 5, end], [end, end, 4], [vocab.bos, 4])
    return [torch.tensor([row]) for row in rows]


@torch.no_grad()
@pytest.mark.parametrize("vocab", [ONE, TWO], ids=["one", "two"])
def test_every_token_is_read_that_the_caller_gave(vocab: Vocabulary) -> None:
    decoder: Any = randomise(TransformerDecoder(vocab, SMALL)).double()
    for tokens in prompts(vocab):
        drawn = decoder.sample(tokens, 5, n=3, seed=2)
        for row, logp in zip(drawn.tokens, drawn.logp, strict=True):
            whole = torch.cat([tokens[0], row])[None]
            wanted = decoder(whole)[0, tokens.shape[1] - 1 : -1].log_softmax(-1)
            n = int(vocab.written(row[None]).sum())
            mine = wanted.gather(1, row[:, None])[:n, 0]
            torch.testing.assert_close(logp[:n].double(), mine, atol=1e-5, rtol=0)
        mask = torch.ones_like(tokens, dtype=torch.bool)
        for asked in ({}, {"beam": 2}):
            one, other = (decoder.generate(tokens, 6, **asked, **m) for m in ({}, {"mask": mask}))
            assert one.tokens.equal(other.tokens) and one.scores.equal(other.scores)
        greedy = decoder.sample(tokens, 6, how=GREEDY).tokens
        assert greedy.equal(decoder.generate(tokens, 6, mask=mask).tokens)


@torch.no_grad()
def test_the_books_gpt_reads_its_start_token() -> None:
    model, tokenizer = sotu_gpt()
    ids = torch.tensor([[tokenizer.vocab.bos, *tokenizer.encode("My fellow citizens,")]])
    drawn = model.sample(ids, 1, seed=1)
    close(drawn.logp[0], model(ids)[0, -1].log_softmax(-1)[drawn.tokens[0]])
    mask = torch.ones_like(ids, dtype=torch.bool)
    assert model.generate(ids, 8).tokens.equal(model.generate(ids, 8, mask=mask).tokens)
    assert not model.generate(ids, 8).tokens.equal(model.generate(ids[:, 1:], 8).tokens)


@torch.no_grad()
@pytest.mark.parametrize("vocab", [ONE, TWO], ids=["one", "two"])
def test_unequal_prompts_need_a_mask_where_padding_is_another_token_too(vocab: Vocabulary) -> None:
    decoder: Any = randomise(TransformerDecoder(vocab, SMALL)).double()
    rows = [[5, 3, 4], [vocab.bos, 4], [vocab.bos], [4, vocab.eos, 6, 7]]
    tokens = pad_batch(rows, vocab.pad, side="left")
    mask = pad_batch([[1] * len(row) for row in rows], 0, side="left") > 0
    for ask in (decoder.sample, decoder.generate):
        with pytest.raises(
            ValueError, match=r"mask must say which .* '<e>' is .* got no mask and 0"
        ):
            ask(tokens, 5)
    drawn, best = (
        decoder.sample(tokens, 5, mask=mask, seed=3),
        decoder.generate(tokens, 5, mask=mask),
    )
    for i, (row, seed) in enumerate(zip(rows, row_seeds(3, len(rows)), strict=True)):
        alone = torch.tensor([row])
        for ours, found in (
            (drawn.tokens, decoder.sample(alone, 5, seed=seed[None]).tokens),
            (best.tokens, decoder.generate(alone, 5).tokens),
        ):
            n = found.shape[1]
            assert ours[i, :n].tolist() == found[0].tolist() and (ours[i, n:] == vocab.pad).all()
    ones = torch.tensor([[vocab.eos], [4]])  # of one token each: there is no room for padding
    assert decoder.generate(ones, 3).tokens.equal(
        decoder.generate(ones, 3, mask=torch.ones_like(ones, dtype=torch.bool)).tokens
    )


# ---- models in training

DROPPING = replace(SMALL, dropout=0.5)
MODELS: dict[str, Callable[[], Any]] = {
    "decoder": lambda: randomise(TransformerDecoder(GERMAN, DROPPING)),
    "translator": lambda: randomise(Transformer(ENGLISH, GERMAN, DROPPING)),
}
TOKENS = torch.tensor([[3, 4, 5], [6, 7, 8]])
PAIRS = Pairs(torch.randint(3, 11, (40, 4)), torch.randint(3, 11, (40, 5)))
ASKED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "generate": ("decoder", lambda m: m.generate(TOKENS, 5).scores),
    "sample": ("decoder", lambda m: m.sample(TOKENS, 5, how=Sampling(top_p=0.9)).logp),
    "nats": ("decoder", lambda m: nats(m, torch.arange(3, 11).repeat(3), 6)),
    "next_logp": ("decoder", lambda m: next_logp(m, [[3, 4], [3, 5, 6]], [4, 5])),
    "bounds": ("decoder", lambda m: list(compress(m, [3, 5, 4, 9] * 5, context=4))),
    "translate": ("translator", lambda m: m.translate(PAIRS.source, 6, beam=2).scores),
    "evaluate": ("translator", lambda m: list(evaluate(m, PAIRS))),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_model_in_training_is_asked_without_its_dropout(name: str) -> None:
    made, ask = ASKED[name]
    model = MODELS[made]()
    wanted = torch.as_tensor(ask(model))
    model.train()
    [*model.modules()][3].eval()  # a part that stays as it is
    modes = [module.training for module in model.modules()]
    for _ in range(3):
        found = torch.as_tensor(ask(model))
        assert found.equal(wanted) and not found.requires_grad
        assert [module.training for module in model.modules()] == modes


def test_a_part_that_fails_leaves_the_models_mode_as_it_was() -> None:
    model = MODELS["decoder"]().train()

    def fails() -> None:
        with evaluating(model):
            assert not any(module.training for module in model.modules())
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert all(module.training for module in model.modules()) and torch.is_grad_enabled()


def test_a_text_comes_back_though_the_model_trains() -> None:
    model, text = MODELS["decoder"]().train(), [3, 5, 4, 9] * 5
    assert restore(model, compress(model, text, context=6), context=6) == text
