"""Accuracy of the lifters, and their model cards: docs/studies/lifter.md and splits.md.

accuracy    shipped lifters on the test subjects, beside a mean pose and a single-frame network
tables      errors by body, body height, frame rate, camera and angle of the elbow
knees       flexion of knees that are straight in real images
cards, ship-forecaster, forecaster-card
            cards of the shipped weights, the accuracy section of docs/studies/lifter.md and its plot
"""

from benchmarks.common.command import run

run("lifter", __doc__, {
    "accuracy": "lifter.accuracy", "tables": "lifter.tables", "knees": "lifter.knees", "cards": "lifter.cards",
    "ship-forecaster": "lifter.cards", "forecaster-card": "lifter.cards",
})  # fmt: skip
