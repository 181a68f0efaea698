"""Uncalibrated, unsynchronised cameras: offsets, identities and cameras from nothing but tracks."""

from dataclasses import replace

import numpy as np
import pytest
import scenes

from pose.errors import PoseError
from pose.multiview.bundle import rotation_matrix, start_body
from pose.multiview.calibrate import Known
from pose.multiview.fuse import fuse
from pose.multiview.initialise import align
from pose.multiview.rig import find_rig, moved_notes
from pose.multiview.synchronise import lags, speeds_of
from pose.multiview.types import POINTS

NAMES = ["left.mp4", "right.mp4", "third.mp4"]


def tracks_of(views, people, **changes):
    return [
        scenes.track(view, i, points, number=n + 1, **changes)
        for i, view in enumerate(views)
        for n, points in enumerate(people)
    ]


def rig_of(views, people, **changes):
    return find_rig(tracks_of(views, people, **changes), scenes.told(views), NAMES[: len(views)])


def test_time_lag_is_found_at_different_frame_rates():
    points = scenes.person(1, seconds=6.0)
    [first, second] = scenes.cameras(people=[points], seconds=6.0, offset=2.0, rates=(25.0, 60.0), seed=4)
    found = lags(speeds_of(scenes.track(first, 0, points)), speeds_of(scenes.track(second, 1, points)))
    assert second.offset > 0.2
    assert found[0].seconds == pytest.approx(second.offset, abs=0.03)


def test_rotation_is_found_despite_a_wrong_limb(rng):
    source = rng.standard_normal((30, 12, 3)) * 0.4
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turn *= np.linalg.det(turn)
    target = source @ turn.T
    target[:, 3:5] += 0.6
    found, residual = align(source, target)
    assert scenes.degrees_between(found, turn) < 0.5
    assert residual < 0.02


def test_two_cameras_are_calibrated_without_input():
    points = scenes.person(1)
    views = scenes.cameras(people=[points], offset=1.0, seed=2, fov=(50.0, 62.0))
    rig = rig_of(views, [points], noise_px=1.0)
    truth = scenes.exact(views)
    assert scenes.degrees_between(rig.cameras[1].rotation, truth[1].rotation) < 1.0
    assert rig.cameras[1].offset == pytest.approx(views[1].offset, abs=0.008)
    direction = rig.cameras[1].position / np.linalg.norm(rig.cameras[1].position)
    assert direction @ (truth[1].position / np.linalg.norm(truth[1].position)) > np.cos(np.radians(2))
    assert rig.accuracy[1].rotation < 3
    assert rig.notes == []
    for camera, view in zip(rig.cameras, views, strict=True):
        assert camera.focal == pytest.approx(view.matrix[0, 0], rel=0.06)


def test_repeated_motion_does_not_make_a_calibration_more_certain():
    """A detector repeats its errors with the images, as in a clip that is played in a loop."""
    points, seconds, times = scenes.person(1, 4.0), 4.0, 4

    def looped(track):
        arrays = {
            name: np.concatenate([getattr(track, name)] * times)
            for name in ("keypoints", "scores", "joints", "root", "sigma")
        }
        starts = seconds * np.arange(times)[:, None]
        return replace(track, times=(track.times + starts).ravel(), **arrays)

    views = scenes.cameras(people=[points], seed=2, seconds=seconds - 0.1)
    tracks = tracks_of(views, [points], noise_px=2.0)
    known = Known(capture_times=True)
    once = find_rig(tracks, scenes.told(views), NAMES[:2], known).accuracy[1]
    often = find_rig([looped(track) for track in tracks], scenes.told(views), NAMES[:2], known).accuracy[1]
    for name in ("rotation", "position", "focal"):
        assert getattr(often, name) > 0.85 * getattr(once, name)


@pytest.mark.parametrize("size", [0.8, 1.0, 1.3])
def test_people_have_the_size_of_the_lifted_bodies(size):
    points = scenes.person(1, 3.0)
    views = scenes.cameras(people=[points], seed=2, seconds=3.0)
    tracks = [
        replace(track, joints=np.float32(size) * track.joints, root=np.float32(size) * track.root)
        for track in tracks_of(views, [points], noise_px=2.0)
    ]
    rig = find_rig(tracks, scenes.told(views), NAMES[:2], Known(clocks=True))
    lifted = np.mean([start_body(track.joints[:, POINTS]).bones[:8].sum() for track in tracks])
    assert rig.scale == pytest.approx(1)
    assert rig.bones[0][:8].sum() == pytest.approx(lifted, rel=0.02)


def test_given_calibration_is_kept_exactly():
    points = scenes.person(1)
    views = scenes.cameras(people=[points], offset=1.0, seed=2)
    cameras = scenes.exact(views)
    rig = find_rig(tracks_of(views, [points]), cameras, NAMES[:2], Known(poses=True, clocks=True))
    for found, given in zip(rig.cameras, cameras, strict=True):
        assert (found.rotation == given.rotation).all()
        assert (found.translation == given.translation).all()
        assert found.focal == given.focal
        assert found.offset == given.offset


@pytest.mark.parametrize(("degrees", "expected"), [(0.0, ""), (3.0, "right.mp4 is rotated by 3")])
def test_rotated_calibrated_camera_is_named(degrees, expected):
    points = scenes.person(1)
    views = scenes.cameras((0.0, 80.0, 190.0), people=[points], seed=2)
    cameras = scenes.exact(views)
    turn = rotation_matrix(np.radians(degrees) * np.array([0.0, 1.0, 0.0]))
    wrong = replace(cameras[1], rotation=turn @ cameras[1].rotation, translation=turn @ cameras[1].translation)
    tracks = {i: scenes.track(view, i, points, noise_px=1.0) for i, view in enumerate(views)}
    found = " ".join(moved_notes([tracks], [cameras[0], wrong, cameras[2]], NAMES))
    assert expected in found
    assert bool(expected) == bool(found)


def test_people_are_matched_across_cameras_without_merging():
    people = [scenes.person(1, away=(-0.9, 0.0)), scenes.person(5, away=(0.9, 0.3))]
    views = scenes.cameras((0.0, 80.0, 190.0), people=people, offset=0.5, seed=3)
    rig = rig_of(views, people, noise_px=1.0)
    assert sorted(tuple(sorted((c, t.number) for c, t in one.items())) for one in rig.people) == [
        ((0, 1), (1, 1), (2, 1)),
        ((0, 2), (1, 2), (2, 2)),
    ]


def test_broken_tracks_and_single_camera_people_are_kept():
    people = [scenes.person(1, away=(-0.9, 0.0)), scenes.person(5, away=(0.9, 0.3))]
    views = scenes.cameras(people=people, seed=3)
    tracks = tracks_of(views, people, noise_px=1.0)
    tracks.pop(3)  # the second person is not in the second camera
    whole = tracks[2]
    half = len(whole) // 2
    tracks[2] = whole[: half - 3]
    tracks.append(scenes.ViewTrack(1, 7, *(getattr(whole[half + 3 :], name) for name in whole.__slots__[2:])))
    rig = find_rig(tracks, scenes.told(views), NAMES[:2])
    cameras = sorted(sorted(one) for one in rig.people)
    assert cameras == [[0], [0, 1]]
    joined = next(one for one in rig.people if len(one) == 2)
    assert len(joined[1]) == len(whole) - 6


def test_fused_joints_are_more_accurate_than_one_camera():
    points = scenes.person(1)
    views = scenes.cameras((0.0, 90.0, 200.0), people=[points], seed=2)
    tracks = {i: scenes.track(view, i, points, noise_px=2.0) for i, view in enumerate(views)}
    cameras = scenes.exact(views)
    instants = np.arange(15, 120) / 30
    world = scenes.truth_at(points, scenes.RATE, instants)
    truth = world[:, :17] @ views[0].rotation.T + views[0].translation
    rig_bones = scenes.bones_of(world)
    parts = list(fuse(tracks, cameras, instants, rig_bones))
    joints = np.concatenate([part.joints for part in parts])
    np.testing.assert_allclose(np.concatenate([part.instants for part in parts]), instants, atol=1e-9)
    off = 1000 * np.linalg.norm(joints - truth, axis=-1)
    assert np.median(off) < 20
    assert np.concatenate([part.observed for part in parts], axis=1).mean() > 0.95
    assert (np.concatenate([part.sigma for part in parts]) > 0).all()


def test_sigma_follows_the_errors_of_the_keypoints(rng):
    points = scenes.person(1)
    views = scenes.cameras((0.0, 90.0, 200.0), people=[points], seed=2)
    cameras, instants = scenes.exact(views), np.arange(30, 90) / 30
    bones = scenes.bones_of(scenes.truth_at(points, scenes.RATE, instants))
    sigma = []
    for lasting_px in (6.0, 18.0):
        tracks = {i: scenes.track(view, i, points, noise_px=1.0) for i, view in enumerate(views)}
        for track in tracks.values():
            track.keypoints[:] += rng.normal(0, lasting_px, (1, *track.keypoints.shape[1:])).astype(np.float32)
        [part] = fuse(tracks, cameras, instants, bones)
        sigma.append(np.median(part.sigma[:, POINTS]))
    assert 1.5 < sigma[1] / sigma[0] < 3.5


def test_single_camera_joint_stays_on_its_ray():
    points = scenes.person(1)
    views = scenes.cameras(people=[points], seed=2)
    tracks = {i: scenes.track(view, i, points) for i, view in enumerate(views)}
    tracks[1].scores[:, 13] = 0  # the left wrist
    tracks[1].sigma[:, 13] = 200  # mm, as a lifter has it for what is not seen
    cameras = scenes.exact(views)
    world = scenes.truth_at(points, scenes.RATE, np.arange(30, 60) / 30)
    bones = scenes.bones_of(world)
    [part] = fuse(tracks, cameras, np.arange(30, 60) / 30, bones)
    pixels = cameras[0].project(part.joints[:, 13])
    truth = views[0].project(world[:, 13].astype(float))
    assert np.median(np.linalg.norm(pixels - truth, axis=-1)) < 12
    assert part.sigma[:, 13].mean() > 1.3 * part.sigma[:, 16].mean()
    assert not part.observed[1, :, 13].any()


def test_swapped_legs_of_one_camera_are_corrected():
    points = scenes.person(1)
    views = scenes.cameras((0.0, 80.0, 190.0), people=[points], seed=2)
    tracks = {i: scenes.track(view, i, points) for i, view in enumerate(views)}
    right, left = [1, 2, 3], [4, 5, 6]
    rows = slice(40, 55)
    swapped = tracks[1].keypoints.copy()
    tracks[1].keypoints[rows, right], tracks[1].keypoints[rows, left] = swapped[rows, left], swapped[rows, right]
    cameras = scenes.exact(views)
    instants = np.arange(10, 100) / 30
    world = scenes.truth_at(points, scenes.RATE, instants)
    bones = scenes.bones_of(world)
    parts = list(fuse(tracks, cameras, instants, bones))
    seen = np.concatenate([part.observed for part in parts], axis=1)
    # Swapped again, the camera's ankles agree with the joints and count as seen.
    assert seen[1][:, [3, 6]].mean() > 0.9


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("twice", "the same view as left.mp4"),
        ("empty", "right.mp4: no person found"),
        ("other people", "are these videos of the same moment"),
    ],
)
def test_uncalibratable_rig_gives_a_one_line_error(case, message):
    points = scenes.person(1)
    views = scenes.cameras(people=[points], seed=2)
    tracks = tracks_of(views, [points], noise_px=1.0)
    if case == "twice":
        tracks[1] = scenes.track(views[0], 1, points, noise_px=1.0)
        views = [views[0], views[0]]
    elif case == "empty":
        tracks = tracks[:1]
    else:
        tracks[1] = scenes.track(views[1], 1, scenes.person(11), noise_px=1.0)
    with pytest.raises(PoseError, match=message) as caught:
        find_rig(tracks, scenes.told(views), NAMES[:2])
    assert "\n" not in str(caught.value)
