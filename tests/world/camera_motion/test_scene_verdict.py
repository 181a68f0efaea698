"""Each scene of a clip is judged on its own, and only scenes whose motion is known have a world."""

import json
from importlib.resources import files
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest

from pose.results.run_info import MotionInfo
from pose.structures.camera_rotations import to_matrix
from pose.structures.types import NO_LINK, Background
from pose.world.camera_motion.decision import decide
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, STATIC, TRANSLATING, UNKNOWN, classify

FPS = 15
LINKS = np.full((2, 6), float(NO_LINK))


def clip(*scenes):
    """Path and comparisons of scenes, each (s, degrees of its pan, parallax in rad, whether its view is known)."""
    pans, numbers, sigmas, measured = [], [], [], []
    for number, (seconds, degrees, parallax, known) in enumerate(scenes):
        count = round(seconds * FPS)
        measured += [
            (len(pans) + at, Background(LINKS, 50, 1.0, 20.0, parallax, 1.0, 0.02)) for at in range(3, count, 6)
        ]
        pans += np.linspace(0, degrees, count).tolist()
        numbers += [number] * count
        sigmas += [0.001 if known else np.nan] * count
    vectors = np.zeros((len(pans), 3))
    vectors[:, 1] = np.radians(pans)
    times = np.arange(len(pans)) / FPS
    path = CameraPath(times, to_matrix(vectors), np.ones(len(pans)), np.array(sigmas), np.array(numbers))
    return path, measured, np.ones(len(pans), bool)


def test_short_translating_scene_is_not_outvoted():
    assert classify(*clip((20, 30, 0.0, True))).kind == ROTATING
    assert classify(*clip((4, 30, 0.02, True))).kind == TRANSLATING
    found = classify(*clip((20, 30, 0.0, True), (4, 30, 0.02, True)))
    assert found.kind == TRANSLATING
    assert found.parallax == pytest.approx(np.degrees(0.02))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_pan_in_any_scene_counts(order):
    """A pan was taken for a shake if the last scene stood still."""
    scenes = (10, 30, 0.0, True), (10, 0.5, 0.0, True)
    found = classify(*clip(*(scenes[at] for at in order)))
    assert found.kind == ROTATING
    assert found.pan == pytest.approx(30, abs=0.5)
    assert found.excludes_translation


def test_unknown_scene_with_people_gives_no_world():
    path, measured, peopled = clip((10, 0, 0.0, True), (3, 0, 0.0, False))
    assert classify(path, measured, peopled).kind == UNKNOWN
    peopled[10 * FPS :] = False
    assert classify(path, measured, peopled).kind == STATIC


def decided(*scenes, camera="auto"):
    path, measured, peopled = clip(*scenes)
    log = SimpleNamespace(measured=True, solve=lambda *_: (path, classify(path, measured, peopled)))
    return decide(log, camera)


@pytest.mark.parametrize(
    ("bad", "what"),
    [((3, 0, 0.0, False), "the camera's motion is unknown"), ((4, 30, 0.02, True), "the camera moved from its place")],
)
def test_only_the_failing_scene_loses_its_world(bad, what):
    good, turning = (10, 0, 0.0, True), (10, 30, 0.0, True)
    found = decided(good, bad, turning)
    assert found.problem == ""
    assert found.path is not None
    end = 10 + bad[0]
    assert found.without_world == ((10.0, pytest.approx(end)),)
    assert found.notices[0].startswith(f"{what} in scene 2 (10.0 to {end:.1f} s): no world is written there (--camera")
    assert (found.motion.kind, found.motion.pan) == (ROTATING, pytest.approx(30, abs=0.5)), "of the other scenes"
    assert [one.world for one in found.motion.scenes] == [True, False, True]


def test_static_scenes_need_no_path_beside_a_failing_one():
    assert decided((10, 0, 0.0, True), (4, 30, 0.02, True)).path is None


def test_only_failing_scenes_give_no_world():
    bad = (4, 30, 0.02, True)
    both = decided(bad, bad)
    assert "the camera moved from its place in scenes 1 (0.0 to" in both.problem
    assert (both.path, both.motion.kind) == (None, TRANSLATING)
    alone = decided(bad)
    assert alone.problem.startswith("the camera moved from its place: no world")


def test_each_reason_has_a_notice():
    scenes = (10, 0, 0.0, True), (4, 30, 0.02, True), (3, 0, 0.0, False)
    assert [text.split(":")[0] for text in decided(*scenes).notices] == [
        "the camera moved from its place in scene 2 (10.0 to 14.0 s)",
        "the camera's motion is unknown in scene 3 (14.0 to 16.9 s)",
    ]
    assert decided(*scenes, camera="rotating").without_world == ((pytest.approx(14.0), np.inf),)


def check_schema(document):
    """The schema allows these members."""
    schema = json.loads(files("pose.results").joinpath("poses.schema.json").read_text("utf-8"))
    jsonschema.validate(document, {"$ref": "#/$defs/camera_motion", "$defs": schema["$defs"]})


def test_files_list_the_scenes():
    motion = classify(*clip((10, 0, 0.0, True), (4, 30, 0.02, True)))
    assert [(one.number, one.motion.kind) for one in motion.scenes] == [(0, STATIC), (1, TRANSLATING)]
    document = MotionInfo(motion, compensated=False).to_dict()
    assert [one["kind"] for one in document["scenes"]] == [STATIC, TRANSLATING]
    check_schema(document)
    assert MotionInfo.from_json(document).to_dict() == document
    assert "scenes" not in MotionInfo(classify(*clip((3, 0, 0.0, True))), compensated=False).to_dict()
