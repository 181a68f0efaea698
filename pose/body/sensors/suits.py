"""Skeletons of inertial suits: the positions of Xsens `.mvnx` files."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from pose.body.imu.readers import MAX_FILE_BYTES, mvnx_subject
from pose.body.sensors.recording import SensorSkeleton, arranged
from pose.errors import PoseError
from pose.structures.rotations import rotate
from pose.structures.types import F64
from pose.utils.json_values import read_text_file

_MVN = "{http://www.xsens.com/mvn/mvnx}"
_HEAD_TOP_M = 0.13  # of the middle of the head above the origin of its segment
_LIMBS = {
    "hip": "UpperLeg", "knee": "LowerLeg", "ankle": "Foot",
    "shoulder": "UpperArm", "elbow": "ForeArm", "wrist": "Hand",
}  # fmt: skip
_ROLES: dict[str, str | tuple[str, ...]] = {
    "pelvis": ("LeftUpperLeg", "RightUpperLeg"), "spine": "T12", "thorax": "Neck", "neck": "Head", "head": "head top",
    **{f"{side}_{joint}": f"{side.title()}{name}" for side in ("left", "right") for joint, name in _LIMBS.items()},
}  # fmt: skip


def has_positions(path: Path) -> bool:
    """Return whether an `.mvnx` file contains positions of segments."""
    return b"<position>" in read_text_file(path, MAX_FILE_BYTES)


def read_mvnx(path: Path) -> SensorSkeleton:
    """Read the segments' origins, joints in m (x forward, y left, z up in the file); PoseError if one is missing."""
    source = str(path)
    subject = mvnx_subject(read_text_file(path, MAX_FILE_BYTES), source)
    names = [segment.get("label", "") for segment in subject.iterfind(f"{_MVN}segments/{_MVN}segment")]
    frames = list(subject.iterfind(f"{_MVN}frames/{_MVN}frame[@type='normal']"))
    if "Head" not in names or not frames:
        raise PoseError(f"{source}: expected frames with a position for each segment, of which one is the head")
    try:
        times = np.array([frame.get("time", "") for frame in frames], np.float64) / 1000
    except ValueError as error:
        raise PoseError(f"{source}: expected frames with a time in ms") from error
    points, turns = (
        _values(frames, kind, len(names), width, source) for kind, width in (("position", 3), ("orientation", 4))
    )
    up = rotate(turns[:, names.index("Head")], np.array([0.0, 0.0, _HEAD_TOP_M]))
    points = np.concatenate([points, (points[:, names.index("Head")] + up)[:, None]], axis=1)[..., [1, 2, 0]]
    return SensorSkeleton.of(times, arranged([*names, "head top"], points, _ROLES, source), None, "suit", source)


def _values(frames: list[ElementTree.Element], kind: str, segments: int, width: int, source: str) -> F64:
    """Return values (T, N, width) of an element of the frames."""
    rows = [(frame.findtext(f"{_MVN}{kind}") or "").split() for frame in frames]
    if any(len(row) != width * segments for row in rows):
        raise PoseError(f"{source}: a frame does not have {width} numbers of {kind} for each segment")
    try:
        return np.array(rows, np.float64).reshape(len(rows), segments, width)
    except ValueError as error:
        raise PoseError(f"{source}: expected frames of numbers") from error
