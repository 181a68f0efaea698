"""People who are fused at once: each is equal to the person fused alone, whatever the others are."""

from dataclasses import fields

import numpy as np
import pytest
import scenes

from pose.multiview.fuse import Fused, fuse_newest
from pose.multiview.observations import Observed, observe, observe_people
from pose.multiview.sampling import Samples
from pose.multiview.types import CameraBatch

NOW = 1.5  # s
KNOTS = NOW - np.arange(4)[::-1] / 30
PLACES = ((0.0, 0.0), (-1.2, 0.4), (1.1, -0.3), (0.2, 1.3))
AZIMUTHS = (0.0, 80.0, 190.0)


@pytest.fixture(scope="module")
def crowd():
    """Three cameras, and four people with what goes wrong: each as tracks by camera, bone lengths and a correction."""
    motions = [scenes.person(seed, 2.0, away) for seed, away in enumerate(PLACES, 1)]
    views = scenes.cameras(AZIMUTHS, people=motions, seed=2, seconds=2.0, rates=(30.0, 25.0, 60.0), radial=0.05)
    people, bones = [], []
    for points in motions:
        tracks = {i: scenes.track(view, i, points, noise_px=3.0) for i, view in enumerate(views)}
        people.append({i: track[(track.times > NOW - 0.3) & (track.times <= NOW)] for i, track in tracks.items()})
        bones.append(scenes.bones_of(scenes.truth_at(points, scenes.RATE, KNOTS)))
    people[0][1].keypoints[:] = people[0][1].keypoints[:, [0, 4, 5, 6, 1, 2, 3, *range(7, 17)]]  # swapped legs
    people[1] = {2: people[1][2]}  # seen by one camera
    people[2] = {i: track[-1:] for i, track in people[2].items()}  # without a past
    people[3][0].scores[:, 13] = 0  # a joint that is not detected
    cameras, lengths = scenes.exact(views), np.stack(bones)
    observed = observe_people(people, cameras, KNOTS)
    before = fuse_newest(observed, CameraBatch.of(cameras), [None] * 4, lengths)
    moved = [one.correction + 0.003 for one in before]  # m
    scattered = 0.05 * np.random.default_rng(5).standard_normal(moved[3].shape)
    corrections = [moved[0], moved[1], None, moved[3] + scattered]  # the last one is worse than the lifted points
    return cameras, people, lengths, corrections


def assert_equal(found: Samples | Observed | Fused, expected: Samples | Observed | Fused, tolerance: float) -> None:
    for one in fields(found):
        values = getattr(found, one.name), getattr(expected, one.name)
        np.testing.assert_allclose(*values, rtol=tolerance, atol=tolerance, err_msg=one.name)


def test_batched_observation_equals_single_people(crowd):
    cameras, people, _, _ = crowd
    several = observe_people(people, cameras, KNOTS)
    for person, tracks in enumerate(people):
        parts = [getattr(several, one.name)[:, person] for one in fields(Observed)[1:-1]]
        assert_equal(Observed(several.knots, *parts, several.own), observe(tracks, cameras, KNOTS), 1e-12)


@pytest.mark.parametrize("order", [(0,), (0, 1), (3, 1), (2, 0, 3), (0, 1, 2, 3), (3, 2, 1, 0), (2, 2)])
def test_batched_fusion_equals_single_people(crowd, order):
    cameras, people, bones, corrections = crowd
    batch = CameraBatch.of(cameras)

    def fused(rows):
        observed = observe_people([people[row] for row in rows], cameras, KNOTS)
        return fuse_newest(observed, batch, [corrections[row] for row in rows], bones[list(rows)])

    for row, found in zip(order, fused(order), strict=True):
        (expected,) = fused((row,))
        assert_equal(found.fused, expected.fused, 1e-9)
        np.testing.assert_allclose(found.points, expected.points, atol=1e-9)
        np.testing.assert_allclose(found.correction, expected.correction, atol=1e-9)


@pytest.mark.parametrize("away", [1.0, 5.0, 50.0], ids="{:g} m".format)
def test_correction_far_from_the_person_is_ignored(crowd, away):
    """All cameras disagree with it, so that their trust is low there."""
    cameras, people, bones, _ = crowd
    batch, observed = CameraBatch.of(cameras), observe_people(people, cameras, KNOTS)
    without = fuse_newest(observed, batch, [None] * 4, bones)
    for axis in np.eye(3):
        far = [one.correction + away * axis for one in without]
        for found, expected in zip(fuse_newest(observed, batch, far, bones), without, strict=True):
            np.testing.assert_allclose(found.points, expected.points, atol=1e-9)


def test_batched_projection_equals_each_camera(crowd, rng):
    cameras = crowd[0]
    batch = CameraBatch.of(cameras)
    points = rng.uniform([-1.0, -1.0, 2.5], [1.0, 1.0, 4.0], (2, 5, 3))
    points[0, 0] = cameras[1].position  # at the centre of a camera
    own = np.stack([camera.to_camera(points) for camera in cameras])
    pixels, by_point = batch.projected(points)
    for index, camera in enumerate(cameras):
        np.testing.assert_allclose(batch.project(points)[index], camera.project(points), atol=1e-9)
        np.testing.assert_allclose(pixels[index], camera.project(points), atol=1e-9)
    np.testing.assert_allclose(batch.to_world(own), np.broadcast_to(points, own.shape), atol=1e-12)
    np.testing.assert_allclose(batch.to_world_axes(own)[2], own[2] @ cameras[2].rotation, atol=1e-12)
    for axis in range(3):
        step = 1e-6 * np.eye(3)[axis]
        expected = (batch.project(points[1] + step) - batch.project(points[1] - step)) / 2e-6
        np.testing.assert_allclose(np.moveaxis(by_point[:, :, 1, :, axis], 1, -1), expected, rtol=1e-5, atol=1e-3)
