"""Memory of long recordings: beside the tracks themselves, steps need memory for a part of them only."""

import errno
import tempfile
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scenes

from pose.errors import PoseError
from pose.multiview.identities import compare_tracks, merge_tracks
from pose.multiview.initialise import _common_motion
from pose.multiview.stored import collect_tracks
from pose.multiview.types import ViewTrack
from pose.structures.skeletons import COCO17
from pose.structures.types import FrameResult, People, Poses3D

FRAMES = 60_000  # 33 minutes


@pytest.fixture(scope="module")
def views():
    return scenes.cameras(people=[scenes.person(1)], seed=2, rates=(30.0,))


@pytest.fixture(scope="module")
def short(views):
    """A track of each camera, 150 frames."""
    return [scenes.track(view, i, scenes.person(1)) for i, view in enumerate(views)]


def repeated(track: ViewTrack, frames: int = FRAMES) -> ViewTrack:
    """The track forwards and backwards, again and again."""
    rows = np.arange(frames) % (2 * len(track))
    rows = np.where(rows < len(track), rows, 2 * len(track) - 1 - rows)
    parts = (getattr(track, name)[rows] for name in ("keypoints", "scores", "joints", "root", "sigma"))
    return ViewTrack(track.camera, track.number, np.arange(frames) / 30, *parts)


def peak_megabytes(work):
    """Peak of the memory that `work` takes beyond what there is already."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_comparing_tracks_takes_memory_for_a_bounded_number_of_times(short, views):
    one, other = (repeated(track) for track in short)
    cameras = scenes.exact(views)
    found = []
    assert (
        peak_megabytes(lambda: found.append(compare_tracks(one, other, *cameras))) < 40
    )  # 28 MB; at 10 samples/s five times as much
    alike = compare_tracks(repeated(short[0], 3000), repeated(short[1], 3000), *cameras)
    assert found[0].cost == pytest.approx(alike.cost, rel=0.05)
    assert found[0].overlap_s == pytest.approx(FRAMES / 30, rel=1e-3)
    assert peak_megabytes(lambda: found.append(_common_motion(one, other, 0.0))) < 40
    assert found[1][4] == pytest.approx(FRAMES / 30, rel=1e-3)


PARTS = ("times", "keypoints", "scores", "joints", "root", "sigma")


class Recording:
    """Results of one person who moves by a pixel per frame."""

    def __init__(self, frames):
        rng = np.random.default_rng(0)
        self.frames = frames
        self.keypoints = rng.normal(300, 50, (1, 17, 2)).astype(np.float32)
        self.joints = rng.normal(0, 1, (1, 17, 3)).astype(np.float32)

    def __iter__(self):
        ones = np.ones((1, 17), np.float32)
        for at in range(self.frames):
            boxes, keypoints = np.zeros((1, 4), np.float32), self.keypoints + at
            people = People(at, at / 30, np.array([3]), boxes, ones[:, 0], keypoints, ones)
            yield FrameResult(people, Poses3D(self.joints, np.ones((1, 3), np.float32), ones))


@pytest.mark.slow
def test_memory_of_collected_tracks_does_not_grow_with_the_recording():
    found = []
    peaks = [
        peak_megabytes(lambda frames=frames: found.append(collect_tracks(Recording(frames), COCO17, 1)))
        for frames in (10_000, 40_000)
    ]
    (track,) = found[1]
    size = sum(getattr(track, name).nbytes for name in PARTS) / 1e6
    assert size > 19  # MB
    assert peaks[1] - peaks[0] < 1.5  # the times, 0.2 MB, twice
    assert (track.camera, track.number, len(track)) == (1, 3, 40_000)
    np.testing.assert_allclose(np.diff(track.times), 1 / 30, atol=1e-9)
    np.testing.assert_allclose(np.diff(track.keypoints[:, 11, 0]), 1, atol=1e-2)
    assert not track.keypoints.flags.writeable


def test_joined_tracks_equal_in_memory_and_on_disk(short, monkeypatch):
    whole = short[0]
    parts = [replace(whole[rows], number=number) for number, rows in enumerate((slice(0, 60), slice(50, None)), 7)]
    joined = [merge_tracks(parts, [0, 1])[whole.camera]]
    monkeypatch.setattr("pose.multiview.stored.MAX_ROWS_IN_MEMORY", 0)
    monkeypatch.setattr("pose.multiview.stored.BATCH_ROWS", 32)
    joined.append(merge_tracks(parts, [0, 1])[whole.camera])
    for track in joined:
        assert track.number == 8  # of the longer part
        for name in PARTS:
            np.testing.assert_array_equal(getattr(track, name), getattr(whole, name))


def test_full_disk_during_collection_gives_one_line(tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(PoseError, match=r"No space left on device$"):
        collect_tracks(Recording(10), COCO17, 1, tmp_path)
