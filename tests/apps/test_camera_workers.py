"""The 2D of several cameras at the same time: the same results, one error, and an end when it is asked for."""

import shutil
import threading

import numpy as np
import pytest
from pose_detectors.full_frame import FullFrameDetector
from short_clips import beginning

from pose.config import PipelineConfig, for_each_camera
from pose.errors import PoseError
from pose.functions import several
from pose.multiview import run as run_module
from pose.multiview.run import RecordedCameras, camera_workers, known_setup
from pose.pipeline import Pipeline
from pose.results.run import unreported


@pytest.fixture(scope="module")
def made(videos, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    for clip, name, seconds in (("a", "dance", 0.3), ("b", "squats", 0.3), ("c", "dance", 0.5)):
        beginning(videos / f"{name}.mp4", folder / f"{clip}.mp4", seconds)
    return folder


@pytest.fixture
def clips(made, tmp_path):
    return [str(shutil.copy(clip, tmp_path)) for clip in sorted(made.iterdir())]


@pytest.fixture
def pipeline(at_hand):
    return Pipeline(PipelineConfig(threads=1, camera="fixed"), lazy=True)


def tracked(clips, pipeline, folder, workers, stop=None, progress=unreported):
    setup = known_setup(clips[:1], None)
    options = {"stop": stop, "progress": progress, "folder": folder, "workers": workers}
    with RecordedCameras(clips, pipeline, setup, **options) as run:
        return run.track()


def test_parallel_camera_workers_give_equal_results(clips, pipeline, tmp_path):
    one = tracked(clips, pipeline, tmp_path, 1)
    parallel = tracked(clips, pipeline, tmp_path, 2)
    assert len(one) == len(parallel) == 3
    for alone, beside in zip(one, parallel, strict=True):
        assert alone.run.video == beside.run.video
        for expected, found in zip(alone.run.tracks, beside.run.tracks, strict=True):
            np.testing.assert_array_equal(found.keypoints, expected.keypoints)
            np.testing.assert_array_equal(found.joints, expected.joints)


def test_error_of_one_camera_ends_all_workers(clips, pipeline, tmp_path):
    (tmp_path / "b.mp4").write_text("no video")
    before = threading.active_count()
    with pytest.raises(PoseError, match=r"b\.mp4: not a video"):
        tracked(clips, pipeline, tmp_path, 2)
    assert threading.active_count() == before


def test_stop_ends_all_workers(clips, pipeline, tmp_path):
    stop = threading.Event()

    def shown(results, source, what):
        for result in results:
            stop.set()
            yield result

    before = threading.active_count()
    found = tracked(clips, pipeline, tmp_path, 2, stop, shown)
    assert threading.active_count() == before
    assert {seen.run.video for seen in found} <= set(clips[:2])  # a worker that was stopped takes no further camera
    assert tracked(clips, pipeline, tmp_path, 3, stop) == []


def test_duplicate_camera_videos_are_rejected(clips, pipeline, tmp_path):
    (tmp_path / "c.mp4").write_bytes((tmp_path / "a.mp4").read_bytes())
    before = threading.active_count()
    with pytest.raises(PoseError, match=r"c\.mp4: has the same images as .*a\.mp4"):
        tracked(clips, pipeline, tmp_path, 2)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("cores", "megabytes", "workers", "threads"),
    [(2, 8000.0, 2, 1), (1, 8000.0, 1, 1), (16, None, 3, 2), (16, 2600.0, 2, 2), (16, 100.0, 1, 2), (4, 100.0, 1, 1)],
)
def test_workers_are_bounded_by_cores_and_memory(monkeypatch, cores, megabytes, workers, threads):
    for module in ("pose.multiview.run", "pose.config"):
        monkeypatch.setattr(f"{module}.available_cores", lambda: cores)
    monkeypatch.setattr("pose.multiview.run.available_megabytes", lambda: megabytes)
    assert camera_workers(3, "cpu") == workers
    assert for_each_camera(PipelineConfig(threads=2), 3).threads == threads  # whatever the memory


def test_gpu_uses_one_camera_worker(monkeypatch):
    monkeypatch.setattr("pose.multiview.run.resolve_device", lambda device: "cuda")
    assert camera_workers(4, "auto") == 1


@pytest.mark.parametrize("custom", [False, True])
def test_the_python_api_processes_cameras_at_the_same_time(clips, pipeline, monkeypatch, custom):
    class StopError(Exception):
        pass

    def end(runs, *_):
        raise StopError([run.video for run in runs])

    names, run = set(), Pipeline.run

    def named(self, source, stop=None):
        names.add(threading.current_thread().name)
        together.wait() if not custom else None
        return run(self, source, stop=stop)

    together = threading.Barrier(3, timeout=60)  # passes only if three cameras are processed at once
    monkeypatch.setattr(run_module, "camera_workers", lambda count, device: 3)
    monkeypatch.setattr(run_module, "find_scene", end)
    monkeypatch.setattr(Pipeline, "run", named)
    if custom:
        pipeline = Pipeline(pipeline.config, lazy=True, detector=FullFrameDetector())
    with pytest.raises(StopError) as stopped:
        several(clips, pipeline=pipeline)
    assert stopped.value.args[0] == clips
    assert names == {f"camera worker {number}" for number in range(1 if custom else 3)}
