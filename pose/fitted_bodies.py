"""Characters (skinned body models) of tracked people, whose shapes are fitted while results arrive."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.export.character.heads import STREAM_S, SeenHeads, head_corrections
from pose.export.character.model import body_model
from pose.export.character.rest import Character, make_character
from pose.export.character.shape import fit_shape, lengths_of_body
from pose.export.gaze import directions_of
from pose.export.skeleton import fit_body
from pose.export.smoothing import StreamingSmoother, foot_frames_of
from pose.export.space import CAMERA_SPACE
from pose.face_points import Faces
from pose.hand_points import WRISTS, Hands, sized_to_body
from pose.skeletons import Skeleton
from pose.types import F32, FrameResult
from pose.world.foot_points import extract_feet, foot_frames

F64 = NDArray[np.float64]
Made = TypeVar("Made")

LIVE_PEOPLE = 4  # maximum number of people with a body in a live view; the nearest people are drawn
_SAMPLE = 256  # number of frames to which a shape is fitted
_GROWN = 4  # factor in the number of frames after which a shape is checked again
_CHANGED = 0.03  # relative change of a bone length after which the shape is fitted again
_KEPT = 64  # number of characters that are kept; those of the most recently seen people


@dataclass(slots=True)
class _Person(Generic[Made]):
    """Poses of a person so far, and the fitted character.

    Attributes:
        seen: Arrays of poses (n, 17, 3) m in the camera frame (x right, y up, z towards the camera).
        frames: Number of frames so far.
        checked: Number of frames at the last check of the shape.
        lengths: Bone lengths to which the shape was fitted, m.
        made: Object that `make` returned for the fitted character.
        head: Smoother of the head's rotation.
        feet: Smoother of the directions of the feet.
    """

    seen: list[F64]
    frames: int = 0
    checked: int = 0
    lengths: F64 | None = None
    made: Made | None = None
    head: StreamingSmoother = field(default_factory=lambda: StreamingSmoother(STREAM_S))
    feet: StreamingSmoother = field(default_factory=lambda: StreamingSmoother(STREAM_S))


class FittedBodies(Generic[Made]):
    """Characters (skinned body models) of people by track id, with a mesh of few vertices.

    The shape of a character is fitted to the median bone lengths of a person's first frames. The lengths are computed
    again whenever the number of frames has quadrupled, up to 256. If a length has changed by more than 3 %, the shape
    is fitted again. The characters of the 64 people seen last are kept.
    """

    def __init__(self, make: Callable[[Character], Made]) -> None:
        """Start without people.

        Args:
            make: Function that is called with each fitted character. `of` returns its result.
        """
        self._make = make
        self._people: dict[int, _Person[Made]] = {}

    def of(self, number: int, places: F64) -> Made:
        """Add poses of a person, fit the character again if needed, and return the result of `make`.

        Args:
            number: Track id of the person.
            places: (n, 17, 3) m, the new poses in the camera frame (x right, y up, z towards the camera).
        """
        person = self._people.pop(number, None) or _Person[Made]([])
        self._people[number] = person  # the last seen person is the last one
        for oldest in list(self._people)[:-_KEPT]:
            del self._people[oldest]
        if person.frames < _SAMPLE:
            person.seen.append(places[: _SAMPLE - person.frames])
        person.frames += len(places)
        if person.made is None or (person.frames >= _GROWN * person.checked and person.checked < _SAMPLE):
            person.checked = person.frames
            body, model = fit_body(person.seen), body_model("light")
            lengths = lengths_of_body(body)
            if person.lengths is None or (np.abs(lengths / person.lengths - 1) > _CHANGED).any():
                person.lengths = lengths
                person.made = self._make(make_character(model, fit_shape(model, lengths), body))
        assert person.made is not None
        return person.made

    def feet(
        self, number: int, rows: list[tuple[FrameResult, int]], joints: F32, matrix: F64, skeleton: Skeleton
    ) -> F64:
        """Estimate smoothed directions of the feet of a person. Call `of` for the person first.

        Args:
            number: Track id of the person.
            rows: Result of each of n frames, with the row of the person.
            joints: (n, 17, 3) m, the joints in the camera frame.
            matrix: (3, 3) px, camera intrinsics.
            skeleton: Skeleton of the 2D keypoints.

        Returns:
            (n, 2, 2, 3) unit vectors (x right, y up, z towards the camera), for the left and the right foot: the
            direction from heel to toe, and the upward normal of the sole.
        """
        keypoints, scores, focal = _observed(rows, matrix)
        swapped = np.stack([result.poses.swapped[row] for result, row in rows])
        seen = extract_feet(skeleton, keypoints, scores, swapped, focal)
        frames = foot_frames(joints.astype(np.float64), seen, None, None) @ CAMERA_SPACE.rotation.T
        return foot_frames_of(self._people[number].feet.step(frames, _times(rows)))

    def heads(
        self, number: int, rows: list[tuple[FrameResult, int]], joints: F32, matrix: F64, skeleton: Skeleton
    ) -> F64 | None:
        """Estimate smoothed rotations that turn the lifted head to the face's 2D keypoints. Call `of` first.

        The arguments are those of `feet`.

        Returns:
            (n, 3) rotation vectors, rad, in the frame of the head; None if the skeleton has no nose, eyes and ears.
        """
        keypoints, scores, focal = _observed(rows, matrix)
        seen = SeenHeads.of(skeleton, keypoints, scores, focal)
        if seen is None:
            return None
        turns = head_corrections(CAMERA_SPACE.to_file(joints.astype(np.float64)), seen)
        return self._people[number].head.step(turns, _times(rows))


def known_rows(result: FrameResult, least_score: float) -> list[int]:
    """Return the rows of people with a 3D pose and at least one keypoint whose score exceeds `least_score`."""
    people, poses = result.people, result.poses
    seen = (people.scores > least_score).any(axis=1) & np.isfinite(poses.root).all(axis=1)
    seen &= np.isfinite(poses.joints).all(axis=(1, 2))
    listed: list[int] = np.flatnonzero(seen).tolist()
    return listed


def nearest_rows(result: FrameResult, rows: list[int]) -> list[int]:
    """Return the rows of the `LIVE_PEOPLE` people who are nearest to the camera, out of the given rows."""
    return sorted(sorted(rows, key=lambda row: float(result.poses.root[row, 2]))[:LIVE_PEOPLE])


def hands_in(rows: list[tuple[FrameResult, int]], joints: F32) -> F64 | None:
    """Return the hands of one person in n frames, attached to the lifted wrists.

    Args:
        rows: Result of each frame, with the row of the person.
        joints: (n, 17, 3) m in the camera frame.

    Returns:
        (n, 2, 21, 3) m in the camera frame (x right, y up, z towards the camera); None without hand tracking.
    """
    found = [(result.people.hands, row) for result, row in rows]
    parts = [hands[row : row + 1] for hands, row in found if hands is not None]
    if len(parts) < len(rows):
        return None
    hands = Hands(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("points", "scores", "shapes")))
    swapped = np.stack([result.poses.swapped[row] for result, row in rows])
    points = sized_to_body(hands, joints, swapped) + joints[:, WRISTS][:, :, None]
    return CAMERA_SPACE.to_file(points.astype(np.float64))


def faces_in(rows: list[tuple[FrameResult, int]], matrix: F64) -> F64 | None:
    """Return the directions (n, 3) in which one person's face points; None without face tracking.

    The axes are x right, y up, z towards the camera.

    Args:
        rows: Result of each of n frames, with the row of the person.
        matrix: (3, 3) px, camera intrinsics.
    """
    found = [(result.people.faces, row) for result, row in rows]
    parts = [faces[row : row + 1] for faces, row in found if faces is not None]
    if len(parts) < len(rows):
        return None
    faces = Faces(np.concatenate([part.points for part in parts]), np.concatenate([part.scores for part in parts]))
    return CAMERA_SPACE.to_file(directions_of(faces, matrix))


def _times(rows: list[tuple[FrameResult, int]]) -> F64:
    return np.array([result.time for result, _ in rows])


def _observed(rows: list[tuple[FrameResult, int]], matrix: F64) -> tuple[F32, F32, F64]:
    """Return keypoints (n, J, 2) px, scores (n, J) and focal lengths (n, 2) px of one person in n frames."""
    zooms = np.array([1.0 if result.view is None else result.view.zoom for result, _ in rows])
    keypoints = np.stack([result.people.keypoints[row] for result, row in rows])
    scores = np.stack([result.people.scores[row] for result, row in rows])
    return keypoints, scores, np.diag(matrix)[:2] * zooms[:, None]
