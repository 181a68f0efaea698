"""Repair of a person's 2D keypoints before lifting: left-right swaps, outliers and low scores.

Left-right swaps of limbs and of the whole body are undone (`pose.lifting.repair.swaps`). Outliers
(`pose.lifting.repair.outliers`) and
joints with a low score get score 0. No coordinates are changed otherwise.
"""

from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pose.lifting.repair.facing import MIN_FACE_EVIDENCE, face_agreement
from pose.lifting.repair.outliers import WINDOW_SECONDS, find_outliers
from pose.lifting.repair.sides import mirrored_orders
from pose.lifting.repair.stream_body import StreamBodySwaps
from pose.lifting.repair.swaps import BODY_RULES, LIMB_RULES, MIN_SEEN_S, SwapFinder, body_pairs, limb_pairs, limb_rules
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import Skeleton, get_skeleton
from pose.structures.types import F32, Flags

_Frame = tuple[F32, F32, float, Flags]  # keypoints, scores, time, and swapped limbs

MIN_SCORE = 0.05  # minimum score of a visible joint
LIMBS_LOOKAHEAD_S = LIMB_RULES.max_swap_s + WINDOW_SECONDS  # s of look-ahead that limbs and outliers need
BODY_LOOKAHEAD_S = BODY_RULES.max_swap_s + MIN_SEEN_S  # additional s that swaps of the whole body need
FULL_LOOKAHEAD_S = LIMBS_LOOKAHEAD_S + BODY_LOOKAHEAD_S  # s of look-ahead beyond which no decision changes much


def repair(sequence: Sequence2D, *, lookahead: float = np.inf, min_score: float = MIN_SCORE) -> Sequence2D:
    """Repair the track of one person."""
    person = PersonRepair(get_skeleton(sequence.skeleton), lookahead, min_score)
    repaired: list[Repaired] = []
    for keypoints, scores, time in zip(sequence.keypoints, sequence.scores, sequence.times.tolist(), strict=True):
        person.push(keypoints, scores, time)
        repaired += person.take(time)
    repaired += person.take(np.inf)
    if not repaired:
        return sequence
    return replace(
        sequence,
        keypoints=np.stack([frame.keypoints for frame in repaired]),
        scores=np.stack([frame.scores for frame in repaired]),
    )


class Repaired(NamedTuple):
    """One repaired frame of one person."""

    keypoints: F32  # (J, 2) px
    scores: F32  # (J,) in [0, 1]; 0 for outliers and low scores
    swapped: Flags  # (2,) whether a left-right swap of the legs and of the arms was undone


class PersonRepair:
    """Frame-by-frame repair of one person's keypoints, with a bounded delay."""

    def __init__(self, skeleton: Skeleton, lookahead: float, min_score: float = MIN_SCORE) -> None:
        """Start before the first frame, to decide with a delay of `lookahead` s."""
        # Below `WINDOW_SECONDS`, outliers are not removed, since without later frames they look like the start of a
        # fast motion. Below `FULL_LOOKAHEAD_S`, swaps of the whole body are undone only if the face contradicts the
        # sides.
        self._min_score = min_score
        self._lookahead, self._finds_outliers = lookahead, lookahead >= WINDOW_SECONDS
        ahead = lookahead - WINDOW_SECONDS if self._finds_outliers else lookahead
        self._limbs = SwapFinder(list(limb_pairs(skeleton).values()), limb_rules(ahead), ahead)
        self._rules_with_face = limb_rules(ahead, face=True)
        self._body: SwapFinder | StreamBodySwaps
        if lookahead >= FULL_LOOKAHEAD_S:
            self._body = SwapFinder(
                [body_pairs(skeleton)], BODY_RULES, lookahead - LIMBS_LOOKAHEAD_S, self._face_permits
            )
        else:
            self._body = StreamBodySwaps(skeleton)
        self._skeleton, self._mirrors = skeleton, mirrored_orders(skeleton)
        self._body_queue: deque[_Frame] = deque()  # frames for which swaps of the whole body are not decided
        self._limb_queue: deque[_Frame] = deque()  # frames for which only swaps of the limbs are not decided
        self._recent: list[_Frame] = []  # decided frames that the search for outliers still needs
        self._returned = 0  # number of frames in `_recent` that were returned

    def push(self, keypoints: F32, scores: F32, time: float) -> None:
        """Add the next frame that contains the person, keypoints (J, 2) px at `time` s."""
        masked = np.where(scores >= self._min_score, scores, 0).astype(np.float32)
        frame = keypoints, masked, time, np.zeros(2, bool)
        if isinstance(self._body, SwapFinder):
            self._body_queue.append(frame)
            self._body.push(keypoints, masked, time)
            return
        swapped = self._body.swapped(keypoints, masked, time)
        if self._body.has_face:
            self._limbs.rules = self._rules_with_face
        elif self._body.changes_back:
            self._limbs.mark_change_back(time)
        self._push_to_limbs(self._swapped(frame, np.full(2, swapped)))

    def take(self, now: float) -> list[Repaired]:
        """Return the new frames that are decided at `now` (s), oldest first; inf returns all frames."""
        for swapped in self._body.take(now) if isinstance(self._body, SwapFinder) else []:
            self._push_to_limbs(self._swapped(self._body_queue.popleft(), np.repeat(swapped, 2)))
        for swapped in self._limbs.take(now):
            self._recent.append(self._swapped(self._limb_queue.popleft(), swapped))
        repaired = []
        newest = np.inf if np.isposinf(now) else now - self._lookahead
        while self._returned < len(self._recent) and self._recent[self._returned][2] <= newest:
            repaired.append(self._without_outliers(self._returned))
            self._returned += 1
        while self._returned and self._recent[0][2] < self._recent[self._returned - 1][2] - WINDOW_SECONDS:
            self._recent.pop(0)
            self._returned -= 1
        return repaired

    def _push_to_limbs(self, frame: _Frame) -> None:
        self._limb_queue.append(frame)
        self._limbs.push(*frame[:3])

    def _swapped(self, frame: _Frame, limbs: Flags) -> _Frame:
        """Return the frame with left and right of some of the limbs (2,) swapped."""
        if not limbs.any():
            return frame
        keypoints, scores, time, before = frame
        for order in self._mirrors[limbs]:
            keypoints, scores = keypoints[order], scores[order]
        return keypoints, scores, time, before ^ limbs

    def _face_permits(self, begin: int, end: int) -> bool:
        """Return whether the face permits a swap of the whole body in undecided frames `begin` to `end` (exclusive)."""
        frames = list(self._body_queue)[begin:end]
        keypoints, scores = np.stack([frame[0] for frame in frames]), np.stack([frame[1] for frame in frames])
        return face_agreement(keypoints, scores, self._skeleton) < MIN_FACE_EVIDENCE

    def _without_outliers(self, row: int) -> Repaired:
        keypoints, scores, time, swapped = self._recent[row]
        if not self._finds_outliers:
            return Repaired(keypoints, scores, swapped)
        first = row
        while first and self._recent[first - 1][2] >= time - WINDOW_SECONDS:
            first -= 1
        last = row
        while last + 1 < len(self._recent) and self._recent[last + 1][2] <= time + WINDOW_SECONDS:
            last += 1
        window = self._recent[first : last + 1]
        outliers = find_outliers(
            np.stack([frame[0] for frame in window]),
            np.stack([frame[1] for frame in window]),
            np.array([frame[2] for frame in window]),
            row - first,
        )
        return Repaired(keypoints, np.where(outliers, 0, scores).astype(np.float32), swapped)
