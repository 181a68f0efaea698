"""The offline lifter as a pipeline stage: tracks come in frame by frame, 3D goes out when no later frame can change it.

It gives what `Lifter.lift` gives for each whole track, with memory bounded by a window and not by the video.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from pose.lifter.predict import HOP, WINDOW, Blend, Lifter, split_outputs
from pose.skeletons import Skeleton
from pose.types import F32, FrameResult, People, Poses3D, Sequence2D

# A person who was away for longer starts a new sequence: what they did meanwhile is anybody's guess.
LONGEST_GAP_SECONDS = 1.0


class OfflineLifter:
    """`pose.stages.LifterStage` over an offline `Lifter`.

    skeleton: of the incoming keypoints. image_size: (width, height) px. intrinsics: (3, 3) px, None if unknown.
    """

    def __init__(
        self,
        lifter: Lifter,
        skeleton: Skeleton,
        image_size: tuple[int, int],
        intrinsics: NDArray[np.float64] | None = None,
    ) -> None:
        self._lifter, self._skeleton, self._image_size, self._intrinsics = lifter, skeleton, image_size, intrinsics
        self._tracks: dict[int, _Track] = {}
        self._pending: deque[_Pending] = deque()

    def push(self, people: People) -> list[FrameResult]:
        """Take the next frame; return the frames that are final now, oldest first."""
        self._end_tracks(before=people.time - LONGEST_GAP_SECONDS)
        pending = _Pending(people)
        self._pending.append(pending)
        for row, person in enumerate(people.ids.tolist()):
            track = self._tracks.setdefault(person, _Track())
            track.append(people, row, pending)
            if len(track.waiting) == WINDOW and track.fresh >= HOP:
                self._lift(track, last=False)
        return self._finished()

    def flush(self) -> list[FrameResult]:
        """The source has ended: return all frames not yet returned."""
        self._end_tracks(before=np.inf)
        return self._finished()

    def _end_tracks(self, before: float) -> None:
        for person, track in list(self._tracks.items()):
            if track.waiting[-1].time < before:
                self._lift(track, last=True)
                del self._tracks[person]

    def _lift(self, track: "_Track", last: bool) -> None:
        """Lift the waiting frames as one window and hand out those that no later window will touch."""
        if track.fresh:
            sequence = Sequence2D(
                np.stack([frame.keypoints for frame in track.waiting]),
                np.stack([frame.scores for frame in track.waiting]),
                np.array([frame.time for frame in track.waiting]),
                self._image_size,
                self._skeleton.name,
                self._intrinsics,
            )
            track.blend.add(track.start, self._lifter.forward([sequence])[0])
            track.fresh = 0
        count = len(track.waiting) if last else HOP
        for frame, answer in zip(track.waiting[:count], track.blend.take(count), strict=True):
            frame.pending.answer(frame.row, answer)
        track.waiting = track.waiting[count:]
        track.start += count

    def _finished(self) -> list[FrameResult]:
        done = []
        while self._pending and self._pending[0].missing == 0:
            done.append(self._pending.popleft().result())
        return done


class _Pending:
    """A frame whose people do not all have their 3D yet."""

    def __init__(self, people: People) -> None:
        self.people, self.missing = people, len(people)
        self._answers = np.zeros((len(people), 17 * 4 + 3), np.float32)

    def answer(self, row: int, answer: F32) -> None:
        self._answers[row] = answer
        self.missing -= 1

    def result(self) -> FrameResult:
        return FrameResult(self.people, Poses3D(*split_outputs(self._answers)))


class _Waiting:
    """One person in one frame that is not final yet."""

    __slots__ = ("keypoints", "pending", "row", "scores", "time")

    def __init__(self, people: People, row: int, pending: _Pending) -> None:
        self.keypoints, self.scores, self.time = people.keypoints[row], people.scores[row], people.time
        self.row, self.pending = row, pending


class _Track:
    """One person: the frames from the first that is not final on, and how many of them no window has seen yet."""

    def __init__(self) -> None:
        self.waiting: list[_Waiting] = []
        self.blend = Blend()
        self.start = 0
        self.fresh = 0

    def append(self, people: People, row: int, pending: _Pending) -> None:
        self.waiting.append(_Waiting(people, row, pending))
        self.fresh += 1
