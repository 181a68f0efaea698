"""Feet in results: points, smoothed directions for characters, and markers of feet and joints for export."""

from collections.abc import Iterator, Sequence

import numpy as np

from pose.body.space import Space, z_upward
from pose.body.timeline import TrackSpan
from pose.body.tracks import Track
from pose.results import Recording
from pose.structures.defaults import WORLD
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, I64
from pose.world.foot_points import ImageFeet, ankle_flexions, extract_feet, foot_frames, foot_joints, lift_feet
from pose.world.gravity import ANKLES

SMOOTH_S = 0.05  # s, standard deviation of the Gaussian window; measured in docs/studies/feet.md


def focal_lengths(table: Recording, rows: I64) -> F64:
    """Return the focal lengths along x and y: (2,) px if constant, otherwise (n, 2) px."""
    assert table.camera is not None
    focal = np.diag(table.camera.matrix)[:2]
    if table.camera_zoom is None:
        return focal
    return np.asarray(focal * np.asarray(table.camera_zoom[_frames(table, rows)], np.float64)[:, None])


def feet_in_images(table: Recording, rows: I64) -> ImageFeet | None:
    """Return the 2D feet in table rows (n,); None without a camera or without heels and toes."""
    if table.camera is None:
        return None
    focal = focal_lengths(table, rows)
    keypoints = table.camera.undistort(table.keypoints[rows])
    return extract_feet(table.skeleton, keypoints, table.scores[rows], table.swapped[rows], focal)


def vertical_and_contacts(table: Recording, rows: I64) -> tuple[F64, F32] | tuple[None, None]:
    """Return verticals (n, 3) in the camera frame and contacts (n, 2); (None, None) without world coordinates."""
    if table.placed is None or table.world_info is None:
        return None, None
    up = np.broadcast_to(table.world_info.world.up, (len(rows), 3))
    if table.camera_rotation is not None:
        up = np.einsum("nji,nj->ni", np.asarray(table.camera_rotation[_frames(table, rows)], np.float64), up)
    return up, np.asarray(table.placed.contacts[rows])


def world_feet(table: Recording, *, level: bool) -> tuple[F64, F64] | None:
    """Return the heels and toes in all N rows of a result, in the camera frame of each row's image and in the world.

    Both are (N, 2, 2, 3) m: row, foot (left, right), point (heel, toe). With `level`, feet in contact are rotated
    towards the horizontal. None without world coordinates, or without heels and toes in the 2D skeleton.
    """
    rows = np.arange(len(table.id))
    seen, (up, contacts) = feet_in_images(table, rows), vertical_and_contacts(table, rows)
    if seen is None or up is None or contacts is None or table.placed is None or table.world_info is None:
        return None
    body = (table.joints3d + table.root[:, None]).astype(np.float64)
    points = lift_feet(body, seen, up, contacts if level else np.zeros_like(contacts))
    relative = points - body[:, ANKLES, None]
    rotations = table.world_info.world.rotation[None]
    if table.camera_rotation is not None:
        rotations = rotations @ np.asarray(table.camera_rotation[_frames(table, rows)], np.float64)
    offsets = np.einsum("nij,nfpj->nfpi", np.broadcast_to(rotations, (len(rows), 3, 3)), relative)
    return points, table.placed.joints[:, ANKLES, None] + offsets


def row_ankles(table: Recording, rows: I64) -> F64:
    """Return the flexion of the left and right ankle (n, 2) in degrees, in the table rows `rows` (n,).

    Flexion is 0 at a right angle of shank and sole, and positive with raised toes. It is NaN where heel or toe is not
    detected.
    """
    seen = feet_in_images(table, rows)
    if seen is None:
        return np.full((len(rows), 2), np.nan)
    body = (table.joints3d[rows] + table.root[rows][:, None]).astype(np.float64)
    return ankle_flexions(body, seen, *vertical_and_contacts(table, rows))


def track_foot_points(track: Track, at: I64) -> F64:
    """Return heels and toes (n, foot, (heel, toe), 3) m in camera axes (y down); NaN where not detected."""
    recording = track.recording
    table, in_first_camera = recording.table, track.space.name == WORLD

    def points(rows: I64) -> F64:
        seen = feet_in_images(table, rows)
        if seen is None:
            return np.full((len(rows), 2, 2, 3), np.nan)
        joints, root = recording.poses(rows, in_first_camera=False)
        body = (joints + root[:, None]).astype(np.float64)
        feet = lift_feet(body, seen, *vertical_and_contacts(table, rows)) - body[:, ANKLES, None]
        if in_first_camera and table.camera_rotation is not None:
            feet = np.einsum("nij,nfpj->nfpi", np.asarray(table.camera_rotation[_frames(table, rows)]), feet)
        joints, root = recording.poses(rows, in_first_camera=in_first_camera)
        return np.asarray(feet + (joints + root[:, None])[:, ANKLES, None])

    return track.interpolated(at, points)


def track_feet(track: Track, at: I64, space: Space) -> F64:
    """Return foot directions (n, foot, (heel to toe, sole normal), 3) in `space`; zeros for degenerate legs."""
    recording, rows = track.recording, track.rows(at)
    table = recording.table
    joints, root = recording.poses(rows, in_first_camera=False)
    body = (joints + root[:, None]).astype(np.float64)
    feet = foot_frames(body, feet_in_images(table, rows), *vertical_and_contacts(table, rows))
    if track.space.name == WORLD and table.camera_rotation is not None:
        rotations = np.asarray(table.camera_rotation[_frames(table, rows)])
        feet = np.einsum("nij,nfkj->nfki", rotations, feet)
    result: F64 = feet @ space.rotation.T
    return result


def smooth_feet(track: Track, at: I64, space: Space) -> F64:
    """Return foot directions (n, foot, (heel to toe, sole normal), 3) in `space`, smoothed over time."""
    return foot_frames_of(smoothed(track_feet(track, at, space), track.times[at], SMOOTH_S))


def _frames(table: Recording, rows: I64) -> I64:
    """Return the index (n,) in `table.frames` of the frame of each row."""
    result: I64 = np.searchsorted(table.frames, table.frame_index[rows])
    return result


FOOT_NAMES = ("left_heel", "left_big_toe", "right_heel", "right_big_toe")


def marker_names(track: Track) -> tuple[str, ...]:
    """Return the names of the points: 17 joints, followed by heels and toes if the 2D skeleton has them."""
    table = track.recording.table
    has_feet = table.camera is not None and foot_joints(table.skeleton) is not None
    return (*H36M17.names, *(FOOT_NAMES if has_feet else ()))


def marker_spans(track: Track, names: Sequence[str], *, z_up: bool = False) -> Iterator[tuple[TrackSpan, F64]]:
    """Yield all frames in portions, with the named points (n, M, 3) m in file axes; NaN where a point is missing."""
    columns = [(*H36M17.names, *FOOT_NAMES).index(name) for name in names]
    has_feet = max(columns) >= len(H36M17)
    for span in track.spans():
        points = span.joints
        if has_feet:
            feet = track_foot_points(track, np.arange(span.start, span.start + len(span.times)))
            feet[~span.known] = np.nan
            points = np.concatenate([points, feet.reshape(-1, len(FOOT_NAMES), 3)], axis=1)
        placed = track.space.to_file(points[:, columns])
        yield span, z_upward(placed) if z_up else placed


def smoothed(values: F64, times: F64, sigma_s: float) -> F64:
    """Smooth values (T, ...) at `times` (T,) s with a Gaussian window of standard deviation `sigma_s` in seconds."""
    reach = np.searchsorted(times, [times - 4 * sigma_s, times + 4 * sigma_s])
    result = np.empty_like(values)
    for frame, (first, last) in enumerate(reach.T):
        weights = np.exp(-(((times[first:last] - times[frame]) / sigma_s) ** 2) / 2)
        result[frame] = np.tensordot(weights / weights.sum(), values[first:last], axes=1)
    return result


class StreamingSmoother:
    """A causal first-order low-pass filter for arrays of values over time."""

    def __init__(self, constant_s: float) -> None:
        """Create a filter with a time constant in s."""
        self._constant_s = constant_s
        self._last: tuple[float, F64] | None = None

    def step(self, values: F64, times: F64) -> F64:
        """Return the smoothed values (T, ...) of the next T frames, at `times` (T,) s."""
        result = values.copy()
        for frame, time in enumerate(times.tolist()):
            if self._last is not None:
                kept = float(np.exp(-max(time - self._last[0], 0.0) / self._constant_s))
                result[frame] += kept * (self._last[1] - result[frame])
            self._last = time, result[frame]
        return result


def foot_frames_of(vectors: F64) -> F64:
    """Orthonormalise foot directions (T, foot, (heel to toe, sole normal), 3); zeros stay zero."""
    along = _unit(vectors[:, :, 0])
    above = vectors[:, :, 1]
    return np.stack([along, _unit(above - (above * along).sum(axis=-1, keepdims=True) * along)], axis=2)


def _unit(vectors: F64) -> F64:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9))
