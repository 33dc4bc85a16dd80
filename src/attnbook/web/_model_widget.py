"""A widget with a model: it reads the weight file and sends it to the page."""

from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import traitlets

from attnbook.web._widget import Widget, WidgetError, as_tokens
from attnbook.weights.int8 import load_int8

FOLDER = Path(__file__).parents[1] / "weights"
LONGEST = 500  # most characters in `text`


@lru_cache(maxsize=4)
def _model(path: Path, changed: int, kind: Any) -> tuple[Any, Any]:
    return load_int8(path, kind)


def load_model(path: Path, kind: Any) -> tuple[Any, Any]:
    """The model and tokenizer of a file, cached until the file changes."""
    return _model(path, path.stat().st_mtime_ns, kind)


class ModelWidget(Widget):
    """A widget whose model runs in the page, in a worker that reads the weights.

    A kernel sends the weights, or the site serves them as a file. A notebook stores only the
    current answer.
    """

    kind: ClassVar[type]  # the model's class
    weights = traitlets.Unicode().tag(sync=True)
    text = traitlets.Unicode("").tag(sync=True)

    def __init__(self, weights: str | Path, *, name: str | None, **traits: Any) -> None:
        named = isinstance(weights, str) and not weights.endswith(".safetensors")
        self._path = FOLDER / f"{weights}.safetensors" if named else Path(weights)
        try:
            self._model, self._tokenizer = load_model(self._path, self.kind)
        except (OSError, ValueError) as error:
            raise WidgetError(
                f"weights must name a file of save_int8, not {weights!r}: {error}"
            ) from None
        super().__init__(name=name, weights=self._path.stem, **traits)
        give_weights(self, {self._path.stem: self._path})

    @traitlets.validate("text")
    def _check_text(self, proposal: Any) -> str:
        (value,) = as_tokens([proposal["value"]], "text")
        if len(value) > LONGEST:
            raise WidgetError(f"text must have at most {LONGEST} characters, not {len(value)}")
        return value


def brief(p: Any) -> float:
    """A probability or its logarithm, rounded to six significant digits for storage."""
    return float(f"{np.float64(p):.6g}")


def give_weights(widget: Widget, files: dict[str, Path]) -> None:
    """Let the widget answer the page's requests for weights; `files` has a path for each name."""

    def give(_: Any, content: Any, buffers: Any) -> None:
        for name, path in files.items():
            if content == {"weights": name}:
                widget.send(content, [path.read_bytes()])

    widget.on_msg(give)
