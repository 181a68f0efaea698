"""Prediction of live poses for the time at which they are displayed, and of people who are briefly occluded."""

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pose.config import LiveConfig
from pose.lifting.forecast import Forecast, Forecaster, load_forecaster
from pose.lifting.forecast.stabilized import MIN_DEPTH_M, StabilizedForecaster, moved_boxes, moved_keypoints
from pose.lifting.forecast.types import PastBuffer
from pose.networks.crops import box_iou
from pose.structures.camera import Camera
from pose.structures.face_points import Faces
from pose.structures.hand_points import SIDES, Hands
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, FrameResult, People, Placed, Poses3D

_MIN_TRACK_S = 0.3  # a shorter track may be a false detection, and is not continued
_MIN_BOX_IOU = 0.5  # above it, a new track is taken for the missing person


@functools.cache
def default_forecaster() -> Forecaster:
    """Return the forecaster of the live loop, loaded once per process."""
    return StabilizedForecaster(load_forecaster())


@dataclass(frozen=True, slots=True)
class _LastObservation:
    """The last observation of one person."""

    box: F32  # (4,) px, corners x0, y0, x1, y1
    score: float  # score of the box
    joints: F64  # (17, 3) m in the camera frame
    sigma: F32  # (17,) mm
    placed: F32 | None  # (17, 3) m in world coordinates; None without a world
    root_sigma: float  # uncertainty of the distance of the pelvis in mm; NaN without a world


class PosePredictor:
    """Predictor of the poses of one stream for a later time and during occlusions. Call it with each frame in order."""

    # People without a complete 3D pose are not predicted. Memory use is bounded.

    def __init__(
        self,
        skeleton: Skeleton,
        camera: Camera,
        *,
        bridge: float = LiveConfig.bridge,
        forecaster: Forecaster | None = None,
    ) -> None:
        """Start without frames; occluded people are predicted for at most `bridge` s."""
        self._skeleton, self._camera, self._bridge = skeleton, camera, bridge
        self._forecaster = forecaster or default_forecaster()
        self._pasts = PastBuffer()
        self._last: dict[int, _LastObservation] = {}
        self._rotation = np.eye(3)  # from the camera's axes to the world's

    def __call__(self, result: FrameResult, seconds: float) -> FrameResult:
        """Predict a frame's people for `seconds` after it (0: only occluded people), and append occluded people."""
        rows = np.flatnonzero(_is_complete(result.poses))
        self._remember(result, rows.tolist())
        occluded = self._occluded_ids(result)
        if seconds == 0:
            rows = rows[:0]
        people = [*result.people.ids[rows].tolist(), *occluded]
        if not people:
            return result
        times = np.full((len(people), 1), result.time + seconds)
        found = self._forecaster.predict(self._pasts.past_of(people), times)
        if len(rows):
            result = self._predict_visible(result, rows, found)
        return self._append_occluded(result, occluded, found, len(rows)) if occluded else result

    def _remember(self, result: FrameResult, rows: list[int]) -> None:
        """Store the poses of a frame, of which `rows` have complete 3D, and forget people not seen for a while."""
        people, placed = result.people, result.placed
        self._pasts.add(result)
        joints = _in_camera(result.poses.joints, result.poses.root)
        if placed is not None and rows:
            self._rotation = _rotation_to_world(joints[rows], placed.joints[rows])
        for row in rows:
            self._last[int(people.ids[row])] = _LastObservation(
                people.boxes[row],
                float(people.box_scores[row]),
                joints[row],
                result.poses.sigma[row],
                None if placed is None else placed.joints[row],
                float("nan") if placed is None else float(placed.root_sigma[row]),
            )
        remembered = self._pasts.last_seen()
        self._last = {person: last for person, last in self._last.items() if person in remembered}

    def _occluded_ids(self, result: FrameResult) -> list[int]:
        """Return the ids of missing people to predict."""
        # Their tracks lasted for at least 0.3 s, ended at most `bridge` seconds ago, and were not continued by a new
        # track.
        if not self._bridge:
            return []
        here, seen = set(result.people.ids.tolist()), self._pasts.last_seen()
        return [
            person
            for person, (first, last) in seen.items()
            if person not in here
            and result.time - last <= self._bridge + 1e-6  # tolerance for rounded times
            and last - first >= _MIN_TRACK_S
            and not self._is_continued(person, last, result.people, seen)
        ]

    def _is_continued(self, person: int, last: float, people: People, seen: dict[int, tuple[float, float]]) -> bool:
        """Return whether a track that began after the person's last frame overlaps the person's last box."""
        new = [number not in seen or seen[number][0] > last for number in people.ids.tolist()]
        return bool((box_iou(self._last[person].box[None], people.boxes[new]) > _MIN_BOX_IOU).any())

    def _predict_visible(self, result: FrameResult, rows: NDArray[np.intp], found: Forecast) -> FrameResult:
        """Replace people of a frame by their predictions, the first ones in `found`."""
        n = len(rows)
        people, poses, placed = result.people, result.poses, result.placed
        before = _in_camera(poses.joints[rows], poses.root[rows])
        after = _in_camera(found.joints[:n, 0], found.root[:n, 0])
        keypoints = moved_keypoints(people.keypoints[rows], self._skeleton, before, after, self._camera)
        boxes = moved_boxes(people.boxes[rows], before, after, self._camera)
        if placed is not None:
            world_joints = placed.joints[rows] + (after - before) @ self._rotation.T
            sigma = np.hypot(placed.root_sigma[rows], found.root_sigma[:n, 0])
            placed = replace(
                placed,
                joints=_replace_rows(placed.joints, rows, world_joints),
                root_sigma=_replace_rows(placed.root_sigma, rows, sigma),
            )
        return FrameResult(
            replace(
                people,
                keypoints=_replace_rows(people.keypoints, rows, keypoints),
                boxes=_replace_rows(people.boxes, rows, boxes),
                hands=self._moved_hands(people, rows, keypoints),
                faces=self._moved_faces(people, rows, keypoints),
            ),
            replace(
                poses,
                joints=_replace_rows(poses.joints, rows, found.joints[:n, 0]),
                root=_replace_rows(poses.root, rows, found.root[:n, 0]),
                # A predicted pose is never more certain than the last one, even if the forecast claims so.
                sigma=_replace_rows(poses.sigma, rows, np.maximum(found.sigma[:n, 0], poses.sigma[rows])),
                ahead=_replace_rows(poses.ahead, rows, found.ahead[:n, 0]),
            ),
            placed,
        )

    def _moved_hands(self, people: People, rows: NDArray[np.intp], keypoints: F32) -> Hands | None:
        """Move the hands by the displacement of their wrists to the predicted keypoints (P, J, 2) px."""
        if people.hands is None:
            return None
        wrists = [self._skeleton.index(f"{side}_wrist") for side in SIDES]
        moved = np.nan_to_num(keypoints[:, wrists] - people.keypoints[rows][:, wrists])
        points = _replace_rows(people.hands.points, rows, people.hands.points[rows] + moved[:, :, None])
        return replace(people.hands, points=points)

    def _moved_faces(self, people: People, rows: NDArray[np.intp], keypoints: F32) -> Faces | None:
        """Move the faces by the displacement of their noses to the predicted keypoints (P, J, 2) px."""
        if people.faces is None:
            return None
        nose = self._skeleton.index("nose")
        points = people.faces.points[rows]
        points[:, :, :2] += np.nan_to_num(keypoints[:, nose] - people.keypoints[rows][:, nose])[:, None]
        return replace(people.faces, points=_replace_rows(people.faces.points, rows, points))

    def _append_occluded(self, result: FrameResult, occluded: list[int], found: Forecast, first: int) -> FrameResult:
        """Append the occluded people whose predicted pelvis is inside the image, from row `first` of `found`."""
        after = _in_camera(found.joints[first:, 0], found.root[first:, 0])
        inside = [self._in_image(joints[0]) for joints in after]
        rows = [first + row for row, here in enumerate(inside) if here]
        lasts = [self._last[person] for person, here in zip(occluded, inside, strict=True) if here]
        if not rows:
            return result
        after, before = after[inside], np.stack([last.joints for last in lasts])
        boxes = moved_boxes(np.stack([last.box for last in lasts]), before, after, self._camera)
        ids = [person for person, here in zip(occluded, inside, strict=True) if here]
        poses, placed = result.poses, result.placed
        more = Poses3D(
            found.joints[rows, 0],
            found.root[rows, 0],
            np.maximum(found.sigma[rows, 0], np.stack([last.sigma for last in lasts])),
            ahead=found.ahead[rows, 0].astype(np.float32),
        )
        if placed is not None:
            placed = placed + self._world_poses(lasts, after - before, found.root_sigma[rows, 0])
        return FrameResult(result.people.with_undetected(ids, boxes), poses + more, placed)

    def _world_poses(self, lasts: list[_LastObservation], moved: F64, root_sigma: F32) -> Placed:
        """Return the world poses of occluded people, (P, 17, 3) m moved in camera axes; NaN without a last one."""
        n = len(lasts)
        unknown = np.full((17, 3), np.nan, np.float32)
        before = np.stack([unknown if last.placed is None else last.placed for last in lasts])
        sigma = np.hypot([last.root_sigma for last in lasts], root_sigma)
        return Placed(
            (before + moved @ self._rotation.T).astype(np.float32),
            sigma.astype(np.float32),
            np.zeros((n, 2), np.float32),
            np.ones(n, bool),
            np.full(n, np.nan, np.float32),
        )

    def _in_image(self, pelvis: F64) -> bool:
        if pelvis[2] < MIN_DEPTH_M:
            return False
        x, y = self._camera.project(pelvis)
        width, height = self._camera.size
        return bool(0 <= x < width and 0 <= y < height)


def _is_complete(poses: Poses3D) -> NDArray[np.bool_]:
    """Return a mask (P,) of the people with a complete 3D pose."""
    total = poses.joints.sum(axis=(1, 2)) + poses.root.sum(axis=1) + poses.sigma.sum(axis=1)
    return np.asarray(np.isfinite(total))


def _in_camera(joints: F32, root: F32) -> F64:
    """Return joints (P, 17, 3) m in the camera frame from root-relative joints (P, 17, 3) and roots (P, 3)."""
    return joints.astype(np.float64) + root[:, None]


def _rotation_to_world(camera: F64, placed: F32) -> F64:
    """Return the rotation (3, 3) from camera to world axes of joints (P, 17, 3) m (Kabsch 1976), shifts left out."""
    here = (camera - camera.mean(axis=1, keepdims=True)).reshape(-1, 3)
    there = (placed - placed.mean(axis=1, keepdims=True)).reshape(-1, 3).astype(np.float64)
    u, _, vt = np.linalg.svd(there.T @ here)
    rotation: F64 = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    return rotation


def _replace_rows(values: NDArray[np.float32], rows: NDArray[np.intp], new: NDArray[np.floating]) -> F32:
    """Return a copy of `values` with new values in `rows`."""
    changed = values.copy()
    changed[rows] = new
    return changed
