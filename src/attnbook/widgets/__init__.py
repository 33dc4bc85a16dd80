"""Interactive figures that work with a kernel and, on the site, without one."""

from attnbook.widgets._figure import format_number
from attnbook.widgets.block_diagram import BlockDiagram
from attnbook.widgets.heatmap import AttentionHeatmap
from attnbook.widgets.loss_surface import LossSurface
from attnbook.widgets.position_explorer import PositionExplorer
from attnbook.widgets.rotary_dial import RotaryDial
from attnbook.widgets.temperature import SoftmaxTemperature

__all__ = [
    "AttentionHeatmap",
    "BlockDiagram",
    "LossSurface",
    "PositionExplorer",
    "RotaryDial",
    "SoftmaxTemperature",
    "format_number",
]
