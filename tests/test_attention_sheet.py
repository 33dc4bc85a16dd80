"""AttentionSheet: what it computes, in Python and in the page; what it keeps and refuses."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch.nn.functional import scaled_dot_product_attention

from attnbook import web
from attnbook.web import AttentionSheet
from attnbook.web.attention_sheet.widget import INPUTS, LOOKS, MOST

SHEET = Path(web.__file__).parent / "shared/sheet.js"
RUN = """
import { BLOCKS, INPUTS, MOST, compute } from "SHEET";
const given = JSON.parse(process.argv[2]);
console.log(JSON.stringify({ MOST, BLOCKS, INPUTS, all: given.map(compute) },
  (_, value) => (value === -Infinity ? "-inf" : value)));
"""
N, D, D_K, D_V = 5, 4, 3, 2  # all different


def options(seed: int = 0, **changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = dict(zip(INPUTS, ((N, D), (D, D_K), (D, D_K), (D, D_V)), strict=True))
    given: dict[str, Any] = {what: rng.normal(size=shape) for what, shape in shapes.items()}
    return {**given, "tokens": [*"abcde"], "name": "sheet", **changes}


def in_torch(sheet: AttentionSheet) -> dict[str, np.ndarray]:
    x, w_q, w_k, w_v = (torch.tensor(getattr(sheet, what), dtype=torch.double) for what in INPUTS)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scale = D_K**-0.5 if sheet.root else 1.0
    scores = q @ k.T * scale
    if sheet.mask:
        scores = scores.masked_fill(torch.ones(N, N).triu(1).bool(), -torch.inf)
    out = scaled_dot_product_attention(q, k, v, is_causal=sheet.mask, scale=scale)
    steps = {"q": q, "k": k, "v": v, "scores": scores, "weights": scores.softmax(-1), "out": out}
    return {name: value.numpy() for name, value in steps.items()}


def test_python_and_the_page_compute_what_torch_does(tmp_path: Path) -> None:
    sheets = [
        AttentionSheet(**options(seed, mask=mask, root=root))
        for seed in range(5)
        for mask in (False, True)
        for root in (False, True)
    ]
    given = [{what: getattr(s, what) for what in (*INPUTS, "mask", "root")} for s in sheets]
    script = tmp_path / "run.mjs"
    script.write_text(RUN.replace("SHEET", SHEET.as_posix()))
    node = [shutil.which("node") or "node", str(script), json.dumps(given)]
    told = json.loads(subprocess.run(node, check=True, capture_output=True, text=True).stdout)
    assert (tuple(told["INPUTS"]), told["MOST"]) == (INPUTS, MOST)
    assert told["BLOCKS"] == [*INPUTS, *list(LOOKS)[1:]] == list(sheets[0].compute())
    for sheet, page in zip(sheets, told["all"], strict=True):
        for name, want in in_torch(sheet).items():
            assert np.allclose(sheet.compute()[name], want, atol=1e-12), name
            assert np.allclose(np.array(page[name], float), want, atol=1e-12), name


def test_numbers_are_kept_with_two_decimals_and_copied() -> None:
    x = np.array(options()["x"])
    x[0, :2] = 1.2349, -0.004
    sheet = AttentionSheet(**options(x=torch.tensor(x, requires_grad=True)))
    assert sheet.x[0][:2] == [1.23, 0.0] and str(sheet.x[0][1]) == "0.0"
    x[0, 0] = 9
    assert np.array(sheet.x)[0, 0] == 1.23
    assert np.abs(np.array(sheet.w_q) - options()["w_q"]).max() <= 0.005


def test_it_follows_the_browser_and_python() -> None:
    words = {letter: np.full(D, n) for n, letter in enumerate("abcdef")}
    sheet = AttentionSheet(**options(words=words, cell="weights.4.2"))
    before = sheet.compute()["out"]
    sheet.set_state({"tokens": [*"abcdf"], "x": [*sheet.x[:4], [5.0] * D], "mask": True})
    assert sheet.tokens[4] == "f" and sheet.get_state()["words"]["f"] == [5] * D
    assert np.abs(sheet.compute()["out"] - before).min(-1).max() > 0.01
    with pytest.raises(ValueError, match=r"x must be of shape \(5, 4\), not \(4, 4\)"):
        sheet.x = sheet.x[:4]
    with pytest.raises(ValueError, match=r"cell must be like 'weights.0.1', .* not 'out.0.2'"):
        sheet.cell = "out.0.2"
    assert (len(sheet.x), sheet.cell) == (N, "weights.4.2")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"x": "text"}, "x must be a full array of numbers, not 'text'"),
        ({"x": [[1.0]] * 4 + [[np.nan]]}, "w_q must have 1 rows, as x has columns, not 4"),
        ({"x": np.full((N, D), np.nan)}, "x must hold numbers from -9.99 to 9.99, not nan"),
        ({"w_q": np.full((D, D_K), 10)}, "w_q must hold numbers from -9.99 to 9.99, not 10"),
        ({"w_v": [1.0] * D}, r"w_v must be \[d d_v\], 1 to 4 wide, not \(4,\)"),
        ({"w_k": np.ones((D, 5))}, r"w_k must be \[d d_k\], 1 to 4 wide, not \(4, 5\)"),
        ({"w_k": np.ones((D, 2))}, "w_k must have as many columns as w_q, 3, not 2"),
        ({"w_v": np.ones((3, D_V))}, "w_v must have 4 rows, as x has columns, not 3"),
        ({"tokens": [*"abcd"]}, "x must have a row for each of 2 to 6 tokens, not 5 for 4"),
        ({"tokens": ["a"], "x": np.ones((1, D))}, "for each of 2 to 6 tokens, not 1 for 1"),
        ({"tokens": "abcde"}, "tokens must be a list of tokens, not 'abcde'"),
        ({"outputs": ["one"]}, "outputs must be 2 texts, not 1"),
        ({"words": {"a": [1, 2, 3]}}, r"words\['a'\] must be 4 numbers, not of shape \(3,\)"),
        ({"words": {"a": [1, 2, 3, 4]}}, "words must hold every token; 'b' is not there"),
        ({"cell": "scores"}, "cell must be like 'weights.0.1', a cell of the sheet, not 'scores'"),
        ({"cell": "scores.0.5"}, "a cell of the sheet, not 'scores.0.5'"),
        ({"cell": "nothing.0.0"}, "a cell of the sheet, not 'nothing.0.0'"),
        ({"name": "A b"}, "name must be like 'learnt-map'"),
    ],
)
def test_it_refuses(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        AttentionSheet(**options(**changes))


def test_the_picture_writes_every_number_that_follows() -> None:
    sheet, figure = AttentionSheet(**options(mask=True)), Figure()
    sheet.draw(figure)
    steps = sheet.compute()
    for axes, name in zip(figure.axes, LOOKS, strict=False):
        written = [text.get_text() for text in axes.texts]
        assert axes.get_title() == name and len(written) == steps[name].size
        assert written[0] == f"{steps[name][0, 0]:.2f}"
    assert "-∞" in [text.get_text() for text in figure.axes[4].texts]
