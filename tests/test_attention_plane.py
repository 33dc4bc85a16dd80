"""AttentionPlane: what it computes, in Python and in the page; what it keeps, takes and refuses."""

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
from attnbook.web import AttentionPlane, format_number

NUMBERS = Path(web.__file__).parent / "attention_plane/numbers.js"
RUN = """
import { compute, kept, productWritten, reshaped, spreadOut, written } from "NUMBERS";
const { given, texts, labels } = JSON.parse(process.argv[2]);
console.log(JSON.stringify({
  all: given.map(compute), products: given.map((one) => productWritten(one, 1, compute(one))),
  texts: texts.map((x) => written(x)), kept: kept([1.00496, -99], 3),
  shapes: [reshaped([1, 2, 3, 4], [[0, 0], [0, 0]], 3), reshaped([1, 2], [[0, 0], [0, 0]], 3)],
  heights: spreadOut(labels, 15),
}));
"""
N, ASKERS, D_V = 5, 3, 4  # all different


def options(seed: int = 0, **changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sizes = {"queries": (ASKERS, 2), "keys": (N, 2), "values": (N, D_V)}
    given: dict[str, Any] = {what: rng.normal(size=shape) for what, shape in sizes.items()}
    return {**given, "words": [*"abcde"], "askers": [*"xyz"], "name": "plane", **changes}


def in_torch(plane: AttentionPlane) -> tuple[np.ndarray, np.ndarray]:
    q, k, v = (torch.tensor(rows, dtype=torch.double) for rows in (plane.q, plane.k, plane.v))
    q, scale = q[plane.query, None], 2**-0.5 if plane.root else 1.0
    out = scaled_dot_product_attention(q, k, v, scale=scale)
    return (q @ k.T * scale).softmax(-1)[0].numpy(), out[0].numpy()


def in_page(tmp_path: Path, **told: Any) -> dict[str, Any]:
    script = tmp_path / "run.mjs"
    script.write_text(RUN.replace("NUMBERS", NUMBERS.as_posix()))
    told = {"given": [], "texts": [], "labels": [], **told}
    node = [shutil.which("node") or "node", str(script), json.dumps(told)]
    return json.loads(subprocess.run(node, check=True, capture_output=True, text=True).stdout)


def test_python_and_the_page_compute_what_torch_does(tmp_path: Path) -> None:
    planes = [
        AttentionPlane(**options(seed, query=seed % ASKERS, root=root))
        for seed in range(6)
        for root in (False, True)
    ]
    traits = ("q", "k", "v", "query", "root")
    told = in_page(tmp_path, given=[{what: getattr(p, what) for what in traits} for p in planes])
    for plane, page, (products, lengths) in zip(planes, told["all"], told["products"], strict=True):
        weights, out = in_torch(plane)
        here = plane.compute()
        assert np.allclose(here["weights"], weights, atol=1e-12)
        assert np.allclose(here["out"], out, atol=1e-12)
        for name, values in here.items():
            assert np.allclose(page[name], values, atol=1e-12), name
        asked = np.array(plane.q[plane.query])
        assert np.allclose(page["length"] * np.array(page["shadows"]), here["products"])
        assert np.allclose(np.array(page["feet"]) @ [asked[1], -asked[0]], 0)  # on its line
        assert np.allclose((np.array(plane.k) - page["feet"]) @ asked, 0)  # straight below the key
        assert products.endswith(f"= {format_number(here['products'][1], 2)}".replace("-", "−"))
        assert f"{page['length']:.2f} × shadow" in lengths


def test_numbers_are_written_in_the_page_as_in_python(tmp_path: Path) -> None:
    texts = [0.125, 0.375, -0.001, 2.675, -1.005, 0.005, 12.345, -0.625]
    told = in_page(tmp_path, texts=texts)
    assert told["texts"] == [format_number(x, 2).replace("-", "−") for x in texts]
    assert told["kept"] == [1.005, -3]
    assert told["shapes"] == [[[1, 2], [3, 3]], [[0, 0], [0, 0]]]


def test_labels_do_not_lie_on_one_another(tmp_path: Path) -> None:
    places = [(0, 0), (5, 3), (90, 4), (10, 1), (0, 40)]
    labels = [{"x": x, "y": y, "wide": 30} for x, y in places]
    assert in_page(tmp_path, labels=labels)["heights"] == [0, 30, 4, 15, 45]


def test_a_query_of_zero_throws_no_shadow(tmp_path: Path) -> None:
    plane = AttentionPlane(**options(queries=np.zeros((ASKERS, 2))))
    given = {what: getattr(plane, what) for what in ("q", "k", "v", "query", "root")}
    (page,) = in_page(tmp_path, given=[given])["all"]
    assert plane.compute()["weights"] == pytest.approx([1 / N] * N)
    assert (page["shadows"], page["feet"]) == ([0] * N, [[0, 0]] * N)


def test_numbers_are_kept_with_four_decimals_and_copied() -> None:
    keys = np.array(options()["keys"])
    keys[0] = 1.23449, -0.00004
    plane = AttentionPlane(**options(keys=torch.tensor(keys, requires_grad=True)))
    assert plane.k[0] == [1.2345, 0.0] and str(plane.k[0][1]) == "0.0"
    keys[0, 0] = 9
    assert plane.k[0][0] == 1.2345
    assert np.abs(np.array(plane.v) - options()["values"]).max() <= 0.00005


def test_words_ask_unless_others_do() -> None:
    queries = np.ones((N, 2))
    assert AttentionPlane(**options(queries=queries, askers=None)).askers == [*"abcde"]
    assert AttentionPlane(**options()).askers == [*"xyz"]


def test_it_follows_the_browser_and_python() -> None:
    plane = AttentionPlane(**options())
    before = plane.compute()["out"]
    plane.set_state({"k": [[0.5, -0.5], *plane.k[1:]], "query": 2, "key": 3})
    assert np.abs(plane.compute()["out"] - before).max() > 0.01
    for trait, value, says in (
        ("k", plane.k[:4], r"keys must be of shape \(5, 2\), not \(4, 2\)"),
        ("q", [[9, 0]] * 3, "queries must lie in the plane, .* not 9"),
        ("v", [[9] * D_V] * N, "values must lie in the plane, .* not 9"),
        ("words", [*"abcd"], "words must be 5 texts, not 4"),
        ("query", 3, r"query must be 0\.\.2, not 3"),
    ):
        with pytest.raises(ValueError, match=says):
            setattr(plane, trait, value)
    assert (plane.k[0], plane.query, len(plane.words)) == ([0.5, -0.5], 2, N)


def test_a_plane_holds_its_vectors_and_somewhat_more() -> None:
    plane = AttentionPlane(**options(keys=np.full((N, 2), 3.0), values=np.full((N, D_V), 0.1)))
    assert plane.edges == [3.5, 1.0]


@pytest.mark.parametrize("wide", [2, D_V])
def test_the_picture_shows_the_arrows(wide: int) -> None:
    values = np.ones((N, wide))
    plane, figure = AttentionPlane(**options(values=values, query=1)), Figure()
    plane.draw(figure)
    drawn, bars, *second = figure.axes
    assert [text.get_text() for text in drawn.texts if text.get_text()] == [*"abcde", "y?"]
    lengths = [patch.get_width() for patch in bars.patches]  # type: ignore[attr-defined]
    assert lengths == pytest.approx(plane.compute()["weights"])
    assert len(second) == (wide == 2)
