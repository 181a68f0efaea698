"""Keypoint similarity for box trackers, used where the boxes of several people overlap.

Object keypoint similarity (OKS) is the measure of the COCO keypoint task: exp(-d^2 / (2 A k^2)) averaged over the
joints visible in both poses, for distance d, box area A and k = 2 sigma of each joint. The sigmas are COCO's
(cocodataset.org, keypoint evaluation). A joint without a COCO sigma has that of the nearest joint with one.
"""

from collections.abc import Set

import numpy as np

from pose.networks import crops
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, I64

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
