"""Which parts of a track show a person, judged by the frames and joints that were seen, not by first and last frame.

A tracker may start a track on a shadow or between two people, lose it, and find it again elsewhere. Such a track is
long from its first to its last frame, and hardly ever seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.world.person import Person
from pose.world.rules import RULES, TrackRules

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pieces = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Scenes:
    """When scenes begin: (N,) s, increasing, the first included. end: s of the last frame. step: s between frames."""

    begins: Sequence[float]
    end: float
    step: float

    @classmethod
    def of(cls, frames: F64, cuts: Sequence[float] = ()) -> "Scenes":
        """The scenes of frames (F,) s, of which those at `cuts` begin another scene."""
        step = float(np.median(np.diff(frames))) if len(frames) > 1 else 0.0
        return cls([float(frames[0]), *cuts], float(frames[-1]), step)

    def around(self, time: float) -> tuple[float, float]:
        """First and last second of the scene that holds `time`."""
        first = max((at for at in self.begins if at <= time), default=time)
        return first, min((at for at in [*self.begins, self.end] if at > time), default=self.end)

    def touched(self, first: float, last: float, within: float) -> bool:
        """Whether a scene begins or ends within so many seconds of the first or the last second of something."""
        return any(min(abs(first - at), abs(last - at)) <= within for at in [*self.begins, self.end])


def shown_frames(person: Person, scenes: Scenes, rules: TrackRules = RULES.tracks) -> Mask:
    """(T,) False for frames that show nobody: short pieces of a track of which little else is seen around.

    A piece ends where the person is missing for longer than `max_pause_s`. It is left out if it is seen for less than
    `min_seen_s`, each frame counted by the share of its joints that are seen, if less than `min_seen_share` of the
    second around it is seen, and if it touches neither end of its scene: people enter and leave there.
    """
    share = _shown_share(person, rules)
    kept = np.ones(len(person), bool)
    for first, last in _pieces(person.times, scenes, rules):
        begin, end = float(person.times[first]), float(person.times[last])
        if (end - begin) * share[first : last + 1].mean() >= rules.min_seen_s or scenes.touched(
            begin, end, rules.min_seen_s
        ):
            continue
        scene = scenes.around(begin)
        low, high = max(scene[0], begin - rules.around_s), min(scene[1], end + rules.around_s)
        near = (person.times >= low) & (person.times <= high)
        kept[first : last + 1] = scenes.step * float(share[near].sum()) >= rules.min_seen_share * (high - low)
    return kept


def is_doubtful(person: Person, scenes: Scenes, rules: TrackRules = RULES.tracks) -> bool:
    """Whether a track may show nobody: it is seen for a short time, in few of its frames, or with few joints."""
    if len(person) == 0:
        return True
    share = _shown_share(person, rules)
    seen = scenes.step * float(share.sum())
    first, last = scenes.around(float(person.times[0]))
    least = min(rules.doubtful_seen_s, (last - first) / 2)
    spans = float(person.times[-1] - person.times[0])
    return bool(seen < least or share.mean() < rules.doubtful_joint_share or seen < rules.min_seen_share * spans)


def _shown_share(person: Person, rules: TrackRules) -> F64:
    """(T,) share of the joints that each frame shows."""
    return np.asarray((person.scores >= rules.seen_score).mean(axis=1))


def _pieces(times: F64, scenes: Scenes, rules: TrackRules) -> Pieces:
    """First and last frame of each piece."""
    ends = np.flatnonzero(np.diff(times) > _longest_pause(scenes, rules))
    return list(zip([0, *(ends + 1).tolist()], [*ends.tolist(), len(times) - 1], strict=True))


def _longest_pause(scenes: Scenes, rules: TrackRules) -> float:
    return max(rules.max_pause_s, 2.5 * scenes.step)
