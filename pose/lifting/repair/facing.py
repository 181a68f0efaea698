"""Orientation of a person from the scores of the face, and its agreement with left and right.

With some networks, the scores of eyes and nose are lower than those of the ears if the person faces away. Other
networks give high scores from all sides, so that there is no evidence. Three other cues were tested too: toes below
heels, the change of size in the image, and the lifter's sigma (docs/studies/repair.md).
"""

import functools

import numpy as np

from pose.structures.skeletons import Skeleton
from pose.structures.types import F32

_FACE, _EARS = ("nose", "left_eye", "right_eye"), ("left_ear", "right_ear")
_SIDES = (("left_shoulder", "left_hip"), ("right_shoulder", "right_hip"))
MIN_SIDE_DISTANCE = 0.15  # minimum distance of left and right that is evidence, relative to the trunk's length
MAX_SCORE_DIFFERENCE = 0.3  # limit of the evidence of one frame
MIN_FACE_EVIDENCE = 0.15  # minimum absolute evidence, mean over frames, that decides


def has_face_evidence(scores: F32, skeleton: Skeleton) -> bool:
    """Return whether the scores (J,) of face and ears in one frame differ enough to show the orientation."""
    rows = _rows(skeleton)
    return rows is not None and bool(abs(_face_minus_ears(scores, rows)) >= MIN_FACE_EVIDENCE)


def face_agreement(keypoints: F32, scores: F32, skeleton: Skeleton) -> float:
    """Return how well the face's scores agree with left and right, averaged: negative if swapped, 0 if unknown."""
    # A person who faces the camera has the left side on the right of the image.
    rows = _rows(skeleton)
    if rows is None:
        return 0.0
    *_, left, right = rows
    frames, known = len(scores), np.all(scores[:, left + right] > 0, axis=-1)
    keypoints, scores = keypoints[known], scores[known]
    middle = (keypoints[:, left] + keypoints[:, right]) / 2  # midpoints of the shoulders and of the hips
    trunk = np.maximum(np.linalg.norm(middle[:, 0] - middle[:, 1], axis=-1), 1)
    width = (keypoints[:, left, 0] - keypoints[:, right, 0]).mean(axis=-1) / trunk
    side = np.sign(width) * (np.abs(width) > MIN_SIDE_DISTANCE)
    return float(
        (side * np.clip(_face_minus_ears(scores, rows), -MAX_SCORE_DIFFERENCE, MAX_SCORE_DIFFERENCE)).sum() / frames
    )


def _face_minus_ears(scores: F32, rows: tuple[list[int], ...]) -> F32:
    """Return the mean score of nose and eyes minus that of the ears, (...,), for scores (..., J)."""
    face, ears, *_ = rows
    return np.asarray(
        scores[..., face].sum(axis=-1) / len(face) - scores[..., ears].sum(axis=-1) / len(ears), np.float32
    )


@functools.cache
def _rows(skeleton: Skeleton) -> tuple[list[int], ...] | None:
    """Return the joint indices of nose and eyes, ears, left side and right side; None if the skeleton has no face."""
    groups = (_FACE, _EARS, *_SIDES)
    if not all(name in skeleton.names for group in groups for name in group):
        return None
    return tuple([skeleton.index(name) for name in group] for group in groups)
