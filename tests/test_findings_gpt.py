"""What chapter 9 prints whole, a tokenizer and a GPT, run as a reader would who copies it."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu

from attnbook.model import GPT_2, TransformerDecoder
from attnbook.text import BytePair, Vocabulary
from attnbook.text.corpus import windows
from attnbook.text.tokenizers.bytepair import LETTERS, WORD
from tools import notebooks

VOCAB, LENGTH, D, HEADS, LAYERS = 11, 7, 12, 3, 2
MODEL = ("def attention(q", "class Block", "class GPT", "def write_on(")
TOKENIZER = ("def as_bytes(", "def merge(", "def learn(texts", "def cut(word")
TRAINING = ("model = GPT(", "for step in range(")


def printed(*starts: str) -> str:
    """The chapter's code cells that define these."""
    cells = notebooks.code_cells(notebooks.read(notebooks.BOOK / "09_gpt.ipynb"))
    found = [cell.source for cell in cells for start in starts if start in cell.source]
    assert len(found) == len(starts)
    return "\n\n".join(found)


@pytest.fixture(scope="module")
def page():
    """The names of the printed model, and of the tokenizer above it."""
    known = {"torch": torch, "nn": nn, "gelu": gelu, "Counter": Counter, "pairwise": pairwise}
    known |= {"LETTERS": LETTERS, "WORD": WORD}
    exec(compile(printed(*MODEL, *TOKENIZER), "09_gpt", "exec"), known)
    return SimpleNamespace(**known)


@pytest.fixture
def model(page):
    torch.manual_seed(0)
    made = page.GPT(VOCAB, LENGTH, D, HEADS, LAYERS)
    for weight in made.parameters():  # biases and norms, too: what starts at 0 hides slips
        nn.init.normal_(weight, std=0.3)
    return made


def in_the_package(model) -> TransformerDecoder:
    """The package's decoder with the weights of the printed one."""
    sizes = {"d_model": D, "n_heads": HEADS, "d_ff": 4 * D, "n_layers": LAYERS, "max_len": LENGTH}
    config = replace(GPT_2, dropout=0.0, **sizes)
    theirs = TransformerDecoder(Vocabulary(map(str, range(VOCAB - 3))), config)
    stack: Any = theirs.stack
    with torch.no_grad():
        stack.embedding.weight.copy_(model.words.weight)
        stack.positions.embedding.weight.copy_(model.places.weight)
    stack.norm.load_state_dict(model.norm.state_dict())
    for ours, block in zip(model.blocks, stack.blocks, strict=True):
        attention, network = block.attention, block.feed_forward
        pairs = [
            (ours.norm_1, block.attention_norm),
            (ours.out, attention.out),
            (ours.norm_2, block.feed_forward_norm),
            (ours.up, network.up),
            (ours.down, network.down),
        ]
        for mine, other in pairs:
            other.load_state_dict(mine.state_dict())
        for name in ("weight", "bias"):
            parts = getattr(ours.qkv, name).chunk(3)
            for part, layer in zip(parts, (attention.q, attention.k, attention.v), strict=True):
                layer.load_state_dict({name: part}, strict=False)
    return theirs.eval()


def test_it_is_printed_in_sixty_lines():
    code = printed(*MODEL, *TRAINING)
    assert len([line for line in code.split("\n") if line.strip()]) <= 60


def test_it_equals_the_package(model):
    ids = torch.randint(VOCAB, (2, LENGTH))
    ours, theirs = model.double()(ids), in_the_package(model).double()(ids)
    assert (ours - theirs).abs().max() < 1e-6 and ours.std() > 0.1


def test_no_place_sees_what_is_on_its_right(model):
    ids = torch.randint(VOCAB, (1, LENGTH))
    other = ids.clone()
    other[0, -1] = (ids[0, -1] + 1) % VOCAB
    before, after = model(ids), model(other)
    assert torch.allclose(before[:, :-1], after[:, :-1], atol=1e-6)
    assert not torch.allclose(before[:, -1], after[:, -1], atol=1e-3)


def test_it_writes_on_beyond_its_length(page, model):
    ids = torch.randint(VOCAB, (2, 3))
    written = page.write_on(model, ids, 9, k=4)
    assert written.shape == (2, 12) and written[:, :3].equal(ids)
    last = model(written[:, -LENGTH - 1 : -1])[:, -1].topk(4).indices
    assert all(token in best for token, best in zip(written[:, -1], last, strict=True))


def test_it_begins_as_a_blind_guess_and_learns(page):
    torch.manual_seed(1)
    model, stream = page.GPT(50, 8, 16, 2, 1), torch.arange(400) * 7 % 50
    adam, losses = torch.optim.AdamW(model.parameters(), lr=0.01), []
    for step in range(60):
        drawn = windows(stream, 8, step, batch_size=4)
        loss = cross_entropy(model(drawn.tokens).mT, drawn.targets)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert abs(losses[0] - math.log(50)) < 0.3 and losses[-1] < 1.5


@pytest.mark.parametrize("seed", range(3))
def test_the_tokenizer_equals_the_package(page, seed):
    generator = torch.Generator().manual_seed(seed)
    letters = "aab  ?1é🙂\n"
    drawn = torch.randint(len(letters), (400,), generator=generator).tolist()
    text = "".join(letters[i] for i in drawn)
    merges = list(page.learn([text], 12))
    known = BytePair(merges)
    for word in WORD.findall(text):
        assert page.cut(word, merges) == [known.vocab.tokens[i] for i in known.encode(word)]
    words = map(page.as_bytes, WORD.findall(text))
    pairs = Counter(pair for word in words for pair in pairwise(word))
    assert pairs[merges[0]] == max(pairs.values())
