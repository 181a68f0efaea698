"""The 21 points of a hand, and the hands of people as plain arrays.

Order and names are those of COCO-WholeBody, OpenPose and MediaPipe: the wrist, then four points of each finger from
the palm to the tip. Arrays have the shape (P, 2, 21, ...): P people, left and right side, points.
"""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.structures.columns import ColumnSet, column
from pose.structures.skeletons import HANDS

F32 = NDArray[np.float32]
Value = TypeVar("Value", bound=np.generic)

SIDES = ("left", "right")
POINTS = 21
FINGERS = ("thumb", "index", "middle", "ring", "little")
LEFT_NAMES, RIGHT_NAMES = HANDS[:POINTS], HANDS[POINTS:]
WRIST, INDEX_KNUCKLE, MIDDLE_KNUCKLE, RING_KNUCKLE, LITTLE_KNUCKLE = 0, 5, 9, 13, 17
# (parent, child) of every bone: five chains of four bones from the wrist.
BONES = tuple(
    (WRIST if point == 0 else 4 * finger + point, 4 * finger + point + 1) for finger in range(5) for point in range(4)
)
_MIDDLE = np.array([WRIST, 9, 10, 11, 12])  # the chain that defines the length of the hand

# Joints of Human3.6M-17: elbow and wrist of each side.
ELBOWS, WRISTS = (12, 15), (13, 16)
# Ratio of the length of a hand (wrist to tip of the middle finger) to that of a forearm (elbow to wrist), which are
# 0.108 and 0.146 of the stature. Source: Drillis and Contini 1966, in Winter, Biomechanics and Motor Control of Human
# Movement.
HAND_PER_FOREARM = 0.108 / 0.146


# Radius of the 68 % interval of each point in hand lengths, relative to the wrist; measured on the first half of one
# clip of one hand (benchmarks.cameras hands).
SIGMA = np.array(
    [
        0,
        0.10,
        0.15,
        0.17,
        0.19,
        0.20,
        0.30,
        0.29,
        0.27,
        0.18,
        0.32,
        0.24,
        0.11,
        0.21,
        0.29,
        0.19,
        0.09,
        0.20,
        0.26,
        0.16,
        0.09,
    ],
    np.float32,
)


@dataclass(frozen=True, slots=True)
class Hands(ColumnSet):
    """The hands of P people in one frame, left or right as the 2D estimator says, before any repair."""

    # (P, 2, 21, 2) px in the image. Axis 1 is left, right hand, here and below
    points: F32 = column("hand_keypoints", (2, POINTS, 2), unit="px", space="image", limits=(-1e7, 1e7), part="hands")
    # (P, 2, 21) probability that the hand is visible; 0 for undetected hands and points outside the image
    scores: F32 = column("hand_scores", (2, POINTS), limits=(0, 1), part="hands")
    # (P, 2, 21, 3) m relative to the wrist, in camera axes (x right, y down, z forward). Shapes from one camera have
    # the size that the network assumes; shapes measured by several cameras have their true size.
    shapes: F32 = column("", (2, POINTS, 3), unit="m", space="camera")
    # (P, 2, 21) mm, radius around each point that contains the true point with a probability of 68 %, for shapes
    # measured by several cameras; NaN for shapes from one camera. None if there is only one camera.
    sigma: F32 | None = column("", (2, POINTS), unit="mm", fill=math.nan, nullable=True, optional=True)

    def __post_init__(self) -> None:
        self.check_columns()

    @property
    def detected(self) -> NDArray[np.bool_]:
        """(P, 2) whether the left and the right hand of each person is detected."""
        return np.asarray((self.scores > 0).any(axis=2))


def lengths(shapes: F32) -> F32:
    """Return the length (...,) m of hands (..., 21, 3) m, from the wrist along the middle finger to its tip."""
    steps = np.diff(shapes[..., _MIDDLE, :], axis=-2)
    return np.asarray(np.linalg.norm(steps, axis=-1).sum(axis=-1), np.float32)


def sigma_of(hands: Hands, joints: F32, swapped: NDArray[np.bool_]) -> F32:
    """Return the radius (P, 2, 21) mm around each hand point that contains the true one with a probability of 68 %.

    It is relative to the wrist, for hands (P, 2, 21, 3) m of `sized_to_body`; NaN if unknown. For one camera, it is a
    fixed fraction of the hand's length for each point, measured in docs/studies/hands.md. `swapped` is that of
    `sized_to_body`.
    """
    sigma = np.asarray(1000 * lengths(joints)[..., None] * SIGMA, np.float32)
    if hands.sigma is None:
        return sigma
    measured = swapped_with_arms(hands.sigma, swapped)
    return np.where(np.isfinite(measured) & np.isfinite(sigma), measured, sigma)


def swapped_with_arms(values: NDArray[Value], swapped: NDArray[np.bool_]) -> NDArray[Value]:
    """Swap the hands (P, 2, ...) of people whose arms were swapped. A second call restores the original order."""
    turned = swapped[:, 1].reshape(-1, *[1] * (values.ndim - 1))
    return np.where(turned, values[:, ::-1], values)


def sized_to_body(hands: Hands, joints: F32, swapped: NDArray[np.bool_]) -> F32:
    """Scale hands to the size of lifted people (P, 17, 3) m, and assign them to the lifted arms.

    The length of a hand becomes `HAND_PER_FOREARM` times that of the forearm, unless several cameras measured it.
    `swapped` (P, 2): repair swapped legs and arms, and hands with the arms. Returns left and right hand (P, 2, 21, 3) m
    relative to the lifted wrist, in camera axes (x right, y down, z forward); NaN for undetected hands.
    """
    shapes, seen = swapped_with_arms(hands.shapes, swapped), swapped_with_arms(hands.detected, swapped)
    forearms = np.linalg.norm(joints[:, WRISTS] - joints[:, ELBOWS], axis=-1).mean(axis=1, keepdims=True)
    own = lengths(shapes)
    factor = HAND_PER_FOREARM * forearms / np.where(own > 0, own, 1)
    if hands.sigma is not None:  # includes hands that the camera of the 2D points does not see
        factor = np.where(np.isfinite(swapped_with_arms(hands.sigma, swapped)).all(axis=2), 1.0, factor)
        seen = own > 0
    seen = seen & (own > 0) & np.isfinite(factor)
    return np.where(seen[..., None, None], shapes * factor[..., None, None], np.nan).astype(np.float32)
