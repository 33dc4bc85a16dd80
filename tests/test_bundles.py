"""The bundles of what pages run: made of the sources as they are, and read without PyTorch."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from attnbook import bundles
from attnbook.show import charts, machine, plots
from attnbook.web._model_widget import ModelWidget
from tests.helpers.widgets import each
from tools.notebooks import ROOT

NODE = shutil.which("node") or "node"
SHARED = bundles.FOLDER.parent / "shared"
CLASSES = bundles.classes()
PUBLISHED = {"DecodingBench", "PromptBench"}  # run a model that the site has in parts


def files(folder: Path) -> dict[str, bytes]:
    every = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in every}


def test_the_bundles_are_those_of_the_sources(tmp_path: Path) -> None:
    subprocess.run([NODE, str(ROOT / "tools/bundle.mjs"), str(tmp_path)], check=True)
    here, made = files(bundles.FOLDER), files(tmp_path)
    assert {*here} == {*made}
    assert [name for name in made if made[name] != here[name]] == [], "run make widgets"


def test_a_widget_sends_its_bundle_and_a_notebook_stores_no_model() -> None:
    assert sorted(type(widget).__name__ for widget in each()) == CLASSES
    serving, running = "globalThis.onmessage=", "weight_hh"  # the worker's side; a GRU's
    for widget in each():
        name, state = type(widget).__name__, widget.get_state()
        esm, css = bundles.load(name)
        assert (esm, css) == (state["_esm"], state["_css"])
        kept = bundles.stored(name)
        assert (kept["_anywidget_id"], kept["_css"]) == (state["_anywidget_id"], css)
        if isinstance(widget, ModelWidget) or name in PUBLISHED:  # nor what reads weights
            assert serving in esm and serving not in kept["_esm"]
            assert len(kept["_esm"]) < len(esm) - 10_000
        elif name == "Translator":  # runs its models in the page itself
            assert running in esm and running not in kept["_esm"]
            assert len(kept["_esm"]) < len(esm) - 10_000
        else:
            assert kept["_esm"] == esm


@pytest.mark.parametrize("name", CLASSES)
def test_a_widget_is_one_module(name: str, tmp_path: Path) -> None:
    esm, css = bundles.load(name)
    for text in (esm, bundles.stored(name)["_esm"]):
        # Of this module alone: a worker's text in it is a classic script.
        assert re.findall(r"\bexport ?[{*]|\bimport ?[{*\"]", text) == ["export{"]
        (tmp_path / "module.mjs").write_text(text, "utf-8")
        subprocess.run([NODE, "--check", str(tmp_path / "module.mjs")], check=True)
    assert ".attn " in css and "@import" not in css


@pytest.mark.parametrize("name", ["static-widgets", "bertviz-views"])
def test_a_script_of_the_site_is_classic(name: str, tmp_path: Path) -> None:
    text = (bundles.FOLDER / f"site/{name}.js").read_text("utf-8")
    assert text.startswith("(()=>{")  # it leaves no name to the page
    (tmp_path / "script.cjs").write_text(text, "utf-8")
    subprocess.run([NODE, "--check", str(tmp_path / "script.cjs")], check=True)


def test_a_shared_style_comes_where_it_is_used() -> None:
    styled = {name for name in CLASSES if ".attn-slider{" in bundles.load(name)[1]}
    assert {name for name in CLASSES if '"attn-slider"' in bundles.load(name)[0]} < styled
    assert {"RotaryDial", "Playground"} < styled < {*CLASSES}


def test_a_still_drawing_in_a_file_follows_the_systems_theme() -> None:
    dark = re.search(r'html\[data-theme="dark"\][^{]*\{(.*?)\}', colours(), re.DOTALL)
    assert dark
    _, *rules = bundles.still().split("@media(prefers-color-scheme:dark){svg:root{")
    for line in dark[1].split(";"):
        assert line.strip() in rules[-1]


def test_a_still_drawing_brings_the_rules_that_it_needs() -> None:
    def vars_of(text: str) -> tuple[set[str], set[str]]:
        given, used = r"(--[\w-]+):", r"var\((--(?:attn|chart)-[\w-]+)"
        return {*re.findall(given, text)}, {*re.findall(used, text)}

    strip = machine("words", "encoder")("encoder")
    figure, axes = plt.subplots()
    axes.plot([1, 2], color=plots.BLUE)
    drawn = [strip._repr_mimebundle_()[bundles.SVG], charts.svg(figure)]
    for svg, has, lacks in zip(
        drawn, (".draw-box", ".draw-chart text"), (".draw-key", ".draw-box"), strict=True
    ):
        assert has in svg and lacks not in svg
        given, used = vars_of(svg)
        assert used - {"--of"} <= given, "each colour is one that the drawing brings along"
        assert len(bundles.still(svg)) < 0.7 * len(bundles.still())
        assert bundles.styled(svg) == svg
        assert bundles.styled(re.sub("<style>.*</style>", "<style>old</style>", svg)) == svg


def colours() -> str:
    return (SHARED / "colours.css").read_text("utf-8")


def test_bundles_are_read_where_no_torch_is() -> None:
    script = "import sys, attnbook.bundles, tools.chapters; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)
