"""Calibration files in several formats.

The formats are `cameras.json`, JSON with K, R and t, TOML (aniposelib, Pose2Sim, Caliscope), YAML of an OpenCV stereo
pair, XML of Qualisys and Theia, and Vicon's `.xcp`. All define x = K (R X + t) with OpenCV's axes. Larger tangential
distortion is rejected.
"""

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pose.errors import PoseError, UsageError
from pose.multiview.bundle import rotation_matrix
from pose.multiview.rig import Accuracy
from pose.multiview.types import Lab, ViewCamera, relative_cameras
from pose.multiview.xml_files import read_qualisys, read_vicon
from pose.structures.camera import OTHER_SIZE, Camera, check_intrinsics, size_ratio
from pose.structures.lenses import LENSES, Lens, RadialLens, lens_of_file
from pose.structures.types import F64
from pose.utils.json_values import Json
from pose.utils.shown import in_brief

FORMS = (
    "cameras.json, TOML of aniposelib, Pose2Sim or Caliscope, OpenCV YAML with M1, D1, M2, D2, R, T, XML of Qualisys "
    "or Theia, or .xcp of Vicon"
)
MAX_BYTES = 1 << 20
MAX_DISTANCE_M = 100.0  # if two cameras are farther apart, the unit of the file is mm
MAX_ASPECT_ERROR = 0.005  # maximum relative difference of fx and fy from their mean
MAX_FIT_ERROR_PX = 1.0  # maximum error of k1 and k2 that replace more radial coefficients
MAX_NUMBER = 1e6  # maximum absolute value of a number in a file, px or m
_SAME_AXES = 1e-6  # largest difference of a rotation from that of the frame of the file
_MAX_KEY_PARTS = 8
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_PART}[ \t]*+\.[ \t]*+){{{_MAX_KEY_PARTS}}}")
_DISTORTION = ("distortion", "distortions", "distortion_k1_k2_p1_p2")


def camera_json(name: str, camera: ViewCamera, accuracy: Accuracy, clock: Sequence[str] = ()) -> dict[str, Json]:
    """Return the JSON object of a camera for results and `cameras.json`, with lengths in m and angles in degrees."""
    known = {
        "rotation": accuracy.rotation, "position": accuracy.position, "focal": accuracy.focal, "k1": accuracy.radial,
        "offset": accuracy.offset, "drift": accuracy.drift,
    }  # fmt: skip
    return {
        "name": name,
        "size": list(camera.size),
        "K": [[round(float(v), 4) for v in row] for row in camera.matrix],
        **({} if isinstance(camera.lens, RadialLens) else {"lens": camera.lens.name}),
        "distortion": [round(value, 6) for value in camera.lens.in_file],
        "R": [[round(float(v), 8) for v in row] for row in camera.rotation],
        "t": [round(float(v), 6) for v in camera.translation],
        "offset": round(camera.offset, 6),
        "drift": round(camera.drift, 9),
        "clock": list(clock),
        "status": "known" if camera.known else "found",
        "sigma": {key: round(value, 8) for key, value in known.items()},
        "residual_px": round(accuracy.residual, 3) if math.isfinite(accuracy.residual) else None,
    }


def read_lab(path: Path, names: Sequence[str], sizes: Sequence[tuple[int, int]]) -> Lab | None:
    """Read the frame of a calibration file, as `read_cameras`; None if it is the frame of one of the cameras."""
    cameras = _cameras_of(path, names, sizes)
    if any(np.abs(camera.rotation - np.eye(3)).max() < _SAME_AXES for camera in cameras):
        return None
    return Lab(cameras[0].rotation, _unit(cameras) * cameras[0].translation)


def read_cameras(path: Path, names: Sequence[str], sizes: Sequence[tuple[int, int]]) -> list[ViewCamera]:
    """Read the cameras of a calibration file, in the frame of the first camera and without clock offsets.

    Cameras are assigned to videos, of the given sizes, by name, or by order if not all names match. A missing file is a
    UsageError, an invalid one a PoseError.
    """
    return _relative(_cameras_of(path, names, sizes))


def size_notes(path: Path, names: Sequence[str], sizes: Sequence[tuple[int, int]]) -> list[str]:
    """Return messages about cameras of a calibration file whose videos have another size."""
    notes = []
    chosen = _for_videos(path, _read(path), names)
    for name, (_, values), size in zip(names, chosen, sizes, strict=True):
        width, height = (int(side) for side in values.get("size", values.get("image_size", size)))
        if (width, height) == size:
            continue
        ratio = size_ratio((width, height), size)
        how = "cropped at the right or bottom (padding of the encoder)" if ratio == 1 else f"scaled by {ratio:.4g}"
        notes.append(f"{name}: its calibration is for {width} x {height} px, its video {size[0]} x {size[1]}: {how}")
    return notes


def check_cameras(path: Path, names: Sequence[str]) -> None:
    """Check a calibration file before video sizes are known; UsageError if missing, PoseError if invalid."""
    _cameras_of(path, names, [None] * len(names))


def read_camera(path: Path) -> Camera:
    """Read intrinsics and lens of the only camera of a file with its image size; UsageError if invalid."""
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise UsageError(f"intrinsics {path}: not a calibration file")
    try:
        ((name, values), *others) = _read(path)
        if others:
            raise ValueError(f"expected one camera, got {len(others) + 1}")
        if not values.keys() & {"size", "image_size"}:
            raise KeyError("size")
        matrix, lens, size = _intrinsics(name, values, None)
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, yaml.YAMLError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else in_brief(error)
        raise UsageError(f"intrinsics {path}: not the calibration of a camera ({what})") from error
    return Camera(matrix, True, size, lens)


def _cameras_of(path: Path, names: Sequence[str], sizes: Sequence[tuple[int, int] | None]) -> list[ViewCamera]:
    if not path.is_file():
        raise UsageError(f"--cameras {path}: no such file")
    if path.stat().st_size > MAX_BYTES:
        raise PoseError(f"--cameras {path}: larger than {MAX_BYTES} bytes: not a calibration file")
    try:
        found = _read(path)
        chosen = _for_videos(path, found, names)
        return [_camera(name, values, size) for (name, values), size in zip(chosen, sizes, strict=True)]
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, yaml.YAMLError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else in_brief(error)
        raise PoseError(f"--cameras {path}: not a calibration ({what}); allowed: {FORMS}") from error


def _read(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    suffix = path.suffix.lower()
    if suffix in (".yml", ".yaml"):
        return _stereo(path)
    text = path.read_text(encoding="utf-8-sig")
    if suffix in (".xml", ".txt"):
        return read_qualisys(text)
    if suffix == ".xcp":
        return read_vicon(text)
    if suffix == ".toml" and _DEEP_KEY.search(text):  # each part of a dotted key costs memory for all parts before it
        raise ValueError(f"a key with more than {_MAX_KEY_PARTS} parts")
    data = tomllib.loads(text) if suffix == ".toml" else json.loads(text)
    if not isinstance(data, Mapping):
        raise ValueError("expected an object of cameras")
    cameras = data.get("cameras", {"camera": data} if _is_camera(data) else data)
    if isinstance(cameras, Mapping):
        # Caliscope keeps cameras that are to be ignored.
        listed = [
            (str(value.get("name", name)), value)
            for name, value in cameras.items()
            if _is_camera(value) and value.get("ignore") is not True
        ]
    else:
        listed = [(str(value["name"]), value) for value in cameras]
    if not listed:
        raise ValueError("contains no camera")
    return listed


def _is_camera(value: object) -> bool:
    return isinstance(value, Mapping) and ("matrix" in value or "K" in value)


def _for_videos(
    path: Path, found: list[tuple[str, Mapping[str, Any]]], names: Sequence[str]
) -> list[tuple[str, Mapping[str, Any]]]:
    by_name = dict(found)
    if all(name in by_name for name in names):
        return [(name, by_name[name]) for name in names]
    if len(found) != len(names):
        cameras = "1 camera" if len(found) == 1 else f"{len(found)} cameras"
        raise PoseError(
            f"--cameras {path}: has {cameras} ({', '.join(by_name)}) for {len(names)} videos "
            f"({', '.join(names)}); expected matching names, or the same number"
        )
    return found


def _camera(name: str, values: Mapping[str, Any], size: tuple[int, int] | None) -> ViewCamera:
    """Return the camera for images of `size`; None means the size in the file."""
    matrix, lens, size = _intrinsics(name, values, size)
    given_rotation = values["R"] if "R" in values else values["rotation"]
    is_vector = np.shape(given_rotation) == (3,)
    rotation = _array(given_rotation, (3,) if is_vector else (3, 3))
    rotation_3x3 = rotation_matrix(rotation) if is_vector else rotation
    if abs(np.linalg.det(rotation_3x3) - 1) > 1e-3 or np.abs(rotation_3x3 @ rotation_3x3.T - np.eye(3)).max() > 1e-3:
        raise ValueError(f"{name}: R is not a rotation matrix (orthonormal, determinant 1)")
    move = _array(np.ravel(values["t"] if "t" in values else values["translation"]), (3,))
    focal = math.sqrt(float(matrix[0, 0] * matrix[1, 1]))
    if abs(matrix[0, 0] / focal - 1) > MAX_ASPECT_ERROR:
        raise ValueError(f"{name}: fx and fy differ by over {200 * MAX_ASPECT_ERROR:.0f} %; resample the video first")
    return ViewCamera(size, focal, matrix[:2, 2].copy(), rotation_3x3, move, lens, known=True)


def _intrinsics(
    name: str, values: Mapping[str, Any], size: tuple[int, int] | None
) -> tuple[F64, Lens, tuple[int, int]]:
    """Return matrix (3, 3) px, lens and (width, height) px for images of `size`; None means the size in the file."""
    matrix = _array(values["K"] if "K" in values else values["matrix"], (3, 3))
    distortion: Any = next((values[key] for key in _DISTORTION if key in values), [])
    coefficients = np.asarray(distortion, np.float64).ravel()
    if not (np.abs(coefficients) <= MAX_NUMBER).all():
        raise ValueError(f"{name}: expected finite distortion coefficients")
    model = values.get("lens", next((one for one in LENSES if values.get(one) is True), RadialLens.name))
    stated_size = values.get("size", values.get("image_size", size or (1, 1)))
    width, height = (int(side) for side in stated_size)
    size = size or (width, height)
    if min(width, height) <= 0:
        raise ValueError(f"{name}: expected an image size above 0, got {width} x {height} px")
    if (ratio := size_ratio((width, height), size)) is None:
        wrong = f"{name}: is for {width} x {height} px, but its video has {size[0]} x {size[1]}; {OTHER_SIZE}"
        raise ValueError(wrong)
    matrix[:2] *= ratio
    check_intrinsics(matrix)
    focal = math.sqrt(float(matrix[0, 0] * matrix[1, 1]))
    try:
        lens = lens_of_file(str(model), tuple(coefficients.tolist()))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if isinstance(lens, RadialLens):
        lens = RadialLens(_two_coefficients(name, coefficients, focal, matrix[:2, 2], size))
    return matrix, lens, size


def _two_coefficients(name: str, given: F64, focal: float, centre: F64, size: tuple[int, int]) -> tuple[float, float]:
    """Return k1 and k2 of the lens with k1, k2, (p1, p2,) k3 to k6 of OpenCV, fitted to it within the image.

    Raises:
        ValueError: If they differ from the lens by more than `MAX_FIT_ERROR_PX` somewhere in the image.
    """
    if len(given) > 8 and given[8:].any():
        raise ValueError(f"{name}: thin prism and tilted sensor are not supported; undistort the video first")
    lens = np.zeros(8)
    lens[: len(given[:8])] = given[:8]
    if not lens[4:].any():
        return float(lens[0]), float(lens[1])
    corners = np.array([[0, 0], [size[0], 0], [0, size[1]], [size[0], size[1]]]) - centre
    reach = float(np.linalg.norm(corners, axis=1).max()) / focal
    powers = np.linspace(0, 2 * reach, 2001)[:, None] ** [2, 4, 6]
    radius = np.sqrt(powers[:, 0])
    bent = radius * (1 + powers @ lens[[0, 1, 4]]) / (1 + powers @ lens[5:8])
    folded = np.flatnonzero(~(np.diff(bent) > 0))
    inside = bent[: folded[0] + 1 if len(folded) else None]
    if not inside[-1] >= reach:
        raise ValueError(f"{name}: its distortion coefficients fold the image; undistort the video first")
    count = int(np.searchsorted(inside, reach)) + 1
    terms = radius[:count, None] * powers[:count, :2]
    offset = bent[:count] - radius[:count]
    fitted = np.linalg.lstsq(terms, offset, rcond=None)[0]
    error = focal * float(np.abs(terms @ fitted - offset).max())
    if not error <= MAX_FIT_ERROR_PX:
        raise ValueError(f"{name}: k1 and k2 cannot replace k3 to k6 ({error:.1f} px off); undistort the video first")
    return float(fitted[0]), float(fitted[1])


def _array(values: object, shape: tuple[int, ...]) -> F64:
    array = np.array(values, np.float64)
    if array.shape != shape or not (np.abs(array) <= MAX_NUMBER).all():
        raise ValueError(f"expected {' x '.join(map(str, shape))} finite numbers up to {MAX_NUMBER:g}")
    return array


def _stereo(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Read a stereo calibration from `cv2.FileStorage`, with OpenCV's names of the matrices."""
    # OpenCV itself aborts the process for some malformed files.
    text = path.read_text(encoding="utf-8-sig")
    found = yaml.load(text.removeprefix("%YAML:1.0"), _OpenCvLoader)  # safe: a subclass of SafeLoader
    if not isinstance(found, Mapping):
        raise ValueError("expected the matrices M1, D1, M2, D2, R and T")
    parts = {name: found[name] for name in ("M1", "D1", "M2", "D2", "R", "T")}
    first = {"K": parts["M1"], "distortion": parts["D1"], "R": np.eye(3), "t": np.zeros(3)}
    second = {"K": parts["M2"], "distortion": parts["D2"], "R": parts["R"], "t": parts["T"]}
    return [("1", first), ("2", second)]


class _OpenCvLoader(yaml.SafeLoader):
    """A YAML loader that reads OpenCV's matrices and rejects aliases, which could expand to much memory."""

    def compose_node(self, parent: "yaml.Node | None", index: Any) -> "yaml.Node | None":
        if self.check_event(yaml.AliasEvent):
            raise ValueError("aliases (*) are not supported")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def _matrix(loader: _OpenCvLoader, node: "yaml.Node") -> F64:
    if not isinstance(node, yaml.MappingNode):
        raise ValueError("expected a matrix with rows, cols and data")
    values = loader.construct_mapping(node, deep=True)
    return np.array(values["data"], np.float64).reshape(int(values["rows"]), int(values["cols"]))


_OpenCvLoader.add_constructor("tag:yaml.org,2002:opencv-matrix", _matrix)


def _unit(cameras: Sequence[ViewCamera]) -> float:
    """Return the unit of the cameras' positions in m: millimetres if they are far apart."""
    places = np.stack([camera.position for camera in cameras])
    return 0.001 if float(np.linalg.norm(places - places[0], axis=1).max()) > MAX_DISTANCE_M else 1.0


def _relative(cameras: list[ViewCamera]) -> list[ViewCamera]:
    """Return the cameras in the frame of the first one, in metres."""
    unit = _unit(cameras)
    return relative_cameras([replace(camera, translation=unit * camera.translation) for camera in cameras])
