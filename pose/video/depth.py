"""Recordings of depth images: folders of 16-bit PNG, Stray Scanner, and files (`pose.video.depth_files`).

- Open3D and Redwood: `depth/*.png`, 16 bit; `intrinsic.json` or `camera_intrinsic.json` with `intrinsic_matrix` in
  columns, `width`, `height`, and optionally `depth_scale` and `fps`. Times are in names such as
  `0000001-000000033369.png` (us), or follow from the rate.
- Stray Scanner: the same images, 256 x 192, mm; `camera_matrix.csv` at the size of the colour image; `odometry.csv`:
  time, frame, position and quaternion (x, y, z, w) of the camera for each colour image, in ARKit's world with y against
  gravity. The axes of the camera are those of the image, as in the application's own `stray_visualize.py`.

Depth is registered to the colour camera: both have one viewpoint, and may differ in size and rate. Otherwise, the
camera file contains `extrinsic`: 16 numbers in columns, from the axes of the colour camera to those of depth.
"""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from pose.errors import PoseError, UsageError
from pose.structures.odometry import Odometry
from pose.structures.types import F32, F64
from pose.utils.json_values import items, member, number, read_text_file, strict_json
from pose.utils.shown import in_brief
from pose.video.depth_files import open_bag, open_record3d
from pose.video.depth_mkv import open_mkv
from pose.video.depth_video import DepthVideo

FPS = 30.0
DEPTH_SCALE = 1000.0  # values per m
MAX_IMAGES = 1_000_000
MAX_DEPTH_M = 20.0
_CAMERAS = ("intrinsic.json", "camera_intrinsic.json")
_FILES = {".bag": open_bag, ".mkv": open_mkv, ".r3d": open_record3d}
_TIMED = re.compile(r"\d+-(\d{6,})")


def open_depth(path: Path, offset: float = 0.0, fps: float | None = None) -> DepthVideo:
    """Open a recording of depth images in a folder, or in the folder of its PNG files; they are read when needed.

    They begin at `offset` s of the colour video. `fps` applies if neither names nor files state times; default: that of
    the camera file, or 30. An unknown format is a UsageError, a damaged recording a PoseError.
    """
    if path.suffix.lower() in _FILES and path.exists():
        video = _FILES[path.suffix.lower()](path)
        camera = path.with_suffix(".json")
        if camera.is_file():
            video = replace(video, extrinsics=_read_camera(camera)[4])
        return _checked(path, video, offset)
    if not path.is_dir():
        raise UsageError(f"--depth {path}: expected a folder with 16-bit PNG files")
    folder = path / "depth" if (path / "depth").is_dir() else path
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".png")[:MAX_IMAGES]
    if not files:
        raise PoseError(f"{folder}: contains no PNG files")
    matrix, size, scale, rate, extrinsics = _camera(path)
    times, odometry = _times(path, files, fps or rate)
    return _checked(
        path,
        DepthVideo(
            times,
            matrix,
            size,
            lambda index: _image(files[index], scale),
            extrinsics,
            odometry,
            begin=None if odometry is None else odometry.times[0],
        ),
        offset,
    )


def _checked(path: Path, video: DepthVideo, offset: float) -> DepthVideo:
    """Return the images with the time of the first colour image at `offset`."""
    if not (np.diff(video.times) > 0).all():
        raise PoseError(f"{path}: the times of the depth images do not increase")
    video.read(0)
    odometry = video.odometry
    first = video.times[0] if video.begin is None else video.begin
    if odometry is not None:
        odometry = replace(odometry, times=odometry.times - first + offset)
    return replace(video, times=video.times - first + offset, odometry=odometry, begin=offset)


_Camera = tuple[F64 | None, tuple[int, int] | None, float, float, F64 | None]


def _read_camera(file: Path) -> _Camera:
    """Return camera matrix, its image size, values per m, frames/s and extrinsics of a camera file of Open3D."""
    try:
        content = strict_json(read_text_file(file))
        given = content if isinstance(content, dict) else {}
        inner = given.get("intrinsic", content)
        values = [number(value) for value in items(member(inner, "intrinsic_matrix"))]
        matrix = np.array(values).reshape(3, 3).T
        size = (int(number(member(inner, "width"))), int(number(member(inner, "height"))))
        scale = number(given.get("depth_scale", DEPTH_SCALE))
        rate = number(given.get("fps", FPS))
        if not (matrix[0, 0] > 0 and matrix[1, 1] > 0 and min(size) > 0 and scale > 0 and rate > 0):
            raise ValueError("focal length, size, depth_scale and fps must be above 0")
        if "extrinsic" not in given:
            return matrix, size, scale, rate, None
        pose = np.array([number(value) for value in items(given["extrinsic"])]).reshape(4, 4).T
        if np.abs(pose[:3, :3] @ pose[:3, :3].T - np.eye(3)).max() > 1e-3 or np.linalg.det(pose[:3, :3]) < 0:
            raise ValueError("extrinsic must be a rotation and a translation")
    except (ValueError, OverflowError) as error:
        raise PoseError(f"{file}: not a camera file of Open3D ({in_brief(error)})") from error
    return matrix, size, scale, rate, pose


def _camera(path: Path) -> _Camera:
    """Return what the camera file of a folder says."""
    for name in _CAMERAS:
        if (path / name).is_file():
            return _read_camera(path / name)
    if (path / "camera_matrix.csv").is_file():
        file = path / "camera_matrix.csv"
        try:
            text = read_text_file(file).decode(errors="replace")
            matrix = np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2)
            if matrix.shape != (3, 3) or not np.isfinite(matrix).all() or not (np.diag(matrix) > 0).all():
                raise ValueError("expected 3 x 3 numbers")
        except ValueError as error:
            raise PoseError(f"{file}: not a camera matrix ({in_brief(error)})") from error
        # The principal point is near the centre of the colour image, whose size the file does not state.
        return matrix, (round(2 * matrix[0, 2]), round(2 * matrix[1, 2])), DEPTH_SCALE, FPS, None
    return None, None, DEPTH_SCALE, FPS, None


def _times(path: Path, files: list[Path], fps: float) -> tuple[F64, Odometry | None]:
    """Return the times (N,) s of the images, and the path of the camera."""
    table = path / "odometry.csv"
    if table.is_file():
        try:
            rows = list(csv.reader(read_text_file(table).decode(errors="replace").splitlines()))
            times = np.array([row[0] for row in rows[1:]], np.float64)
            if len(times) < len(files) or not np.isfinite(times).all():
                raise ValueError(f"{len(times)} times for {len(files)} images")
            poses = np.array([row[2:9] for row in rows[1:]], np.float64) if len(rows[0]) >= 9 else None
            odometry = None if poses is None else Odometry.of(times, poses[:, :3], poses[:, 3:])
        except (ValueError, IndexError, csv.Error) as error:
            raise PoseError(f"{table}: expected a timestamp and a pose for each image ({in_brief(error)})") from error
        # Images are named after the row of the table, if depth was not stored for all colour images.
        named = [int(file.stem) if file.stem.isdecimal() and len(file.stem) < 9 else len(times) for file in files]
        return times[named if max(named) < len(times) else slice(len(files))], odometry
    found = [_TIMED.fullmatch(file.stem) for file in files]
    if all(found):
        return np.array([float(match[1]) for match in found if match]) / 1e6, None
    return np.arange(len(files)) / fps, None


def _image(file: Path, scale: float) -> F32:
    import cv2

    try:
        image = cv2.imdecode(np.frombuffer(read_text_file(file), np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:  # an empty file
        image = None
    if image is None or image.ndim != 2 or image.dtype != np.uint16:
        raise PoseError(f"{file}: not a 16-bit grey PNG")
    depth: F32 = image.astype(np.float32) / np.float32(scale)
    depth[depth > MAX_DEPTH_M] = 0
    return depth
