"""A track as the motion of constant bones, for the formats that hold rotations."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pose.export import rotations
from pose.export.skeleton import Body, Motion, fit_body, residual, solve
from pose.export.tracks import Span, Track

F64 = NDArray[np.float64]


class Bones:
    """One person's bones. Gaps are filled from the frames before and after: turns by slerp, the root on a line."""

    def __init__(self, track: Track) -> None:
        self.track = track
        self._distance, self._count = 0.0, 0

    @cached_property
    def body(self) -> Body:
        return fit_body(self.track.space.to_file(span.places) for span in self.track.sample())

    def spans(self) -> Iterator[tuple[Span, Motion]]:
        """All frames, in portions, without a missing one."""
        self._distance, self._count = 0.0, 0
        index = np.arange(len(self.track))
        before = np.maximum.accumulate(np.where(self.track.known, index, 0))
        after = np.minimum.accumulate(np.where(self.track.known, index, len(index))[::-1])[::-1]
        for span in self.track.spans():
            motion = self._solved(span, True)
            yield span, self._filled(motion, span, before, after)

    def mean_distance(self) -> float:
        """Of the joints of all known frames from the bones, m, once `spans` has been used up."""
        return self._distance / max(1, self._count)

    def _solved(self, span: Span, measure: bool) -> Motion:
        """The motion of the known frames; the others hold nothing yet."""
        known = span.known
        places = self.track.space.to_file(span.places[known])
        motion = solve(places, self.body)
        if measure:
            distances = residual(places, self.body, motion)
            self._distance, self._count = self._distance + distances.sum(), self._count + distances.size
        if known.all():
            return motion
        root, turns = np.empty((len(known), 3)), np.empty((len(known), *motion.turns.shape[1:]))
        root[known], turns[known] = motion.root, motion.turns
        return Motion(root, turns)

    def _filled(self, motion: Motion, span: Span, before: NDArray[np.int64], after: NDArray[np.int64]) -> Motion:
        missing = np.flatnonzero(~span.known)
        if not len(missing):
            return motion
        at = missing + span.start
        ends = np.unique(np.concatenate([before[at], after[at]]))
        known = self._solved(self.track.read(ends), False)
        first, last = np.searchsorted(ends, before[at]), np.searchsorted(ends, after[at])
        times = self.track.times
        share = (times[at] - times[before[at]]) / (times[after[at]] - times[before[at]])
        motion.root[missing] = known.root[first] + (known.root[last] - known.root[first]) * share[:, None]
        motion.turns[missing] = rotations.slerp(known.turns[first], known.turns[last], share[:, None])
        return motion
