"""TransformerMap: the whole Transformer as a drawing whose parts open small walks."""

import json
from collections.abc import Mapping
from typing import Any

import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.show import transformer
from attnbook.show.drawing import WIDTH
from attnbook.show.picture import Picture
from attnbook.show.plots import INK, ROLES
from attnbook.web._widget import Widget, WidgetError, check_size
from attnbook.web.drawing.widget import Drawing

PARTS = ("add", "norm", "attention", "cross", "feed-forward")
ALT = (
    "Two towers of boxes, numbers pass upwards. Left the encoder: English words, embedding plus"
    " place, and a block that stands twice: self-attention and feed-forward, each with a norm and"
    " an add; V, K and Q enter self-attention; a line runs past each layer into its add. Its end is"
    " H, one vector a word. Right the decoder: German words so far, the same parts, and between"
    " them cross-attention, whose V and K come from H. Above it the output layer and the next word."
)


class TransformerMap(Widget):
    """The drawing of `attnbook.show.transformer`: press a part, and its walk opens beside it.

    A switch moves the norms: before each layer ("pre"), or after each sum ("post").

    Args:
        walks: a `Drawing` with steps for each part, of `PARTS`: `attnbook.walks.part_walks` makes
            them of a model with "pre" norms.
        title: the heading.
        name: a short slug, for links and for the widget's copies on other pages.

    `norm` and `part` (the part that is open, "" for none) follow the reader where there is a
    kernel, and set what is shown.

    Raises:
        ValueError: if a part is none of `PARTS`, or its walk has no steps.

    Source: Vaswani et al. 2017, figure 1.
    """

    _esm, _css = bundles.load("TransformerMap")

    pictures = traitlets.Dict().tag(sync=True)
    walks = traitlets.Dict().tag(sync=True)
    norm = traitlets.Unicode("pre").tag(sync=True)
    part = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self, walks: Mapping[str, Drawing], *, title: str = "", name: str | None = None
    ) -> None:
        for part, walk in walks.items():
            if part not in PARTS or not walk.steps:
                raise WidgetError(
                    f"walks must be drawings with steps, of {', '.join(PARTS)}, not {part!r}"
                )
        kept = {
            part: {"svg": walk.svg, "window": walk.window, "steps": walk.steps}
            for part, walk in walks.items()
        }
        check_size(len(json.dumps(kept)), "the walks", "show fewer words")
        pictures = {norm: Picture(transformer(norm)).svg(ALT) for norm in ("pre", "post")}
        super().__init__(name=name, title=title, walks=kept, pictures=pictures)

    @traitlets.validate("norm")
    def _check_norm(self, proposal: Any) -> str:
        if proposal["value"] not in ("pre", "post"):
            raise WidgetError(f"norm must be 'pre' or 'post', not {proposal['value']!r}")
        return proposal["value"]

    @traitlets.validate("part")
    def _check_part(self, proposal: Any) -> str:
        if proposal["value"] not in ("", *self.walks):
            raise WidgetError(f"part must be one of {['', *self.walks]}, not {proposal['value']!r}")
        return proposal["value"]

    def content(self) -> bytes:
        return json.dumps(self.walks).encode()

    def summary(self) -> str:
        return f"encoder and decoder, walks of {', '.join(self.walks)}"

    def figure_size(self) -> tuple[float, float]:
        picture = Picture(transformer(self.norm))
        return 4.5, 4.5 * picture.height / WIDTH + 0.5 * bool(self.title)

    def draw(self, figure: Figure) -> None:
        axes = figure.subplots()
        part = (self.part,) if self.part else ()
        Picture(transformer(self.norm, part)).draw(axes, ROLES, INK)
