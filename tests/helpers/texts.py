"""Difficult texts for tokenizers."""

import re
import unicodedata
from random import Random

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

# Blocks of characters: Latin with accents, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai,
# Hangul, combining marks, kana, ideographs, signs, control characters, spaces, emoji, other planes.
BLOCKS = [
    *((0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x45F), (0x591, 0x5F4)),
    *((0x600, 0x6FF), (0x900, 0x97F), (0xE01, 0xE5B), (0x1100, 0x11F9), (0x1E00, 0x1EFF)),
    *((0x2000, 0x206F), (0x20A0, 0x22FF), (0x3000, 0x30FF), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3)),
    *((0xF900, 0xFA2D), (0xFE00, 0xFE0F), (0xFEFF, 0xFFFD), (0x0, 0x1F), (0x7F, 0x9F)),
    *((0x1D400, 0x1D7FF), (0x1F300, 0x1F6FF), (0x1F1E6, 0x1F1FF), (0x20000, 0x20100)),
    *((0xE0020, 0xE007F), (0xE000, 0xE010), (0x10FFF0, 0x10FFFD)),
]
PARTS = [*ODD, "the people", "unaffordable", "[MASK]", "<|endoftext|>", "don't", "\r\n", "##ing"]


def nasty(n: int, seed: int = 0) -> list[str]:
    """Nasty texts by chance: characters of few blocks at a time, long words, and real ones between.

    Only characters that Unicode has had since 2002, or emoji: tokenizers know different versions.
    """
    chance = Random(seed)

    def letter(block: tuple[int, int]) -> str:
        c = chr(chance.randint(*block))
        known = block[0] >= 0x1F000 or unicodedata.ucd_3_2_0.category(c) != "Cn"
        return c if known else "?"

    def text() -> str:
        blocks = chance.sample(BLOCKS, chance.choice([1, 2, 4]))
        parts = []
        for _ in range(chance.choice([1, 3, 9])):
            long = chance.choice([1, 2, 5, 20, 120 if chance.random() < 0.2 else 3])
            parts.append("".join(letter(chance.choice(blocks)) for _ in range(long)))
            if chance.random() < 0.4:
                parts.append(chance.choice(PARTS))
            parts.append(chance.choice(["", " ", "  ", "\n", "\t ", "'", "-", "\u0301", "\u200d"]))
        return "".join(parts)

    return ["", *(text() for _ in range(n - 1))]
