"""2D keypoints at a lower rate than that of the frames, and at a higher rate where the motion is fast.

The tracker processes samples: one frame per interval, and the first and the last frame of each scene. A sample of a
person that is far from the line between its neighbours in time shows that the motion is fast. The frames in the middle
of both adjacent intervals are then estimated as well, and again the middles of these intervals (bisection), in a region
between those of the neighbours. People who enter or leave are searched for in the frames before and after in the same
way. Everything else is interpolated after lifting (`pose.lifting.between`).
"""

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from pose.networks import crops
from pose.structures.keypoint_sigma import score_sigma, with_distance
from pose.structures.types import F32, U8, Frame, Keypoints2D, People, Regions
from pose.tracking.cuts import CutDetector
from pose.tracking.people_tracker import PeopleTracker
from pose.tracking.person_state import lengths, median

# Distance of a joint from the line between its neighbours beyond which the motion is fast, relative to the height.
MAX_DEVIATION = 0.05
MIN_SCORE = 0.3  # joints with a lower score do not show fast motion
# Largest median distance of the joints of a person from their expected positions, relative to the height, and the
# smallest one from those of other people; otherwise the pose may be that of another person.
MAX_STRAY, MAX_STRAY_ONE_SIDED, MIN_APART = 0.15, 0.25, 0.1
SEARCH_S = 0.5  # s after the start and after a cut with twice the rate: there, people are found and get their ids
FINEST_INTERVAL_S = 1 / 60  # bisection ends at this interval, which bounds the number of images in memory
MAX_NEIGHBOUR_INTERVALS = 2.5  # samples further apart, in sampling intervals, are not neighbours


@dataclass(frozen=True, slots=True, order=True)
class _Sample:
    """Keypoints of one person in one frame; ordered by time."""

    time: float
    keypoints: Keypoints2D = field(compare=False)  # of length 1

    @property
    def xy(self) -> F32:
        """(J, 2) px."""
        xy: F32 = self.keypoints.xy[0]
        return xy

    @property
    def height(self) -> float:
        """Longer side of the box around the joints, px."""
        box = crops.bounds(self.keypoints.xy, self.keypoints.scores > 0)[0]
        return max(float((box[2:] - box[:2]).max()), 1.0)


@dataclass(frozen=True, slots=True)
class TrackedFrame:
    """A frame that is final in 2D."""

    image: U8 | None  # (H, W, 3) uint8 RGB; None if it is not needed, in videos of many frames per second
    people: People  # people of the frame; between samples only those who move fast
    expected: People  # approximate keypoints of all people, to exclude them from the background


@dataclass(slots=True, eq=False)
class _Held:
    """A frame that waits until the samples around it are known."""

    index: int
    time: float
    image: U8 | None
    people: People | None = None  # tracked people; None between samples
    regions: dict[int, Regions] = field(default_factory=dict)  # regions of people without occluders, by id
    added: dict[int, Keypoints2D] = field(default_factory=dict)  # people estimated between samples, by id


class SampledTracker:
    """Tracker of 2D people that returns samples, and empty frames between, in order, about two intervals late."""

    def __init__(self, tracker: PeopleTracker, rate_hz: float) -> None:
        """Start without people; `rate_hz` is the number of samples per second."""
        self._tracker, self._interval = tracker, 1 / rate_hz
        self._cuts = CutDetector()
        self._queue: deque[_Held] = deque()
        self._sampled_at = self._kept_at = self._time = -np.inf  # s: last sample, last kept image, last frame
        self._searching_until = -np.inf  # s: until then every frame is a sample
        self._samples: dict[int, list[_Sample]] = {}  # by id, in the order of time

    def push(self, frame: Frame, *, cut: bool | None = None) -> list[TrackedFrame]:
        """Add the next frame; return the frames that are final now; `cut` is None if cuts are to be detected here."""
        cut = self._cuts.is_cut(frame.image) if cut is None else cut
        if cut:
            self._sample_last()
        step = frame.time - self._time
        self._time = frame.time
        self._queue.append(_Held(frame.index, frame.time, frame.image))
        if cut or step == np.inf:
            self._searching_until = frame.time + SEARCH_S
        interval = self._interval
        if frame.time < self._searching_until:
            interval /= 2
        if cut or frame.time + step / 2 >= self._sampled_at + interval:
            self._track(self._queue[-1], cut)
        return self._take(final=False)

    def flush(self) -> list[TrackedFrame]:
        """Return the remaining frames after the end of the source."""
        self._sample_last()
        samples = self._sampled_frames()
        if len(samples) > 1:
            self._refine(*samples[-2:])
        return self._take(final=True)

    def _sampled_frames(self) -> list[_Held]:
        return [held for held in self._queue if held.people is not None]

    def _sample_last(self) -> None:
        """Track people in the newest frame, unless it is a sample."""
        if self._queue and self._queue[-1].people is None:
            self._track(self._queue[-1], cut=False)

    def _track(self, held: _Held, cut: bool) -> None:
        """Make a frame a sample, and refine the interval before the last one."""
        assert held.image is not None
        held.people = self._tracker.step(held.image, held.index, held.time, cut=cut)
        held.regions = self._tracker.regions
        self._sampled_at = self._kept_at = held.time
        for row, person in enumerate(held.people.ids.tolist()):
            rows, score = [row], held.people.box_scores[[row]]
            regions = held.regions.get(person, Regions.empty())
            nowhere = np.zeros((1, 2), np.float32)
            next_region = regions if len(regions) else Regions(nowhere, nowhere, np.zeros(1, np.float32))
            keypoints = Keypoints2D(held.people.keypoints[rows], held.people.scores[rows], score, next_region)
            self._samples.setdefault(person, []).append(_Sample(held.time, keypoints))
        samples = self._sampled_frames()
        if len(samples) > 2:
            self._refine(*samples[-3:-1])
        oldest = min(held.time - 5 * self._interval, samples[-2:][0].time)  # the last interval is refined next
        self._samples = {
            person: kept
            for person, known in self._samples.items()
            if (kept := [sample for sample in known if sample.time >= oldest])
        }

    def _take(self, final: bool) -> list[TrackedFrame]:
        """Remove and return the frames before the last sample but one, or all."""
        samples = self._sampled_frames()
        end = len(self._queue)
        if not final:
            end = self._queue.index(samples[-2]) if len(samples) > 1 else 0
            self._drop_images()
        taken = (self._queue.popleft() for _ in range(end))
        return [self._observed(held) for held in taken]

    def _drop_images(self) -> None:
        """Delete the image of the last frame but one if bisection does not need it."""
        if len(self._queue) < 2:
            return
        held = self._queue[-2]
        if held.people is None and held.time > self._kept_at:
            if held.time + 0.25 * FINEST_INTERVAL_S < self._kept_at + FINEST_INTERVAL_S:
                held.image = None
            else:
                self._kept_at = held.time

    def _observed(self, held: _Held) -> TrackedFrame:
        if held.people is not None:
            return TrackedFrame(held.image, held.people, held.people)
        expected = {person: self._nearest(person, held.time) for person in self._samples}
        known = {person: keypoints for person, keypoints in expected.items() if keypoints is not None}
        return TrackedFrame(held.image, self._people(held, held.added), self._people(held, known))

    def _people(self, held: _Held, found: dict[int, Keypoints2D]) -> People:
        ids, joints = sorted(found), len(self._tracker.skeleton)
        xy = np.concatenate([np.zeros((0, joints, 2), np.float32), *(found[person].xy for person in ids)])
        scores = np.concatenate([np.zeros((0, joints), np.float32), *(found[person].scores for person in ids)])
        presence = np.concatenate([np.zeros(0, np.float32), *(found[person].presence for person in ids)])
        apart = np.concatenate([np.zeros((0, joints), np.float32), *(found[person].distance for person in ids)])
        boxes = crops.bounds(xy, scores > 0) if ids else np.zeros((0, 4), np.float32)
        return People(
            held.index, held.time, np.array(ids, np.int64), boxes, presence, xy, scores,
            with_distance(score_sigma(xy, scores), apart), sampled=False,
        )  # fmt: skip

    def _nearest(self, person: int, time: float) -> Keypoints2D | None:
        """Return the keypoints of the sample nearest in time, moved to `time`; None without one."""
        expected = self._expected(person, time)
        if expected is None:
            return None
        nearest = min(self._samples[person], key=lambda sample: abs(sample.time - time))
        return replace(nearest.keypoints, xy=expected[None])

    def _refine(self, left: _Held, right: _Held) -> None:
        """Estimate more people between two successive samples: fast, entering and leaving ones."""
        assert left.people is not None
        assert right.people is not None
        between = [held for held in self._queue if left.time < held.time < right.time and held.image is not None]
        if right.people.cut or not between:
            return
        for person in sorted(left.regions.keys() & right.regions.keys()):
            self._bisect(person, left, right, between)
        before, after = set(left.people.ids.tolist()), set(right.people.ids.tolist())
        for person in sorted(right.regions.keys() - before):
            self._find_end(person, right.regions[person], between)
        for person in sorted(left.regions.keys() - after):
            self._find_end(person, left.regions[person], between[::-1])

    def _bisect(self, person: int, left: _Held, right: _Held, between: list[_Held]) -> None:
        """Estimate a person between two frames if the motion is fast, and again in both halves."""
        inside = [held for held in between if left.time < held.time < right.time]
        if not inside or not (self._is_fast(person, left.time) or self._is_fast(person, right.time)):
            return
        middle = min(inside, key=lambda held: abs(2 * held.time - left.time - right.time))
        share = (middle.time - left.time) / (right.time - left.time)
        middle.regions[person] = _between(left.regions[person], right.regions[person], share)
        if self._estimate(person, middle, MAX_STRAY):
            self._bisect(person, left, middle, inside)
            self._bisect(person, middle, right, inside)

    def _find_end(self, person: int, region: Regions, between: list[_Held]) -> None:
        """Search for the first of some frames that shows a person, who is certainly seen after the last one."""
        first, last = 0, len(between)
        while first < last:
            middle = (first + last) // 2
            between[middle].regions[person] = region
            if self._estimate(person, between[middle], MAX_STRAY_ONE_SIDED):
                last = middle
            else:
                first = middle + 1

    def _estimate(self, person: int, held: _Held, max_stray: float) -> bool:
        """Estimate a person in a frame between samples; return whether the pose is plausible."""
        assert held.image is not None
        keypoints = self._tracker.estimate(held.image, held.regions[person])
        sample = _Sample(held.time, keypoints)
        expected = self._expected(person, sample.time)
        if expected is None or not self._tracker.is_present(keypoints):
            return False
        stray = _distance(sample.xy, expected)
        others = [self._expected(other, sample.time) for other in self._samples if other != person]
        nearest = min((_distance(sample.xy, xy) for xy in others if xy is not None), default=np.inf)
        if stray > max_stray * sample.height or nearest < min(stray, MIN_APART * sample.height):
            return False
        held.added[person] = keypoints
        insort(self._samples[person], sample)
        return True

    def _expected(self, person: int, time: float) -> F32 | None:
        """Return the joints of a person between two samples, or those of the only neighbour; None without one."""
        samples = self._samples[person]
        place = bisect_left(samples, time, key=lambda sample: sample.time)
        near = [s for s in samples[max(place - 1, 0) : place + 1] if abs(s.time - time) < 1.5 * self._interval]
        if len(near) < 2:
            return near[0].xy if near else None
        return _on_line(near[0], near[1], time)

    def _is_fast(self, person: int, time: float) -> bool:
        """Return whether the sample of a person at `time` is far from the line between its neighbours."""
        samples = self._samples[person]
        place = bisect_left(samples, time, key=lambda sample: sample.time)
        if not 0 < place < len(samples) - 1:
            return False
        before, sample, after = samples[place - 1 : place + 2]
        if after.time - before.time > 2 * MAX_NEIGHBOUR_INTERVALS * self._interval:
            return False
        scores = np.min([each.keypoints.scores[0] for each in (before, sample, after)], axis=0)
        away = lengths(sample.xy - _on_line(before, after, sample.time))
        return bool((away[scores >= MIN_SCORE] > MAX_DEVIATION * sample.height).any())


def _on_line(before: _Sample, after: _Sample, time: float) -> F32:
    """Return joints (J, 2) interpolated linearly between two samples."""
    share = np.float32((time - before.time) / (after.time - before.time))
    return np.asarray(before.xy + share * (after.xy - before.xy), np.float32)


def _distance(xy: F32, other: F32) -> float:
    """Return the median distance of the joints of two poses, px."""
    return float(median(lengths(xy - other)))


def _between(left: Regions, right: Regions, share: float) -> Regions:
    """Return the region between two regions of the same person."""
    turn = np.mod(right.angles - left.angles + np.pi, 2 * np.pi) - np.pi
    return Regions(
        np.asarray(left.centers + share * (right.centers - left.centers), np.float32),
        np.asarray(left.sizes + share * (right.sizes - left.sizes), np.float32),
        np.asarray(left.angles + share * turn, np.float32),
    )
