"""Motions in a temporary file: equal to those in memory, byte for byte, and long ones take no memory."""

import tracemalloc
from dataclasses import fields, replace

import numpy as np
import pytest
import scenes

from pose.multiview.motions import FusedTimes, contacts_of, find_motions, find_world, stature_of
from pose.multiview.rig import Accuracy, Rig
from pose.multiview.stored import FusedMotion, motion_row, scaled_motions, stored_motions
from pose.world.gravity import BodyMotion, find_gravity

FRAMES = 60_000  # 33 minutes
LINE = FusedTimes(np.arange(FRAMES) / 30, 0.0)
PARTS = [one.name for one in fields(FusedMotion)]


@pytest.fixture(scope="module")
def rig():
    """Two people in exact cameras; the second one is not seen for a time that is too long for one gap."""
    people = [scenes.person(1, 8.0, (-0.7, 0.0)), scenes.person(2, 8.0, (0.7, 0.2))]
    views = scenes.cameras(people=people, seed=2, seconds=8.0, rates=(30.0,))
    tracks = [
        {i: scenes.track(view, i, points, number, noise_px=1.0) for i, view in enumerate(views)}
        for number, points in enumerate(people, 1)
    ]
    tracks[1] = {i: track[(track.times < 2.0) | (track.times > 6.0)] for i, track in tracks[1].items()}
    bones = [scenes.bones_of(scenes.truth_at(points, scenes.RATE, np.arange(30, 60) / 30)) for points in people]
    accuracy = [Accuracy(0, 0, 0, 0, 0, 0, 0.0)] * 2
    return Rig(scenes.exact(views), tracks, [[(0, 1), (1, 1)], [(0, 2), (1, 2)]], bones, accuracy, 1.0, [(), ()])


@pytest.fixture
def in_files(monkeypatch):
    """Put even the smallest motion into a file, in small portions."""
    monkeypatch.setattr("pose.multiview.stored.MAX_ROWS_IN_MEMORY", 0)
    monkeypatch.setattr("pose.multiview.motions.MAX_ROWS_IN_MEMORY", 0)
    for module in ("stored", "motions"):
        monkeypatch.setattr(f"pose.multiview.{module}.BATCH_ROWS", 50)


def in_bytes(motions):
    return [{name: np.ascontiguousarray(getattr(one, name)).tobytes() for name in PARTS} for one in motions]


def long_motion():
    """The motion of a person who stands and waves, stored as that of a long recording."""
    rng = np.random.default_rng(3)
    world = scenes.person(4, 4.0)[::2, :17]
    seen = (world * (1, -1, -1) + (0, 1.2, 4.0)).astype(np.float32)  # y down, 4 m before the camera

    def portions():
        for first in range(0, FRAMES, 1000):
            rows = np.zeros(1000, motion_row(2))
            rows["frames"] = np.arange(first, first + 1000)
            rows["joints"] = seen[rows["frames"] % len(seen)]
            rows["sigma"] = rng.uniform(10, 40, (1000, 17))
            yield rows

    return stored_motions(portions(), [FRAMES], motion_row(2))[0]


def peak_megabytes(work):
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_motions_on_disk_equal_memory(rig, request):
    line = FusedTimes(np.arange(240) / 30, 0.0)
    motions = find_motions(rig, line)
    scaled, world = scaled_motions(motions, 1.1), find_world(motions, line)
    assert len(motions[0].frames) == 240
    assert 150 < len(motions[1].frames) < 170  # 4 s less the ends of the gap
    request.getfixturevalue("in_files")
    stored = find_motions(rig, line)
    assert in_bytes(stored) == in_bytes(motions)
    assert in_bytes(scaled_motions(stored, 1.1)) == in_bytes(scaled)
    again = find_world(stored, line)
    np.testing.assert_array_equal(again.rotation, world.rotation)
    assert (again.floor, again.sigma_degrees) == (world.floor, world.sigma_degrees)
    assert [stature_of(one) for one in stored] == [stature_of(one) for one in motions]
    for motion in stored:
        assert not motion.joints.flags.writeable
        np.testing.assert_array_equal(
            contacts_of(motion, world, line),
            contacts_of(replace(motion, joints=motion.joints.copy(), frames=motion.frames.copy()), world, line),
        )


def test_scaling_multiplies_joints_and_sigma_only(rig):
    motions = find_motions(rig, FusedTimes(np.arange(240) / 30, 0.0))
    for one, other in zip(motions, scaled_motions(motions, 2.0), strict=True):
        np.testing.assert_array_equal(other.joints, 2 * one.joints)
        np.testing.assert_array_equal(other.sigma, 2 * one.sigma)
        for name in ("frames", "seen_by", "residual"):
            np.testing.assert_array_equal(getattr(other, name), getattr(one, name))
    assert scaled_motions([], 2.0) == []


def test_long_motion_takes_bounded_memory():
    motion, peak = peak_megabytes(long_motion)
    size = sum(getattr(motion, name).nbytes for name in PARTS) / 1e6
    assert size > 17  # MB
    assert peak < 2  # one portion
    assert peak_megabytes(lambda: scaled_motions([motion], 1.1))[1] < 5  # a portion, twice
    assert peak_megabytes(lambda: stature_of(motion))[1] < 8  # one pair of bones
    world, peak = peak_megabytes(lambda: find_world([motion], LINE))
    assert peak < 22  # ankles and times; the joints in float64 alone have 24 MB
    joints = motion.joints.astype(np.float64)
    standing = BodyMotion((motion.joints - motion.joints[:, :1]).astype(np.float64), joints[:, 0], LINE.times)
    np.testing.assert_array_equal(world.rotation, find_gravity([standing]).rotation)
