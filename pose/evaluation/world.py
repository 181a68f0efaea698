"""Error measures of people in the world: where they are, whether they slide, and whether their floor is one.

`pred` and `true` are (T, J, 3) in metres at 30 frames a second, for which the thresholds per frame are meant; frames
without truth are dropped before, from both. Every function gives values one by one, so that the mean over many
sequences is a mean over frames. Definitions: W-MPJPE, WA-MPJPE, RTE, jitter and FS as in the public code of S. Shin et
al., "WHAM" (CVPR 2024), and Z. Shen et al., "GVHMR" (SIGGRAPH Asia 2024); floor measures as in Y. Yuan et al.,
"PhysDiff" (ICCV 2023), on ankles instead of a mesh, which is why the slide is called FS-ankle.
"""

import numpy as np
from numpy.typing import NDArray

from pose.evaluation.alignment import best_rotation
from pose.skeletons import H36M17

F64 = NDArray[np.float64]
Points = NDArray[np.floating]
Mask = NDArray[np.bool_]

MM_PER_M = 1000.0
CHUNK = 100  # frames
FIRST = 2  # frames of a chunk that W-MPJPE aligns
STILL = 0.010  # m between two frames; a foot that truly moves less is on the floor
ANKLES = [H36M17.index("left_ankle"), H36M17.index("right_ankle")]


def chunk_errors(pred: Points, true: Points, *, first: int | None = FIRST, scale: bool = True) -> F64:
    """(T, J) mm: the error after one alignment for every 100 frames; the last, shorter chunk counts.

    first: frames at the beginning of a chunk that are aligned (W-MPJPE); None: all of them (WA-MPJPE). scale: a
    similarity, which hides a wrong size; otherwise a rigid motion.
    """
    errors = []
    for start in range(0, len(true), CHUNK):
        chunk = slice(start, start + CHUNK)
        fitted = slice(start, start + (CHUNK if first is None else first))
        turn, factor, move = fit(pred[fitted].reshape(-1, 3), true[fitted].reshape(-1, 3), scale)
        errors.append(np.linalg.norm(factor * pred[chunk] @ turn + move - true[chunk], axis=-1))
    return MM_PER_M * np.concatenate(errors) if errors else np.zeros(true.shape[:2])


def fit(source: Points, target: Points, scale: bool) -> tuple[F64, float, F64]:
    """The rotation (3, 3) from the right, factor and shift (3,) that bring (N, 3) closest to `target`."""
    middle, goal = source.mean(axis=0, dtype=np.float64), target.mean(axis=0, dtype=np.float64)
    source, target = source - middle, target - goal
    turn = best_rotation(source.T.astype(np.float64) @ target)
    size = float((source**2).sum())
    factor = float(((source @ turn) * target).sum() / size) if scale and size > 0 else 1.0
    return turn, factor, goal - factor * middle @ turn


def root_path_errors(pred: Points, true: Points) -> F64:
    """(T,) RTE, % of the length of the true path (T, 3), after one rigid alignment; NaN for who does not move."""
    turn, factor, move = fit(pred, true, scale=False)
    length = np.linalg.norm(np.diff(true, axis=0), axis=-1).sum()
    error = np.linalg.norm(factor * pred @ turn + move - true, axis=-1)
    return 100 * error / length if length > 0 else np.full(len(true), np.nan)


def jitter(pred: Points, fps: float) -> F64:
    """(T - 3,) mean over joints of the third derivative of the motion, in 10 m/s^3; there is no truth in it."""
    result: F64 = np.linalg.norm(np.diff(pred.astype(np.float64), n=3, axis=0), axis=-1).mean(axis=-1) * fps**3 / 10
    return result


def foot_slides(pred: Points, true: Points) -> F64:
    """(N,) FS-ankle, mm: the steps of the predicted ankles (T, 2, 3) between frames where the true ones stand still."""
    still = np.linalg.norm(np.diff(true, axis=0), axis=-1) < STILL
    result: F64 = MM_PER_M * np.linalg.norm(np.diff(pred.astype(np.float64), axis=0), axis=-1)[still]
    return result


def penetrations(heights: Points) -> F64:
    """(T,) mm: how deep the lowest of the soles (T, 2) m is below the floor, 0 where it is not."""
    result: F64 = MM_PER_M * np.maximum(-heights.min(axis=1), 0)
    return result


def floats(heights: Points) -> F64:
    """(T,) mm: how far the lowest of the soles (T, 2) m is above the floor, 0 where it is not. Jumps float truly."""
    result: F64 = MM_PER_M * np.maximum(heights.min(axis=1), 0)
    return result


def angle_between(a: Points, b: Points) -> float:
    """Degrees between two directions (3,)."""
    cross, dot = np.linalg.norm(np.cross(a, b)), float(np.dot(a, b))
    return float(np.degrees(np.arctan2(cross, dot)))


def f1_counts(pred: Mask, true: Mask) -> NDArray[np.int64]:
    """(3,) true positives, false positives, false negatives."""
    return np.array([(pred & true).sum(), (pred & ~true).sum(), (~pred & true).sum()])


def f1_score(counts: NDArray[np.int64]) -> float:
    """F1 of summed `f1_counts`; NaN where there is nothing to find and nothing was found."""
    hit, false, missed = counts.tolist()
    return 2 * hit / (2 * hit + false + missed) if hit + false + missed else float("nan")


def bone_variation(joints: Points) -> F64:
    """(16,) mm: the standard deviation over time of each bone's length of (T, 17, 3) m."""
    parents, children = np.array(H36M17.edges).T
    lengths = np.linalg.norm(joints[:, children].astype(np.float64) - joints[:, parents], axis=-1)
    result: F64 = MM_PER_M * lengths.std(axis=0)
    return result
