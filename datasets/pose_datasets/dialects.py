"""Changes of detector scores ("dialects") that a lifter should tolerate, such as the score scales of known detectors.

A dialect maps scores (..., T, 17) in [0, 1] to other scores of the same joints. A score of 0 (not detected) stays 0.
These dialects are fixed, for evaluation; training uses random ones (`pose.training.dialects`).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.structures.sequences import LiftBatch
from pose.structures.types import F32

Dialect = Callable[[F32], NDArray[np.floating]]

_MIN_SCORE = 0.01
# Scores at the cumulative fractions `_FRACTIONS` of the scores above 0. `_SIMULATED_SCORES` are those of
# `pose_datasets.errors` in training; the others were measured on three clips
# at commit aeebe8c6.
_FRACTIONS = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
_SIMULATED_SCORES = (0.02, 0.04, 0.08, 0.12, 0.58, 0.77, 0.86, 0.91, 0.93, 1.0)
_NETWORK_SCORES = {
    "BlazePose": (0.01, 0.04, 0.13, 0.68, 0.94, 0.989, 0.999, 1.0, 1.0, 1.0),
    "MoveNet": (0.25, 0.30, 0.37, 0.43, 0.57, 0.75, 0.84, 0.88, 0.91, 0.95),
    "YOLO-pose": (0.01, 0.012, 0.018, 0.53, 0.958, 0.977, 0.995, 0.995, 1.0, 1.0),
    # From papers and user reports, not measured here.
    "RTMPose-like": (0.15, 0.25, 0.35, 0.45, 0.6, 0.75, 0.85, 0.92, 0.95, 1.0),
    "OpenPose-like": (0.05, 0.12, 0.25, 0.4, 0.6, 0.75, 0.83, 0.88, 0.9, 0.95),
}


def level(value: float) -> Dialect:
    """Return a function that replaces all detector scores by the constant `value`."""
    return lambda scores: np.full_like(scores, value)


def power(gamma: float) -> Dialect:
    """Return a function that raises detector scores in [0, 1] to the power `gamma`."""
    return lambda scores: scores**gamma


def by_joint(seed: int) -> Dialect:
    """Return a function that multiplies scores (..., 17) by a factor of 0.4 to 1 per joint, equal for equal seeds."""
    factors = np.random.default_rng(seed).uniform(0.4, 1, 17)
    return lambda scores: scores * factors


def steps(count: int) -> Dialect:
    """Return a function that rounds detector scores in [0, 1] up to multiples of 1 / `count`."""
    return lambda scores: np.ceil(scores * count) / count


def noisy(seed: int) -> Dialect:
    """Return a function that multiplies each score by a factor of 0.5 to 1, equal for equal seeds."""
    return lambda scores: scores * np.random.default_rng(seed).uniform(0.5, 1, scores.shape)


def network(name: str) -> Dialect:
    """Return a function that replaces scores by those of the same rank of a network, such as "MoveNet"."""
    network_scores = _NETWORK_SCORES[name]
    return lambda scores: np.interp(np.interp(scores, _SIMULATED_SCORES, _FRACTIONS), _FRACTIONS, network_scores)


NETWORKS: dict[str, Dialect] = {name: network(name) for name in _NETWORK_SCORES} | {"all 1": level(1.0)}
CHANGES: dict[str, Dialect] = {
    **{f"level {value}": level(value) for value in (1.0, 0.95, 0.9, 0.7, 0.5, 0.4)},
    **{f"power {gamma}": power(gamma) for gamma in (0.3, 0.6, 1.7, 3.0)},
    "by joint": by_joint(0),
    "by joint, others": by_joint(1),
    "3 steps": steps(3),
    "noise": noisy(0),
}


def apply_dialect(dialect: Dialect, scores: F32) -> F32:
    """Change the scale of scores (..., T, 17): 0 (not detected) stays 0, others are clamped to [0.01, 1]."""
    return np.where(scores > 0, np.clip(dialect(scores), _MIN_SCORE, 1), 0).astype(np.float32)


def apply_dialect_to_batches(batches: Iterator[LiftBatch], dialect: Dialect) -> Iterator[LiftBatch]:
    """Yield the batches with scores changed by the function `dialect`, as by `apply_dialect`."""
    for batch in batches:
        yield replace(batch, scores=apply_dialect(dialect, batch.scores))
