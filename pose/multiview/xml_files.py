"""Calibrations in XML of Vicon (`.xcp`) and of Qualisys Track Manager (`.txt` or `.xml`).

Source: Vicon, "About calibration data (XCP) files"; axes and distortion as two published converters use them (Pose2Sim,
and a MATLAB script for DeepLabCut). Each `Camera` has `SENSOR_SIZE`, `PIXEL_ASPECT_RATIO`, and a `KeyFrame` with

* `ORIENTATION`: a quaternion x y z w of the rotation from the world to the camera axes x right, y down, z forward;
* `POSITION`: the optical centre in the world, mm; `FOCAL_LENGTH` and `PRINCIPAL_POINT`, px;
* `VICON_RADIAL2`: a name, the centre of the distortion, and k1, k2, k3 (OpenCV's model); `VICON_RADIAL`: k1 and k2.

Source: the QTM real-time protocol's description of calibration XML, and Pose2Sim's published demo, which contains both
an exported file and the converted cameras (Pose2Sim/Demo_MultiPerson/calibration). Each camera has

* `transform`: x, y, z, its position in mm, and r11 ... r33, a rotation row by row, from the world to camera axes x
  right, y up, z backwards. The protocol defines the rotation of the camera in the world, the transpose.
* `intrinsic`: focal lengths and principal point in 1/64 px of the whole sensor, distortion coefficients without a unit
  (OpenCV's model).
* `fov_video`: the part of the sensor that the video shows, px; both ends belong to it.

Theia3D's calibration has the same elements. Its `intrinsic` is in px, and x, y, z of its `transform` are t in mm of
x_camera = R x_world + t. Source: Theia Markerless, "Camera calibration" of the documentation. The axes of the camera
are taken as OpenCV's.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from pose.structures.rotations import to_matrix
from pose.structures.types import F64


def root_of(text: str) -> ElementTree.Element:
    """Parse XML without a document type definition, which could expand to much memory.

    Raises:
        ValueError: If the text is not XML.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("a document type definition is not supported")
    try:
        return ElementTree.fromstring(text.strip().removeprefix("\ufeff").encode())
    except ElementTree.ParseError as error:
        raise ValueError(f"not XML: {error}") from error


def numbers(
    element: ElementTree.Element, name: str, count: int, missing: Sequence[float] | None = None
) -> Sequence[float]:
    """Return the last `count` numbers of an attribute, separated by white space.

    Raises:
        KeyError: If the attribute is missing, and `missing` is None.
        ValueError: If it has fewer numbers, or one is not finite.
    """
    said = element.get(name)
    if said is None:
        if missing is None:
            raise KeyError(name)
        return missing
    values = [float(word) for word in said.split()[-count:]]
    if len(values) < count:
        raise ValueError(f"{name}: expected {count} numbers")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} is not a finite number" if count == 1 else f"{name}: expected finite numbers")
    return values


VIDEO_TYPES = ("vue", "video")  # parts of the type of a camera that records videos; the others record markers


def read_vicon(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the device id and parameters, as in `cameras.json`, of every video camera, else of every camera."""
    cameras = [camera for camera in root_of(text).iter("Camera") if camera.find(".//KeyFrame") is not None]
    videos = [camera for camera in cameras if any(one in _type(camera) for one in VIDEO_TYPES)]
    if not cameras:
        raise ValueError("contains no calibrated camera")
    return [(camera.get("DEVICEID", str(row)), _camera(camera)) for row, camera in enumerate(videos or cameras, 1)]


def _type(camera: Element) -> str:
    return f"{camera.get('TYPE', '')} {camera.get('DISPLAY_TYPE', '')}".lower()


def _camera(camera: Element) -> Mapping[str, Any]:
    frame, *more = camera.findall(".//KeyFrame")
    if more:
        raise ValueError("a moving camera is not supported")
    if numbers(camera, "SKEW", 1, [0.0])[0] != 0:
        raise ValueError("skew is not supported")
    width, height = numbers(camera, "SENSOR_SIZE", 2)
    focal, centre = numbers(frame, "FOCAL_LENGTH", 1)[0], numbers(frame, "PRINCIPAL_POINT", 2)
    aspect = numbers(camera, "PIXEL_ASPECT_RATIO", 1, [1.0])[0]
    if not aspect > 0:
        raise ValueError("PIXEL_ASPECT_RATIO must be above 0")
    if frame.get("VICON_RADIAL2"):
        k1, k2, k3 = numbers(frame, "VICON_RADIAL2", 5)[2:]
    else:
        k1, k2, k3 = [*numbers(frame, "VICON_RADIAL", 2, [0.0, 0.0]), 0.0]
    rotation = _matrix(np.array(numbers(frame, "ORIENTATION", 4)))
    return {
        "K": [[focal, 0.0, centre[0]], [0.0, focal / aspect, centre[1]], [0.0, 0.0, 1.0]],
        "distortion": [k1, k2, 0.0, 0.0, k3],
        "R": rotation.tolist(),
        "t": (-rotation @ np.array(numbers(frame, "POSITION", 3)) / 1000).tolist(),
        "size": [round(width), round(height)],
    }


def _matrix(quaternion: F64) -> F64:
    """Return the rotation matrix (3, 3) of a quaternion (4,) x y z w."""
    length = float(np.linalg.norm(quaternion))
    if not abs(length - 1) < 0.01:
        raise ValueError("ORIENTATION is not a unit quaternion")
    return to_matrix(np.roll(quaternion / length, 1))  # w first


SUBPIXELS = 64  # units per px of `intrinsic`
MAX_SENSOR_PX = 20_000  # a larger `sensorMaxU` is in 1/64 px, a smaller one in px
_TO_OPENCV = np.diag([1.0, -1.0, -1.0])  # from x right, y up, z backwards to x right, y down, z forward


def read_qualisys(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the name and parameters, as in `cameras.json`, of every active, calibrated camera."""
    cameras = [camera for camera in root_of(text).iter("camera") if camera.get("active", "1") != "0"]
    if not cameras:
        raise ValueError("contains no camera")
    return [(str(camera.get("serial", number + 1)), _qualisys_camera(camera)) for number, camera in enumerate(cameras)]


def _qualisys_camera(camera: ElementTree.Element) -> Mapping[str, Any]:
    transform, intrinsic = _child(camera, "transform"), _child(camera, "intrinsic")
    place = np.array([_number(transform, axis) for axis in "xyz"]) / 1000
    in_px = _number(intrinsic, "sensorMaxU", np.inf) < MAX_SENSOR_PX
    unit = 1 if in_px else SUBPIXELS
    rows = [[_number(transform, f"r{row}{column}") for column in (1, 2, 3)] for row in (1, 2, 3)]
    rotation = np.array(rows) if in_px else _TO_OPENCV @ np.array(rows)
    shown = camera.find("fov_video")
    left, top = (0.0, 0.0) if shown is None else (_number(shown, "left"), _number(shown, "top"))
    if shown is None:
        width, height = (_number(intrinsic, f"sensorMax{axis}") / unit + 1 for axis in "UV")
    else:
        width, height = _number(shown, "right") - left + 1, _number(shown, "bottom") - top + 1
    focal = [_number(intrinsic, f"focalLength{axis}") / unit for axis in "UV"]
    centre = [_number(intrinsic, f"centerPoint{axis}") / unit for axis in "UV"]
    if _number(intrinsic, "skew", 0.0) != 0:
        raise ValueError("skew is not supported")
    return {
        "K": [[focal[0], 0.0, centre[0] - left], [0.0, focal[1], centre[1] - top], [0.0, 0.0, 1.0]],
        "distortion": [
            _number(intrinsic, "radialDistortion1", 0.0),
            _number(intrinsic, "radialDistortion2", 0.0),
            *(_tangential(intrinsic, number) for number in (1, 2)),
            _number(intrinsic, "radialDistortion3", 0.0),
        ],
        "R": rotation.tolist(),
        "t": (place if in_px else -rotation @ place).tolist(),
        "size": [round(width), round(height)],
    }


def _tangential(intrinsic: ElementTree.Element, number: int) -> float:
    spelled = (f"{name}Distortion{number}" for name in ("tangental", "tangential", "tengential"))
    return next((_number(intrinsic, name) for name in spelled if intrinsic.get(name) is not None), 0.0)


def _child(camera: ElementTree.Element, name: str) -> ElementTree.Element:
    found = camera.find(name)
    if found is None:
        raise KeyError(name)
    return found


def _number(element: ElementTree.Element, name: str, missing: float | None = None) -> float:
    return numbers(element, name, 1, None if missing is None else [missing])[0]
