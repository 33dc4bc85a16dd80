"""Walks through a translator: the shift of its target, and a token's way, again by hand."""

from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from attnbook.model.transformer import Transformer
from attnbook.text.vocabulary import Vocabulary
from attnbook.walks import target_shift, timeline
from tests.helpers.walks import drawn, told
from tests.helpers.walks_transformer import (
    CONFIG,
    ENGLISH,
    FRENCH,
    PLACE,
    SOURCE,
    TARGET,
    by_hand,
    pairs,
    translator,
    way,
)


@torch.no_grad()
def test_a_timeline_shows_what_the_model_computes() -> None:
    model = translator()
    walk, found = way(model, name="way"), by_hand(model)
    logits, likely = found.pop("logits"), model.decoder.vocab
    for name, wanted in found.items():
        shown = drawn(walk, name)
        if name.endswith(("scores", "weights")):
            shown, wanted = shown[:, 0], wanted.masked_fill(wanted == -torch.inf, torch.nan)
        else:
            wanted = wanted[..., : shown.shape[1]]
            shown = shown[0] if wanted.ndim == 1 else shown
        torch.testing.assert_close(shown, wanted, equal_nan=True, rtol=1e-4, atol=1e-4, msg=name)
    assert drawn(walk, "own-scores").isnan()[:, 0].tolist() == [False, False, False, True]
    allowed = [i for i in range(len(likely)) if i not in (likely.pad, likely.bos)]
    best = sorted(allowed, key=lambda i: -float(logits[i]))[:3]
    torch.testing.assert_close(drawn(walk, "logits")[:, 0], logits[best], rtol=1e-4, atol=1e-4)
    shares = logits.exp() / logits.exp().sum()
    torch.testing.assert_close(drawn(walk, "bars")[0], shares[best], rtol=1e-4, atol=1e-4)
    places = {part: [p.part for p in walk.picture.find(part)] for part in ("target", "source")}
    assert [len(found) for found in places.values()] == [4, 4]
    assert [part.role for part in places["target"]] == ["", "", "state", ""]


@torch.no_grad()
def test_what_a_timeline_tells_is_true() -> None:
    model = translator()
    walk, found = way(model), by_hand(model)
    said, french = told(walk), ["(start)", *FRENCH.split()]
    for kind, words in (("own", french), ("cross", ENGLISH.split())):
        at = int(found[f"{kind}-weights"].argmax())
        share = f"{found[f'{kind}-weights'][at]:.2f}"
        assert f"{share} for “{words[at]}”" in said or f"“{words[at]}” gets {share}" in said
    hidden = found["hidden"]
    assert f"[14 hidden numbers](hidden), of which {int((hidden > 0).sum())} are above 0" in said
    written = TARGET.tokens[int(found["logits"][1:].argmax()) + 1]
    assert f"“{written}” gets" in walk.steps[-1]["caption"]
    assert len(walk.steps) == 17 and sum(bool(step["ask"]) for step in walk.steps) == 3
    assert walk.png() and "What comes after stands there too" in said
    start = way(model, place=0, layer=0, head=0)
    assert len(start.steps) == 16 and "before" not in start.picture.names()
    assert "What comes after" not in told(way(model, place=3))


@torch.no_grad()
@pytest.mark.parametrize("same", [["pad", "eos"], ["bos", "eos"], ["pad", "bos", "eos"]])
def test_a_timeline_may_write_an_end_that_is_padding_or_start_too(same: list[str]) -> None:
    target = Vocabulary(TARGET.tokens[3:], **dict.fromkeys(same, "<e>"))
    torch.manual_seed(0)
    model = Transformer(SOURCE, target, CONFIG).eval()
    ids = [target.bos, *target.encode(FRENCH.split())]
    logits = model(torch.tensor([SOURCE.encode(ENGLISH.split())]), torch.tensor([ids]))[0, 1]
    for special in {target.pad, target.bos} - {target.eos}:
        logits[special] = -torch.inf
    best = logits[logits.isfinite()].sort(descending=True).values
    walk = timeline(model, ENGLISH, FRENCH, place=1, top=len(best))
    torch.testing.assert_close(drawn(walk, "logits")[:, 0], best, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="top"):
        timeline(model, ENGLISH, FRENCH, place=1, top=len(best) + 1)


@torch.no_grad()
def test_a_timeline_ends_in_the_models_own_output_matrix() -> None:
    model = translator(tied=False)
    walk = way(model)
    with torch.no_grad():
        ids = [TARGET.bos, *TARGET.encode(FRENCH.split())]
        source = torch.tensor([SOURCE.encode(ENGLISH.split())])
        logits = model(source, torch.tensor([ids]))[0, PLACE]
    best = int(logits[1:].argmax()) + 1
    best = best if best != TARGET.bos else int(logits[2:].argmax()) + 2
    head: Any = model.decoder.head
    torch.testing.assert_close(drawn(walk, "rows")[0], head.weight[best, :4])


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"norm": "post"}, {}, "model must have norm 'pre'"),
        ({"embedding_norm": True}, {}, "not normalised"),
        ({"embedding_scale": False}, {}, "embeddings that are scaled"),
        ({"d_ff": 0}, {}, "a feed-forward network"),
        ({"residual": False}, {}, "residuals"),
        ({"final_norm": False}, {}, "a last norm"),
        ({}, {"top": 10}, "top"),
        ({"positions": "rotary"}, {}, "positions that are added"),
        ({}, {"place": 4}, "place"),
        ({}, {"layer": 3}, "layer"),
        ({}, {"head": 2}, "head"),
        ({}, {"top": 0}, "top"),
    ],
)
def test_a_timeline_refuses(changes: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        way(translator(**changes), **options)
    for source, target, name in (("", FRENCH, "source"), (ENGLISH, " ", "target")):
        with pytest.raises(ValueError, match=name):
            timeline(translator(), source, target, place=0)
    with pytest.raises(KeyError, match="ten"):
        timeline(translator(), "ten", FRENCH, place=0)


@torch.no_grad()
@pytest.mark.parametrize("targets", [("huit deux sept", "neuf"), ("deux trois", "un", "cinq un")])
def test_the_shift_shows_each_token_below_the_one_before(targets: tuple[str, ...]) -> None:
    model, batch = translator(), pairs(*targets)
    walk = target_shift(model, batch, name="shift")
    longest = max(len(words.split()) for words in targets) + 1
    costs = []
    for n, words in enumerate(targets):
        tokens = ["(start)", *words.split(), "(end)"]
        tokens += ["(pad)"] * (longest + 1 - len(tokens))

        def texts(name: str) -> list[str]:
            found: list[Any] = [place.part for place in walk.picture.find(name)]
            return [part.inside[1][2].inside[0].text for part in found]

        assert texts(f"targets{n}") == tokens
        assert texts(f"reads{n}") == tokens[:-1] and texts(f"wanted{n}") == tokens[1:]
        alone = model(batch.source[n : n + 1], batch.target[n : n + 1, :-1])[0]
        ids = [*TARGET.encode(words.split()), TARGET.eos]
        wanted = [alone[t].exp()[i] / alone[t].exp().sum() for t, i in enumerate(ids)]
        shares, cost = (drawn(walk, f"{name}{n}")[:, 0] for name in ("shares", "costs"))
        assert shares.isnan().sum() == cost.isnan().sum() == longest - len(ids)
        torch.testing.assert_close(shares[: len(ids)], torch.stack(wanted), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            cost[: len(ids)], -torch.stack(wanted).log(), rtol=1e-4, atol=1e-4
        )
        costs += cost[: len(ids)].tolist()
    loss = sum(costs) / len(costs)
    assert loss == pytest.approx(model.loss(batch).item(), rel=1e-4)
    last = walk.steps[-1]["caption"]
    assert last.endswith(f"the {len(costs)} places that count: {loss:.2f} nats.")
    asked = [n for n, step in enumerate(walk.steps) if "places count" in step.get("ask", "")]
    shown = [n for n, step in enumerate(walk.steps) if "probability" in step["caption"]]
    assert asked == [] or asked < shown  # crossed-out cells would tell
    logits = model(batch.source, batch.target[:, :-1])
    torch.testing.assert_close(
        cross_entropy(logits.mT, batch.target[:, 1:], ignore_index=TARGET.pad).item(), loss
    )
    assert walk.png()


def test_the_shift_says_nothing_of_padding_where_there_is_none() -> None:
    even = target_shift(translator(), pairs("huit deux", "neuf un"))
    assert "crossed out" not in told(even) and not any("nan" in c for c in told(even).split())
    assert "padding" not in told(even)
    with pytest.raises(ValueError, match="pairs"):
        target_shift(translator(), pairs("un deux"))
    for first, words in (("un", 1), ("", 0)):
        with pytest.raises(ValueError, match=f"first target, got {words}"):
            target_shift(translator(), pairs(first, "huit deux"))


@pytest.mark.parametrize("walk", [way, lambda model: target_shift(model, pairs("un deux", "sept"))])
def test_dropout_is_off_in_a_walk_and_as_before_after_it(walk: Any) -> None:
    model, calm = translator(dropout=0.5).train(), translator()
    model.encoder.eval()
    modes = [module.training for module in model.modules()]
    assert walk(model).svg == walk(calm).svg
    assert [module.training for module in model.modules()] == modes


@torch.no_grad()
def test_padding_and_start_are_never_written_on_the_way() -> None:
    model = translator(tied=False)
    head: Any = model.decoder.head
    head.weight[[TARGET.pad, TARGET.bos]] = 50 * head.weight[[5, 6]]
    svgs = [way(model, place=place).svg for place in range(1, 4)]
    assert not any("“(start)”" in svg or "“&lt;pad&gt;”" in svg for svg in svgs)
