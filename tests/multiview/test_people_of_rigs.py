"""People of several cameras: who is doubtful, whose heights count, and people fused at once equal each alone."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
import scenes

from pose.multiview.calibrate import Known
from pose.multiview.fitting import Calibrations
from pose.multiview.fuse import Fused, fuse_newest
from pose.multiview.motions import stature_of
from pose.multiview.observations import Observed, observe, observe_people
from pose.multiview.rig import find_rig
from pose.multiview.sampling import Samples
from pose.multiview.scene import CameraRun, Given, find_scene, results_of, vertical_of
from pose.multiview.types import CameraBatch
from pose.results import RunInfo
from pose.structures.camera import Camera
from pose.structures.rotations import about, to_matrix
from pose.structures.skeletons import COCO17
from pose.world.corrections import Corrections, GivenContact

NAMES = ["left", "right"]


@pytest.fixture(scope="module")
def filmed():
    """Two calibrated cameras, an adult, and a smaller person who is seen for a shorter time."""
    adult = scenes.person(1, 3.0, away=(-0.9, 0.0))
    child = 0.8 * scenes.person(5, 3.0, away=(0.9, 0.3))
    views = scenes.cameras(people=[adult, child], seed=3, seconds=3.0)
    tracks = [
        scenes.track(view, i, points, number=n + 1, noise_px=1.0)[: 74 - 10 * n]
        for i, view in enumerate(views)
        for n, points in enumerate([adult, child])
    ]
    return views, tracks


RIGS = {}  # by the frames of the tracks


def scene_of(monkeypatch, views, tracks, plans=None, **given):
    key = tuple(float(track.keypoints.sum()) for track in tracks)
    rig = RIGS[key] if key in RIGS else find_rig(tracks, scenes.exact(views), NAMES, Known(poses=True, clocks=True))
    RIGS[key] = rig
    monkeypatch.setattr("pose.multiview.fitting.find_rig", lambda *args: rig)
    runs = [
        CameraRun(
            [track for track in tracks if track.camera == index], (0.0, float(view.times[-1])), 30.0,
            Camera(camera.matrix, True, camera.size),
        )
        for index, (view, camera) in enumerate(zip(views, rig.cameras, strict=True))
    ]  # fmt: skip
    return find_scene(runs, NAMES, Given(**given), plans)


def described(scene):
    info = RunInfo(source="left, right", fps=scene.line.fps, camera=None, skeleton=COCO17)
    results, info = results_of(scene, [[], []], info)
    return list(results), info.world


@pytest.mark.parametrize("case", ["both cameras", "one camera", "elsewhere in the second camera"])
def test_a_person_without_a_second_camera_is_doubtful(monkeypatch, filmed, case):
    views, tracks = filmed
    if case == "one camera":
        tracks = tracks[:3]
    elif case == "elsewhere in the second camera":
        tracks = [*tracks[:3], replace(tracks[3], keypoints=tracks[3].keypoints + np.float32(400))]
    results, world = described(scene_of(monkeypatch, views, tracks))
    doubtful = () if case == "both cameras" else tuple(range(2, len(world.heights) + 1))
    assert world.doubtful == doubtful
    assert len(results) > 70
    for result in results:
        assert result.people.ids[result.placed.doubtful].tolist() == [i for i in result.people.ids if i in doubtful]


def test_a_doubtful_person_does_not_move_the_world(monkeypatch, filmed):
    views, tracks = filmed
    alone = described(scene_of(monkeypatch, views, tracks[::2]))[1].world
    ghost = replace(tracks[1], root=tracks[1].root + np.array([0, 3, 5], np.float32))
    again = described(scene_of(monkeypatch, views, [*tracks[::2], ghost]))[1].world
    np.testing.assert_allclose(again.up, alone.up, atol=1e-6)
    assert again.floor == pytest.approx(alone.floor, abs=1e-6)


@pytest.mark.parametrize("factor", [0.9, 1.15])
def test_heights_of_two_people_set_one_scale(monkeypatch, filmed, factor):
    views, tracks = filmed
    own = [stature_of(motion) for motion in scene_of(monkeypatch, views, tracks).motions]
    heights = {2: own[1] * factor}
    scene = scene_of(monkeypatch, views, tracks, heights=heights)
    assert stature_of(scene.motions[1]) == pytest.approx(heights[2], rel=2e-3)
    both = {1: own[0] * factor, 2: own[1] * factor}
    scene = scene_of(monkeypatch, views, tracks, heights=both)
    for motion, height in zip(scene.motions, both.values(), strict=True):
        assert stature_of(motion) == pytest.approx(height, rel=0.02)
    assert scene.rig.notes == []
    assert scene.scale_sigma < 0.02


def test_heights_that_contradict_the_images_are_named(monkeypatch, filmed):
    views, tracks = filmed
    scene = scene_of(monkeypatch, views, tracks, heights={1: 1.5, 2: 1.9, 7: 1.6})
    assert "1:1.50,2:1.90" in scene.rig.notes[0]
    assert "no person has the id 7; ids: 1, 2" in scene.rig.notes[1]
    assert scene.scale_sigma > 0.1


def plan_of(**given):
    """The edits of one camera, as `EditPlan` has them."""
    blank = {"corrections": Corrections(), "names": {}, "deleted": set(), "drawn": [], "settings": lambda joined: {}}
    return SimpleNamespace(**blank | given)


def test_edits_of_any_camera_change_people_and_world(monkeypatch, filmed):
    views, tracks = filmed
    plain = scene_of(monkeypatch, views, tracks)
    _, before = described(plain)
    said = Corrections({2: 1.5}, {1: (1.0, 0.3)}, (GivenContact(1, 0, 0.5, 1.5, on=False),))
    scene = scene_of(monkeypatch, views, tracks, {1: plan_of(corrections=said, names={2: "Bob", 7: "nobody"})})
    info = RunInfo(source="left, right", fps=scene.line.fps, camera=None, skeleton=COCO17)
    results, info = results_of(scene, [[], []], info)
    assert stature_of(scene.motions[1]) == pytest.approx(1.5, rel=2e-3)
    assert info.settings["names"] == {"2": "Bob"}
    own = scene.rig.cameras[1].common_time(np.array([0.5, 1.0, 1.5]))
    at = int(np.abs(scene.line.times - own[1]).argmin())
    here = scene.motions[0].frames == at
    ankles = info.world.world.place(scene.motions[0].joints[here][:, [3, 6]].astype(np.float64))
    assert ankles[..., 1].min() == pytest.approx(0.08 + 0.3, abs=0.02)
    off = [result.placed.contacts[0, 0] for result in results if own[0] <= result.time <= own[2]]
    assert len(off) > 10
    assert set(off) == {0.0}

    alone = scene_of(monkeypatch, views, tracks, {0: plan_of(deleted={2})})
    assert [len(motion.frames) for motion in alone.motions] == [len(plain.motions[0].frames)]

    true = before.world.up
    camera = plain.rig.cameras[1]
    ends = camera.project(camera.to_world(np.array([[0.4, 0.0, 4.0]])) + np.outer([0.0, 1.0], true))
    assert vertical_of(plain.rig, {1: plan_of(drawn=[ends])}, before.world) == pytest.approx(true, abs=1e-6)
    lean = to_matrix(about(np.array([1.0, 0.0, 0.0]), np.array(0.1)))
    leaning = replace(before.world, rotation=before.world.rotation @ lean)
    found = vertical_of(plain.rig, {1: plan_of(drawn=[ends])}, leaning)
    normal = np.cross(*(np.column_stack([camera.unproject(ends), np.ones(2)]) @ camera.rotation))
    assert abs(found @ normal / np.linalg.norm(normal)) < 0.01  # the line is vertical now


def test_the_same_tracks_are_calibrated_once(filmed, monkeypatch):
    views, tracks = filmed
    cameras, known, calls = scenes.exact(views), Known(poses=True, clocks=True), []
    rig = find_rig(tracks, cameras, NAMES, known)
    monkeypatch.setattr("pose.multiview.fitting.find_rig", lambda *args: calls.append(args) or rig)
    calibrations = Calibrations()
    first, again = (calibrations.find(tracks, cameras, NAMES, known) for _ in range(2))
    assert len(calls) == 1
    for one, other in zip(first.rig.people, again.rig.people, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[camera].keypoints, other[camera].keypoints) for camera in one)
    moved = [*tracks[:-1], replace(tracks[-1], keypoints=tracks[-1].keypoints + np.float32(0.1))]
    calibrations.find(moved, cameras, NAMES, known)
    assert len(calls) == 2


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
