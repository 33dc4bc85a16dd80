"""What the site's build promises: strict and clean, light pages, no address no buttons."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import anywidget
import nbformat
import psutil
import pytest
import traitlets
import yaml
from sphinx.errors import ConfigError

from attnbook import bundles
from attnbook.web import AttentionHeatmap
from tests.helpers.minibook import ADDRESS, ROOT, STATE, build_book, notebook_of, write_mini_book

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
MARK = "ATTNBOOK_TEST_BUILD"  # an environment variable, so that processes can be told apart
INDEX = """# Small book

Inline $h_T$ and displayed:

$$a_{tj} = \\mathrm{softmax}_j(e_{tj})$$

```{widget} chapter small-map
```
"""


def state_on(page: Path) -> dict:
    """The widget state that a page carries, by model."""
    scripts = re.findall(
        rf'<script type="{re.escape(STATE)}">(.*?)</script>', page.read_text("utf8")
    )
    assert len(scripts) == 1
    return json.loads(scripts[0])["state"]


def chapter() -> nbformat.NotebookNode:
    weights = [[0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]
    names = [["zwei", "und"], ["forty", "two", "and"]]
    return notebook_of([AttentionHeatmap(weights, *names, title="A map", name="small-map")])


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small book, built without the repository address that its configuration names."""
    folder = tmp_path_factory.mktemp("book")
    write_mini_book(folder, {"index.md": INDEX, "chapter.ipynb": nbformat.writes(chapter())})
    config = yaml.safe_load((folder / "_config.yml").read_text("utf8"))
    config["repository"]["url"] = ADDRESS
    (folder / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, str(folder))
        done = build_book(folder, folder)
    assert done.returncode == 0, done.stdout[-5000:]
    return folder


def test_the_book_builds_without_a_warning(site: Path) -> None:
    chapters = [page.stem for page in (ROOT / "book").glob("[0-9]*.ipynb")]
    assert chapters
    for name in chapters:
        page = (site / f"book/{name}.html").read_text("utf8")
        assert (
            f"colab.research.google.com/github/someone/a-fork/blob/notebooks/book/{name}.ipynb"
            in page
        )
        assert "mybinder.org/v2/gh/someone/a-fork/notebooks?urlpath=lab/tree/book/" in page
    index = (site / "book/index.html").read_text("utf8")
    assert f"{ADDRESS}/issues/new?title=Problem%20on%20the%20page%20" in index
    assert "Worth%20Some%20Attention" in index
    assert not list(site.rglob("fontawesome.js")) and not list(site.rglob("*.map"))


def test_without_an_address_no_buttons(mini: Path) -> None:
    for page in (mini / "_build/html").glob("*.html"):
        text = page.read_text("utf8")
        assert not re.search(r"mybinder|colab|github\.com|unpkg|jsdelivr|thebe", text), page.name


def test_a_page_shares_its_widgets_source(mini: Path) -> None:
    html = mini / "_build/html"
    shared = (html / "_static/widgets/AttentionHeatmap.js").read_text("utf8")
    registered = json.loads(shared[shared.index("]=") + 2 : shared.rindex(";")])
    esm, css = bundles.load("AttentionHeatmap")
    assert registered == {"esm": esm, "css": css}
    stored = json.loads((mini / "chapter.ipynb").read_text("utf8"))["metadata"]["widgets"][STATE]
    for name in ("index.html", "chapter.html"):
        state = state_on(html / name)
        assert len(state) == 1  # the widget, not its layout
        (model_id,) = state
        ours, theirs = state[model_id]["state"], stored["state"][model_id]["state"]
        assert not {"_esm", "_css", "layout"} & set(ours)
        assert all(theirs[key] == value for key, value in ours.items())
        assert state[model_id]["buffers"] == stored["state"][model_id]["buffers"]


def test_a_changed_page_is_rebuilt_and_the_rest_stays(tmp_path: Path) -> None:
    notebook = chapter()
    write_mini_book(tmp_path, {"index.md": INDEX, "chapter.ipynb": nbformat.writes(notebook)})
    html = tmp_path / "_build/html"
    sizes = []
    template = html / "de/_static/template.html"  # as in a translation's site, and no page
    template.parent.mkdir(parents=True)
    template.write_text('<link rel="stylesheet" href="{{ root }}a.css">' * 2, "utf8")
    for word in ("first", "second"):
        (tmp_path / "index.md").write_text(f"{INDEX}\nThe {word} time.\n", encoding="utf-8")
        done = build_book(tmp_path, tmp_path)
        assert done.returncode == 0, done.stdout[-5000:]
        assert "overwrite" not in done.stdout
        assert f"The {word} time." in (html / "index.html").read_text("utf8")
        sizes.append({file: file.stat().st_size for file in html.rglob("*.woff2")})
        for name in ("index.html", "chapter.html"):
            assert len(state_on(html / name)) == 1
            picture = re.search(r'<noscript>.*?src="([^"]+)"', (html / name).read_text("utf8"))
            assert picture and (html / picture[1]).is_file()
    assert sizes[0] == sizes[1] and sum(sizes[0].values()) < 350_000
    # A page that embeds a chapter's widget follows the chapter.
    notebook.metadata["widgets"][STATE]["state"] = {
        key: {**record, "state": {**record["state"], "title": "Another map"}}
        for key, record in notebook.metadata["widgets"][STATE]["state"].items()
    }
    (tmp_path / "chapter.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
    assert build_book(tmp_path, tmp_path).returncode == 0
    (record,) = state_on(html / "index.html").values()
    assert record["state"]["title"] == "Another map"


def test_formulas_and_their_style_are_of_one_version(mini: Path) -> None:
    style = (mini / "_build/html/_static/katex/katex.min.css").read_text("utf8")
    shown = re.search(r'\.katex-version::?after\{content:"([\d.]+)"', style)
    renderer = ROOT / "node_modules/katex/dist/katex.min.js"
    script = f"console.log(require({json.dumps(str(renderer))}).version)"
    node = Path(sys.executable).with_name("node")
    version = subprocess.check_output([node, "-e", script], text=True).strip()
    assert shown and shown[1] == version
    lock = json.loads((ROOT / "package-lock.json").read_text("utf8"))
    assert lock["packages"]["node_modules/katex"]["version"] == version
    assert 'class="katex-mathml"' in (mini / "_build/html/index.html").read_text("utf8")


def started_for(folder: Path) -> list[psutil.Process]:
    """The processes of one build: they inherit its mark. Other tests may be building, too."""
    every = psutil.process_iter(["environ"])
    return [p for p in every if (p.info["environ"] or {}).get(MARK) == str(folder)]


def test_no_process_is_left_behind(mini: Path, tmp_path: Path) -> None:
    """Node, which set the formulas, stops with the build."""
    assert started_for(mini) == []
    left = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(
        left, stdin=-1, stdout=-1, env={**os.environ, MARK: str(tmp_path)}
    ) as process:
        assert process.stdout and process.stdout.readline()
        assert [p.pid for p in started_for(tmp_path)] == [process.pid]
        process.kill()


def test_a_renderer_that_does_not_start_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its status, instead of a wait for nothing; and the socket is closed."""
    monkeypatch.syspath_prepend(str(ROOT / "book/_ext"))
    math = importlib.import_module("attnbook_site.math")
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\nexit 3\n")
    node.chmod(0o755)
    server = SimpleNamespace(build_command=lambda socket: [str(node)])
    opened, connect = [], math.socket.socket
    monkeypatch.setattr(
        math.socket, "socket", lambda *kind: opened.append(connect(*kind)) or opened[-1]
    )
    with pytest.raises(math.katex.KaTeXError, match="ended at once, status 3"):
        math.start_server(server, tmp_path, 60)
    assert [connection.fileno() for connection in opened] == [-1]


@pytest.mark.parametrize(
    ("said", "url"), [(None, ADDRESS), ("", ""), (f"{ADDRESS}2.git/", f"{ADDRESS}2")]
)
def test_the_address_of_one_build_goes_before_the_configured_one(
    monkeypatch: pytest.MonkeyPatch, said: str | None, url: str
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "book/_ext"))
    repository = importlib.import_module("attnbook_site.repository")
    monkeypatch.delenv("BOOK_REPOSITORY_URL", raising=False)
    if said is not None:
        monkeypatch.setenv("BOOK_REPOSITORY_URL", said)
    config = SimpleNamespace(html_theme_options={"repository_url": ADDRESS})
    repository.configure(None, config)
    assert config.html_theme_options["repository_url"] == url


def test_an_address_that_is_none_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "book/_ext"))
    repository = importlib.import_module("attnbook_site.repository")
    monkeypatch.setenv("BOOK_REPOSITORY_URL", "github.com/someone")
    config = SimpleNamespace(html_theme_options={"repository_url": ADDRESS})
    with pytest.raises(ConfigError, match=r"like https://github\.com/you/book"):
        repository.configure(None, config)


class Gauge(anywidget.AnyWidget):
    _esm = "export default { render() {} };"
    name = traitlets.Unicode("gauge").tag(sync=True)


def test_mistakes_stop_the_build(tmp_path: Path) -> None:
    from ipywidgets import IntSlider

    gauge = Gauge()
    notebook = notebook_of([gauge, IntSlider()])
    del notebook.metadata["widgets"][STATE]["state"][gauge.model_id]
    figure = nbformat.v4.new_output("display_data", {"image/png": PIXEL})
    cell = nbformat.v4.new_code_cell("plot()", outputs=[figure], execution_count=3)
    notebook.cells.append(cell)
    other = nbformat.writes(chapter())
    pages = {
        "index.md": "# A\n\n```{widget} good big-map\n```\n\n```{widget} nowhere map\n```\n",
        "bad.ipynb": nbformat.writes(notebook),
        "good.ipynb": other,
    }
    write_mini_book(tmp_path, pages)
    done = build_book(tmp_path, tmp_path)
    assert done.returncode != 0
    for message in (
        "no widget 'big-map' in good.ipynb; named there: small-map",
        "no notebook nowhere.ipynb to take the widget 'map' from",
        "has no stored state: run the notebook again",
        "is a IntSliderModel: only widgets of the book run without a kernel",
        "picture without alternative text",
    ):
        assert message in done.stdout, message


def test_a_misprinted_formula_stops_the_build(tmp_path: Path) -> None:
    write_mini_book(tmp_path, {"index.md": "# A\n\nA $\\frac{1}{2$ misprint.\n"})
    done = build_book(tmp_path, tmp_path)
    assert done.returncode != 0
    assert "KaTeX parse error" in done.stdout


def test_the_sheet_has_the_rules_that_a_page_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "book/_ext"))
    styles = importlib.import_module("attnbook_site.styles")
    css = """
    p.here, p.gone { a: b } /* said */ #gone em { a: b } .here:not(.gone)[x=".gone"] > i { a: "}" }
    @media print { .gone { a: b } .bs-tooltip-end { a: b } } @media screen { .gone { a: b } }
    @font-face { font-family: gone } html { --gone: 1 }
    """
    assert styles.of_use(styles.parse_stylesheet(css, **styles.PLAIN), {"here"}) == (
        'p.here{a: b}.here:not(.gone)[x=".gone"] > i{a: "}"}@media print {.bs-tooltip-end{a: b}}'
        "@font-face { font-family: gone }html{--gone: 1}"
    )
