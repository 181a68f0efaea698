"""Calibrations of Qualisys Track Manager: the XML that it exports as `.txt` or `.xml`.

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

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import numpy as np

from pose.multiview.xml_files import numbers, root_of

SUBPIXELS = 64  # units per px of `intrinsic`
MAX_SENSOR_PX = 20_000  # a larger `sensorMaxU` is in 1/64 px, a smaller one in px
_TO_OPENCV = np.diag([1.0, -1.0, -1.0])  # from x right, y up, z backwards to x right, y down, z forward


def read_qualisys(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the name and parameters, as in `cameras.json`, of every active, calibrated camera."""
    cameras = [camera for camera in root_of(text).iter("camera") if camera.get("active", "1") != "0"]
    if not cameras:
        raise ValueError("contains no camera")
    return [(str(camera.get("serial", number + 1)), _camera(camera)) for number, camera in enumerate(cameras)]


def _camera(camera: ElementTree.Element) -> Mapping[str, Any]:
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
