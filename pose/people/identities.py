"""Identities: who of the people in this frame was seen before. Association by the `trackers` library.

A person who is followed from frame to frame keeps the identity without any association. The library is asked only when
somebody appears whom nobody follows: is that one of the people who were lost a moment ago? Until then what it must know
of the past is kept aside, so a film of one dancer never loads it.

The library compares boxes. Where boxes of several people overlap, what it is given as their similarity takes the joints
into account as well (`pose.people.similarity`).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pose.people.similarity import PoseMemory
from pose.skeletons import Skeleton
from pose.types import F32, I64, U8

NOT_SEEN_BEFORE = 0
REFERENCE_RATE = 30.0  # Hz; the library's motion models count in frames of this rate, and get real time stamps
SURE_SCORE = 0.5  # boxes below continue a person (ByteTrack) but start none
SECOND_LOOK = 1e-4  # s


def _bytetrack(buffer: int, iou: Any) -> Any:
    from trackers import ByteTrackTracker

    return ByteTrackTracker(
        lost_track_buffer=buffer,
        frame_rate=REFERENCE_RATE,
        minimum_consecutive_frames=1,
        track_activation_threshold=SURE_SCORE,
        high_conf_det_threshold=SURE_SCORE,
        iou=iou,
    )


def _ocsort(buffer: int, iou: Any) -> Any:
    from trackers import OCSORTTracker

    return OCSORTTracker(
        lost_track_buffer=buffer,
        frame_rate=REFERENCE_RATE,
        minimum_consecutive_frames=1,
        minimum_iou_threshold=0.1,
        high_conf_det_threshold=SURE_SCORE,
        iou=iou,
    )


def _botsort(buffer: int, iou: Any) -> Any:
    from trackers import BoTSORTTracker

    return BoTSORTTracker(
        lost_track_buffer=buffer,
        frame_rate=REFERENCE_RATE,
        minimum_consecutive_frames=1,
        track_activation_threshold=SURE_SCORE,
        high_conf_det_threshold=SURE_SCORE,
        iou=iou,
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """build: makes the tracker for a memory in frames of the reference rate and a measure of similarity (None: the
    boxes' IoU). sees_pictures: it needs every picture.
    """

    build: Callable[[int, Any], Any]
    sees_pictures: bool = False


TRACKERS: dict[str, _Choice] = {
    "bytetrack": _Choice(_bytetrack),
    "ocsort": _Choice(_ocsort),
    "botsort": _Choice(_botsort, sees_pictures=True),  # estimates the camera's motion
}


@dataclass(frozen=True, slots=True)
class _Sighting:
    """The people of one frame. boxes (P, 4) xyxy px, scores (P,), ids (P,) or NOT_SEEN_BEFORE, time s, poses (P, J, 3):
    x, y in px and score.
    """

    boxes: F32
    scores: F32
    ids: I64
    time: float
    image: U8 | None
    poses: F32 | None


class Identities:
    """Gives every person an id: 1, 2, 3, ... in order of appearance, never reused."""

    def __init__(self, tracker: str = "ocsort", *, memory: float = 1.0, skeleton: Skeleton | None = None) -> None:
        """tracker: a name in TRACKERS. memory: s after which a lost person is forgotten. skeleton: of the poses that
        tell apart people whose boxes overlap; None compares boxes alone.

        Raises ValueError that lists the known names.
        """
        if tracker not in TRACKERS:
            raise ValueError(f"tracker: unknown name {tracker!r}; known: {', '.join(TRACKERS)}")
        self._choice = TRACKERS[tracker]
        self._memory = memory
        self._tracker: Any = None
        self._poses = None if skeleton is None else PoseMemory(skeleton)
        self._waiting: deque[_Sighting] = deque()  # what the library has not been told yet
        self._last_seen = -np.inf
        self._id_of: dict[int, int] = {}  # the library's id -> ours
        self._next_id = 1

    def assign(self, boxes: F32, scores: F32, ids: I64, time: float, image: U8, poses: F32 | None = None) -> I64:
        """Complete `ids` (P,): where it is NOT_SEEN_BEFORE, put a recovered or a new id.

        boxes: (P, 4) xyxy px. scores: (P,). time: s, increasing from call to call. poses: (P, J, 3) x, y px and score.
        A box of low score that continues nobody stays NOT_SEEN_BEFORE.
        """
        sighting = _Sighting(boxes, scores, ids, time, image if self._choice.sees_pictures else None, poses)
        while self._waiting and self._waiting[0].time < time - self._memory:
            self._waiting.popleft()
        strangers = (ids == NOT_SEEN_BEFORE).any()
        somebody_lost = time - self._last_seen <= self._memory
        if self._choice.sees_pictures or (strangers and somebody_lost):
            for earlier in self._waiting:
                self._associate(earlier)
            self._waiting.clear()
            ids = self._associate(sighting)
        else:
            ids = ids.copy()
            for row in np.flatnonzero((ids == NOT_SEEN_BEFORE) & (scores >= SURE_SCORE)):
                ids[row] = self._new_id()
            self._waiting.append(_Sighting(boxes, scores, ids, time, None, poses))
        if len(ids):
            self._last_seen = time
        return ids

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _associate(self, sighting: _Sighting) -> I64:
        """Tell the library of one frame, and name the people it recognises."""
        if self._tracker is None:
            similarity = None if self._poses is None else self._poses.similarity(lambda: self._tracker.tracks)
            self._tracker = self._choice.build(round(self._memory * REFERENCE_RATE), similarity)
        theirs = self._update(sighting, sighting.time)
        if (theirs < 0).any():  # newcomers get the library's id when it sees them again
            theirs = self._update(sighting, sighting.time + SECOND_LOOK)
        ids = sighting.ids.copy()
        for row in np.argsort(ids == NOT_SEEN_BEFORE, kind="stable"):  # who is followed comes first
            if ids[row] == NOT_SEEN_BEFORE and theirs[row] >= 0:
                known = self._id_of.get(theirs[row])
                ids[row] = self._new_id() if known is None or known in ids else known
            if theirs[row] >= 0:
                self._id_of[theirs[row]] = ids[row]
        self._forget_lost()
        return ids

    def _forget_lost(self) -> None:
        """Whom the library has given up it will never name again."""
        followed = {track.tracker_id for track in self._tracker.tracks}
        self._id_of = {their: our for their, our in self._id_of.items() if their in followed}
        if self._poses is not None:
            self._poses.forget_others(followed)

    def _update(self, sighting: _Sighting, time: float) -> I64:
        """The library's id for each row, -1 where it has none."""
        import supervision as sv

        rows = np.arange(len(sighting.ids))
        if self._poses is not None and sighting.poses is not None:
            self._poses.show(sighting.boxes, sighting.poses)
        detections = sv.Detections(xyxy=sighting.boxes, confidence=sighting.scores, data={"row": rows})
        found = self._tracker.update(detections, frame=sighting.image, timestamp=time)
        theirs = np.full(len(rows), -1, np.int64)
        if len(found):
            theirs[found.data["row"]] = found.tracker_id
        if self._poses is not None and sighting.poses is not None:
            self._poses.remember(theirs)
        return theirs
