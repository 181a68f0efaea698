"""Memory of long recordings: beside the tracks themselves, steps need memory for a part of them only."""

import tracemalloc

import numpy as np
import pytest
import scenes

from pose.multiview.collect import collect_tracks
from pose.multiview.identities import agree
from pose.multiview.initialise import RATE as COMPARED_RATE
from pose.multiview.initialise import _together
from pose.multiview.sampling import MAX_COMPARED, comparison_times, sample
from pose.multiview.synchronise import speeds_of
from pose.multiview.types import ViewTrack
from pose.skeletons import COCO17
from pose.types import FrameResult, People, Poses3D

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


def test_a_sample_does_not_copy_the_track(short):
    track = repeated(short[0])
    instants = 1000 + np.arange(100) / 30
    assert peak_megabytes(lambda: sample(track, instants)) < 3  # the 3D of the track alone has 17 MB
    few = sample(track[29_000:33_500], instants)
    for name in ("pixels", "joints", "root", "sigma", "scores"):
        np.testing.assert_array_equal(getattr(sample(track, instants), name), getattr(few, name))


def test_comparing_tracks_takes_memory_for_a_bounded_number_of_times(short, views):
    one, other = (repeated(track) for track in short)
    cameras = scenes.exact(views)
    found = []
    assert (
        peak_megabytes(lambda: found.append(agree(one, other, *cameras))) < 40
    )  # 28 MB; at 10 samples/s five times as much
    alike = agree(repeated(short[0], 3000), repeated(short[1], 3000), *cameras)
    assert found[0].cost == pytest.approx(alike.cost, rel=0.05)
    assert found[0].weight == pytest.approx(FRAMES / 30, rel=1e-3)
    assert peak_megabytes(lambda: found.append(_together(one, other, 0.0))) < 40
    assert found[1][4] == pytest.approx(FRAMES / 30, rel=1e-3)


def test_comparison_times_are_those_of_the_rate_until_there_are_too_many():
    np.testing.assert_allclose(comparison_times(1.0, 2.0, COMPARED_RATE), 1 + np.arange(11) / 10)
    assert len(comparison_times(3.0, 2.0, COMPARED_RATE)) == 0
    many = comparison_times(0.0, 3600.0, COMPARED_RATE)
    assert len(many) == MAX_COMPARED
    assert many[[0, -1]].tolist() == [0.0, 3600.0]


def test_speeds_in_blocks_are_those_of_the_whole(short, monkeypatch):
    track = repeated(short[0], 9000)
    whole = speeds_of(track)
    monkeypatch.setattr("pose.multiview.synchronise.AT_ONCE", 100)
    blocks = speeds_of(track)
    np.testing.assert_array_equal(blocks.values, whole.values)
    np.testing.assert_array_equal(blocks.seen, whole.seen)


def test_tracks_are_collected_with_little_more_memory_than_their_own():
    frames, rng = 4000, np.random.default_rng(0)
    keypoints, joints = rng.normal(300, 50, (1, 17, 2)).astype(np.float32), rng.normal(0, 1, (1, 17, 3))
    ones = np.ones((1, 17), np.float32)

    def results():
        for at in range(frames):
            people = People(at, at / 30, np.array([3]), np.zeros((1, 4), np.float32), ones[:, 0], keypoints + at, ones)
            yield FrameResult(people, Poses3D(joints.astype(np.float32), np.ones((1, 3), np.float32), ones))

    found = []
    peak = peak_megabytes(lambda: found.extend(collect_tracks(results(), COCO17, 1)))
    (track,) = found
    size = (
        sum(getattr(track, name).nbytes for name in ("times", "keypoints", "scores", "joints", "root", "sigma")) / 1e6
    )
    assert peak < 2.6 * size  # 2.0; an array for each row took 4.9 times as much
    assert (track.camera, track.number, len(track)) == (1, 3, frames)
    np.testing.assert_allclose(np.diff(track.times), 1 / 30, atol=1e-9)
    np.testing.assert_allclose(np.diff(track.keypoints[:, 11, 0]), 1, atol=1e-3)
