"""The package's pages, one per room, and links to them from the names in a chapter's code.

`{api}` on a page lists a room. Docstrings are set as they are written: sentences, indented
formulas, and sections whose entries are "name: what it is". `viewcode` adds the sources, which it
also reads from the files.
"""

import ast
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.domains.python import PythonDomain
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from . import package

PAGES = "book/api/"
SECTION = re.compile(r"([A-Z][A-Za-z ]+):$")
ENTRY = re.compile(r"([*\w.]+(?:, [*\w.]+)*): (.*)", re.DOTALL)
CELL = re.compile(r'(?<=<div class="highlight-ipython3 notranslate">)(.*?)(?=</pre>)', re.DOTALL)
# A name, with the attribute after it if there is one; not itself an attribute or a keyword.
NAME = re.compile(
    r'(?<!<span class="o">\.</span>)<span class="n">(\w+)</span>(?!<span class="o">=</span>)'
    r'(?:<span class="o">\.</span><span class="n">(\w+)</span>)?'
)


class Api(SphinxDirective):
    """`{api} attnbook.model`: everything that a room offers, module by module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return [self.section(module) for module in package.modules(self.arguments[0])]

    def section(self, module: str) -> nodes.section:
        self.env.note_dependency(str(package.path_of(module)))
        hidden = any(part.startswith("_") for part in module.split("."))
        title = module.rpartition("._")[2] if hidden else module
        section = nodes.section(ids=[f"module-{module}"], names=[module])
        section += nodes.title(title, title)
        section += described(ast.get_docstring(package.tree(module)) or "")
        holder: nodes.Element = section
        for thing in package.things(module):
            entry = self.entry(thing)
            if thing.kind == "method":
                holder += entry
                continue
            section += entry
            holder = next(entry.findall(addnodes.desc_content))  # methods go below their class
        return section

    def entry(self, thing: package.Thing) -> addnodes.desc:
        domain = self.env.get_domain("py")
        assert isinstance(domain, PythonDomain)
        domain.note_object(thing.full, thing.kind, thing.full, location=(self.env.docname, 0))
        line = addnodes.desc_signature(
            "", "", ids=[thing.full], module=thing.module, fullname=thing.name
        )
        line["class"] = ""
        words = {"class": "class ", "data": ""}.get(thing.kind, "")
        if words:
            line += addnodes.desc_annotation(words, words)
        name = thing.name.rpartition(".")[2]
        line += addnodes.desc_name(name, name)
        line += nodes.inline(text=package.signature(thing), classes=["api-arguments"])
        text = ""
        if not isinstance(thing.node, ast.Assign):
            text = ast.get_docstring(thing.node) or ""
        entry = addnodes.desc("", line, domain="py", objtype=thing.kind, no_index=True)
        entry["classes"] += ["py", thing.kind]
        entry += addnodes.desc_content("", *described(text))
        return entry


def described(text: str) -> list[nodes.Node]:
    """A docstring's blocks as nodes; its only markup is `code`."""
    found: list[nodes.Node] = []
    section = ""
    for block in re.split(r"\n\s*\n", text):
        first, _, rest = block.partition("\n")
        if SECTION.fullmatch(first.strip()) and not first.startswith(" "):
            section = first.strip(": \n")
            found.append(nodes.paragraph("", "", nodes.strong(text=section)))
            found += entries(rest)
        elif first.startswith("    ") and section:
            found += entries(block)
        elif first.startswith("    "):
            lines = [line.removeprefix("    ") for line in block.splitlines()]
            code = nodes.literal_block(text="\n".join(lines), language="none")
            found.append(code)
        elif block.strip():
            section = ""
            found.append(nodes.paragraph("", "", *inline(block)))
    return found


def entries(text: str) -> list[nodes.Node]:
    """The entries of a section, "name: what it is" or plain text, with hanging lines joined."""
    joined: list[str] = []
    for line in text.splitlines():
        if (line.startswith("        ") and joined) or (
            joined and not ENTRY.fullmatch(line.strip())
        ):
            joined[-1] += " " + line.strip()
        else:
            joined.append(line.strip())
    items: list[nodes.Node] = []
    for each in filter(None, joined):
        found = ENTRY.fullmatch(each)
        said = [nodes.literal(text=found[1]), nodes.Text(": ")] if found else []
        said += inline(found[2] if found else each)
        items.append(nodes.list_item("", nodes.paragraph("", "", *said)))
    return [nodes.bullet_list("", *items)] if items else []


def inline(text: str) -> list[nodes.Node]:
    parts = re.split(r"`+([^`]+)`+", " ".join(text.split()))
    return [nodes.literal(text=part) if n % 2 else nodes.Text(part) for n, part in enumerate(parts)]


def source_of(app: Sphinx, module: str) -> tuple[str, dict[str, tuple[str, int, int]]] | None:
    """The module's text and each name's lines, for `viewcode`, which would import the module."""
    path = package.path_of(module)
    if not path.is_file():
        return None
    text = path.read_text("utf-8")
    return text, ModuleAnalyzer.for_string(text, module).find_tags()


def place_of(full: str) -> str:
    """The address below book/api of the object imported as `full`, or "" if no page has it."""
    there = package.home(full)
    whole = package.path_of(there).is_file()  # a module itself
    module, _, name = there.rpartition(".")
    module = there if whole else module
    if not package.path_of(module).is_file():
        return ""
    listed = package.things(module)
    if not (listed if whole else any(thing.name == name for thing in listed)):
        return ""
    room = module.split(".")[1] if "." in module else ""
    page = "attnbook" if module in package.OUTSIDE else room
    known = page in (*package.ROOMS, "attnbook")
    return f"{page}.html#{'module-' * whole}{there}" if known else ""


def imported(cells: list[str]) -> dict[str, str]:
    """Names that code cells import from the package -> their full names.

    Names that the cells also define themselves are ambiguous and left out."""
    found: dict[str, str] = {}
    own: set[str] = set()
    for cell in cells:
        try:
            parsed = ast.parse(cell)
        except SyntaxError:  # IPython's own syntax
            continue
        for node in ast.walk(parsed):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attnbook":
                found |= {at.asname or at.name: f"{node.module}.{at.name}" for at in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
    return {name: full for name, full in found.items() if name not in own}


def linked(body: str, known: dict[str, str], way: str) -> str:
    """The page with links on known names in its code; `way` is the path to the package's pages."""

    def link(text: str, full: str) -> str:
        place = place_of(full)
        return f'<a class="api" href="{way}{place}">{text}</a>' if place else text

    def one(found: re.Match[str]) -> str:
        name, part = found[1], found[2]
        full = known.get(unescape(name))
        if not full:
            return found[0]
        if not part:
            return link(name, full)
        return f'{link(name, full)}<span class="o">.</span>{link(part, f"{full}.{part}")}'

    return CELL.sub(lambda cell: NAME.sub(one, cell[0]), body)


def on_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    path = Path(app.srcdir, f"{pagename}.ipynb")
    if path.is_file() and f"{PAGES}model" in app.env.found_docs:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        way = context["pathto"](f"{PAGES}model").removesuffix("model.html")
        context["body"] = linked(context["body"], imported(code), way)


def configure(app: Sphinx, config: Config) -> None:
    config.viewcode_follow_imported_members = False  # it would import the package


def setup(app: Sphinx) -> None:
    app.setup_extension("sphinx.ext.viewcode")
    app.connect("config-inited", configure)
    app.connect("viewcode-find-source", source_of)
    app.connect("html-page-context", on_page, priority=800)  # before `theme` strips names
    app.add_directive("api", Api)
