"""Detection of left-right swaps of the whole body in a stream, which cannot wait for the end of a swap.

When left and right change, the change alone does not show whether the frames before or after it are swapped; the scores
of the face can. Without this evidence the body stays as observed. Its sides are still tracked, so that a later change
back is not taken for another swap.
"""

from collections import deque
from dataclasses import replace

import numpy as np

from pose.lifting.repair.facing import MIN_FACE_EVIDENCE, face_agreement, has_face_evidence
from pose.lifting.repair.swaps import BODY_RULES, SwapFinder, body_pairs
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32

FACE_SECONDS = 0.3  # duration of the evidence from the face that is averaged
MIN_SWAP_S = 1.0  # minimum duration of a swap before its end counts as the change back
RULES = replace(BODY_RULES, needs_both_ends=False)


class StreamBodySwaps:
    """Frame-by-frame detection of left-right swaps of the whole body of one person."""

    def __init__(self, skeleton: Skeleton) -> None:
        self._skeleton = skeleton
        self._finder = SwapFinder([body_pairs(skeleton)], RULES, lookahead=0.0)
        self._since = np.inf  # s, time at which the sides changed
        self._changed: deque[tuple[F32, F32, float]] = deque()  # last frames since the change: keypoints, scores, time
        self._face_seconds = 0.0  # s for which the face gave evidence
        self._time = np.inf
        self.changes_back = False  # whether a swap of the sides ends in the newest frame, after more than `MIN_SWAP_S`

    @property
    def has_face(self) -> bool:
        """Whether the face has given evidence for at least `FACE_SECONDS` so far. With many networks it never does."""
        return self._face_seconds >= FACE_SECONDS

    def swapped(self, keypoints: F32, scores: F32, time: float) -> bool:
        """Process the next frame, and return whether the sides have changed and the face contradicts those observed."""
        if has_face_evidence(scores, self._skeleton):
            self._face_seconds += np.clip(time - self._time, 0, FACE_SECONDS / 3)
        self._time = time
        self._finder.push(keypoints, scores, time)
        ((changed,),) = self._finder.take(time)
        self.changes_back = not changed and time - self._since > MIN_SWAP_S
        if not changed:
            self._changed.clear()
            self._since = np.inf
            return False
        self._since = min(self._since, time)
        self._changed.append((keypoints, scores, time))
        while self._changed[0][2] < time - FACE_SECONDS:
            self._changed.popleft()
        xy, frame_scores = (np.stack([frame[i] for frame in self._changed]) for i in (0, 1))
        return face_agreement(xy, frame_scores, self._skeleton) < -MIN_FACE_EVIDENCE
