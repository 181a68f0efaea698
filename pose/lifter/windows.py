"""One person's frames lifted while they come in: what `Lifter.lift` gives for the whole track, in bounded memory."""

from pose.camera import Camera
from pose.gaps import LONGEST_GAP_SECONDS
from pose.lifter.pending import PersonFrame, seen_sequence
from pose.lifter.predict import HOP, WINDOW, Blend, Lifter
from pose.skeletons import Skeleton


class PersonWindows:
    """Lifts the frames of one person in windows that overlap and are blended. After a long absence it begins anew."""

    def __init__(self, lifter: Lifter, skeleton: Skeleton, camera: Camera) -> None:
        self._lifter, self._skeleton, self._camera = lifter, skeleton, camera
        self._begin()

    def _begin(self) -> None:
        self._waiting: list[PersonFrame] = []  # from the first that is not final on
        self._blend = Blend()
        self._start = 0  # which frame of the track is the first that waits
        self._fresh = 0  # how many no window has seen yet

    def push(self, frame: PersonFrame) -> list[PersonFrame]:
        """Take the next frame; return those that are lifted now, oldest first."""
        away = bool(self._waiting) and frame.time - self._waiting[-1].time > LONGEST_GAP_SECONDS
        lifted = self.end() if away else []
        self._waiting.append(frame)
        self._fresh += 1
        if len(self._waiting) == WINDOW and self._fresh >= HOP:
            lifted += self._lift(HOP)
        return lifted

    def end(self) -> list[PersonFrame]:
        """No frame follows: lift the rest."""
        lifted = self._lift(len(self._waiting))
        self._begin()
        return lifted

    def _lift(self, count: int) -> list[PersonFrame]:
        """Lift the waiting frames as one window and take the first `count`, which no later window will touch."""
        if self._fresh:
            sequence = seen_sequence(self._waiting, self._camera, self._skeleton)
            self._blend.add(self._start, self._lifter.forward_mirrored([sequence])[0])
            self._fresh = 0
        lifted, self._waiting = self._waiting[:count], self._waiting[count:]
        for frame, answer in zip(lifted, self._blend.take(count), strict=True):
            frame.lifted = answer
        self._start += count
        return lifted
