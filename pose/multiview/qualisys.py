"""Calibrations of Qualisys Track Manager: the XML that it exports as `.txt` or `.xml`.

Source: the QTM real-time protocol's description of calibration XML, and Pose2Sim's published demo, which contains both
an exported file and the converted cameras (Pose2Sim/Demo_MultiPerson/calibration). Each camera has

* `transform`: x, y, z, its position in mm, and r11 ... r33, a rotation row by row, from the world to camera axes x
  right, y up, z backwards. The protocol defines the rotation of the camera in the world, the transpose.
* `intrinsic`: focal lengths and principal point in 1/64 px of the whole sensor, distortion coefficients without a unit
  (OpenCV's model).
* `fov_video`: the part of the sensor that the video shows, px; both ends belong to it.
"""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import numpy as np

SUBPIXELS = 64  # units per px of `intrinsic`
_TO_OPENCV = np.diag([1.0, -1.0, -1.0])  # from x right, y up, z backwards to x right, y down, z forward


def read_qualisys(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the name and parameters, as in `cameras.json`, of every active, calibrated camera."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:  # a DTD could expand to much memory
        raise ValueError("a document type definition is not supported")
    try:
        root = ElementTree.fromstring(text.strip().removeprefix("\ufeff").encode())
    except ElementTree.ParseError as error:
        raise ValueError(f"not XML: {error}") from error
    cameras = [camera for camera in root.iter("camera") if camera.get("active", "1") != "0"]
    if not cameras:
        raise ValueError("contains no camera")
    return [(str(camera.get("serial", number + 1)), _camera(camera)) for number, camera in enumerate(cameras)]


def _camera(camera: ElementTree.Element) -> Mapping[str, Any]:
    transform, intrinsic = _child(camera, "transform"), _child(camera, "intrinsic")
    place = np.array([_number(transform, axis) for axis in "xyz"]) / 1000
    rows = [[_number(transform, f"r{row}{column}") for column in (1, 2, 3)] for row in (1, 2, 3)]
    rotation = _TO_OPENCV @ np.array(rows)
    shown = camera.find("fov_video")
    left, top = (0.0, 0.0) if shown is None else (_number(shown, "left"), _number(shown, "top"))
    if shown is None:
        width, height = (_number(intrinsic, f"sensorMax{axis}") / SUBPIXELS + 1 for axis in "UV")
    else:
        width, height = _number(shown, "right") - left + 1, _number(shown, "bottom") - top + 1
    focal = [_number(intrinsic, f"focalLength{axis}") / SUBPIXELS for axis in "UV"]
    centre = [_number(intrinsic, f"centerPoint{axis}") / SUBPIXELS for axis in "UV"]
    if _number(intrinsic, "skew", 0.0) != 0:
        raise ValueError("skew is not supported")
    return {
        "K": [[focal[0], 0.0, centre[0] - left], [0.0, focal[1], centre[1] - top], [0.0, 0.0, 1.0]],
        "distortion": [
            _number(intrinsic, "radialDistortion1", 0.0),
            _number(intrinsic, "radialDistortion2", 0.0),
            _number(intrinsic, "tangentalDistortion1", 0.0),
            _number(intrinsic, "tangentalDistortion2", 0.0),
            _number(intrinsic, "radialDistortion3", 0.0),
        ],
        "R": rotation.tolist(),
        "t": (-rotation @ place).tolist(),
        "size": [round(width), round(height)],
    }


def _child(camera: ElementTree.Element, name: str) -> ElementTree.Element:
    found = camera.find(name)
    if found is None:
        raise KeyError(name)
    return found


def _number(element: ElementTree.Element, name: str, missing: float | None = None) -> float:
    said = element.get(name)
    if said is None:
        if missing is None:
            raise KeyError(name)
        return missing
    value = float(said)
    if not np.isfinite(value):
        raise ValueError(f"{name} is not a finite number")
    return value
