"""What a release carries, and the workflows that make it."""

import hashlib
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

from tools import figures, notebooks, release
from tools.notebooks import BOOK, ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
VERBS = set(re.findall(r"(?m)^([a-z-]+):.*## ", (ROOT / "Makefile").read_text("utf-8")))


def parsed(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in parsed(path)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_verbs_that_exist_and_may_do_little(path: Path) -> None:
    said = parsed(path)
    assert said["name"] == path.stem and said[True]  # YAML 1.1 reads `on` as true
    assert "permissions" in said and said["permissions"] != "write-all"
    runs = [step["run"] for step in steps(path) if "run" in step]
    called = {verb for run in runs for verb in re.findall(r"\bmake ([a-z-]+)", run)}
    assert called <= VERBS
    assert all((ROOT / run.split()[0]).is_file() for run in runs if run.startswith("."))
    for step in steps(path):
        assert ("run" in step) != ("uses" in step)
        assert "uses" not in step or re.search(r"@(v\d+|release/v\d+)$", step["uses"])
        # A name that a stranger chose is no part of a command.
        assert not re.search(r"\$\{\{ *github\.(event|head_ref|ref_name)", step.get("run", ""))


def test_a_release_is_attested_and_published_without_a_password() -> None:
    jobs = parsed(ROOT / ".github/workflows/release.yml")["jobs"]
    used = [step.get("uses", "") for step in jobs["build"]["steps"]]
    assert any("attest-build-provenance" in each for each in used)
    assert jobs["build"]["permissions"].keys() == {"contents", "id-token", "attestations"}
    assert jobs["index"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text("utf-8")


def test_a_preview_needs_no_right_to_write() -> None:
    said = parsed(ROOT / ".github/workflows/preview.yml")
    assert said[True] == {"pull_request": None} and said["permissions"] == {"contents": "read"}


def test_dependabot_looks_where_dependencies_are() -> None:
    files = {"npm": "package.json", "pip": "requirements.txt", "github-actions": ".github"}
    updates = parsed(ROOT / ".github/dependabot.yml")["updates"]
    assert {each["package-ecosystem"] for each in updates} == set(files)
    assert all((ROOT / name).exists() for name in files.values())


def test_a_tag_names_the_version_that_all_files_name(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    number = release.version(
        tmp_path, f"v{release._first('version = .(.*).', ROOT / 'pyproject.toml')}"
    )
    for tag in ("", "v9.9.9"):
        with pytest.raises(ValueError, match=f"pyproject.toml names {number}; CITATION.cff"):
            release.version(tmp_path, tag)
    (tmp_path / "CITATION.cff").write_text("version: 9\n")
    with pytest.raises(ValueError, match=r"is no release: CITATION.cff names 9$"):
        release.version(tmp_path, f"v{number}")


def test_an_archive_unpacks_into_one_folder_and_is_the_same_again(tmp_path: Path) -> None:
    (tmp_path / "html" / "book").mkdir(parents=True)
    (tmp_path / "html" / "index.html").write_text("a")
    (tmp_path / "html" / "book" / "x.html").write_text("b")
    (tmp_path / "dist").mkdir()
    first, again = tmp_path / "dist" / "site.zip", tmp_path / "again.zip"
    release.archived(tmp_path / "html", first)
    (tmp_path / "html" / "index.html").touch()
    release.archived(tmp_path / "html", again.with_name("site.zip"))
    assert first.read_bytes() == again.with_name("site.zip").read_bytes()
    assert zipfile.ZipFile(first).namelist() == ["site/book/x.html", "site/index.html"]
    wanted = hashlib.sha256(first.read_bytes()).hexdigest()
    assert release.hashes(tmp_path / "dist") == f"{wanted}  site.zip\n"


def test_the_figures_of_a_chapter_are_packed_with_what_one_sees(tmp_path: Path) -> None:
    story = BOOK / "05_heads.ipynb"
    count = figures.pack([story], tmp_path / "figures.zip")
    stored = [
        output.data[notebooks.SVG]
        for cell in notebooks.code_cells(notebooks.read(story))
        for output in cell.outputs
        if "Map of the chapter"
        not in output.get("data", {}).get(notebooks.SVG, "Map of the chapter")
    ]
    archive = zipfile.ZipFile(tmp_path / "figures.zip")
    drawn = [name for name in archive.namelist() if name.endswith(".svg")]
    assert count == len(drawn) == len(stored) > 5
    assert [archive.read(name).decode() for name in drawn] == stored
    page = archive.read("index.html").decode()
    assert all(f'src="{name}"' in page for name in drawn) and "CC BY 4.0" in page
    assert all(seen for _, _, seen in figures.figures(story))


def test_a_figure_without_words_is_named_by_its_place(tmp_path: Path) -> None:
    output = nbformat.v4.new_output(
        "display_data", {notebooks.SVG: "<svg><title>A b</title></svg>"}
    )
    cell = nbformat.v4.new_code_cell("draw()", outputs=[output], execution_count=1)
    notebooks.write(tmp_path / "x.ipynb", nbformat.v4.new_notebook(cells=[cell]))
    assert [each[::2] for each in figures.figures(tmp_path / "x.ipynb")] == [("01_a_b", "A b")]
