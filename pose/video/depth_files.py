"""Files of depth images: Record3D archives, and ROS bags such as those of RealSense cameras.

- Record3D (`.r3d`): a ZIP file with `metadata` (JSON) and `rgbd/N.depth`: float32 in m, compressed with LZFSE, with
  `rgbd/N.conf`, the confidence (0 is low). `poses` in the metadata: quaternion (x, y, z, w) and position of the
  camera for each image, with ARKit's axes: those of the camera are x right, y up, z backward; y of the world is up.
- ROS 1 and 2 bags: `sensor_msgs/Image` on a topic with `depth` in its name, 16 bit or float32, and its CameraInfo. The
  topics of librealsense's recorder are such ones.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from pose.errors import PoseError
from pose.structures.odometry import Odometry
from pose.structures.types import F32, F64
from pose.utils.json_values import items, member, number, strict_json
from pose.utils.shown import in_brief
from pose.video.depth_video import DepthVideo

_MAX_SIDE, _MAX_IMAGES, _MAX_METADATA = 4096, 1_000_000, 200_000_000
_UNIT_M = 0.001  # of 16-bit depth in a bag that states none


def open_record3d(path: Path) -> DepthVideo:
    """Open a Record3D recording, depth registered to colour; PoseError if damaged, or without `pyliblzfse`."""
    try:
        import liblzfse
    except ImportError as error:
        raise PoseError(f'{path}: Record3D files need one more package: pip install "pose-run[record3d]"') from error
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
        head = strict_json(_member(path, "metadata", _MAX_METADATA))
        fields = head if isinstance(head, dict) else {}
        size = int(number(member(head, "w"))), int(number(member(head, "h")))
        matrix = np.array([number(value) for value in items(member(head, "K"))]).reshape(3, 3).T
        width, height = int(number(fields.get("dw", 192))), int(number(fields.get("dh", 256)))
        count = sum(name.startswith("rgbd/") and name.endswith(".depth") for name in names)
        times = fields.get("frameTimestamps")
        seconds = (
            np.arange(count) / number(fields.get("fps", 60))
            if times is None
            else np.array([number(value) for value in items(times)][:count])
        )
        usable = min(size) > 0 and matrix[0, 0] > 0 and matrix[1, 1] > 0 and np.isfinite(matrix).all()
        if not (usable and min(width, height) > 0 and max(width, height) <= _MAX_SIDE and 0 < count <= _MAX_IMAGES):
            raise ValueError("sizes, focal length and number of images must be above 0")
        if len(seconds) != count or not np.isfinite(seconds).all():
            raise ValueError(f"{len(seconds)} times for {count} images")
        odometry = None
        if (given := fields.get("poses")) is not None:
            poses = np.array([[number(value) for value in items(row)] for row in items(given)][:count])
            if poses.shape != (count, 7):
                raise ValueError(f"expected {count} poses of 7 numbers")
            odometry = Odometry.of(seconds, poses[:, 4:], poses[:, :4], opengl=True)
    except (ValueError, TypeError, KeyError, OverflowError, OSError, zipfile.BadZipFile) as error:
        raise PoseError(f"{path}: not a recording of Record3D ({in_brief(error)})") from error

    def read(index: int) -> F32:
        try:
            packed = _member(path, f"rgbd/{index}.depth", 8 * width * height + 1024)
            depth = np.frombuffer(liblzfse.decompress(packed), "<f4").reshape(height, width).copy()
            if (name := f"rgbd/{index}.conf") in names:
                packed = _member(path, name, 8 * width * height + 1024)
                depth[np.frombuffer(liblzfse.decompress(packed), np.uint8).reshape(height, width) == 0] = 0
        except (ValueError, KeyError, OSError, RuntimeError, liblzfse.error, zipfile.BadZipFile) as error:
            raise PoseError(f"{path}: image {index} is damaged ({in_brief(error)})") from error
        depth[~np.isfinite(depth)] = 0
        return depth

    return DepthVideo(seconds, matrix, size, read, odometry=odometry)


def _member(path: Path, name: str, limit: int) -> bytes:
    """Return the content of a member of a ZIP file, up to a size."""
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo(name).file_size > limit:
            raise ValueError(f"{name} is too large")
        return archive.read(name)


def open_bag(path: Path) -> DepthVideo:
    """Open the depth images of a ROS bag; PoseError if it is damaged, or without `rosbags`."""
    try:
        import rosbags.highlevel  # noqa: F401
    except ImportError as error:
        raise PoseError(f'{path}: ROS bags need more packages: pip install "pose-run[ros2]"') from error
    try:
        bag = _Bag(path)
    except PoseError:
        raise
    except Exception as error:  # the library raises exceptions of many classes for damaged files
        raise PoseError(f"{path}: not a readable ROS bag with depth images ({in_brief(error)})") from error

    def read(index: int) -> F32:
        try:
            return bag.image(index)
        except Exception as error:
            raise PoseError(f"{path}: image {index} is damaged ({in_brief(error)})") from error

    return DepthVideo(bag.times, bag.matrix, bag.size, read)


class _Bag:
    """Depth images of a ROS bag, which is opened for each of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.matrix: F64 | None = None
        self.size: tuple[int, int] | None = None
        with self._opened() as reader:
            depth = [one for one in reader.connections if "depth" in one.topic.lower()]
            images = [one for one in depth if one.msgtype == "sensor_msgs/msg/Image"]
            if not images:
                raise ValueError("it contains no sensor_msgs/Image on a topic with depth in its name")
            # One that a driver has aligned to the colour image has precedence.
            self._topic = min((one.topic for one in images), key=lambda topic: ("aligned" not in topic, topic))
            own = [one for one in images if one.topic == self._topic]
            self._stamps = [stamp for _, stamp, _ in reader.messages(connections=own)][:_MAX_IMAGES]
            near = self._topic.rsplit("/image", 1)[0]
            infos = [one for one in depth if one.msgtype.endswith("/CameraInfo") and one.topic.startswith(near)]
            for message in (_first(reader, [one]) for one in infos):
                matrix = np.array(message.K if hasattr(message, "K") else message.k, np.float64).reshape(3, 3)
                self.matrix, self.size = matrix, (int(message.width), int(message.height))
                if not (np.isfinite(matrix).all() and matrix[0, 0] > 0 < matrix[1, 1] and min(self.size) > 0):
                    raise ValueError("focal lengths and sizes of CameraInfo must be above 0")
            units = [one for one in reader.connections if one.topic.endswith("Depth_Units/value")]
            self._unit = float(_first(reader, units).data) if units else _UNIT_M
        if not (np.isfinite(self._unit) and self._unit > 0 and self._stamps):
            raise ValueError("the number of depth images and their unit must be above 0")
        self.times = np.array(self._stamps) / 1e9

    def _opened(self) -> Any:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore

        return AnyReader([self._path], default_typestore=get_typestore(Stores.ROS2_HUMBLE))

    def image(self, index: int) -> F32:
        """Return an image (H, W) in m."""
        stamp = self._stamps[index]
        with self._opened() as reader:
            own = [one for one in reader.connections if one.topic == self._topic]
            message = _first(reader, own, start=stamp, stop=stamp + 1)
        height, width = int(message.height), int(message.width)
        kind, unit = {"32FC1": ("f4", 1.0)}.get(message.encoding, ("u2", self._unit))
        if message.encoding not in ("16UC1", "mono16", "32FC1") or max(height, width) > _MAX_SIDE:
            raise ValueError(f"{width} x {height} px with encoding {message.encoding[:20]!r}")
        rows = np.asarray(message.data).reshape(height, int(message.step))[:, : width * int(kind[1])]
        values = np.ascontiguousarray(rows).view((">" if message.is_bigendian else "<") + kind)
        depth: F32 = values.astype(np.float32) * np.float32(unit)
        depth[~np.isfinite(depth)] = 0
        return depth


def _first(reader: Any, connections: list[Any], **span: int) -> Any:
    """Return the first message on some connections."""
    connection, _, raw = next(iter(reader.messages(connections=connections, **span)))
    return reader.deserialize(raw, connection.msgtype)
