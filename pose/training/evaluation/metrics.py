"""Error measures of 3D poses: vectorised, float64, in millimetres.

`pred` and `true` are (..., T, J, 3) in metres, in the same coordinate frame. Published tables use root-relative poses
(see `root_relative`). `valid` is (..., T), True where a frame has ground truth. By default, frames without NaN in the
ground truth are valid. Invalid frames are excluded from every mean; a mean over no frames is NaN. A NaN in a prediction
for a valid frame makes the result NaN.

The `*_errors` functions return one distance per frame and joint, from which any average (action, joint, camera) can be
computed. Functions with short names, such as `mpjpe`, return the mean. Velocity and acceleration are in mm/frame and
mm/frame^2 at any frame rate, as in all published tables.

Lifters tend to bend straight limbs and to straighten bent ones, because averaging over uncertain depths always gives a
bent limb. The mean error over all angles hides this bias, so errors are grouped by the true angle.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from pose.structures.alignment import fit_scale, similarity_residuals
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, Flags

Poses = NDArray[np.floating]
Array = TypeVar("Array", bound=Poses)

MM_PER_M = 1000.0
# The samples of the curve in the test script of MPI-INF-3DHP: 0, 5, ..., 150 mm. The last is the threshold of PCK.
AUC_THRESHOLDS_MM = np.arange(0.0, 151.0, 5.0)


def root_relative(poses: Array, root: int = 0) -> Array:
    """Translate poses (..., J, 3) so that joint number `root` is at the origin."""
    return cast(Array, poses - poses[..., root : root + 1, :])


def position_errors(pred: Poses, true: Poses) -> F64:
    """Return the distance between predicted and true joints (..., T, J, 3) m, (..., T, J) in mm."""
    return _norm_mm(np.subtract(pred, true, dtype=np.float64))


def scaled_errors(pred: Poses, true: Poses) -> F64:
    """Return joint errors (..., T, J) in mm after the least-squares scaling of each frame about the origin."""
    # Defined by H. Rhodin et al., "Unsupervised geometry-aware representation for 3D human pose estimation", ECCV 2018.
    return _norm_mm(fit_scale(pred, true)[..., None, None] * pred - true)


def aligned_errors(pred: Poses, true: Poses) -> F64:
    """Return joint errors (..., T, J) in mm after Procrustes alignment of each frame, without reflections."""
    return _norm_mm(similarity_residuals(pred, true))


def velocity_errors(pred: Poses, true: Poses) -> F64:
    """Return the magnitude of the velocity error of each joint, (..., T - 1, J) in mm/frame."""
    return _norm_mm(np.diff(np.subtract(pred, true, dtype=np.float64), axis=-3))


def acceleration_errors(pred: Poses, true: Poses) -> F64:
    """Return the magnitude of the acceleration error of each joint, (..., T - 2, J) in mm/frame^2."""
    error = np.subtract(pred, true, dtype=np.float64)
    return _norm_mm(error[..., 2:, :, :] - 2 * error[..., 1:-1, :, :] + error[..., :-2, :, :])


def frames_with_truth(true: Poses) -> Flags:
    """Return a mask (..., T), True for frames in which all joints of `true` (..., T, J, 3) are finite."""
    return np.asarray(np.isfinite(true).all(axis=(-2, -1)))


def consecutive(valid: Flags, frames: int) -> Flags:
    """Return a mask (..., T - frames + 1), True where a run of `frames` valid frames (..., T) starts."""
    if valid.shape[-1] < frames:
        return valid[..., :0]
    return np.asarray(np.lib.stride_tricks.sliding_window_view(valid, frames, axis=-1).all(axis=-1))


def mpjpe(pred: Poses, true: Poses, valid: Flags | None = None) -> float:
    """Return the mean per-joint position error (protocol 1) in mm of poses (..., T, J, 3) m as they are given."""
    pred, true = _counted(pred, true, valid)
    return _mean(position_errors(pred, true))


def p_mpjpe(pred: Poses, true: Poses, valid: Flags | None = None) -> float:
    """Return the mean error in mm after Procrustes alignment of every frame (protocol 2)."""
    pred, true = _counted(pred, true, valid)
    return _mean(aligned_errors(pred, true))


def n_mpjpe(pred: Poses, true: Poses, valid: Flags | None = None) -> float:
    """Return the mean error in mm after the least-squares scaling of every frame about the origin."""
    pred, true = _counted(pred, true, valid)
    return _mean(scaled_errors(pred, true))


def mpjve(pred: Poses, true: Poses, valid: Flags | None = None) -> float:
    """Return the mean velocity error in mm/frame, over pairs of consecutive valid frames."""
    valid = frames_with_truth(true) if valid is None else valid
    return _mean(velocity_errors(pred, true)[consecutive(valid, 2)])


def accel_error(pred: Poses, true: Poses, valid: Flags | None = None) -> float:
    """Return the mean acceleration error in mm/frame^2, over triples of consecutive valid frames."""
    valid = frames_with_truth(true) if valid is None else valid
    return _mean(acceleration_errors(pred, true)[consecutive(valid, 3)])


def counts_below(errors: NDArray[np.floating]) -> NDArray[np.int64]:
    """Count the joint errors (mm, NaN not counted) below 0, 5, ..., 150 mm, (31,), for `pck` and `auc`."""
    bins = len(AUC_THRESHOLDS_MM)
    floors = np.fmin(errors.ravel() / AUC_THRESHOLDS_MM[1], bins - 1).astype(np.int64)
    return np.concatenate([[0], np.cumsum(np.bincount(floors, minlength=bins))[: bins - 1]])


def pck(below: NDArray[np.int64], errors: int) -> float:
    """Return the percentage of correct keypoints (PCK), errors below 150 mm; NaN without errors."""
    return 100.0 * float(below[-1]) / errors if errors else float("nan")


def auc(below: NDArray[np.int64], errors: int) -> float:
    """Return the area under the PCK curve: the mean PCK in percent over 0, 5, ..., 150 mm; NaN without errors."""
    return 100.0 * float(below.mean()) / errors if errors else float("nan")


def _counted(pred: Poses, true: Poses, valid: Flags | None) -> tuple[Poses, Poses]:
    """Return the valid frames of `pred` and `true`, each as (N, J, 3)."""
    if pred.shape != true.shape:
        raise ValueError(f"pred and true must have the same shape, got {pred.shape} and {true.shape}")
    valid = frames_with_truth(true) if valid is None else valid
    return pred[valid], true[valid]


def _mean(errors: F64) -> float:
    return float(errors.mean()) if errors.size else float("nan")


def _norm_mm(difference: F64) -> F64:
    # np.linalg.norm over an axis of three is four times slower.
    square = difference * difference
    return MM_PER_M * np.sqrt(square[..., 0] + square[..., 1] + square[..., 2])


EDGES = (0.0, 8.0, 15.0, 30.0, 60.0, 90.0, 180.0)
"""Degrees of true flexion between which errors are averaged; a bin holds its lower edge."""

LIMBS = {"knee": ("hip", "knee", "ankle"), "elbow": ("shoulder", "elbow", "wrist")}
AngleTable = dict[str, list[dict[str, float | None]]]


def flexion(joints: NDArray[np.floating], joint: str) -> F64:
    """Return the flexion (..., 2) in degrees of right and left "knee" or "elbow"; 0 is straight, NaN unknown."""
    start, middle, end = ([H36M17.names.index(f"{side}_{part}") for side in ("right", "left")] for part in LIMBS[joint])
    points = np.asarray(joints, np.float64)
    near, far = points[..., middle, :] - points[..., start, :], points[..., end, :] - points[..., middle, :]
    known = (np.abs(near).max(axis=-1) > 0) & (np.abs(far).max(axis=-1) > 0)
    # The arc tangent is exact near 0 and 180 degrees, unlike the arc cosine.
    angle = np.arctan2(np.linalg.norm(np.cross(near, far), axis=-1), (near * far).sum(axis=-1))
    return np.where(known, np.degrees(angle), np.nan)


@dataclass(slots=True)
class AngleErrors:
    """Accumulator of flexion errors by joint and bin of the true angle. Left and right limbs share the bins."""

    _sums: dict[str, F64] = field(default_factory=lambda: {joint: np.zeros((len(EDGES) - 1, 3)) for joint in LIMBS})

    def add(self, pred: NDArray[np.floating], true: NDArray[np.floating]) -> None:
        """Add the errors of poses (..., 17, 3) in any unit; limbs with an unknown true angle are skipped."""
        if pred.shape != true.shape:
            raise ValueError(f"pred and true must have the same shape, got {pred.shape} and {true.shape}")
        for joint, sums in self._sums.items():
            found, exact = flexion(pred, joint).ravel(), flexion(true, joint).ravel()
            found, exact = found[~np.isnan(exact)], exact[~np.isnan(exact)]
            bins = np.digitize(exact, EDGES[1:-1])
            for column, value in enumerate((np.ones_like(exact), np.abs(found - exact), found - exact)):
                sums[:, column] += np.bincount(bins, value, len(sums))

    def table(self) -> AngleTable:
        """Return for knee and elbow the errors in bins of the true angle; a positive bias is too much flexion."""
        return {joint: [_row(*edges, *sums) for edges, sums in zip(pairwise(EDGES), rows, strict=True)]
                for joint, rows in self._sums.items()}  # fmt: skip


def _row(above: float, below: float, count: float, error: float, bias: float) -> dict[str, float | None]:
    mean_error, mean_bias = (error / count, bias / count) if count else (None, None)
    return {"above": above, "below": below, "count": int(count), "error": mean_error, "bias": mean_bias}
