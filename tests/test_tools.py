"""The verbs on notebooks keep their promises; each planted error is caught."""

import copy
import json
import os
import pathlib
import re
import textwrap

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from attnbook import bundles
from tools import chapters, checks, notebooks

FIRST = 'import attnbook  # missing? In a copy of the book: python -m pip install "."'
WIDGETS = (
    f"{FIRST}\n"
    + """
import anywidget
import traitlets

class Tiny(anywidget.AnyWidget):
    _esm = "export default { render() {} };"
    name = traitlets.Unicode().tag(sync=True)

    def __repr__(self):
        return f"Tiny({self.name!r})"

    def _repr_mimebundle_(self, **options):
        bundle = super()._repr_mimebundle_(**options)
        bundle[0]["text/plain"] = repr(self)
        return bundle

class TinyHeatmap(Tiny): ...
class TinyTemperature(Tiny): ...
"""
)


ERROR = nbformat.v4.new_output("error", ename="E", evalue="v", traceback=[])


def plain(*sources: str) -> nbformat.NotebookNode:
    cells = [new_code_cell(textwrap.dedent(source).strip()) for source in sources]
    return new_notebook(cells=[new_markdown_cell("Some prose."), *cells])


def store(nb: nbformat.NotebookNode, folder: pathlib.Path, name: str = "01_tiny") -> pathlib.Path:
    path = folder / "book" / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(nb), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> nbformat.NotebookNode:
    """A notebook with widgets, text in pieces and a figure, as `run` stores it."""
    nb = plain(
        WIDGETS,
        "unseen = TinyHeatmap(name='unseen')\nTinyHeatmap(name='map')",
        "TinyTemperature(name='bars')",
        "import sys\nprint('one', flush=True)\nprint('two')",
        "assert 1 + 1 == 2",
    )
    nb.cells[-1].metadata["claims"] = ["C01"]
    path = store(nb, tmp_path_factory.mktemp("ran"))
    chapters.run(path)
    return notebooks.read(path)


@pytest.fixture
def nb(ran) -> nbformat.NotebookNode:
    return copy.deepcopy(ran)


@pytest.fixture
def check(tmp_path):
    """The problems of a notebook that is not a chapter."""

    def check(nb: nbformat.NotebookNode) -> str:
        return "\n".join(checks.problems(store(nb, tmp_path, "tiny")))

    return check


# run


def test_run_stores_outputs_that_have_no_problem(nb, check):
    assert check(nb) == ""
    assert [c.execution_count for c in notebooks.code_cells(nb)] == [1, 2, 3, 4, 5]
    assert "version" not in nb.metadata.language_info


def test_run_merges_what_one_stream_printed(nb):
    assert [o.text for o in notebooks.code_cells(nb)[3].outputs] == ["one\ntwo\n"]


def test_run_stores_only_models_that_a_view_needs(nb):
    names = {m["state"]["name"] for m in notebooks.models(nb).values() if "name" in m["state"]}
    assert names == {"map", "bars"}
    assert len(notebooks.models(nb)) == 4  # each with its layout


def test_run_twice_gives_the_same_bytes(nb, tmp_path):
    path = store(nb, tmp_path)
    chapters.run(path)
    first = path.read_bytes()
    seconds, megabytes = chapters.run(path)
    assert path.read_bytes() == first
    assert seconds > 0
    assert 20 < megabytes < 2000


def test_run_tells_two_widgets_of_one_name(tmp_path):
    path = store(plain(WIDGETS, "TinyHeatmap(name='map')", "TinyHeatmap(name='map')"), tmp_path)
    with pytest.raises(chapters.RunError, match="two widgets share the name map"):
        chapters.run(path)


def test_a_failing_run_names_the_cell_and_leaves_the_file(tmp_path):
    path = store(plain("x = 1", "x / 0  # here"), tmp_path)
    before = path.read_bytes()
    with pytest.raises(chapters.RunError) as failure:
        chapters.run(path)
    for part in ("01_tiny.ipynb", "code cell 2", "x / 0  # here", "ZeroDivisionError"):
        assert part in str(failure.value)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_run_works_in_the_chapters_folder_without_progress_bars(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNBOOK_PROGRESS", "1")
    source = "import os\nprint(os.path.basename(os.getcwd()), os.environ['ATTNBOOK_PROGRESS'])"
    path = store(plain(source), tmp_path)
    chapters.run(path)
    assert notebooks.code_cells(notebooks.read(path))[0].outputs[0].text == "book 0\n"


def test_run_does_not_overtake_an_edited_text(nb, tmp_path, monkeypatch):
    path, text = store(nb, tmp_path), tmp_path / ".text" / "01_tiny.md"
    text.parent.mkdir()
    text.write_text("edited")
    later(text, path)
    monkeypatch.setattr(chapters.notebooks, "text_of", lambda path, root: text)
    with pytest.raises(SystemExit, match="make text"):
        chapters.command_run(str(path))


@pytest.mark.parametrize("edited", [".text/01_tiny.md", "book/01_tiny.ipynb"])
def test_run_does_not_overwrite_what_was_edited_meanwhile(tmp_path, monkeypatch, edited):
    """The cell itself does what an editor may do while a chapter trains."""
    late = "os.utime(file, (os.stat(file).st_mtime + 10,) * 2)"
    source = f"import os\nfile = '../{edited}'\nopen(file, 'a').write(' ')\n{late}"
    path, text = store(plain(source), tmp_path), tmp_path / ".text" / "01_tiny.md"
    text.parent.mkdir()
    text.write_text("text")
    os.utime(text, (0, 0))
    before = path.read_bytes()
    monkeypatch.setattr(chapters.notebooks, "text_of", lambda path, root: text)
    with pytest.raises(chapters.RunError, match="edited while it ran"):
        chapters.run(path)
    assert path.read_bytes().rstrip(b" ") == before


# verbs


def test_each_verb_gets_what_was_said(monkeypatch, capsys):
    said = []
    verbs = {
        "run": (lambda chapter: said.append(("run", chapter)), "chapter"),
        "check": (lambda paths: said.append(("check", paths)), "paths"),
    }
    assert all(verbs[name][1:] == chapters.VERBS[name][1:] for name in verbs)
    monkeypatch.setattr(chapters, "VERBS", verbs)
    for line in ("run 03", "run", "check", "check 03 04"):
        monkeypatch.setattr("sys.argv", ["chapters", *line.split()])
        chapters.main()
    assert said == [("run", "03"), ("run", None), ("check", []), ("check", ["03", "04"])]
    monkeypatch.setattr("sys.argv", ["chapters", "run", "03", "04"])
    with pytest.raises(SystemExit):
        chapters.main()
    assert "unrecognized arguments: 04" in capsys.readouterr().err


# claims


def test_claims_say_where_each_is_shown(nb, tmp_path):
    notebooks.code_cells(nb)[3].metadata["claims"] = ["C02"]
    assert checks.claims_shown([store(nb, tmp_path)]) == {
        "C01": ["01_tiny.ipynb, code cell 5, asserted"],
        "C02": ["01_tiny.ipynb, code cell 4, NOT ASSERTED"],
    }


# check: each error planted once


def test_edited_code_is_caught(nb, check):
    notebooks.code_cells(nb)[4].source = "assert 1 + 1 > 1"
    assert "edited and not run again" in check(nb)


def test_a_missing_count_is_caught(nb, check):
    notebooks.code_cells(nb)[3].execution_count = None
    assert "not executed from top to bottom" in check(nb)


def test_a_view_without_state_is_caught(nb, check):
    del notebooks.models(nb)[notebooks.views(nb)[0]]
    assert "1 widget views have no stored state" in check(nb)


def test_a_stock_control_is_caught(nb, check):
    slider = {
        "model_name": "IntSliderModel",
        "model_module": "@jupyter-widgets/controls",
        "state": {},
    }
    notebooks.models(nb)["0" * 32] = nbformat.from_dict(slider)
    assert "stock controls, which no page draws: IntSliderModel" in check(nb)


def test_stale_copies_are_caught_and_refreshed(nb, check):
    name = bundles.classes()[0]
    model = notebooks.models(nb)[notebooks.views(nb)[0]]
    model["state"]["_anywidget_id"] = f"attnbook.web.{name}"
    assert f"copies of {name} are stale" in check(nb)
    assert notebooks.refresh(nb) == [name]
    assert bundles.stored(name).items() <= model["state"].items()
    assert check(nb) == ""


def test_a_still_drawing_has_the_looks_of_today_and_words_of_its_own(nb, check):
    svg = "<svg class='draw-still' aria-label='A box'><style>{}</style><text>a</text></svg>"
    cell = notebooks.code_cells(nb)[0]
    cell.outputs.append(nbformat.v4.new_output("display_data", {notebooks.SVG: svg.format("old")}))
    assert check(nb).endswith("copies of still drawings are stale: make widgets")
    assert notebooks.refresh(nb) == ["still drawings"]
    assert cell.outputs[-1].data[notebooks.SVG] == svg.format(bundles.still(svg))
    assert check(nb) == ""


def test_refreshing_copies_does_not_overtake_an_edited_text(nb, tmp_path, monkeypatch):
    model = notebooks.models(nb)[notebooks.views(nb)[0]]
    model["state"]["_anywidget_id"] = f"attnbook.web.{bundles.classes()[0]}"
    path = store(nb, tmp_path)
    before = path.stat().st_mtime_ns
    monkeypatch.setattr(chapters, "BOOK", path.parent)
    chapters.command_widgets()
    assert notebooks.refresh(notebooks.read(path)) == []
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("tag", "said"),
    [("nbval-ignore-output", "neither compared nor asserted"), ("nbval-skip", "skipped by nbval")],
)
def test_an_output_that_nothing_judges_is_caught(nb, check, tag, said):
    notebooks.code_cells(nb)[3].metadata["tags"] = [tag]
    assert f"code cell 4 is {said}" in check(nb)


@pytest.mark.parametrize(
    "marker", ["NBVAL_SKIP", "NBVAL_IGNORE_OUTPUT", "PYTEST_VALIDATE_IGNORE_OUTPUT"]
)
def test_a_comment_that_nbval_would_obey_is_caught(nb, check, marker):
    cell = notebooks.code_cells(nb)[3]
    cell.source = f"x = 1\n  ## {marker}\n{cell.source}"
    assert f"code cell 4 has the comment {marker}" in check(nb)


@pytest.mark.parametrize(
    ("cell", "claim", "said"),
    [(4, "C99", "does not list"), (3, "C02", "asserts nothing")],
)
def test_a_claim_unknown_or_not_asserted_is_caught(nb, check, cell, claim, said):
    notebooks.code_cells(nb)[cell].metadata["claims"] = [claim]
    assert said in check(nb)


@pytest.mark.parametrize(
    "text",
    [
        "<object at 0x7f3a2b1c>",
        "/home/" + "me/x.py:1: Warning",
        "a\n/home/" + "me/x.py:1: Warning",
        "Traceback (most recent",
    ],
)
def test_an_output_of_one_machine_is_caught(nb, check, text):
    notebooks.code_cells(nb)[3].outputs[0].text = text
    assert "code cell 4 shows" in check(nb)


def test_a_stored_error_is_caught(nb, check):
    notebooks.code_cells(nb)[3].outputs.append(ERROR)
    assert "code cell 4 stores an error" in check(nb)


def test_a_bare_value_is_caught(nb, check):
    losses = nbformat.v4.new_output("execute_result", data={"text/plain": "[3.17, 3.16]"})
    notebooks.code_cells(nb)[3].outputs.append(losses)
    assert "code cell 4 shows a bare value" in check(nb)


def test_a_figure_without_alt_text_is_caught(nb, check):
    cell = notebooks.code_cells(nb)[3]
    cell.outputs.append(nbformat.v4.new_output("display_data", data={"image/png": "AAAA"}))
    assert "mystnb.image.alt is empty" in check(nb)
    cell.metadata["mystnb"] = {"image": {"alt": " "}}
    assert "mystnb.image.alt is empty" in check(nb)
    cell.metadata["mystnb"] = {"image": {"alt": "A line that falls."}}
    assert check(nb) == ""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("![](a.png)", 1),
        ("![A curve](a.png)", 0),
        ("`![](a.png)`", 0),
        ('<img src="a.png">', 1),
        ('<img src="a.png" alt="A curve">', 0),
        ("```{figure} a.png\n:width: 3\n```", 1),
        ("```{figure} a.png\n:alt: A curve\n\nCaption.\n```", 0),
    ],
)
def test_images_in_prose_need_alt_text(text, count):
    assert len(checks.unnamed_images(text)) == count


def test_a_notebook_that_is_too_large_is_caught(nb, check):
    notebooks.code_cells(nb)[3].outputs[0].text = "x" * checks.LARGEST
    assert "kB stored" in check(nb)


def test_a_chapter_needs_widgets_prose_and_the_package(nb, tmp_path):
    nb.cells = nb.cells[:1] + nb.cells[3:]
    found = "\n".join(checks.problems(store(nb, tmp_path)))
    assert "no Heatmap widget" in found
    assert "no Temperature widget" not in found
    assert "does not begin with the line 'import attnbook" in found
    assert "words of prose to" in found


# assignments, which a reader completes, and solutions


def template() -> nbformat.NotebookNode:
    return plain(FIRST, "def attend(q, k):\n    raise NotImplementedError")


def test_an_assignment_is_stored_as_a_reader_opens_it(tmp_path):
    path = store(template(), tmp_path, "assignments/attention")
    assert checks.problems(path) == []
    (found, _) = checks.problems(store(template(), tmp_path, "attention"))
    assert "was not executed" in found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda cell: cell.update(execution_count=3),
            "stores a run of the cell 'def attend(q, k):",
        ),
        (lambda cell: cell.outputs.append(ERROR), "stores a run of the cell 'def attend(q, k):"),
        (lambda cell: cell.metadata.update(claims=["C01"]), "shows a claim"),
        (lambda cell: cell.update(colour="red"), "is no valid notebook: Additional properties"),
    ],
    ids=["a count", "an error", "a claim", "no notebook"],
)
def test_an_assignment_that_was_run_or_claims_is_caught(tmp_path, change, said):
    nb = template()
    change(nb.cells[-1])
    found = checks.problems(store(nb, tmp_path, "assignments/attention"))
    assert len(found) == 1 and said in found[0]


def test_a_check_of_an_assignment_may_store_what_it_prints(tmp_path):
    nb = template()
    nb.cells[-1].update(execution_count=3, metadata={"nbgrader": {"locked": True}})
    assert checks.problems(store(nb, tmp_path, "assignments/attention")) == []
    nb.cells[-1].metadata["nbgrader"]["locked"] = False
    assert len(checks.problems(store(nb, tmp_path, "assignments/attention"))) == 1


def test_widgets_of_a_run_are_caught_in_an_assignment(nb, tmp_path):
    for cell in notebooks.code_cells(nb):
        cell.outputs, cell.execution_count, cell.metadata["claims"] = [], None, []
    (found,) = checks.problems(store(nb, tmp_path, "assignments/attention"))
    assert "stores widgets of a run" in found


@pytest.mark.parametrize("listed", ["attention", "solutions/attention"])
def test_a_solution_is_run_and_on_no_page(nb, tmp_path, listed):
    contents = f"format: jb-book\nroot: book/index\nchapters:\n  - file: book/{listed}\n"
    (tmp_path / "_toc.yml").write_text(contents)
    path = store(nb, tmp_path, "solutions/attention")
    found = checks.problems(path)
    assert found == [
        "attention.ipynb: is on the site: a solution stands in no table of contents"
    ] * (listed == "solutions/attention")
    notebooks.code_cells(nb)[4].source = "assert 1 + 1 > 1"
    assert "edited and not run again" in "\n".join(checks.problems(store(nb, tmp_path, path.stem)))


SECTION = "(evidence-c01)=\n(evidence-c02)=\n## Control\n\n[Back](01_tiny)."
LINKS = "Seen twice ([proof](#evidence-c01), [proof](#evidence-c02))."


@pytest.mark.parametrize(
    ("told", "shown", "says"),
    [
        (LINKS, SECTION, []),
        ("Seen.", SECTION, ["does not link to the evidence of C01", "C02"]),
        (LINKS, "Back: [story](01_tiny).\n\n" + SECTION[:-19], ["C01 does not link back", "C02"]),
        (LINKS, SECTION.replace("(evidence-c02)=", ""), ["C02's evidence has no label"]),
        (LINKS.replace("c02", "c02-tiny"), SECTION.replace("c02", "c02-tiny"), []),
        (LINKS, SECTION.replace("c02", "c02-tiny"), ["does not link to the evidence of C02-TINY"]),
    ],
)
def test_story_and_evidence_are_linked_claim_by_claim(nb, tmp_path, told, shown, says):
    cell = new_code_cell("assert 1", metadata={"claims": ["C01", "C02"]})
    for name, cells in {"": [told], "_evidence": [shown]}.items():
        page = new_notebook(cells=[*map(new_markdown_cell, cells), *[cell] * bool(name)])
        path = store(page, tmp_path, f"01_tiny{name}")
    story = path.with_name("01_tiny.ipynb")
    assert (notebooks.is_story(story), notebooks.is_evidence(path)) == (True, True)
    assert notebooks.evidence_of(story) == path
    found = checks.links(story, notebooks.read(story), notebooks.read(path))
    assert [part in line for part, line in zip(says, found, strict=True)] == [True] * len(says)
    assert set(found) <= {line.partition(": ")[2] for line in checks.problems(story)}


def test_chapters_and_solutions_are_executed(tmp_path):
    names = ["01_tiny", "assignments/attention", "solutions/attention"]
    paths = [store(template(), tmp_path, name) for name in names]
    assert notebooks.every(tmp_path / "book") == paths
    assert notebooks.executed(tmp_path / "book") == [paths[0], paths[2]]
    assert [path for path in paths if notebooks.is_chapter(path)] == [paths[0]]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("assert x", True),
        ("np.testing.assert_allclose(a, b)", True),
        ("%timeit f()\nif x:\n    !ls\n    assert x", True),
        ("x == 1", False),
        ("print('assert')", False),
    ],
)
def test_asserts_reads_code_not_words(source, expected):
    assert notebooks.asserts(new_code_cell(source)) is expected


# text


@pytest.fixture
def paired(nb, tmp_path, monkeypatch) -> pathlib.Path:
    config = notebooks.ROOT / "jupytext.toml"
    (tmp_path / config.name).write_text(config.read_text())
    monkeypatch.chdir(tmp_path)
    cell = notebooks.code_cells(nb)[3]
    cell.metadata.update(tags=["hide-input"], mystnb={"image": {"alt": "Words: with a colon"}})
    path = store(nb, tmp_path)
    chapters.sync(tmp_path)
    return path


def later(path: pathlib.Path, than: pathlib.Path) -> None:
    moment = than.stat().st_mtime + 10
    os.utime(path, (moment, moment))


def test_text_in_step_with_its_notebook_does_not_stop_a_run(paired, tmp_path):
    text = tmp_path / ".text" / "01_tiny.md"
    assert paired.stat().st_mtime_ns >= text.stat().st_mtime_ns


def test_text_round_trip_loses_nothing(paired, tmp_path):
    before = json.loads(paired.read_text())
    text = tmp_path / ".text" / "01_tiny.md"
    text.write_text(text.read_text())
    later(text, paired)
    chapters.sync(tmp_path)
    after = json.loads(paired.read_text())
    assert after == before


def test_what_a_page_folds_is_folded_by_jupyter_and_colab(paired, tmp_path):
    folded = notebooks.code_cells(notebooks.read(paired))[3]
    text = tmp_path / ".text" / "01_tiny.md"
    assert folded.metadata["jupyter"] == {"source_hidden": True}
    assert folded.metadata["cellView"] == "form"
    assert "source_hidden" not in text.read_text() and "cellView" not in text.read_text()
    for tag, hidden in (
        ("hide-cell", {"source_hidden": True, "outputs_hidden": True}),
        ("hide-output", {"outputs_hidden": True}),
        ("other", None),
    ):
        text.write_text(re.sub(r"\b(hide-[a-z]+|other)\b", tag, text.read_text()))
        later(text, paired)
        chapters.sync(tmp_path)
        nb = notebooks.read(paired)
        metadata = notebooks.code_cells(nb)[3].metadata
        assert metadata.get("jupyter") == hidden
        assert ("cellView" in metadata) == (tag == "hide-cell")
        metadata["jupyter"] = {"source_hidden": tag == "other"}
        assert "cells are folded otherwise" in "\n".join(checks.executed(nb))


def test_text_edited_reaches_the_notebook_and_is_known_to_be_stale(paired, tmp_path):
    text = tmp_path / ".text" / "01_tiny.md"
    text.write_text(text.read_text().replace("1 + 1 == 2", "2 + 2 == 4"))
    later(text, paired)
    chapters.sync(tmp_path)
    assert "2 + 2 == 4" in notebooks.code_cells(notebooks.read(paired))[4].source
    assert "edited and not run again" in "\n".join(checks.problems(paired))


def test_text_of_a_new_chapter_becomes_a_notebook_when_it_is_named(paired, tmp_path):
    text = tmp_path / ".text" / "01_tiny.md"
    (text.parent / "02_new.md").write_text(text.read_text())
    chapters.sync(tmp_path, "02_new")
    assert len(notebooks.code_cells(notebooks.read(paired.with_name("02_new.ipynb")))) == 5
    with pytest.raises(SystemExit, match=r"there is no \.text/03_none\.md"):
        chapters.sync(tmp_path, "03_none")


def test_text_does_not_bring_a_renamed_chapter_back(paired, tmp_path):
    renamed = paired.rename(paired.with_name("02_renamed.ipynb"))
    with pytest.raises(SystemExit, match=r"no notebook for \.text/01_tiny\.md"):
        chapters.sync(tmp_path)
    assert not paired.exists()
    assert (tmp_path / ".text" / renamed.with_suffix(".md").name).exists()
