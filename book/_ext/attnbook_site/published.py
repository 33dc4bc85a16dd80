"""A published language model on the site, in parts, for the widgets that run it in the page.

The setting `attnbook_model`, or else the variable BOOK_MODEL, names its file; `make book` sets it
if the file is in the cache. A part is named by its sha256, and the pages of those widgets list the
parts: a reader's browser fetches nothing before being asked for the model, detects damaged parts,
and keeps those it has received.
"""

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from .widgets import VIEW_START, WidgetView, script_json

PART = 8_000_000  # bytes
RUN = {"DecodingBench", "PromptBench"}  # classes that run the model


@cache
def parts(path: Path, most: int) -> list[tuple[str, int]]:
    """The sha256 and the size of each part of a file."""
    found = []
    with path.open("rb") as file:
        while data := file.read(most):
            found.append((hashlib.sha256(data).hexdigest(), len(data)))
    return found


def write(app: Sphinx) -> None:
    """Write the parts that are not there yet."""
    if app.builder.format != "html" or not app.config.attnbook_model:
        return
    path, folder = Path(app.config.attnbook_model), Path(app.outdir) / "_static/model"
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as file:
        for name, size in parts(path, app.config.attnbook_part):
            part, data = folder / f"{name}.bin", file.read(size)
            if not part.is_file() or part.stat().st_size != size:
                part.write_bytes(data)


def offer(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """List the parts on a page that shows such a widget."""
    views = doctree.findall(WidgetView) if doctree else ()
    if not app.config.attnbook_model or not any(v.stored.class_name in RUN for v in views):
        return
    path = Path(app.config.attnbook_model)
    folder = context["pathto"]("_static/model/", resource=True)
    told = {"folder": folder, "bytes": path.stat().st_size}
    told |= {"parts": parts(path, app.config.attnbook_part)}
    script = f'<script class="attnbook-model" type="application/json">{script_json(told)}</script>'
    context["body"] = context["body"].replace(VIEW_START, script + VIEW_START, 1)


def setup(app: Sphinx) -> None:
    app.add_config_value("attnbook_model", os.environ.get("BOOK_MODEL", ""), "html")
    app.add_config_value("attnbook_part", PART, "html")
    app.connect("builder-inited", write)
    app.connect("html-page-context", offer, priority=860)  # after `widgets`
