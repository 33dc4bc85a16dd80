"""Stored widgets on the pages.

A notebook stores each widget's state together with a copy of its source. On a page the state stays
and the source becomes one classic script per class, shared by all pages and taken from the current
package, so pages are light and a fixed widget is up to date everywhere. Heavy binary parts of a
state are separate scripts, loaded when the reader begins. `static-widgets.js` draws from all this
without a kernel, the first view as soon as the page is parsed that far. Without JavaScript the page
shows the stored picture. A still drawing is stored as SVG, which is set into the page, so that it
follows the page's theme and its words can be selected.

    ```{widget} 01_seq2seq learnt-map
    ```

puts a chapter's widget on another page.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from attnbook import bundles
from attnbook.bundles import CHART, STATE, STILL, SVG, VIEW

from . import figures, stored
from .stored import NotStoredError, StoredWidget

LOGGER = logging.getLogger(__name__)
RUNTIME = "static-widgets.js"
VIEW_START = '<div class="widget-view"'


class WidgetView(nodes.General, nodes.Element):
    """The view with id `model_id` in the notebook at `path`."""

    @property
    def stored(self) -> StoredWidget:
        return stored.by_id(Path(self["path"]), self["model_id"])


def script_json(value: object) -> str:
    """JSON that is safe inside a script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


class StoredViews(SphinxPostTransform):
    """Replaces stored widget views by a `WidgetView` each, and still drawings by their SVG."""

    default_priority = 3  # before myst-nb chooses one form of each output
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        path = self.env.doc2path(self.env.docname)
        for bundle in list(self.document.findall(nodes.container)):
            if bundle.get("nb_element") != "mime_bundle":
                continue
            for form in bundle.children:
                if not isinstance(form, nodes.Element):
                    continue
                if form.get("mime_type") == VIEW:
                    self.replace(bundle, form, path)
                    break
                if form.get("mime_type") == SVG:
                    self.set_in(bundle, form)

    def replace(self, bundle: nodes.container, form: nodes.Element, path: str) -> None:
        script = form.astext()
        model_id = json.loads(script[script.index("{") : script.rindex("}") + 1])["model_id"]
        view = WidgetView(path=path, model_id=model_id)
        try:
            _ = view.stored
        except NotStoredError as problem:
            LOGGER.warning("%s", problem, location=bundle, type="attnbook", subtype="widget")
            bundle.parent.remove(bundle)
        else:
            bundle.replace_self(view)

    def set_in(self, bundle: nodes.container, form: nodes.Element) -> None:
        image = next(form.findall(nodes.image))
        svg = Path(self.env.srcdir, image["uri"]).read_text("utf-8")
        if STILL not in svg:
            return
        if CHART in svg:  # its cell says what it shows
            alt = image.get("alt", "").strip()
            if not alt:
                figures.warn(image)
            svg = svg.replace("<svg ", f'<svg aria-label="{escape(alt)}" ', 1)
        bundle.replace_self(nodes.raw("", f"<figure>{svg}</figure>", format="html"))


class WidgetDirective(SphinxDirective):
    """`{widget} notebook name`: a stored widget of another notebook."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        notebook, name = self.arguments
        _, path = self.env.relfn2path(f"{notebook}.ipynb")
        self.env.note_dependency(path)
        try:
            widget = stored.by_name(Path(path), name)
        except NotStoredError as problem:
            LOGGER.warning(
                "%s", problem, location=self.get_location(), type="attnbook", subtype="widget"
            )
            return []
        return [WidgetView(path=path, model_id=widget.model_id)]


def visit(self: HTML5Translator, node: WidgetView) -> None:
    widget = node.stored
    late = ' data-late=""' if widget.late else ""
    view = script_json({"version_major": 2, "version_minor": 0, "model_id": widget.model_id})
    self.body.append(
        f'{VIEW_START} data-widget="{widget.class_name}"{late}>'
        f'<script type="{VIEW}">{view}</script>'
    )
    if widget.png:
        # The name is a hash of the content, so that pages of earlier builds keep their files.
        name = f"widget-{hashlib.sha256(widget.png).hexdigest()[:16]}.png"
        folder = Path(self.builder.outdir) / self.builder.imagedir
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(widget.png)
        source = f"{self.builder.imgpath}/{name}"
        self.body.append(
            f'<noscript><figure class="widget-picture"><img src="{escape(source)}"'
            f' alt="{escape(widget.alt)}"></figure></noscript>'
        )
    self.body.append("<script>globalThis.attnbookDraw?.()</script></div>")
    raise nodes.SkipNode


def write(widget: StoredWidget, out: Path) -> str:
    """Write the script of a widget's class for all pages; returns its path below `_static`."""
    name, address = widget.class_name, f"widgets/{widget.class_name}.js"
    # A class that a chapter defines itself has its own source.
    esm, css = bundles.load(name) if name in bundles.classes() else widget.sources
    source = script_json({"esm": esm, "css": css})
    text = f"(globalThis.attnbookWidgets??={{}})[{script_json(name)}]={source};\n"
    file = out / "_static" / address
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return address


def write_data(out: Path, name: str, data: str) -> None:
    """Write bytes in base64 as a script, which the runtime fetches by name for widgets."""
    file = out / "_static/weights" / f"{name}.js"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = f'(globalThis.attnbookWeights??={{}})[{script_json(name)}]="{data}";\n'
    file.write_text(text, encoding="utf-8")


def add_to_page(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    # myst-nb puts the whole notebook's state in the page's head.
    context["script_files"][:] = [
        js for js in context["script_files"] if getattr(js, "attributes", {}).get("type") != STATE
    ]
    if doctree is None:
        return
    widgets = {view["model_id"]: view.stored for view in doctree.findall(WidgetView)}
    if not widgets:
        return
    state = {"version_major": 2, "version_minor": 0, "state": page_state(widgets.values())}
    script = f'<script type="{STATE}">{script_json(state)}</script>\n'
    context["body"] = context["body"].replace(VIEW_START, script + VIEW_START, 1)
    for widget in widgets.values():
        for name, data in widget.late.items():
            write_data(Path(app.outdir), name, data)
    classes = {widget.class_name: widget for widget in widgets.values()}
    for _, widget in sorted(classes.items()):
        app.add_js_file(write(widget, Path(app.outdir)))
    app.add_js_file(RUNTIME)


def page_state(widgets: Iterable[StoredWidget]) -> dict[str, Any]:
    return {widget.model_id: widget.on_page() for widget in widgets}


def configure(app: Sphinx, config: Config) -> None:
    config.nb_ipywidgets_js = {}  # replaced by RUNTIME, on pages that show a widget


def placed(script: str) -> Callable[[Sphinx], None]:
    """A listener that writes a script before the pages, so that its URL carries a checksum."""

    def place(app: Sphinx) -> None:
        if app.builder.format == "html":
            static = Path(app.outdir) / "_static"
            static.mkdir(parents=True, exist_ok=True)
            shutil.copy(bundles.FOLDER / "site" / script, static)

    return place


def setup(app: Sphinx) -> None:
    app.add_node(WidgetView, html=(visit, None))
    app.add_directive("widget", WidgetDirective)
    app.add_post_transform(StoredViews)
    app.connect("config-inited", configure)
    app.connect("builder-inited", placed(RUNTIME))
    app.connect("html-page-context", add_to_page, priority=850)
