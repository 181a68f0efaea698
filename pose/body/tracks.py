"""Motions of the people in a result, with its own time stamps or resampled to a constant rate.

Arrays are memory-mapped (`load_poses(..., mapped=True)`) and read in portions, so memory does not grow with length.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.body.rigs import RIGS
from pose.body.selection import CHUNK, SAMPLE, finite_rows, release_pages, scale_factors, time_range, without_world
from pose.body.skeleton import FittedMotion
from pose.body.space import AS_GIVEN, Space, camera_space, level_space, source_of_vertical, world_space
from pose.body.timeline import HandSpan, Timeline, TrackSpan, between_frames, fits, stretches, thinned
from pose.errors import PoseError, UsageError
from pose.results import Recording, load_poses
from pose.structures.defaults import CAMERA, WORLD
from pose.structures.hand_points import WRISTS, Hands, sigma_of, sized_to_body, swapped_with_arms
from pose.structures.skeletons import LIMBS
from pose.structures.types import F32, F64, I64, U8
from pose.utils.filling import check_gap_frames

KEEP_TIMES = "a format that keeps time stamps (csv, parquet, angles, glb, html)"
MAX_FPS = 1000.0  # maximum frames/s of resampled time stamps


class Selection:
    """The part of a `Recording` to export, with its space, scale and time stamps; it copies no rows.

    Attributes:
        first, last: Position of the first frame of the part in the result, and the position after its last frame.
        times: (F,) time stamps of the F frames of the part, s.
        frames: (F,) indices of these frames in the video.
    """

    bvh_skeleton = "plain"  # skeleton of BVH files, one of `pose.export.bvh_skeletons.BVH_SKELETONS`

    def __init__(
        self,
        table: Recording,
        name: str,
        *,
        fps: float | None = None,
        start: float = 0.0,
        end: float = math.inf,
        space: str | None = None,
        video: Path | None = None,
        up: F64 | None = None,
        heights: Mapping[int | None, float] | None = None,
        trim: bool = True,
        rig: str | None = None,
        z_up: bool = False,
    ) -> None:
        """Select the part of a result from `start` to `end` s to export, at `fps` frames/s or the result's time stamps.

        Args:
            space: 'world' or 'camera'; None selects 'world' if the result has world coordinates or `up` is given.
            video: Path of the video from which the result was made; None if unknown.
            up: (3,) vertical in camera axes, which replaces that of the result; None keeps it.
            heights: Body heights in m by person id; the id None stands for all other people. People, and their
                distances from the camera, are scaled accordingly.
            trim: Whether to omit frames that the result marks as partial (`pose.world.clean`).
            rig: Bone names of characters, one of `RIGS`; None: the first of them, and the plain skeleton in BVH.
            z_up: Whether points of world coordinates are written with z upward (x, -z, y) instead of y.

        Raises:
            UsageError: If the part is empty, no person has an id of `heights`, or there is no world to select.
        """
        self._up, self._trim, self.z_up, self.foot_lock = up, trim, z_up, True
        self.rig, self.bvh_rig = rig or RIGS[0], rig
        self.character: Path | None = None  # the user's character of glb and fbx
        self.bone_table: Path | None = None  # JSON file with the names of its bones
        self.opensim_model: Path | None = None  # model that OpenSim scales to the markers and solves
        self._scale = scale_factors(table, heights or {})
        self.table, self.name, self.video, self._fps = table, name, video, fps
        self.first, self.last = (int(at) for at in np.searchsorted(table.timestamps, [start, end]))
        if self.first == self.last:
            wanted = f"from {start:g} s on" if end == math.inf else f"between {start:g} and {end:g} s"
            raise UsageError(f"no frame {wanted}; the result has {time_range(table.timestamps)}")
        self.times = np.asarray(table.timestamps[self.first : self.last])
        self.frames = np.asarray(table.frames[self.first : self.last])
        self._rows = slice(
            *(int(at) for at in np.searchsorted(table.frame_index, [self.frames[0], self.frames[-1] + 1]))
        )
        self._ids = np.asarray(table.id[self._rows])
        self._positions = np.searchsorted(self.frames, table.frame_index[self._rows])
        if space is None:
            space = CAMERA if table.world_info is None and up is None else WORLD
        if space != CAMERA and (problem := without_world(table)):
            raise UsageError(f"space: {problem}; give --space {CAMERA}")
        if z_up and space == CAMERA:
            raise UsageError(f"z_up: the camera frame has no vertical; give --space {WORLD}")
        self._space_name = space
        self._read = 0  # rows read since pages were released
        # Bone rotations, cached for the next format, by person, whether resampled, first frame, number of frames.
        self.fitted_motions: dict[tuple[int, bool, int, int], FittedMotion] = {}

    @property
    def rescaled(self) -> bool:
        """Whether people are scaled to other heights than in the result."""
        return bool(self._scale)

    @property
    def people(self) -> list[int]:
        """The ids of the people, in ascending order."""
        return [int(person) for person in np.unique(self._ids)]

    @cached_property
    def space(self) -> Space:
        """The coordinate frame of exported points."""
        if self._space_name == WORLD:
            return self.world
        return camera_space(without_world(self.table))

    @cached_property
    def world(self) -> Space:
        """The world frame of the result, or one estimated from its people, whatever the space of the export is."""
        up, source, info = self._up, AS_GIVEN, self.table.world_info
        if info is not None and up is None:
            if not self._scale:
                return world_space(info.world)
            up, source = info.world.up, source_of_vertical(info.world)  # scaling people moves the floor
        rows = np.arange(self._rows.start, self._rows.stop)
        parts = np.array_split(thinned(rows, 8 * SAMPLE), 8)
        space = level_space((self.poses(part, in_first_camera=True) for part in parts if len(part)), up, source)
        self.release()
        return space

    @cached_property
    def timeline(self) -> Timeline:
        """The result's time stamps, or those resampled to `fps`."""
        return self.uniform if self._fps else Timeline(self.times, self._rate, False)

    @cached_property
    def uniform(self) -> Timeline:
        """Times at the rate `fps`, the result's, or 1 / median interval; PoseError for too many filled frames."""
        times, rate = self.times, self._rate
        if len(times) == 1 or (
            self._is_even and (self._fps is None or math.isclose(rate, self._mean_fps, rel_tol=1e-3))
        ):
            return Timeline(times, rate, False)
        check_gap_frames(times, rate, f"choose a part with --start and --end, a lower --fps, or {KEEP_TIMES}")
        count = math.floor((times[-1] - times[0]) * rate + 1e-6) + 1
        return Timeline(times[0] + np.arange(count) / rate, rate, True)

    @cached_property
    def _mean_fps(self) -> float:
        """Mean frame rate of at least two frames, frames/s."""
        # Containers that round time stamps give 29.998 instead of 30. An integer rate, or one divided by 1.001, is
        # therefore used if it fits all time stamps.
        mean = float((len(self.times) - 1) / (self.times[-1] - self.times[0]))
        for standard_rate in (round(mean), round(mean) / 1.001):
            if (
                standard_rate > 0
                and math.isclose(standard_rate, mean, rel_tol=5e-4)
                and fits(self.times, standard_rate)
            ):
                return float(standard_rate)
        return mean

    @cached_property
    def _is_even(self) -> bool:
        return fits(self.times, self._mean_fps)

    @cached_property
    def _rate(self) -> float:
        """Frame rate of `uniform`, frames/s."""
        if len(self.times) == 1:
            return self._fps or 30.0
        if self._is_even and (self._fps is None or math.isclose(self._fps, self._mean_fps, rel_tol=1e-3)):
            return self._mean_fps
        return self._fps or min(MAX_FPS, float(f"{1 / np.median(np.diff(self.times)):.4g}"))

    def poses(self, rows: I64, *, in_first_camera: bool) -> tuple[F32, F32]:
        """Return the scaled joints (N, 17, 3) m relative to the root, and roots (N, 3) m, in table rows (N,).

        They are in the camera frame of each row's own image, or of the first image if `in_first_camera`.
        """
        joints, root = self.table.joints3d[rows], self.table.root[rows]
        if in_first_camera and self.table.camera_rotation is not None:
            at = np.searchsorted(self.table.frames, self.table.frame_index[rows])
            rotations = np.asarray(self.table.camera_rotation[at])
            joints, root = np.einsum("nij,nkj->nki", rotations, joints), np.einsum("nij,nj->ni", rotations, root)
        if self._scale:
            factor = np.array([self._scale.get(int(number), 1.0) for number in self.table.id[rows]], np.float32)
            joints, root = joints * factor[:, None, None], root * factor[:, None]
        if (
            in_first_camera and self.table.camera_position is not None
        ):  # one camera path for all, scaled by the mean factor
            at = np.searchsorted(self.table.frames, self.table.frame_index[rows])
            root = root + np.float32(self.path_scale) * self.table.camera_position[at]
        return joints, root

    @property
    def path_scale(self) -> float:
        """Scale factor of the positions of a moving camera: the mean scale factor of the people."""
        return float(np.mean(list(self._scale.values()))) if self._scale else 1.0

    def rows_of(self, person: int) -> I64:
        """Return the indices of a person's rows in the table, in the order of the frames."""
        rows = self.table.rows_of(person)
        first, end = np.searchsorted(rows, [self._rows.start, self._rows.stop])
        return rows[first:end]

    def track(self, person: int, timeline: Timeline) -> "Track | None":
        """Return the motion of the person with the id `person`, or None if no frame of `timeline` has a finite pose."""
        rows = self.rows_of(person)
        positions = self._positions[rows - self._rows.start]
        kept = self._finite_rows[rows - self._rows.start]
        if self._trim and self.table.placed is not None and not (partial := self.table.placed.partial[rows]).all():
            kept = kept & ~partial
        rows, positions = rows[kept], positions[kept]
        if not len(rows):
            return None
        track = Track(self, person, timeline, rows, positions)
        return track if len(track) else None

    @cached_property
    def _finite_rows(self) -> NDArray[np.bool_]:
        """Mask of the rows with a finite pose and, if the space is the world, a finite position in it."""
        finite = finite_rows(self.table, np.arange(self._rows.start, self._rows.stop))
        if self._space_name == WORLD and self.table.placed is not None:
            finite &= np.isfinite(self.table.placed.joints[self._rows, 0, 0])
        return finite

    def release(self, rows: int = CHUNK) -> None:
        """Count `rows` further rows as read, and release the memory of mapped arrays after every `CHUNK` rows."""
        self._read += rows
        if self._read >= CHUNK:
            self._read = 0
            release_pages(self.table)


class Track:
    """One person on a timeline, from the person's first frame to the last, T frames.

    Attributes:
        first: Index of the first frame on the timeline.
        times: (T,) time stamps, s.
        rate: Frame rate in frames/s if it is constant, otherwise None.
        known: (T,) mask of the frames with the person; False in gaps.
    """

    def __init__(self, recording: Selection, person: int, timeline: Timeline, rows: I64, positions: I64) -> None:
        """Create a track from indices (N,) of the person's rows in the table, and of the frames of these rows."""
        self.person, self.recording, self.space = person, recording, recording.space
        self._rows = rows
        # Only the part with the person: the whole timeline of each person would cost people times frames.
        person_times = recording.times[positions]
        if timeline.resampled:
            begin, end = (
                int(at) for at in np.searchsorted(timeline.times, [person_times[0] - 2e-6, person_times[-1] + 2e-6])
            )
            between = between_frames(recording.times, positions, timeline.times[begin:end])
            self._earlier, self._fraction, has_person = between
        else:
            begin, end = int(positions[0]), int(positions[-1]) + 1
            has_person = np.zeros(end - begin, bool)
            has_person[positions - begin] = True
            self._earlier = np.cumsum(has_person) - 1
            self._fraction = np.zeros(len(has_person))
        seen = np.flatnonzero(has_person)
        kept = slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0)
        self.first = begin + kept.start if len(seen) else 0
        self._earlier, self._fraction, self.known = self._earlier[kept], self._fraction[kept], has_person[kept]
        self.times, self.rate, self.resampled = timeline.times[begin:end][kept], timeline.rate, timeline.resampled

    def __len__(self) -> int:
        return len(self.times)

    def spans(self) -> Iterator[TrackSpan]:
        """Yield all frames of the track in order, in portions of at most `CHUNK` frames."""
        for start in range(0, len(self), CHUNK):
            end = min(start + CHUNK, len(self))
            yield self.read(np.arange(start, end))
            self.recording.release(end - start)

    def read(self, at: I64) -> TrackSpan:
        """Return the poses at the frame indices `at` (n,) of the track, which must increase."""
        earlier, fraction, known = self._earlier[at], self._fraction[at], self.known[at]
        later = np.minimum(earlier + (fraction > 0), len(self._rows) - 1)
        joints, sigma, score = self._values(self._rows[np.maximum(earlier, 0)])
        if fraction.any():
            next_joints, next_sigma, next_score = self._values(self._rows[later])
            joints = joints + (next_joints - joints) * fraction[:, None, None]
            sigma = sigma + (next_sigma - sigma) * fraction[:, None]
            score = np.minimum(score, next_score)
        joints[~known], sigma[~known], score[~known] = np.nan, np.nan, 0
        return TrackSpan(int(at[0]) if len(at) else 0, self.times[at], joints, sigma, score, known)

    def _values(self, rows: I64) -> tuple[F64, F64, F64]:
        table = self.recording.table
        joints, root = self.recording.poses(rows, in_first_camera=self.space.name == WORLD)
        places = (joints + root[:, None]).astype(np.float64)
        score = table.joint_scores(rows)
        return places, table.sigma[rows].astype(np.float64), score.astype(np.float64)

    def rows(self, at: I64) -> I64:
        """Return the table row index (n,) at each frame index `at` (n,) of the track; the earlier one between two."""
        result: I64 = self._rows[np.maximum(self._earlier[at], 0)]
        return result

    def interpolated(self, at: I64, values: Callable[[I64], F64]) -> F64:
        """Interpolate linearly at the frame indices `at` (n,). `values` maps n table row indices to values (n, ...)."""
        earlier, fraction = np.maximum(self._earlier[at], 0), self._fraction[at]
        result = values(self._rows[earlier])
        if fraction.any():
            after = values(self._rows[np.minimum(earlier + (fraction > 0), len(self._rows) - 1)])
            result = result + (after - result) * fraction.reshape(-1, *[1] * (result.ndim - 1))
        return result

    def observers(self, at: I64) -> U8:
        """Return which cameras observed each joint at the frame indices `at` (n,) of the track: bit masks (n, 17).

        Bit c stands for camera c. A resampled frame combines the masks of both neighbours. It is 0 in gaps, or if no
        camera observed the joint in one neighbour.
        """
        rows, seen_by = self._rows[np.maximum(self._earlier[at], 0)], self.recording.table.seen_by
        later = np.minimum(self._earlier[at] + (self._fraction[at] > 0), len(self._rows) - 1)
        before, after = seen_by[rows], seen_by[self._rows[later]]
        both = (before > 0) & (after > 0) & self.known[at][:, None]
        return np.where(both, before | after, 0).astype(np.uint8)

    def hands(self, at: I64) -> HandSpan:
        """Return both hands at the increasing frame indices `at` (n,) of the track; NaN if hands were not estimated."""
        earlier, fraction, known = self._earlier[at], self._fraction[at], self.known[at]
        later = np.minimum(earlier + (fraction > 0), len(self._rows) - 1)
        points, sigma, score = self._hand_values(self._rows[np.maximum(earlier, 0)])
        if fraction.any():
            next_points, next_sigma, next_score = self._hand_values(self._rows[later])
            points = points + (next_points - points) * fraction[:, None, None, None]
            sigma, score = np.maximum(sigma, next_sigma), np.minimum(score, next_score)
        points[~known], sigma[~known], score[~known] = np.nan, np.nan, 0
        return HandSpan(points, sigma, score)

    def _hand_values(self, rows: I64) -> tuple[F64, F64, F64]:
        table, in_first_camera = self.recording.table, self.space.name == WORLD
        hands = table.hand_rows(rows) or Hands.unknown(len(rows))
        joints, root = self.recording.poses(rows, in_first_camera=in_first_camera)
        points = sized_to_body(hands, joints, table.swapped[rows])
        sigma, scores = (
            sigma_of(hands, points, table.swapped[rows]),
            swapped_with_arms(hands.scores, table.swapped[rows]),
        )
        if hands.sigma is not None:  # result of several cameras: the score is 1 if any camera sees the hand
            scores = np.isfinite(points[..., 0]).astype(np.float32)
        if in_first_camera and table.camera_rotation is not None:
            at = np.searchsorted(table.frames, table.frame_index[rows])
            points = np.einsum("nij,nskj->nski", np.asarray(table.camera_rotation[at]), points)
        wrists = joints[:, WRISTS] + root[:, None]
        wrist_sigma = table.sigma[rows][:, WRISTS, None]
        places = (points + wrists[:, :, None]).astype(np.float64)
        return places, np.hypot(sigma, wrist_sigma).astype(np.float64), scores.astype(np.float64)

    def sample(self) -> Iterator[TrackSpan]:
        """Yield at most `SAMPLE` frames with the person, evenly spread over the track, in portions."""
        at = thinned(np.flatnonzero(self.known), SAMPLE)
        for start in range(0, len(at), CHUNK):
            part = at[start : start + CHUNK]
            yield self.read(part)
            self.recording.release(len(part))

    @cached_property
    def gaps(self) -> list[tuple[int, int]]:
        """The gaps, in which the person is missing: (first, last) indices of frames of the track, both included."""
        return stretches(~self.known)

    @property
    def swapped(self) -> NDArray[np.bool_]:
        """Whether left and right keypoints were swapped before lifting, (T, 2) for legs, arms; False in gaps."""
        return self._flags(self.recording.table.swapped[self._rows])

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Whether the pose is interpolated across a short time without detections, (T,); False in gaps."""
        placed = self.recording.table.placed
        flags = np.zeros(len(self._rows), bool) if placed is None else np.asarray(placed.filled[self._rows])
        return self._flags(flags[:, None])[:, 0]

    @property
    def contacts(self) -> F64:
        """The contact probabilities (T, 2) of the left and right foot; NaN in gaps, and without world coordinates."""
        placed = self.recording.table.placed
        if placed is None:
            return np.full((len(self), 2), np.nan)
        own = np.asarray(placed.contacts[self._rows], np.float64)
        earlier = np.maximum(self._earlier, 0)
        later = np.minimum(earlier + (self._fraction > 0), len(own) - 1)
        values = own[earlier] + (own[later] - own[earlier]) * self._fraction[:, None]
        return np.where(self.known[:, None], values, np.nan)

    @property
    def inconsistent(self) -> NDArray[np.bool_]:
        """Whether 2D joints contradict bone lengths, (T, 4) in the order of `pose.structures.skeletons.LIMBS`; False in
        gaps."""
        placed = self.recording.table.placed
        nowhere = np.zeros((len(self._rows), len(LIMBS)), bool)
        return self._flags(nowhere if placed is None else np.asarray(placed.inconsistent[self._rows]))

    def _flags(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Convert flags (N, ...) of rows to frames (T, ...): of both neighbours if interpolated, False in gaps."""
        earlier = np.maximum(self._earlier, 0)
        later = np.minimum(earlier + (self._fraction > 0), len(flags) - 1)
        result: NDArray[np.bool_] = (flags[earlier] | flags[later]) & self.known[:, None]
        return result


def open_selection(
    path: Path,
    *,
    fps: float | None = None,
    start: float = 0.0,
    end: float = math.inf,
    space: str | None = None,
    video: Path | None = None,
    up: F64 | None = None,
    heights: Mapping[int | None, float] | None = None,
    trim: bool = True,
    rig: str | None = None,
    z_up: bool = False,
) -> Selection:
    """Open a result file of `pose-run`, the live demo or `pose-lift`. `Selection.__init__` describes the options.

    Raises:
        UsageError: If the file is missing.
        PoseError: If the file is invalid or contains no frame.
    """
    table = load_poses(path, mapped=True)
    if not len(table):
        raise PoseError(f"{path}: contains no frame")
    if not (np.diff(table.timestamps) > 0).all():
        raise PoseError(f"{path}: its time stamps do not increase")
    name = path.stem if table.run is None else table.run.source
    return Selection(
        table, name, fps=fps, start=start, end=end, space=space, video=video, up=up, heights=heights, trim=trim,
        rig=rig, z_up=z_up,
    )  # fmt: skip
