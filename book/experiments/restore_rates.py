"""Chapter 7: the rates of the recurrent rivals in the restoration of capitals and punctuation.

`make experiments NAME=restore_rates` trains what the table of `restore.py` lacks: Luong's decoder
with three seeds at its best rate, and at one rate more on each side, and RNNsearch at that rate.
"""

from restore import MEASURED, STEPS, run

from attnbook.learn.tables import Experiment

RUNS = [("luong", 0.003, 1), ("luong", 0.003, 2), ("luong", 0.005, 0), ("luong", 0.002, 0)]
RUNS += [("rnnsearch", 0.003, 0)]
SETTINGS = [{"model": m, "lr": lr, "steps": STEPS, "seed": seed} for m, lr, seed in RUNS]
EXPERIMENT = Experiment("restore_rates", SETTINGS, run, MEASURED, "0.002 0.003 0.005")

if __name__ == "__main__":
    EXPERIMENT.store()
