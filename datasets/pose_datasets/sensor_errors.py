"""Errors of depth cameras' skeletons: joint definitions, slow offsets, jitter, outliers, swapped sides and gaps."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import H36M17
from pose.structures.types import F64

_FLIP = list(H36M17.flip_order)
_ARMS = [H36M17.index(f"{side}_{name}") for side in ("left", "right") for name in ("shoulder", "elbow", "wrist")]
_LEGS = [H36M17.index(f"{side}_{name}") for side in ("left", "right") for name in ("hip", "knee", "ankle")]
# How much each joint errs relative to the mean joint: ends of limbs more, the trunk less.
_RELATIVE = np.ones(17)
for _name, _value in (("ankle", 1.4), ("wrist", 1.5), ("elbow", 1.2), ("hip", 0.7), ("knee", 1.1), ("shoulder", 0.8)):
    _RELATIVE[[H36M17.index(f"{side}_{_name}") for side in ("left", "right")]] = _value
_RELATIVE[[H36M17.index(_name) for _name in ("pelvis", "spine", "thorax")]] = 0.5


@dataclass(frozen=True, kw_only=True)
class SensorErrorConfig:
    """Sizes of the simulated errors.

    Attributes:
        definition: Standard deviation of a joint's constant offset, m.
        slow: Standard deviation of its slow offset, m, with a correlation time of 1 s.
        jitter: Median standard deviation of the noise of a frame, m; between sequences it varies by a factor of 2.
        outliers: Outliers per joint and second, of 0.1 to 0.5 m for up to 5 frames.
        swaps: Swaps of the sides of arms or legs per second, of up to 0.5 s.
        gaps: Gaps per joint and second, of up to 0.5 s.
        inferred: Fraction of sequences whose scores tell bad joints (0.5) from good ones.
    """

    definition: float = 0.02
    slow: float = 0.015
    jitter: float = 0.005
    outliers: float = 0.05
    swaps: float = 0.05
    gaps: float = 0.03
    inferred: float = 0.5


def spoil(
    rng: np.random.Generator, truth: NDArray[np.floating], times: F64, config: SensorErrorConfig, definition: F64
) -> tuple[F64, F64]:
    """Return joints (B, T, 17, 3) m with errors, and scores (B, T, 17), of true joints and their times (B, T) s.

    Args:
        definition: (B, 1, 17, 3) m, constant offsets of the joints.
    """
    batch, frames = times.shape
    step = np.diff(times, axis=1, prepend=times[:, :1] - 1 / 30)
    joints: F64 = truth + definition
    kept = np.exp(-step)
    drift = rng.normal(size=(batch, 17, 3))
    slow = np.empty(joints.shape)
    fresh = rng.normal(size=joints.shape)
    for t in range(frames):
        share = kept[:, t, None, None]
        drift = share * drift + np.sqrt(1 - share**2) * fresh[:, t]
        slow[:, t] = drift
    size = np.exp(rng.normal(0, 0.7, (batch, 1, 1, 1)))
    noise = rng.normal(size=joints.shape)
    if frames > 1:  # noise of neighbouring frames is alike, since the camera's own filter has smoothed it
        noise[:, 1:] += rng.uniform(0, 1, (batch, 1, 1, 1)) * noise[:, :-1]
    noise[..., 2] *= 1.5  # the camera looks along z
    joints = joints + _RELATIVE[:, None] * (config.slow * slow + config.jitter * size * noise)
    scores: F64 = np.ones(joints.shape[:3])
    seconds = float(times[:, -1].mean() - times[:, 0].mean()) + 1e-6
    marked = np.asarray(rng.random(batch) < config.inferred)
    for row, joint, first, last in _spans(rng, batch, config.outliers * seconds * 17, frames, 5):
        joints[row, first:last, joint] += rng.normal(size=3) * rng.uniform(0.06, 0.3)
        if marked[row]:
            scores[row, first:last, joint] = 0.5
    longest = max(2, int(0.5 / np.median(step)))
    for row, joint, first, last in _spans(rng, batch, config.swaps * seconds, frames, longest):
        limbs = _ARMS if joint % 2 else _LEGS
        joints[row, first:last, limbs] = joints[row, first:last, [_FLIP[limb] for limb in limbs]]
    for row, joint, first, last in _spans(rng, batch, config.gaps * seconds * 17, frames, longest):
        if first > 0 or last < frames:
            scores[row, first:last, joint] = 0
    return joints, scores


def _spans(
    rng: np.random.Generator, batch: int, mean: float, frames: int, longest: int
) -> list[tuple[int, int, int, int]]:
    """Draw spans of frames: sequence, joint, first frame and end, `mean` a sequence on average."""
    rows = np.repeat(np.arange(batch), rng.poisson(mean, batch))
    first = rng.integers(0, frames, len(rows))
    last = np.minimum(first + rng.integers(1, longest + 1, len(rows)), frames)
    return list(zip(rows.tolist(), rng.integers(0, 17, len(rows)).tolist(), first.tolist(), last.tolist(), strict=True))


def mirrored(joints: NDArray[np.floating]) -> F64:
    """Mirror joints (..., 17, 3) in x, and swap left and right ones."""
    result: F64 = joints[..., _FLIP, :] * np.array([-1.0, 1, 1])
    return result
