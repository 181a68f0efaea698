"""A recording holds what was seen, in the files that `pose-run` writes, and is finished whatever happens."""

import errno
import json

import jsonschema
import numpy as np
import pytest
from live_fakes import FakePipeline, picture, push, settled, wait_until
from pose_apps.webcam.live_outputs import close_recorder
from pose_fakes import run_info

from pose.errors import PoseError
from pose.live import LiveLoop, PushedFrames, recording
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


def test_a_recording_holds_the_images_and_poses_from_its_start_to_its_end(source, tmp_path):
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


def test_the_end_of_the_loop_finishes_the_files(source, tmp_path):
    with start(source) as loop:
        recorder = Recorder(loop, tmp_path)
        push(source, 3)
        settled(loop, 3)
    wait_until(lambda: not recorder._subscriber._thread.is_alive())
    assert len(load_poses(recorder.folder / "poses.npz")) == 3


def test_nothing_seen_leaves_nothing(source, tmp_path):
    with start(source) as loop:
        recorder = Recorder(loop, tmp_path)
        recorder.close()
        recorder.close()
    assert list(tmp_path.iterdir()) == []


def test_images_of_another_size_end_it_with_what_was_recorded(source, tmp_path):
    with start(source) as loop:
        recorder = Recorder(loop, tmp_path)
        push_timed(source, range(4))
        push_timed(source, range(4, 8), size=(32, 96))
        settled(loop, 8)
        recorder.close()
    assert (recorder.frames, recorder.problem) == (4, "the image size or the networks changed")
    assert len(load_poses(recorder.folder / "poses.npz")) == 4


def test_other_networks_end_it_though_their_joints_are_the_same(source, tmp_path, monkeypatch):
    """Ids begin again with them, and the files name the networks that saw what is in them."""
    named = []
    monkeypatch.setattr(
        module, "_run_info", lambda loop, pipeline, size: named.append(pipeline) or run_info(pipeline.skeleton, size)
    )
    with start(source) as loop:
        before = loop.pipeline
        recorder = Recorder(loop, tmp_path)
        push_timed(source, range(4))
        settled(loop, 4)
        loop.pipeline = FakePipeline()
        push_timed(source, range(4, 8))
        settled(loop, 8)
        recorder.close()
    assert (recorder.frames, recorder.problem) == (4, "the image size or the networks changed")
    assert named == [before]


def test_a_recording_of_frames_that_were_under_way_names_their_networks(source, tmp_path, monkeypatch):
    named = []
    monkeypatch.setattr(
        module, "_run_info", lambda loop, pipeline, size: named.append(pipeline) or run_info(pipeline.skeleton, size)
    )
    with start(source) as loop:
        before = loop.pipeline
        before.gate.clear()
        push_timed(source, range(1))
        wait_until(lambda: before.sizes)
        loop.pipeline = FakePipeline()
        recorder = Recorder(loop, tmp_path)
        before.gate.set()
        settled(loop, 1)
        recorder.close()
    assert named == [before]


def test_a_disk_that_is_full_at_the_end_costs_what_is_not_on_it_yet(source, tmp_path, monkeypatch, room_for):
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


def test_a_file_that_could_not_be_finished_is_named(source, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pose.results.npz._constants", full)
    with start(source) as loop:
        recorder = Recorder(loop, tmp_path)
        push_timed(source, range(10))
        settled(loop, 10)
        said = close_recorder(recorder)
    there = sorted(path.name for path in recorder.folder.iterdir())
    assert there == ["poses.json", "unfinished-poses.npz", "video.mp4"]
    npz = recorder.folder / "poses.npz"
    assert said == (
        f"recorded 10 frames into {recorder.folder}, without poses.npz; it ended early: {npz}: No space left on device"
    )


def test_a_full_disk_ends_the_recording_and_not_the_loop(source, tmp_path, monkeypatch):
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


def test_two_recordings_of_one_second_get_two_folders(source, tmp_path, monkeypatch):
    monkeypatch.setattr(recording.time, "strftime", lambda form: "live-20260102-030405")
    with start(source) as loop:
        recorders = [Recorder(loop, tmp_path) for _ in range(3)]
        push(source, 2)
        settled(loop, 2)
        for recorder in recorders:
            recorder.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"live-20260102-030405{end}" for end in ("", "-2", "-3")
    ]


def test_a_folder_that_cannot_be_made_is_said(source, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PoseError, match=r"cannot record into .*file"):
        Recorder(start(source), tmp_path / "file")
