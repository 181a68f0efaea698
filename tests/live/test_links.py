"""`--send`: addresses, threads, receivers that are slow or fail, events, and the playback of a result."""

import socket
import threading
import time

import numpy as np
import pytest
from command_errors import error_line
from link_fakes import live_result, osc_messages, receiver, turned_body
from live_fakes import FakePipeline, picture, push, settled, wait_until
from pose_apps.view import main as view
from pose_apps.webcam.command import main as webcam
from pose_fakes import STANDING, run_info, seen_result

from pose.errors import PoseError, UsageError
from pose.live import LiveLoop, PushedFrames
from pose.live.counter import Count
from pose.live.links import open_links, table
from pose.live.links.base import Address, LinkKind
from pose.live.links.events import LYING, SITTING, posture_of
from pose.live.links.events import STANDING as STANDS
from pose.live.links.frames import FrameBuilder
from pose.live.links.table import parse_links
from pose.results import NpzWriter
from pose.structures.skeletons import H36M17


@pytest.mark.parametrize(
    ("text", "host", "port", "person"),
    [
        ("vmc", "127.0.0.1", 39539, None),
        ("vmc=40000", "127.0.0.1", 40000, None),
        ("vmc=robot", "robot", 39539, None),
        ("vmc=192.168.1.5:40000", "192.168.1.5", 40000, None),
        ("vmc=[::1]:40000@3", "::1", 40000, 3),
        ("vmc=[::1]", "::1", 39539, None),
        ("vmc=@2", "127.0.0.1", 39539, 2),
    ],
)
def test_addresses_have_defaults_on_loopback(text, host, port, person):
    assert parse_links(text) == [("vmc", Address("--send vmc", host, port, person=person))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "unknown link ''; known: vmc, vrchat, osc, lsl, mqtt, mcap, foxglove, camera"),
        ("vmx", "unknown link 'vmx'"),
        ("vmc,vmc=1", "vmc is given twice"),
        ("vmc=", "the address is empty"),
        ("vmc=robot:70000", "invalid address 'robot:70000': expected HOST:PORT, HOST or PORT"),
        ("vmc=0", "invalid address '0'"),
        ("vmc=@x", "invalid person 'x': expected the id of a person, such as vmc=@2"),
        ("osc=@2", "sends all people; omit @2"),
        ("lsl=1", "takes no address"),
        ("mcap", "name the file to write, such as --send mcap=run.mcap"),
    ],
)
def test_bad_addresses_are_refused_in_one_line(text, words):
    with pytest.raises(UsageError) as error:
        parse_links(text)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setattr(table, "find_spec", lambda _: None)
    with pytest.raises(PoseError, match=r"--send lsl needs pylsl: pip install 'pose-run\[lsl\]'"):
        parse_links("lsl")


@pytest.mark.parametrize(
    ("host", "words"),
    [("no.such.host.invalid", "cannot find no.such.host.invalid"), ("255.255.255.255", "is a broadcast address")],
)
def test_hosts_that_cannot_receive_are_refused_at_the_start(host, words):
    with pytest.raises(PoseError) as error:
        open_links(LiveLoop(FakePipeline(), PushedFrames("test")), f"osc={host}")
    assert words in str(error.value)


class Recorded:
    """A link that keeps what it was sent; waits while `gate` is clear, raises `failure` if it is set."""

    trouble = ""

    def __init__(self) -> None:
        self.frames, self.closed, self.failure = [], False, None
        self.gate = threading.Event()
        self.gate.set()

    def send(self, frame) -> None:
        self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.frames.append(frame)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def two_links(monkeypatch):
    links = {"first": Recorded(), "second": Recorded()}
    kinds = {name: LinkKind(lambda _, one=one: one, "", "", (), 9000, capacity=2) for name, one in links.items()}
    monkeypatch.setattr(table, "LINKS", kinds)
    monkeypatch.setattr("pose.live.links.sender.LINKS", kinds)
    source = PushedFrames("test", capacity=100)
    loop = LiveLoop(FakePipeline(), source, backlog=100)
    sinks = open_links(loop, "first,second")
    return links, source, loop, sinks


def test_a_slow_link_loses_old_frames_and_delays_nothing_else(two_links):
    links, source, loop, sinks = two_links
    links["first"].gate.clear()
    with loop:
        for number in range(20):
            source.push(picture(number))
            wait_until(lambda number=number: len(links["second"].frames) == number + 1)
        assert loop.status().dropped == 0
        links["first"].gate.set()
    for sink in sinks:
        sink.close()
    numbers = [frame.live.result.index for frame in links["first"].frames]
    assert numbers[-1] == 19, "the newest frame wins"
    assert len(numbers) + sinks[0].lost == 20
    assert sinks[1].lost == 0
    assert links["first"].closed
    assert links["second"].closed


def test_a_receiver_that_fails_is_tried_again_and_named_once(two_links):
    links, source, loop, sinks = two_links
    links["first"].failure = OSError("the device is away")
    with loop:
        push(source, 1)
        wait_until(lambda: sinks[0].trouble == "the device is away")
        links["first"].failure = None
        push(source, 1)
        wait_until(lambda: sinks[0].trouble == "")
        links["second"].failure = RuntimeError("a bug in the link")
        push(source, 1)
        wait_until(lambda: sinks[1].problem == "a bug in the link")
        push(source, 3)
        settled(loop, 6)
    for sink in sinks:
        sink.close()
    assert sinks[0].problem is None
    assert sinks[0].lost >= 1
    assert len(links["first"].frames) + sinks[0].lost == 6


def test_links_send_from_a_live_loop():
    sockets = receiver()
    source = PushedFrames("test", capacity=100)
    loop = LiveLoop(FakePipeline(), source, backlog=100)
    (sink,) = open_links(loop, f"osc={sockets[0].getsockname()[1]}")
    with loop:
        push(source, 1)
        settled(loop, 1)
    sink.close()
    found = []
    while not any(one[0] == "/pose/count" for one in found):
        packet = sockets[0].recv(65536)
        found += osc_messages(packet) if packet else []
    sockets[0].close()
    assert [values for address, values in found if address == "/pose/count"] == [[1]]


def bent(knees: bool = False, trunk: bool = False) -> np.ndarray:
    """STANDING with thighs level, or lying on the floor."""
    joints = STANDING.copy()
    if knees:
        for side in ("left", "right"):
            hip = joints[H36M17.index(f"{side}_hip")]
            joints[H36M17.index(f"{side}_knee")] = hip + np.array([0, 0.05, -0.43])
            joints[H36M17.index(f"{side}_ankle")] = hip + np.array([0, 0.48, -0.43])
    return joints[:, [1, 0, 2]] if trunk else joints


@pytest.mark.parametrize(
    ("joints", "posture"), [(bent(), STANDS), (bent(knees=True), SITTING), (bent(trunk=True), LYING)]
)
def test_posture_follows_trunk_and_thighs(joints, posture):
    assert posture_of(joints * (1, -1, -1)) == posture


def run_of(builder, poses, heights, start=0.0):
    """Frames of one person at 10 Hz; heights: of the pelvis, m."""
    frames = []
    for at, (joints, height) in enumerate(zip(poses, heights, strict=True)):
        frames.append(builder.build(live_result(joints, [(0, -height, 4.0)], at, start + at / 10)))
    return frames


def test_a_fast_descent_to_the_floor_is_a_possible_fall():
    builder = FrameBuilder()
    frames = run_of(builder, [bent()] * 20 + [bent(trunk=True)] * 20, [0.9] * 20 + [0.2] * 20)
    assert [one.kind for frame in frames for one in frame.events] == ["entered", "possible_fall"]
    assert frames[-1].people[0].fallen
    frames = run_of(builder, [bent()] * 10, [0.9] * 10, start=4.0)
    assert not frames[-1].people[0].fallen


def test_lying_down_in_place_is_no_fall():
    frames = run_of(FrameBuilder(), [bent()] * 20 + [bent(trunk=True)] * 20, [0.4] * 40)
    assert [one.kind for frame in frames for one in frame.events] == ["entered"]
    assert frames[-1].people[0].posture == LYING


def test_places_stay_while_people_are_present_and_are_reused():
    builder, bodies = FrameBuilder(), [(0, 0, 4.0), (1, 0, 4.0)]
    first = builder.build(live_result(STANDING, bodies, 0, 0.0))
    alone = seen_result(np.array([(1, 0, 4.0)]), index=1, time=0.5)
    object.__setattr__(alone.people, "ids", np.array([2]))
    live = live_result(STANDING, bodies)
    second = builder.build(type(live)(live.image, alone, H36M17, live.captured, live.done))
    assert [person.slot for person in first.people] == [0, 1]
    assert [person.slot for person in second.people] == [1], "person 1 is gone for less than a second"
    late = seen_result(np.array([(1, 0, 4.0), (2, 0, 4.0)]), index=2, time=3.0)
    object.__setattr__(late.people, "ids", np.array([2, 9]))
    third = builder.build(type(live)(live.image, late, H36M17, live.captured, live.done))
    assert {person.id: person.slot for person in third.people} == {2: 1, 9: 0}
    assert {(one.kind, one.person) for one in third.events} == {
        ("left", 1),
        ("left", 2),
        ("entered", 2),
        ("entered", 9),
    }


def test_repetitions_are_events_once():
    builder, kinds = FrameBuilder(), []
    for at, count in enumerate((0, 2, 2, 3)):
        counts = {1: Count("squat", count)} if count else {}
        frame = builder.build(live_result(STANDING, index=at, at=at / 10, counts=counts))
        kinds += [(one.kind, one.detail, one.count) for one in frame.events if one.kind == "repetition"]
    assert kinds == [("repetition", "squat", 2), ("repetition", "squat", 3)]


def test_rigid_skeleton_keeps_its_bone_lengths(rng):
    """Noise of 3 cm on the joints changes no bone by more than the refits of the first frames."""
    builder, lengths = FrameBuilder(), []
    for at in range(80):
        noisy = STANDING + rng.normal(0, 0.03, (17, 3)).astype(np.float32)
        (person,) = builder.build(live_result(noisy, index=at, at=at / 30)).people
        lengths.append(np.linalg.norm(person.offsets, axis=1))
    assert np.ptp(lengths[64:], axis=0).max() == 0
    np.testing.assert_allclose(np.linalg.norm(person.joints[2] - person.joints[1]), lengths[-1][5], atol=1e-9)


@pytest.fixture
def poses(tmp_path):
    path = tmp_path / "poses.npz"
    with NpzWriter(path, run_info(H36M17)) as writer:
        for at in range(10):
            writer.write(seen_result([(at / 40, 0, 4.0)], turned_body(np.random.default_rng(1)), at, at / 50))
    return path


def test_view_plays_a_result_in_real_time(poses, tmp_path):
    sockets = receiver()
    begun = time.monotonic()
    assert view([str(poses), "--send", f"osc={sockets[0].getsockname()[1]},mcap={tmp_path / 'run.mcap'}"]) == 0
    assert time.monotonic() - begun >= 9 / 50
    found = []  # the last frame arrives in any case
    while not found or found[-1][0] != "/pose/frame" or found[-1][1][0] < 8.5 / 50:
        packet = sockets[0].recv(65536)
        found += osc_messages(packet)[:1] if packet else []
    sockets[0].close()
    from mcap.reader import make_reader

    with (tmp_path / "run.mcap").open("rb") as file:
        topics = [channel.topic for _, channel, _ in make_reader(file).iter_messages()]
    assert topics.count("/tf") == topics.count("/camera/camera_info") == 10


@pytest.mark.parametrize("command", [view, webcam])
def test_commands_refuse_unknown_links_in_one_line(command, poses, capsys):
    arguments = [str(poses)] if command is view else ["--headless", "--source", "0"]
    assert command([*arguments, "--send", "nothing"]) == 2
    assert "--send: unknown link 'nothing'" in error_line(capsys)


def test_view_refuses_what_does_not_go_with_send(poses, capsys):
    for options, words in (
        (["--send", "osc", "--save", "x.mp4"], "--send and --save: give only one"),
        (["--loop"], "--loop applies only to --send"),
    ):
        assert view([str(poses), *options]) == 2
        assert words in error_line(capsys)


def test_view_names_a_port_in_use(poses, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert view([str(poses), "--send", f"foxglove={port}"]) == 1
        assert f"--send foxglove: cannot listen on 127.0.0.1:{port}" in error_line(capsys)
