"""Person ids over time, with re-identification of lost people by a box tracker (`pose.tracking.association`).

A person tracked from frame to frame keeps the id without the box tracker. The box tracker runs only when a new person
appears, to decide whether this is a person who was lost recently. Until then, its input is buffered. On a video of one
person who stays visible, the box tracker never runs.

Box trackers compare boxes. Where boxes of several people overlap, joints are compared too (`pose.tracking.similarity`).
"""

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np

from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, I64, U8
from pose.tracking.association import MIN_START_SCORE, UNMATCHED, BoxTracker, box_similarity
from pose.tracking.box_trackers import BOX_TRACKERS
from pose.tracking.config import TrackingConfig
from pose.tracking.similarity import PoseSimilarity

UNASSIGNED = 0
_DEFAULTS = TrackingConfig()


@dataclass(frozen=True, slots=True)
class _FramePeople:
    """The people of one frame; image and poses (P, J, 3) only if the box tracker or the comparison needs them."""

    boxes: F32  # (P, 4) xyxy px
    scores: F32  # (P,) confidences of the boxes
    ids: I64  # (P,) person ids or `UNASSIGNED`
    time: float  # time of the frame, s
    image: U8 | None  # (H, W, 3) uint8 RGB; None for box trackers that do not need it
    poses: F32 | None  # (P, J, 3) x and y in px, and score of each joint; None if only boxes are compared


class Identities:
    """Assigner of person ids: 1, 2, 3, ... in order of appearance, never reused."""

    def __init__(
        self,
        tracker: str = _DEFAULTS.tracker,
        *,
        memory_s: float = _DEFAULTS.memory_s,
        skeleton: Skeleton | None = None,
    ) -> None:
        """Start without people; poses of `skeleton` are compared where boxes overlap, None compares only boxes."""
        if tracker not in BOX_TRACKERS:
            raise ValueError(f"tracker: unknown name {tracker!r}; known: {', '.join(BOX_TRACKERS)}")
        self._tracker_choice = BOX_TRACKERS[tracker]
        self._memory = memory_s
        self._tracker: BoxTracker | None = None
        self._skeleton = skeleton
        self._similarity = self._new_similarity()
        self._buffer: deque[_FramePeople] = deque()  # frames that the box tracker has not processed
        self._last_seen = -np.inf
        self._person_of_track: dict[int, int] = {}  # track id of the box tracker -> person id
        self._next_id = 1

    def assign(self, boxes: F32, scores: F32, ids: I64, time: float, image: U8, poses: F32 | None = None) -> I64:
        """Return ids (P,) with recovered or new ids for people without one."""
        # A person without an id whose box has a low score and matches no track stays `UNASSIGNED`.
        people = _FramePeople(boxes, scores, ids, time, image if self._tracker_choice.needs_image else None, poses)
        while self._buffer and self._buffer[0].time < time - self._memory:
            self._buffer.popleft()
        has_new = (ids == UNASSIGNED).any()
        may_be_lost = time - self._last_seen <= self._memory
        if self._tracker_choice.needs_image or (has_new and may_be_lost):
            for earlier in self._buffer:
                self._associate(earlier)
            self._buffer.clear()
            ids = self._associate(people)
        else:
            ids = ids.copy()
            for row in np.flatnonzero((ids == UNASSIGNED) & (scores >= MIN_START_SCORE)):
                ids[row] = self._new_id()
            self._buffer.append(_FramePeople(boxes, scores, ids, time, None, poses))
        if len(ids):
            self._last_seen = time
        return ids

    def _new_similarity(self) -> PoseSimilarity | None:
        return None if self._skeleton is None else PoseSimilarity(self._skeleton)

    def reset(self) -> None:
        """Remove all people, so that all people found from now on get new ids."""
        self._tracker = None
        self._similarity = self._new_similarity()
        self._buffer.clear()
        self._person_of_track.clear()
        self._last_seen = -np.inf

    def swap_ids(self, one: int, other: int) -> None:
        """Correct an id switch: swap the ids of two people in all data that is stored for re-identification."""
        swap = {one: other, other: one}
        self._person_of_track = {
            track_id: swap.get(person, person) for track_id, person in self._person_of_track.items()
        }
        for index, people in enumerate(self._buffer):
            ids = np.array([swap.get(person, person) for person in people.ids.tolist()], np.int64)
            self._buffer[index] = replace(people, ids=ids)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _associate(self, people: _FramePeople) -> I64:
        """Run the box tracker; return ids (P,): the known ones, and recovered or new ones of boxes with a track."""
        if self._tracker is None:
            similarity = box_similarity if self._similarity is None else self._similarity.similarity
            self._tracker = self._tracker_choice.build(self._memory, similarity)
        if self._similarity is not None and people.poses is not None:
            self._similarity.set_frame(people.boxes, people.poses)
        track_ids = self._tracker.update(people.boxes, people.scores, people.time, people.image)
        if self._similarity is not None and people.poses is not None:
            self._similarity.remember(track_ids)
        ids = people.ids.copy()
        for row in np.argsort(ids == UNASSIGNED, kind="stable"):  # known ids first
            if track_ids[row] == UNMATCHED:
                continue
            if ids[row] == UNASSIGNED:
                known = self._person_of_track.get(int(track_ids[row]))
                ids[row] = self._new_id() if known is None or known in ids else known
            self._link(int(track_ids[row]), int(ids[row]))
        self._forget_unknown(self._tracker.track_ids)
        return ids

    def _link(self, track_id: int, person: int) -> None:
        """Link a track to the id `person`; another track with this id gets the track's previous one."""
        previous_person = self._person_of_track.get(track_id, person)
        others = {track: previous_person if own == person else own for track, own in self._person_of_track.items()}
        self._person_of_track = others | {track_id: person}

    def _forget_unknown(self, track_ids: Set[int]) -> None:
        """Remove what is stored for tracks of the box tracker, except the tracks `track_ids`."""
        self._person_of_track = {
            track_id: person for track_id, person in self._person_of_track.items() if track_id in track_ids
        }
        if self._similarity is not None:
            self._similarity.keep_only(track_ids)
