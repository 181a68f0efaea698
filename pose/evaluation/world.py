"""Error measures in world coordinates: positions, foot skating and the floor.

`pred` and `true` are (T, J, 3) in metres at 30 frames/s, for which the thresholds per frame are defined. The caller
drops frames without ground truth from both. Every function returns single values, so that means over many sequences are
means over frames. W-MPJPE, WA-MPJPE, RTE, jitter and FS are defined as in the public code of S. Shin et al., "WHAM"
(CVPR 2024), and Z. Shen et al., "GVHMR" (SIGGRAPH Asia 2024). Floor measures follow Y. Yuan et al., "PhysDiff" (ICCV
2023), with ankles instead of a mesh; the skating measure is therefore called FS-ankle.
"""

import numpy as np
from numpy.typing import NDArray

from pose.evaluation.alignment import best_rotation
from pose.evaluation.metrics import MM_PER_M
from pose.skeletons import H36M17

F64 = NDArray[np.float64]
Points = NDArray[np.floating]
Mask = NDArray[np.bool_]

CHUNK = 100  # frames
ALIGNED_FRAMES = 2  # number of first frames of a chunk that W-MPJPE aligns
MAX_STATIC_STEP_M = 0.010  # m per frame; a foot whose true movement is smaller counts as in contact
ANKLES = [H36M17.index("left_ankle"), H36M17.index("right_ankle")]


def chunk_errors(pred: Points, true: Points, *, first: int | None = ALIGNED_FRAMES, scale: bool = True) -> F64:
    """Joint errors (T, J) mm after one alignment per 100 frames; the last, shorter chunk counts.

    Args:
        pred: Prediction.
        true: Ground truth.
        first: Number of first frames of a chunk that are aligned (W-MPJPE); None for all (WA-MPJPE).
        scale: Align with a similarity, which hides errors of size; otherwise with a rigid motion.
    """
    errors = []
    for start in range(0, len(true), CHUNK):
        chunk = slice(start, start + CHUNK)
        fitted = slice(start, start + (CHUNK if first is None else first))
        turn, factor, move = fit(pred[fitted].reshape(-1, 3), true[fitted].reshape(-1, 3), scale)
        errors.append(np.linalg.norm(factor * pred[chunk] @ turn + move - true[chunk], axis=-1))
    return MM_PER_M * np.concatenate(errors) if errors else np.zeros(true.shape[:2])


def fit(source: Points, target: Points, scale: bool) -> tuple[F64, float, F64]:
    """Rotation (3, 3) from the right, scale and translation (3,) that bring `source` (N, 3) closest to `target`."""
    middle, goal = source.mean(axis=0, dtype=np.float64), target.mean(axis=0, dtype=np.float64)
    source, target = source - middle, target - goal
    turn = best_rotation(source.T.astype(np.float64) @ target)
    size = float((source**2).sum())
    factor = float(((source @ turn) * target).sum() / size) if scale and size > 0 else 1.0
    return turn, factor, goal - factor * middle @ turn


def root_path_errors(pred: Points, true: Points) -> F64:
    """RTE (T,) in % of the length of the true path (T, 3), after one rigid alignment; NaN without motion."""
    turn, factor, move = fit(pred, true, scale=False)
    length = np.linalg.norm(np.diff(true, axis=0), axis=-1).sum()
    error = np.linalg.norm(factor * pred @ turn + move - true, axis=-1)
    return 100 * error / length if length > 0 else np.full(len(true), np.nan)


def jitter(pred: Points, fps: float) -> F64:
    """Mean over joints of the third derivative of the motion, (T - 3,) in 10 m/s^3; needs no ground truth."""
    result: F64 = np.linalg.norm(np.diff(pred.astype(np.float64), n=3, axis=0), axis=-1).mean(axis=-1) * fps**3 / 10
    return result


def foot_slides(pred: Points, true: Points) -> F64:
    """FS-ankle (N,) mm: steps of the predicted ankles (T, 2, 3) between frames in which the true ones are static."""
    still = np.linalg.norm(np.diff(true, axis=0), axis=-1) < MAX_STATIC_STEP_M
    result: F64 = MM_PER_M * np.linalg.norm(np.diff(pred.astype(np.float64), axis=0), axis=-1)[still]
    return result


def penetrations(heights: Points) -> F64:
    """Depth (T,) mm of the lowest sole, from heights (T, 2) m, below the floor; 0 if it is above."""
    result: F64 = MM_PER_M * np.maximum(-heights.min(axis=1), 0)
    return result


def floats(heights: Points) -> F64:
    """Height (T,) mm of the lowest sole, from heights (T, 2) m, above the floor; 0 if it is below. Jumps count as
    well.
    """
    result: F64 = MM_PER_M * np.maximum(heights.min(axis=1), 0)
    return result


def angle_between(a: Points, b: Points) -> float:
    """Angle in degrees between two directions (3,)."""
    cross, dot = np.linalg.norm(np.cross(a, b)), float(np.dot(a, b))
    return float(np.degrees(np.arctan2(cross, dot)))


def f1_counts(pred: Mask, true: Mask) -> NDArray[np.int64]:
    """(3,) true positives, false positives and false negatives."""
    return np.array([(pred & true).sum(), (pred & ~true).sum(), (~pred & true).sum()])


def f1_score(counts: NDArray[np.int64]) -> float:
    """F1 of summed `f1_counts`; NaN without positives in both."""
    hit, false, missed = counts.tolist()
    return 2 * hit / (2 * hit + false + missed) if hit + false + missed else float("nan")


def bone_variation(joints: Points) -> F64:
    """Standard deviation over time (16,) mm of each bone length of joints (T, 17, 3) m."""
    parents, children = np.array(H36M17.edges).T
    lengths = np.linalg.norm(joints[:, children].astype(np.float64) - joints[:, parents], axis=-1)
    result: F64 = MM_PER_M * lengths.std(axis=0)
    return result
