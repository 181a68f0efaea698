"""Track segments that are not people, and joining of the tracks of one person.

A tracker may start a track on a shadow or between two people, lose it, and find it again elsewhere. Such a track is
long from its first to its last frame, with few detections.

A causal tracker must drop a person who is occluded for a second. After the run all frames are known, and the tracks of
the whole clip are joined in one assignment. Tracks are not joined across a cut, nor if they overlap in time.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pose.structures.assignment import best_pairs
from pose.structures.refine import lengths_of
from pose.structures.types import F64, Flags
from pose.world.rules import JOINS, TRACKS
from pose.world.work import Person

Pieces = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class SceneTimes:
    """Times of the scenes of a clip."""

    begins: Sequence[float]  # start of each scene in s, increasing, including the first
    end: float  # time of the last frame, s
    step: float  # median time between frames, s

    @classmethod
    def of(cls, frames: F64, cuts: Sequence[float] = ()) -> "SceneTimes":
        """Return the scenes of frames (F,) s with cuts at `cuts`."""
        step = float(np.median(np.diff(frames))) if len(frames) > 1 else 0.0
        return cls([float(frames[0]), *cuts], float(frames[-1]), step)

    def bounds(self, time: float) -> tuple[float, float]:
        """Return the start and the end (s) of the scene that contains `time`."""
        first = max((at for at in self.begins if at <= time), default=time)
        return first, min((at for at in [*self.begins, self.end] if at > time), default=self.end)

    def is_near_border(self, first: float, last: float, within: float) -> bool:
        """Return whether a scene starts or ends within `within` s of `first` or `last`."""
        return any(min(abs(first - at), abs(last - at)) <= within for at in [*self.begins, self.end])


def person_frames(person: Person, scenes: SceneTimes) -> Flags:
    """Return (T,) whether frames of a track show a person; False in short, isolated pieces of the track."""
    # A piece ends where the person is missing for longer than `TRACKS.max_pause_s` and 2.5 frames. It is dropped if its
    # duration times its mean fraction of detected joints is less than `TRACKS.min_seen_s`, the person is detected for
    # less than `TRACKS.min_seen_share` of the time up to `TRACKS.around_s` before and after it, and it is further than
    # `TRACKS.min_seen_s` from the start and end of its scene, where people enter and leave.
    share = _detected_share(person)
    kept = np.ones(len(person), bool)
    for first, last in _pieces(person.times, scenes):
        begin, end = float(person.times[first]), float(person.times[last])
        if (end - begin) * share[first : last + 1].mean() >= TRACKS.min_seen_s or scenes.is_near_border(
            begin, end, TRACKS.min_seen_s
        ):
            continue
        scene = scenes.bounds(begin)
        low, high = max(scene[0], begin - TRACKS.around_s), min(scene[1], end + TRACKS.around_s)
        near = (person.times >= low) & (person.times <= high)
        kept[first : last + 1] = scenes.step * float(share[near].sum()) >= TRACKS.min_seen_share * (high - low)
    return kept


def is_doubtful(person: Person, scenes: SceneTimes) -> bool:
    """Return whether a track may not be a person: it is short, or few of its frames or joints are detected."""
    if len(person) == 0:
        return True
    share = _detected_share(person)
    seen = scenes.step * float(share.sum())
    first, last = scenes.bounds(float(person.times[0]))
    least = min(TRACKS.doubtful_seen_s, (last - first) / 2)
    spans = float(person.times[-1] - person.times[0])
    return bool(seen < least or share.mean() < TRACKS.doubtful_joint_share or seen < TRACKS.min_seen_share * spans)


def jitters(person: Person, scenes: SceneTimes) -> bool:
    """Return whether the detected joints of a track jump from frame to frame, unlike those of a real person."""
    seen, step = person.scores >= TRACKS.min_score, scenes.step
    even = (np.abs(np.diff(person.times) - step) < 0.5 * step)[:, None]
    known = seen[2:] & seen[1:-1] & seen[:-2] & even[1:] & even[:-1]
    if not known.any():
        return False
    boxes = _joint_boxes(person)
    off = np.linalg.norm(np.diff(person.rays, n=2, axis=0), axis=-1)[known]
    height = float(np.nanmedian(boxes[:, 3] - boxes[:, 1]))
    return float(np.median(off)) > height * (TRACKS.max_jitter_share + TRACKS.jitter_growth_per_s2 * step**2)


def overlaps_longer(person: Person, other: Person) -> bool:
    """Return whether boxes of `person` overlap those of a much longer track, maybe of the same body."""
    if len(other) < TRACKS.min_length_ratio * len(person):
        return False
    _, person_rows, other_rows = np.intersect1d(person.times, other.times, return_indices=True)
    person_boxes, other_boxes = _joint_boxes(person)[person_rows], _joint_boxes(other)[other_rows]
    sides = np.minimum(person_boxes[:, 2:], other_boxes[:, 2:]) - np.maximum(person_boxes[:, :2], other_boxes[:, :2])
    areas = np.minimum(*((box[:, 2:] - box[:, :2]).prod(axis=1) for box in (person_boxes, other_boxes)))
    covered = np.maximum(sides, 0).prod(axis=1) > TRACKS.min_box_overlap_share * areas
    return int(covered.sum()) >= TRACKS.min_overlap_frame_share * len(person)


def _joint_boxes(person: Person) -> F64:
    """Return boxes (T, 4) x1, y1, x2, y2 of the detected joints, in normalised camera coordinates; NaN without any."""
    points = np.where(person.scores[..., None] > 0, person.rays, np.nan)
    some = (person.scores > 0).any(axis=1)
    boxes = np.full((len(person), 4), np.nan)
    boxes[some] = np.concatenate([np.nanmin(points[some], axis=1), np.nanmax(points[some], axis=1)], axis=1)
    return boxes


def _detected_share(person: Person) -> F64:
    """Return (T,) fraction of detected joints."""
    return np.asarray((person.scores >= TRACKS.min_score).mean(axis=1))


def _pieces(times: F64, scenes: SceneTimes) -> Pieces:
    """Return the indices of the first and last frame of each piece of a track."""
    ends = np.flatnonzero(np.diff(times) > _max_pause_s(scenes))
    return list(zip([0, *(ends + 1).tolist()], [*ends.tolist(), len(times) - 1], strict=True))


def _max_pause_s(scenes: SceneTimes) -> float:
    return max(TRACKS.max_pause_s, 2.5 * scenes.step)


_END_S = 0.5  # s at the ends of a track from which position and velocity are estimated
_MIN_SCORE = 1e-9  # of tracks that may be one person
_MIN_FRAMES = 10  # minimum frames to estimate the size


def find_joins(
    people: Mapping[int, Person],
    scenes: Sequence[float],
    apart: Collection[tuple[int, int]] = (),
) -> dict[int, int]:
    """Return the id of a person's first track, by the id of each later track of the same person, not in `apart`."""
    tracks = {number: _track(person) for number, person in people.items()}
    scores = {
        (one, other): 1 - cost
        for one, before in tracks.items()
        for other, after in tracks.items()
        if one != other and (one, other) not in apart and (cost := _cost(before, after, scenes)) < 1
    }
    firsts, seconds = (sorted({pair[side] for pair in scores}) for side in (0, 1))
    matrix = np.array([[scores.get((one, other), 0.0) for other in seconds] for one in firsts])
    pairs = best_pairs(matrix, min_similarity=_MIN_SCORE) if scores else []  # of all tracks of the clip together
    preceding = {seconds[column]: firsts[row] for row, column in pairs}
    joined = {}
    for number in preceding:
        first = number
        while first in preceding:
            first = preceding[first]
        joined[number] = first
    return joined


@dataclass(frozen=True, slots=True)
class _Track:
    """Properties of a track."""

    begin: float  # time of the first frame, s
    end: float  # time of the last frame, s
    first_position: F64  # (3,) m, first position
    last_position: F64  # (3,) m, last position
    velocity: F64  # (3,) m/s, last velocity
    first_pose: F64  # (17, 3) m, first pose
    last_pose: F64  # (17, 3) m, last pose
    size: float | None  # sum of the bone lengths, m; None with too few frames


def _track(person: Person) -> _Track:
    first_position, _ = _end(person, 0)
    last_position, speed = _end(person, -1)
    size = float(lengths_of(person.joints, person.sigma).sum()) if len(person) >= _MIN_FRAMES else None
    begin, end = float(person.times[0]), float(person.times[-1])
    return _Track(
        begin, end, first_position, last_position, speed, person.joints[0].copy(), person.joints[-1].copy(), size
    )


def _cost(one: _Track, other: _Track, scenes: Sequence[float]) -> float:
    """Return the cost of joining two tracks; below 1 if they may be one person."""
    gap = other.begin - one.end
    if not 0 < gap <= JOINS.max_gap_s or any(one.end < at <= other.begin for at in scenes):
        return np.inf
    off = np.abs(other.first_position - one.last_position - one.velocity * min(gap, 1.0))
    across = float(np.hypot(off[0], off[1])) / (JOINS.max_across_m + JOINS.position_growth_mps * gap)
    along = float(off[2]) / (JOINS.max_along_m + JOINS.position_growth_mps * gap)
    pose = float(np.linalg.norm(one.last_pose - other.first_pose, axis=-1).mean())
    costs = [across, along, pose / (JOINS.max_pose_distance_m + JOINS.pose_growth_mps * gap)]
    if one.size is not None and other.size is not None:
        costs.append(abs(np.log(other.size / one.size)) / JOINS.max_size_difference_share)
    return max(costs)


def _end(person: Person, at: int) -> tuple[F64, F64]:
    """Return position (3,) m and velocity (3,) m/s at one end of a track (0 or -1), from a line through frames."""
    # The depth is the median of the neighbouring frames, since single frames have large depth errors.
    near = np.abs(person.times - person.times[at]) <= _END_S
    times, roots = person.times[near] - person.times[at], person.root[near]
    place = np.append(person.root[at, :2], np.median(roots[:, 2]))
    if len(times) < 4 or np.ptp(times) < _END_S / 2:
        return place, np.zeros(3)
    speed = np.polyfit(times, roots, 1)[0]
    return place, np.append(speed[:2], 0.0)
