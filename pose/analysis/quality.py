"""The quality flag of a figure: frames seen, occlusion, sigma, frame rate, and the view on the plane of motion."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pose.analysis.figures import AMBER, GREEN, RED, worst
from pose.analysis.motion import Motion
from pose.skeletons import H36M17

F64 = NDArray[np.float64]

LEGS = tuple(f"{side}_{joint}" for side in ("left", "right") for joint in ("hip", "knee", "ankle"))
FEET = ("left_ankle", "right_ankle")
BODY = H36M17.names
SAGITTAL, FRONTAL = "sagittal", "frontal"

# Amber beyond the first threshold, red beyond the second.
SIGMA_MM = (80.0, 150.0)  # median of the joints
MISSING = (0.1, 0.3)  # share of the frames in which the person is not seen
OCCLUDED = (0.2, 0.5)  # share of joints and frames that the 2D does not show
VISIBLE_SCORE = 0.3  # a joint with a lower 2D score counts as occluded
VIEW_DEGREES = (35.0, 10.0)  # between the line of sight and the plane of motion: below, depth carries the motion


def quality(
    motion: Motion, start: float, end: float, joints: Sequence[str] = BODY,
    *, plane: str = "", rates: tuple[float, float] = (15.0, 4.0), few: str = "",
) -> tuple[str, str]:  # fmt: skip
    """Flag and reason of a figure.

    Args:
        motion: of the person.
        start: of the part of the video that the figure comes from, s.
        end: of that part, s.
        joints: that the figure is computed from.
        plane: 'sagittal' or 'frontal' where the figure is a motion in that plane.
        rates: frames/s below which the flag is amber, red.
        few: why there are too few observations; empty where there are enough.

    Returns:
        'green', 'amber' or 'red', and what keeps it from green.
    """
    rows = (motion.times >= start - 1e-6) & (motion.times <= end + 1e-6)
    if not rows.any():
        return RED, "no frame of this part shows the person"
    columns = [H36M17.index(joint) for joint in joints]
    sigma = float(np.median(motion.sigma[rows][:, columns]))
    found = [
        (_above(sigma, SIGMA_MM), f"uncertain joints: sigma {sigma:.0f} mm"),
        (_above(-motion.rate, (-rates[0], -rates[1])), f"only {motion.rate:.0f} frames/s"),
        (AMBER if few else GREEN, few),
    ]
    if motion.visible is not None:
        shown = motion.visible[rows]
        missing = 1 - shown.any(axis=1).mean() * min(shown.shape[0] / max((end - start) * motion.rate, 1), 1)
        occluded = 1 - shown[shown.any(axis=1)][:, columns].mean() if shown.any() else 1.0
        found += [
            (_above(missing, MISSING), f"person not seen in {missing:.0%} of the frames"),
            (_above(occluded, OCCLUDED), f"{occluded:.0%} of the joints occluded"),
        ]
    if plane and motion.camera is not None:
        angle = view_angle(motion, rows, plane)
        found.append(
            (_above(-angle, (-VIEW_DEGREES[0], -VIEW_DEGREES[1])), f"{plane} plane seen at {angle:.0f} degrees")
        )
    return worst([one for one, _ in found]), "; ".join(reason for one, reason in found if one != GREEN)


def view_angle(motion: Motion, rows: NDArray[np.bool_], plane: str) -> float:
    """Median angle between the line of sight and the body's plane of motion, degrees: 90 is a full view of it."""
    assert motion.camera is not None
    sight = motion.joint("pelvis")[rows] - motion.camera
    sight /= np.maximum(np.linalg.norm(sight, axis=1, keepdims=True), 1e-9)
    forward = motion.facing[rows]
    left = np.stack([forward[:, 2], np.zeros(len(forward)), -forward[:, 0]], axis=1)
    normal = left if plane == SAGITTAL else forward
    share = np.abs((sight * normal).sum(axis=1))
    return float(np.median(np.degrees(np.arcsin(np.clip(share, 0, 1)))))


def _above(value: float, thresholds: tuple[float, float]) -> str:
    return RED if value > thresholds[1] else AMBER if value > thresholds[0] else GREEN
