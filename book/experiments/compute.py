"""The laboratory's sizes at equal compute: which of four learns most from so many operations?

`make experiments NAME=compute` trains each size for about the same number of operations, by the
code that trains in the page: five seeds, numbers in English words to German ones, a constant
learning rate, the same for all sizes. The small sizes get the more steps. Columns that are named as
settings are the laboratory's; `body` counts the parameters in the blocks, `operations` are those
of the training so far. Of the tests those are kept that lie a factor of 2^(1/2) apart.
"""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from laboratory import LESSON

from attnbook.learn.tables import Experiment
from attnbook.web import Laboratory

SCRIPT = """
import { readFileSync } from "node:fs";
import { begin } from "%s";
const settings = JSON.parse(readFileSync(0, "utf8")), lesson = begin(settings);
const { tests } = lesson.train({ steps: settings.steps });
console.log(JSON.stringify({ tests, sizes: lesson.sizes }));
"""
SIZES = {(1, 8): 4000, (1, 16): 4000, (1, 32): 1000, (2, 32): 400}  # layers, d_model: steps


def run(**settings: Any) -> Iterator[dict]:
    """Train one model; its tests on held-out items, each after so many operations."""
    begun = Laboratory(**settings)
    given = {**begun.settings, "text": "", "table": begun.table}
    command = ["node", "--input-type=module", "-e", SCRIPT % LESSON.as_uri()]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    sizes, last, due = told["sizes"], told["tests"][-1]["step"], 1.0
    for test in told["tests"]:
        if test["step"] and test["step"] < due and test["step"] != last:
            continue
        due = max(test["step"], 1) * 2**0.5
        more = {name: round(test[name], 4) for name in ("step", "loss", "exact", "tokens")}
        yield {**more, "body": sizes["body"], "operations": test["step"] * sizes["operations"]}


SETTINGS = [
    {
        "task": "words",
        "n_layers": n_layers,
        "d_model": d_model,
        "schedule": "constant",
        "steps": steps,
        "seed": seed,
    }
    for seed in range(1, 6)
    for (n_layers, d_model), steps in SIZES.items()
]
EXPERIMENT = Experiment("compute", SETTINGS, run, ("loss", "exact"), "0.01")

if __name__ == "__main__":
    EXPERIMENT.store()
