import json
from itertools import pairwise

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.text import Annotation

from attnbook.show.plots import bertviz_weights, label_lines, use_style


def test_line_names_do_not_overlap():
    use_style()
    _, ax = plt.subplots()
    for end in (0.5, 0.51, 0.9):
        ax.plot([0, 1], [0, end])
    label_lines(ax, ["a", "b", "c"], gap=0.1)
    heights = sorted(text.xyann[1] for text in ax.texts if isinstance(text, Annotation))
    assert len(heights) == 3
    assert all(b - a > 0.099 for a, b in pairwise(heights))
    assert [t.get_text() for t in ax.texts] == ["a", "b", "c"]
    assert [t.get_color() for t in ax.texts] == [line.get_color() for line in ax.get_lines()]
    plt.close()


def test_line_names_stay_below_the_title():
    use_style()
    _, ax = plt.subplots()
    for end in (0.97, 0.98, 0.99):
        ax.plot([0, 1], [0, end])
    ax.set(ylim=(0, 1))
    label_lines(ax, ["a", "b", "c"], gap=0.1)
    heights = [text.xyann[1] for text in ax.texts if isinstance(text, Annotation)]
    assert heights == pytest.approx([0.8, 0.9, 1])
    plt.close()


def test_line_names_stand_where_the_lines_end_on_a_logarithmic_axis():
    _, ax = plt.subplots()
    for end in (1, 10, 1000):
        ax.plot([0, 1], [1, end])
    ax.set(yscale="log", ylim=(1, 1000))
    label_lines(ax, ["a", "b", "c"])
    heights = [text.xyann[1] for text in ax.texts if isinstance(text, Annotation)]
    assert heights == pytest.approx([0, 1 / 3, 1])
    plt.close()


def test_a_name_for_each_line():
    _, ax = plt.subplots()
    ax.plot([0, 1], [0, 1])
    with pytest.raises(ValueError, match="one for each of 1 lines, got 2"):
        label_lines(ax, ["a", "b"])
    plt.close()


def test_weights_for_bertviz_are_short():
    layers = [torch.rand(1, 2, 3, 4, requires_grad=True).softmax(-1) for _ in range(5)]
    rounded = bertviz_weights(layers)
    for before, after in zip(layers, rounded, strict=True):
        assert after.shape == before.shape
        assert (after - before).abs().max() < 5.1e-4
        numbers = json.dumps(after.flatten().tolist())[1:-1].split(", ")
        assert max(map(len, numbers)) == 5  # 0.083
