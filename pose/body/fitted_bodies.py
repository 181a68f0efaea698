"""Characters (skinned body models) of tracked people, whose shapes are fitted while results arrive."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Generic, TypeVar

import numpy as np

from pose.body.character.heads import STREAM_S, SeenHeads, head_corrections
from pose.body.character.model import body_model
from pose.body.character.rest import Character, make_character
from pose.body.character.shape import fit_shape, lengths_of_body
from pose.body.gaze import directions_of
from pose.body.skeleton import fit_body
from pose.body.soles import StreamingSmoother, foot_frames_of
from pose.body.space import CAMERA_SPACE
from pose.structures.camera import Camera
from pose.structures.hand_points import WRISTS, sized_to_body
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, FrameResult
from pose.world.foot_points import extract_feet, foot_frames

Fitted = TypeVar("Fitted")

LIVE_PEOPLE = 4  # maximum number of people with a body in a live view; the nearest people are drawn
_MAX_SHAPE_FRAMES = 256  # number of frames to which a shape is fitted
_RECHECK_FACTOR = 4  # factor in the number of frames after which a shape is checked again
_MAX_LENGTH_CHANGE = 0.03  # relative change of a bone length after which the shape is fitted again
_MAX_PEOPLE = 64  # number of characters that are kept; those of the most recently seen people


@dataclass(slots=True)
class _Person(Generic[Fitted]):
    """Poses of a person so far, in the camera frame (x right, y up, z towards the camera), and the fitted character."""

    poses: list[F64]  # arrays of poses (n, 17, 3) m in the camera frame (x right, y up, z towards the camera)
    frame_count: int = 0  # number of frames so far
    checked: int = 0  # number of frames at the last check of the shape
    lengths: F64 | None = None  # bone lengths to which the shape was fitted, m
    fitted: Fitted | None = None  # object that `build` returned for the fitted character
    head: StreamingSmoother = field(default_factory=lambda: StreamingSmoother(STREAM_S))
    feet: StreamingSmoother = field(default_factory=lambda: StreamingSmoother(STREAM_S))


class FittedBodies(Generic[Fitted]):
    """Characters (skinned body models) of people by track id, with a mesh of few vertices.

    The shape of a character is fitted to the median bone lengths of a person's first frames. The lengths are computed
    again whenever the number of frames has quadrupled, up to 256. If a length has changed by more than 3 %, the shape
    is fitted again. The characters of the 64 people seen last are kept.
    """

    def __init__(self, build: Callable[[Character], Fitted]) -> None:
        """Start without people; `of` returns what `build` makes of a fitted character."""
        self._build = build
        self._people: dict[int, _Person[Fitted]] = {}

    def of(self, track_id: int, joints: F64) -> Fitted:
        """Add poses (n, 17, 3) m (y up, z to the camera), fit the character if needed; return the result of `build`."""
        person = self._people.pop(track_id, None) or _Person[Fitted]([])
        self._people[track_id] = person  # the last seen person is the last one
        for oldest in list(self._people)[:-_MAX_PEOPLE]:
            del self._people[oldest]
        if person.frame_count < _MAX_SHAPE_FRAMES:
            person.poses.append(joints[: _MAX_SHAPE_FRAMES - person.frame_count])
        person.frame_count += len(joints)
        due = person.checked < _MAX_SHAPE_FRAMES and person.frame_count >= _RECHECK_FACTOR * person.checked
        if person.fitted is None or due:
            person.checked = person.frame_count
            body, model = fit_body(person.poses), body_model("light")
            lengths = lengths_of_body(body)
            if person.lengths is None or (np.abs(lengths / person.lengths - 1) > _MAX_LENGTH_CHANGE).any():
                person.lengths = lengths
                person.fitted = self._build(make_character(model, fit_shape(model, lengths), body))
        assert person.fitted is not None
        return person.fitted

    def feet(
        self,
        track_id: int,
        observations: list[tuple[FrameResult, int]],
        joints: F32,
        camera: Camera,
        skeleton: Skeleton,
    ) -> F64:
        """Estimate smoothed directions (n, 2, 2, 3) of the feet of a person. Call `of` for the person first.

        `observations` are (result of the frame, index of the person) of n frames, `joints` (n, 17, 3) m in the camera
        frame. The unit vectors (x right, y up, z towards the camera) are, of left and right foot, from heel to toe and
        up from the sole.
        """
        keypoints, scores, focal = _observed(observations, camera)
        swapped = np.stack([result.poses.swapped[row] for result, row in observations])
        observed_feet = extract_feet(skeleton, keypoints, scores, swapped, focal)
        directions = foot_frames(joints.astype(np.float64), observed_feet, None, None) @ CAMERA_SPACE.rotation.T
        return foot_frames_of(self._people[track_id].feet.step(directions, _times(observations)))

    def heads(
        self,
        track_id: int,
        observations: list[tuple[FrameResult, int]],
        joints: F32,
        camera: Camera,
        skeleton: Skeleton,
    ) -> F64 | None:
        """Estimate smoothed rotations with which the lifted head fits the 2D of nose, eyes and ears; as for `feet`.

        They are rotation vectors (n, 3), rad, in the axes of the lifted head; None if the skeleton lacks these points.
        """
        keypoints, scores, focal = _observed(observations, camera)
        observed_heads = SeenHeads.of(skeleton, keypoints, scores, focal)
        if observed_heads is None:
            return None
        turns = head_corrections(CAMERA_SPACE.to_file(joints.astype(np.float64)), observed_heads)
        return self._people[track_id].head.step(turns, _times(observations))


def visible_rows(result: FrameResult, min_score: float) -> list[int]:
    """Return the indices, in the result's arrays, of people with a 3D pose and a keypoint score above `min_score`."""
    people, poses = result.people, result.poses
    visible = (people.scores > min_score).any(axis=1) & np.isfinite(poses.root).all(axis=1)
    visible &= np.isfinite(poses.joints).all(axis=(1, 2))
    rows: list[int] = np.flatnonzero(visible).tolist()
    return rows


def nearest_rows(result: FrameResult, rows: list[int]) -> list[int]:
    """Return the people nearest to the camera, at most `LIVE_PEOPLE` of `rows`, in ascending order."""
    return sorted(sorted(rows, key=lambda row: float(result.poses.root[row, 2]))[:LIVE_PEOPLE])


def hands_in(observations: list[tuple[FrameResult, int]], joints: F32) -> F64 | None:
    """Return the hands of one person in n frames, moved to the lifted wrists and scaled to the body.

    `joints` are (n, 17, 3) m in the camera frame. The hands (n, 2, 21, 3) m, left and right, have x right, y up, z
    towards the camera; NaN where not detected. None without hand tracking.
    """
    frame_hands = [(result.people.hands, row) for result, row in observations]
    parts = [hands[row : row + 1] for hands, row in frame_hands if hands is not None]
    if len(parts) < len(observations):
        return None
    hands = reduce(add, parts)
    swapped = np.stack([result.poses.swapped[row] for result, row in observations])
    points = sized_to_body(hands, joints, swapped) + joints[:, WRISTS][:, :, None]
    return CAMERA_SPACE.to_file(points.astype(np.float64))


def faces_in(observations: list[tuple[FrameResult, int]], camera: Camera) -> F64 | None:
    """Return directions (n, 3) of a person's face (x right, y up, z to the camera); NaN undetected, None unknown."""
    frame_faces = [(result.people.faces, row) for result, row in observations]
    parts = [faces[row : row + 1] for faces, row in frame_faces if faces is not None]
    if len(parts) < len(observations):
        return None
    faces = reduce(add, parts)
    return CAMERA_SPACE.to_file(directions_of(faces, camera))


def _times(observations: list[tuple[FrameResult, int]]) -> F64:
    return np.array([result.time for result, _ in observations])


def _observed(observations: list[tuple[FrameResult, int]], camera: Camera) -> tuple[F32, F32, F64]:
    """Return keypoints (n, J, 2) px, scores (n, J) and focal lengths (n, 2) px of one person in n frames."""
    zooms = np.array([1.0 if result.view is None else result.view.zoom for result, _ in observations])
    keypoints = camera.undistort(np.stack([result.people.keypoints[row] for result, row in observations]))
    scores = np.stack([result.people.scores[row] for result, row in observations])
    return keypoints, scores, np.diag(camera.matrix)[:2] * zooms[:, None]
