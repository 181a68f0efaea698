"""LSL, MQTT, MCAP, Foxglove and the virtual camera, decoded by libraries that are not ours."""

import json
import re
import socket
import struct
import subprocess
import threading
import time

import numpy as np
import pytest
from link_fakes import in_names_order, link_frame, live_result, quaternion_matrix, turned_body
from live_fakes import wait_until
from reader_environments import clean_environment, environment

from pose.body.skeleton import NAMES, PARENTS
from pose.errors import PoseError, UsageError
from pose.live.links.base import Address
from pose.live.links.frames import FrameBuilder
from pose.live.links.ros2 import FRAMES, SKELETON2D, RosEncoder
from pose.live.links.table import parse_links
from pose.structures.skeletons import H36M17


def test_lsl_streams_carry_joints_at_capture_times(rng, tmp_path):
    import pylsl
    import pyxdf

    from pose.live.links.lsl import LslLink

    link, builder = LslLink(Address("--send lsl")), FrameBuilder()
    body = turned_body(rng)
    try:
        frame = builder.build(live_result(body))
        link.send(frame)  # opens the outlet
        # By the identifier of the run: another run in the local network may have streams of the same name.
        (info,) = pylsl.resolve_byprop("source_id", f"{link._run}-1", timeout=20)
        assert info.name() == "pose_person_1"
        inlet = pylsl.StreamInlet(info)
        inlet.open_stream(timeout=20)
        full = inlet.info(timeout=20)
        wait_until(lambda: link._outlets[1].have_consumers())
        frame = builder.build(live_result(body, index=1, at=0.1))
        before = pylsl.local_clock() - time.monotonic()
        link.send(frame)
        sample, stamp = inlet.pull_sample(timeout=20)
    finally:
        link.close()
    assert (full.type(), full.channel_count()) == ("MoCap", 68)
    channels, channel = [], full.desc().child("channels").child("channel")
    while not channel.empty():
        channels.append({key: channel.child_value(key) for key in ("label", "marker", "type", "unit")})
        channel = channel.next_sibling()
    assert channels[:4] == [
        {"label": "pelvis_x", "marker": "pelvis", "type": "PositionX", "unit": "meters"},
        {"label": "pelvis_y", "marker": "pelvis", "type": "PositionY", "unit": "meters"},
        {"label": "pelvis_z", "marker": "pelvis", "type": "PositionZ", "unit": "meters"},
        {"label": "pelvis_score", "marker": "pelvis", "type": "Confidence", "unit": "normalized"},
    ]
    np.testing.assert_allclose(np.reshape(sample, (17, 4))[:, :3], frame.people[0].joints, atol=1e-5)
    assert stamp == pytest.approx(frame.captured + before, abs=1e-3)
    path = tmp_path / "run.xdf"
    path.write_bytes(xdf_of(full.as_xml(), np.float32(sample), stamp))
    ((stream,), _) = pyxdf.load_xdf(str(path), synchronize_clocks=False, dejitter_timestamps=False)
    assert stream["info"]["type"] == ["MoCap"]
    labels = [one["label"][0] for one in stream["info"]["desc"][0]["channels"][0]["channel"]]
    assert labels[4:8] == ["right_hip_x", "right_hip_y", "right_hip_z", "right_hip_score"]
    np.testing.assert_array_equal(stream["time_series"][0], np.float32(sample))
    assert stream["time_stamps"][0] == pytest.approx(frame.captured + before, abs=1e-3)


def xdf_of(header: str, sample: np.ndarray, stamp: float) -> bytes:
    """A file of one stream with one sample, by the specification of XDF 1.0, as a recorder writes it."""

    def chunk(tag: int, content: bytes) -> bytes:
        return b"\x04" + struct.pack("<IH", len(content) + 2, tag) + content

    number = struct.pack("<I", 1)
    samples = number + b"\x01\x01" + b"\x08" + struct.pack("<d", stamp) + sample.tobytes()
    return (
        b"XDF:" + chunk(1, b"<?xml version='1.0'?><info><version>1.0</version></info>")
        + chunk(2, number + header.encode()) + chunk(3, samples)
        + chunk(6, number + b"<?xml version='1.0'?><info><sample_count>1</sample_count></info>")
    )  # fmt: skip


class Broker(threading.Thread):
    """A broker for one client, by the specification of MQTT 3.1.1: accepts it and keeps what it publishes."""

    def __init__(self, port: int = 0, answer: int = 0) -> None:
        super().__init__(daemon=True)
        self.answer, self.login = answer, []
        self.server = socket.create_server(("127.0.0.1", port))
        self.port = self.server.getsockname()[1]
        self.published: list[tuple[str, bytes, bool]] = []
        self.client: socket.socket | None = None
        self.start()

    def run(self) -> None:
        try:
            self.client, _ = self.server.accept()
            while True:
                kind, body = self._packet()
                if kind >> 4 == 1:
                    self._connect(body)
                    self.client.sendall(b"\x20\x02\x00" + bytes([self.answer]))
                elif kind >> 4 == 3:
                    (size,) = struct.unpack_from(">H", body)
                    assert kind & 0b110 == 0, "at most once: no identifier"
                    self.published.append((body[2 : 2 + size].decode(), body[2 + size :], bool(kind & 1)))
                elif kind >> 4 == 12:
                    self.client.sendall(b"\xd0\x00")
        except (OSError, IndexError):
            pass

    def _connect(self, body: bytes) -> None:
        """Keep user name and password, the last fields of the packet."""
        assert body[:7] == b"\x00\x04MQTT\x04"
        count, fields, at = body[7] >> 7 & 1, [], 10
        count += body[7] >> 6 & 1
        while at < len(body):
            (size,) = struct.unpack_from(">H", body, at)
            fields.append(body[at + 2 : at + 2 + size].decode())
            at += 2 + size
        self.login = fields[len(fields) - count :]

    def _packet(self) -> tuple[int, bytes]:
        kind, size, shift = self._read(1)[0], 0, 0
        while True:
            byte = self._read(1)[0]
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return kind, self._read(size)

    def _read(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self.client.recv(count - len(found))
            if not part:
                raise OSError("closed")
            found += part
        return found

    def stop(self) -> None:
        self.server.close()
        if self.client is not None:
            self.client.shutdown(socket.SHUT_RDWR)
            self.client.close()


def test_mqtt_publishes_people_and_discovery_and_reconnects(rng):
    from pose.live.links.mqtt import MqttLink

    broker = Broker()
    link = MqttLink(Address("--send mqtt", "127.0.0.1", broker.port))
    frame = link_frame(rng)
    try:
        wait_until(lambda: link._client.is_connected() and not link.trouble)
        link.send(frame)
        wait_until(lambda: any(topic == "pose/person/1" for topic, _, _ in broker.published))
        broker.stop()
        wait_until(lambda: link.trouble != "")
        assert link.trouble.endswith(f"at 127.0.0.1:{broker.port}; trying again")
        link.send(frame)  # neither waits nor fails
        again = Broker(broker.port)
        wait_until(lambda: link.trouble == "" and link._client.is_connected())
        wait_until(lambda: any(topic == "pose/status" for topic, _, _ in again.published))
    finally:
        link.close()
        again.stop()
    topics = {topic: (json.loads(body) if body[:1] == b"{" else body.decode(), kept)
              for topic, body, kept in broker.published}  # fmt: skip
    assert topics["pose/status"] == ("online", True)
    state, kept = topics["pose/state"]
    assert kept
    assert state == {
        "presence": "ON", "possible_fall": "OFF", "count": 1, "posture": "standing", "repetitions": 0
    }  # fmt: skip
    person = topics["pose/person/1"][0]
    np.testing.assert_allclose([person["joints"][name][:3] for name in H36M17.names], frame.people[0].joints, atol=6e-5)
    configs = {topic: config for topic, (config, _) in topics.items() if topic.startswith("homeassistant/")}
    assert {topic.split("/")[1] + "/" + topic.split("/")[3] for topic in configs} == {
        "binary_sensor/presence", "binary_sensor/possible_fall", "sensor/count", "sensor/posture",
        "sensor/repetitions",
    }  # fmt: skip
    # What Home Assistant's documentation of MQTT discovery requires, and allows for these components.
    for topic, config in configs.items():
        assert config["state_topic"] == "pose/state"
        assert config["value_template"] == f"{{{{ value_json.{topic.split('/')[3]} }}}}"
        assert config["device"]["identifiers"]
        assert config["origin"]["name"]
        assert set(config) <= {
            "name", "unique_id", "state_topic", "value_template", "availability_topic", "device", "origin",
            "device_class", "state_class", "icon",
        }  # fmt: skip
    assert len({config["unique_id"] for config in configs.values()}) == 5


def test_mqtt_logs_in_and_names_the_variables_if_the_broker_refuses(monkeypatch):
    from pose.live.links.mqtt import MqttLink, discovery

    monkeypatch.setenv("POSE_MQTT_USER", "pose")
    monkeypatch.setenv("POSE_MQTT_PASSWORD", "secret")
    monkeypatch.setattr("socket.gethostname", lambda: "Ann's Mac.local")
    assert all(re.fullmatch(r"homeassistant/\w+/[\w-]+/\w+/config", topic, re.ASCII) for topic in discovery())
    broker = Broker(answer=5)  # not authorised
    link = MqttLink(Address("--send mqtt", "127.0.0.1", broker.port))
    try:
        wait_until(lambda: link.trouble)
        assert link.trouble.startswith("the broker refuses the connection: not authorized (POSE_MQTT_USER and ")
    finally:
        link.close()
        broker.stop()
    assert broker.login == ["pose", "secret"]
    with pytest.raises(UsageError, match="POSE_MQTT_USER and POSE_MQTT_PASSWORD for a login"):
        parse_links("mqtt=pose:secret@broker")


HOME_ASSISTANT = """
import asyncio, json, sys
from homeassistant.components.mqtt import binary_sensor, sensor
from homeassistant.core import HomeAssistant
from homeassistant.helpers import frame
schemas = {"binary_sensor": binary_sensor.DISCOVERY_SCHEMA, "sensor": sensor.DISCOVERY_SCHEMA}
async def check():
    frame.async_setup(HomeAssistant(sys.argv[1]))  # which parses templates
    for topic, config in json.load(sys.stdin).items():
        kept = schemas[topic.split("/")[1]](config)
        assert set(config) <= set(kept), set(config) - set(kept)  # unknown keys are removed without an error
        print(kept["unique_id"])
asyncio.run(check())
"""


@pytest.mark.slow
def test_home_assistant_accepts_the_discovery(tmp_path):
    from pose.live.links.mqtt import discovery

    python = environment("homeassistant") / "bin" / "python"
    done = subprocess.run(
        [python, "-c", HOME_ASSISTANT, tmp_path], input=json.dumps(discovery()), capture_output=True, text=True,
        env=clean_environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(set(done.stdout.split())) == len(discovery()) == 5


def tree_joints(transforms, number):
    """Joints by frame in the root frame, from the transforms of one message."""
    parents = {one.child_frame_id: one for one in transforms}

    def matrix(child):
        one = parents.get(child)
        if one is None:
            return np.eye(4)
        turn, place = one.transform.rotation, one.transform.translation
        own = np.eye(4)
        own[:3, :3], own[:3, 3] = quaternion_matrix(turn.x, turn.y, turn.z, turn.w), [place.x, place.y, place.z]
        return matrix(one.header.frame_id) @ own

    return np.array([matrix(f"{frame}_{number}")[:3, 3] for frame in FRAMES])


@pytest.fixture
def bag(rng, tmp_path):
    from pose.live.links.mcap import McapLink

    path, frame = tmp_path / "run.mcap", link_frame(rng, people=2)
    link = McapLink(Address("--send mcap", path=str(path)))
    link.send(frame)
    link.close()
    return path, frame


def test_mcap_is_read_by_the_mcap_library(bag):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    path, frame = bag
    with path.open("rb") as file:
        messages = {}
        for _, channel, message, decoded in make_reader(
            file, decoder_factories=[DecoderFactory()]
        ).iter_decoded_messages():
            messages[channel.topic] = decoded
            assert message.log_time / 1e9 == pytest.approx(time.time() - time.monotonic() + frame.captured, abs=1)
    assert set(messages) == {
        "/tf", "/humans/bodies/tracked", "/humans/bodies/1/skeleton2d", "/humans/bodies/2/skeleton2d", "/humans/markers"
    }  # fmt: skip
    assert messages["/humans/bodies/tracked"].ids == ["1", "2"]
    for person in frame.people:
        ours = in_names_order(person.joints)[:, [2, 0, 1]]
        np.testing.assert_allclose(tree_joints(messages["/tf"].transforms, person.id), ours, atol=1e-4)
    spheres = next(one for one in messages["/humans/markers"].markers if one.ns == "body_2" and one.type == 7)
    np.testing.assert_allclose(
        [[p.x, p.y, p.z] for p in spheres.points], frame.people[1].joints[:, [2, 0, 1]], atol=1e-6
    )
    skeleton = messages["/humans/bodies/1/skeleton2d"].skeleton
    wrist = skeleton[SKELETON2D.index("right_wrist")]
    keypoint = frame.live.result.people.keypoints[0, H36M17.index("right_wrist")]
    assert (wrist.x * 640, wrist.y * 480, wrist.c) == pytest.approx((*keypoint, 1), abs=1e-3)


def test_ros_messages_are_read_by_rosbags(rng):
    from rosbags.typesys import Stores, get_typestore

    frame = link_frame(rng)
    store = get_typestore(Stores.ROS2_HUMBLE)
    for message in RosEncoder().messages(frame, 1_700_000_000_250_000_000):
        if message.kind in store.types:
            decoded = store.deserialize_cdr(message.data, message.kind)
            if message.topic == "/tf":
                stamp = decoded.transforms[0].header.stamp
                assert (stamp.sec, stamp.nanosec) == (1_700_000_000, 250_000_000)
                assert decoded.transforms[0].child_frame_id == "pose_camera_optical"


def test_mcap_keeps_an_existing_file(tmp_path):
    from pose.live.links.mcap import McapLink

    path = tmp_path / "run.mcap"
    path.write_bytes(b"kept")
    with pytest.raises(UsageError, match="exists; name another file"):
        McapLink(Address("--send mcap", path=str(path)))
    with pytest.raises(UsageError, match=r"cannot write .*: no such file or directory"):
        McapLink(Address("--send mcap", path=str(tmp_path / "none" / "run.mcap")))
    assert path.read_bytes() == b"kept"


def test_foxglove_serves_ros_messages_to_websocket_clients(rng):
    from mcap_ros2._dynamic import generate_dynamic
    from websockets.sync.client import connect

    from pose.live.links.foxglove import FoxgloveLink

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    frame = link_frame(rng)
    link = FoxgloveLink(Address("--send foxglove", "127.0.0.1", port))
    try:
        with pytest.raises(PoseError, match=f"--send foxglove: cannot listen on 127.0.0.1:{port}: failed"):
            FoxgloveLink(Address("--send foxglove", "127.0.0.1", port))
        link.send(frame)
        with connect(f"ws://127.0.0.1:{port}", subprotocols=["foxglove.sdk.v1"]) as client:
            channels = {}
            while "/tf" not in channels:
                text = client.recv(timeout=20)
                if isinstance(text, str) and (message := json.loads(text))["op"] == "advertise":
                    channels |= {one["topic"]: one for one in message["channels"]}
            tf = channels["/tf"]
            assert (tf["encoding"], tf["schemaName"], tf["schemaEncoding"]) == (
                "cdr",
                "tf2_msgs/msg/TFMessage",
                "ros2msg",
            )
            client.send(json.dumps({"op": "subscribe", "subscriptions": [{"id": 7, "channelId": tf["id"]}]}))
            data = None
            for _ in range(100):  # until the server has the subscription
                link.send(frame)
                try:
                    data = client.recv(timeout=0.2)
                except TimeoutError:
                    continue
                if isinstance(data, bytes) and data[0] == 1:
                    break
            assert isinstance(data, bytes)
            number, _ = struct.unpack_from("<IQ", data, 1)
            assert number == 7
            decoders = generate_dynamic("tf2_msgs/msg/TFMessage", tf["schema"])
            decoded = decoders["tf2_msgs/msg/TFMessage"](data[13:])
    finally:
        link.close()
    ours = in_names_order(frame.people[0].joints)[:, [2, 0, 1]]
    np.testing.assert_allclose(tree_joints(decoded.transforms, 1), ours, atol=1e-4)


def test_virtual_camera_shows_the_overlay(rng, monkeypatch):
    import pyvirtualcam

    from pose.live.links.virtual_camera import VirtualCameraLink

    shown, state = [], {"away": False}

    class Backend(pyvirtualcam.Backend):
        def __init__(self, *, width, height, **_):
            if state["away"]:
                raise RuntimeError("no device")
            self.size = width, height

        def close(self):
            pass

        def send(self, image):
            if state["away"]:
                raise RuntimeError("device gone")
            shown.append(np.array(image))

        def device(self):
            return "test"

        def native_fourcc(self):
            return None

    monkeypatch.setattr("pyvirtualcam.camera.BACKENDS", {"test": Backend})
    frame = link_frame(rng)
    link = VirtualCameraLink(Address("--send camera"))
    link.send(frame)
    assert len(shown[0]) == 480 * 640 * 3
    assert (shown[0] > 0).any()  # a skeleton on a black image
    state["away"] = True
    with pytest.raises(OSError, match="the virtual camera is away: device gone"):
        link.send(frame)
    with pytest.raises(PoseError, match="--send camera: no virtual camera: 'test' backend: no device"):
        VirtualCameraLink(Address("--send camera"))
    state["away"] = False
    link._failed_at = -10.0
    link.send(frame)
    assert len(shown) == 2
    link.close()


def test_every_joint_has_a_frame_below_its_parent():
    assert len(FRAMES) == len(NAMES) == len(PARENTS) == 17
