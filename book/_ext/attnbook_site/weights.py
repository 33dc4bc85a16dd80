"""Weights of models that run in the page.

Each file in the package's weights folder becomes a classic script with its bytes in base64, since a
page opened as a file cannot fetch other files. `static-widgets.js` loads it when a widget asks.
"""

import base64
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from .places import WEIGHTS
from .widgets import WidgetView, write_data

LOGGER = logging.getLogger(__name__)


def write(app: Sphinx) -> None:
    if app.builder.format != "html":
        return
    for weights in sorted(Path(app.config.attnbook_weights).glob("*.safetensors")):
        data = base64.b64encode(weights.read_bytes()).decode()
        write_data(Path(app.outdir), weights.stem, data)


def check(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Warn about weights that a widget of the page needs and the site lacks."""
    for view in doctree.findall(WidgetView) if doctree else ():
        state = view.stored.record["state"]
        wanted = state.get("weights") or []
        wanted = [wanted] if isinstance(wanted, str) else wanted
        early = [each["name"] for each in state.get("checkpoints", [])]
        for name in dict.fromkeys([*wanted, *early]):
            if (Path(app.config.attnbook_weights) / f"{name}.safetensors").is_file():
                continue
            LOGGER.warning(
                "widget %s wants the weights %r, which are not in %s",
                view.stored.name,
                name,
                app.config.attnbook_weights,
                location=pagename,
                type="attnbook",
                subtype="weights",
            )


def setup(app: Sphinx) -> None:
    app.add_config_value("attnbook_weights", str(WEIGHTS), "env")
    app.connect("builder-inited", write)
    app.connect("html-page-context", check)
