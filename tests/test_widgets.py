"""The widgets' Python side: what they refuse, what they send, and their fallbacks."""

import base64
import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from mpl_toolkits.mplot3d import Axes3D
from PIL import Image

from attnbook import web
from attnbook.model.positions import Rotary, sinusoidal
from attnbook.web import (
    AttentionHeatmap,
    LossSurface,
    PositionExplorer,
    RotaryDial,
    SoftmaxTemperature,
    fold_tail,
    format_number,
)
from attnbook.web.rotary_dial.widget import positioned
from attnbook.web.softmax_temperature.widget import softmax
from tests.helpers.widgets import (
    KEYS,
    QUERIES,
    ROWS,
    bowls,
    each,
)

FOLDER = Path(web.__file__).parent
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    '"quo\'te"',
    "שלום",
    "👩‍👩‍👧‍👦",
    "x" * 500,
    "",
    "\n",
    "$x$ $",
]


def changed(row: int, column: int, value: float) -> np.ndarray:
    weights = ROWS.copy()
    weights[row, column] = value
    return weights


# ---- AttentionHeatmap


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (changed(2, 1, np.nan), r"row 2 \('vierzig'\) holds NaN; its sum is nan"),
        (
            [[1.1, -0.1, 0, 0], *ROWS[1:]],
            r"row 0 \('zwei'\) holds the negative weight -0.1; its sum is 1",
        ),
        (changed(2, 3, 0.1), r"row 2 \('vierzig'\) must sum to 1.*its sum is 1.1"),
        (changed(1, 0, 0.5), r"row 1 \('und'\) must sum to 1.*its sum is 0.5"),
        (changed(0, 0, np.inf), r"row 0 \('zwei'\).*its sum is inf"),
        (ROWS[0], r"weights must be \[\.\.\., query, key\].* not of shape \(4,\)"),
        (ROWS[:2], r"of shape \(3, 4\), as .* queries and keys have it, not of shape \(2, 4\)"),
        (ROWS[:, :3] / 0.9, r"of shape \(3, 4\), as .* not of shape \(3, 3\)"),
        (ROWS.T, r"of shape \(3, 4\), as .* not of shape \(4, 3\)"),
        ([[0.5, 0.5], [1.0]], "weights must be a full array of numbers"),
        ("none", "weights must be a full array of numbers"),
        (np.zeros((0, 3, 4)), "holds no weight"),
    ],
)
def test_heatmap_refuses_what_is_no_attention(weights: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        AttentionHeatmap(weights, QUERIES, KEYS)


def test_refusal_names_the_map() -> None:
    weights = np.stack([np.stack([ROWS, ROWS]), np.stack([ROWS, changed(0, 0, 0.6)])])
    axes = [("layer", ["first", "last"]), ("head", ["a", "b"])]
    with pytest.raises(ValueError, match=r"row 0 \('zwei'\), layer last, head b .* sum is 0.9"):
        AttentionHeatmap(weights, QUERIES, KEYS, axes=axes)
    with pytest.raises(ValueError, match=r"other: row 0 \('zwei'\) must sum.* sum is 0.9"):
        AttentionHeatmap(weights[0], QUERIES, KEYS, other=changed(0, 0, 0.6))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"queries": "abc"}, "queries must be a list of tokens"),
        ({"keys": ["a", "b", "c", 4]}, "keys must be strings, not int: 4"),
        ({"other": ROWS[:, :3]}, r"other has shape \(3, 3\); it must be \(2, 3, 4\)"),
        ({"keys": ["a", "b", "c", "\ud83d"]}, "keys must be Unicode text; half a character"),
        ({"names": ["one"]}, "names must be 2 texts, not 1"),
        ({"axes": [("head", ["a"])]}, r"of shape \(1, 3, 4\), as axes.* not of shape \(2, 3, 4\)"),
        ({"axes": [("head", "ab")]}, "axes: labels of 'head' must be a list"),
        ({"name": "Learnt map"}, "name must be like 'learnt-map'"),
        ({"name": "a&b"}, "name must be like 'learnt-map'"),
    ],
)
def test_heatmap_refuses_what_does_not_fit(options: dict[str, Any], says: str) -> None:
    given_options = {"queries": QUERIES, "keys": KEYS, **options}
    with pytest.raises(ValueError, match=says):
        AttentionHeatmap(np.stack([ROWS, ROWS]), **given_options)


def test_heatmap_crosses_out_what_a_mask_hides() -> None:
    weights, hidden = np.stack([ROWS, ROWS]), np.stack([np.zeros((3, 4)), ROWS == 0])
    heatmap = AttentionHeatmap(weights, QUERIES, KEYS, masked=hidden)
    assert heatmap.masked == [12 + k for k in np.flatnonzero(ROWS == 0)]
    assert not heatmap.crossed()[0].any()
    heatmap.index = [1]
    assert (heatmap.crossed()[0] == (ROWS == 0)).all()
    each = AttentionHeatmap(weights, QUERIES, KEYS, masked=ROWS == 0)  # one mask for all maps
    assert len(each.masked) == 2 * (ROWS == 0).sum()
    for wrong, says in ((ROWS > 0, "only where weights are 0"), (ROWS[0], "booleans of shape")):
        with pytest.raises(ValueError, match=says):
            AttentionHeatmap(weights, QUERIES, KEYS, masked=wrong)
    with pytest.raises(ValueError, match="masked must be places below 24"):
        each.masked = [24]


def test_heatmap_limits() -> None:
    tokens = [str(i) for i in range(129)]
    assert AttentionHeatmap(np.eye(128), tokens[:128], tokens[:128]).weights.shape == (128, 128)
    assert AttentionHeatmap([[1]], ["a"], ["b"]).weights.shape == (1, 1)
    with pytest.raises(ValueError, match="129 x 129; a map has at most 128 x 128"):
        AttentionHeatmap(np.eye(129), tokens, tokens)
    with pytest.raises(ValueError, match="a weight, take 1,015,808 bytes, more than 1,000,000"):
        AttentionHeatmap(np.stack([np.eye(128)] * 31), tokens[:128], tokens[:128])


@settings(deadline=None)  # a busy machine is slow
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 7)),
        elements=st.floats(1e-6, 1.0),
    )
)
def test_weights_travel_within_the_stated_precision(raw: np.ndarray) -> None:
    weights = raw / raw.sum(-1, keepdims=True)
    steps, rows, columns = weights.shape
    widget = AttentionHeatmap(weights, ["q"] * rows, ["k"] * columns)
    sent = np.frombuffer(widget.get_state()["weights"], "<u2").reshape(steps, rows, columns)
    assert np.array_equal(sent / 65535, widget.weights)  # Python prints what the browser shows
    assert np.abs(widget.weights - weights).max() <= 0.5 / 65535 + 1e-12


def test_heatmap_takes_tensors_and_copies() -> None:
    tensor = torch.softmax(torch.arange(24.0).reshape(2, 3, 4), -1).requires_grad_()
    widget = AttentionHeatmap(tensor, QUERIES, KEYS, other=tensor[0].to(torch.bfloat16).float())
    assert np.allclose(widget.weights, tensor.detach(), atol=1e-5)
    weights = ROWS.copy()
    widget = AttentionHeatmap(weights, QUERIES, KEYS)
    weights[:] = 0
    assert np.allclose(widget.weights, ROWS, atol=1e-5)


def test_heatmap_state_follows_python() -> None:
    axes = [("step", ["1", "2"])]
    widget = AttentionHeatmap(np.stack([ROWS, ROWS]), QUERIES, KEYS, axes=axes)
    widget.set_state({"query": 2, "key": 3, "index": [1]})  # as the browser sends it
    assert (widget.query, widget.key, widget.index) == (2, 3, [1])
    for trait, value in (("query", 3), ("key", -2), ("index", [2]), ("index", [])):
        with pytest.raises(ValueError, match=f"{trait} must"):
            setattr(widget, trait, value)
    widget.weights = np.stack([np.roll(ROWS, 1, -1), ROWS])
    assert widget.weights[0, 0, 1] == pytest.approx(0.7, abs=1e-5)
    with pytest.raises(ValueError, match=r"row 2 \('vierzig'\), step 2 holds NaN"):
        widget.weights = np.stack([ROWS, changed(2, 1, np.nan)])
    with pytest.raises(ValueError, match=r"shape \(2, 3, 4\), .* not of shape \(3, 4\)"):
        widget.weights = ROWS


def test_a_second_map_can_come_later() -> None:
    widget = AttentionHeatmap(np.stack([ROWS, ROWS]), QUERIES, KEYS)
    for other, says in (
        (np.full((2, 2), np.nan), r"other has shape \(2, 2\); it must be \(2, 3, 4\) like weights"),
        (np.stack([ROWS] * 3), r"other has shape \(3, 3, 4\)"),
        (changed(2, 1, np.nan), r"other: row 2 \('vierzig'\) holds NaN"),
    ):
        with pytest.raises(ValueError, match=says):
            widget.other = other
        assert widget.other is None
    widget.other = ROWS
    assert len(widget.get_state()["other"]) == 2 * ROWS.size
    widget.other = np.stack([ROWS, ROWS])
    widget.other = None
    assert widget.get_state()["other"] == b""
    tokens = [str(i) for i in range(128)]
    large = AttentionHeatmap(np.stack([np.eye(128)] * 16), tokens, tokens)
    with pytest.raises(ValueError, match="take 1,048,576 bytes"):
        large.other = large.weights


@pytest.mark.parametrize(
    ("trait", "wrong", "right"),
    [
        ("query_tokens", ["a", "b"], ["a", "b", "c"]),
        ("key_tokens", ["a", "b", "c"], ["a", "b", "c", "d"]),
        ("key_tokens", ["a", "b", "c", "\ud83d"], ["a", "b", "c", "d"]),
        ("names", ["learnt"], ["learnt", "gold"]),
        ("axes", [["step", ["1"]]], [["step", ["100", "600"]]]),
        ("axes", [], [["step", ["100", "600"]]]),
    ],
)
def test_heatmap_texts_keep_their_lengths(trait: str, wrong: Any, right: Any) -> None:
    widget = AttentionHeatmap(np.stack([ROWS, ROWS]), QUERIES, KEYS)
    before = getattr(widget, trait)
    with pytest.raises(ValueError):
        setattr(widget, trait, wrong)
    assert getattr(widget, trait) == before
    setattr(widget, trait, right)
    assert getattr(widget, trait) == right


def test_rows_at_the_edge_of_the_tolerance() -> None:
    keys = [str(j) for j in range(120)]
    weights = np.full((1, 120), 546.6 / 65535)  # sums to 1.0009; kept as 547, which sums to 1.0016
    widget = AttentionHeatmap(weights, ["q"], keys)
    widget.weights = widget.weights[:, ::-1]
    with pytest.raises(ValueError, match="must sum to 1"):
        widget.weights = np.full((1, 120), 547.2 / 65535)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("keys", [2, 17, 128])
def test_a_softmax_of_any_precision_is_shown(dtype: torch.dtype, keys: int) -> None:
    logits = torch.randn(64, 128, keys) * torch.rand(64, 1, 1) * 8
    weights = torch.softmax(logits.to(dtype), -1)
    sums = weights.double().sum(-1)
    worst = weights[int((sums - 1).abs().amax(-1).argmax())]
    assert abs(worst.double().sum(-1) - 1).max() > torch.finfo(dtype).eps / 8  # rounding is seen
    tokens = [[str(i) for i in range(size)] for size in worst.shape]
    for given_ in (worst, worst.float().numpy()):  # a softmax may be widened before it is shown
        widget = AttentionHeatmap(given_, *tokens, other=worst)
        assert np.abs(widget.weights - worst.double().numpy()).max() <= 0.5 / 65535 + 1e-12
    again = AttentionHeatmap(widget.weights, *tokens)  # what was kept can be given again
    again.weights = again.weights[::-1]
    for share in (0.9, 0.985, 1.015):
        with pytest.raises(ValueError, match=r"weights: row 0 .* must sum to 1"):
            AttentionHeatmap((share * worst.double()).to(dtype), *tokens)


def test_only_rounded_weights_get_the_slack_of_rounding() -> None:
    with pytest.raises(ValueError, match=r"its sum is 0\.996"):
        AttentionHeatmap(torch.softmax(torch.randn(1, 9), -1) * 0.996, ["q"], ["k"] * 9)


def test_axes_have_names_without_being_named() -> None:
    assert AttentionHeatmap([ROWS] * 2, QUERIES, KEYS).axes == [["map", ["1", "2"]]]
    four = AttentionHeatmap([[ROWS], [ROWS]], QUERIES, KEYS).axes
    assert four == [["map 1", ["1", "2"]], ["map 2", ["1"]]]


# ---- SoftmaxTemperature


@pytest.mark.parametrize(
    ("logits", "options", "says"),
    [
        ([1, np.nan, 2], {}, "logits: row 0 holds NaN or plus infinity; its sum is nan"),
        ([1, np.inf, 2], {}, "logits: row 0 holds NaN or plus infinity; its sum is inf"),
        ([-np.inf] * 3, {}, "logits: row 0 holds only minus infinity"),
        ([1, 2], {}, r"logits must be .* for 3 labels and 0 contexts, not \(2,\)"),
        ([[[1, 2, 3]]], {}, "logits must be .label. or .context, label."),
        ([[1, 2, 3]], {}, r"logits must be .* for 3 labels and 0 contexts, not \(1, 3\)"),
        (
            [1, 2, 3],
            {"contexts": ["x"]},
            r"for 3 labels and 1 contexts, not \(3,\)",
        ),
        ([[1, 2, 3], [1, np.nan, 3]], {"contexts": ["x", "y"]}, "row 1 holds NaN"),
        ([1, 2, 3], {"temperature": -1}, "temperature must be .* at least 0, not -1"),
        ([1, 2, 3], {"temperature": np.nan}, "temperature must be .* at least 0, not nan"),
        ([1, 2, 3], {"temperature": np.inf}, "temperature must be .* at least 0, not inf"),
        ([1, 2, 3], {"top": 0}, "top must be at least 1, not 0"),
        ([1, 2, 3], {"counts": [1, 2]}, "counts must be 3 numbers of at least 1, not 2 from 1"),
        ([1, 2, 3], {"counts": [1, 0, 2]}, "counts must be 3 numbers .*, not 3 from 0"),
        ([1, 2, 3], {"name": "-"}, "name must be like"),
    ],
)
def test_temperature_refuses(logits: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        SoftmaxTemperature(logits, ["a", "b", "c"], **options)


def test_a_folded_tail_has_the_entropy_of_the_whole() -> None:
    whole = 3 * np.random.default_rng(0).normal(size=(2, 5000))
    kept, folded, counts = fold_tail(whole, 20)
    assert folded.shape == (2, len(counts)) and sum(counts) == 5000 and len(counts) < 90
    assert np.array_equal(folded[:, :20], whole[:, kept]) and folded[0, 20:].argmax() == 0
    for t in (0, 0.3, 1, 2, 20):
        for row, small in zip(whole, folded, strict=True):
            p, q = softmax(row, t), softmax(small, t, np.array(counts))
            at, near = -(p * np.log(p + 1e-300)).sum(), -(q * np.log(q / counts + 1e-300)).sum()
            assert abs(at - near) < 0.02 * at + 1e-9 and np.allclose(p[kept], q[:20], rtol=0.03)
    exact = softmax(folded[0], 1, np.array(counts))
    assert np.allclose(exact[:20], softmax(whole[0])[kept])
    assert fold_tail(whole, 5000)[2] == [1] * 5000
    for wrong, keep in ((whole[0], 20), (whole, 0), (whole, 5001)):
        with pytest.raises(ValueError, match="keep one to all tokens"):
            fold_tail(wrong, keep)


def test_temperature_limit() -> None:
    labels = [f"w{i}" for i in range(50_000)]
    small = SoftmaxTemperature(torch.zeros(50_000), labels)
    assert len(small.get_state()["logits"]) == 200_000  # float32 loses nothing here
    with pytest.raises(ValueError, match="bytes, more than 1,000,000"):
        SoftmaxTemperature(np.full((3, 50_000), 0.1), labels, contexts=["a", "b", "c"])


@settings(deadline=None)
@given(arrays.arrays(np.float64, st.integers(1, 9), elements=st.floats(-1e6, 1e6)))
def test_logits_travel_exactly(logits: np.ndarray) -> None:
    widget = SoftmaxTemperature(logits, ["w"] * len(logits))
    sent = widget.get_state()["logits"]
    widget.set_state({"logits": memoryview(sent)})
    assert np.array_equal(widget.logits, logits)


def test_temperature_state_follows_the_browser() -> None:
    widget = SoftmaxTemperature([[1, 2, 3], [3, 2, 1]], ["a", "b", "c"], contexts=["x", "y"])
    edited = np.array([[1, 2, 3], [3, 2.5, 1]])
    widget.set_state({"temperature": 0.5, "context": 1, "logits": memoryview(edited.tobytes())})
    assert (widget.temperature, widget.context) == (0.5, 1)
    assert np.array_equal(widget.logits, edited)
    assert np.array_equal(widget.row(), edited[1])
    widget.logits = np.array([[0, 0, 0], [0, 0, 1]])
    assert widget.logits.dtype == np.float64
    for trait, value in (("context", 2), ("temperature", -0.1), ("logits", np.arange(3))):
        with pytest.raises(ValueError, match=f"{trait} must"):
            setattr(widget, trait, value)


@pytest.mark.parametrize(
    ("trait", "wrong", "right"),
    [
        ("labels", ["a", "b"], ["a", "b", "d"]),
        ("contexts", ["x"], ["x", "z"]),
        ("contexts", [], ["x", "z"]),
        ("top", 0, 1),
    ],
)
def test_temperature_texts_keep_their_lengths(trait: str, wrong: Any, right: Any) -> None:
    widget = SoftmaxTemperature([[1, 2, 3], [3, 2, 1]], ["a", "b", "c"], contexts=["x", "y"])
    before = getattr(widget, trait)
    with pytest.raises(ValueError, match=f"{trait} must be"):
        setattr(widget, trait, wrong)
    assert getattr(widget, trait) == before
    setattr(widget, trait, right)
    assert getattr(widget, trait) == right
    if trait != "top":
        with pytest.raises(ValueError, match="contexts must be 0 texts, not 1"):
            SoftmaxTemperature([1, 2], ["a", "b"]).contexts = ["x"]


def test_softmax_limits() -> None:
    logits = np.array([1.0, 3.0, 3.0, -np.inf])
    for cold in (0.0, 1e-6, 5e-324):
        assert np.array_equal(softmax(logits, cold), [0, 0.5, 0.5, 0])
    assert softmax(np.array([1e6, 0.0]), 1).tolist() == [1, 0]
    assert np.allclose(softmax(logits[:3], 1e9), 1 / 3)


# ---- rounding, one way in both languages

TIES = [0.125, 0.375, 0.0005, 0.0015, 0.5, 1.5, 2.5, 0.25, 0.75, 1.625, 1.005, 0.1235, 1e-9, 0.0]


def test_numbers_are_written_as_python_writes_them() -> None:
    assert [format_number(x, 2) for x in (0.125, 0.375, 0.107, 1.005)] == [
        "0.12",
        "0.38",
        "0.11",
        "1.00",
    ]
    assert format_number(-0.0001) == "0.000"
    assert format_number(-np.inf) == "-∞"


def test_javascript_rounds_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    halves = rng.integers(-5000, 5000, 2000) / 2.0 ** rng.integers(0, 8, 2000)  # many exact ties
    numbers = [*TIES, *(-x for x in TIES), *halves.tolist()]
    numbers += (rng.random(3000) * 10.0 ** rng.integers(-8, 7, 3000)).tolist()
    numbers += np.nextafter(halves[:500], 1e9).tolist()  # and their neighbours
    script = (
        f"import {{ format }} from '{(FOLDER / 'shared/math.js').as_uri()}';"
        "import { readFileSync } from 'node:fs';"
        "const numbers = readFileSync(0, 'utf8').split('\\n').map(Number);"
        "for (const x of numbers) console.log([0, 1, 2, 3, 4].map((d) => format(x, d)).join(' '));"
    )
    lines = "\n".join(map(repr, numbers))
    node = subprocess.run(
        [shutil.which("node") or "node", "--input-type=module", "-e", script],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = node.stdout.split("\n")[:-1]
    ours = [" ".join(format_number(x, d) for d in range(5)) for x in numbers]
    assert theirs == ours


# ---- PositionExplorer


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"d_model": 7}, "d_model must be an even number from 2 to 512, not 7"),
        ({"d_model": 0}, "d_model must be an even number from 2 to 512, not 0"),
        ({"d_model": 514}, "d_model must be an even number from 2 to 512, not 514"),
        ({"max_len": 1}, "max_len must be a number from 2 to 512, not 1"),
        ({"max_len": 513}, "max_len must be a number from 2 to 512, not 513"),
        ({"position": 128}, "position must be 0..127, not 128"),
        ({"position": -1}, "position must be 0..127, not -1"),
        ({"pair": 32}, "pair must be 0..31, not 32"),
        ({"d_model": 6, "pair": 3}, "pair must be 0..2, not 3"),
        ({"max_len": 9, "position": 9}, "position must be 0..8, not 9"),
        ({"base": 0.5}, "base must be a number of at least 1, not 0.5"),
        ({"base": np.nan}, "base must be a number of at least 1, not nan"),
        ({"base": np.inf}, "base must be a number of at least 1, not inf"),
    ],
)
def test_explorer_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        PositionExplorer(**options)


def test_explorer_follows_the_browser_and_python() -> None:
    widget = PositionExplorer(6, 9, base=100)
    widget.set_state({"position": 8, "pair": 2, "base": 50})
    assert (widget.position, widget.pair, widget.base) == (8, 2, 50)
    assert widget.wavelength() == pytest.approx(2 * np.pi * 50 ** (4 / 6))
    for trait, value in (("position", 9), ("pair", 3), ("base", 0), ("d_model", 5), ("max_len", 1)):
        before = getattr(widget, trait)
        with pytest.raises(ValueError, match=f"{trait} must"):
            setattr(widget, trait, value)
        assert getattr(widget, trait) == before


def test_explorer_pictures_the_vectors() -> None:
    widget = PositionExplorer(6, 9, base=100, position=4, pair=1)
    figure = Figure()
    widget.draw(figure)
    clocks, products, map_, waves = figure.axes
    p = sinusoidal(9, 6, 100.0).double().numpy()
    hands = [np.diff(np.asarray(line.get_xydata()), axis=0)[0] for line in clocks.lines]
    assert np.allclose(hands, 0.45 * p[4].reshape(3, 2)[:, ::-1])  # the sine up
    assert np.array_equal(np.asarray(map_.images[0].get_array()), p.T)
    sine, cosine, _ = (line.get_ydata() for line in waves.lines)
    assert np.array_equal(np.stack([sine, cosine], -1), p[:, 2:4])
    ((x, y),) = (line.get_data() for line in products.lines)
    assert np.array_equal(x, np.arange(-4, 5)) and np.allclose(y, p @ p[4])
    assert "wavelength 29.2" in waves.get_xlabel()


# ---- RotaryDial


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"q": [1, 2, 3]}, "q must be two numbers of length at most 2, not [1. 2. 3.]"),
        ({"k": [2, 0.1]}, "k must be two numbers of length at most 2, not [2.  0.1]"),
        ({"k": [np.nan, 0]}, "k must be two numbers of length at most 2, not [nan  0.]"),
        ({"q": ["a", 1]}, "q must be a full array of numbers"),
        ({"i": 65}, "i must be 0..64, not 65"),
        ({"j": -1}, "j must be 0..64, not -1"),
        ({"theta": -0.1}, "theta must be 0 to pi, not -0.1"),
        ({"theta": np.nan}, "theta must be 0 to pi, not nan"),
        ({"mode": "turn"}, "mode must be 'rotate' or 'add', not 'turn'"),
        ({"words": ["know"]}, "words must be two, of q and of k, not ['know']"),
        ({"words": "we"}, "words must be"),
    ],
)
def test_dial_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        RotaryDial(**options)


def test_dial_follows_the_browser_and_python() -> None:
    widget = RotaryDial(torch.tensor([1.5, 0.5]), (1.2, 1.6), theta=1)
    widget.set_state({"q": [1, 0], "i": 64, "j": 3, "theta": 0.5, "mode": "add"})
    assert (widget.q, widget.k, widget.i, widget.j) == ([1, 0], [1.2, 1.6], 64, 3)
    assert (widget.theta, widget.mode) == (0.5, "add")
    for trait, value in (("q", [1]), ("k", [3, 0]), ("i", 65), ("theta", 4), ("mode", "")):
        before = getattr(widget, trait)
        with pytest.raises(ValueError, match=f"{trait} must"):
            setattr(widget, trait, value)
        assert getattr(widget, trait) == before


def test_dial_turns_as_rotary_does_and_adds_as_sinusoidal_does() -> None:
    q = torch.randn(1, 1, 9, 2).double()
    turned = Rotary(2).rotate(q, torch.arange(9)[None])  # two numbers: one radian a position
    added = q + sinusoidal(9, 2).flip(-1)  # drawn: the cosine to the right, the sine up
    for n in range(9):
        vector = q[0, 0, n].numpy()
        assert np.allclose(positioned(vector, n, 1.0, "rotate"), turned[0, 0, n], atol=1e-6)
        assert np.allclose(positioned(vector, n, 1.0, "add"), added[0, 0, n], atol=1e-6)


def test_dial_scores_by_distance_alone_only_when_it_rotates() -> None:
    widget = RotaryDial((1.5, 0.4), (-0.3, 1.1), i=12, j=7, theta=0.3)
    angle = np.arctan2(0.4, 1.5) - np.arctan2(1.1, -0.3) + 5 * 0.3
    first = widget.score()
    assert first == pytest.approx(np.hypot(1.5, 0.4) * np.hypot(0.3, 1.1) * np.cos(angle))
    widget.i, widget.j = 27, 22
    assert widget.score() == pytest.approx(first, abs=1e-12)
    widget.mode = "add"
    added = widget.score()
    widget.i, widget.j = 12, 7
    assert abs(widget.score() - added) > 0.5


def test_dial_pictures_every_pair_and_the_present_one() -> None:
    widget = RotaryDial(i=12, j=7, theta=0.3)
    for mode, spread in (("rotate", 0), ("add", 1)):
        widget.mode = mode
        figure = Figure()
        widget.draw(figure)
        pairs, present = (line.get_xydata() for line in figure.axes[1].lines)
        scores = np.asarray(pairs)[np.asarray(pairs)[:, 0] == 5, 1]
        assert len(scores) == 60
        assert np.ptp(scores) == pytest.approx(0, abs=1e-12) if not spread else np.ptp(scores) > 1
        assert np.allclose(present, [[5, widget.score()]])


def test_dial_writes_any_words_as_they_are() -> None:
    widget = RotaryDial(i=12, j=7, words=("$\\x$", "$"))
    assert widget.png()
    figure = Figure()
    widget.draw(figure)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["", "", "q", "q₁₂ $\\x$", "", "", "k", "k₇ $"]


# ---- LossSurface


@pytest.mark.parametrize(
    ("surfaces", "says"),
    [
        (bowls()[0], "surfaces must be [k, n, n] with 1 to 3 surfaces and n odd, 3 to 41, not (5,"),
        (bowls()[:, :3], "n odd, 3 to 41, not (2, 3, 5)"),
        (bowls(4), "n odd, 3 to 41, not (2, 4, 4)"),
        (bowls(1), "n odd, 3 to 41, not (2, 1, 1)"),
        (bowls(43), "n odd, 3 to 41, not (2, 43, 43)"),
        (bowls(5, 4), "1 to 3 surfaces and n odd, 3 to 41, not (4, 5, 5)"),
        (bowls()[:0], "not (0, 5, 5)"),
        (bowls() - 1, "surfaces must be losses of 0.0001 to 65504, not -0.5"),
        (bowls() * 1e5, "surfaces must be losses of 0.0001 to 65504"),
        (np.where(bowls() > 3, np.inf, 1), "0.0001 to 65504, not 1 to inf: clip them"),
        (np.where(bowls() > 3, np.nan, 1), "0.0001 to 65504, not nan to nan: clip them"),
        ([[[1, 2], [3]]], "surfaces must be a full array of numbers"),
    ],
)
def test_surface_refuses(surfaces: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        LossSurface(surfaces, ["with", "without"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"names": ["with"]}, "names must be 2 texts, not 1"),
        ({"names": "ab"}, "names must be a list of tokens, not 'ab'"),
        ({"extent": 0}, "extent must be a number above 0, not 0"),
        ({"extent": np.nan}, "extent must be a number above 0, not nan"),
        ({"extent": np.inf}, "extent must be a number above 0, not inf"),
    ],
)
def test_surface_refuses_what_does_not_fit(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        LossSurface(bowls(), **{"names": ["with", "without"], **options})


@settings(deadline=None)
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 3), *[st.shared(st.sampled_from([3, 5, 9]))] * 2),
        elements=st.floats(1e-4, 65504),
    )
)
def test_losses_travel_within_the_stated_precision(given_: np.ndarray) -> None:
    widget = LossSurface(given_, ["x"] * len(given_))
    sent = np.frombuffer(widget.get_state()["surfaces"], "<f2").reshape(given_.shape)
    assert np.array_equal(sent, widget.surfaces)  # Python prints what the browser shows
    assert (np.abs(widget.surfaces / given_ - 1) <= 0.0005).all()
    assert np.array_equal(LossSurface(widget.surfaces, widget.names).surfaces, widget.surfaces)
    assert widget.log == (widget.surfaces.max() > 100 * widget.surfaces.min())


def test_surface_follows_the_browser_and_python() -> None:
    tensor = torch.tensor(bowls()).requires_grad_()
    widget = LossSurface(tensor, ["with", "without"], extent=2, log=True)
    assert widget.log and not LossSurface(tensor, ["with", "without"]).log
    for most in (100, 101):  # logarithmic above a hundredfold
        assert LossSurface(np.where(bowls() > 3, most, 1), ["a", "b"]).log == (most > 100)
    assert widget.centres() == pytest.approx([0.5, 1.5])
    widget.set_state({"azimuth": -180, "elevation": 90, "log": False})
    assert (widget.azimuth, widget.elevation, widget.log) == (-180, 90, False)
    changes = {"azimuth": 181, "elevation": -1, "extent": 0, "names": ["one"], "surfaces": bowls(7)}
    for trait, value in changes.items():
        before = getattr(widget, trait)
        with pytest.raises(ValueError, match=f"{trait} must"):
            setattr(widget, trait, value)
        assert getattr(widget, trait) is before or getattr(widget, trait) == before
    with pytest.raises(ValueError, match=r"azimuth must be -180\.\.180 degrees, not nan"):
        widget.azimuth = np.nan
    widget.surfaces = 2 * bowls()
    assert widget.centres() == pytest.approx([1, 3])


@pytest.mark.parametrize("log", [True, False])
def test_surface_pictures_one_scale(log: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, real = [], Axes3D.plot_surface

    def plot(axes: Axes3D, x: Any, y: Any, z: Any, **options: Any) -> Any:
        drawn.append((x, y, z))
        return real(axes, x, y, z, **options)

    monkeypatch.setattr(Axes3D, "plot_surface", plot)
    widget = LossSurface(bowls(), ["with", "without"], extent=2, log=log)
    widget.set_state({"azimuth": 20, "elevation": 40})
    figure = Figure()
    widget.draw(figure)
    f = np.log10 if log else np.array
    limits = f([widget.surfaces.min(), widget.surfaces.max()])
    panels: Any = figure.axes
    assert [axes.get_title() for axes in panels] == ["with", "without"]
    for axes in panels:
        assert axes.collections[0].get_clim() == pytest.approx(limits)
        low, high = axes.get_zlim()
        assert low <= limits[0] and limits[1] <= high
        assert (axes.azim, axes.elev) == (-110, 40)
        assert axes.get_zlabel() == ("log10 of the loss" if log else "loss")
    for (x, y, z), losses in zip(drawn, widget.surfaces, strict=True):
        assert np.array_equal(x[:, 1], [-2, -1, 0, 1, 2]) and np.array_equal(y[1], x[:, 1])
        assert np.allclose(z, f(losses))


# ---- what all share


def test_repr_is_stable_and_says_what_it_is() -> None:
    assert list(map(repr, each())) == [
        "AblationMap(encoder and decoder, 3 parts to take away, 2 seeds: The finding)",
        "AttentionHeatmap(3 query x 4 key: The finding)",
        "AttentionPlane(3 queries, 4 keys, values of 2: The finding)",
        "AttentionSheet(3 words, d 3, d_k 3, d_v 3: The finding)",
        "CostCalculator(d 576, 6 blocks, 9 heads on 3, 1,024 tokens, 0 measured: The finding)",
        "DecodingBench(2 tokens of a prompt, up to 2 behind it: The finding)",
        "Drawing(A query meets two keys, 3 steps: The finding)",
        "HeadChips(2 heads, 3 checkpoints up to step 9: The finding)",
        "Laboratory(sort, 2 layers of 32, 0 stored runs: The finding)",
        "LossSurface(with, without: 2 x 5 x 5 losses, up to 1 along two directions: The finding)",
        "MaskedWords(4 words, 1 hidden: The finding)",
        "ModelMap(encoder, BERT: The finding)",
        "Playground(2 tokens: The finding)",
        "PositionExplorer(128 positions x 64 dimensions, base 10000: The finding)",
        "PromptBench(2 prompts: The finding)",
        "Quiz(1 questions: The finding)",
        "RotaryDial(q (1.6, 0.3) and k (0.6, 1.2), rotate, angle 0.2: The finding)",
        "SoftmaxTemperature(3 labels, temperature 1: The finding)",
        "TokenizerBench(16 characters, learn: The finding)",
        "TransformerMap(encoder and decoder, walks of add: The finding)",
        "Translator(one_vector, additive: 42: The finding)",
    ]
    two = AttentionHeatmap(
        [ROWS] * 2, QUERIES, KEYS, other=ROWS, names=["learnt", "gold"], query_label="target word"
    )
    assert repr(two) == "AttentionHeatmap(3 target word x 4 key, 2 map, learnt beside gold)"
    contexts = SoftmaxTemperature([[1.0], [2.0]], ["a"], contexts=["x", "y"], temperature=0)
    assert repr(contexts) == "SoftmaxTemperature(1 labels, 2 contexts, temperature 0)"


def test_what_is_refused_takes_back_what_was_set_with_it() -> None:
    widget = AttentionHeatmap(np.stack([ROWS, ROWS]), QUERIES, KEYS)
    widget.query, widget.key = 0, 1
    before, told = widget.weights, []
    widget.observe(told.append, ["query", "key", "weights", "title"])
    with pytest.raises(ValueError, match=r"key must be -1 \(none\) or 0..3, not 4"):
        widget.set_state({"query": 2, "title": "new", "key": 4})  # the browser sends all at once

    def set_together() -> None:
        with widget.hold_trait_notifications():
            widget.query = 1
            widget.weights = np.stack([ROWS, changed(2, 1, np.nan)])

    with pytest.raises(ValueError, match="holds NaN"):
        set_together()
    assert (widget.query, widget.key, widget.title) == (0, 1, "") and widget.weights is before
    assert not told


def test_of_several_faults_the_first_is_told() -> None:
    """Whatever the order of a set, which changes from run to run."""
    with pytest.raises(ValueError, match=r"logits must be .* for 2 labels"):
        SoftmaxTemperature([1, 2, 3], ["a", "b"], temperature=-1, top=0, name="a b")


def test_names_are_stable_and_tell_contents_apart() -> None:
    first, again = (AttentionHeatmap(ROWS, QUERIES, KEYS).name for _ in range(2))
    other = AttentionHeatmap(ROWS[::-1], QUERIES, KEYS).name
    assert first == again != other
    assert re.fullmatch(r"attention-heatmap-[0-9a-f]{8}", first)
    assert AttentionHeatmap(ROWS, QUERIES, KEYS, name="learnt-map").name == "learnt-map"


@pytest.mark.parametrize("widget", each(), ids=lambda widget: type(widget).__name__)
def test_fallbacks(widget: Any) -> None:
    data, _ = widget._repr_mimebundle_()
    assert data["text/plain"] == repr(widget)
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
    png = base64.b64decode(data["image/png"])
    assert len(png) <= 25_000
    size = tuple(round(80 * inches) for inches in widget.figure_size())
    assert Image.open(io.BytesIO(png)).size == size and size[0] in (360, 448)
    assert png == widget.png()  # the same bytes again
    assert type(widget).__name__ in widget.get_state()["_anywidget_id"]


def test_picture_shows_the_weights() -> None:
    dark, light = (
        np.asarray(
            Image.open(io.BytesIO(AttentionHeatmap(w, ["q"], ["a", "b"]).png())).convert("L")
        )
        for w in ([[1.0, 0.0]], [[0.0, 0.0]])
    )
    assert (dark < 80).mean() > (light < 80).mean() + 0.1


def test_picture_draws_the_largest_and_the_rest() -> None:
    logits = np.array([0.5, 3.0, -1.0, 2.0, 1.0, 0.0])
    widget = SoftmaxTemperature(logits, list("abcdef"), top=2, temperature=0.5)
    figure = Figure()
    widget.draw(figure)
    (axis,) = figure.axes
    p = softmax(logits, 0.5)
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["b", "d", "4 others"]
    drawn = [bar.get_width() for bar in axis.patches if isinstance(bar, Rectangle)]
    assert drawn == pytest.approx([p[1], p[3], p[[0, 2, 4, 5]].sum()])
    shown = [text.get_text() for text in axis.texts]
    assert shown == [format_number(x) for x in drawn]


def test_picture_stretches_its_colours() -> None:
    weights = np.stack([np.full((3, 4), 0.25), ROWS])
    widget = AttentionHeatmap(weights, QUERIES, KEYS, other=np.zeros((3, 4)))

    def limits() -> list[tuple[float, float]]:
        figure = Figure()
        widget.draw(figure)
        return [image.get_clim() for panel in figure.axes for image in panel.images]

    assert not widget.stretch and limits() == [(0, 1), (0, 1)]
    plain = widget.png()
    widget.set_state({"stretch": True})  # as the browser sends it
    assert widget.stretch and limits() == [(0, pytest.approx(0.25, abs=1e-5))] * 2
    assert widget.png() != plain
    widget.index = [1]
    assert limits()[0] == (0, pytest.approx(0.7, abs=1e-5))
    nothing = AttentionHeatmap(np.zeros((3, 4)), QUERIES, KEYS, stretch=True)
    assert nothing.get_state()["stretch"] is True
    assert len(nothing.png()) <= 25_000


@pytest.mark.filterwarnings("error")
def test_hostile_tokens_are_drawn_and_sent_as_they_are() -> None:
    n = len(HOSTILE)
    heatmap = AttentionHeatmap(np.eye(n), HOSTILE, HOSTILE, title="$broken $ _math^", name="x")
    temperature = SoftmaxTemperature(range(n), HOSTILE)
    assert heatmap.get_state()["key_tokens"] == HOSTILE == temperature.get_state()["labels"]
    assert len(heatmap.png()) <= 25_000 and len(temperature.png()) <= 25_000


def test_large_maps_have_small_pictures() -> None:
    assert len(LossSurface(bowls(41, 3), ["a", "b", "c"]).png()) <= 25_000
    rng = np.random.default_rng(0)
    raw = rng.random((128, 128))
    tokens = [f"token{i}" for i in range(128)]
    assert len(AttentionHeatmap(raw / raw.sum(-1, keepdims=True), tokens, tokens).png()) <= 25_000


# ---- sources


def test_each_file_has_short_lines_and_is_safe() -> None:
    for file in {*FOLDER.rglob("*.js")} - {*FOLDER.glob("bundles/*/*")} - {*FOLDER.glob("site/*")}:
        text = file.read_text("utf8")
        assert max(map(len, text.splitlines())) <= 120, file.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text)
        assert not re.search(r"\bid:|\.id\s*=|getElementById", text)  # two on a page
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
