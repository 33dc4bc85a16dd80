"""Letters of a drawing: what can be written, how a number is, and how much room a text takes."""

import math
import unicodedata

# Widths of letters in the usual fonts of systems, as shares of the size; wide scripts take 1.
HEAVY = 1.15  # how much wider a heading's letters are
NARROW, WIDE = "ijlftrI.,:;|'!()[] ", "mwMW@%—"


def clean(words: object) -> str:
    """Text that XML can hold; what has no sign of its own gets one."""
    if not isinstance(words, str):
        raise ValueError(f"words must be a text, got {words!r}")
    if any("\ud800" <= letter <= "\udfff" or letter in "\ufffe\uffff" for letter in words):
        raise ValueError(f"words must be Unicode text, got half a character in {words!r}")
    pictures = {code: 0x2400 + code for code in range(32) if code != 10} | {127: 0x2421}
    return words.translate(pictures)


def written(x: float | int, digits: int | None) -> str:
    """A number with its digits and a true minus; nothing without digits, or for none."""
    if digits is None or math.isnan(x):
        return ""
    return f"{x:z.{digits}f}".replace("inf", "∞").replace("-", "−")


def text_width(words: str, size: float | int) -> float:
    """About how wide a text will be, rather too much than too little."""
    return float(size * sum(map(_letter, words)))


def _letter(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in NARROW:
        return 0.34
    return 0.9 if letter in WIDE else 0.7 if letter.isupper() else 0.57
