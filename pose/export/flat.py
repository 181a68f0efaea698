"""The 2D keypoints of a result, frame after frame, in the joint sets of other programs."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.export.tracks import CHUNK, Recording
from pose.skeletons import Skeleton
from pose.types import F32, I64

# OpenPose's BODY_25; neck and middle of the hips are midpoints. Source: its documentation of the output format.
BODY_25 = (
    "nose", "neck", "right_shoulder", "right_elbow", "right_wrist", "left_shoulder", "left_elbow", "left_wrist",
    "middle_hip", "right_hip", "right_knee", "right_ankle", "left_hip", "left_knee", "left_ankle", "right_eye",
    "left_eye", "right_ear", "left_ear", "left_big_toe", "left_small_toe", "left_heel", "right_big_toe",
    "right_small_toe", "right_heel",
)  # fmt: skip
MIDPOINTS = {"neck": ("left_shoulder", "right_shoulder"), "middle_hip": ("left_hip", "right_hip")}
_BLAZEPOSE_TOES = {"left_big_toe": "left_foot_index", "right_big_toe": "right_foot_index"}


@dataclass(frozen=True, slots=True)
class People2D:
    """The chosen people of one frame. frame: its index in the result. points: (P, K, 3) x px, y px, score; 0, 0, 0 for
    a joint that is not seen or that the estimator does not know. boxes: (P, 4) xyxy px.
    """

    frame: int
    ids: I64
    points: F32
    boxes: F32
    scores: F32


def frames(recording: Recording, people: list[int], names: tuple[str, ...]) -> Iterator[People2D]:
    """Every frame of the recording, also those without anybody."""
    table = recording.table
    pick = _Picker(table.skeleton, names)
    for start in range(0, len(recording.frames), CHUNK):
        numbers = recording.frames[start : start + CHUNK]
        first, last = np.searchsorted(table.frame_index, [numbers[0], numbers[-1] + 1])
        rows = first + np.flatnonzero(np.isin(table.id[first:last], people))
        points = pick(np.asarray(table.keypoints[rows]), np.asarray(table.scores[rows]))
        edges = np.searchsorted(table.frame_index[rows], [*numbers, numbers[-1] + 1]).tolist()
        ids, boxes, scores = table.id[rows], table.box[rows], table.box_score[rows]
        for number, low, high in zip(numbers.tolist(), edges[:-1], edges[1:], strict=True):
            part = slice(low, high)
            yield People2D(number, ids[part], points[part], boxes[part], scores[part])
        recording.release()


class _Picker:
    """Keypoints (N, J, 2) and scores (N, J) -> (N, K, 3) of the named joints."""

    def __init__(self, skeleton: Skeleton, names: tuple[str, ...]) -> None:
        sources = [self._sources(skeleton, name) for name in names]
        self._known = np.array([bool(source) for source in sources])
        self._first = np.array([source[0] if source else 0 for source in sources])
        self._second = np.array([source[-1] if source else 0 for source in sources])

    def _sources(self, skeleton: Skeleton, name: str) -> list[int]:
        for choice in ((name,), (_BLAZEPOSE_TOES.get(name, name),), MIDPOINTS.get(name, ())):
            if choice and all(joint in skeleton.names for joint in choice):
                return [skeleton.index(joint) for joint in choice]
        return []

    def __call__(self, keypoints: F32, scores: F32) -> F32:
        one, two = self._first, self._second
        score = np.minimum(scores[:, one], scores[:, two])
        points = np.concatenate([(keypoints[:, one] + keypoints[:, two]) / 2, score[..., None]], axis=2)
        seen: NDArray[np.bool_] = np.isfinite(points).all(axis=2) & (score > 0) & self._known
        return np.where(seen[..., None], points, 0).astype(np.float32)
