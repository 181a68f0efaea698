"""Checks of joint centres from markers: constant bone lengths, and symmetry."""

from dataclasses import dataclass

import numpy as np

from pose.structures.types import F64
from pose_datasets.mapping import POINTS
from pose_datasets.markers import LIMB_BONES, SIDES, hips_by_regression
from pose_datasets.vectors import norm


@dataclass(frozen=True, slots=True)
class Plausibility:
    """Plausibility of joint centres that were computed from optical markers."""

    bones: dict[str, float]  # standard deviation over time of the length of each limb bone, m, by name of the bone
    sides: float  # largest difference of left and right bone lengths, as a fraction of their mean
    hips: float  # distance of the hips from those of `hips_by_regression`, m: median over time, mean of left and right

    def __str__(self) -> str:
        bones = ", ".join(f"{bone} {1000 * deviation:.0f}" for bone, deviation in self.bones.items())
        return (
            f"bones vary by (mm) {bones}; sides differ by up to {100 * self.sides:.1f} %; "
            f"hips {1000 * self.hips:.0f} mm from the regression"
        )


def plausibility(markers: F64, points: F64) -> Plausibility:
    """Measure the plausibility of joint centres, computed with `rigid=False` from markers that were not moved."""
    seen = np.isfinite(points).all(axis=(1, 2))
    markers, points = markers[seen], points[seen]
    bones, sides = {}, []
    for name, (near, far) in LIMB_BONES.items():
        lengths = [
            norm(points[:, POINTS.index(f"{side}_{far}")] - points[:, POINTS.index(f"{side}_{near}")])
            for side, _, _ in SIDES
        ]
        bones[name] = max(float(length.std()) for length in lengths)
        left, right = map(np.median, lengths)
        sides.append(float(2 * abs(left - right) / max(left + right, 1e-9)))
    expected = hips_by_regression(markers)
    hips = [points[:, POINTS.index(f"{side}_hip")] for side, _, _ in SIDES]
    distances = [np.median(norm(hip - guess)) for hip, guess in zip(hips, expected, strict=True)]
    return Plausibility(bones, max(sides), float(np.mean(distances)))
