"""Two calibrated real views (`two-people`), and 3D joints that are triangulated from the 2D of both."""

import json
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.common.processes import Result
from pose.structures.keypoint_sigma import RADIUS_68_2D
from pose.structures.skeletons import H36M17, SKELETONS, to_h36m17

VIEWS = ("view-a", "view-b")
NAMES = [
    f"{side}_{joint}" for side in ("left", "right") for joint in ("hip", "knee", "ankle", "shoulder", "elbow", "wrist")
]
JOINTS = [H36M17.index(name) for name in NAMES]
MAX_MISS = 2.0  # largest distance from the epipolar line of a triangulated joint, in standard deviations
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class View:
    """A published camera: x = K (R X + t)."""

    matrix: F64
    distortion: F64
    rotation: F64
    translation: F64

    def undistorted(self, pixels: NDArray[np.floating]) -> F64:
        """Return pixels (..., 2) without distortion."""
        flat = np.asarray(pixels, np.float64).reshape(-1, 1, 2)
        found = cv2.undistortPoints(flat, self.matrix, self.distortion, P=self.matrix)
        return np.asarray(found, np.float64).reshape(pixels.shape)


def read_views(folder: Path) -> list[View]:
    """Read both cameras."""
    cameras = json.loads((folder / "calibration.json").read_text(encoding="utf-8"))["cameras"]
    keys = ("K", "distortion_k1_k2_p1_p2", "R", "t")
    return [View(*(np.array(cameras[name][key]) for key in keys)) for name in VIEWS]


def misses(views: list[View], pixels: list[F64], sigma: list[F64]) -> F64:
    """Return distances from the epipolar line, of pixels (..., 2) of both views, in standard deviations (...)."""
    a, b = views
    turn = b.rotation @ a.rotation.T
    x, y, z = b.translation - turn @ a.translation
    fundamental = np.linalg.inv(b.matrix).T @ np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ turn
    fundamental @= np.linalg.inv(a.matrix)
    one, other = (np.concatenate([each, np.ones_like(each[..., :1])], axis=-1) for each in pixels)
    lines = other @ fundamental, one @ fundamental.T  # of each view, from the points of the other one
    slopes = [np.linalg.norm(line[..., :2], axis=-1) for line in lines]
    deviation = np.hypot(slopes[0] * sigma[0], slopes[1] * sigma[1]) / RADIUS_68_2D
    return np.asarray(np.abs((other * lines[1]).sum(axis=-1)) / np.maximum(deviation, 1e-9))


def same_rows(views: list[View], results: list[Result]) -> NDArray[np.int64]:
    """Return the rows (N, 2) of the same people in both views: pairs of ids with the smallest misses."""
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row, time in enumerate(results[0]["time"]):
        for other in np.flatnonzero(np.abs(results[1]["time"] - time) < 1e-3):
            key = int(results[0]["id"][row]), int(results[1]["id"][other])
            pairs.setdefault(key, []).append((row, int(other)))
    cost = {}
    for key, rows in pairs.items():
        at = np.array(rows).T
        pixels = [v.undistorted(r["keypoints"][i]) for v, r, i in zip(views, results, at, strict=True)]
        cost[key] = float(
            np.median(misses(views, pixels, [r["keypoint_sigma"][i] for r, i in zip(results, at, strict=True)]))
        )
    found: list[tuple[int, int]] = []
    for key in sorted(cost, key=cost.__getitem__):
        if cost[key] < 3 and not any(key[0] == a or key[1] == b for a, b in found):
            found.append(key)
    return np.array([row for key in found for row in pairs[key]], np.int64).reshape(-1, 2)


def nearest_rows(
    found: Result, times: NDArray[np.float64], boxes: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows of a result whose boxes are nearest to those of people at some times, and the rows of these."""
    rows, own = [], []
    for row, (time, box) in enumerate(zip(times, boxes, strict=True)):
        near = np.flatnonzero(np.abs(found["time"] - time) < 1e-3)
        if len(near):
            apart = np.abs(found["box"][near] - box).max(axis=1)
            if apart.min() < (box[2:] - box[:2]).max() / 4:
                rows.append(near[apart.argmin()])
                own.append(row)
    return np.array(rows, np.int64), np.array(own, np.int64)


class Truth:
    """3D joints (N, 12, 3) m of people in both views at some times, triangulated from results of both views."""

    def __init__(self, views: list[View], results: list[Result]) -> None:
        rows = same_rows(views, results)
        skeleton = SKELETONS[str(results[0]["skeleton"])]
        pixels, sigma = [], []
        for view, result, own in zip(views, results, rows.T, strict=True):
            spread = np.repeat(result["keypoint_sigma"][own][..., None], 2, axis=-1)
            pixels.append(
                view.undistorted(to_h36m17(result["keypoints"][own], result["scores"][own], skeleton)[0])[:, JOINTS]
            )
            sigma.append(to_h36m17(spread, result["scores"][own], skeleton)[0][:, JOINTS, 0].astype(np.float64))
        self.views, self.boxes = views, [result["box"][own] for result, own in zip(results, rows.T, strict=True)]
        self.times = results[0]["time"][rows[:, 0]]
        self.ids = results[0]["id"][rows[:, 0]]
        self.joints = self._triangulated(pixels, sigma)
        self.known = misses(views, pixels, sigma) < MAX_MISS

    def _triangulated(self, pixels: list[F64], sigma: list[F64]) -> F64:
        """Return the points (N, J, 3) m with the smallest weighted reprojection error, iterated linearly."""
        projections = [v.matrix @ np.column_stack([v.rotation, v.translation]) for v in self.views]
        depths, joints = [np.ones(p.shape[:2]) for p in pixels], np.zeros((*pixels[0].shape[:2], 3))
        for _ in range(3):
            rows = np.stack([
                (xy[..., axis, None] * p[2] - p[axis]) / (s * d)[..., None]
                for xy, s, p, d in zip(pixels, sigma, projections, depths, strict=True) for axis in (0, 1)
            ], axis=-2)  # fmt: skip
            left, right = rows[..., :3], -rows[..., 3:]
            joints = np.linalg.solve(np.swapaxes(left, -1, -2) @ left, np.swapaxes(left, -1, -2) @ right)[..., 0]
            depths = [joints @ p[2, :3] + p[2, 3] for p in projections]
        return joints

    def of_view(self, view: int, found: Result) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows of the result of a view, and those of the truth for the same people."""
        return nearest_rows(found, self.times, self.boxes[view])
