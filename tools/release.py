"""`make release TAG=v0.1.0`: put the files of a release into dist/.

They are wheel, sdist, the site with its slides (unzip it and open index.html), the PDF, the
figures, and the hashes of all."""

import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

from tools.notebooks import ROOT

WHEN = (2026, 1, 1, 0, 0, 0)  # time of every archived file, so that equal sites give equal files
BUILT = ROOT / "_build"


def version(root: pathlib.Path, tag: str) -> str:
    """The version that a tag names.

    Raises:
        ValueError: if a file names another version, or none; the error lists all such files.
    """
    named = {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"][
            "version"
        ],
        "CITATION.cff": _first(r"(?m)^version: (\S+)$", root / "CITATION.cff"),
        "CHANGELOG.md": _first(r"(?m)^## (\d\S*)", root / "CHANGELOG.md"),
    }
    wanted = tag.removeprefix("v")
    if wrong := [f"{file} names {found}" for file, found in named.items() if found != wanted]:
        raise ValueError(f"the tag {tag} is no release: {'; '.join(wrong)}")
    return wanted


def _first(pattern: str, path: pathlib.Path) -> str:
    found = re.search(pattern, path.read_text("utf-8"))
    return found[1] if found else "none"


def archived(folder: pathlib.Path, out: pathlib.Path) -> None:
    """Pack a folder into an archive that unpacks into a folder with the archive's name."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(f"{out.stem}/{path.relative_to(folder)}", WHEN)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())


def hashes(folder: pathlib.Path) -> str:
    """A line for each file, in the format of `sha256sum --check`."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.release", description=__doc__)
    parser.add_argument("tag", nargs="?", default="")
    asked = parser.parse_args()
    try:
        number = version(ROOT, asked.tag)
    except ValueError as error:
        sys.exit(str(error))
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(dist)]
    subprocess.run(build, cwd=ROOT, check=True)
    name = f"worth-some-attention-{number}"
    archived(BUILT / "html", dist / f"{name}-site.zip")
    for made, ending in (("book.pdf", ".pdf"), ("figures.zip", "-figures.zip")):
        shutil.copy(BUILT / made, dist / f"{name}{ending}")
    (dist / "SHA256SUMS").write_text(hashes(dist), "utf-8")
    for path in sorted(dist.iterdir()):
        print(f"{path.stat().st_size / 1e6:8.2f} MB  {path.name}")


if __name__ == "__main__":
    main()
