"""Frames of known bodies for the tests of links, and decoders that are not ours or follow the specifications."""

import socket
import struct
import time

import numpy as np
from pose_fakes import STANDING, seen_result

from pose.body.skeleton import ORDER, Body, SkeletonMotion, fit_body, joint_positions
from pose.live import LiveResult
from pose.live.links.frames import FrameBuilder, LinkFrame
from pose.structures import rotations
from pose.structures.skeletons import H36M17


def turned_body(rng: np.random.Generator, angle: float = 0.4) -> np.ndarray:
    """Joints (17, 3) m in camera axes of a rigid body whose joints all turn by up to `angle` rad about random axes."""
    body = fit_body([(STANDING * (1, -1, -1)).astype(np.float64)[None]])
    axes = rotations.unit(rng.normal(size=(17, 3)))
    local = rotations.about(axes, rng.uniform(-angle, angle, 17))
    joints = joint_positions(Body(body.offsets, body.tips), SkeletonMotion(np.zeros((1, 3)), local[None]))[0]
    return (joints * (1, -1, -1)).astype(np.float32)


def live_result(joints: np.ndarray, roots=((0.3, 0.1, 4.0),), index: int = 0, at: float = 0.0, **more) -> LiveResult:
    now = time.monotonic()
    result = seen_result(np.array(roots), joints, index, at)
    return LiveResult(np.zeros((480, 640, 3), np.uint8), result, H36M17, now - 0.02, now, **more)


def link_frame(rng: np.random.Generator, people: int = 1) -> LinkFrame:
    return FrameBuilder().build(live_result(turned_body(rng), [(k, 0.1, 4.0) for k in range(people)]))


def in_names_order(joints: np.ndarray) -> np.ndarray:
    return joints[ORDER]


def receiver(count: int = 1) -> list[socket.socket]:
    """Sockets on `count` neighbouring free ports of loopback."""
    for _ in range(50):
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        sockets[0].bind(("127.0.0.1", 0))
        port = sockets[0].getsockname()[1]
        try:
            for shift in range(1, count):
                sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                sockets[-1].bind(("127.0.0.1", port + shift))
        except OSError:
            for one in sockets:
                one.close()
            continue
        for one in sockets:
            one.settimeout(30)
        return sockets
    raise AssertionError("no neighbouring free ports")


def osc_messages(packet: bytes) -> list[tuple[str, list]]:
    """Decode a packet by the specification of Open Sound Control 1.0."""
    if packet.startswith(b"#bundle\0"):
        found, at = [], 16
        while at < len(packet):
            (size,) = struct.unpack_from(">i", packet, at)
            found += osc_messages(packet[at + 4 : at + 4 + size])
            at += 4 + size
        return found
    address, at = _text(packet, 0)
    kinds, at = _text(packet, at)
    values: list = []
    for kind in kinds[1:]:
        if kind == "s":
            value, at = _text(packet, at)
        else:
            (value,) = struct.unpack_from({"i": ">i", "f": ">f"}[kind], packet, at)
            at += 4
        values.append(value)
    assert at == len(packet)
    return [(address, values)]


def _text(packet: bytes, at: int) -> tuple[str, int]:
    end = packet.index(b"\0", at)
    return packet[at:end].decode("ascii"), at + (end - at) // 4 * 4 + 4


def quaternion_matrix(x, y, z, w):
    """The usual formula; it holds in left-handed axes too."""
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip
