"""Interactive figures, which work with a kernel and, on the site, without one."""

from attnbook.web._widget import format_number
from attnbook.web.ablation_map.widget import AblationMap
from attnbook.web.attention_heatmap.widget import AttentionHeatmap
from attnbook.web.attention_plane.widget import AttentionPlane
from attnbook.web.attention_sheet.widget import AttentionSheet
from attnbook.web.cost_calculator.widget import CostCalculator
from attnbook.web.decoding_bench.widget import DecodingBench
from attnbook.web.drawing.widget import Drawing, Step
from attnbook.web.head_chips.widget import HeadChips
from attnbook.web.laboratory.widget import Laboratory
from attnbook.web.loss_surface.widget import LossSurface
from attnbook.web.masked_words.widget import MaskedWords
from attnbook.web.model_map.widget import ModelMap
from attnbook.web.playground.widget import Playground
from attnbook.web.position_explorer.widget import PositionExplorer
from attnbook.web.prompt_bench.widget import Preset, PromptBench
from attnbook.web.quiz.questions import check_yourself
from attnbook.web.quiz.widget import Question, Quiz
from attnbook.web.rotary_dial.widget import RotaryDial
from attnbook.web.softmax_temperature.widget import SoftmaxTemperature
from attnbook.web.tokenizer_bench.widget import TokenizerBench
from attnbook.web.transformer_map.widget import TransformerMap
from attnbook.web.translator.widget import Translator

__all__ = [
    "AblationMap",
    "AttentionHeatmap",
    "AttentionPlane",
    "AttentionSheet",
    "CostCalculator",
    "DecodingBench",
    "Drawing",
    "HeadChips",
    "Laboratory",
    "LossSurface",
    "MaskedWords",
    "ModelMap",
    "Playground",
    "PositionExplorer",
    "Preset",
    "PromptBench",
    "Question",
    "Quiz",
    "RotaryDial",
    "SoftmaxTemperature",
    "Step",
    "TokenizerBench",
    "TransformerMap",
    "Translator",
    "check_yourself",
    "format_number",
]
