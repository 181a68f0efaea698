"""A track as the motion of a skeleton with constant bone lengths, for formats with rotations."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pose.export import rotations
from pose.export.skeleton import Body, SkeletonMotion, Solved, fit_body, residual, solve
from pose.export.timeline import TrackSpan
from pose.export.tracks import Track
from pose.skeletons import H36M17

F64 = NDArray[np.float64]


KEPT = 32  # portions whose rotations are cached for the next format: 36 minutes at 30 frames/s, 37 MB
_NAMED_FROM = 10  # mm; the summary lists joints with a larger mean distance from their bones


class AnimatedSkeleton:
    """The motion of one person as rotations of bones with constant lengths.

    In gaps, rotations are interpolated by slerp, and the root linearly.
    """

    def __init__(self, track: Track) -> None:
        self.track = track
        self._distance, self._count = np.zeros(len(H36M17)), 0

    @cached_property
    def body(self) -> Body:
        """The person's median bone lengths."""
        return fit_body(self.track.space.to_file(span.places) for span in self.track.sample())

    def spans(self) -> Iterator[tuple[TrackSpan, SkeletonMotion]]:
        """Yield all frames in portions: the tracked poses, and the bone rotations with gaps filled."""
        self._distance, self._count = np.zeros(len(H36M17)), 0
        index = np.arange(len(self.track))
        earlier = np.maximum.accumulate(np.where(self.track.known, index, 0))
        later = np.minimum.accumulate(np.where(self.track.known, index, len(index))[::-1])[::-1]
        for span in self.track.spans():
            solved = self._solved(span)
            self._distance = self._distance + solved.distance
            self._count += int(span.known.sum())
            yield span, self._filled(_spread(solved.motion, span.known), span, earlier, later)

    def distance_note(self) -> str:
        """Return a note on the mean distance between tracked joints and bone ends.

        It is complete once the iterator of `spans` is exhausted.
        """
        away = 1000 * self._distance / max(1, self._count)
        return f"joints lie {away.mean():.0f} mm from the bones on average{far_joints(away)}"

    def _solved(self, span: TrackSpan) -> Solved:
        """Return the bone rotations of a span. They are cached because several formats use them."""
        kept, key = self.track.recording.solved, (self.track.person, self.track.resampled, span.start, len(span.known))
        solved = kept.get(key)
        if solved is None:
            solved = self._solve(span)
            if len(kept) < KEPT:
                kept[key] = solved
        return solved

    def _solve(self, span: TrackSpan) -> Solved:
        places = self.track.space.to_file(span.places[span.known])
        motion = solve(places, self.body)
        distance = residual(places, self.body, motion).sum(axis=0)
        return Solved(motion, distance)

    def _filled(
        self, motion: SkeletonMotion, span: TrackSpan, earlier: NDArray[np.int64], later: NDArray[np.int64]
    ) -> SkeletonMotion:
        missing = np.flatnonzero(~span.known)
        if not len(missing):
            return motion
        at = missing + span.start
        ends = np.unique(np.concatenate([earlier[at], later[at]]))
        known = self._solve(self.track.read(ends)).motion
        first, last = np.searchsorted(ends, earlier[at]), np.searchsorted(ends, later[at])
        times = self.track.times
        share = (times[at] - times[earlier[at]]) / (times[later[at]] - times[earlier[at]])
        motion.root[missing] = known.root[first] + (known.root[last] - known.root[first]) * share[:, None]
        motion.turns[missing] = rotations.slerp(known.turns[first], known.turns[last], share[:, None])
        return motion


def far_joints(away: F64) -> str:
    """List the joints that are more than 10 mm from their bones, such as `, spine 34 mm, neck 21 mm`.

    Args:
        away: (17,) mean distances in mm, in Human3.6M order.
    """
    return "".join(
        f", {name} {mm:.0f} mm" for name, mm in zip(H36M17.names, away.tolist(), strict=True) if mm > _NAMED_FROM
    )


def _spread(motion: SkeletonMotion, known: NDArray[np.bool_]) -> SkeletonMotion:
    """Expand the motion of the known frames to all frames. The values of other frames are undefined.

    Args:
        motion: Motion of the known frames.
        known: (n,) mask of the known frames.
    """
    if known.all():
        return motion
    root, turns = np.empty((len(known), 3)), np.empty((len(known), *motion.turns.shape[1:]))
    root[known], turns[known] = motion.root, motion.turns
    return SkeletonMotion(root, turns)
