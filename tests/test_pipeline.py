"""The driver: order, bounded read-ahead, early ends, stage times, and the Python API."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pose.config import PipelineConfig, choose_networks, load_preset
from pose.errors import PoseError, UsageError
from pose.lifting.repair.person import FULL_LOOKAHEAD_S
from pose.pipeline import Pipeline
from pose.structures.types import Frame
from pose.tracking.sampling import SEARCH_S
from pose.utils.background import PREFETCHED_FRAMES, prefetch
from pose.utils.device import resolve_device
from pose.utils.presets import preset_names
from pose.utils.progress import StageTimes
from pose.video import open_source


def frames(count: int, made: list[int] | None = None) -> Iterator[Frame]:
    for index in range(count):
        if made is not None:
            made.append(index)
        yield Frame(np.zeros((2, 2, 3), np.uint8), index, index / 30)


def decoding_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "decode"]


def test_prefetch_gives_every_frame_in_order():
    given = list(prefetch(frames(50), StageTimes(), threading.Event()))
    assert [frame.index for frame in given] == list(range(50))


def test_prefetch_reads_ahead_no_further_than_its_depth():
    made: list[int] = []
    ahead = prefetch(frames(1000, made), StageTimes(), threading.Event())
    next(ahead)
    deadline = time.monotonic() + 60
    while len(made) < PREFETCHED_FRAMES + 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    assert len(made) == PREFETCHED_FRAMES + 2  # one given, a full queue, and one that waits for its place
    ahead.close()
    assert not decoding_threads()


def test_prefetch_raises_what_the_source_raises_after_the_frames_before():
    def broken() -> Iterator[Frame]:
        yield from frames(3)
        raise PoseError("the cable was pulled")

    given = prefetch(broken(), StageTimes(), threading.Event())
    assert [next(given).index for _ in range(3)] == [0, 1, 2]
    with pytest.raises(PoseError, match="the cable was pulled"):
        next(given)
    assert not decoding_threads()


def test_prefetch_ends_when_it_is_told_to_stop():
    stop = threading.Event()
    given = []
    for frame in prefetch(frames(100_000), StageTimes(), stop):
        given.append(frame.index)
        if frame.index == 10:
            stop.set()
    assert 11 <= len(given) <= 11 + PREFETCHED_FRAMES + 2
    assert given == list(range(len(given)))


def test_nested_stage_time_counts_once(monkeypatch):
    now = [100.0]
    clocks = SimpleNamespace(perf_counter=lambda: now[0], thread_time=lambda: now[0] / 4, process_time=None)
    monkeypatch.setattr("pose.utils.progress.time", clocks)
    times = StageTimes()
    with times.measure("outer"):
        now[0] += 1
        for seconds in (2, 5):
            with times.measure("inner"):
                now[0] += seconds
        now[0] += 3
    assert times.seconds == {"inner": 7, "outer": 4}
    assert times.processor == {"inner": 7 / 4, "outer": 1}


# In a process of its own: in this one threads of other tests may work as well.
TIMED = """
import json, threading, time
from pose.utils.progress import StageTimes

spent = {}

def busy(name, seconds):
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        pass
    spent[name] = time.thread_time() - start  # more, where the machine stood still meanwhile

times = StageTimes()
with times.rest("others"):
    helper = threading.Thread(target=busy, args=("helper", 0.4))
    helper.start()
    with times.measure("outer"):
        time.sleep(0.1)
        with times.measure("inner"):
            busy("inner", 0.2)
    helper.join()
print(json.dumps([times.seconds, times.processor, spent]))
"""


def test_processor_time_is_attributed_to_its_stage():
    done = subprocess.run([sys.executable, "-c", TIMED], capture_output=True, text=True, timeout=200, check=True)
    seconds, processor, spent = json.loads(done.stdout)
    assert processor["inner"] == pytest.approx(spent["inner"], abs=0.05)  # 0.2 more with what the other thread did
    assert processor["outer"] < 0.05 < 0.1 <= seconds["outer"]
    assert processor["others"] == pytest.approx(spent["helper"], abs=0.05)  # 0.2 more with what the stages did
    assert seconds["others"] == 0


def test_standard_is_the_default_preset():
    assert choose_networks(PipelineConfig(device="cpu")) == load_preset("standard", device="cpu", lifter="offline")


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid_and_can_be_changed(name):
    assert load_preset(name, max_people=3).max_people == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"detector": "magic"}, "detector: 'magic' is unknown; known: auto, blazepose"),
        ({"max_people": None}, "max_people: needs a value"),
        ({"max_people": 0}, "max_people: 0 is out of range; allowed: 1 to 1000"),
        ({"presence_score": 1.5}, "presence_score: 1.5 is out of range; allowed: 0 to 1"),
        ({"presence_score": float("nan")}, "presence_score: nan is not a finite number"),
        ({"max_peple": 3}, "unknown key 'max_peple'; known: detector, estimator"),
    ],
)
def test_invalid_config_names_key_and_allowed_values(changes, message):
    with pytest.raises(UsageError) as error:
        load_preset("fast", **changes)
    assert message in str(error.value)


def test_unknown_preset_lists_the_known():
    with pytest.raises(UsageError, match=r"preset 'quick' is unknown; known: .*fast"):
        load_preset("quick")


def test_device_is_used_or_rejected(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert resolve_device("cpu") == resolve_device("auto") == "cpu"
    with pytest.raises(PoseError, match="device: cuda was requested"):
        resolve_device("cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert resolve_device("cuda") == "cuda"


@pytest.fixture
def pipeline(weights_dir, tiny_lifter, monkeypatch) -> Pipeline:
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
    return Pipeline.from_preset("fast", lifter=str(tiny_lifter))


def test_results_come_in_order_with_bounded_delay(pipeline, videos, monkeypatch):
    monkeypatch.setattr("pose.lifting.offline.FIT_SECONDS", 1.0)
    monkeypatch.setattr("pose.lifting.fit.windows.WINDOW_S", 2.0)
    with open_source(str(videos / "dance.mp4"), end=0.01) as source:
        session = pipeline.session(source.info.size)
        first = session.track(next(iter(source)))  # the 2D networks do not matter here
    given, delays = 0, []
    for index in range(450):
        people = replace(first, index=index, time=index / 30, keypoints=first.keypoints + np.float32(0.2 * index))
        for result in session.lift(people):
            assert result.index == given
            given += 1
        delays.append(index + 1 - given)
    # A window of the lifter, the look-ahead of repair, the second for bone lengths, and a window of the fit to the 2D.
    assert max(delays) < 112 + 30 * (FULL_LOOKAHEAD_S + 2) < 450
    assert given + len(session.flush()) == 450


@pytest.mark.parametrize("ensemble", [None, "movenet-thunder"])
def test_sampled_runs_return_every_frame_near_the_unsampled_one(
    ensemble, weights_dir, videos, tiny_lifter, monkeypatch
):
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
    found = {}
    for rate in (15.0, 0.0):
        options = {"lifter": str(tiny_lifter), "keypoint_rate": rate, "ensemble": ensemble}
        with open_source(str(videos / "dance.mp4"), end=1.0) as source:
            found[rate] = list(Pipeline.from_preset("fast", **options).run(source))
    sampled, every = found[15.0], found[0.0]
    assert [result.index for result in sampled] == [result.index for result in every] == list(range(30))
    start = round(30 * SEARCH_S)
    interpolated = [result.people.interpolated.tolist() for result in sampled]
    assert interpolated[:start] == [[False]] * start
    assert sum(flags[0] for flags in interpolated[start:]) >= 6
    for one, other in zip(sampled, every, strict=True):
        height = np.ptp(other.people.boxes[0, 1::2])
        away = np.linalg.norm(one.people.keypoints - other.people.keypoints, axis=-1)
        assert np.median(away) < 0.01 * height
        assert not other.people.interpolated.any()


def test_a_run_returns_what_a_session_returns_frame_by_frame_and_leaves_no_thread(pipeline, videos):
    before = set(threading.enumerate())
    with open_source(str(videos / "dance.mp4"), end=0.7) as source:
        found = list(pipeline.run(source))
    with open_source(str(videos / "dance.mp4"), end=0.7) as source:
        session = pipeline.session(source.info.size)
        pushed = [result for frame in source for result in session.push(frame)] + session.flush()
    for one, other in zip(found, pushed, strict=True):
        assert np.array_equal(one.people.keypoints, other.people.keypoints)
        assert np.array_equal(one.poses.joints, other.poses.joints)
        assert (one.people.background is None) == (other.people.background is None)
    with open_source(str(videos / "dance.mp4")) as source:
        left = Pipeline.from_preset("fast", lifter="stream").run(source)  # which answers at once
        next(left)
        left.close()
    assert set(threading.enumerate()) == before


def test_session_rejects_invalid_frames(pipeline):
    session = pipeline.session((64, 48))
    session.push(Frame(np.zeros((48, 64, 3), np.uint8), 0, 0.0))
    with pytest.raises(UsageError, match=r"time 0 s after 0 s"):
        session.push(Frame(np.zeros((48, 64, 3), np.uint8), 1, 0.0))
    with pytest.raises(UsageError, match=r"got 48 x 64 px, but the session expects 64 x 48 px"):
        session.push(Frame(np.zeros((64, 48, 3), np.uint8), 1, 0.1))


def test_session_draws_on_the_frame_of_the_result(weights_dir, videos, monkeypatch):
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
    with open_source(str(videos / "dance.mp4"), end=0.1) as source:
        frames = list(source)
    pipeline = Pipeline.from_preset("fast", live=True)
    session = pipeline.session(frames[0].size)
    assert session.refines
    assert not pipeline.session((7680, 4320)).refines  # ten of these images would wait
    same = Frame.from_bgr(frames[0].image[:, :, ::-1], 0, 0.0)
    assert np.array_equal(same.image, frames[0].image)
    (result,) = session.push(same)
    drawn = session.draw(same, result)
    assert drawn.shape == same.image.shape
    assert 0 < (drawn != same.image).any(axis=2).mean() < 0.2
    assert np.array_equal(session.draw(same, result, bgr=True), drawn[:, :, ::-1])
    assert session.draw(same, result, inset=True).shape[1] > drawn.shape[1]  # beside a portrait image
    with pytest.raises(UsageError, match="the result is of frame 0, the image is frame 1"):
        session.draw(frames[1], result)


FORKED = """
import os, sys, time, warnings
from pose.pipeline import Pipeline
from pose.video import open_source

def frames_seen():
    with open_source(CLIP, end=0.33) as source:
        return len(list(Pipeline.from_preset("fast", live=LIVE).run(source)))

warnings.simplefilter("ignore", DeprecationWarning)  # of fork, while libraries have threads
assert frames_seen() == 10
child = os.fork()
if not child:
    os._exit(frames_seen())
until = time.monotonic() + 400
while time.monotonic() < until:
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
        sys.exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.1)
os.kill(child, 9)
sys.exit("the child hangs")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("live", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_forked_process_runs_its_own_pipeline(live, videos, weights_dir):
    program = FORKED.replace("LIVE", repr(live)).replace("CLIP", repr(str(videos / "dance.mp4")))
    environment = {**os.environ, "POSE_WEIGHTS_DIR": str(weights_dir), "PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, "-c", program]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 10, done.stderr


def test_every_run_starts_with_new_identities(pipeline, videos):
    for _ in range(2):
        with open_source(str(videos / "dance.mp4"), end=0.3) as source:
            results = list(pipeline.run(source))
        assert [result.people.ids.tolist() for result in results] == [[1]] * 9
        assert [len(result.poses) for result in results] == [1] * 9
    assert pipeline.times.seconds.keys() >= {"detect", "keypoints", "track", "lift"}


def test_models_are_named_with_their_hashes(pipeline, weights_dir):
    from pose.networks.weights import sha256_of

    hashes = {model.role: model.sha256 for model in pipeline.models}
    assert hashes["detector"] == sha256_of(weights_dir / "rtmdet-nano-person-320.onnx")
    assert hashes["estimator"] == sha256_of(weights_dir / "blazepose-landmark-full.tflite")
    assert len(hashes["lifter"]) == 64


def test_assumed_camera_is_reported(pipeline):
    assert not pipeline.camera((640, 480)).known
    assert pipeline.camera((640, 480)).fov_degrees == pytest.approx(55)


def test_live_cameras_have_networks_for_each_core(at_hand, monkeypatch):
    monkeypatch.setattr("pose.pipeline.available_cores", lambda: 2)
    monkeypatch.setattr("pose.config.available_cores", lambda: 2)
    whole = Pipeline(PipelineConfig(device="cpu", threads=2), lazy=True)
    first, second, third = whole.for_cameras(3)
    assert first is third
    assert first.network_lock is not second.network_lock
    assert second.config.threads == 1
    assert {one.config.camera for one in (first, second)} == {"fixed"}  # no background is measured
    assert whole.config.camera == "auto"
