"""Person ids over time, with re-identification of lost people by a box tracker (`pose.tracking.association`).

A person tracked from frame to frame keeps the id without the box tracker. The box tracker runs only when a new person
appears, to decide whether this is a person who was lost recently. Until then, its input is buffered. On a video of one
person who stays visible, the box tracker never runs.

Box trackers compare boxes. Where boxes of several people overlap, joints are compared too.

Object keypoint similarity (OKS) is the measure of the COCO keypoint task: exp(-d^2 / (2 A k^2)) averaged over the
joints visible in both poses, for distance d, box area A and k = 2 sigma of each joint. The sigmas are COCO's
(cocodataset.org, keypoint evaluation). A joint without a COCO sigma has that of the nearest joint with one.
"""

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np

from pose.networks import crops
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, I64, U8
from pose.tracking.association import MIN_START_SCORE, UNMATCHED, BoxTracker, box_similarity
from pose.tracking.box_trackers import BOX_TRACKERS
from pose.tracking.config import TrackingConfig

SIGMAS = {
    "nose": 0.026, "eye": 0.025, "ear": 0.035, "mouth": 0.026, "shoulder": 0.079, "elbow": 0.072, "wrist": 0.062,
    "hip": 0.107, "knee": 0.087, "ankle": 0.089, "pelvis": 0.107, "spine": 0.107, "thorax": 0.079, "neck": 0.079,
    "head": 0.035, "heel": 0.089, "toe": 0.089, "foot": 0.089,
}  # fmt: skip
HAND_OR_FACE_SIGMA = 0.062
MIN_AMBIGUOUS_IOU = 0.1  # two people whose boxes exceed this IoU can be confused


def joint_sigmas(skeleton: Skeleton) -> F32:
    """Return COCO's sigma of each joint, (J,)."""
    named = [
        next((s for part, s in SIGMAS.items() if part in name.split("_")), HAND_OR_FACE_SIGMA)
        for name in skeleton.names
    ]
    return np.array(named, np.float32)


def keypoint_similarity(a: F32, b: F32, areas: F32, sigmas: F32) -> F32:
    """Return object keypoint similarities (P, Q) in [0, 1]; 0 if no joint is visible in both poses."""
    visible = (a[:, None, :, 2] > 0) & (b[None, :, :, 2] > 0)
    squares = ((a[:, None, :, :2] - b[None, :, :, :2]) ** 2).sum(axis=-1)
    tolerance = 2 * np.maximum(areas, 1)[:, None, None] * (2 * sigmas) ** 2
    near = np.where(visible, np.exp(-np.where(visible, squares, 0) / tolerance), 0)
    result: F32 = near.sum(axis=-1) / np.maximum(visible.sum(axis=-1), 1)
    return result


class PoseSimilarity:
    """Comparison of tracks and boxes for box trackers, which includes poses where people overlap."""

    # In each frame, call `set_frame`, then `BoxTracker.update` of a tracker that was built with `similarity`, then
    # `remember` with the result.

    def __init__(self, skeleton: Skeleton) -> None:
        self._sigmas = joint_sigmas(skeleton)
        self._boxes = np.zeros((0, 4), np.float32)
        self._poses = np.zeros((0, len(skeleton), 3), np.float32)
        self._last: dict[int, tuple[F32, F32]] = {}  # track id -> last box and pose

    def set_frame(self, boxes: F32, poses: F32) -> None:
        """Set the people of the next frame: boxes (P, 4) xyxy px and poses (P, J, 3) px and score."""
        self._boxes, self._poses = boxes, poses

    def remember(self, track_ids: I64) -> None:
        """Store the boxes and poses of people (P,) with a track as the last ones; -1 is a person without a track."""
        for row in np.flatnonzero(track_ids >= 0):
            self._last[int(track_ids[row])] = self._boxes[row], self._poses[row]

    def keep_only(self, track_ids: Set[int]) -> None:
        """Remove the stored boxes and poses of all tracks except those with the ids `track_ids`."""
        self._last = {track_id: last for track_id, last in self._last.items() if track_id in track_ids}

    def similarity(self, predicted: F64, track_ids: I64, detected: F64, rows: I64) -> F64:
        """Return similarities (N, M) in [0, 1] of predicted and detected boxes: their IoU."""
        # Where people overlap, it is the mean of the IoU and the object keypoint similarity, for which the last pose of
        # a track is moved with its box.
        similarity = crops.box_iou(predicted, detected)
        ambiguous = (crops.box_iou(detected, detected) > MIN_AMBIGUOUS_IOU).sum(axis=1) > 1
        ambiguous = ambiguous[None] | ((similarity > MIN_AMBIGUOUS_IOU).sum(axis=1) > 1)[:, None]
        ambiguous |= ((similarity > MIN_AMBIGUOUS_IOU).sum(axis=0) > 1)[None]
        if not ambiguous.any():
            return similarity
        for index, (box, track_id) in enumerate(zip(predicted, track_ids, strict=True)):
            last = self._last.get(int(track_id))
            if last is None:
                continue
            moved = move_pose(last[1], last[0], box)
            area = (box[2:] - box[:2]).clip(0).prod().astype(np.float32)
            oks = keypoint_similarity(moved[None], self._poses[rows], area[None], self._sigmas)[0]
            mean = np.where(similarity[index] > 0, (similarity[index] + oks) / 2, 0)
            similarity[index] = np.where(ambiguous[index], mean, similarity[index])
        return similarity


def move_pose(pose: F32, source: F32, target: F32 | F64) -> F32:
    """Move and scale a pose (J, 3) as one box xyxy px is moved and scaled to another."""
    scale = (target[2:] - target[:2]) / np.maximum(source[2:] - source[:2], 1)
    moved = (pose[:, :2] - (source[:2] + source[2:]) / 2) * scale + (target[:2] + target[2:]) / 2
    return np.concatenate([moved, pose[:, 2:]], axis=1).astype(np.float32)


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


# Hysteresis thresholds of the distance of two trunks, in body sizes: an occlusion starts below the first and ends
# above the second.
