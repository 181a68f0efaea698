"""What is wrong with a person's 2D over time, put right before it is lifted: exchanged limbs, outliers, low scores.

No coordinate is made up. A limb that was exchanged gets its own joints back (`pose.repair.swaps`), a joint that is far
off (`pose.repair.outliers`) or has a low score gets score 0.
"""

from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pose.repair.outliers import WINDOW_SECONDS, find_outliers
from pose.repair.sides import mirrored_orders
from pose.repair.swaps import LONGEST_SECONDS, SwapFinder
from pose.sequences import Sequence2D
from pose.skeletons import Skeleton, get_skeleton
from pose.types import F32, Flags

LEAST_SCORE = 0.05  # joints below are not seen
WHOLE_VIEW = LONGEST_SECONDS + WINDOW_SECONDS  # s of look-ahead beyond which no decision changes much


def repair(sequence: Sequence2D, *, lookahead: float = np.inf, least_score: float = LEAST_SCORE) -> Sequence2D:
    """The track of one person repaired. Times, camera and skeleton stay.

    lookahead, least_score: as in `PersonRepair`; what a live stream would see has a look-ahead of 0.
    """
    person = PersonRepair(get_skeleton(sequence.skeleton), lookahead, least_score)
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
    """One frame of one person. keypoints: (J, 2) px. scores: (J,). exchanged: (2,), whether left and right of legs and
    arms were exchanged.
    """

    keypoints: F32
    scores: F32
    exchanged: Flags


class PersonRepair:
    """One person, frame by frame, with a bounded delay."""

    def __init__(self, skeleton: Skeleton, lookahead: float, least_score: float = LEAST_SCORE) -> None:
        """lookahead: s to wait before a frame is decided. Below `WINDOW_SECONDS` outliers are not looked for: without
        the frames that follow, an outlier cannot be told from the beginning of a fast motion. least_score: joints
        below it are not seen.
        """
        self._least_score = least_score
        self._lookahead, self._judges = lookahead, lookahead >= WINDOW_SECONDS
        self._swaps = SwapFinder(skeleton, lookahead - WINDOW_SECONDS if self._judges else lookahead)
        self._mirrors = mirrored_orders(skeleton)
        self._seen: deque[tuple[F32, F32, float]] = deque()  # frames whose swaps are not decided
        self._recent: list[tuple[F32, F32, float, Flags]] = []  # those that are, as long as some window needs them
        self._done = 0  # how many of `_recent` are given out

    def push(self, keypoints: F32, scores: F32, time: float) -> None:
        """Take the next frame in which the person is seen: (J, 2) px, (J,), s."""
        masked = np.where(scores >= self._least_score, scores, 0).astype(np.float32)
        self._seen.append((keypoints, masked, time))
        self._swaps.push(keypoints, masked, time)

    def take(self, now: float) -> list[Repaired]:
        """The frames that are decided at `now` (s; inf: all of them), oldest first."""
        for exchanged in self._swaps.take(now):
            keypoints, scores, time = self._seen.popleft()
            for order in (order for order, swap in zip(self._mirrors, exchanged, strict=True) if swap):
                keypoints, scores = keypoints[order], scores[order]
            self._recent.append((keypoints, scores, time, exchanged))
        repaired = []
        newest = np.inf if np.isposinf(now) else now - self._lookahead
        while self._done < len(self._recent) and self._recent[self._done][2] <= newest:
            repaired.append(self._without_outliers(self._done))
            self._done += 1
        while self._done and self._recent[0][2] < self._recent[self._done - 1][2] - WINDOW_SECONDS:
            self._recent.pop(0)
            self._done -= 1
        return repaired

    def _without_outliers(self, row: int) -> Repaired:
        keypoints, scores, time, exchanged = self._recent[row]
        if not self._judges:
            return Repaired(keypoints, scores, exchanged)
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
        return Repaired(keypoints, np.where(outliers, 0, scores).astype(np.float32), exchanged)
