"""`pose-lift` with the skeletons of depth cameras and suits."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError, UsageError

if TYPE_CHECKING:
    from pose.body.sensors.recording import SensorSkeleton
    from pose.structures.types import F64, Array, Flags

MOTION_FILES = (".bvh", ".c3d", ".trc")
BAG_FILES = (".bag", ".db3", ".mcap")
_HEAD_BYTES = 4096
_MAX_GAP_S = 0.5  # longer gaps of a joint are not filled without the network


def are_sensors(paths: Sequence[Path]) -> bool:
    """Return whether the inputs are skeletons of sensors; UsageError if some are and others are not."""
    found = [path for path in paths if is_sensor_file(path)]
    if found and len(found) < len(paths):
        other = next(path for path in paths if path not in found)
        raise UsageError(f"{other}: give 2D keypoints and skeletons of sensors in separate calls")
    return bool(found)


def is_sensor_file(path: Path) -> bool:
    """Return whether a path is that of a file or bag which `read_sensors` reads."""
    suffix = path.suffix.lower()
    if suffix in MOTION_FILES or suffix in BAG_FILES:
        return True
    if path.is_dir():
        return ((path / "metadata.yaml").is_file() and any(path.glob("*.db3"))) or any(path.glob("*.mcap"))
    if not path.is_file():
        return False
    if suffix == ".mvnx":
        from pose.body.sensors.suits import has_positions

        return has_positions(path)
    if suffix == ".txt":
        return "_positions" in path.name
    if suffix == ".json":
        with path.open("rb") as file:
            start = file.read(_HEAD_BYTES)
        return b'"bone_list"' in start or b'"joint_names"' in start
    return False


def read_sensors(path: Path) -> "dict[int, SensorSkeleton]":
    """Read the skeletons of a file by person, numbered as there or from 1; PoseError if there is none."""
    suffix = path.suffix.lower()
    if suffix == ".txt":
        from pose.body.sensors.kinect import read_ui_prmd_kinect

        return {1: read_ui_prmd_kinect(path)}
    if suffix == ".mvnx":
        from pose.body.sensors.suits import read_mvnx

        return {1: read_mvnx(path)}
    if suffix in MOTION_FILES:
        return _motion_capture(path)
    from pose.body.sensors.azure import read_azure_json, read_ros_bag

    return read_azure_json(path) if suffix == ".json" else read_ros_bag(path)


def _motion_capture(path: Path) -> "dict[int, SensorSkeleton]":
    """Read BVH files of suits, and optical markers."""
    import numpy as np
    from pose_datasets.marker_files import load_markers
    from pose_datasets.suit_bvh import read_suit_bvh

    from pose.body.sensors.recording import SensorSkeleton

    if path.suffix.lower() == ".bvh":
        times, joints = read_suit_bvh(path)
        return {1: SensorSkeleton.of(times, joints, None, "suit", str(path))}
    clips = load_markers(path)
    found = {}
    for number, subject in enumerate(dict.fromkeys(clip.subject for clip in clips), start=1):
        own = [clip for clip in clips if clip.subject == subject]
        times = np.concatenate([clip.times for clip in own])
        joints = np.concatenate([clip.points[:, :17] for clip in own]).astype(np.float64)
        found[number] = SensorSkeleton.of(times, joints, None, "markers", str(path))
    return found


def sensor_arrays(skeleton: "SensorSkeleton", height: float | None, clean: bool) -> "tuple[dict[str, Array], str]":
    """Return the arrays of the output file of a skeleton, and a line on it; `height` is that given by the user, m."""
    import numpy as np

    from pose.body.sensors.recording import SOURCES
    from pose.world.contacts import ANKLE_HEIGHT
    from pose.world.gravity import ANKLES

    depth_camera = skeleton.kind in ("kinect", "azure")
    missing = skeleton.scores == 0
    sigma = np.full(skeleton.scores.shape, SOURCES[skeleton.kind])
    if clean and depth_camera:
        from pose.lifting.sensor.runtime import SensorCorrector

        corrector = SensorCorrector()
        joints, metres = corrector.correct(skeleton.joints, skeleton.scores, skeleton.times, skeleton.kind == "kinect")
        sigma = 1000 * np.where(np.isfinite(metres), metres, SOURCES[skeleton.kind] / 1000)
        kept: Flags = np.ones(len(joints), np.bool_)
        line = "corrected by the sensor network"
    else:
        joints, kept = filled_gaps(skeleton.joints, skeleton.times)
        line = "not corrected" if depth_camera else "as recorded"
    if not kept.any():
        raise PoseError(f"{skeleton.source}: no frame has all joints, not even after filling gaps of {_MAX_GAP_S:g} s")
    joints, sigma, times, filled = joints[kept], sigma[kept], skeleton.times[kept], missing.any(axis=1)[kept]
    root_sigma, sigma[:, 0] = sigma[:, 0].copy(), 1.0  # the pelvis is the origin of the joints
    floor = float(np.percentile(joints[:, ANKLES, 1].min(axis=1), 5)) - ANKLE_HEIGHT
    placed = joints - [0.0, floor, 0.0]
    line += f"; {int(filled.sum())} frames with filled joints" if filled.any() else ""
    arrays = placed_arrays(placed, floor if depth_camera else 0.0, times, sigma, height)
    arrays |= {
        "root_sigma": root_sigma.astype(np.float32),
        "filled": filled,
        "sensors": np.full(17, {"kinect": "depth camera", "azure": "depth camera"}.get(skeleton.kind, skeleton.kind)),
    }
    return arrays, line


def filled_gaps(joints: "F64", times: "F64") -> "tuple[F64, Flags]":
    """Interpolate gaps of joints (T, 17, 3) of up to `_MAX_GAP_S`; also return the frames (T,) that have all joints."""
    import numpy as np

    filled = np.array(joints)
    for joint in range(joints.shape[1]):
        seen = np.isfinite(joints[:, joint]).all(axis=-1)
        known = np.flatnonzero(seen)
        for before, after in pairwise(known.tolist()):
            if after > before + 1 and times[after] - times[before] <= _MAX_GAP_S:
                share = (times[before + 1 : after] - times[before]) / (times[after] - times[before])
                way = joints[after, joint] - joints[before, joint]
                filled[before + 1 : after, joint] = joints[before, joint] + share[:, None] * way
    return filled, np.asarray(np.isfinite(filled).all(axis=(1, 2)))


def placed_arrays(placed: "F64", floor: float, times: "F64", sigma: "F64", height: float | None) -> "dict[str, Array]":
    """Return the arrays of an output file of joints (T, 17, 3) m in the world, seen by a level camera.

    The world has x to the camera's right, y up from the floor (at height `floor` m below the camera), z towards the
    camera.
    """
    import numpy as np

    from pose.results import WorldInfo
    from pose.results.npz import world_arrays
    from pose.world.contacts import find_contacts
    from pose.world.frame import World
    from pose.world.gravity import ANKLES

    frames = len(times)
    info = WorldInfo(World(np.diag([1.0, -1, -1]), floor, "given", 0.0), {} if height is None else {1: (height, 0.0)})
    camera = info.world.to_camera(placed)
    return {
        "joints3d": (camera - camera[:, :1]).astype(np.float32),
        "root": camera[:, 0].astype(np.float32),
        "sigma": sigma.astype(np.float32),
        "timestamps": times - times[0],
        "world": placed.astype(np.float32),
        "contacts": find_contacts(placed[:, ANKLES], times)[1].astype(np.float32),
        "root_sigma": np.full(frames, np.nan, np.float32),
        "moved": np.full(frames, np.nan, np.float32),
        "filled": np.zeros(frames, np.bool_),
        **world_arrays(info.world),
        "world_info": np.array(json.dumps(info.to_dict(), allow_nan=False)),
    }
