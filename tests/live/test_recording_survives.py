"""What is recorded survives the program's death and a full disk, to the last second."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import cv2
import jsonschema
import numpy as np
import pytest
from live_fakes import FakePipeline, picture, settled, wait_until
from pose_apps.webcam.live_outputs import close_recorder
from pose_fakes import run_info

from pose.errors import PoseError
from pose.live import LiveLoop, PushedFrames
from pose.live import recorder as module
from pose.live.recorder import Recorder
from pose.live.recording import RESERVE_NAME, finish_interrupted
from pose.results import load_poses
from pose.results.json import SCHEMA_PATH
from pose.video import open_source

FPS = 50

RECORDS_FOR_EVER = """
import sys, time
from pathlib import Path
sys.path[:0] = {paths!r}
import numpy as np
from live_fakes import FakePipeline, picture
from pose_fakes import run_info
from pose.live import LiveLoop, PushedFrames
from pose.live import recorder as module

module._run_info = lambda loop, pipeline, size: run_info(pipeline.skeleton, size)
source = PushedFrames("test", capacity=100)
with LiveLoop(FakePipeline(), source, backlog=100) as loop:
    recorder = module.Recorder(loop, Path({folder!r}))
    begun = time.monotonic()
    for number in range(10 ** 6):
        time.sleep(max(0, begun + number / {fps} - time.monotonic()))
        source.push(picture(number), at=begun + number / {fps})
        print(recorder.frames, flush=True)
"""


def recording_process(folder: Path) -> subprocess.Popen:
    """It records FPS frames a second, and prints how many there are."""
    tests = Path(__file__).parent
    code = RECORDS_FOR_EVER.format(paths=[str(tests), str(tests.parent)], folder=str(folder), fps=FPS)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def video_times(path: Path) -> list[float]:
    with open_source(str(path)) as video:
        times = [frame.time for frame in video]
        assert video.problems == []
    return times


def read_by_opencv(path: Path) -> int:
    capture, count = cv2.VideoCapture(str(path)), 0
    while capture.read()[0]:
        count += 1
    capture.release()
    return count


def test_kill_9_loses_less_than_a_second(tmp_path):
    with recording_process(tmp_path) as process:
        for line in process.stdout:
            if (written := int(line)) >= 2 * FPS:
                break
        assert finish_interrupted(tmp_path) == []  # it is still recorded into
        process.kill()
    (folder,) = tmp_path.iterdir()

    document = json.loads((folder / "unfinished-poses.json").read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()))
    assert len(document["frames"]) >= written
    assert not document["complete"]
    assert len(video_times(folder / "unfinished-video.mp4")) >= written - FPS
    assert read_by_opencv(folder / "unfinished-video.mp4") >= written - FPS

    (line,) = finish_interrupted(tmp_path)
    frames = len(document["frames"])
    assert line == (
        f"the recording {folder} was cut short; finished with {frames} frames: video.mp4, poses.json, poses.npz"
    )
    assert sorted(path.name for path in folder.iterdir()) == ["poses.json", "poses.npz", "video.mp4"]
    assert json.loads((folder / "poses.json").read_text()) == document
    poses = load_poses(folder / "poses.npz")
    assert not poses.complete
    assert len(poses) == frames
    np.testing.assert_allclose(poses.timestamps, [frame["time"] for frame in document["frames"]], atol=1e-6)
    assert poses.keypoints[:, 0, 0].tolist() == [frame["people"][0]["keypoints"][0][0] for frame in document["frames"]]
    times = video_times(folder / "video.mp4")
    np.testing.assert_allclose(times, poses.timestamps[: len(times)], atol=1e-4)
    assert finish_interrupted(tmp_path) == []


@pytest.fixture
def source(monkeypatch) -> PushedFrames:
    monkeypatch.setattr(module, "_run_info", lambda loop, pipeline, size: run_info(pipeline.skeleton, size))
    return PushedFrames("test", capacity=100)


@pytest.mark.parametrize("cut", ["json", "npz", "video"])
def test_recording_killed_within_a_write_is_recovered(source, tmp_path, cut):
    """A file that ends in the middle of a frame costs that frame, and the others those that it has no longer."""
    folder = _left_by_a_killed_program(source, tmp_path, frames=60)
    if cut == "json":
        path = folder / "unfinished-poses.json"
        data = path.read_bytes()
        path.write_bytes(data[: data.rindex(b'{"index":59') + 700])
    elif cut == "npz":
        path = folder / "unfinished-poses.npz" / "sigma"
        path.write_bytes(path.read_bytes()[:-5])
        os.truncate(folder / "unfinished-poses.npz" / "frames", 59 * 8)  # which comes after the people
    else:
        path = folder / "unfinished-video.mp4"
        path.write_bytes(path.read_bytes()[:-100])
    (line,) = finish_interrupted(tmp_path)
    poses = load_poses(folder / "poses.npz")
    assert len(poses) == (60 if cut == "video" else 59)
    assert poses.keypoints[:, 0, 0].tolist() == list(range(len(poses)))
    assert len(json.loads((folder / "poses.json").read_text())["frames"]) == (59 if cut == "json" else 60)
    assert len(video_times(folder / "video.mp4")) >= 60 - 13 * (
        2 if cut == "video" else 1
    )  # fragments of half a second
    assert "frames: video.mp4, poses.json, poses.npz" in line


def _left_by_a_killed_program(source, tmp_path, frames: int) -> Path:
    """A copy of the files while they are written is what a killed program leaves."""
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        recorder = Recorder(loop, tmp_path / "original")
        for number in range(frames):
            source.push(picture(number), at=50 + number / 25)
        wait_until(lambda: recorder.frames == frames)
        left = tmp_path / recorder.folder.name
        subprocess.run(["cp", "-r", str(recorder.folder), str(left)], check=True)
        recorder.close()
    return left


def test_file_size_limit_keeps_all_that_fits(source, tmp_path, room_for):
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        recorder = Recorder(loop, tmp_path)
        with room_for(300_000):
            for number in until_it_ends(recorder):
                source.push(picture(number), at=50 + number / 25)
            said = close_recorder(recorder)
    check_what_fitted(recorder, said, "File too large")


def until_it_ends(recorder: Recorder) -> Iterator[int]:
    """Numbers of images, until there is no more room. A busy machine drops some of them."""
    end = time.monotonic() + 100
    for number in count():
        if recorder.problem is not None:
            return
        assert time.monotonic() < end, "it never ends"
        yield number
        time.sleep(0.002)


def check_what_fitted(recorder: Recorder, said: str, why: str) -> None:
    frames = recorder.frames
    assert frames > 50
    assert said.startswith(f"recorded {frames} frames into {recorder.folder}; it ended early: ")
    assert why.lower() in said.lower()
    assert sorted(path.name for path in recorder.folder.iterdir()) == ["poses.json", "poses.npz", "video.mp4"]
    poses = load_poses(recorder.folder / "poses.npz")
    assert (len(poses), poses.complete) == (frames, False)
    assert len(json.loads((recorder.folder / "poses.json").read_text())["frames"]) == frames
    assert len(video_times(recorder.folder / "video.mp4")) >= frames - 14


@pytest.fixture
def small_disk(tmp_path):
    """`small_disk(bytes)`: a folder that is a file system of that size of its own."""
    mounted = []

    def mount(size: int) -> Path:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        try:
            subprocess.run(words, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("only root can make a small file system, and not everywhere")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("with_video", [True, False])
def test_full_disk_keeps_all_that_fits(source, small_disk, with_video):
    disk = small_disk(1_500_000)
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        recorder = Recorder(loop, disk, video=with_video)
        rng = np.random.default_rng(0)
        for number in until_it_ends(recorder):
            image = rng.integers(0, 255, (48, 64, 3), np.uint8)
            image[0, 0] = number % 256
            source.push(image, at=50 + number / 25)
        said = close_recorder(recorder)
        assert loop.running
    if with_video:
        check_what_fitted(recorder, said, "no space left on device")
        used = sum(path.stat().st_size for path in recorder.folder.iterdir())
        assert used > 0.5 * 1_500_000
    else:
        assert recorder.files.keys() == {"poses.json", "poses.npz"}
        assert len(load_poses(recorder.folder / "poses.npz")) == recorder.frames > 50
    assert not (recorder.folder / RESERVE_NAME).exists()


def test_full_disk_at_the_start_is_reported_at_once(source, small_disk):
    disk = small_disk(100_000)
    with pytest.raises(PoseError, match=r"cannot record into .*: no space left on device"):
        Recorder(LiveLoop(FakePipeline(), source), disk)
    assert list(disk.iterdir()) == []


def test_unwritable_folder_is_reported_at_once(source, small_disk):
    disk = small_disk(1_000_000)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(PoseError, match=r"cannot record into .*: read-only file system"):
        Recorder(LiveLoop(FakePipeline(), source), disk)


def test_image_size_change_starts_a_new_recording_folder(source, tmp_path):
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        recorder = Recorder(loop, tmp_path, restart_on_change=True)
        for number in range(12):
            source.push(picture(number, (64, 48) if number < 5 else (48, 96)), at=50 + number / 25)
        settled(loop, 12)
        wait_until(lambda: recorder.frames == 12)
        said = close_recorder(recorder)
    first, second = sorted(tmp_path.iterdir())
    assert said == f"recorded 5 frames into {first}; 7 frames into {second}"
    assert recorder.problem is None
    for folder, size, numbers in ((first, (64, 48), range(5)), (second, (48, 96), range(5, 12))):
        poses = load_poses(folder / "poses.npz")
        assert (poses.camera.size, poses.complete) == (size, True)
        assert poses.keypoints[:, 0, 0].tolist() == list(numbers)
        np.testing.assert_allclose(video_times(folder / "video.mp4"), poses.timestamps, atol=1e-4)
