"""A front taken for a back, told at once: for a stream, which cannot wait for the other end of the exchange.

One end alone does not say on which side of it the mistake is: before it, or from it on. A face that speaks does. Where
none does a body is left as it is seen; but its sides are followed, since who changes back has not been exchanged then.
"""

from collections import deque
from dataclasses import replace

import numpy as np

from pose.repair.facing import PLAIN, face_agrees, face_speaks
from pose.repair.swaps import BODY_RULES, SwapFinder, body_pairs
from pose.skeletons import Skeleton
from pose.types import F32

FACE_SECONDS = 0.3  # over which the face is asked
LASTING_SECONDS = 1.0  # that sides must have changed for, if what follows is to be their changing back
RULES = replace(BODY_RULES, ends=False)


class BodyAtOnce:
    """Says frame by frame whether the whole body of one person is exchanged."""

    def __init__(self, skeleton: Skeleton) -> None:
        self._skeleton = skeleton
        self._finder = SwapFinder([body_pairs(skeleton)], RULES, lookahead=0.0)
        self._since = np.inf  # when the sides changed, s
        self._changed: deque[tuple[F32, F32, float]] = deque()  # the last frames since then
        self._spoken = 0.0  # for how many seconds the face has said something
        self._time = np.inf
        self.changes_back = False  # whether, in the newest frame, sides that had changed for long changed back

    @property
    def has_face(self) -> bool:
        """Whether the face has spoken for more than a moment; with many networks it never does."""
        return self._spoken >= FACE_SECONDS

    def exchanged(self, keypoints: F32, scores: F32, time: float) -> bool:
        """Whether the sides have changed and the face contradicts them. (J, 2) px, (J,), 0 where not seen, and s."""
        if face_speaks(scores, self._skeleton):
            self._spoken += np.clip(time - self._time, 0, FACE_SECONDS / 3)
        self._time = time
        self._finder.push(keypoints, scores, time)
        ((changed,),) = self._finder.take(time)
        self.changes_back = not changed and time - self._since > LASTING_SECONDS
        if not changed:
            self._changed.clear()
            self._since = np.inf
            return False
        self._since = min(self._since, time)
        self._changed.append((keypoints, scores, time))
        while self._changed[0][2] < time - FACE_SECONDS:
            self._changed.popleft()
        xy, sure = (np.stack([frame[i] for frame in self._changed]) for i in (0, 1))
        return face_agrees(xy, sure, self._skeleton) < -PLAIN
