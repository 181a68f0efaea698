"""People in frames between samples (`pose.tracking.sampling`): 2D and 3D, interpolated over time with cubic splines.

A person is interpolated between two successive samples, if every frame between them is unsampled: not across gaps, cuts
or ends of tracks. The splines are Hermite splines with three-point derivatives, by time stamps. Bones keep their
lengths. The uncertainty of an interpolated joint includes shares of its distance from linear interpolation and of its
way between the samples, which were calibrated by leaving samples out of runs on every frame.
"""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pose.structures.columns import ColumnSet, arrays_of, rows_of
from pose.structures.face_points import Faces
from pose.structures.hand_points import Hands
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, FrameResult, People, Poses3D

MAX_NEIGHBOUR_RATIO = 3.0  # intervals that are longer by more do not contribute to a derivative
# Error of an interpolated point: shares of its distance from linear interpolation, and of the way between the samples.
ERROR_PER_CURVATURE, ERROR_PER_WAY = 0.75, 0.03
_KINDS: tuple[type[ColumnSet], ...] = (People, Poses3D, Hands, Faces)
_EDGES = tuple(H36M17.edges)  # parents precede their children

Row = list[Any]  # a person in one frame: structured rows (np.void) of the classes in `_KINDS`; None: not estimated


def fill_between(results: Iterable[FrameResult]) -> Iterator[FrameResult]:
    """Yield results in their order, with all people in frames between samples."""
    filled = BetweenSamples()
    for result in results:
        yield from filled.push(result)
    yield from filled.flush()


class BetweenSamples:
    """Interpolation frame by frame. A frame is returned when the second sample after it is known."""

    def __init__(self) -> None:
        self._waiting: deque[_Frame] = deque()  # frames from the sample before the last returned one on
        self._returned = 0  # number of these frames that were returned

    def push(self, result: FrameResult) -> list[FrameResult]:
        """Add the next result; return the frames that are final now, oldest first."""
        self._waiting.append(_Frame(result))
        if result.people.sampled:
            samples = [place for place, frame in enumerate(self._waiting) if frame.result.people.sampled]
            if len(samples) > 2:
                return self._take(samples[-2], keep_from=samples[-3])
        return []

    def flush(self) -> list[FrameResult]:
        """Return the remaining frames."""
        return self._take(len(self._waiting), keep_from=len(self._waiting))

    def _take(self, end: int, keep_from: int) -> list[FrameResult]:
        frames = list(self._waiting)
        for first, last in _intervals(frames, self._returned, end):
            self._fill(frames, first, last)
        finished = [frame.finished() for frame in frames[self._returned : end]]
        for _ in range(keep_from):
            self._waiting.popleft()
        self._returned = end - keep_from
        return finished

    def _fill(self, frames: list["_Frame"], first: int, last: int) -> None:
        """Interpolate everyone in the frames between the samples `first` and `last`."""
        people = {person for frame in frames[first : last + 1] for person in frame.rows}
        for person in sorted(people):
            seen = [place for place, frame in enumerate(frames) if person in frame.rows]
            for row, (start, stop) in enumerate(itertools.pairwise(seen)):
                if start < first or stop > last or stop == start + 1:
                    continue
                around = [frames[place] for place in seen[max(row - 1, 0) : row + 3]]
                spline = _Spline([(frame.time, frame.rows[person]) for frame in around], min(row, 1))
                for frame in frames[start + 1 : stop]:
                    frame.added[person] = spline.at(frame.time)


def _intervals(frames: list["_Frame"], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield first and last place of each interval between samples that contains a frame in [start, end)."""
    samples = [place for place, frame in enumerate(frames) if frame.result.people.sampled]
    for first, last in itertools.pairwise(samples):
        if last > start and first < end and last > first + 1 and not frames[last].result.people.cut:
            yield first, last


class _Frame:
    """The result of a frame, and the people that are added to it."""

    def __init__(self, result: FrameResult) -> None:
        self.result, self.time = result, result.time
        parts = _parts(result)
        joints = result.people.scores.shape[1]
        arrays = [None if part is None else rows_of(part, joints) for part in parts]
        self.rows: dict[int, Row] = {
            person: [None if rows is None else rows[row] for rows in arrays]
            for row, person in enumerate(result.people.ids.tolist())
        }
        self.added: dict[int, Row] = {}

    def finished(self) -> FrameResult:
        """Return the result with the added people."""
        if not self.added:
            return self.result
        people = {**self.rows, **self.added}
        rows = [people[person] for person in sorted(people)]
        columns: list[dict[str, Any] | None] = []
        for place, kind in enumerate(_KINDS):
            known = next((row[place] for row in rows if row[place] is not None), None)
            if known is None:
                columns.append(None)
                continue
            none = np.zeros((), known.dtype)
            stacked = np.array([none if row[place] is None else row[place] for row in rows], known.dtype)
            columns.append(arrays_of(kind, stacked))
        seen, poses, hands, faces = columns
        assert seen is not None
        assert poses is not None
        return replace(
            self.result,
            people=replace(
                self.result.people, **seen, hands=None if hands is None else Hands(**hands),
                faces=None if faces is None else Faces(**faces),
            ),
            poses=Poses3D(**poses),
        )  # fmt: skip


def _parts(result: FrameResult) -> tuple[ColumnSet | None, ...]:
    return result.people, result.poses, result.people.hands, result.people.faces


@dataclass(frozen=True, slots=True)
class _Spline:
    """Rows of one person in up to four successive frames, to interpolate between numbers `start` and `start` + 1."""

    samples: list[tuple[float, Row]]
    start: int

    def at(self, time: float) -> Row:
        """Return the person at a time between the two frames."""
        (before_time, before), (after_time, after) = self.samples[self.start : self.start + 2]
        share = (time - before_time) / (after_time - before_time)
        rows: Row = []
        for place, kind in enumerate(_KINDS):
            earlier, later = before[place], after[place]
            if earlier is None or later is None:
                rows.append(None)
                continue
            near = earlier if share < 0.5 else later
            row = np.empty((), near.dtype)  # np.array would share the memory of `near`
            row[()] = near
            _INTERPOLATED[kind](row, self, place, time, share)
            rows.append(cast(np.void, row[()]))
        return rows

    def pair(self, place: int, name: str) -> tuple[F64, F64]:
        """Return the values of a column in the frames before and after."""
        (_, before), (_, after) = self.samples[self.start : self.start + 2]
        earlier, later = before[place], after[place]
        assert earlier is not None
        assert later is not None
        return np.asarray(earlier[name], np.float64), np.asarray(later[name], np.float64)

    def cubic(self, place: int, name: str, time: float, scores: str | None = None) -> F64:
        """Return the values of a column at a time; `scores` names the column that is 0 for invalid values."""
        times, values, valid = [], [], []
        for moment, rows in self.samples:
            if (row := rows[place]) is not None:
                times.append(moment)
                values.append(np.asarray(row[name], np.float64))
                valid.append(True if scores is None else (row[scores] > 0)[..., None])
        start = times.index(self.samples[self.start][0])
        step = times[start + 1] - times[start]
        secant = (values[start + 1] - values[start]) / step
        first = last = secant
        if start and times[start] - times[start - 1] <= MAX_NEIGHBOUR_RATIO * step:
            other = times[start] - times[start - 1]
            slope = (values[start] - values[start - 1]) / other
            first = np.where(valid[start - 1], (slope * step + secant * other) / (step + other), secant)
        if start + 2 < len(times) and times[start + 2] - times[start + 1] <= MAX_NEIGHBOUR_RATIO * step:
            other = times[start + 2] - times[start + 1]
            slope = (values[start + 2] - values[start + 1]) / other
            last = np.where(valid[start + 2], (slope * step + secant * other) / (step + other), secant)
        s = (time - times[start]) / step
        straight = values[start] + s * step * secant
        bend = s * (1 - s) * step * ((1 - s) * (first - secant) - s * (last - secant))
        return np.asarray(straight + bend)


def _scores(spline: _Spline, place: int, name: str, share: float) -> F64:
    """Return scores interpolated linearly; 0 if the point is not seen on both sides."""
    before, after = spline.pair(place, name)
    return np.where((before > 0) & (after > 0), before + share * (after - before), 0.0)


def _linear(spline: _Spline, place: int, name: str, share: float) -> F64:
    before, after = spline.pair(place, name)
    return before + share * (after - before)


def _interpolate_people(row: "NDArray[np.void]", spline: _Spline, place: int, time: float, share: float) -> None:
    row["interpolated"] = True
    row["scores"] = _scores(spline, place, "scores", share)
    seen = row["scores"][:, None] > 0
    found, sigma = spline.cubic(place, "keypoints", time, "scores"), _scores(spline, place, "keypoint_sigma", share)
    error = _error(found, *spline.pair(place, "keypoints"), share)
    row["keypoints"] = np.where(seen, found, row["keypoints"])
    row["keypoint_sigma"] = np.where(sigma > 0, np.hypot(sigma, error), 0)
    row["boxes"] = spline.cubic(place, "boxes", time)
    row["box_scores"] = _linear(spline, place, "box_scores", share)


def _interpolate_poses(row: "NDArray[np.void]", spline: _Spline, place: int, time: float, share: float) -> None:
    joints = spline.cubic(place, "joints", time)
    before, after = spline.pair(place, "joints")
    row["joints"] = _with_bone_lengths(joints, before, after, share)
    row["root"] = spline.cubic(place, "root", time)
    row["sigma"] = np.hypot(_linear(spline, place, "sigma", share), 1000 * _error(joints, before, after, share))


def _error(found: F64, before: F64, after: F64, share: float) -> F64:
    """Return the radius around interpolated points (J, D) that contains the true ones with a probability of 68 %."""
    way = after - before
    bend = np.linalg.norm(found - before - share * way, axis=-1)
    error: F64 = np.hypot(ERROR_PER_CURVATURE * bend, ERROR_PER_WAY * np.linalg.norm(way, axis=-1))
    return error


def _with_bone_lengths(joints: F64, before: F64, after: F64, share: float) -> F32:
    """Return joints (17, 3) whose bones have the lengths of the two neighbours."""
    kept = joints.copy()
    for parent, child in _EDGES:
        bone = joints[child] - joints[parent]
        one, other = (np.linalg.norm(each[child] - each[parent]) for each in (before, after))
        length = max(float(np.linalg.norm(bone)), 1e-9)
        kept[child] = kept[parent] + bone * ((one + share * (other - one)) / length)
    return kept.astype(np.float32)


def _interpolate_hands(row: "NDArray[np.void]", spline: _Spline, place: int, time: float, share: float) -> None:
    row["scores"] = _scores(spline, place, "scores", share)
    seen = row["scores"][..., None] > 0
    for name in ("points", "shapes"):
        row[name] = np.where(seen, spline.cubic(place, name, time, "scores"), row[name])


def _interpolate_faces(row: "NDArray[np.void]", spline: _Spline, place: int, time: float, share: float) -> None:
    row["scores"] = _scores(spline, place, "scores", share)
    if row["scores"] > 0:
        row["points"] = _linear(spline, place, "points", share)


_INTERPOLATED = {
    People: _interpolate_people, Poses3D: _interpolate_poses, Hands: _interpolate_hands, Faces: _interpolate_faces
}  # fmt: skip
