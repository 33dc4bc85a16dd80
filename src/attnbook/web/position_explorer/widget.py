"""PositionExplorer: sinusoidal positions as clock hands and waves, and their inner products."""

from typing import Any

import numpy as np
import traitlets
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.model.positions import sinusoidal
from attnbook.web._widget import Widget, WidgetError

MAX_SIDE = 512
HANDS = 8
COLOURS = LinearSegmentedColormap.from_list("signed", ["#cd6c00", "white", "#0068be"])


class PositionExplorer(Widget):
    """Position vectors p_i as clock hands that turn, and as columns of a picture.

    p_(i, 2m) = sin(i / base^(2m / d)) and p_(i, 2m+1) = cos(i / base^(2m / d)), so pair m has
    the period 2 pi base^(2m / d). A pair is drawn as a hand, its sine upwards and its cosine to the
    right, so that it turns counter-clockwise, as angles do; up to eight hands are shown next to the
    position in binary digits. The inner product p_i . p_j is the sum over m of
    cos((i - j) / base^(2m / d)): the same function of the distance for every i.

    Args:
        d_model: the size d of a vector, even, at most 512.
        max_len: how many positions i = 0 .. max_len - 1 are shown, 2 to 512.
        base: determines how fast the wavelengths grow, at least 1.
        position: the position i at the start.
        pair: the pair m of dimensions 2m and 2m + 1 at the start.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `position`, `pair` and `base` track the reader's choices; setting them changes
    what is shown.

    Source: Vaswani et al. 2017, section 3.5.
    """

    _esm, _css = bundles.load("PositionExplorer")

    d_model = traitlets.Int(64).tag(sync=True)
    max_len = traitlets.Int(128).tag(sync=True)
    base = traitlets.Float(10_000.0).tag(sync=True)
    position = traitlets.Int(0).tag(sync=True)
    pair = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        d_model: int = 64,
        max_len: int = 128,
        *,
        base: float | int = 10_000,
        position: int = 0,
        pair: int = 0,
        title: str = "",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name=name,
            title=title,
            d_model=d_model,
            max_len=max_len,
            base=base,
            position=position,
            pair=pair,
        )

    @traitlets.validate("d_model", "max_len")
    def _check_size(self, proposal: Any) -> int:
        trait, value = proposal["trait"].name, proposal["value"]
        even = trait == "d_model"
        if not 2 <= value <= MAX_SIDE or (even and value % 2):
            number = "an even number" if even else "a number"
            raise WidgetError(f"{trait} must be {number} from 2 to {MAX_SIDE}, not {value}")
        return value

    @traitlets.validate("position", "pair")
    def _check_cursor(self, proposal: Any) -> int:
        trait, value = proposal["trait"].name, proposal["value"]
        size = max(1, self.max_len if trait == "position" else self.d_model // 2)
        if not 0 <= value < size:
            raise WidgetError(f"{trait} must be 0..{size - 1}, not {value}")
        return value

    @traitlets.validate("base")
    def _check_base(self, proposal: Any) -> float:
        if not 1 <= proposal["value"] < np.inf:
            raise WidgetError(f"base must be a number of at least 1, not {proposal['value']}")
        return proposal["value"]

    def content(self) -> bytes:
        return f"{self.d_model} {self.max_len} {self.base:g}".encode()

    def wavelength(self) -> float:
        """How many positions the chosen pair takes for a full turn."""
        return 2 * np.pi * self.base ** (2 * self.pair / self.d_model)

    def vectors(self) -> np.ndarray:
        """The position vectors `[position dimension]`."""
        return sinusoidal(self.max_len, self.d_model, self.base).double().numpy()

    def summary(self) -> str:
        return f"{self.max_len} positions x {self.d_model} dimensions, base {self.base:g}"

    def draw(self, figure: Figure) -> None:
        p, i, m = self.vectors(), self.position, self.pair
        positions = np.arange(self.max_len)
        clocks, products, map_, waves = figure.subplots(4, 1, height_ratios=[0.6, 1, 2, 1])
        many = min(HANDS, self.d_model // 2)
        for n, pair in enumerate((np.linspace(0, self.d_model // 2 - 1, many) + 0.5).astype(int)):
            up, right = p[i, 2 * pair : 2 * pair + 2]
            clocks.plot([n, n + 0.45 * right], [0, 0.45 * up], color="#2b6cb0")
            clocks.text(n, -0.9, f"hand {pair}", ha="center", fontsize=7)
        clocks.set(xlim=(-0.6, HANDS - 0.4), ylim=(-0.9, 0.5), aspect="equal")
        clocks.axis("off")
        map_.imshow(p.T, cmap=COLOURS, vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        map_.axvline(i, color="black", linewidth=1)
        map_.axhspan(2 * m - 0.5, 2 * m + 1.5, fill=False, linewidth=1)
        map_.set_ylabel("dimension", fontsize=8)
        waves.plot(positions, p[:, 2 * m], color="#2b6cb0")
        waves.plot(positions, p[:, 2 * m + 1], color="#b8470b", linestyle="--")
        waves.axvline(i, color="black", linewidth=1)
        waves.set_xlim(map_.get_xlim())
        waves.set_ylabel(f"hand {m}", fontsize=8)
        waves.set_xlabel(f"position; wavelength {self.wavelength():,.1f}", fontsize=8)
        products.plot(positions - i, p @ p[i], color="#2b6cb0")
        products.set_xlim(1 - self.max_len, self.max_len - 1)
        products.set_ylabel("p$_i$ · p$_j$", fontsize=8)
        products.set_xlabel(f"distance j − i from position i = {i}", fontsize=8)
        for axes in (map_, waves, products):
            axes.tick_params(labelsize=7)
