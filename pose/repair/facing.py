"""Whether a person faces the camera, by their face, and whether left and right agree with that.

Some networks are less sure of eyes and nose where they see the back of a head, and no less sure of the ears; others
are sure of a face from everywhere, and then this says nothing. Toes below heels, growing and shrinking in the picture
and the lifter's sigma were measured too (docs/studies/repair.md).
"""

import functools

import numpy as np

from pose.skeletons import Skeleton
from pose.types import F32

_FACE, _EARS = ("nose", "left_eye", "right_eye"), ("left_ear", "right_ear")
_SIDES = (("left_shoulder", "left_hip"), ("right_shoulder", "right_hip"))
APART = 0.15  # of the trunk's length; with left and right closer in the picture nothing follows from the face
MOST = 0.3  # difference of scores that one frame can say at most
PLAIN = 0.15  # mean over a stretch of frames from which on the face contradicts an exchange


def face_speaks(scores: F32, skeleton: Skeleton) -> bool:
    """Whether in one frame, (J,), the face is seen so much better or worse than the ears that it says something."""
    rows = _rows(skeleton)
    return rows is not None and bool(abs(_sight(scores, rows)) >= PLAIN)


def face_agrees(keypoints: F32, scores: F32, skeleton: Skeleton) -> float:
    """How much the face agrees with the sides of the body: (T, J, 2) px, (T, J) -> from -`MOST` to `MOST`.

    A positive number says that left and right are where the face wants them, a negative one that they are exchanged, 0
    nothing. Who faces the camera has their left on the right of the picture.
    """
    rows = _rows(skeleton)
    if rows is None:
        return 0.0
    *_, left, right = rows
    frames, known = len(scores), np.all(scores[:, left + right] > 0, axis=-1)
    keypoints, scores = keypoints[known], scores[known]
    middle = (keypoints[:, left] + keypoints[:, right]) / 2  # of the shoulders, and of the hips
    trunk = np.maximum(np.linalg.norm(middle[:, 0] - middle[:, 1], axis=-1), 1)
    width = (keypoints[:, left, 0] - keypoints[:, right, 0]).mean(axis=-1) / trunk
    side = np.sign(width) * (np.abs(width) > APART)
    return float((side * np.clip(_sight(scores, rows), -MOST, MOST)).sum() / frames)


def _sight(scores: F32, rows: tuple[list[int], ...]) -> F32:
    """(...,) how much better nose and eyes are seen than the ears: scores (..., J)."""
    face, ears, *_ = rows
    return np.asarray(
        scores[..., face].sum(axis=-1) / len(face) - scores[..., ears].sum(axis=-1) / len(ears), np.float32
    )


@functools.cache
def _rows(skeleton: Skeleton) -> tuple[list[int], ...] | None:
    """Of nose and eyes, of the ears, of the left and of the right side; None without a face."""
    groups = (_FACE, _EARS, *_SIDES)
    if not all(name in skeleton.names for group in groups for name in group):
        return None
    return tuple([skeleton.index(name) for name in group] for group in groups)
