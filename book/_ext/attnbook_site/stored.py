"""Widgets as a notebook stores them: state, binary parts, picture, description."""

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from attnbook.bundles import STATE, VIEW

HEAVY = 13_000  # characters in base64; a longer binary part is loaded late, from its own file
# Keys that the page does not need: sources are shared files, the rest is layout for a kernel.
NOT_ON_A_PAGE = {"_esm", "_css", "layout", "tabbable", "tooltip", "_dom_classes"}


class NotStoredError(Exception):
    """The notebook has no such widget; the message says what to do."""


@dataclass(frozen=True)
class StoredWidget:
    """One widget view of a notebook."""

    model_id: str
    record: dict[str, Any]  # as ipywidgets stores it: model_name, state, buffers
    png: bytes | None
    text: str

    @property
    def class_name(self) -> str:
        """The Python class, the last part of anywidget's id."""
        return self.record["state"]["_anywidget_id"].rpartition(".")[2]

    @property
    def name(self) -> str:
        return self.record["state"].get("name") or ""

    @property
    def title(self) -> str:
        return self.record["state"].get("title") or ""

    @property
    def alt(self) -> str:
        """The picture's alt text: the notebook's description or, for a quiz, its question."""
        state = self.record["state"]
        asked = [each["ask"] for each in state.get("questions", [])][state.get("at", 0) :][:1]
        return " ".join([self.text, *asked])

    @property
    def sources(self) -> tuple[str, str]:
        """Script and stylesheet as stored in the notebook."""
        state = self.record["state"]
        return state.get("_esm", ""), state.get("_css", "")

    @property
    def late(self) -> dict[str, str]:
        """Its heavy parts, each named by a hash of its content."""
        parts = [part["data"] for part in self.record.get("buffers", [])]
        heavy = [data for data in parts if len(data) > HEAVY]
        return {f"part-{hashlib.sha256(data.encode()).hexdigest()[:16]}": data for data in heavy}

    def on_page(self) -> dict[str, Any]:
        """The record without the parts that the page gets from separate files."""
        state = {k: v for k, v in self.record["state"].items() if k not in NOT_ON_A_PAGE}
        record = {**self.record, "state": state}
        if names := {data: name for name, data in self.late.items()}:
            record["buffers"] = [
                {"path": part["path"], "late": names[part["data"]]}
                if part["data"] in names
                else part
                for part in record["buffers"]
            ]
        return record


def text_of(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


@lru_cache(maxsize=64)
def _read(path: Path, mtime: int) -> dict[str, StoredWidget | str]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    models = notebook["metadata"].get("widgets", {}).get(STATE, {}).get("state", {})
    views: dict[str, StoredWidget | str] = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if VIEW not in data:
                continue
            model_id = data[VIEW]["model_id"]
            record = models.get(model_id)
            if record is None:
                views[model_id] = "has no stored state: run the notebook again"
            elif "_anywidget_id" not in record["state"]:
                views[model_id] = (
                    f"is a {record['model_name']}: only widgets of the book run without a kernel"
                )
            else:
                png = data.get("image/png")
                views[model_id] = StoredWidget(
                    model_id=model_id,
                    record=record,
                    png=base64.b64decode(text_of(png)) if png else None,
                    text=text_of(data.get("text/plain", "")),
                )
    return views


def views(path: Path) -> list[StoredWidget]:
    """The views of the notebook at `path` that a page can show."""
    found = _read(path, path.stat().st_mtime_ns).values()
    return [view for view in found if isinstance(view, StoredWidget)]


def by_id(path: Path, model_id: str) -> StoredWidget:
    """The view with id `model_id` in the notebook at `path`."""
    found = _read(path, path.stat().st_mtime_ns).get(model_id, "is not in the notebook")
    if isinstance(found, str):
        raise NotStoredError(f"widget {model_id} of {path.name} {found}")
    return found


def by_name(path: Path, name: str) -> StoredWidget:
    """The widget named `name` in the notebook at `path`."""
    if not path.is_file():
        raise NotStoredError(f"no notebook {path.name} to take the widget {name!r} from")
    widgets = views(path)
    for widget in widgets:
        if widget.name == name:
            return widget
    names = ", ".join(sorted(w.name for w in widgets if w.name)) or "none"
    raise NotStoredError(f"no widget {name!r} in {path.name}; named there: {names}")
