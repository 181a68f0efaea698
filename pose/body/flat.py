"""The 2D keypoints of a result, frame by frame, converted to the joint sets of other programs."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.body.digits import joined, merged, number, without_first
from pose.body.selection import CHUNK
from pose.body.tracks import Selection
from pose.results.cameras import result_cameras
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, I64, U8

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
    """2D poses of people in F frames: N rows, one per person and frame, sorted by frame, with K keypoints each."""

    frames: I64  # (F,) index of each frame in the result
    frame_starts: I64  # (F + 1,) index of the first row of each frame, then N
    rows_frame: I64  # (N,) frame index of each row
    ids: I64  # (N,) person id of each row
    points: F32  # (N, K, 3) x px, y px, score
    boxes: F32  # (N, 4) bounding boxes, xyxy px
    scores: F32  # (N,) score of each person
    hands: F32 | None = None  # (N, 2, 21, 3) x px, y px, score of left and right hand, 0, 0, 0 where not detected


def portions(recording: Selection, people: list[int], names: tuple[str, ...]) -> Iterator[People2D]:
    """Yield the 2D poses of all frames, also without people, in portions of a few thousand."""
    table = recording.table
    pick = _Picker(table.skeleton, names)
    begins = np.searchsorted(table.frame_index, [*recording.frames, recording.frames[-1] + 1])
    start = 0
    while start < len(recording.frames):
        end = min(start + CHUNK, int(np.searchsorted(begins, begins[start] + CHUNK, "right")) - 1)
        frames = recording.frames[start : max(end, start + 1)]
        start += len(frames)
        first, last = np.searchsorted(table.frame_index, [frames[0], frames[-1] + 1])
        rows = first + np.flatnonzero(np.isin(table.id[first:last], people))
        rows_frame = np.asarray(table.frame_index[rows])
        frame_starts = np.searchsorted(rows_frame, [*frames, frames[-1] + 1])
        points = pick(np.asarray(table.keypoints[rows]), np.asarray(table.scores[rows]))
        boxes, scores = table.box[rows], table.box_score[rows]
        yield People2D(frames, frame_starts, rows_frame, table.id[rows], points, boxes, scores, _hands(recording, rows))
        recording.release()


def _hands(recording: Selection, rows: I64) -> F32 | None:
    hands = recording.table.hand_rows(rows)
    if hands is None:
        return None
    points = np.concatenate([hands.points, hands.scores[..., None]], axis=-1)
    return np.where(hands.scores[..., None] > 0, points, 0).astype(np.float32)


def keypoints(points: F32) -> U8:
    """Format K points of N people (N, K, 3) as N texts (N, width) of x, y and score with commas, padded with NUL."""
    places, scores = merged(number(points[..., :2], 2, prefix=","), 2), number(points[..., 2], 3, prefix=",")
    return without_first(merged(joined(places, scores)))


def own_frames(recording: Selection) -> list[str]:
    """Return notes that name the camera of 2D keypoints and say that `--fps` does not resample them."""
    several = [
        f"of the first camera, {camera.name}; frames are numbered as in the result"
        for camera in result_cameras(recording.table.run)[:1]
    ]
    return several + (["the video's own frames: --fps resamples 3D alone"] if recording.timeline.resampled else [])


class _Picker:
    """Selector of K named joints, which converts keypoints (N, J, 2) and scores (N, J) to (N, K, 3)."""

    def __init__(self, skeleton: Skeleton, names: tuple[str, ...]) -> None:
        sources = [self._sources(skeleton, name) for name in names]
        self._available = np.array([bool(source) for source in sources])
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
        seen: NDArray[np.bool_] = np.isfinite(points).all(axis=2) & (score > 0) & self._available
        return np.where(seen[..., None], points, 0).astype(np.float32)
