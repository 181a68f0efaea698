"""Human3.6M, protocol V: the files and the metric camera space of VideoPose3D.

`data_3d_h36m.npz` holds `positions_3d[subject][action]` (T, 32, 3) float32, metres, world frame. `data_2d_h36m_*.npz`
holds `positions_2d[subject][action]`, one (T, 17, 2) px array for each of the four cameras. (D. Pavllo et al., "3D
human pose estimation in video with temporal convolutions and semi-supervised training", CVPR 2019.)
"""

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError, UsageError
from pose.structures.camera import Camera
from pose.structures.labelled import LabelledSequence, check_metres, check_pixels
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64
from pose_datasets.pickles import load_npz_object

T = TypeVar("T")
Positions3D = dict[str, dict[str, F32]]
Positions2D = dict[str, dict[str, list[F32]]]

FPS = 50.0
TRAIN_SUBJECTS = ("S1", "S5", "S6", "S7", "S8")
TEST_SUBJECTS = ("S9", "S11")
SUBJECTS = TRAIN_SUBJECTS + TEST_SUBJECTS
ACTIONS = (
    "Directions", "Discussion", "Eating", "Greeting", "Phoning", "Photo", "Posing", "Purchases", "Sitting",
    "SittingDown", "Smoking", "Waiting", "WalkDog", "Walking", "WalkTogether",
)  # fmt: skip
# One camera has no video, so protocol V drops the take for all cameras.
EXCLUDED_TAKES = {("S11", "Directions")}
RAW_JOINTS = 32
KEPT_JOINTS = (0, 1, 2, 3, 6, 7, 8, 12, 13, 14, 15, 17, 18, 19, 25, 26, 27)
FILE_3D = "data_3d_h36m.npz"
FILES_2D = {"gt": "data_2d_h36m_gt.npz", "cpn": "data_2d_h36m_cpn_ft_h36m_dbb.npz"}


@dataclass(frozen=True, slots=True)
class StudioCamera:
    """A calibrated camera: X_camera = rotation (X_world - position), followed by the lens distortion."""

    id: str  # id of the Human3.6M camera
    size: tuple[int, int]  # (width, height) of the images, px
    focal: F64  # (2,) px, focal lengths along x and y
    centre: F64  # (2,) px, principal point
    radial: F64  # coefficients k1, k2, k3 of radial distortion
    tangential: F64  # coefficients p1, p2 of tangential distortion
    rotation: F64  # (3, 3) matrix from the world to the camera frame
    position: F64  # (3,) m, camera position in the world frame

    @property
    def ideal(self) -> Camera:
        """Pinhole camera with the same intrinsics and without lens distortion."""
        matrix = np.array([[self.focal[0], 0, self.centre[0]], [0, self.focal[1], self.centre[1]], [0, 0, 1.0]])
        return Camera.of(self.size, matrix)

    def to_camera(self, points: NDArray[np.floating]) -> F64:
        """Transform points (..., 3) m from the world to the camera frame."""
        return (points - self.position) @ self.rotation.T

    def project(self, points: NDArray[np.floating]) -> F64:
        """Project points (..., 3) m in the camera frame to (..., 2) px, with distortion."""
        # Normalised coordinates X / Z and Y / Z are clamped to [-1, 1], as in the public ground-truth 2D.
        rays = np.clip(points[..., :2] / points[..., 2:], -1, 1)
        return self.distort(rays) * self.focal + self.centre

    def distort(self, rays: F64) -> F64:
        """Apply the lens distortion to normalised coordinates (X / Z, Y / Z), shape (..., 2)."""
        (k1, k2, k3), (p1, p2) = self.radial.tolist(), self.tangential.tolist()
        x, y = rays[..., 0], rays[..., 1]
        square = x * x + y * y
        factor = 1 + square * (k1 + square * (k2 + square * k3)) + p1 * x + p2 * y
        return np.stack([x * factor + p1 * square, y * factor + p2 * square], axis=-1)

    def undistort(self, pixels: NDArray[np.floating]) -> F64:
        """Convert pixels (..., 2) to those of `ideal`, the camera without distortion, by fixed-point iteration."""
        seen = (pixels - self.centre) / self.focal
        rays = seen
        for _ in range(40):
            step = seen - self.distort(rays)
            rays = rays + step
            if np.abs(step).max(initial=0.0) < 1e-10:
                break
        return rays * self.focal + self.centre


class _Lens(TypedDict):
    """Intrinsics of one camera in `human36m_cameras.json`."""

    id: str
    res_w: int
    res_h: int
    focal_length: list[float]
    center: list[float]
    radial_distortion: list[float]
    tangential_distortion: list[float]


class _Place(TypedDict):
    """Extrinsics of one camera in `human36m_cameras.json`."""

    orientation: list[float]  # quaternion (w, x, y, z) of the rotation from the camera to the world frame
    translation: list[float]  # camera position in the world frame, mm


@functools.cache
def load_cameras() -> dict[str, tuple[StudioCamera, ...]]:
    """Return the four Human3.6M cameras by subject, such as "S1", in the order of the arrays in the 2D files."""
    text = resources.files("pose_datasets").joinpath("human36m_cameras.json").read_text("utf-8")
    data = json.loads(text)
    return {
        subject: tuple(_camera(*pair) for pair in zip(data["intrinsics"], data["extrinsics"][subject], strict=True))
        for subject in SUBJECTS
    }


def _camera(lens: _Lens, place: _Place) -> StudioCamera:
    return StudioCamera(
        id=lens["id"],
        size=(lens["res_w"], lens["res_h"]),
        focal=np.array(lens["focal_length"]),
        centre=np.array(lens["center"]),
        radial=np.array(lens["radial_distortion"]),
        tangential=np.array(lens["tangential_distortion"]),
        # the file contains camera-to-world rotations
        rotation=rotation_from_quaternion(np.array(place["orientation"])).T,
        position=np.array(place["translation"]) / 1000,
    )


def rotation_from_quaternion(quaternion: F64) -> F64:
    """Convert a quaternion (w, x, y, z) of any length to a matrix (3, 3) that rotates column vectors."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def canonical_take(name: str) -> str:
    """Return the name of a recording ("take") as VideoPose3D spells it: `WalkDog 1` for `WalkingDog 1`."""
    return name.replace("TakingPhoto", "Photo").replace("WalkingDog", "WalkDog")


def action_of(take: str, source: str) -> str:
    """Return the action of a recording, such as `Directions` of `Directions 1`."""
    action = take.split(" ")[0]
    if action not in ACTIONS:
        raise PoseError(f"{source}: unknown action {take!r}; known: {', '.join(ACTIONS)}")
    return action


def load_sequences(
    folder: Path, detections: str, subjects: Iterable[str] = TEST_SUBJECTS, actions: Iterable[str] = ACTIONS
) -> list[LabelledSequence]:
    """Load Human3.6M sequences for the protocol of VideoPose3D, one per recording and camera, in the files' order.

    2D joints, in undistorted pixels, are `detections`: `gt` (ground truth) or `cpn` (network CPN). The ground truth is
    the pose in the camera frame, in metres. A missing file is a UsageError, an invalid one a PoseError.
    """
    cameras, wanted = load_cameras(), set(actions)
    positions_3d, positions_2d = read_positions_3d(folder), read_positions_2d(folder, detections)
    sequences = []
    for subject in subjects:
        for take, world in _entry(positions_3d, subject, FILE_3D).items():
            if (subject, take) in EXCLUDED_TAKES or action_of(take, f"{FILE_3D}, {subject}") not in wanted:
                continue
            views = _entry(
                _entry(positions_2d, subject, FILES_2D[detections]), take, f"{FILES_2D[detections]}, {subject}"
            )
            if len(views) != len(cameras[subject]):
                raise PoseError(f"{subject}/{take}: expected 2D from 4 cameras, got {len(views)}")
            for camera, pixels in zip(cameras[subject], views, strict=True):
                sequences.append(_sequence(subject, take, camera, world, pixels))
    if not sequences:
        raise PoseError(f"{folder}: no sequence of {', '.join(subjects)} shows {', '.join(wanted)}")
    return sequences


def _entry(table: Mapping[str, T], name: str, source: str) -> T:
    if name not in table:
        raise PoseError(f"{source}: {name} is missing; found: {', '.join(table) or 'nothing'}")
    return table[name]


def _sequence(subject: str, take: str, camera: StudioCamera, world: F32, seen: object) -> LabelledSequence:
    key = f"{subject}/{take}/{camera.id}"
    frames = len(world)
    pixels = _numbers(seen, (len(H36M17), 2), f"{key}, 2D")
    if len(pixels) < frames:
        raise PoseError(f"{key}: 2D has {len(pixels)} frames, 3D has {frames}; 2D may be longer, never shorter")
    pixels = pixels[:frames]  # some videos are longer than the motion capture
    if not np.isfinite(pixels).all():
        raise PoseError(f"{key}: the 2D contains NaN or infinity")
    require_pixels(pixels, f"{key}, 2D")
    observed = Sequence2D(
        keypoints=camera.undistort(pixels).astype(np.float32),
        scores=np.ones(pixels.shape[:2], np.float32),
        times=np.arange(frames) / FPS,
        camera=camera.ideal,
        skeleton=H36M17.name,
    )
    truth = camera.to_camera(world[:, KEPT_JOINTS]).astype(np.float32)
    return LabelledSequence(key, subject, take.split(" ")[0], camera.id, observed, truth, np.ones(frames, bool))


def read_positions_3d(folder: Path) -> Positions3D:
    """Return all 32 joints (T, 32, 3) m of `data_3d_h36m.npz` in the world, by subject and recording."""
    path = _existing(folder, FILE_3D)
    positions: Positions3D = {}
    for subject, takes in _renamed(load_npz_object(path, "positions_3d"), path).items():
        positions[subject] = {}
        for take, values in takes.items():
            source = f"{FILE_3D}, {subject}/{take}"
            action_of(take, f"{FILE_3D}, {subject}")
            positions[subject][take] = world = _numbers(values, (RAW_JOINTS, 3), source)
            if not np.isfinite(world).all():
                raise PoseError(f"{source}: contains NaN or infinity")
            require_metres(world, source)
    return positions


def _numbers(values: object, shape: tuple[int, ...], source: str) -> F32:
    """Validate an array (T, *shape) and convert it to float32."""
    found = getattr(values, "shape", type(values).__name__)
    if not isinstance(values, np.ndarray) or values.ndim != 1 + len(shape) or values.shape[1:] != shape:
        raise PoseError(f"{source}: expected (T, {', '.join(map(str, shape))}), got {found}")
    if values.dtype.kind not in "fiu":
        raise PoseError(f"{source}: expected numbers, got {values.dtype}")
    return np.asarray(values, np.float32)


def require_pixels(pixels: F32, source: str) -> None:
    """Check that 2D joints (T, J, 2) are plausible for a person in pixels."""
    try:
        check_pixels(pixels, source)
    except ValueError as error:
        raise PoseError(str(error)) from error


def require_metres(world: F32, source: str) -> None:
    """Check that the release's joints (T, 32, 3) are plausible for a person in metres."""
    try:
        check_metres(world[:, KEPT_JOINTS], source)
    except ValueError as error:
        raise PoseError(str(error)) from error


def read_positions_2d(folder: Path, detections: str) -> dict[str, dict[str, list[object]]]:
    """Read `positions_2d`: by subject and recording, unchecked 2D joints (T, 17, 2) px of each camera."""
    if detections not in FILES_2D:
        raise UsageError(f"--2d: {detections!r} is unknown; known: {', '.join(FILES_2D)}")
    path = _existing(folder, FILES_2D[detections])
    positions: dict[str, dict[str, list[object]]] = {}
    for subject, takes in _renamed(load_npz_object(path, "positions_2d"), path).items():
        positions[subject] = {}
        for take, views in takes.items():
            if not isinstance(views, list | tuple | np.ndarray):
                raise PoseError(f"{path}: expected a list of cameras for {subject}/{take}, got {type(views).__name__}")
            positions[subject][take] = list(views)
    return positions


def _renamed(table: object, path: Path) -> dict[str, dict[str, object]]:
    if not isinstance(table, dict) or not all(isinstance(takes, dict) for takes in table.values()):
        raise PoseError(f"{path}: expected positions[subject][action]")
    for subject in table:
        if subject not in SUBJECTS:
            raise PoseError(f"{path}: unknown subject {subject!r}; known: {', '.join(SUBJECTS)}")
    return {subject: {canonical_take(take): value for take, value in takes.items()} for subject, takes in table.items()}


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if path.is_file():
        return path
    how = (
        "take the detections that VideoPose3D publishes"
        if name == FILES_2D["cpn"]
        else f"make it with: pose-prepare human36m --source RELEASE --out {folder}"
    )
    raise UsageError(f"{path} is missing: {how} (see docs/reference/benchmark-data.md)")
