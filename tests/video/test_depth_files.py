"""Files of depth images: Record3D and ROS bags, written here, and damaged ones."""

import json
import zipfile

import numpy as np
import pytest

from pose.errors import PoseError
from pose.video.depth import open_depth
from tests.sensor_files import check_damaged_depths

SHAPE, COUNT = (24, 18), 3
RNG = np.random.default_rng(3)
DEPTHS = RNG.uniform(1, 4, (COUNT, *SHAPE)).astype(np.float32)


def write_record3d(path):
    liblzfse = pytest.importorskip("liblzfse", reason="needs pyliblzfse, which has no wheels")
    head = {
        "w": 180, "h": 240, "K": [150, 0, 0, 0, 151, 0, 89, 119, 1], "fps": 60, "dw": SHAPE[1], "dh": SHAPE[0],
        "frameTimestamps": [5.0, 5.02, 5.05],
        "poses": [[0, 0.6, 0, 0.8, at / 10, 1.4, 0] for at in range(COUNT)],
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata", json.dumps(head))
        for at, depth in enumerate(DEPTHS):
            confidence = np.full(SHAPE, 2, np.uint8)
            confidence[0, :5] = 0
            archive.writestr(f"rgbd/{at}.depth", liblzfse.compress(depth.tobytes()))
            archive.writestr(f"rgbd/{at}.conf", liblzfse.compress(confidence.tobytes()))
    return path


def write_bag(path, topic="/device_0/sensor_0/Depth_0", encoding="mono16", unit=0.00025):
    """Write depth images on the topics of librealsense's recorder."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types

    def header(seconds):
        stamp = types["builtin_interfaces/msg/Time"](int(seconds), round(seconds % 1 * 1e9))
        return types["std_msgs/msg/Header"](seq=0, stamp=stamp, frame_id="0")

    region = types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
    known = {}
    with Writer(path) as writer:

        def write(name, kind, message, seconds):
            if name not in known:
                known[name] = writer.add_connection(name, kind, typestore=store)
            writer.write(known[name], round(1e9 * seconds), store.serialize_ros1(message, kind))

        camera = types["sensor_msgs/msg/CameraInfo"](
            header(0), SHAPE[0], SHAPE[1], "plumb_bob", np.zeros(5), np.array([15.0, 0, 9, 0, 16, 12, 0, 0, 1]),
            np.eye(3).ravel(), np.zeros(12), 0, 0, region,
        )  # fmt: skip
        write(f"{topic}/info/camera_info", "sensor_msgs/msg/CameraInfo", camera, 1)
        units = types["std_msgs/msg/Float32"](unit)
        write("/device_0/sensor_0/option/Depth_Units/value", "std_msgs/msg/Float32", units, 1)
        for at, depth in enumerate(DEPTHS):
            values = depth if encoding == "32FC1" else np.round(depth / unit).astype("<u2")
            rows = values.view(np.uint8).reshape(SHAPE[0], -1)
            padded = np.concatenate([rows, np.zeros((SHAPE[0], 4), np.uint8)], axis=1)
            image = types["sensor_msgs/msg/Image"](
                header(at), SHAPE[0], SHAPE[1], encoding, 0, padded.shape[1], padded.ravel()
            )
            write(f"{topic}/image/data", "sensor_msgs/msg/Image", image, 10 + at / 30)
    return path


def test_record3d_gives_depth_camera_and_times(tmp_path):
    depth = open_depth(write_record3d(tmp_path / "a.r3d"), offset=1.0)
    np.testing.assert_allclose(depth.times, [1.0, 1.02, 1.05])
    np.testing.assert_array_equal(depth.matrix, [[150, 0, 89], [0, 151, 119], [0, 0, 1]])
    assert depth.size == (180, 240)
    # A camera of ARKit looks along -z, and its y is up; here it is turned about the vertical.
    np.testing.assert_allclose(depth.odometry.rotations[1] @ [0, 0, 1], [-0.96, 0, -0.28], atol=1e-9)
    np.testing.assert_allclose(depth.odometry.rotations[1] @ [0, 1, 0], [0, -1, 0], atol=1e-9)
    np.testing.assert_allclose(depth.odometry.positions[2], [0.2, 1.4, 0])
    np.testing.assert_allclose(depth.odometry.times, depth.times)
    image = depth.read(2)
    np.testing.assert_array_equal(image[1:], DEPTHS[2][1:])
    assert (image[0, :5] == 0).all()


@pytest.mark.parametrize("encoding", ["mono16", "16UC1", "32FC1"])
def test_bag_gives_depth_camera_and_times(encoding, tmp_path):
    depth = open_depth(write_bag(tmp_path / "a.bag", encoding=encoding))
    np.testing.assert_allclose(depth.times, np.arange(COUNT) / 30, atol=1e-6)
    np.testing.assert_array_equal(depth.matrix, [[15, 0, 9], [0, 16, 12], [0, 0, 1]])
    assert depth.size == (SHAPE[1], SHAPE[0])
    np.testing.assert_allclose(depth.read(1), DEPTHS[1], atol=0.00013)


def test_camera_file_beside_a_bag_says_where_the_depth_camera_is(tmp_path):
    pose = np.eye(4)
    pose[:3, 3] = [0.015, 0, 0]
    inner = {"width": 64, "height": 48, "intrinsic_matrix": [50, 0, 0, 0, 51, 0, 31, 24, 1]}
    (tmp_path / "a.json").write_text(json.dumps({"intrinsic": inner, "extrinsic": pose.T.ravel().tolist()}))
    np.testing.assert_array_equal(open_depth(write_bag(tmp_path / "a.bag")).extrinsics, pose)
    pose[0, 0] = 2
    (tmp_path / "a.json").write_text(json.dumps({"intrinsic": inner, "extrinsic": pose.T.ravel().tolist()}))
    with pytest.raises(PoseError, match="rotation and a translation"):
        open_depth(tmp_path / "a.bag")


def test_bag_without_depth_is_refused(tmp_path):
    with pytest.raises(PoseError, match="on a topic with depth in its name"):
        open_depth(write_bag(tmp_path / "a.bag", topic="/device_0/sensor_1/Color_0"))


@pytest.mark.parametrize("write", [write_record3d, write_bag])
def test_sixty_damaged_files_are_read_or_refused_in_one_line(write, tmp_path):
    content = write(tmp_path / "whole").read_bytes()
    target = tmp_path / ("a.r3d" if write is write_record3d else "a.bag")
    check_damaged_depths(content, target)
