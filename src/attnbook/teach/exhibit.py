"""A student's texts, pictures and outputs as harmless HTML.

Text is escaped, pictures are embedded, and a student's HTML is reduced to plain tags without
attributes. Parts that are too large are cut; a sentence says what is missing and where it is.
"""

import base64
import html
import io
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from html.parser import HTMLParser
from typing import Any

from PIL import Image

from attnbook.teach.submission import BLANK, Cell

TEXT, PICTURE, ALL = 20_000, 3_000_000, 12_000_000  # letters of a text, bytes of a picture, of all
PIECE, PIXELS = 200, 40_000_000  # bytes of markup around a piece, and most pixels of a picture
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # a terminal's escape sequence
INLINE = re.compile(r"data:image/(png|jpeg);base64,([A-Za-z0-9+/=]{40,})")
UNCLOSED = re.compile("<(?![^<>]*>)")  # not a tag; a parser would search for its end repeatedly
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")
PLAIN = "table thead tbody tr th td p br ul ol li b strong i em code pre sub sup".split()
INSTEAD = {"div": "p"} | {f"h{n}": "p" for n in range(1, 7)}
SILENT = ("script", "style", "title", "template", "svg", "math")  # their content is not text


def clean(text: str) -> str:
    """Text that can be written to a file and shown on a page or in a terminal."""
    return "".join(
        "?" if unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" else letter
        for letter in text
    )


class Exhibit:
    """Cells of one notebook as HTML, limited in size.

    Args:
        file: the notebook's name, for the sentences that say where cut parts are.
    """

    def __init__(self, file: str):
        self._file, self._left = file, ALL

    def show(self, cells: list[Cell]) -> str:
        """The cells in order, with their pictures and outputs."""
        shown = []
        for n, cell in enumerate(cells):
            if self._left <= 0:
                shown.append(self._cut(f"{len(cells) - n:,} more cells begin with", cell))
                break
            shown.append(self._cell(cell))
        return "".join(shown)

    def _cell(self, cell: Cell) -> str:
        shown = [f"<p class=where>cell {cell.number}</p>"]
        pieces = list(self._pieces(cell))
        for n, piece in enumerate(pieces):
            if self._left <= 0:
                shown.append(self._cut(f"{len(pieces) - n:,} more texts and pictures are in", cell))
                break
            try:
                shown.append(piece())
            except Exception:  # whatever a student's text does to a parser
                shown.append(self._cut("What this page cannot show is in", cell))
        return "".join(shown)

    def _pieces(self, cell: Cell) -> Iterator[Callable[[], str]]:
        """The cell's text, its pictures and its outputs, each as a function that renders it."""
        pictures: list[dict[str, Any]] = []

        def aside(found: re.Match[str]) -> str:
            pictures.append({f"image/{found[1]}": found[2]})
            return f"(picture {len(pictures)} below)"

        text = cell.source if cell.code else INLINE.sub(aside, cell.source)
        if text.strip() not in ("", BLANK):
            yield lambda: self._text(text, cell, "theirs code" if cell.code else "theirs")
        if isinstance(cell.attachments, dict):
            pictures += cell.attachments.values()
        for picture in pictures:
            yield partial(self._data, picture, cell)
        for output in cell.outputs if isinstance(cell.outputs, list) else ():
            yield partial(self._output, output, cell)

    def _cut(self, what: str, cell: Cell) -> str:
        self._left -= PIECE
        return f"<p class=cut>{what} cell {cell.number} of {html.escape(clean(self._file))}.</p>"

    def _text(self, text: str, cell: Cell, kind: str) -> str:
        kept = text[: max(0, min(TEXT, self._left))]
        shown = f'<pre class="{kind}" dir=auto>{html.escape(clean(kept))}</pre>'
        self._left -= len(shown) + PIECE
        if len(text) > len(kept):
            shown += self._cut(f"Cut here: {len(text) - len(kept):,} more letters are in", cell)
        return shown

    def _output(self, output: dict[str, Any], cell: Cell) -> str:
        if "data" in output:
            return self._data(output["data"], cell)
        printed = output["output_type"] == "stream"
        text = _joined(output["text"]) if printed else f"{output['ename']}: {output['evalue']}"
        lines = COLOUR.sub("", text).split("\n")
        seen = (line.rstrip("\r").rpartition("\r")[2] for line in lines)  # the rest is overwritten
        return self._text("\n".join(seen), cell, "printed")

    def _data(self, data: dict[str, Any], cell: Cell) -> str:
        """The best of several MIME types of one output."""
        for kind in PICTURES:
            if kind in data:
                return self._picture(kind, _joined(data[kind]), cell)
        source, plain = (_joined(data.get(f"text/{kind}", "")) for kind in ("html", "plain"))
        shown = harmless(source) if len(source) <= TEXT else ""
        if re.sub("<[^>]*>", "", shown).strip():
            self._left -= len(shown)
            return f"<div class=printed>{shown}</div>"
        if source or not plain:
            plain = self._text(plain, cell, "printed") if plain else ""
            return plain + self._cut("More than this page can show is in", cell)
        return self._text(plain, cell, "printed")

    def _picture(self, kind: str, data: str, cell: Cell) -> str:
        if kind == "image/svg+xml":
            raw, size = data.encode(), ""
            if b"<!ENTITY" in raw:
                raise ValueError("a drawing must say what it draws, got entities")
        else:
            raw = base64.b64decode("".join(data.split()), validate=True)
            size = _size(raw)
        if len(raw) > min(PICTURE, self._left):
            return self._cut(f"A picture of {len(raw) / 1e6:.1f} MB is not shown, it is in", cell)
        self._left -= 4 * len(raw) // 3 + PIECE
        said = base64.b64encode(raw).decode()
        return f'<p><img alt="picture of cell {cell.number}"{size} src="data:{kind};base64,{said}">'


def _size(raw: bytes) -> str:
    """The size of a picture, read from its header."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wide, high = Image.open(io.BytesIO(raw), formats=("PNG", "JPEG")).size
    if wide * high > PIXELS:
        raise ValueError(f"a picture must have at most {PIXELS} pixels, got {wide} x {high}")
    return f" width={wide} height={high}"


def _joined(text: Any) -> str:
    """A text that is stored as one string or as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def harmless(source: str) -> str:
    """HTML reduced to the tags of `PLAIN`, without attributes and with every tag closed."""
    parser = _Plain()
    parser.feed(UNCLOSED.sub("&lt;", source))
    parser.close()
    return "".join([*parser.said, *(f"</{tag}>" for tag in reversed(parser.open))])


class _Plain(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.open: list[str] = []
        self.silent = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        tag = INSTEAD.get(tag, tag)
        if tag in SILENT and not self.silent:
            self.silent = tag
        elif tag in PLAIN and not self.silent and len(self.open) < 50:
            self.said.append(f"<{tag}>")
            self.open += [tag] * (tag != "br")

    def handle_endtag(self, tag: str) -> None:
        tag = INSTEAD.get(tag, tag)
        if tag == self.silent:
            self.silent = ""
        elif tag in self.open and not self.silent:
            while True:
                last = self.open.pop()
                self.said.append(f"</{last}>")
                if last == tag:
                    break

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.said.append(html.escape(clean(data)))
