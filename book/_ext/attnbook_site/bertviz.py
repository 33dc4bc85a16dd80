"""bertviz's views on the pages.

A notebook stores bertviz's own outputs, for Jupyter and Colab: three outputs that fetch require.js,
d3 and jQuery from a CDN. On a page they become one element with a description, and a script with
the weights, which `bertviz-views.js` fetches from the site when the reader scrolls near.
"""

import hashlib
import json
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ConfigError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

from .places import NPM
from .widgets import placed, script_json

LOGGER = logging.getLogger(__name__)
LIBRARIES = {"jquery": "jquery/dist/jquery.slim.min.js", "d3": "d3/dist/d3.min.js"}
RUNTIME = "bertviz-views.js"

LOADER = re.compile(r'\s*<script src="[^"]*/require(\.min)?\.js"></script>\s*')
FRAME = re.compile(r'<div id="(bertviz-\w+)"')
PARAMS = "const params = "


class BertvizView(nodes.General, nodes.Element):
    """A view: `html` and `script`, as bertviz wrote them."""


class BertvizViews(SphinxPostTransform):
    """Replaces the three outputs of a bertviz view by a `BertvizView`."""

    default_priority = 3  # before myst-nb chooses one form of each output
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        frames: dict[str, str] = {}
        for bundle in list(self.document.findall(nodes.container)):
            if bundle.get("nb_element") != "mime_bundle":
                continue
            texts = {
                form.get("mime_type"): form.astext()
                for form in bundle.children
                if isinstance(form, nodes.Element)
            }
            html = texts.get("text/html", "")
            script = texts.get("application/javascript", "")
            if frame := FRAME.search(html):
                frames[frame[1]] = html
            elif PARAMS in script and '"root_div_id": "bertviz-' in script:
                params, script = read(script)
                html = frames.pop(params["root_div_id"])
                bundle.replace_self(BertvizView(html=html, script=script, params=params))
                continue
            elif not LOADER.fullmatch(html):
                continue
            bundle.parent.remove(bundle)
        for name in frames:
            LOGGER.warning(
                "the view %s has no script of its own: show it without `html_action`",
                name,
                location=self.env.docname,
                type="attnbook",
                subtype="bertviz",
            )


def read(script: str) -> tuple[dict[str, Any], str]:
    """A view's parameters, and its script without unneeded parts.

    bertviz writes the parameters twice, the second time into a comment.
    """
    script = script[script.index(">") + 1 : script.rindex("</script>")]
    start = script.index(PARAMS) + len(PARAMS)
    params, length = json.JSONDecoder().raw_decode(script[start:])
    rest = script[script.index("\n", start + length) :]
    return params, f"{script[:start]}{script_json(params)};{rest}"


def describe(params: dict[str, Any]) -> str:
    """A description of the view."""
    shown = params["attention"][int(params["default_filter"])]
    layers, heads = len(shown["attn"]), len(shown["attn"][0])
    kind = "model view" if "display_mode" in params else "head view"
    sides = dict.fromkeys(" ".join(shown[side]) for side in ("left_text", "right_text"))
    return (
        f"bertviz’s {kind} of {layers} layer{'s' * (layers > 1)} with {heads} "
        f"head{'s' * (heads > 1)}{' each' * (layers > 1)}, for: {' and '.join(sides)}"
    )


def size(params: dict[str, Any]) -> tuple[float, float]:
    """Width and height of a view, to reserve its space."""
    shown = params["attention"][int(params["default_filter"])]
    tokens = max(len(shown["left_text"]), len(shown["right_text"]))
    if "display_mode" not in params:
        return 335, 30 + 22.5 * tokens
    thumbnail = 10 + 7 * 12 / params["total_heads"] * tokens
    return 970, max(38 + len(shown["attn"]) * thumbnail, 55 + 18 * tokens)


def visit(self: HTML5Translator, node: BertvizView) -> None:
    params = node["params"]
    kind = "model" if "display_mode" in params else "head"
    heads = params.get("include_heads") or [*range(len(params["attention"][0]["attn"][0]))]
    facts = {"html": node["html"], "layers": params["include_layers"], "heads": heads}
    name = script_json(params["root_div_id"])
    text = (
        f"(globalThis.attnbookBertviz??={{}})[{name}]={{...{script_json(facts)},"
        f"draw(require,requirejs,console){{\n{node['script']}\n}}}};\n"
    )
    # The name is a hash of the content, so that pages of earlier builds keep their files.
    file = f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.js"
    folder = Path(self.builder.outdir) / "_static/bertviz"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text, encoding="utf-8")
    scripts = [*libraries(folder), file]
    width, height = size(params)
    controls = "2.6rem" if "<select" in node["html"] else "0rem"
    words = escape(describe(params))
    self.body.append(
        f'<div class="bertviz-view" role="group" aria-label="{words}" data-kind="{kind}"'
        f' data-view="{params["root_div_id"]}" data-scripts="{" ".join(scripts)}"'
        f' style="--ratio: {width:g} / {height:g}; --controls: {controls}">'
        f"<p>{words}. A script draws it when you scroll here.</p></div>"
    )
    raise nodes.SkipNode


def libraries(folder: Path) -> list[str]:
    """Copy the views' libraries; returns the files' names, which contain their versions."""
    names = []
    for library, path in LIBRARIES.items():
        package = NPM / library / "package.json"
        if not package.is_file():
            raise ConfigError(f"{library} is missing: run `make book`, or `npm ci` at the root")
        version = json.loads(package.read_text(encoding="utf-8"))["version"]
        names.append(f"{library}-{version}.js")
        if not (folder / names[-1]).exists():
            shutil.copy(NPM / path, folder / names[-1])
    return names


def add_to_page(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    if doctree is not None and next(doctree.findall(BertvizView), None):
        app.add_js_file(RUNTIME)


def setup(app: Sphinx) -> None:
    app.add_node(BertvizView, html=(visit, None))
    app.add_post_transform(BertvizViews)
    app.connect("builder-inited", placed(RUNTIME))
    app.connect("html-page-context", add_to_page, priority=850)
