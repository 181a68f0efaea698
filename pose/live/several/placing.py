"""Conversion of fused people to the result of a frame, in camera coordinates and in world coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.live.several.calibration import Calibration
from pose.live.several.fusion import CurrentPose
from pose.multiview.types import ViewCamera
from pose.results import WorldInfo
from pose.structures.camera import Camera
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, FrameResult, People, Poses3D
from pose.world.clean import Steps
from pose.world.live import LiveWorld


@dataclass(frozen=True, slots=True, eq=False)
class DisplayedCamera:
    """The camera whose image is displayed, and its result of one frame."""

    index: int  # index of the source
    camera: ViewCamera  # calibrated camera. Its pose is relative to the first calibrated camera
    result: FrameResult  # people found by this camera alone


class Placing:
    """Converter of fused people to camera and world coordinates. Create a new one for each calibration."""

    def __init__(self, calibration: Calibration, steps: Steps | None) -> None:
        """Start without frames; without `steps` people stay in camera coordinates."""
        # Corrections of depth, bones and jitter are skipped, because only the poses of a single camera need them.
        first = calibration.cameras[calibration.first]
        self._seeing = sorted(calibration.cameras)
        camera = Camera(first.matrix, True, first.size)
        used = None if steps is None else replace(steps, depth=False, bones=False, smooth=False, heights={})
        self._world = None if used is None else LiveWorld(camera, used, measured=True)

    def result(
        self, now: Sequence[CurrentPose], shown: DisplayedCamera, index: int, time: float, skeleton: Skeleton
    ) -> tuple[FrameResult, WorldInfo | None]:
        """Return a frame's result, `poses` in the displayed camera and `placed` in the world, and the world or None."""
        people = _people(now, shown, index, time, len(skeleton))
        joints = np.array([pose.fused.joints[0] for pose in now], np.float64).reshape(-1, 17, 3)
        sigma = np.array([pose.fused.sigma[0] for pose in now], np.float32).reshape(-1, 17)
        info = placed = None
        if self._world is not None:
            first = FrameResult(people, _poses(joints, sigma))
            seen = self._world.place(first, skeleton).placed
            assert seen is not None, "a world places its people"
            # Several cameras determine the position of each person. Therefore people are not moved to the floor.
            world_joints = self._world.world.place(joints).astype(np.float32)
            placed = replace(seen, joints=world_joints, root_sigma=sigma[:, 0], moved=np.zeros(len(now), np.float32))
            info = WorldInfo(self._world.world, self._world.heights)
        poses = replace(_poses(shown.camera.to_camera(joints), sigma), seen_by=_seen_by(now, self._seeing))
        return FrameResult(people, poses, placed), info


def _poses(joints: F64, sigma: F32) -> Poses3D:
    """Convert joints (P, 17, 3) m to poses relative to the pelvis."""
    relative = joints - joints[:, :1]
    return Poses3D(relative.astype(np.float32), joints[:, 0].astype(np.float32), sigma)


def _seen_by(now: Sequence[CurrentPose], cameras: Sequence[int]) -> np.ndarray:
    """Return bit masks (P, 17) of the cameras that saw each joint; bit i stands for `cameras[i]`."""
    bits = [(one.fused.observed[cameras, 0].T * (1 << np.arange(len(cameras)))).sum(axis=1) for one in now]
    return np.array(bits, np.uint8).reshape(-1, 17)


def _people(now: Sequence[CurrentPose], shown: DisplayedCamera, index: int, time: float, joints: int) -> People:
    """Return boxes and keypoints in the displayed camera; projected joints with score 0 for unseen people."""
    camera_people, count = shown.result.people, len(now)
    rows = {number: row for row, number in enumerate(camera_people.ids.tolist())}
    boxes, box_scores = np.zeros((count, 4), np.float32), np.zeros(count, np.float32)
    keypoints, (scores, sigma) = np.zeros((count, joints, 2), np.float32), np.zeros((2, count, joints), np.float32)
    for at, pose in enumerate(now):
        row = rows.get(pose.tracks.get(shown.index, -1))
        if row is None:
            pixels = shown.camera.project(pose.fused.joints[0])
            boxes[at] = np.concatenate([pixels.min(axis=0), pixels.max(axis=0)])
        else:
            boxes[at], box_scores[at] = camera_people.boxes[row], camera_people.box_scores[row]
            keypoints[at], scores[at] = camera_people.keypoints[row], camera_people.scores[row]
            sigma[at] = camera_people.keypoint_sigma[row]
    ids = np.array([pose.number for pose in now], np.int64)
    return People(index, time, ids, boxes, box_scores, keypoints, scores, sigma)
