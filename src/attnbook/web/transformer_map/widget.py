"""TransformerMap: the whole Transformer as a drawing whose parts open small walks."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.checks import check_choice
from attnbook.show.blocks import SHAPES, Look, transformer
from attnbook.show.picture import Picture
from attnbook.show.plots import INK, ROLES
from attnbook.web._widget import Widget, WidgetError, check_size
from attnbook.web.drawing.widget import Drawing
from attnbook.web.transformer_map.pictures import drawn, size

PARTS = ("add", "norm", "attention", "cross", "feed-forward")
PARTS += ("encoder add", "encoder norm", "encoder attention", "encoder feed-forward")


class TransformerMap(Widget):
    """The drawing of `attnbook.show.transformer`: press a part, and its walk opens.

    A switch moves the norms: before each layer ("pre"), or after each sum ("post"). Another one
    selects the shape, if there are several.

    Args:
        walks: name of a part, of `PARTS` -> a `Drawing` with steps; `attnbook.walks.part_walks`
            makes them from a model with "pre" norms.
        shapes: some of `attnbook.show.blocks.SHAPES`; the first one is shown at the start.
        title: the heading.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `norm`, `shape` and `part` (the open part, "" for none) track the reader's
    choices; setting them changes what is shown.

    Raises:
        ValueError: if a part is not in `PARTS`, its walk has no steps, or a shape is unknown.

    Source: Vaswani et al. 2017, figure 1.
    """

    _esm, _css = bundles.load("TransformerMap")

    pictures = traitlets.Dict().tag(sync=True)
    walks = traitlets.Dict().tag(sync=True)
    shapes = traitlets.List().tag(sync=True)
    shape = traitlets.Unicode("encoder-decoder").tag(sync=True)
    norm = traitlets.Unicode("pre").tag(sync=True)
    part = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        walks: Mapping[str, Drawing],
        *,
        shapes: Sequence[str] = ("encoder-decoder",),
        title: str = "",
        name: str | None = None,
    ) -> None:
        shapes = list(shapes)
        check_choice(SHAPES, **{f"shapes {n}": shape for n, shape in enumerate(shapes)})
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
        pictures = {
            f"{shape} {norm}": drawn(Look(norm), shape)
            for shape in shapes
            for norm in ("pre", "post")
        }
        first = {"shape": shapes[0]} if shapes else {}
        super().__init__(
            name=name, title=title, walks=kept, shapes=shapes, pictures=pictures, **first
        )

    @traitlets.validate("norm")
    def _check_norm(self, proposal: Any) -> str:
        if proposal["value"] not in ("pre", "post"):
            raise WidgetError(f"norm must be 'pre' or 'post', not {proposal['value']!r}")
        return proposal["value"]

    @traitlets.validate("shape")
    def _check_shape(self, proposal: Any) -> str:
        if proposal["value"] not in self.shapes:
            raise WidgetError(f"shape must be one of {self.shapes}, not {proposal['value']!r}")
        return proposal["value"]

    @traitlets.validate("part")
    def _check_part(self, proposal: Any) -> str:
        if proposal["value"] not in ("", *self.walks):
            raise WidgetError(f"part must be one of {['', *self.walks]}, not {proposal['value']!r}")
        return proposal["value"]

    def content(self) -> bytes:
        return json.dumps([self.walks, self.shapes]).encode()

    def summary(self) -> str:
        said = ", ".join(self.shapes).replace("encoder-decoder", "encoder and decoder")
        return f"{said}, walks of {', '.join(self.walks)}"

    def figure_size(self) -> tuple[float, float]:
        return size(Look(self.norm), self.shape, self.title)

    def draw(self, figure: Figure) -> None:
        part = (self.part.removeprefix("encoder "),) if self.part else ()
        Picture(transformer(self.norm, part, shape=self.shape)).draw(figure.subplots(), ROLES, INK)
