"""Chapter 7: the rates of the recurrent rivals in the restoration of capitals and punctuation.

`make experiments NAME=restore_rates` trains what the table of `restore.py` lacks: two more seeds of
Luong's decoder at its better rate, and RNNsearch at that rate.
"""

from restore import MEASURED, STEPS, run

from attnbook.learn.tables import Experiment

LR = 0.003
RUNS = [("luong", 1), ("luong", 2), ("rnnsearch", 0)]
SETTINGS = [{"model": m, "lr": LR, "steps": STEPS, "seed": seed} for m, seed in RUNS]
EXPERIMENT = Experiment("restore_rates", SETTINGS, run, MEASURED, f"{LR}")

if __name__ == "__main__":
    EXPERIMENT.store()
