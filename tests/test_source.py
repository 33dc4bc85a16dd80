import pytest

from attnbook import show_source
from attnbook.model.attention import Score
from attnbook.model.seq2seq import GRUCell
from attnbook.source import source


def test_source_without_docstrings():
    text = source(GRUCell)
    assert text.startswith("class GRUCell(nn.Module):")
    assert "return (1 - z) * g + z * h" in text
    assert "reset gate" not in text
    compile(text, "shown", "exec")


def test_a_body_of_only_a_docstring_stays_python():
    compile(source(Score), "shown", "exec")


def test_source_is_shown_as_markdown(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    show_source(source)
    assert shown[0].data.startswith("```python\ndef source(")


def test_no_source():
    with pytest.raises(TypeError, match="obj must be a function, class or module, got 3"):
        source(3)
