"""LossSurface: the loss around trained parameters as rotatable surfaces, side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.web._widget import Widget, WidgetError, as_array, as_tokens

MOST, LONGEST = 3, 41  # surfaces, points per side
LEAST, LARGEST = 1e-4, 65504.0  # losses that float16 represents within 0.05 %
GREAT = 100  # ratio of losses above which the heights are logarithmic


def _to_bytes(surfaces: np.ndarray, _: Any = None) -> bytes:
    return surfaces.astype("<f2").tobytes()


class LossSurface(Widget):
    """Losses over a plane through trained parameters, as surfaces that rotate together.

    surfaces[k, i, j] = L_k(theta_k + a_i u_k + a_j v_k),  a = -extent .. extent in equal steps

    with theta_k the trained parameters of model k, u_k and v_k two directions, L_k its loss. Height
    and colour have one scale for all surfaces; a dot marks the trained parameters.

    Args:
        surfaces: `[k, n, n]`, one to three surfaces, n odd and 3 to 41, so that the trained
            parameters are in the middle. Losses in 0.0001 .. 65504 (clip larger ones), stored in 16
            bits with an error of at most 0.05 %; `widget.surfaces` has the stored values.
        names: titles of the surfaces.
        extent: how far the plane extends along each direction.
        log: whether heights and colours are logarithmic. By default they are if the largest loss is
            more than 100 times the smallest. The reader can switch it.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `azimuth` (degrees, -180..180), `elevation` (degrees, 0..90, which is from above)
    and `log` track the reader's choices; setting them changes what is shown.

    Source: Li et al. 2018, section 4.
    """

    _esm, _css = bundles.load("LossSurface")

    surfaces = traitlets.Instance(np.ndarray).tag(sync=True, to_json=_to_bytes)
    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    extent = traitlets.Float(1.0).tag(sync=True)
    log = traitlets.Bool().tag(sync=True)
    azimuth = traitlets.Float(35.0).tag(sync=True)
    elevation = traitlets.Float(30.0).tag(sync=True)

    def __init__(
        self,
        surfaces: Any,
        names: Sequence[str],
        *,
        extent: float | int = 1.0,
        log: bool | None = None,
        title: str = "",
        name: str | None = None,
    ) -> None:
        given = {} if log is None else {"log": log}
        super().__init__(
            name=name,
            title=title,
            surfaces=as_array(surfaces, "surfaces"),
            names=as_tokens(names, "names"),
            extent=extent,
            **given,
        )

    @traitlets.default("log")
    def _log(self) -> bool:
        return bool(self.surfaces.max() > GREAT * self.surfaces.min())

    @traitlets.validate("surfaces")
    def _check_surfaces(self, proposal: Any) -> np.ndarray:
        kept = _checked(proposal["value"])
        if self.names and kept.shape != self.surfaces.shape:
            raise WidgetError(
                f"surfaces must keep the shape {self.surfaces.shape}, not {kept.shape}"
            )
        return kept

    @traitlets.validate("names")
    def _check_names(self, proposal: Any) -> list[str]:
        names = as_tokens(proposal["value"], "names")
        if len(names) != len(self.surfaces):
            raise WidgetError(f"names must be {len(self.surfaces)} texts, not {len(names)}")
        return names

    @traitlets.validate("extent")
    def _check_extent(self, proposal: Any) -> float:
        if not 0 < proposal["value"] < np.inf:
            raise WidgetError(f"extent must be a number above 0, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("azimuth", "elevation")
    def _check_angle(self, proposal: Any) -> float:
        trait, value = proposal["trait"].name, proposal["value"]
        low, high = (-180, 180) if trait == "azimuth" else (0, 90)
        if not low <= value <= high:
            raise WidgetError(f"{trait} must be {low}..{high} degrees, not {value}")
        return value

    def content(self) -> bytes:
        return _to_bytes(self.surfaces) + "\0".join(self.names).encode("utf8")

    def centres(self) -> np.ndarray:
        """The loss `[k]` at the trained parameters."""
        middle = self.surfaces.shape[-1] // 2
        return self.surfaces[:, middle, middle]

    def summary(self) -> str:
        k, n, _ = self.surfaces.shape
        shown = ", ".join(self.names)
        return f"{shown}: {k} x {n} x {n} losses, up to {self.extent:g} along two directions"

    def draw(self, figure: Figure) -> None:
        k, n, _ = self.surfaces.shape
        heights = np.log10(self.surfaces) if self.log else self.surfaces
        scale = {"vmin": heights.min(), "vmax": heights.max()}
        x, y = np.meshgrid(*[np.linspace(-self.extent, self.extent, n)] * 2, indexing="ij")
        for number, (values, name) in enumerate(zip(heights, self.names, strict=True), 1):
            axes: Any = figure.add_subplot(1, k, number, projection="3d")
            axes.plot_surface(x, y, values, cmap="Blues", rstride=1, cstride=1, **scale)
            axes.set_zlim(scale["vmin"], scale["vmax"])
            axes.set_proj_type("ortho")
            axes.view_init(self.elevation, -90 - self.azimuth)
            axes.set_title(name, fontsize=9, parse_math=False)
            axes.set_zlabel("log10 of the loss" if self.log else "loss", fontsize=7)
            axes.tick_params(labelsize=6)


def _checked(surfaces: Any) -> np.ndarray:
    """The losses rounded to float16, after checking shape and range."""
    values = as_array(surfaces, "surfaces")
    k, n, m = values.shape if values.ndim == 3 else (0, 0, 0)
    if not 1 <= k <= MOST or n != m or n % 2 == 0 or not 3 <= n <= LONGEST:
        raise WidgetError(
            f"surfaces must be [k, n, n] with 1 to {MOST} surfaces and n odd, 3 to {LONGEST},"
            f" not {values.shape}"
        )
    if not ((values >= LEAST) & (values <= LARGEST)).all():
        raise WidgetError(
            f"surfaces must be losses of {LEAST:g} to {LARGEST:g}, not {values.min():g} to"
            f" {values.max():g}: clip them"
        )
    return values.astype("<f2").astype(np.float64)
