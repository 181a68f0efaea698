"""Identities: who of the people in this frame was seen before. Association by `pose.people.association`.

A person who is followed from frame to frame keeps the identity without any association. A tracker is asked only when
somebody appears whom nobody follows: is that one of the people who were lost a moment ago? Until then what it must know
of the past is kept aside, so a film of one dancer needs none.

A tracker compares boxes. Where boxes of several people overlap, what it is given as their similarity takes the joints
into account as well (`pose.people.similarity`).
"""

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np

from pose.people.association import NOBODY, SURE_SCORE, BoxTracker, box_similarity
from pose.people.similarity import PoseMemory
from pose.people.trackers import TRACKERS
from pose.skeletons import Skeleton
from pose.stages import LONGEST_GAP_SECONDS
from pose.types import F32, I64, U8

NOT_SEEN_BEFORE = 0


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

    def __init__(
        self, tracker: str = "ocsort", *, memory: float = LONGEST_GAP_SECONDS, skeleton: Skeleton | None = None
    ) -> None:
        """tracker: a name in `pose.people.trackers.TRACKERS`. memory: s after which a lost person is forgotten.
        skeleton: of the poses that tell apart people whose boxes overlap; None compares boxes alone.

        Raises ValueError that lists the known names.
        """
        if tracker not in TRACKERS:
            raise ValueError(f"tracker: unknown name {tracker!r}; known: {', '.join(TRACKERS)}")
        self._choice = TRACKERS[tracker]
        self._memory = memory
        self._tracker: BoxTracker | None = None
        self._skeleton = skeleton
        self._poses = self._fresh_poses()
        self._waiting: deque[_Sighting] = deque()  # what the tracker has not been told yet
        self._last_seen = -np.inf
        self._id_of: dict[int, int] = {}  # the tracker's id -> ours
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

    def _fresh_poses(self) -> PoseMemory | None:
        return None if self._skeleton is None else PoseMemory(self._skeleton)

    def forget(self) -> None:
        """Everybody is away for good: whoever is seen from now on is somebody new."""
        self._tracker = None
        self._poses = self._fresh_poses()
        self._waiting.clear()
        self._id_of.clear()
        self._last_seen = -np.inf

    def exchange(self, one: int, other: int) -> None:
        """Two people were taken for each other: from now on each has the other's id, also when found again."""
        swap = {one: other, other: one}
        self._id_of = {their: swap.get(our, our) for their, our in self._id_of.items()}
        for place, s in enumerate(self._waiting):
            ids = np.array([swap.get(our, our) for our in s.ids.tolist()], np.int64)
            self._waiting[place] = replace(s, ids=ids)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _associate(self, sighting: _Sighting) -> I64:
        """Tell the tracker of one frame, and name the people it recognises."""
        if self._tracker is None:
            similarity = box_similarity if self._poses is None else self._poses.similarity
            self._tracker = self._choice.build(self._memory, similarity)
        if self._poses is not None and sighting.poses is not None:
            self._poses.show(sighting.boxes, sighting.poses)
        theirs = self._tracker.update(sighting.boxes, sighting.scores, sighting.time, sighting.image)
        if self._poses is not None and sighting.poses is not None:
            self._poses.remember(theirs)
        ids = sighting.ids.copy()
        for row in np.argsort(ids == NOT_SEEN_BEFORE, kind="stable"):  # who is followed comes first
            if theirs[row] == NOBODY:
                continue
            if ids[row] == NOT_SEEN_BEFORE:
                known = self._id_of.get(int(theirs[row]))
                ids[row] = self._new_id() if known is None or known in ids else known
            self._name(int(theirs[row]), int(ids[row]))
        self._forget_lost(self._tracker.remembered)
        return ids

    def _name(self, theirs: int, ours: int) -> None:
        """The tracker's person is `ours`. Whom it knew by that name so far gets the other: nobody loses their id."""
        before = self._id_of.get(theirs, ours)
        self._id_of = {their: before if our == ours else our for their, our in self._id_of.items()} | {theirs: ours}

    def _forget_lost(self, followed: Set[int]) -> None:
        """Whom the tracker has given up it will never name again."""
        self._id_of = {their: our for their, our in self._id_of.items() if their in followed}
        if self._poses is not None:
            self._poses.forget_others(followed)
