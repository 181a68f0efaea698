"""Keypoint similarity for trackers that know boxes: who is who where several people's boxes overlap.

Object keypoint similarity (OKS) is the measure of the COCO keypoint task: exp(-d^2 / (2 A k^2)) averaged over the
joints that both poses show, for distance d, box area A and a tolerance k = 2 sigma of each joint; the sigmas are COCO's
(cocodataset.org, keypoint evaluation). A joint it does not name has that of the nearest one it does.
"""

from collections.abc import Set

import numpy as np

from pose.networks import crops
from pose.skeletons import Skeleton
from pose.types import F32, F64, I64

SIGMAS = {
    "nose": 0.026, "eye": 0.025, "ear": 0.035, "mouth": 0.026, "shoulder": 0.079, "elbow": 0.072, "wrist": 0.062,
    "hip": 0.107, "knee": 0.087, "ankle": 0.089, "pelvis": 0.107, "spine": 0.107, "thorax": 0.079, "neck": 0.079,
    "head": 0.035, "heel": 0.089, "toe": 0.089, "foot": 0.089,
}  # fmt: skip
HAND_OR_FACE = 0.062
CONTESTED = 0.1  # IoU from which on two people's boxes are near enough to be mistaken for each other


def joint_sigmas(skeleton: Skeleton) -> F32:
    """(J,) COCO's tolerance for each joint."""
    named = [
        next((s for part, s in SIGMAS.items() if part in name.split("_")), HAND_OR_FACE) for name in skeleton.names
    ]
    return np.array(named, np.float32)


def keypoint_similarity(a: F32, b: F32, areas: F32, sigmas: F32) -> F32:
    """(P, Q) OKS of poses a (P, J, 3) and b (Q, J, 3), x, y in px and score; 0 where no joint is seen in both.

    areas: (P,) px^2, of the people of `a`. sigmas: (J,).
    """
    seen = (a[:, None, :, 2] > 0) & (b[None, :, :, 2] > 0)
    squares = ((a[:, None, :, :2] - b[None, :, :, :2]) ** 2).sum(axis=-1)
    tolerance = 2 * np.maximum(areas, 1)[:, None, None] * (2 * sigmas) ** 2
    near = np.where(seen, np.exp(-np.where(seen, squares, 0) / tolerance), 0)
    return near.sum(axis=-1) / np.maximum(seen.sum(axis=-1), 1)


class PoseMemory:
    """The pose in which a tracker's people were seen last, and a similarity for the tracker that makes use of it."""

    def __init__(self, skeleton: Skeleton) -> None:
        self._sigmas = joint_sigmas(skeleton)
        self._boxes = np.zeros((0, 4), np.float32)
        self._poses = np.zeros((0, len(skeleton), 3), np.float32)
        self._last: dict[int, tuple[F32, F32]] = {}  # the tracker's id -> box, pose

    def show(self, boxes: F32, poses: F32) -> None:
        """The people that the tracker is about to see: (P, 4) xyxy px, (P, J, 3)."""
        self._boxes, self._poses = boxes, poses

    def remember(self, ids: I64) -> None:
        """Who the tracker took the people for, (P,); -1 for nobody."""
        for row in np.flatnonzero(ids >= 0):
            self._last[int(ids[row])] = self._boxes[row], self._poses[row]

    def forget_others(self, ids: Set[int]) -> None:
        """Forget everybody but those the tracker still follows."""
        self._last = {person: last for person, last in self._last.items() if person in ids}

    def similarity(self, expected: F64, ids: I64, found: F64, rows: I64) -> F64:
        """(N, M) IoU of where people are expected (N, 4) and boxes that were found (M, 4), and where people overlap the
        mean of IoU and OKS. ids: (N,) who is expected. rows: (M,) the places of the boxes among those shown.
        """
        overlap = crops.box_iou(expected, found)
        contested = (crops.box_iou(found, found) > CONTESTED).sum(axis=1) > 1
        contested = contested[None] | ((overlap > CONTESTED).sum(axis=1) > 1)[:, None]
        contested |= ((overlap > CONTESTED).sum(axis=0) > 1)[None]
        if not contested.any():
            return overlap
        for place, (box, who) in enumerate(zip(expected, ids, strict=True)):
            last = self._last.get(int(who))
            if last is None:
                continue
            moved = carry(last[1], last[0], box)
            area = (box[2:] - box[:2]).clip(0).prod().astype(np.float32)
            alike = keypoint_similarity(moved[None], self._poses[rows], area[None], self._sigmas)[0]
            mean = np.where(overlap[place] > 0, (overlap[place] + alike) / 2, 0)
            overlap[place] = np.where(contested[place], mean, overlap[place])
        return overlap


def carry(pose: F32, source: F32, target: F32 | F64) -> F32:
    """The pose (J, 3) of somebody in box `source` when the box is `target`: moved and scaled with it."""
    scale = (target[2:] - target[:2]) / np.maximum(source[2:] - source[:2], 1)
    moved = (pose[:, :2] - (source[:2] + source[2:]) / 2) * scale + (target[:2] + target[2:]) / 2
    return np.concatenate([moved, pose[:, 2:]], axis=1).astype(np.float32)
