"""Accuracy of the lifters, and their model cards: docs/studies/lifter.md and splits.md."""

from benchmarks.common.command import run

CARDS = {"ship-forecaster": "cards", "forecaster-card": "cards"}
run("lifter", __doc__, "accuracy", "tables", "knees", "cards", **CARDS)
