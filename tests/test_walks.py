"""What a walk shows is what the model computes: against the same numbers worked out by hand."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnbook.model.bert import Bert
from attnbook.model.config import BERT, TransformerConfig
from attnbook.model.decoding import beam_search
from attnbook.model.prompting import Wording
from attnbook.model.sampling import Sampling, draw
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import Stroke
from attnbook.text.tokenizers import BytePair, WordPiece
from attnbook.walks import (
    beam_tree,
    input_layout,
    masked_word,
    next_token,
    one_draw,
    prompt_label,
)
from attnbook.web import Drawing

TEXT = "we must ask the people to keep the peace"
TOKENIZER = WordPiece.train([TEXT] * 3, 120)
TOKENS = TOKENIZER.vocab.tokens
CONFIG = replace(BERT, d_model=20, n_heads=4, d_ff=14, n_layers=3, max_len=16)
POST, PRE = CONFIG, replace(CONFIG, norm="pre", embedding_norm=False, embedding_scale=True)
BARE = replace(PRE, n_segments=0, positions="rotary", n_heads=2)


def bert(config: TransformerConfig) -> Bert:
    torch.manual_seed(0)
    model = Bert(TOKENIZER.vocab, config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    return model


def drawn(drawing: Drawing, name: str) -> Tensor:
    """The numbers of all parts of this name, one row a part."""
    places = [place.part for place in drawing.picture.find(name)]
    return torch.tensor([part.values.tolist() for part in places if part.values is not None])


def by_hand(model: Bert, ids: list[int], layer: int, head: int, place: int) -> dict[str, Tensor]:
    """Everything on the way of one token, from the weights alone."""
    stack, n = model.stack, len(ids)
    post = stack.config.norm == "post"
    found = {"token": stack.embedding.weight[ids]}
    if stack.config.embedding_scale:
        found["token"] = found["token"] * model.d_model**0.5
    if stack.segments is not None:
        found["segment"] = stack.segments.weight[[0] * n]
    if stack.config.positions == "learned":
        found["position"] = dict(stack.named_parameters())["positions.embedding.weight"][:n]
    x = torch.stack(list(found.values())).sum(0)
    found["sum"] = x
    x = stack.embedding_norm(x)
    found["state"], states = x, []
    blocks: Any = stack.blocks
    for number, block in enumerate(blocks):
        a = block.attention
        read = x if post else block.attention_norm(x)
        q, k, v = (
            (read @ m.weight.T + m.bias).unflatten(-1, (a.n_heads, -1)).transpose(0, 1)
            for m in (a.q, a.k, a.v)
        )
        if a.positions is not None:
            q, k = (a.positions.rotate(t[None], torch.arange(n)[None])[0] for t in (q, k))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
        heads = weights @ v
        out = heads.transpose(0, 1).flatten(1) @ a.out.weight.T + a.out.bias
        joined = block.attention_norm(x + out) if post else x + out
        fed = block.feed_forward(joined if post else block.feed_forward_norm(joined))
        after = block.feed_forward_norm(joined + fed) if post else joined + fed
        if number == layer:
            found |= {"query": q[head], "mixed": heads[head], "out": out, "kept": x, "fed": fed}
            found |= {"joined": joined, "next": after, "heads": heads[:, place]}
            found |= {"keys": k[head], "values": v[head]}
            found |= {"scores": scores[head, place], "weights": weights[head, place]}
        x = after
        states.append(x[place])
    assert model.words is not None
    turned = model.words.norm(model.words.f(model.words.transform(stack.norm(x))))
    logits = turned[place] @ stack.embedding.weight.T + model.words.bias
    return {**found, "turned": turned, "layers": torch.stack(states), "logits": logits}


ONE = ["token", "segment", "position", "sum", "state", "query", "mixed", "out", "kept", "joined"]
ONE += ["fed", "next", "turned"]


@torch.no_grad()
@pytest.mark.parametrize(("config", "layer", "head"), [(POST, 0, 2), (PRE, 1, 0), (BARE, 2, 1)])
def test_a_masked_word_shows_the_numbers_of_the_model(
    config: TransformerConfig, layer: int, head: int
) -> None:
    model = bert(config)
    walk = masked_word(
        model, TOKENIZER, "we must [MASK] the peace", answer="keep", layer=layer, head=head, top=4
    )
    ids = [TOKENIZER.vocab.bos, *TOKENIZER.encode("we must"), TOKENIZER.mask]
    place = len(ids) - 1
    ids += [*TOKENIZER.encode("the peace"), TOKENIZER.vocab.eos]
    found = by_hand(model, ids, layer, head, place)
    shown = [name for name in ONE if name in walk.picture.names()]
    absent = {"segment", "position"} if config is BARE else set()
    absent |= set() if config is POST else {"sum"}
    assert set(ONE) - set(shown) == absent
    for name in shown:
        torch.testing.assert_close(drawn(walk, name)[0], found[name][place, :6], msg=name)
    for name in ("keys", "values"):
        torch.testing.assert_close(drawn(walk, name), found[name][:, :5], msg=name)
    for name in ("scores", "weights"):
        torch.testing.assert_close(drawn(walk, name)[:, 0], found[name], msg=name)
    torch.testing.assert_close(drawn(walk, "this")[0], found["heads"][head, :4])
    others = [n for n in range(config.n_heads) if n != head]
    torch.testing.assert_close(drawn(walk, "heads"), found["heads"][others, :4])
    torch.testing.assert_close(drawn(walk, "layers"), found["layers"][:, :4])
    best = found["logits"].topk(4).indices
    torch.testing.assert_close(drawn(walk, "logits")[:, 0], found["logits"][best])
    torch.testing.assert_close(drawn(walk, "embeddings"), model.stack.embedding.weight[best, :4])
    shares = (found["logits"] - found["logits"].logsumexp(-1)).exp()
    torch.testing.assert_close(drawn(walk, "bars")[0], shares[best])
    told = " ".join(step["caption"] for step in walk.steps)
    assert f"“{TOKENS[best[0]]}” gets {shares.max():.2f}. The masked word was “keep”." in told
    assert f"The largest, {found['weights'].max():.2f}, goes to" in told
    assert len(walk.steps) == 17 + bool(layer)


@torch.no_grad()
@pytest.mark.parametrize("config", [POST, PRE, BARE])
def test_the_input_is_the_sum_of_what_is_shown(config: TransformerConfig) -> None:
    model = bert(config)
    walk = input_layout(model, TOKENIZER, "we must", "keep peace", name="input")
    bos, eos = TOKENIZER.vocab.bos, TOKENIZER.vocab.eos
    first, second = TOKENIZER.encode("we must"), TOKENIZER.encode("keep peace")
    ids = [bos, *first, eos, *second, eos]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    scale = 20**0.5 if config.embedding_scale else 1
    wanted = {"token": model.stack.embedding.weight[ids] * scale}
    if config is not BARE:
        assert model.stack.segments is not None
        wanted["segment"] = model.stack.segments.weight[segments]
        weights = dict(model.stack.named_parameters())["positions.embedding.weight"]
        wanted["position"] = weights[: len(ids)]
    for name, vectors in wanted.items():
        torch.testing.assert_close(drawn(walk, name), vectors[:, :6])
    torch.testing.assert_close(drawn(walk, "sum"), torch.stack([*wanted.values()]).sum(0)[:, :6])
    assert len(walk.steps) == 2 + len(wanted)
    parts = [float(vectors[1, 0]) for vectors in wanted.values()]
    total = f"= {sum(parts):z.2f}.".replace("-", "−")
    assert walk.steps[-1]["caption"].endswith(total)
    assert walk.svg.count(">B</text>") == (sum(segments) if config is not BARE else 0)


def test_the_model_stays_as_it_was() -> None:
    model = bert(POST)
    before = {name: vars(module).keys() for name, module in model.named_modules()}
    masked_word(model, TOKENIZER, "we [MASK]")
    assert before == {name: vars(module).keys() for name, module in model.named_modules()}
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"words": "we must ask"}, r"words must have one \[MASK\], got 'we must ask'"),
        ({"words": "[MASK] [MASK]"}, r"words must have one \[MASK\]"),
        ({"layer": 3}, r"layer must lie in 0..2, got 3"),
        ({"layer": -1}, "layer must be a whole number of at least 0, got -1"),
        ({"head": 4}, r"head must lie in 0..3, got 4"),
        ({"top": 0}, "top must be a whole number of at least 1, got 0"),
        ({"top": 10**6}, "top must lie in 1"),
        ({"words": f"{TEXT} [MASK] we"}, "body must be at most 356 wide.*use fewer parts"),
    ],
)
def test_what_can_not_be_walked_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        masked_word(bert(POST), TOKENIZER, **{"words": "we [MASK]", **change})


def small_gpt(seed: int = 0) -> tuple[TransformerDecoder, BytePair]:
    tokenizer = BytePair.train([TEXT] * 3, 280)
    torch.manual_seed(seed)
    model = TransformerDecoder(tokenizer.vocab, TransformerConfig(20, 4, 14, 2)).eval()
    return model, tokenizer


def test_every_token_but_the_first_is_asked_for_with_what_the_model_gives_it():
    model, tokenizer = small_gpt()
    ids = tokenizer.encode("we must ask")[:5]
    words = tokenizer.decode(ids)
    drawing = next_token(model, tokenizer, words)
    shares = []
    for n in range(1, len(ids)):  # one exercise at a time, without what comes later
        scores = model(torch.tensor([ids[:n]]))[0, -1]
        shares.append((scores[ids[n]].exp() / scores.exp().sum()).item())
    alone = [drawn(drawing, f"share{n}").item() for n in range(1, len(ids))]
    assert alone == pytest.approx(shares, abs=1e-6)
    assert drawn(drawing, "shares")[:, 0].tolist() == pytest.approx(shares, abs=1e-6)
    assert drawn(drawing, "costs")[:, 0].tolist() == pytest.approx(
        [-math.log2(share) for share in shares], abs=1e-4
    )
    for n in range(1, len(ids)):
        assert len(drawing.picture.find(f"read{n}")) == n
    assert len(drawing.steps) == len(ids) + 4


def test_a_text_of_two_tokens_has_nothing_to_show():
    tokenizer = BytePair([])
    model = TransformerDecoder(tokenizer.vocab, TransformerConfig(20, 4, 14, 1))
    with pytest.raises(ValueError, match="words must have at least three tokens, got 2"):
        next_token(model, tokenizer, "ab")


@pytest.mark.parametrize("number", [0.0, 0.4, 0.999])
@pytest.mark.parametrize(
    ("how", "columns"),
    [
        (Sampling(temperature=0.5, top_k=5, top_p=0.75), ("temperature", "top_k", "top_p")),
        (Sampling(temperature=2.0, top_k=4, min_p=0.9), ("temperature", "top_k", "min_p")),
        (Sampling(top_k=6), ("top_k",)),
        (Sampling(temperature=0), ("temperature",)),
    ],
)
def test_a_draw_shows_what_each_filter_leaves(
    how: Sampling, columns: tuple[str, ...], number: float
) -> None:
    model, tokenizer = small_gpt()
    walk = one_draw(model, tokenizer, "we must", how, number=number, shown=7)
    with torch.no_grad():
        logits = model(torch.tensor([tokenizer.encode("we must")]))[0, -1].tolist()
    ranks = sorted(range(len(logits)), key=lambda i: -logits[i])

    def shares(temperature: float, kept: set[int]) -> list[float]:
        """By hand: of seven tokens and of all others, as a table's column shows them."""
        if not temperature:
            kept, temperature = {ranks[0]}, 1.0
        wide = {i: math.exp(logits[i] / temperature) for i in kept}
        one = {i: x / sum(wide.values()) for i, x in wide.items()}
        rest = sum(one.get(i, 0.0) for i in ranks[7:])
        return [*(one.get(i, math.nan) for i in ranks[:7]), rest or math.nan]

    left, everything = set(ranks), shares(1.0, set(ranks))
    table = torch.full((8, 1 + len(columns)), math.nan)
    for row, name in ((0, "before"), *((n, name) for n, name in enumerate(columns, 1))):
        table[:, row] = drawn(walk, name)[:, 0]
    assert table[:, 0].tolist() == pytest.approx(everything, abs=1e-6)
    assert drawn(walk, "bars")[0].tolist() == pytest.approx(everything, abs=1e-6)
    for n, name in enumerate(columns, 1):
        now = shares(how.temperature, left)[:7]
        if name == "top_k":
            left = set(ranks[: how.top_k])
        elif name == "top_p":
            sums = [sum(now[:k]) for k in range(8)]
            left &= {ranks[k] for k in range(7) if sums[k] < how.top_p}
        elif name == "min_p":
            left &= {ranks[k] for k in range(7) if now[k] >= how.min_p * now[0]}
        wanted = shares(how.temperature, left)
        assert table[:, n].tolist() == pytest.approx(wanted, abs=1e-6, nan_ok=True)
    kept = how(torch.tensor([logits]), torch.zeros(1, 0, dtype=torch.long))
    assert kept.isfinite().sum() == 7 - table[:7, -1].isnan().sum()
    strip = drawn(walk, "strip")[0]
    falling = kept[kept.isfinite()].softmax(0).sort(descending=True).values
    assert strip.tolist() == pytest.approx(falling.tolist(), abs=1e-6)
    assert "[side by side](strip), the likeliest first," in walk.steps[-3]["caption"]
    token = draw(kept, torch.tensor([number], dtype=torch.float64)).item()
    said = tokenizer.decode([int(token)]).replace(" ", "␣")
    assert f"The next token is [“{said}”](drawn)." in walk.steps[-1]["caption"]
    assert bool(walk.steps[-1]["ask"]) == (token != ranks[0])
    marks = walk.picture.find("number")[0].part.inside
    line = next(mark for mark in marks if isinstance(mark, Stroke))
    assert line.points[0][0] == pytest.approx(340 * number)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"number": 1.0}, "number must be from 0 up to 1, without 1, got 1.0"),
        ({"number": -0.1}, "number must be from 0 up to 1"),
        ({"how": Sampling()}, "how must have one at least of temperature, top_k, top_p, min_p"),
        ({"how": Sampling(top_k=2, typical=0.9)}, "and no other, got Sampling"),
        ({"how": Sampling(top_k=8)}, "how must leave at most shown = 7 tokens, got 8"),
        ({"shown": 1}, "shown must be a whole number of at least 2, got 1"),
    ],
)
def test_a_draw_that_can_not_be_shown_is_refused(change: dict[str, Any], says: str) -> None:
    options: dict[str, Any] = {"how": Sampling(top_k=3), "number": 0.5, **change}
    with pytest.raises(ValueError, match=says):
        one_draw(*small_gpt(), "we must", **options)


def test_a_beam_tree_shows_what_beam_search_does() -> None:
    model, tokenizer = small_gpt(7)
    for penalty in (0.0, 0.8):
        tree = beam_tree(model, tokenizer, "we must", beam=3, max_len=4, length_penalty=penalty)
        ids = torch.tensor([tokenizer.encode("we must")])
        beams: list[tuple[list[int], float]] = [([], 0.0)]
        for n in range(1, 5):
            found = []
            for path, total in beams:
                row = model(torch.tensor([[*ids[0].tolist(), *path]]))[0, -1].log_softmax(-1)
                found += [([*path, i], total + p.item()) for i, p in enumerate(row)]
            barred = {tokenizer.vocab.pad, tokenizer.vocab.bos} - {tokenizer.vocab.eos}
            found = [each for each in found if each[0][-1] not in barred]
            found.sort(key=lambda each: each[1] / n**penalty, reverse=True)
            beams, lost = found[:3], found[3:5]
            for name, some in (("kept", beams), ("dropped", lost)):
                shown = sorted(drawn(tree, f"{name}{n}sum").flatten().tolist())
                assert shown == pytest.approx(sorted(total for _, total in some), abs=1e-4)
                if penalty:
                    shown = sorted(drawn(tree, f"{name}{n}score").flatten().tolist())
                    scores = sorted(total / n**penalty for _, total in some)
                    assert shown == pytest.approx(scores, abs=1e-4)
        best = model.generate(ids, 4, beam=3, length_penalty=penalty)
        greedy = model.generate(ids, 4)
        for name, each in (("winner", best), ("greedy", greedy)):
            assert tree.values(f"{name}sum").item() == pytest.approx(each.scores.item(), abs=1e-5)
        assert best.tokens[0].tolist() == beams[0][0]
        way = next(step for step in tree.steps if "its way" in step["caption"])["parts"]
        last, slot = way[-1].split(".")
        won = drawn(tree, f"{last}sum")[int(slot)].item()
        assert won == pytest.approx(beams[0][1], abs=1e-4)
        assert len(way) == 4 and len(tree.steps) == 8 and tree.png()


def test_what_a_beam_tree_says_of_greedy_search() -> None:
    """Overtaken, dropped, leading again: against where the greedy hypothesis stands."""
    said = set()
    for seed in range(12):
        model, tokenizer = small_gpt(seed)
        tree = beam_tree(model, tokenizer, "we must", beam=2, max_len=4)
        ids = torch.tensor([tokenizer.encode("we must")])
        ways: list[list[list[int]]] = [[[]]]

        def watch(_: Tensor, ranked: Tensor, best: Tensor, ways: Any = ways) -> None:
            size, before = ranked.shape[-1], ways[-1]
            ways.append([[*before[i // size], i % size] for i in best[0].tolist()])

        _, state = model.step(ids[:, :-1], model.start())
        vocab = model.vocab
        found = beam_search(model.step, state, ids[:, -1:], 4, vocab, beam=2, watch=watch)
        assert found.tokens[0].tolist() in ways[-1]
        greedy, rank = model.generate(ids, 4).tokens[0].tolist(), 0
        for n, way in enumerate(ways[1:], 1):
            now = way.index(greedy[:n]) if greedy[:n] in way else -1
            word = ""
            if now != rank and rank >= 0:
                word = (
                    "among the dropped" if now < 0 else "leads again" if now == 0 else "overtaken"
                )
            caption, rank = tree.steps[n]["caption"], now
            assert (word in caption) and (word or "The greedy" not in caption)
            said.add(word)
    assert {"", "overtaken", "among the dropped"} <= said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"beam": 1}, "beam must be a whole number of at least 2, got 1"),
        ({"beam": 5}, "beam must be at most 4 and max_len 7, got 5 and 3"),
        ({"max_len": 8}, "beam must be at most 4 and max_len 7, got 3 and 8"),
        ({"words": ""}, "words must have at least one token, got none"),
        ({"length_penalty": -1.0}, "length_penalty must be finite, at least 0, got -1"),
    ],
)
def test_what_a_beam_tree_refuses(given: dict[str, Any], says: str) -> None:
    model, tokenizer = small_gpt()
    with pytest.raises(ValueError, match=says):
        beam_tree(model, tokenizer, **{"words": "we must", "max_len": 3, **given})


@pytest.mark.parametrize(
    "walk",
    [
        lambda m, t, bert: next_token(m, t, "we must ask"),
        lambda m, t, bert: one_draw(m, t, "we must", Sampling(top_k=3), number=0.5, shown=7),
        lambda m, t, bert: beam_tree(m, t, "we must", beam=2, max_len=3),
        lambda m, t, bert: prompt_label(m, t, Wording("{} the", ("e", "t")), "we must"),
        lambda m, t, bert: input_layout(bert, TOKENIZER, "we must", "keep peace"),
        lambda m, t, bert: masked_word(bert, TOKENIZER, "we [MASK]"),
    ],
    ids=["next", "draw", "beam", "prompt", "input", "word"],
)
def test_a_model_in_training_is_drawn_without_its_dropout(walk: Any) -> None:
    decoder, tokenizer = small_gpt()
    encoder = bert(replace(CONFIG, dropout=0.5))
    models = decoder, encoder
    plain = walk(decoder, tokenizer, encoder).svg
    for part in [part for model in models for part in model.train().modules()]:
        if isinstance(part, nn.Dropout):
            part.p = 0.5
    assert walk(decoder, tokenizer, encoder).svg == plain
    assert all(part.training for model in models for part in model.modules())
