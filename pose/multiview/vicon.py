"""Calibrations of Vicon: the XML file `.xcp` that is saved with each recording.

Source: Vicon, "About calibration data (XCP) files"; axes and distortion as two published converters use them (Pose2Sim,
and a MATLAB script for DeepLabCut). Each `Camera` has `SENSOR_SIZE`, `PIXEL_ASPECT_RATIO`, and a `KeyFrame` with

* `ORIENTATION`: a quaternion x y z w of the rotation from the world to the camera axes x right, y down, z forward;
* `POSITION`: the optical centre in the world, mm; `FOCAL_LENGTH` and `PRINCIPAL_POINT`, px;
* `VICON_RADIAL2`: a name, the centre of the distortion, and k1, k2, k3 (OpenCV's model); `VICON_RADIAL`: k1 and k2.
"""

from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from pose.multiview.xml_files import numbers, root_of
from pose.structures.rotations import to_matrix
from pose.structures.types import F64

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
