"""The offline lifter as a pipeline stage: tracks come in frame by frame, 3D goes out when no later frame can change it.

It gives what `Lifter.lift` gives for each whole track, with memory bounded by a window and not by the video.
"""

from collections import deque

import numpy as np

from pose.camera import Camera
from pose.lifter.pending import PendingFrame, take_finished
from pose.lifter.predict import HOP, WINDOW, Blend, Lifter
from pose.sequences import Sequence2D
from pose.skeletons import Skeleton
from pose.stages import LONGEST_GAP_SECONDS
from pose.types import FrameResult, People


class OfflineLifter:
    """`pose.stages.LifterStage` over an offline `Lifter`.

    skeleton: of the incoming keypoints. camera: that sees them.
    """

    def __init__(self, lifter: Lifter, skeleton: Skeleton, camera: Camera) -> None:
        self._lifter, self._skeleton, self._camera = lifter, skeleton, camera
        self._tracks: dict[int, _Track] = {}
        self._pending: deque[PendingFrame] = deque()

    def push(self, people: People) -> list[FrameResult]:
        """Take the next frame; return the frames that are final now, oldest first."""
        self._end_tracks(last_seen_before=people.time - LONGEST_GAP_SECONDS)
        pending = PendingFrame(people)
        self._pending.append(pending)
        for row, person in enumerate(people.ids.tolist()):
            track = self._tracks.setdefault(person, _Track())
            track.append(people, row, pending)
            if len(track.waiting) == WINDOW and track.fresh >= HOP:
                self._lift(track, last=False)
        return take_finished(self._pending)

    def flush(self) -> list[FrameResult]:
        """The source has ended: return all frames not yet returned."""
        self._end_tracks(last_seen_before=np.inf)
        return take_finished(self._pending)

    def _end_tracks(self, last_seen_before: float) -> None:
        for person, track in list(self._tracks.items()):
            if track.waiting[-1].time < last_seen_before:
                self._lift(track, last=True)
                del self._tracks[person]

    def _lift(self, track: "_Track", last: bool) -> None:
        """Lift the waiting frames as one window and hand out those that no later window will touch."""
        if track.fresh:
            sequence = Sequence2D(
                np.stack([frame.keypoints for frame in track.waiting]),
                np.stack([frame.scores for frame in track.waiting]),
                np.array([frame.time for frame in track.waiting]),
                self._camera,
                self._skeleton.name,
            )
            track.blend.add(track.start, self._lifter.forward_mirrored([sequence])[0])
            track.fresh = 0
        count = len(track.waiting) if last else HOP
        for frame, answer in zip(track.waiting[:count], track.blend.take(count), strict=True):
            frame.pending.answer(frame.row, answer)
        track.waiting = track.waiting[count:]
        track.start += count


class _Waiting:
    """One person in one frame that is not final yet."""

    __slots__ = ("keypoints", "pending", "row", "scores", "time")

    def __init__(self, people: People, row: int, pending: PendingFrame) -> None:
        self.keypoints, self.scores, self.time = people.keypoints[row], people.scores[row], people.time
        self.row, self.pending = row, pending


class _Track:
    """One person: the frames from the first that is not final on, and how many of them no window has seen yet."""

    def __init__(self) -> None:
        self.waiting: list[_Waiting] = []
        self.blend = Blend()
        self.start = 0
        self.fresh = 0

    def append(self, people: People, row: int, pending: PendingFrame) -> None:
        self.waiting.append(_Waiting(people, row, pending))
        self.fresh += 1
