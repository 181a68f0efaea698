"""The tidy table of CSV and Parquet: one row per joint of each person and frame."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.body.selection import CHUNK
from pose.body.soles import FOOT_NAMES, track_foot_points
from pose.body.space import z_upward
from pose.body.timeline import TrackSpan
from pose.body.tracks import Selection, Track
from pose.structures.defaults import CAMERA
from pose.structures.hand_points import LEFT_NAMES, RIGHT_NAMES
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, I64
from pose.world.foot_points import SIGMA_MM, foot_joints
from pose.world.gravity import ANKLES

COLUMNS = (
    "video", "frame", "time", "person", "joint", "x", "y", "z", "sigma_mm", "root_sigma_mm", "score", "filled",
    "doubtful", "partial", "space",
)  # fmt: skip
OBSERVERS = "observers"  # last column, only in results of several cameras


@dataclass(frozen=True, slots=True)
class Rows:
    """Table rows of people in n frames, with J joints each."""

    person: NDArray[np.int64]  # (n,) ids of the people
    frame: NDArray[np.int64]  # (n,) index of each frame in the result, or in the resampled timeline
    time: NDArray[np.float64]  # (n,) s
    values: NDArray[np.float64]  # (n, J, 5) x, y, z m, sigma mm, 2D score
    root_sigma: NDArray[np.float64]  # (n,) mm, uncertainty of the distance of the person from the camera
    # (n, J) True where the joint was not detected in 2D and its position is estimated by the lifter alone.
    filled: NDArray[np.bool_]
    # (n, J) bit masks; bit c is set if camera c observed the joint. The mask is 0 for hands and feet, and with a single
    # camera.
    observers: NDArray[np.uint8]
    partial: NDArray[np.bool_]  # (n,) whether the person enters or leaves the view, or is below the floor
    names: tuple[str, ...] = H36M17.names  # (J,) names of the joints of Human3.6M-17, of the feet, or of one hand


def columns(recording: Selection) -> tuple[str, ...]:
    """Return the names of the table's columns; results of several cameras have one more, `OBSERVERS`."""
    run = recording.table.run
    return (*COLUMNS, OBSERVERS) if run is not None and run.cameras else COLUMNS


def observer_names() -> list[str]:
    """Return the text in the column `OBSERVERS` for each of 256 bit masks: camera numbers from 1, such as 1+3."""
    return ["+".join(str(camera + 1) for camera in range(8) if bits >> camera & 1) for bits in range(256)]


def rows(recording: Selection, people: list[int]) -> Iterator[Rows]:
    """Yield the table rows of one person after another, in portions of about `CHUNK` frames."""
    parts: dict[tuple[str, ...], list[Rows]] = {}
    held = 0
    for person in people:
        track = recording.track(person, recording.timeline)
        for part in () if track is None else _of_person(recording, track):
            parts.setdefault(part.names, []).append(part)
            held += len(part.frame)
            if held >= CHUNK:
                yield from map(_joined, parts.values())
                parts, held = {}, 0
    yield from map(_joined, parts.values())


def _joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    return Rows(
        person=np.concatenate([part.person for part in parts]),
        frame=np.concatenate([part.frame for part in parts]),
        time=np.concatenate([part.time for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        root_sigma=np.concatenate([part.root_sigma for part in parts]),
        filled=np.concatenate([part.filled for part in parts]),
        observers=np.concatenate([part.observers for part in parts]),
        partial=np.concatenate([part.partial for part in parts]),
        names=parts[0].names,
    )


def _of_person(recording: Selection, track: Track) -> Iterator[Rows]:
    feet = foot_joints(recording.table.skeleton)
    for span in track.spans():
        at = np.flatnonzero(span.known)
        index = track.first + span.start + at
        points = _axes(recording, span.joints[at])
        values = np.concatenate([points, span.sigma[at, :, None], span.score[at, :, None]], axis=2)
        frame = index if track.resampled else recording.frames[index]
        people, observers = np.full(len(at), track.person), track.observers(span.start + at)
        sigma = _root_sigma(track, span.start + at)
        yield Rows(
            people, frame, span.times[at], values, sigma, span.score[at] == 0, observers,
            _partial(track, span.start + at),
        )  # fmt: skip
        if feet is not None:
            yield from _of_feet(track, span, feet)
        if recording.table.hand_scores is not None:
            yield from _of_hands(recording, track, span)


def _of_feet(track: Track, span: TrackSpan, joints: NDArray[np.int64]) -> Iterator[Rows]:
    """Yield the rows of heels and toes in a span, only for frames in which all four are detected."""
    recording = track.recording
    every = np.arange(span.start, span.start + len(span.times))
    points = track_foot_points(track, every).reshape(-1, 4, 3)
    at = np.flatnonzero(span.known & np.isfinite(points).all(axis=(1, 2)))
    if not len(at):
        return
    index = track.first + span.start + at
    scores = track.interpolated(
        every[at], lambda rows: recording.table.scores[rows][:, joints[:, 1:]].astype(np.float64)
    )
    swapped = recording.table.swapped[track.rows(every[at])][:, :1, None]
    scores = np.where(swapped, scores[:, ::-1], scores).reshape(-1, 4)
    sigma = np.hypot(span.sigma[at][:, ANKLES].repeat(2, axis=1), np.tile(SIGMA_MM, 2))
    values = np.concatenate([_axes(recording, points[at]), sigma[..., None], scores[..., None]], axis=2)
    frame = index if track.resampled else recording.frames[index]
    people, nothing = np.full(len(at), track.person), np.zeros(values.shape[:2], np.uint8)
    root = _root_sigma(track, every[at])
    partial = _partial(track, every[at])
    yield Rows(people, frame, span.times[at], values, root, nothing > 0, nothing, partial, FOOT_NAMES)


def _of_hands(recording: Selection, track: Track, span: TrackSpan) -> Iterator[Rows]:
    """Yield the rows of the hands in a span, only for frames in which they are detected."""
    hands = track.hands(np.arange(span.start, span.start + len(span.times)))
    for side, names in enumerate((LEFT_NAMES, RIGHT_NAMES)):
        at = np.flatnonzero(np.isfinite(hands.points[:, side]).all(axis=(1, 2)))
        if len(at):
            index = track.first + span.start + at
            points = _axes(recording, hands.points[at, side])
            values = np.concatenate([points, hands.sigma[at, side, :, None], hands.score[at, side, :, None]], axis=2)
            frame = index if track.resampled else recording.frames[index]
            people, nothing = np.full(len(at), track.person), np.zeros(values.shape[:2], np.uint8)
            root = _root_sigma(track, span.start + at)
            partial = _partial(track, span.start + at)
            yield Rows(people, frame, span.times[at], values, root, nothing > 0, nothing, partial, names)


def _root_sigma(track: Track, at: I64) -> F64:
    """Return the uncertainty (n,) mm of a person's distance from the camera at the frame indices `at` (n,)."""
    placed = track.recording.table.placed
    if placed is None:
        return np.full(len(at), np.nan)
    return track.interpolated(at, lambda rows: np.asarray(placed.root_sigma[rows], np.float64))


def _partial(track: Track, at: I64) -> NDArray[np.bool_]:
    """Return (n,) whether world joints are unreliable at the frame indices `at` (n,)."""
    placed = track.recording.table.placed
    return np.zeros(len(at), bool) if placed is None else np.asarray(placed.partial[track.rows(at)])


def _axes(recording: Selection, points: F64) -> F64:
    """Convert points (..., 3) m in camera axes to those of the table."""
    placed: F64 = np.asarray(recording.space.to_table(points), np.float64)
    return z_upward(placed) if recording.z_up else placed


def axes_note(recording: Selection) -> str:
    """Return the directions of x, y and z in a table as text."""
    if recording.space.name == CAMERA:
        return "x right, y down, z forward, as in poses.npz"
    return "z up" if recording.z_up else "y up"
