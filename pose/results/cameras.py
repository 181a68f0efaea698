"""The cameras of a multi-camera result, read from the metadata in the result file."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError
from pose.results.run_info import RunInfo
from pose.structures.camera import Camera
from pose.structures.lenses import Lens, RadialLens, lens_of_file
from pose.structures.types import F64
from pose.utils.json_values import Json, items, member, number, text
from pose.utils.shown import in_brief
from pose.utils.whole_file import write_whole

MAX_NUMBER = 1e6  # maximum absolute value of the numbers in a description, in px, m or s
MAX_DRIFT = 0.01  # maximum relative clock drift; that of phones is about 0.00015


@dataclass(frozen=True, slots=True, eq=False)
class ResultCamera:
    """One camera of a multi-camera result. World coordinates here are the camera frame of the first camera."""

    name: str  # name of the camera
    size: tuple[int, int]  # (width, height) of the image in px
    matrix: F64  # (3, 3) px, intrinsics
    lens: Lens  # distortion of the lens
    rotation: F64  # (3, 3) rotation from world to camera coordinates: x_camera = rotation @ x_world + translation
    translation: F64  # (3,) m, translation from world to camera coordinates
    offset: float  # clock offset in s: time of the result = (1 + drift) * time on the camera's clock + offset
    drift: float  # relative drift of the camera's clock against the time of the result, dimensionless; see `offset`
    turn_sigma: float  # standard deviation of the rotation relative to the first camera, in degrees
    place_sigma: float  # standard deviation of the position relative to the first camera, in m
    offset_sigma: float  # standard deviation of `offset` in s
    residual_px: float  # median reprojection error in px; NaN if unknown
    video: str | None  # path or URL of the camera's video; None if unknown

    @property
    def place(self) -> F64:
        """Optical centre (3,) m in world coordinates."""
        place: F64 = -self.rotation.T @ self.translation
        return place

    @property
    def half_view(self) -> float:
        """Half the horizontal field of view in radians."""
        return math.atan(self.size[0] / 2 / float(self.matrix[0, 0]))

    def own_time(self, time: float) -> float:
        """Convert a time of the result in s to a time on this camera's clock in s."""
        return (time - self.offset) / (1 + self.drift)

    def result_time(self, camera_time: float) -> float:
        """Convert a time on this camera's clock in s to a time of the result in s."""
        return camera_time * (1 + self.drift) + self.offset

    def project(self, points: NDArray[np.floating]) -> F64:
        """Project points (..., 3) m in world coordinates into the camera's original image, with its lens distortion.

        Depths below 0.1 m, also of points behind the camera, are set to 0.1 m.

        Returns:
            (..., 2) px, x and y.
        """
        seen = points @ self.rotation.T + self.translation
        seen[..., 2] = np.maximum(seen[..., 2], 0.1)
        return Camera(self.matrix, True, self.size, self.lens).project(seen)

    @property
    def file(self) -> Path | None:
        """Path of the camera's video; None if the video is unknown or not a file on this machine."""
        return Path(self.video) if self.video and Path(self.video).is_file() else None


def result_cameras(run: RunInfo | None) -> list[ResultCamera]:
    """Return the cameras of a result, none of a single one; PoseError if a description is invalid."""
    try:
        return [] if run is None else [_camera(document) for document in run.cameras]
    except (KeyError, TypeError, ValueError) as error:
        raise PoseError(f"cameras of the result: not a calibration ({in_brief(error)})") from error


def cameras_text(cameras: Sequence[Mapping[str, Json]]) -> str:
    """Return the cameras of a result as the text of a calibration file, which the option `--cameras` reads."""
    document = {"format": "pose-run cameras", "version": 1, "cameras": list(cameras)}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def write_cameras(path: Path, cameras: Sequence[Mapping[str, Json]]) -> None:
    """Write the cameras of a result as JSON, for `--cameras`; PoseError if the file cannot be written."""
    write_whole(path, cameras_text(cameras))


def result_title(run: RunInfo | None, name: str) -> str:
    """Return the file names or URLs of a result's videos, or `name`, as a title, separated by commas."""
    cameras = () if run is None else run.cameras
    sources = [str(camera["video"]) for camera in cameras if camera.get("video")] or [name]
    return ", ".join(source if "://" in source else Path(source).name for source in sources)


def _camera(document: Mapping[str, Json]) -> ResultCamera:
    sigma, residual = member(document, "sigma"), document.get("residual_px")
    size, video = items(member(document, "size")), document.get("video")
    width, height = (int(number(value)) for value in size)
    coefficients = tuple(_bounded(value) for value in items(member(document, "distortion")))
    camera = ResultCamera(
        text(member(document, "name")),
        (width, height),
        _array(member(document, "K"), (3, 3)),
        lens_of_file(text(document.get("lens", RadialLens.name)), coefficients),
        _array(member(document, "R"), (3, 3)),
        _array([member(document, "t")], (1, 3))[0],
        _bounded(member(document, "offset")),
        _bounded(member(document, "drift")),
        number(member(sigma, "rotation")),
        number(member(sigma, "position")),
        number(member(sigma, "offset")),
        math.nan if residual is None else number(residual),
        None if video is None else text(video),
    )
    if min(width, height) < 1 or not (camera.matrix[[0, 1], [0, 1]] > 0).all() or abs(camera.drift) > MAX_DRIFT:
        raise ValueError(f"expected sizes and focal lengths above 0, and a drift of at most {MAX_DRIFT:g}")
    if np.abs(camera.rotation @ camera.rotation.T - np.eye(3)).max() > 1e-3:
        raise ValueError("R: expected a rotation matrix")
    return camera


def _array(rows: Json, shape: tuple[int, int]) -> F64:
    array = np.array([[_bounded(value) for value in items(row)] for row in items(rows)], np.float64)
    if array.shape != shape:
        raise ValueError(f"expected {shape[0]} x {shape[1]} numbers")
    return array


def _bounded(value: Json) -> float:
    found = number(value)
    if abs(found) > MAX_NUMBER:
        raise ValueError(f"expected numbers of at most {MAX_NUMBER:g}, got {found:g}")
    return found
