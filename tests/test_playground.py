"""Playground in Python: what it refuses, the answer that it stores, and the weights it sends."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from attnbook.model.sampling import temperature, top_k, top_p, uniform
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.web import MaskedWords, Playground
from attnbook.web.playground.widget import window_start
from attnbook.weights.int8 import load_int8, save_int8
from tests.helpers.engine import node
from tests.helpers.filters import FILTERS, warped
from tests.helpers.tiny_bert import tiny_bert
from tests.helpers.tiny_gpt import CONFIG, NAME, early_gpt, tiny_gpt

TEXT = "We must ask é🥲"
MODEL, TOKENIZER = load_int8(tiny_gpt(), TransformerDecoder)
SIZE = len(TOKENIZER.vocab)


def widget(text: str = TEXT, **options: Any) -> Playground:
    return Playground(text, weights=tiny_gpt(), **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"text": "x" * 501}, "text must have at most 500 characters, not 501"),
        ({"text": "a\ud83d"}, "text must be Unicode text; half a character"),
        ({"temperature": -1}, "temperature must be a finite number from 0 on, not -1"),
        ({"temperature": np.nan}, "temperature must be a finite number from 0 on, not nan"),
        ({"top_k": -1}, "top_k must be a finite number from 0 on, not -1"),
        ({"top_p": 0.0}, r"top_p must be 0\.\.1, not 0\.0"),
        ({"top_p": 1.5}, r"top_p must be 0\.\.1, not 1\.5"),
        ({"min_p": -0.1}, r"min_p must be 0\.\.1, not -0\.1"),
        ({"seed": -1}, r"seed must be 0\.\.1000000, not -1"),
        ({"place": -2}, "place must be a finite number from -1 on, not -2"),
        ({"head": 6}, r"head must be -1\.\.5, not 6"),
        ({"written": [3, SIZE]}, rf"written must be ids of tokens, 0\.\.{SIZE - 1}, not {SIZE}"),
        ({"written": "ab"}, "written must be a list of ids, not 'ab'"),
        ({"unfolded": ["all"]}, "unfolded must be of filters, places, inside, not 'all'"),
    ],
)
def test_what_it_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        widget(**options)


def test_weights_that_are_none() -> None:
    with pytest.raises(ValueError, match="weights must name a file of save_int8, not 'nothing'"):
        Playground("a", weights="nothing")
    with pytest.raises(ValueError, match=r"weights must name a file of save_int8.*TransformerDec"):
        Playground("a", weights=tiny_bert())
    with pytest.raises(ValueError, match=r"weights must name a file of save_int8.*Bert"):
        MaskedWords("a", weights=tiny_gpt())


def scores(ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return MODEL(torch.tensor([ids]))[0, -1].double()


@pytest.mark.parametrize("n", range(len(FILTERS)))
def test_the_stored_answer_is_the_models(n: int) -> None:
    given = FILTERS[n]
    options = {"temperature": given["temperature"], "top_k": given["topK"]}
    shown = widget(**options, top_p=given["topP"], min_p=given["minP"], written=[5], seed=n)
    ids = [*TOKENIZER.encode(TEXT), 5]
    answer, logits = shown.answer, scores(ids)
    assert (answer["ids"], answer["prompt"], answer["at"]) == (ids, len(ids) - 1, len(ids))
    assert "".join(answer["pieces"]) == TOKENIZER.decode(ids) and answer["pieces"][-2] == "🥲"
    p = (logits / given["temperature"]).softmax(-1)
    best = p.topk(10)
    assert [one["which"] for one in answer["best"]] == best.indices.tolist()
    assert [one["p"] for one in answer["best"]] == pytest.approx(best.values.tolist(), abs=1e-6)
    want = warped(logits, given)
    order = np.argsort(-logits.numpy(), kind="stable")
    assert answer["count"] == (want > 0).sum()
    assert answer["mass"] == pytest.approx(p.numpy()[want > 0].sum(), abs=1e-6)
    ends, drawn = np.cumsum(want[order]), answer["drawn"]
    assert drawn["which"] == order[drawn["rank"]]
    assert drawn["from"] <= answer["number"] < drawn["to"]
    assert drawn["to"] == pytest.approx(ends[drawn["rank"]], abs=1e-6)


def test_what_stood_at_a_place() -> None:
    shown, ids = widget(place=2, seed=4), TOKENIZER.encode(TEXT)
    assert shown.answer["best"][0]["which"] == int(scores(ids[:2]).argmax())
    assert (shown.answer["at"], shown.answer["number"]) == (2, uniform(torch.tensor([4]), 2).item())
    shown.place = -1
    assert shown.answer["best"][0]["which"] == int(scores(ids).argmax())


def test_a_text_that_is_empty_or_longer_than_the_model_reads() -> None:
    empty = widget("").answer
    assert (empty["ids"], empty["names"]) == ([TOKENIZER.vocab.bos], ["<|endoftext|>"])
    ids = [*TOKENIZER.encode("peace " * 60), 4, 5]
    for place in (-1, 3, 40, 41, 60, 61):
        long = widget("peace " * 60, written=[4, 5], place=place).answer
        at = place if place >= 0 else len(ids)
        assert (long["ids"], long["at"]) == (ids, at)
        assert long["best"][0]["which"] == int(scores(ids[long["start"] : at]).argmax())
        assert at - CONFIG.max_len <= long["start"] <= max(0, at - CONFIG.max_len // 2 - 1)


def test_checkpoints_are_found_beside_the_model(tmp_path: Path) -> None:
    whole = tmp_path / "whole.safetensors"
    shutil.copy(tiny_gpt(), whole)
    assert Playground(TEXT, weights=whole).checkpoints == [{"name": "whole", "step": 0}]
    shutil.copy(early_gpt(), tmp_path / "whole_step_3.safetensors")
    early = Playground(TEXT, weights=whole, checkpoint=0)
    names = [{"name": "whole_step_3", "step": 3}, {"name": "whole", "step": 0}]
    assert early.checkpoints == names and early.checkpoint == 0
    model, _ = load_int8(early_gpt(), TransformerDecoder)
    with torch.no_grad():
        wanted = model(torch.tensor([TOKENIZER.encode(TEXT)]))[0, -1].argmax()
    assert early.answer["best"][0]["which"] == wanted
    early.checkpoint = 1
    assert early.answer["best"] == widget().answer["best"]
    assert widget(checkpoints=[early_gpt()]).checkpoint == 1
    with pytest.raises(ValueError, match=r"checkpoint must be 0\.\.1, not 2"):
        early.checkpoint = 2
    with pytest.raises(ValueError, match="checkpoints must be files that say their step"):
        widget(checkpoints=[tiny_gpt()])
    other = BytePair.train([TEXT] * 9, 262)
    model = TransformerDecoder(other.vocab, CONFIG)
    save_int8(tmp_path / "other.safetensors", model, other, {"step": 1})
    with pytest.raises(ValueError, match=r"of one model, and other\.safetensors is of another"):
        widget(checkpoints=[tmp_path / "other.safetensors"], checkpoint=0)


def test_a_window_slides_by_half() -> None:
    starts = [window_start(n, 6) for n in range(1, 14)]
    assert starts == [0, 0, 0, 0, 0, 0, 3, 3, 3, 6, 6, 6, 9]
    assert [window_start(n, 1) for n in range(1, 4)] == [0, 1, 2]


def test_numbers_are_those_of_the_page() -> None:
    case, seeds = {"logits": [0, 1], "filters": FILTERS[0]}, [0, 1, 77, 999_999, 2**32 - 1]
    told = node("samples", cases=[{**case, "seed": seed} for seed in seeds])
    wanted = [uniform(torch.tensor(seeds), n).tolist() for n in range(3)]
    assert [each["numbers"] for each in told] == [list(row) for row in zip(*wanted, strict=True)]


def test_the_stored_answer_is_the_pages() -> None:
    for n, given in enumerate([*FILTERS, {**FILTERS[0], "temperature": 0.0}]):
        names = {"temperature": "temperature", "topK": "top_k", "topP": "top_p", "minP": "min_p"}
        answer = widget(**{names[name]: value for name, value in given.items()}, seed=n).answer
        logits = scores(TOKENIZER.encode(TEXT)).tolist()
        case = {"logits": logits, "filters": given, "numbers": [answer["number"]]}
        (told,) = node("samples", cases=[case])
        assert {name: stage["count"] for name, stage in told["stages"].items()} == {
            name: stage["count"] for name, stage in answer["stages"].items()
        }
        (page,), drawn = told["drawn"], answer["drawn"]
        assert (page["id"], page["rank"]) == (drawn["which"], drawn["rank"])
        assert [page["from"], page["to"]] == pytest.approx([drawn["from"], drawn["to"]], abs=1e-6)


def test_tokens_that_are_alike_stay_together() -> None:
    logits = torch.tensor([3, 2, 2, 2, 1, 1, 0.0]).double()
    ends = logits.softmax(-1).cumsum(-1).tolist()
    edges = [ends[0] / 2, *[(a + b) / 2 for a, b in pairwise(ends)]]  # each time one more is needed
    given = [{"temperature": 1.0, "topK": 0, "topP": edge, "minP": 0.0} for edge in edges]
    cases = [{"logits": logits.tolist(), "filters": each, "seed": 0} for each in given]
    counts = [told["count"] for told in node("samples", cases=cases)]
    assert counts == [int(top_p(logits, each["topP"]).isfinite().sum()) for each in given]
    assert counts == [1, 4, 4, 4, 6, 6, 7]


def test_top_k_leaves_k_where_the_temperature_leaves_one() -> None:
    given = {"temperature": 0.001, "topK": 3, "topP": 1.0, "minP": 0.0}
    case = {"logits": [9, 8, 7, 6, 5, 4], "filters": given, "seed": 0}
    (told,) = node("samples", cases=[case])
    assert {name: stage["count"] for name, stage in told["stages"].items()} == {
        "topK": 3, "topP": 3, "minP": 3
    }  # fmt: skip
    assert top_k(temperature(torch.tensor(case["logits"]).double(), 0.001), 3).isfinite().sum() == 3


def test_it_follows_the_browser() -> None:
    shown = widget()
    shown.set_state({"text": "the people", "written": [7], "top_k": 3, "unfolded": ["inside"]})
    assert shown.answer["ids"] == [*TOKENIZER.encode("the people"), 7]
    assert shown.answer["count"] == 3


def test_weights_go_to_the_page_when_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, sent = widget(), []
    monkeypatch.setattr(Playground, "send", lambda _, *message: sent.append(message))
    for asked in ({"weights": "another"}, {"weights": NAME}):
        shown._handle_custom_msg(asked, [])
    assert len(sent) == 1 and tiny_gpt().read_bytes() in sent[0][1]


def test_a_notebook_stores_no_weights() -> None:
    state = {name: value for name, value in widget().get_state().items() if name[0] != "_"}
    assert len(json.dumps(state)) < 5_000 and state["weights"] == NAME


def test_picture_draws_what_could_come_next() -> None:
    shown, figure = widget(top_k=4), Figure()
    shown.draw(figure)
    drawn = [bar.get_width() for bar in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert drawn == pytest.approx([one["p"] for one in shown.answer["best"]])
    colours = {bar.get_facecolor() for bar in figure.axes[0].patches[:4]}
    assert len(colours) == 1 and figure.axes[0].patches[4].get_facecolor() not in colours
    assert widget().png() == widget().png()
