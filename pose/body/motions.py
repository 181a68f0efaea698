"""A track as the motion of a skeleton with constant bone lengths, for formats with rotations."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pose.body.skeleton import Body, FittedMotion, SkeletonMotion, fit_body, residual, solve
from pose.body.timeline import TrackSpan
from pose.body.tracks import Track
from pose.structures import rotations
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

MAX_CACHED_SPANS = 32  # portions whose rotations are cached for the next format: 36 minutes at 30 frames/s, 37 MB
_MIN_LISTED_MM = 10  # mm; the summary lists joints with a larger mean distance from their bones


class AnimatedSkeleton:
    """The motion of one person as rotations of bones with constant lengths, interpolated in gaps."""

    def __init__(self, track: Track) -> None:
        self.track = track
        self._distance, self._count = np.zeros(len(H36M17)), 0

    @cached_property
    def body(self) -> Body:
        """The person's median bone lengths."""
        return fit_body(self.track.space.to_file(span.joints) for span in self.track.sample())

    def spans(self) -> Iterator[tuple[TrackSpan, SkeletonMotion]]:
        """Yield all frames in portions: the tracked poses, and the bone rotations with gaps filled."""
        self._distance, self._count = np.zeros(len(H36M17)), 0
        index = np.arange(len(self.track))
        earlier = np.maximum.accumulate(np.where(self.track.known, index, 0))
        later = np.minimum.accumulate(np.where(self.track.known, index, len(index))[::-1])[::-1]
        for span in self.track.spans():
            fitted = self._cached_motion(span)
            self._distance = self._distance + fitted.distance
            self._count += int(span.known.sum())
            yield span, self._filled(_with_gaps(fitted.motion, span.known), span, earlier, later)

    def distance_note(self) -> str:
        """Return a note on the mean distance of tracked joints and bone ends, complete after `spans`."""
        distances_mm = 1000 * self._distance / max(1, self._count)
        return f"joints lie {distances_mm.mean():.0f} mm from the bones on average{distant_joints_text(distances_mm)}"

    def _cached_motion(self, span: TrackSpan) -> FittedMotion:
        """Return the bone rotations of a span. They are cached because several formats use them."""
        cached, key = (
            self.track.recording.fitted_motions,
            (self.track.person, self.track.resampled, span.start, len(span.known)),
        )
        fitted = cached.get(key)
        if fitted is None:
            fitted = self._solve(span)
            if len(cached) < MAX_CACHED_SPANS:
                cached[key] = fitted
        return fitted

    def _solve(self, span: TrackSpan) -> FittedMotion:
        points = self.track.space.to_file(span.joints[span.known])
        motion = solve(points, self.body, span.times[span.known])
        distance = residual(points, self.body, motion).sum(axis=0)
        return FittedMotion(motion, distance)

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
        fraction = (times[at] - times[earlier[at]]) / (times[later[at]] - times[earlier[at]])
        motion.root[missing] = known.root[first] + (known.root[last] - known.root[first]) * fraction[:, None]
        motion.quaternions[missing] = rotations.slerp(
            known.quaternions[first], known.quaternions[last], fraction[:, None]
        )
        return motion


def distant_joints_text(distances_mm: F64) -> str:
    """List the joints that are more than 10 mm from their bones, such as `, spine 34 mm, neck 21 mm`."""
    return "".join(
        f", {name} {mm:.0f} mm"
        for name, mm in zip(H36M17.names, distances_mm.tolist(), strict=True)
        if mm > _MIN_LISTED_MM
    )


def _with_gaps(motion: SkeletonMotion, known: NDArray[np.bool_]) -> SkeletonMotion:
    """Expand the motion of the known frames to all frames. The values of other frames are undefined."""
    if known.all():
        return motion
    root, quaternions = np.empty((len(known), 3)), np.empty((len(known), *motion.quaternions.shape[1:]))
    root[known], quaternions[known] = motion.root, motion.quaternions
    return SkeletonMotion(root, quaternions)
