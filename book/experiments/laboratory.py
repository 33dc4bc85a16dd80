"""The laboratory: what each change does to a small decoder, trained by the page's own engine.

`make experiments NAME=laboratory` has Node train every run below, with the very code that trains in
the page, and stores a row for each test on held-out items. The settings are named as the widget
names them; what a variant or the columns do not say stands as it does there.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["ATTNBOOK_PROGRESS"] = "0"

from attnbook import web as widgets
from attnbook.learn.tables import Experiment
from attnbook.web import Laboratory

LESSON = Path(widgets.__file__).parent / "engine" / "lesson.js"
SCRIPT = """
import { readFileSync } from "node:fs";
import { begin } from "%s";
const settings = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(begin(settings).train({ steps: settings.steps }).tests));
"""
VARIANTS = [
    {},
    {"positions": "none"},
    {"residual": 0},
    {"network": 0},
    {"n_heads": 1},
    {"causal": 0},
]


def run(**settings: Any) -> Iterator[dict]:
    """Train one model; the tests on held-out items as it learns."""
    begun = Laboratory(**settings)
    given = {**begun.settings, "text": "", "table": begun.table}
    script = SCRIPT % LESSON.as_uri()
    command = ["node", "--input-type=module", "-e", script]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, check=True
    )
    for test in json.loads(done.stdout):
        yield {name: round(test[name], 4) for name in ("step", "loss", "exact", "tokens")}


NAMES = (
    *("task", "n_layers", "d_model", "n_heads", "positions", "norm", "residual", "causal"),
    *("network", "activation", "lr", "batch", "steps", "seed"),
)
ALL = [Laboratory(**variant, seed=seed).settings for variant in VARIANTS for seed in range(1, 11)]
SETTINGS = [{name: each[name] for name in NAMES} for each in ALL]
EXPERIMENT = Experiment("laboratory", SETTINGS, run, ("loss", "exact"), "0.003 0.01")

if __name__ == "__main__":
    EXPERIMENT.store()
