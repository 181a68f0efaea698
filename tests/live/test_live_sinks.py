"""Messages: what they say, and that they arrive by UDP, by WebSocket and in Rerun."""

import gc
import json
import socket
import time
from contextlib import ExitStack
from urllib.parse import quote

import jsonschema
import numpy as np
import pytest
from link_fakes import quaternion_matrix
from live_fakes import FakePipeline, picture, push, settled, wait_until
from pose_fakes import random_result
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from pose.errors import PoseError, UsageError
from pose.live import LiveLoop, LiveResult, PushedFrames, listener, subscriber
from pose.live.messages import SCHEMA_PATH, messages
from pose.live.rigid import RigidBodies
from pose.live.sinks import UdpSink, read_address
from pose.live.websocket import MAX_CLIENTS, WebSocketSink
from pose.structures.skeletons import BLAZEPOSE33


@pytest.fixture
def live(rng) -> LiveResult:
    now = time.monotonic()
    return LiveResult(picture(0, (640, 480)), random_result(rng, 25, 2), BLAZEPOSE33, now - 0.030, now)


def test_each_pose_is_one_message(live):
    parsed = [json.loads(text) for text in messages(live)]
    assert [message["id"] for message in parsed] == [7, 8]
    people, poses = live.result.people, live.result.poses
    for row, message in enumerate(parsed):
        assert (message["format"], message["version"], message["type"]) == ("pose-live", 2, "pose")
        assert message["final"] is True
        assert (message["frame"], message["time"], message["size"]) == (25, 1.0, [640, 480])
        assert message["ids"] == [7, 8]
        assert message["latency_ms"] == pytest.approx(30, abs=0.1)
        assert message["clock"] == pytest.approx(time.time() - 0.03, abs=60)  # of the wall, and not of `monotonic`
        assert (message["keypoints_skeleton"], message["joints3d_skeleton"]) == ("blazepose33", "h36m17")
        np.testing.assert_allclose(np.array(message["keypoints"])[:, :2], people.keypoints[row], atol=0.006)
        np.testing.assert_allclose(np.array(message["keypoints"])[:, 2], people.scores[row], atol=0.0006)
        np.testing.assert_allclose(message["joints3d"], poses.joints[row], atol=0.0001)
        np.testing.assert_allclose(message["root"], poses.root[row], atol=0.0001)
        np.testing.assert_allclose(message["sigma"], poses.sigma[row], atol=0.06)


def test_messages_carry_bone_rotations_that_give_the_joints(live):
    """Forward kinematics of a message, in plain Python terms: offsets turned by the parents' rotations."""
    bodies = RigidBodies()
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    for text in messages(live, bodies):
        message = json.loads(text)
        jsonschema.validate(message, schema | {"additionalProperties": False})
        names, turns, places = message["bones"], [], []
        parents = {"left_hip": "pelvis", "right_hip": "pelvis", "spine": "pelvis", "thorax": "spine", "neck": "thorax",
                   "head": "neck", "left_shoulder": "thorax", "right_shoulder": "thorax"}  # fmt: skip
        for joint, name in enumerate(names):
            own = quaternion_matrix(*np.roll(message["bone_rotations"][joint], -1))
            if name == "pelvis":
                places, turns = [np.array(message["bone_root"])], [own]
                continue
            parent = names.index(parents.get(name, names[joint - 1]))
            places.append(places[parent] + turns[parent] @ message["bone_offsets"][joint])
            turns.append(turns[parent] @ own)
        rigid = RigidBodies().of(live)
        row = message["ids"].index(message["id"])
        np.testing.assert_allclose(places, rigid.points[row], atol=3e-4)  # offsets are rounded to 0.1 mm


def test_empty_messages_fit_the_schema(live, rng):
    empty = LiveResult(live.image, random_result(rng, 3, 0), BLAZEPOSE33, live.captured, live.done)
    (text,) = messages(empty, RigidBodies())
    jsonschema.validate(json.loads(text), json.loads(SCHEMA_PATH.read_text(encoding="utf-8")))


def test_empty_frame_sends_an_empty_message(live, rng):
    empty = LiveResult(live.image, random_result(rng, 3, 0), BLAZEPOSE33, live.captured, live.done)
    (message,) = map(json.loads, messages(empty))
    assert (message["type"], message["ids"], message["frame"]) == ("nobody", [], 3)


@pytest.mark.parametrize(
    ("text", "default", "expected"),
    [
        ("robot:9000", None, ("robot", 9000)),
        ("[::1]:9000", None, ("::1", 9000)),
        ("9000", "127.0.0.1", ("127.0.0.1", 9000)),
        ("0.0.0.0:9000", "127.0.0.1", ("0.0.0.0", 9000)),
    ],
)
def test_valid_addresses_are_parsed(text, default, expected):
    assert read_address("udp", text, default) == expected


@pytest.mark.parametrize("text", ["9000", "robot", "robot:", "robot:70000", ":9000", "robot:-1"])
def test_bad_addresses_are_refused_with_the_option_and_the_form(text):
    with pytest.raises(UsageError, match=f"--udp: invalid address '{text}': expected HOST:PORT"):
        read_address("udp", text)


@pytest.fixture
def source() -> PushedFrames:
    return PushedFrames("test", capacity=100)


def test_udp_messages_arrive(source):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(60)
        loop = LiveLoop(FakePipeline(), source, backlog=100)
        sink = UdpSink(loop, *receiver.getsockname())
        with loop:
            for number in range(5):
                source.push(picture(number))
                message = json.loads(receiver.recv(65536))
                assert (message["frame"], message["id"], message["keypoints"][0][0]) == (number, 1, number)
        sink.close()
    assert sink.problem is None


def test_udp_to_an_unknown_host_is_refused(source):
    with pytest.raises(PoseError, match=r"--udp: cannot find no\.such\.host\.invalid"):
        UdpSink(LiveLoop(FakePipeline(), source), "no.such.host.invalid", 9)


@pytest.fixture
def served(source):
    """A running loop, its WebSocket sink, and the address."""
    loop = LiveLoop(FakePipeline(), source, backlog=100)
    sink = WebSocketSink(loop, "127.0.0.1", 0)
    with loop:
        yield loop, sink, f"ws://127.0.0.1:{sink.port}"
    sink.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "*", "192.0.2.1", "somewhere"])
def test_websocket_that_other_computers_reach_needs_a_token(source, host):
    for token, why in ((None, "--token or POSE_WEB_TOKEN is required"), ("short", "minimum: 16")):
        with pytest.raises(UsageError, match=why):
            WebSocketSink(LiveLoop(FakePipeline(), source), host, 0, token)


def test_websocket_with_a_token_serves_only_who_knows_it(source):
    token, loop = "a secret of 16 or more", LiveLoop(FakePipeline(), source, backlog=100)
    sink = WebSocketSink(loop, "0.0.0.0", 0, token)
    address = f"ws://127.0.0.1:{sink.port}"
    with loop:
        for path, headers in (("", {}), ("?token=wrong", {}), ("", {"Authorization": "Bearer wrong"})):
            with pytest.raises(InvalidStatus, match="401"):
                connect(address + "/" + path, additional_headers=headers)
        with (
            connect(f"{address}/?token={quote(token)}") as one,
            connect(address, additional_headers={"Authorization": f"Bearer {token}"}) as two,
        ):
            wait_until(lambda: len(sink._clients) == 2)
            source.push(picture(0))
            assert [json.loads(client.recv(timeout=60))["frame"] for client in (one, two)] == [0, 0]
    sink.close()


def test_websocket_clients_get_every_pose(served, source):
    loop, sink, address = served
    with connect(address) as one, connect(address) as two:
        wait_until(lambda: len(sink._clients) == 2)
        for number in range(5):
            source.push(picture(number))
            for client in (one, two):
                assert json.loads(client.recv(timeout=60))["frame"] == number
    wait_until(lambda: not sink._clients)
    push(source, 3)
    settled(loop, 8)
    assert sink.problem is None


def test_websocket_client_that_never_reads_does_not_delay_others(served, source):
    loop, sink, address = served
    with connect(address, max_queue=1, close_timeout=0.2), connect(address) as reader:
        wait_until(lambda: len(sink._clients) == 2)
        for number in range(60):
            source.push(picture(number))
            assert json.loads(reader.recv(timeout=60))["frame"] == number
    assert loop.status().dropped == 0


def test_websocket_ends_with_the_loop(served):
    loop, sink, address = served
    with connect(address) as client:
        wait_until(lambda: len(sink._clients) == 1)
        loop.stop()
        with pytest.raises(ConnectionClosed):
            client.recv(timeout=60)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
def test_websocket_refuses_pages_of_other_sites(served, origin):
    with pytest.raises(InvalidStatus, match="403"):
        connect(served[2], origin=origin)


def test_websocket_limits_its_clients(served):
    _, sink, address = served
    with ExitStack() as clients:
        for _ in range(MAX_CLIENTS):
            clients.enter_context(connect(address))
        wait_until(lambda: len(sink._clients) == MAX_CLIENTS)
        with connect(address) as refused, pytest.raises(ConnectionClosed, match="too many clients"):
            refused.recv(timeout=60)


def test_occupied_port_is_reported(served, source):
    with pytest.raises(PoseError, match=r"--ws: cannot bind 127\.0\.0\.1:\d+: address already in use"):
        WebSocketSink(LiveLoop(FakePipeline(), source), "127.0.0.1", served[1].port)


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        ("127.0.0.1", 0, "--udp: port 0 is not valid"),
        ("255.255.255.255", 9000, r"--udp: 255\.255\.255\.255 is a broadcast address"),
        ("127.255.255.255", 9000, r"--udp: 127\.255\.255\.255 is a broadcast address"),
    ],
)
def test_udp_where_nothing_can_be_sent_is_refused(source, host, port, words):
    with pytest.raises(UsageError, match=words):
        UdpSink(LiveLoop(FakePipeline(), source), host, port)


def test_websocket_recovers_from_descriptor_exhaustion(served, source):
    _, sink, address = served
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.collect()  # so that nothing of the tests before gives a descriptor back meanwhile
    with connect(address) as before, socket.socket() as waiting:
        wait_until(lambda: len(sink._clients) == 1)
        with socket.socket() as free:
            lowest = free.fileno()
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        try:
            waiting.connect(("127.0.0.1", sink.port))
            wait_until(lambda: sink.trouble == "no client can connect: too many open files")
            source.push(picture(0))
            assert json.loads(before.recv(timeout=60))["frame"] == 0  # who is there notices nothing
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with connect(address, sock=waiting) as after:
            wait_until(lambda: len(sink._clients) == 2)
            source.push(picture(1))
            assert json.loads(after.recv(timeout=60))["frame"] == 1
        wait_until(lambda: sink.trouble == "")
    assert sink.problem is None


def test_websocket_close_does_not_wait_for_clients(source, monkeypatch):
    """With one that took nothing since it connected, and one that never said what it wants."""
    monkeypatch.setattr(subscriber, "JOIN_SECONDS", 3600.0)
    loop = LiveLoop(FakePipeline(), source, backlog=100)
    sink = WebSocketSink(loop, "127.0.0.1", 0)
    head = (
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    with ExitStack() as clients, loop:
        sockets = [clients.enter_context(socket.socket()) for _ in range(5)]
        for number, client in enumerate(sockets):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(("127.0.0.1", sink.port))
            client.sendall(head.encode() if number else b"")
        wait_until(lambda: len(sink._clients) == 4)
        many = 0
        while not sink.lost:  # until what the system buffers is full
            source.push(picture(many))
            many += 1
            time.sleep(0.0005)
        begun = time.monotonic()
        loop.stop()
        sink.close()
        assert time.monotonic() - begun < 1000  # to wait for them would take the 3600 s of its subscriber
    wait_until(lambda: not sink._thread.is_alive())
    assert sink.lost > 0


def test_idle_connections_are_closed_for_new_clients(source, monkeypatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(listener, "IDLE_SECONDS", 600.0)
    loop = LiveLoop(FakePipeline(), source)
    sink = WebSocketSink(loop, "127.0.0.1", 0)
    address = f"ws://127.0.0.1:{sink.port}"
    with loop, connect(address) as before, ExitStack() as idle:
        wait_until(lambda: len(sink._clients) == 1)
        first = idle.enter_context(socket.create_connection(("127.0.0.1", sink.port)))
        first.setblocking(False)

        def is_closed() -> bool:
            idle.enter_context(socket.create_connection(("127.0.0.1", sink.port)))
            try:
                return first.recv(1) == b""
            except BlockingIOError:
                return False

        wait_until(is_closed)
        source.push(picture(0))
        assert json.loads(before.recv(timeout=60))["frame"] == 0
        with connect(address) as client:
            assert client.protocol.state.name == "OPEN"
    sink.close()


def test_rerun_gets_images_and_poses(source, tmp_path):
    from pose.live.rerun_sink import RerunSink

    loop = LiveLoop(FakePipeline(), source, backlog=100)
    sink = RerunSink(loop, tmp_path / "live.rrd")
    with loop:
        push(source, 4)
        settled(loop, 4)
    sink.close()
    entities, file = (b"/camera", b"/camera/people", b"/world/people", b"/latency_ms"), tmp_path / "live.rrd"
    wait_until(lambda: all(entity in file.read_bytes() for entity in entities))  # the first frame can take seconds
    assert sink.problem is None
