"""The quality flag of a metric.

It depends on the number of frames, occlusion, sigma, the frame rate, and the view of the plane of motion.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.analysis.metrics import AMBER, GREEN, RED, Metric, worst
from pose.analysis.motion import Motion
from pose.skeletons import H36M17

F64 = NDArray[np.float64]

LEGS = tuple(f"{side}_{joint}" for side in ("left", "right") for joint in ("hip", "knee", "ankle"))
FEET = ("left_ankle", "right_ankle")
BODY = H36M17.names
SAGITTAL, FRONTAL = "sagittal", "frontal"

# Amber beyond the first threshold, red beyond the second.
SIGMA_MM = (80.0, 150.0)  # median sigma of the joints
MISSING = (0.1, 0.3)  # fraction of frames without the person
OCCLUDED = (0.2, 0.5)  # fraction of the joints in all frames that are occluded
VISIBLE_SCORE = 0.3  # a joint with a lower 2D score counts as occluded
# angle between the line of sight and the plane of motion; below, the motion is mostly in depth
VIEW_DEGREES = (35.0, 10.0)
WIDE = (0.5, 1.0)  # half of the interval relative to the value
WIDE_DEGREES = (15.0, 30.0)  # half of the interval of an angle that may have either sign
WIDE_SHARE = (0.5, 1.0)  # width of the interval of a share
# Words in the names of metrics that may have either sign. Their intervals are not compared with their values.
SIGNED = ("asymmetry", "less", "valgus", "smoothness")


def quality(
    motion: Motion, start: float, end: float, joints: Sequence[str] = BODY,
    *, plane: str = "", rates: tuple[float, float] = (15.0, 4.0), few: str = "",
) -> tuple[str, str]:  # fmt: skip
    """Rate a metric by the data from which it is computed.

    Args:
        motion: Motion of the person.
        start: Start of the analysed part of the video, s.
        end: End of that part, s.
        joints: Joints from which the metric is computed.
        plane: 'sagittal' or 'frontal' if the metric is a motion in that plane, else empty.
        rates: Frame rates below which the flag is amber and red, frames/s.
        few: Reason why there are too few observations; empty if there are enough.

    Returns:
        'green', 'amber' or 'red', and the reason if it is not green.
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
        side = "side" if plane == SAGITTAL else "front"
        text = f"not filmed from the {side}, {plane} plane seen at {angle:.0f} degrees"
        found.append((_above(-angle, (-VIEW_DEGREES[0], -VIEW_DEGREES[1])), text))
    return worst([one for one, _ in found]), "; ".join(reason for one, reason in found if one != GREEN)


def with_range(figure: Metric) -> Metric:
    """Return the metric, with a worse quality flag if its 95 % interval is wide."""
    half = (figure.high - figure.low) / 2
    if figure.unit == "share":
        flag = _above(2 * half, WIDE_SHARE)
    elif figure.unit == "score":
        flag = GREEN
    elif any(word in figure.name for word in SIGNED):
        flag = _above(half, WIDE_DEGREES) if figure.unit == "degrees" else GREEN
    else:
        flag = _above(half, (WIDE[0] * abs(figure.value), WIDE[1] * abs(figure.value)))
    doubt = "; ".join(filter(None, (figure.doubt, "wide range" if flag != GREEN else "")))
    return replace(figure, quality=worst([figure.quality, flag]), doubt=doubt)


def view_angle(motion: Motion, rows: NDArray[np.bool_], plane: str) -> float:
    """Return the median angle between the line of sight and the body's plane of motion, degrees.

    90 is the best view; at 0 the motion is along the line of sight.

    Args:
        motion: Motion of the person; its camera position must be known.
        rows: (T,) whether a frame counts.
        plane: 'sagittal' or 'frontal'.
    """
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
