"""Difficult texts for tokenizers."""

import re

from hypothesis import strategies as st

from attnbook.text.speeches import speeches

UNICODE = [
    "Ünaffordable, UNAFFORDABLE!",
    "a\u0000b\u200bc\ufffdd\u00ade",  # control and format characters go
    "a\tb\nc\rd\u00a0e\u2003f\u3000g\u2028h",  # white space of every kind
    "a\x85b\x1cc\x0bd\x0ce",  # white space of Python, control characters here
    "ÅÉÎõü naïve Ελλάς ΟΔΥΣΣΕΥΣ",  # accents; a sigma at the end of a word
    "İstanbul DŽ Ǆ ﬁne ẞ ß",  # capitals that become two characters, ligatures
    "e\u0301 e\u0301\u0323 \u0301e q\u0323\u0307",  # accents that stand apart
    "한국어 ភាសាខ្មែរ हिन्दी עִבְרִית العَرَبِيَّة ไทย",
    "中文字and日本語カタカナ。 \U00020000\U0002a6df\U0002b820\U0002b920 \uf900\U0002f800",
    "a$b+c<d=e>f^g`h|i~j 1,000.50% «x» “y” … — ‐ ※ \u037e \u1fef",
    "👍🏽 👨\u200d👩\u200d👧 🇫🇷 a\ufe0fb",
    "##able # #able [MASK] [CLS]a[SEP] [UNK]",
    "a" * 99 + " " + "a" * 100 + " " + "a" * 101 + " é" * 101,
    "",
    "   \t\n ",
    "\u0301",
]


def sentences() -> list[str]:
    """Real sentences from all periods, without duplicates."""
    texts = " ".join(speech.text for speech in speeches("train"))
    return list(dict.fromkeys(re.split(r"(?<=[.!?;])\s+", texts)))


ODD = [
    *UNICODE,
    "👍🏽👨\u200d👩\u200d👧🇫🇷 🏴\U000e0067\U000e0062\U000e007f a\ufe0fb ©™",
    "".join(map(chr, range(256))),  # control characters among them
    "\x1c\x1d \x1e\x1f\x85 \u180e\u200b \ufeff\u2060a \x7f",
    "  a   b\n\n\n c\t\td \r\n\r\n  ",
    "it's IT'S we'll we'LL 'tis 'sad' ''s d'être I'd've",
    "x1234 12.5e-7 ½ Ⅷ ²³ ٣٤ 1,000,000 a1b2_c3",
    "def f(x):\n\treturn {'a': [1,2]}  # ---- ==== ____",
    "q" * 300 + " " * 300 + "é" * 300,
    "\ufffd\ufffe\uffff \U0010ffff",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
