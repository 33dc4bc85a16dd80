"""Text in drawings: legal characters, formatted numbers, and estimated widths."""

import math
import unicodedata

# Widths of letters in common system fonts, relative to the font size; wide scripts take 1.
HEAVY = 1.15  # relative width of a heading's letters
NARROW, WIDE = "ijlftrI.,:;|'!()[] ", "mwMW@%—"


def clean(words: object) -> str:
    """Text that is legal in XML; invisible characters are replaced by visible ones."""
    if not isinstance(words, str):
        raise ValueError(f"words must be a text, got {words!r}")
    if any("\ud800" <= letter <= "\udfff" or letter in "\ufffe\uffff" for letter in words):
        raise ValueError(f"words must be Unicode text, got half a character in {words!r}")
    pictures = {code: 0x2400 + code for code in range(32) if code != 10} | {127: 0x2421}
    return words.translate(pictures)


def written(x: float | int, digits: int | None) -> str:
    """A number with `digits` decimals and a minus sign; "" if digits is None or x is NaN."""
    if digits is None or math.isnan(x):
        return ""
    return f"{x:z.{digits}f}".replace("inf", "∞").replace("-", "−")


def text_width(words: str, size: float | int) -> float:
    """An estimate of a text's width, which errs on the wide side."""
    return float(size * sum(map(_letter, words)))


def _letter(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in NARROW:
        return 0.34
    return 0.9 if letter in WIDE else 0.7 if letter.isupper() else 0.57
