"""Repair of a person's 2D keypoints before lifting: left-right swaps, outliers and low scores.

Left-right swaps of limbs and of the whole body are undone (`pose.lifting.repair.swaps`). Outliers and joints with a low
score get score 0. No coordinates are changed otherwise.

A sample is an outlier if it is far from a robust local line. The limit is `MAX_SIGMAS` times the spread of its
neighbours about this line, plus a minimum distance. The spread is the median absolute deviation (Hampel, Journal of the
American Statistical Association, 1974); the line is that of Theil and Sen, which follows steady motion. All samples
within `WINDOW_SECONDS` are neighbours, independent of the frame rate.

When left and right change, the change alone does not show whether the frames before or after it are swapped; the scores
of the face can. Without this evidence the body stays as observed. Its sides are still tracked, so that a later change
back is not taken for another swap.

With some networks, the scores of eyes and nose are lower than those of the ears if the person faces away. Other
networks give high scores from all sides, so that there is no evidence. Three other cues were tested too: toes below
heels, the change of size in the image, and the lifter's sigma (docs/studies/repair.md).
"""

import functools
from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pose.lifting.repair.swaps import (
    BODY_RULES,
    LIMB_RULES,
    LIMBS,
    MIN_SEEN_S,
    SwapFinder,
    body_pairs,
    limb_pairs,
    limb_rules,
)
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import Skeleton, get_skeleton
from pose.structures.types import F32, F64, Flags, FrameResult

WINDOW_SECONDS = 0.21  # s to either side: six frames at 30 frames/s
MIN_NEIGHBOURS = 5  # minimum observations in the window; with fewer, no sample is an outlier
MAX_SIGMAS = 4.0  # robust standard deviations
MIN_DISTANCE = 0.05  # minimum distance of an outlier, relative to the person's size in the image
MAD_TO_SIGMA = 1.4826  # standard deviation of a normal distribution over its median absolute deviation


def find_outliers(keypoints: F32, scores: F32, times: NDArray[np.float64], row: int) -> NDArray[np.bool_]:
    """Return (J,) whether each joint is an outlier in frame `row`, compared with frames within `WINDOW_SECONDS`."""
    near = np.abs(times - times[row]) <= WINDOW_SECONDS
    seen = scores[near] > 0
    xy = np.where(seen[..., None], keypoints[near], np.nan).astype(np.float64)
    when = times[near] - times[row]
    tested = (scores[row] > 0) & (seen.sum(axis=0) >= MIN_NEIGHBOURS)
    if not tested.any():
        result: NDArray[np.bool_] = tested
        return result
    xy = np.ascontiguousarray(xy[:, tested].transpose(1, 2, 0))  # (joints, 2, T)
    first, second = np.triu_indices(len(when), 1)
    slopes = (xy[..., second] - xy[..., first]) / (when[second] - when[first])
    levelled = xy - _median(slopes)[..., None] * when
    away = np.linalg.norm(levelled - _median(levelled)[..., None], axis=1)
    size = max(float(np.ptp(keypoints[row][scores[row] > 0], axis=0).max()), 1.0)
    limit = MIN_DISTANCE * size + MAX_SIGMAS * MAD_TO_SIGMA * _median(away)
    found = np.zeros(len(tested), bool)
    found[tested] = away[:, near[:row].sum()] > limit
    return found


def _median(values: F64) -> F64:
    """Return the medians over the last axis without NaN. `numpy.nanmedian` takes three times as long."""
    ordered = np.sort(values, axis=-1)  # NaN last
    count = (~np.isnan(values)).sum(axis=-1, keepdims=True)
    low, high = (np.take_along_axis(ordered, place, axis=-1)[..., 0] for place in ((count - 1) // 2, count // 2))
    return np.asarray((low + high) / 2)


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


_FACE, _EARS = ("nose", "left_eye", "right_eye"), ("left_ear", "right_ear")
_SIDES = (("left_shoulder", "left_hip"), ("right_shoulder", "right_hip"))
MIN_SIDE_DISTANCE = 0.15  # minimum distance of left and right that is evidence, relative to the trunk's length
MAX_SCORE_DIFFERENCE = 0.3  # limit of the evidence of one frame
MIN_FACE_EVIDENCE = 0.15  # minimum absolute evidence, mean over frames, that decides


def has_face_evidence(scores: F32, skeleton: Skeleton) -> bool:
    """Return whether the scores (J,) of face and ears in one frame differ enough to show the orientation."""
    rows = _rows(skeleton)
    return rows is not None and bool(abs(_face_minus_ears(scores, rows)) >= MIN_FACE_EVIDENCE)


def face_agreement(keypoints: F32, scores: F32, skeleton: Skeleton) -> float:
    """Return how well the face's scores agree with left and right, averaged: negative if swapped, 0 if unknown."""
    # A person who faces the camera has the left side on the right of the image.
    rows = _rows(skeleton)
    if rows is None:
        return 0.0
    *_, left, right = rows
    frames, known = len(scores), np.all(scores[:, left + right] > 0, axis=-1)
    keypoints, scores = keypoints[known], scores[known]
    middle = (keypoints[:, left] + keypoints[:, right]) / 2  # midpoints of the shoulders and of the hips
    trunk = np.maximum(np.linalg.norm(middle[:, 0] - middle[:, 1], axis=-1), 1)
    width = (keypoints[:, left, 0] - keypoints[:, right, 0]).mean(axis=-1) / trunk
    side = np.sign(width) * (np.abs(width) > MIN_SIDE_DISTANCE)
    return float(
        (side * np.clip(_face_minus_ears(scores, rows), -MAX_SCORE_DIFFERENCE, MAX_SCORE_DIFFERENCE)).sum() / frames
    )


def _face_minus_ears(scores: F32, rows: tuple[list[int], ...]) -> F32:
    """Return the mean score of nose and eyes minus that of the ears, (...,), for scores (..., J)."""
    face, ears, *_ = rows
    return np.asarray(
        scores[..., face].sum(axis=-1) / len(face) - scores[..., ears].sum(axis=-1) / len(ears), np.float32
    )


@functools.cache
def _rows(skeleton: Skeleton) -> tuple[list[int], ...] | None:
    """Return the joint indices of nose and eyes, ears, left side and right side; None if the skeleton has no face."""
    groups = (_FACE, _EARS, *_SIDES)
    if not all(name in skeleton.names for group in groups for name in group):
        return None
    return tuple([skeleton.index(name) for name in group] for group in groups)


LIMB_NAMES = tuple(LIMBS)  # the columns of `Poses3D.swapped`


@functools.cache
def mirrored_orders(skeleton: Skeleton) -> NDArray[np.int64]:
    """Return joint indices (2, J): an order of all joints with the legs swapped, and one with the arms swapped."""
    orders = np.tile(np.arange(len(skeleton)), (len(LIMB_NAMES), 1))
    for order, pairs in zip(orders, limb_pairs(skeleton).values(), strict=True):
        order[pairs] = pairs[:, ::-1]
    return orders


def with_lifted_sides(result: FrameResult, skeleton: Skeleton) -> tuple[F32, F32]:
    """Return keypoints (P, J, 2) px and scores of a frame with the left and right sides that the lifter received."""
    keypoints, scores = result.people.keypoints, result.people.scores
    if not result.poses.swapped.any():
        return keypoints, scores
    keypoints, scores = keypoints.copy(), scores.copy()
    for row, limb in np.argwhere(result.poses.swapped):
        order = mirrored_orders(skeleton)[limb]
        keypoints[row], scores[row] = keypoints[row, order], scores[row, order]
    return keypoints, scores
