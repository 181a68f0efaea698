"""A recording holds what was seen, in the files that `pose-run` writes, and is finished whatever happens."""

import json
import threading

import jsonschema
import numpy as np
import pytest
from live_fakes import FakePipeline, picture, push, settled, wait_until
from pose_apps.webcam.live_outputs import close_recorder
from pose_fakes import run_info

from pose.errors import PoseError
from pose.live import LiveLoop, PushedFrames
from pose.live import recorder as module
from pose.live.recorder import Recorder
from pose.live.recording import RecordingFolder, finish_interrupted
from pose.results import load_poses
from pose.results.json import SCHEMA_PATH
from pose.video import open_source


@pytest.fixture
def source(monkeypatch) -> PushedFrames:
    monkeypatch.setattr(module, "_run_info", lambda loop, pipeline, size: run_info(pipeline.skeleton, size))
    return PushedFrames("test", capacity=100)


def start(source: PushedFrames) -> LiveLoop:
    return LiveLoop(FakePipeline(), source, backlog=100)


def push_timed(source: PushedFrames, numbers, size=(64, 48)) -> None:
    for number in numbers:
        source.push(picture(number, size), at=50 + number / 25)


def test_recording_contains_images_and_poses_between_start_and_end(source, tmp_path):
    with start(source) as loop:
        push_timed(source, range(5))
        settled(loop, 5)
        recorder = Recorder(loop, tmp_path)
        push_timed(source, range(5, 25))
        settled(loop, 25)
        recorder.close()
        push_timed(source, range(25, 30))
        settled(loop, 30)
    assert (recorder.frames, recorder.dropped, recorder.problem) == (20, 0, None)
    assert sorted(path.name for path in recorder.folder.iterdir()) == ["poses.json", "poses.npz", "video.mp4"]

    poses = load_poses(recorder.folder / "poses.npz")
    np.testing.assert_allclose(poses.timestamps, np.arange(20) / 25, atol=1e-9)
    assert poses.keypoints[:, 0, 0].tolist() == list(range(5, 25))
    assert poses.complete
    document = json.loads((recorder.folder / "poses.json").read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()))
    assert [frame["index"] for frame in document["frames"]] == list(range(20))
    with open_source(str(recorder.folder / "video.mp4")) as video:
        frames = list(video)
    np.testing.assert_allclose([frame.time for frame in frames], np.arange(20) / 25, atol=1e-4)
    assert [round(float(frame.image.mean())) for frame in frames] == pytest.approx(list(range(5, 25)), abs=3)


def test_queue_of_large_images_is_short_before_the_first_one_is_written(source, tmp_path, monkeypatch):
    """On a loaded machine the thread of the recorder may begin late; at 8K each image has 100 MB."""
    gate, write = threading.Event(), Recorder._write
    monkeypatch.setattr(Recorder, "_write", lambda self, live: (gate.wait(), write(self, live)))
    monkeypatch.setattr(module, "MAX_BACKLOG_BYTES", 2 * picture(0).nbytes)
    with start(source) as loop:
        recorder = Recorder(loop, tmp_path)
        push_timed(source, range(12))
        settled(loop, 12)
        gate.set()
        recorder.close()
    assert recorder.frames <= 3  # one is being written, two wait
    assert recorder.frames + recorder.dropped == 12


def test_empty_recording_leaves_no_files(source, tmp_path):
    with start(source) as loop:
        recorder = Recorder(loop, tmp_path)
        recorder.close()
        recorder.close()
    assert list(tmp_path.iterdir()) == []


def test_image_size_change_ends_the_recording(source, tmp_path):
    with start(source) as loop:
        recorder = Recorder(loop, tmp_path)
        push_timed(source, range(4))
        push_timed(source, range(4, 8), size=(32, 96))
        settled(loop, 8)
        recorder.close()
    assert (recorder.frames, recorder.problem) == (4, "the image size or the networks changed")
    assert len(load_poses(recorder.folder / "poses.npz")) == 4


def test_full_disk_at_the_end_keeps_written_frames(source, tmp_path, monkeypatch, room_for):
    write, written = RecordingFolder.write, []

    def noted(self, live):
        write(self, live)
        written.append(live)  # a frame counts before its image is on the disk

    monkeypatch.setattr(RecordingFolder, "write", noted)
    with start(source) as loop:
        recorder = Recorder(loop, tmp_path)
        push_timed(source, range(40))
        settled(loop, 40)
        wait_until(lambda: len(written) == 40)
        with room_for(300):
            said = close_recorder(recorder)
    assert said.startswith(f"recorded 40 frames into {recorder.folder}, without poses.npz; it ended early: ")
    assert "File too large" in said
    assert [frame["index"] for frame in json.loads((recorder.folder / "poses.json").read_text())["frames"]] == [
        *range(40)
    ]
    assert video_frames(recorder.folder) >= 40 - 13  # a fragment of half a second
    (line,) = finish_interrupted(tmp_path)  # now there is room
    assert line.endswith("finished with 40 frames: video.mp4, poses.json, poses.npz")
    assert len(load_poses(recorder.folder / "poses.npz")) == 40


def video_frames(folder) -> int:
    with open_source(str(folder / "video.mp4")) as video:
        return sum(1 for _ in video)


def test_full_disk_ends_the_recording_but_not_the_loop(source, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise PoseError("poses.json: no space left on device")

    monkeypatch.setattr("pose.results.json.JsonWriter.write", full)
    with start(source) as loop:
        recorder = Recorder(loop, tmp_path)
        push(source, 6)
        settled(loop, 6)
        assert loop.status().processed == 6
        recorder.close()
    assert recorder.problem == "poses.json: no space left on device"
