"""Errors of knee and elbow flexion, grouped by true angle.

Lifters tend to bend straight limbs and to straighten bent ones, because averaging over uncertain depths always gives a
bent limb. The mean error over all angles hides this bias, so errors are grouped by the true angle.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import H36M17
from pose.structures.types import F64

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
