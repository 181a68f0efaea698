"""Skeletons of the Azure Kinect Body Tracking SDK: JSON of its sample `offline_processor`, and ROS bags.

Both have the 32 joints of the SDK in the axes of the depth camera: x right, y down, z forward, mm in JSON and m in
bags. A bag has `visualization_msgs/MarkerArray` messages of Azure_Kinect_ROS_Driver, one marker a joint, with the id
100 x body + joint.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pose.body.sensors.recording import SensorSkeleton, arranged
from pose.errors import PoseError
from pose.structures.types import F64
from pose.utils.json_values import items, member, number, read_text_file, strict_json, text
from pose.utils.shown import in_brief

MAX_FILE_BYTES = 2_000_000_000
MAX_BODIES = 100
_TRUNK = ("PELVIS", "SPINE_NAVEL", "SPINE_CHEST", "NECK")
_ARM = ("CLAVICLE", "SHOULDER", "ELBOW", "WRIST", "HAND", "HANDTIP", "THUMB")
_LEG = ("HIP", "KNEE", "ANKLE", "FOOT")
_FACE = ("HEAD", "NOSE", "EYE_LEFT", "EAR_LEFT", "EYE_RIGHT", "EAR_RIGHT")
NAMES = (*_TRUNK, *(f"{name}_{side}" for part in (_ARM, _LEG) for side in ("LEFT", "RIGHT") for name in part), *_FACE)
_LIMBS = ("hip", "knee", "ankle", "shoulder", "elbow", "wrist")
_ROLES: dict[str, str | tuple[str, ...]] = {
    "pelvis": "PELVIS", "spine": "SPINE_NAVEL", "thorax": "NECK", "neck": "HEAD", "head": ("EAR_LEFT", "EAR_RIGHT"),
    **{f"{side}_{joint}": f"{joint}_{side}".upper() for side in ("left", "right") for joint in _LIMBS},
}  # fmt: skip
_TO_UPRIGHT = np.array([1.0, -1, -1])  # from the camera's axes to x right, y up, z towards the camera
Rows = dict[int, list[tuple[float, F64]]]  # by body: time in s and joints (32, 3) m in the camera's axes


def read_azure_json(path: Path) -> dict[int, SensorSkeleton]:
    """Read the JSON of `offline_processor`: a skeleton for each body id; PoseError if there is none."""
    rows: Rows = {}
    try:
        content = strict_json(read_text_file(path, MAX_FILE_BYTES))
        names = [text(name) for name in items(member(content, "joint_names"))]
        if sorted(names) != sorted(NAMES):
            raise ValueError("joint_names: expected the 32 joints of the SDK")
        order = [names.index(name) for name in NAMES]
        for frame in items(member(content, "frames")):
            seconds = number(member(frame, "timestamp_usec")) / 1e6
            for body in items(member(frame, "bodies")):
                joints = [[number(value) for value in items(joint)] for joint in items(member(body, "joint_positions"))]
                points = np.array(joints, np.float64)
                if points.shape != (len(NAMES), 3):
                    raise ValueError(f"joint_positions: expected {len(NAMES)} x 3 numbers")
                rows.setdefault(int(number(member(body, "body_id"))), []).append((seconds, points[order] / 1000))
    except (ValueError, OverflowError) as error:
        raise PoseError(f"{path}: not a file of the Azure Kinect's offline_processor ({in_brief(error)})") from error
    return _skeletons(rows, str(path))


def read_ros_bag(path: Path) -> dict[int, SensorSkeleton]:
    """Read the bodies of a ROS 1 or 2 bag; PoseError without `rosbags`, or without a body."""
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise PoseError(f'{path}: ROS bags need more packages: pip install "pose-run[ros2]"') from error
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
            rows = _bodies(reader)
    except PoseError:
        raise
    except Exception as error:  # the library raises exceptions of many classes for damaged files
        raise PoseError(f"{path}: not a readable ROS bag ({in_brief(error)})") from error
    return _skeletons(rows, str(path))


def _bodies(reader: object) -> Rows:
    connections = [c for c in reader.connections if c.msgtype == "visualization_msgs/msg/MarkerArray"]  # type: ignore[attr-defined]
    if not connections:
        raise ValueError("it contains no visualization_msgs/MarkerArray")
    rows: Rows = {}
    for connection, nanoseconds, raw in reader.messages(connections=connections):  # type: ignore[attr-defined]
        bodies: dict[int, F64] = {}
        seconds = nanoseconds / 1e9
        for marker in reader.deserialize(raw, connection.msgtype).markers:  # type: ignore[attr-defined]
            body, joint = divmod(int(marker.id), 100)
            if joint < len(NAMES) and body >= 0:
                at, stamp = marker.pose.position, marker.header.stamp
                seconds = stamp.sec + stamp.nanosec / 1e9
                bodies.setdefault(body, np.full((len(NAMES), 3), np.nan))[joint] = at.x, at.y, at.z
        for body, points in bodies.items():
            rows.setdefault(body, []).append((seconds, points))
    return rows


def _skeletons(rows: Rows, source: str) -> dict[int, SensorSkeleton]:
    if not rows:
        raise PoseError(f"{source}: contains no body")
    if len(rows) > MAX_BODIES:
        raise PoseError(f"{source}: {len(rows)} bodies; at most {MAX_BODIES} are read")
    start = min(frames[0][0] for frames in rows.values())
    return dict(_each(rows, start, source))


def _each(rows: Rows, start: float, source: str) -> Iterator[tuple[int, SensorSkeleton]]:
    """Yield the skeleton of each body that was seen in two frames or more."""
    several = {body: frames for body, frames in rows.items() if len(frames) > 1}
    if not several:
        raise PoseError(f"{source}: fewer than two frames with a person")
    for body, frames in sorted(several.items()):
        times = np.array([seconds for seconds, _ in frames]) - start
        points = np.stack([joints for _, joints in frames]) * _TO_UPRIGHT
        yield body, SensorSkeleton.of(times, arranged(list(NAMES), points, _ROLES, source), None, "azure", source)
