"""Interactive figures that work with a kernel and, on the site, without one."""

from attnbook.widgets._widget import format_number
from attnbook.widgets.attention_heatmap import AttentionHeatmap
from attnbook.widgets.attention_sheet import AttentionSheet
from attnbook.widgets.block_diagram import BlockDiagram
from attnbook.widgets.cost_calculator import CostCalculator
from attnbook.widgets.decoding_bench import DecodingBench
from attnbook.widgets.drawing import Drawing, Step
from attnbook.widgets.head_chips import HeadChips
from attnbook.widgets.laboratory import Laboratory
from attnbook.widgets.loss_surface import LossSurface
from attnbook.widgets.masked_words import MaskedWords
from attnbook.widgets.playground import Playground
from attnbook.widgets.position_explorer import PositionExplorer
from attnbook.widgets.quiz import Question, Quiz
from attnbook.widgets.rotary_dial import RotaryDial
from attnbook.widgets.softmax_temperature import SoftmaxTemperature

__all__ = [
    "AttentionHeatmap",
    "AttentionSheet",
    "BlockDiagram",
    "CostCalculator",
    "DecodingBench",
    "Drawing",
    "HeadChips",
    "Laboratory",
    "LossSurface",
    "MaskedWords",
    "Playground",
    "PositionExplorer",
    "Question",
    "Quiz",
    "RotaryDial",
    "SoftmaxTemperature",
    "Step",
    "format_number",
]
