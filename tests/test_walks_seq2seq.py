"""Walks through a GRU's step, an unrolled translator and a step of attention: by hand, again."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnbook.model.scores import DotScore
from attnbook.model.seq2seq import Decoder, Encoder, GRUCell, Seq2Seq
from attnbook.show.drawing import Stroke
from attnbook.text.vocabulary import Vocabulary
from attnbook.walks import decoder_step, exchanged_states, gru_step, two_readers, unrolled
from tests.helpers.walks import drawn, told
from tests.helpers.walks_seq2seq import SOURCE, TARGET, WORDS, D, greedy, translator


def moves(x: Tensor, h: Tensor, w: Tensor, u: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """A GRU's next state, one number at a time."""
    d = len(h)
    made = []
    for k in range(d):
        r, z = (torch.sigmoid(w[i] @ x + b[i] + u[i] @ h + c[i]) for i in (k, k + d))
        i = k + 2 * d
        n = torch.tanh(w[i] @ x + b[i] + r * (u[i] @ h + c[i]))
        made.append((1 - z) * n + z * h[k])
    return torch.stack(made)


def cell_moves(cell: Any, x: Tensor, h: Tensor) -> Tensor:
    return moves(x, h, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)


def reads(rnn: nn.GRU, xs: Tensor, end: str = "_l0") -> Tensor:
    """All states of one direction of an encoder."""
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    parts = [getattr(rnn, f"{kind}{end}") for kind in kinds]
    h = torch.zeros(rnn.hidden_size)
    states = []
    for x in xs:
        h = moves(x, h, *parts)
        states.append(h)
    return torch.stack(states)


@torch.no_grad()
def endless() -> Seq2Seq:
    model = translator()
    model.decoder.out.bias[TARGET.eos] = -100.0
    return model


@torch.no_grad()
@pytest.mark.parametrize("reset", ["after", "before", "torch"])
def test_a_gru_step_shows_its_gates(reset: Any) -> None:
    torch.manual_seed(1)
    cell = nn.GRUCell(4, 7) if reset == "torch" else GRUCell(4, 7, reset)
    x, h = torch.randn(4), torch.randn(7)
    walk = gru_step(cell, x, h, shown=3, name="step")
    w_r, w_z, w_g = cell.weight_ih.chunk(3)
    u_r, u_z, u_g = cell.weight_hh.chunk(3)
    b_r, b_z, b_g = cell.bias_ih.chunk(3)
    c_r, c_z, c_g = cell.bias_hh.chunk(3)
    r = 1 / (1 + torch.exp(-(w_r @ x + b_r + u_r @ h + c_r)))
    z = 1 / (1 + torch.exp(-(w_z @ x + b_z + u_z @ h + c_z)))
    before = reset == "before"
    past = u_g @ (r * h) + c_g if before else r * (u_g @ h + c_g)
    g = torch.tanh(w_g @ x + b_g + past)
    found = {"x": x, "h": h, "r": r, "z": z, "past": past, "g": g, "next": (1 - z) * g + z * h}
    for name, vector in found.items():
        torch.testing.assert_close(drawn(walk, name)[0], vector[:3], msg=name)
    k = int(((z - 0.5) * (h - g))[:3].abs().argmax())
    mixed = f"{z[k]:.2f} · {h[k]:z.2f} + {1 - z[k]:.2f} · {g[k]:z.2f}"
    assert f"{mixed} = [{found['next'][k]:z.2f}](next.{k})".replace("-", "−") in told(walk)
    assert f"Of number {k + 1} the update gate is {z[k]:.2f}." in walk.steps[-2]["ask"]
    assert len(walk.steps) == 7 and sum(bool(step["ask"]) for step in walk.steps) == 2
    assert ("U (r ⊙ h)" in walk.svg) == before
    wired = {(link.start, link.end.removesuffix("-box")) for link in walk.arrows}
    inputs = {end: {a for a, b in wired if b == end} for _, end in wired}
    gates = {"r": {"x", "h"}, "z": {"x", "h"}}
    assert inputs == {**gates, "past": {"r", "h"}, "g": {"x", "past"}, "next": {"g", "z", "h"}}
    assert walk.png()


@torch.no_grad()
def test_an_unrolled_translator_shows_every_state() -> None:
    model = translator()
    tokens, encoder, decoder = greedy(model), model.encoder, model.decoder
    walk = unrolled(model, WORDS, answer="un deux", name="unrolled")
    states = reads(encoder.rnn, encoder.embedding.weight[SOURCE.encode(WORDS.split())])
    assert not drawn(walk, "h0").any()
    for t, h in enumerate(states, 1):
        torch.testing.assert_close(drawn(walk, f"h{t}")[0], h[:8])
        old = states[t - 2] if t > 1 else torch.zeros(D)
        k = int((h - old)[:8].abs().argmax())
        change = f"[number {k + 1}](h{t}.{k}) goes from {old[k]:z.2f} to {h[k]:z.2f}."
        assert walk.steps[t]["caption"].endswith(change.replace("-", "−"))
    s = states[-1]
    torch.testing.assert_close(drawn(walk, "s0")[0], s[:8])
    for t, (before, token) in enumerate(zip([TARGET.bos, *tokens], tokens, strict=False), 1):
        s = cell_moves(decoder.cells[0], decoder.embedding.weight[before], s)
        torch.testing.assert_close(drawn(walk, f"s{t}")[0], s[:8])
        scores = decoder.out.weight @ s + decoder.out.bias
        p = scores[token].exp() / scores.exp().sum()
        torch.testing.assert_close(drawn(walk, f"p{t}")[0, 0], p)
        assert f"[{p:.2f}](p{t})" in told(walk)
    n, m = 3, len(tokens)
    assert f"s{m + 1}" not in walk.picture.names() and f"h{n + 1}" not in walk.picture.names()
    assert len(walk.steps) == 2 + n + m and walk.png()
    assert walk.steps[-1]["caption"].endswith("Right would be “un deux”.")
    right = unrolled(model, WORDS, answer=" ".join(TARGET.decode(tokens)))
    assert right.steps[-1]["caption"].endswith("That is right.")
    assert ">(end)</text>" in walk.svg and ">(start)</text>" in walk.svg


def test_one_arrow_alone_leads_from_encoder_to_decoder() -> None:
    walk = unrolled(translator(), WORDS)
    ends = [(one.start, one.end) for one in walk.arrows]
    across = [(a, b) for a, b in ends if a[0] in "wh" and b[0] not in "wh"]
    assert across == [("h3", "s0")]


@torch.no_grad()
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(("kind", "two_way"), [("look", False), ("look", True), ("move", True)])
def test_a_decoder_step_shows_what_the_model_computes(kind: str, two_way: bool, step: int) -> None:
    model = translator(kind, two_way=two_way)
    tokens, encoder, decoder = greedy(model), model.encoder, model.decoder
    walk = decoder_step(model, WORDS, step=step, top=3, name="one-step")
    x = encoder.embedding.weight[SOURCE.encode(WORDS.split())]
    keys, s = reads(encoder.rnn, x), torch.zeros(0)
    s = keys[-1]
    if two_way:
        back = reads(encoder.rnn, x.flip(0), "_l0_reverse").flip(0)
        keys, s = torch.cat([keys, back], 1), torch.cat([keys[-1], back[0]])

    def look(query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        score = decoder.attention.score
        if kind == "move":
            e = keys @ query
        else:
            e = torch.stack(
                [
                    score.v.weight[0] @ torch.tanh(score.w1.weight @ k + score.w2.weight @ query)
                    for k in keys
                ]
            )
        a = e.exp() / e.exp().sum()
        return e, a, torch.stack([w * k for w, k in zip(a, keys, strict=True)]).sum(0)

    def advance(token: int, s: Tensor) -> dict[str, Tensor]:
        y = decoder.embedding.weight[token]
        if kind == "look":
            e, a, c = look(s)
            new = cell_moves(decoder.cells[0], torch.cat([y, c]), s)
            return {
                "query": s,
                "before": s,
                "next": new,
                "word": y,
                "context": c,
                "e": e,
                "a": a,
                "out": new,
                "state": new,
            }
        new = cell_moves(decoder.cells[0], y, s)
        e, a, c = look(new)
        joined = torch.tanh(decoder.combine.weight @ torch.cat([c, new]))
        return {
            "query": new,
            "before": s,
            "again": new,
            "word": y,
            "context": c,
            "e": e,
            "a": a,
            "joined": joined,
            "out": joined,
            "state": new,
        }

    for token in [TARGET.bos, *tokens][: step - 1]:
        s = advance(token, s)["state"]
    found = advance([TARGET.bos, *tokens][step - 1], s)
    then = advance(tokens[step - 1], found["state"])
    for name in sorted(
        {"query", "before", "again", "word", "context", "next", "joined"} & {*found}
    ):
        torch.testing.assert_close(drawn(walk, name)[0], found[name][:6], msg=name)
    for name in ("keys", "values"):
        torch.testing.assert_close(drawn(walk, name), keys[:, :5], msg=name)
    torch.testing.assert_close(drawn(walk, "scores")[:, 0], found["e"])
    torch.testing.assert_close(drawn(walk, "weights")[:, 0], found["a"])
    torch.testing.assert_close(drawn(walk, "then")[:, 0], then["a"])
    logits = decoder.out.weight @ found["out"] + decoder.out.bias
    order = [i for i in logits.argsort(descending=True).tolist() if i not in (0, 1)][:3]
    torch.testing.assert_close(drawn(walk, "logits")[:, 0], logits[order])
    p = logits.exp() / logits.exp().sum()
    torch.testing.assert_close(drawn(walk, "bars")[0], p[order])
    assert order[0] == tokens[step - 1]
    (thick,) = [one.weights for one in walk.arrows if one.weights is not None]
    torch.testing.assert_close(torch.tensor(thick).float(), found["a"])
    answer = TARGET.tokens[tokens[step - 1]]
    assert f"[“{answer}”](answer), is written" in told(walk)
    most = int(found["a"].argmax())
    assert f"“{WORDS.split()[most]}” gets {found['a'][most]:.2f}." in told(walk)
    assert f"“{WORDS.split()[int(then['a'].argmax())]}” gets" in walk.steps[-1]["caption"]
    assert len(walk.steps) == (14 if kind == "look" else 15)
    assert sum(bool(each["ask"]) for each in walk.steps) == 2 and walk.png()


def test_a_bar_is_as_high_as_its_weight() -> None:
    walk = decoder_step(translator("look"), WORDS)
    for place in walk.picture.find("weights"):
        (line,) = [mark for mark in place.part.inside if isinstance(mark, Stroke)]
        heights = [y for _, y in line.points]
        thick = line.width
        assert place.part.values is not None
        high = max(1.0, 44 * float(place.part.values[0]))
        assert max(heights) - min(heights) + 2 == pytest.approx(max(high, 2), abs=1.01)
        assert thick in (1, 3)


def test_after_the_end_nothing_is_looked_at() -> None:
    model = translator("look")
    walk = decoder_step(model, WORDS, step=len(greedy(model)))
    assert "then" not in walk.picture.names()
    assert "The translation ends here." in walk.steps[-1]["caption"]


@torch.no_grad()
def test_two_readers_begin_at_both_ends() -> None:
    encoder = translator("look", two_way=True).encoder
    walk = two_readers(encoder, WORDS, name="read-twice")
    x = encoder.embedding.weight[SOURCE.encode(WORDS.split())]
    torch.testing.assert_close(drawn(walk, "ahead"), reads(encoder.rnn, x)[:, :4])
    back = reads(encoder.rnn, x.flip(0), "_l0_reverse").flip(0)
    torch.testing.assert_close(drawn(walk, "back"), back[:, :4])
    ends = [(one.start, one.end) for one in walk.arrows]
    assert [pair for pair in ends if pair[0] < "b"] == [
        ("ahead.0", "ahead.1"),
        ("ahead.1", "ahead.2"),
    ]
    assert [pair for pair in ends if pair[0] > "b"] == [("back.1", "back.0"), ("back.2", "back.1")]
    assert "knows “two”, and nothing" in walk.steps[0]["caption"]
    assert "(back.2) knows “five”." in walk.steps[2]["caption"]
    assert "5 numbers and 5, four" in walk.steps[4]["caption"] and walk.png()


@torch.no_grad()
@pytest.mark.parametrize(("kind", "two_way"), [("look", False), ("move", True)])
def test_one_state_alone_is_exchanged(kind: str, two_way: bool) -> None:
    model = translator(kind, two_way=two_way)
    words, twin = "two four five one", "two six five one"
    walk = exchanged_states(model, words, twin, "un neuf", ("deux", "trois"), name="exchange")
    own, other = (model.read(torch.tensor([SOURCE.encode(s.split())])) for s in (words, twin))
    torch.testing.assert_close(drawn(walk, "own"), own.states[0, :, :4])
    torch.testing.assert_close(drawn(walk, "twin"), other.states[0, :, :4])
    for j in (1, 2):
        rows = [(other if k == j else own).states[0, k] for k in range(4)]
        torch.testing.assert_close(drawn(walk, f"mixed{j}"), torch.stack(rows)[:, :4])
        state = model.decoder.start(own._replace(states=torch.stack(rows)[None]))
        logits, _ = model.decoder.step(torch.tensor([[1, *TARGET.encode(["un", "neuf"])]]), state)
        shares = logits[0].softmax(-1)[TARGET.encode(["deux", "trois"])]
        torch.testing.assert_close(drawn(walk, f"wrote{j}")[0], shares)
        said = f"“deux” gets [{shares[0]:.2f}](wrote{j}.0), the twin's “trois” [{shares[1]:.2f}]"
        assert said in told(walk)
        kept = f"Now the state of “{words.split()[j]}” is [the twin's](mixed{j}.{j})"
        assert kept in told(walk)
        flown = [one.start for one in walk.arrows if one.end.startswith(f"mixed{j}")]
        assert sorted(flown) == sorted(f"{'twin' if k == j else 'own'}.{k}" for k in range(4))
    assert "“six” for “four”" in told(walk) and "written “un neuf”." in told(walk)
    assert sum(bool(each["ask"]) for each in walk.steps) == 2 and walk.png()
    silent = exchanged_states(model, words, twin, "", ("deux", "trois"))
    assert "has written nothing" in silent.steps[0]["caption"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: unrolled(translator("look"), WORDS), "one-way encoder and no attention"),
        (lambda: unrolled(translator("move"), WORDS), "without a score, of one layer, got L"),
        (lambda: unrolled(translator(two_way=True), WORDS), "must have a one-way encoder"),
        (lambda: unrolled(translator(), ""), "words must lie in 1..8, got 0"),
        (lambda: unrolled(Seq2Seq(*[translator().decoder] * 2), WORDS), "Encoder and.*got Seq2Seq"),
        (lambda: unrolled(endless(), WORDS), "the model writes at most 7 tokens: 'two four five'"),
        (lambda: decoder_step(translator(), WORDS), "got a decoder without attention"),
        (
            lambda: decoder_step(translator("search", two_way=True), WORDS),
            "got RNNsearchDecoder, n_layers = 1",
        ),
        (lambda: decoder_step(translator("look"), WORDS, step=0), "step must be a whole number"),
        (lambda: decoder_step(translator("look"), WORDS, step=40), "must lie in 1...*, got 40"),
        (lambda: decoder_step(translator("look"), WORDS, top=7), "top must lie in 1..6, got 7"),
        (lambda: decoder_step(translator("look"), " "), "words must lie in 1..12, got 0"),
        (lambda: decoder_step(translator("look"), "three " * 12), "body must be at most 356 wide"),
        (lambda: two_readers(translator("look").encoder, WORDS), "got two_way = False"),
        (lambda: two_readers(translator(two_way=True).encoder, "two"), "words must lie in 2..6"),
        (
            lambda: exchanged_states(translator(), WORDS, "two six five", "", ("un", "deux")),
            "got a decoder without attention",
        ),
        (
            lambda: exchanged_states(translator("look"), WORDS, "two four six", "", ("un", "deux")),
            "in one word, not the last, got 'two four six'",
        ),
        (
            lambda: exchanged_states(translator("look"), WORDS, WORDS, "", ("un", "deux")),
            "twin must differ from 'two four five' in one word",
        ),
        (
            lambda: exchanged_states(translator("look"), WORDS, "two six", "", ("un", "deux")),
            "got 'two six'",
        ),
        (
            lambda: gru_step(GRUCell(4, 5), torch.zeros(5), torch.zeros(5)),
            r"x must be \[d_input\] with d_input = 4",
        ),
        (
            lambda: gru_step(GRUCell(4, 5), torch.zeros(4), torch.zeros(1, 5)),
            r"h must be \[d_state\]",
        ),
        (
            lambda: gru_step(nn.GRUCell(4, 5, bias=False), torch.zeros(4), torch.zeros(5)),
            "cell must be a GRUCell with biases",
        ),
        (
            lambda: gru_step(GRUCell(4, 6), torch.zeros(4), torch.zeros(6), shown=6),
            "shown must be at most 4, got 6",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


@torch.no_grad()
def test_a_step_where_one_token_is_padding_start_and_end() -> None:
    one = Vocabulary(TARGET.tokens[3:], pad="<e>", bos="<e>", eos="<e>")
    source = torch.tensor([SOURCE.encode(WORDS.split())])
    written, seed = one.eos, 0
    while written == one.eos:
        torch.manual_seed(seed)
        model = Seq2Seq(Encoder(SOURCE, D), Decoder(one, D, DotScore()))
        written, seed = int(model.translate(source, max_len=4).tokens[0, 0]), seed + 1
    walk = decoder_step(model, WORDS, step=1, top=6)
    assert f"[“{one.tokens[written]}”](answer), is written" in told(walk)


def test_a_word_that_is_not_known_is_named() -> None:
    for make in (
        lambda: unrolled(translator(), "two ten"),
        lambda: decoder_step(translator("look"), "two ten"),
        lambda: two_readers(translator(two_way=True).encoder, "two ten"),
        lambda: exchanged_states(
            translator("look"), "two ten one", "two six one", "", ("un", "un")
        ),
    ):
        with pytest.raises(KeyError, match="word 'ten' is not among the 9 tokens"):
            make()


def test_the_model_stays_as_it_was() -> None:
    model = translator("move")
    before = {name: vars(module).keys() for name, module in model.named_modules()}
    decoder_step(model, WORDS)
    assert before == {name: vars(module).keys() for name, module in model.named_modules()}
    assert not any(module._forward_hooks for module in model.modules())
