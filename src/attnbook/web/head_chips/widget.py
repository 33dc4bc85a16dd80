"""HeadChips: switch off heads of a small model, at each checkpoint of its training."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.web._widget import Widget, WidgetError, as_array, as_list, check_size

MOST = 8  # heads: results are stored for every subset of them
FINE = {
    "maps": 255,
    "right": 65535,
}  # the integer that stands for 1: 8 bits for a weight, 16 for an accuracy
KINDS = {"maps": "u1", "right": "<u2"}


class HeadChips(Widget):
    """A chip with a thumbnail, a score and a switch for each head; a slider plays the training.

    The results for every set of silenced heads are stored, so that the page needs no model.

    Args:
        maps: `[checkpoint head query key]` attention weights of each head, in 0..1, stored in 8
            bits with an error of at most 0.002.
        right: `[checkpoint 2 set]` accuracy with some heads silenced. Set s silences head l if bit
            l of s is 1 (0: none, 5: the first and the third). At index 0 of the second dimension
            zeros replace the silenced heads, at index 1 their means do. Stored in 16 bits.
        steps: `[checkpoint]` the training step of each checkpoint, increasing.
        losses: `[checkpoint]` loss of the full model.
        scores: name -> `[checkpoint head]`, each head's score in 0..1; a chip shows the largest
            score of its head.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `at` (the checkpoint), `off` (the silenced heads, from 0) and `mean` (whether
    their means replace them) track the reader's choices; setting them changes what is shown.

    Raises:
        ValueError: if sizes do not match, there are more than `MOST` heads, or a number is out of
            range; also if `steps`, `losses` or `scores` are changed later.
    """

    _esm, _css = bundles.load("HeadChips")

    steps = traitlets.List(traitlets.Int()).tag(sync=True)
    losses = traitlets.List(traitlets.Float()).tag(sync=True)
    maps = traitlets.Instance(np.ndarray).tag(sync=True, to_json=lambda x, _: _packed("maps", x))
    right = traitlets.Instance(np.ndarray).tag(sync=True, to_json=lambda x, _: _packed("right", x))
    scores = traitlets.Dict().tag(sync=True)
    at = traitlets.Int(0).tag(sync=True)
    off = traitlets.List(traitlets.Int()).tag(sync=True)
    mean = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        maps: Any,
        right: Any,
        steps: Sequence[int],
        losses: Any,
        scores: Mapping[str, Any],
        *,
        title: str = "",
        name: str | None = None,
    ) -> None:
        kept, times = _shares(maps, "maps"), as_list(steps, "steps", "whole numbers")
        n, heads, *sides = kept.shape if kept.ndim == 4 else (0, 0, 0)
        if n < 2 or not 2 <= heads <= MOST or sides[0] != sides[1]:
            raise WidgetError(
                f"maps must be [checkpoint head query key], square, of 2 checkpoints or more and 2"
                f" to {MOST} heads, not {kept.shape}"
            )
        whole = all(type(step) is int or isinstance(step, np.integer) for step in times)
        if not whole or len(times) != n or min(np.diff(times)) <= 0:
            raise WidgetError(f"steps must be {n} increasing whole numbers, as maps, not {times}")
        if not isinstance(scores, Mapping) or not scores:
            raise WidgetError(f"scores must be numbers by one name or more, not {scores!r:.60}")
        named = {f"scores[{key!r}]": x for key, x in scores.items()}
        given = {
            "right": (_shares(right, "right"), (n, 2, 2**heads)),
            "losses": (as_array(losses, "losses"), (n,)),
            **{what: (_shares(x, what), (n, heads)) for what, x in named.items()},
        }
        for what, (values, shape) in given.items():
            if values.shape != shape:
                raise WidgetError(f"{what} must be {shape} numbers, not {values.shape}")
        curve = given["losses"][0]
        if not (np.isfinite(curve).all() and curve.min() >= 0 and curve.max() > 0):
            raise WidgetError(f"losses must be 0 or more, and not all 0, got {curve.tolist()}")
        check_size(kept.size + 2 * given["right"][0].size, "maps and right", "fewer checkpoints")
        super().__init__(
            name=name,
            title=title,
            steps=[int(step) for step in times],
            losses=[float(f"{x:.4g}") for x in curve],
            maps=kept,
            right=given["right"][0],
            scores={key: np.round(as_array(x, key), 3).tolist() for key, x in scores.items()},
            at=n - 1,
        )

    @traitlets.validate("maps", "right")
    def _check_shares(self, proposal: Any) -> np.ndarray:
        what, kept = proposal["trait"].name, _shares(proposal["value"], proposal["trait"].name)
        if self.steps and kept.shape != getattr(self, what).shape:
            raise WidgetError(f"{what} must keep its shape, not become {kept.shape}")
        return kept

    @traitlets.validate("steps", "losses", "scores")
    def _check_fixed(self, proposal: Any) -> Any:
        old = getattr(self, proposal["trait"].name)
        if old and proposal["value"] != old:
            raise WidgetError(f"{proposal['trait'].name} must stay: make a new HeadChips")
        return proposal["value"]

    @traitlets.validate("at")
    def _check_at(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < len(self.steps):
            raise WidgetError(f"at must be 0..{len(self.steps) - 1}, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("off")
    def _check_off(self, proposal: Any) -> list[int]:
        off, heads = sorted(set(proposal["value"])), self.maps.shape[1]
        if not all(0 <= head < heads for head in off):
            raise WidgetError(f"off must be of heads 0..{heads - 1}, not {off}")
        return off

    def share(self) -> float:
        """The accuracy at the current checkpoint, without the heads that are switched off."""
        return float(self.right[self.at, int(self.mean), sum(2**head for head in self.off)])

    def content(self) -> bytes:
        return _packed("maps", self.maps) + _packed("right", self.right)

    def summary(self) -> str:
        n, heads, *_ = self.maps.shape
        return f"{heads} heads, {n} checkpoints up to step {self.steps[-1]}"

    def draw(self, figure: Figure) -> None:
        heads = self.maps.shape[1]
        panels = figure.subplots(2, (heads + 1) // 2, squeeze=False)
        for head, panel in enumerate(panels.flat):
            panel.axis("off")
            if head < heads:
                values = self.maps[self.at, head] * (0.15 if head in self.off else 1)
                panel.imshow(values, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
                panel.set_title(f"head {head + 1}{' off' * (head in self.off)}", fontsize=8)
        told = f"step {self.steps[self.at]}: loss {self.losses[self.at]:.2f}, right"
        figure.supxlabel(f"{told} {self.share():.2f}", fontsize=9)


def _packed(what: str, values: np.ndarray) -> bytes:
    return np.rint(values * FINE[what]).astype(KINDS[what]).tobytes()


def _shares(values: Any, what: str) -> np.ndarray:
    array = as_array(values, what)
    if not ((array >= -1e-6) & (array <= 1 + 1e-6)).all():
        raise WidgetError(f"{what} must be in 0..1, not {array.min():g} to {array.max():g}")
    return array.clip(0, 1)
