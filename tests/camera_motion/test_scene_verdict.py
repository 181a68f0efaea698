"""Each scene of a clip is judged on its own, and the least favourable one decides."""

import numpy as np
import pytest

from pose.camera_motion.path import CameraPath
from pose.camera_motion.turns import to_matrix
from pose.camera_motion.verdict import ROTATING, SHAKING, STATIC, TRANSLATING, UNKNOWN, judge
from pose.types import NO_LINK, Background

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


def test_a_short_scene_of_a_carried_camera_is_not_outvoted():
    assert judge(*clip((20, 30, 0.0, True))).kind == ROTATING
    assert judge(*clip((4, 30, 0.02, True))).kind == TRANSLATING
    found = judge(*clip((20, 30, 0.0, True), (4, 30, 0.02, True)))
    assert found.kind == TRANSLATING
    assert found.parallax == pytest.approx(np.degrees(0.02))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_pan_counts_in_any_scene(order):
    """A pan was taken for a shake if the last scene stood still."""
    scenes = (10, 30, 0.0, True), (10, 0.5, 0.0, True)
    found = judge(*clip(*(scenes[at] for at in order)))
    assert found.kind == ROTATING
    assert found.pan == pytest.approx(30, abs=0.5)
    assert found.certain


def test_static_scenes_are_static():
    assert judge(*clip((3, 0, 0.0, True), (3, 0, 0.0, True))).kind == STATIC
    assert judge(*clip((3, 0, 0.0, True), (3, 1.0, 0.0, True))).kind == SHAKING


def test_a_scene_whose_view_is_unknown_leaves_no_world_unless_no_person_is_in_it():
    path, measured, peopled = clip((10, 0, 0.0, True), (3, 0, 0.0, False))
    assert judge(path, measured, peopled).kind == UNKNOWN
    peopled[10 * FPS :] = False
    assert judge(path, measured, peopled).kind == STATIC


def test_many_short_scenes_of_unknown_view_are_unknown():
    found = judge(*clip((10, 0, 0.0, True), *[(0.4, 0, 0.0, False)] * 4))
    assert found.kind == UNKNOWN
