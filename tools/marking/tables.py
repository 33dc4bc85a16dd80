"""CSV files that a person, a spreadsheet or a learning management system has written."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attnbook.teach import records
from attnbook.teach.report import FORMULA


class TableError(Exception):
    """A table cannot be used; the message has a line for each thing that is wrong."""


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, with cells stripped of spaces; "line" is the row's line.

    Commas, semicolons and tabs are understood, and the mark that spreadsheets put in front.

    Raises:
        TableError: if it is no such file, or a row has more cells than the header.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = "no UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise TableError(f"{path}: {why}") from None
    separator = re.search("[,;\t]", text)  # the one behind the first column
    reader = csv.DictReader(io.StringIO(text), delimiter=separator[0] if separator else ",")
    found, wrong = [], []
    for row in reader:
        if None in row:
            wrong.append(f"{path}, line {reader.line_num}: more cells than the header has")
            continue
        cells = {name.strip(): _plain((cell or "").strip()) for name, cell in row.items()}
        if any(cells.values()):
            found.append({**cells, "line": str(reader.line_num)})
    if wrong or not found:
        raise TableError("\n".join(wrong or [f"{path}: it has no rows"]))
    return found


def write(path: Path, header: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write a CSV file for its owner alone; what a spreadsheet would compute is text."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(map(_safe, header))
    writer.writerows([_safe(row.get(name, "")) for name in header] for row in rows)
    records.write(path, lines.getvalue())


def _safe(cell: object) -> str:
    text = f"{cell:g}" if isinstance(cell, float) else str(cell)
    return f"'{text}" if text.startswith(FORMULA) and not _number(text) else text


def _plain(text: str) -> str:
    """A cell without the quotation mark that `_safe` put in front."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(FORMULA) else text


def _number(text: str) -> bool:
    try:
        return bool(float(text) or True)
    except ValueError:
        return False
