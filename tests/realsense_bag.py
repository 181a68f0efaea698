"""Bags as librealsense's recorder writes them, which Open3D opens: the parts that describe the device, and images."""

import numpy as np

_DEVICE = {
    "Name": "Intel RealSense D435", "Serial Number": "0123", "Firmware Version": "5.12.7.100", "Product Id": "0B07",
    "Product Line": "D400", "Physical Port": "x", "Debug Op Code": "15", "Advanced Mode": "YES", "Camera Locked": "YES",
    "Usb Type Descriptor": "3.2",
}  # fmt: skip
_UNIT_M = 0.001


def write_realsense_bag(path, colours, depths, matrix, fps=30):
    """Write images (N, H, W, 3) uint8 and (N, H, W) m of cameras with one viewpoint."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store, known = get_typestore(Stores.ROS1_NOETIC), {}
    definition = "uint32 fps\nstring encoding\nbool is_recommended\n"
    store.register(get_types_from_msg(definition, "realsense_msgs/msg/StreamInfo"))
    height, width = depths[0].shape
    with Writer(path) as writer:

        def write(topic, kind, *values, seconds=1e-9):
            package, name = kind.split("/")
            kind = f"{package}/msg/{name}"
            if topic not in known:
                known[topic] = writer.add_connection(topic, kind, typestore=store)
            message = store.types[kind](*values)
            writer.write(known[topic], round(1e9 * seconds), store.serialize_ros1(message, kind))

        def make(kind, *values, **named):
            return store.types[kind](*values, **named)

        def header(seconds, number=0):
            stamp = make("builtin_interfaces/msg/Time", int(seconds), round(seconds % 1 * 1e9))
            return make("std_msgs/msg/Header", seq=number, stamp=stamp, frame_id="0")

        write("/file_version", "std_msgs/UInt32", 4)
        for name, value in _DEVICE.items():
            write("/device_0/info", "diagnostic_msgs/KeyValue", name, value)
        region = make("sensor_msgs/msg/RegionOfInterest", 0, 0, 0, 0, False)
        origin = make("geometry_msgs/msg/Vector3", 0, 0, 0), make("geometry_msgs/msg/Quaternion", 0, 0, 0, 1)
        for number, (sensor, stream, encoding) in enumerate(
            (("Stereo Module", "Depth_0", "mono16"), ("RGB Camera", "Color_0", "rgb8"))
        ):
            topic = f"/device_0/sensor_{number}"
            write(f"{topic}/info", "diagnostic_msgs/KeyValue", "Name", sensor)
            write(f"{topic}/{stream}/info", "realsense_msgs/StreamInfo", fps, encoding, True)
            write(
                f"{topic}/{stream}/info/camera_info", "sensor_msgs/CameraInfo", header(0), height, width,
                "Brown Conrady", np.zeros(5), np.asarray(matrix, float).ravel(), np.eye(3).ravel(), np.zeros(12), 0, 0,
                region,
            )  # fmt: skip
            write(f"{topic}/{stream}/tf/0", "geometry_msgs/Transform", *origin)
        write("/device_0/sensor_0/option/Depth Units/value", "std_msgs/Float32", _UNIT_M)
        for at, (colour, depth) in enumerate(zip(colours, depths, strict=True)):
            seconds = 1 + at / fps
            stored = np.round(depth / _UNIT_M).astype("<u2")
            for topic, encoding, image in (
                ("sensor_0/Depth_0", "mono16", stored), ("sensor_1/Color_0", "rgb8", np.asarray(colour))
            ):  # fmt: skip
                rows = np.ascontiguousarray(image).view(np.uint8).reshape(height, -1)
                write(
                    f"/device_0/{topic}/image/data", "sensor_msgs/Image", header(seconds, at), height, width, encoding,
                    0, rows.shape[1], rows.ravel(), seconds=seconds,
                )  # fmt: skip
                for name, value in (("Frame number", str(at)), ("timestamp_domain", "System Time")):
                    write(f"/device_0/{topic}/image/metadata", "diagnostic_msgs/KeyValue", name, value, seconds=seconds)
    return path
