"""The 468 points of a face, and the faces of people as plain arrays.

The points are those of MediaPipe's face mesh, in its order. In shapes, P is the number of people. There is no
face recognition. Sources of the point indices: Kartynnik et al., Real-time Facial Surface Geometry from Monocular Video
on Mobile GPUs, 2019, arXiv:1907.06724, and the connections of MediaPipe 0.10.21 (Apache-2.0).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.columns import ColumnSet, column

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

POINTS = 468
NOSE_TIP = 1
RIGHT_EYE, LEFT_EYE = (33, 133), (263, 362)  # outer and inner corner
FOREHEAD, CHIN = 10, 152
# Corresponding points on the person's right and left; lines between them are parallel on any face.
_PAIRS = np.array(
    [(33, 263), (133, 362), (127, 356), (234, 454), (132, 361), (172, 397), (61, 291), (105, 334), (98, 327)]
)
# Upper and lower lid, at three positions.
_RIGHT_LIDS, _LEFT_LIDS = ((159, 145), (158, 153), (160, 144)), ((386, 374), (385, 380), (387, 373))
_RIGHT_BROW, _LEFT_BROW = 105, 334
_LIPS, _MOUTH = (13, 14), (61, 291)  # inner edges of upper and lower lip; corners

# Lines for drawing: oval, lips and eyes are closed, brows are open.
CONTOURS = (
    (10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377, 152, 148, 176, 149, 150,
     136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109, 10),
    (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185, 61),
    (78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 415, 310, 311, 312, 13, 82, 81, 80, 191, 78),
    (263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466, 263),
    (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246, 33),
    (70, 63, 105, 66, 107),
    (300, 293, 334, 296, 336),
)  # fmt: skip

ANGLES = ("yaw", "pitch", "roll")
MEASURES = ("left_eye_open", "right_eye_open", "left_brow", "right_brow", "mouth_open", "mouth_width")


@dataclass(frozen=True, slots=True)
class Faces(ColumnSet):
    """The faces of P people in one frame."""

    # (P, 468, 3) px: x and y in the image, and depth in px from the centre of the head, positive away from the camera.
    points: F32 = column("face_keypoints", (POINTS, 3), unit="px", space="image", limits=(-1e7, 1e7), part="faces")
    # (P,) probability that the points lie on a face; 0 for people without a detected face
    scores: F32 = column("face_scores", limits=(0, 1), part="faces")

    def __post_init__(self) -> None:
        self.check_columns()

    @property
    def detected(self) -> NDArray[np.bool_]:
        """(P,) whether a face is detected."""
        return np.asarray(self.scores > 0)


def head_turns(points: NDArray[np.floating]) -> F64:
    """Compute head rotations (..., 3, 3) relative to the line of sight, from points (..., 468, 3) px.

    They turn head axes (to the person's left, up, out of the face) to camera axes (x right, y up, z towards the
    camera). A face that looks into the camera, with forehead and chin at equal depth, has the identity.
    """
    flipped = np.asarray(points, np.float64) * (1, -1, -1)
    left = _unit((flipped[..., _PAIRS[:, 1], :] - flipped[..., _PAIRS[:, 0], :]).sum(axis=-2))
    up = flipped[..., FOREHEAD, :] - flipped[..., CHIN, :]
    up = _unit(up - (up * left).sum(axis=-1, keepdims=True) * left)
    return np.stack([left, up, np.cross(left, up)], axis=-1)


def head_angles(points: NDArray[np.floating]) -> F64:
    """Return yaw, pitch and roll (..., 3) in degrees of heads (..., 468, 3) px relative to the line of sight."""
    turns = head_turns(points)
    yaw = np.arctan2(turns[..., 0, 2], turns[..., 2, 2])
    pitch = np.arcsin(np.clip(turns[..., 1, 2], -1, 1))
    roll = np.arctan2(-turns[..., 1, 0], turns[..., 1, 1])
    angles: F64 = np.degrees(np.stack([yaw, pitch, roll], axis=-1))
    return angles


def measures(points: NDArray[np.floating]) -> F64:
    """Measure (..., 6) ratios of points (..., 468, 3) px, in the order of `MEASURES`.

    They are the openness of the left and the right eye, the height of the left and the right brow above the centre of
    the eye, and openness and width of the mouth. Those of eyes and brows are relative to the width of the eye, those of
    the mouth to the distance between the outer corners of both eyes. All distances are in 3D, so they do not depend on
    the rotation of the head.
    """
    p = np.asarray(points, np.float64)

    def distance(a: int, b: int) -> F64:
        return _length(p[..., a, :] - p[..., b, :])

    def eye(lids: tuple[tuple[int, int], ...], corners: tuple[int, int]) -> F64:
        opened: F64 = np.mean([distance(*pair) for pair in lids], axis=0) / distance(*corners)
        return opened

    def brow(point: int, corners: tuple[int, int]) -> F64:
        middle = (p[..., corners[0], :] + p[..., corners[1], :]) / 2
        height: F64 = _length(p[..., point, :] - middle) / distance(*corners)
        return height

    eyes = distance(RIGHT_EYE[0], LEFT_EYE[0])
    return np.stack(
        [
            eye(_LEFT_LIDS, LEFT_EYE),
            eye(_RIGHT_LIDS, RIGHT_EYE),
            brow(_LEFT_BROW, LEFT_EYE),
            brow(_RIGHT_BROW, RIGHT_EYE),
            distance(*_LIPS) / eyes,
            distance(*_MOUTH) / eyes,
        ],
        axis=-1,
    )


def _length(vectors: F64) -> F64:
    return np.asarray(np.maximum(np.linalg.norm(vectors, axis=-1), 1e-9), np.float64)


def _unit(vectors: F64) -> F64:
    return np.asarray(vectors / _length(vectors)[..., None], np.float64)
