"""A decimal number in a chapter's prose is one that its pages print, draw or compute: a run on
another day may print another one."""

import re

import pytest

from tools import notebooks

DECIMAL = re.compile(r"(?<![\w.,])\d+\.\d+(?!\.?\d)")
NO_CLAIM = re.compile(r"(?ms)^(`{3,})(?:\w|\{solution).*?^\1$|`[^`\n]+`")  # code, solutions
NO_PROSE = re.compile(r"\$[^$]*\$|\]\([^)]*\)|\{[\w:]+\}")  # formulas, links, roles
PATH = re.compile(r"""\bd=(\\?["'])[^"']*\1""")  # a drawn line's coordinates
STORIES = [path for path in notebooks.every() if notebooks.is_story(path)]
# What stands in none of a chapter's outputs and code, by where it comes from.
ELSEWHERE = {
    "01_seq2seq": {
        "bahdanau2015, table 1": "17.82 26.75",
        "experiments/bottleneck.csv": "0.86 0.40",
        "experiments/bottleneck.py": "0.005 0.0025",
    },
    "02_attention": {
        "bahdanau2015 and luong2015": "17.82 26.75 14.0 17.3 18.0 18.6 19.0",
        "the widget of temperatures": "0.999",
    },
    "03_self_attention": {
        "rows of the first walk, rounded otherwise": "0.10 0.107",
        "the drawn bars of three runs": "0.80",
    },
    "05_heads": {
        "vaswani2017, table 3": "24.9 25.1 25.5 25.8 25.4",
        "arithmetic": "1.41",
        "wang2020, the model's size in millions": "22.7",
    },
    "06_transformer": {
        "experiments/last_norm.csv": "5.1",
    },
    "07_what_it_buys": {
        "vaswani2017 and alrfou2019": "24.6 25.16 1.18 23.7 25.3 25.5 27.3 28.4",
        "arithmetic": "0.125 0.50 16.8 28.3 134.5",
    },
    "08_bert": {
        "devlin2019, tables 7 and 8": "94.0 94.9 95.4 96.4 96.1 95.6 91.0",
        "devlin2019, its sizes": "335.1 336.2",
        "an assert's 1e-5": "0.00001",
    },
    "09_gpt": {
        "hoffmann2022": "1.69",
        "experiments/era.csv": "0.46 0.55 0.58 0.63 0.66",
        "nats in bits": "1.44",
        "weights/gpt.safetensors, and as it was on 22 November": "1.17 1.26",
    },
    "10_sampling": {"experiments/decoding.csv": "5.1"},
}


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_decimal_numbers_in_prose_have_a_source(story):
    pages = [notebooks.read(story), notebooks.read(notebooks.evidence_of(story))]
    cells = [cell for page in pages for cell in page.cells]
    shown = "".join(cell.source + str(cell.outputs) for cell in cells if cell.cell_type == "code")
    shown = PATH.sub("", shown)
    prose = "\n".join(
        NO_CLAIM.sub("", cell.source) for cell in cells if cell.cell_type == "markdown"
    )
    told = set(DECIMAL.findall(NO_PROSE.sub("", prose)))
    listed = " ".join(ELSEWHERE.get(story.stem, {}).values()).split()
    unseen = {number for number in told if not re.search(rf"(?<!\d){re.escape(number)}", shown)}
    assert unseen == set(listed)
