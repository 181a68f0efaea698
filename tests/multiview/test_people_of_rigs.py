"""People of several cameras: who is doubtful, and whose heights set the scale."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scenes

from pose.multiview.calibrate import Known
from pose.multiview.fitting import Calibrations
from pose.multiview.motions import stature_of
from pose.multiview.rig import find_rig
from pose.multiview.scene import CameraRun, Given, find_scene, results_of, vertical_of
from pose.results import RunInfo
from pose.structures.camera import Camera
from pose.structures.rotations import about, to_matrix
from pose.structures.skeletons import COCO17
from pose.world.given import Corrections, GivenContact

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
