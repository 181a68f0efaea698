"""A camera that does not fit is left out with a warning; the others give the result of a run without it."""

from dataclasses import replace

import numpy as np
import pytest
import scenes
import setups

from pose.errors import PoseError
from pose.multiview.scene import CameraRun, Given, find_scene
from pose.multiview.types import Lab
from pose.structures.camera import Camera

NAMES = ["left", "middle", "right"]
PERSON = scenes.person(1, 3.0)
VIEWS = scenes.cameras((0.0, 80.0, 190.0), people=[PERSON], seed=2, seconds=3.0)
TRACKS = [scenes.track(view, i, PERSON, noise_px=1.0) for i, view in enumerate(VIEWS)]
EXACT = scenes.exact(VIEWS)


def runs_of(tracks, cameras):
    return [
        CameraRun(
            [track for track in tracks if track.camera == index], (0.0, float(view.times[-1])), 30.0,
            Camera(camera.matrix, camera.known, camera.size),
        )
        for index, (view, camera) in enumerate(zip(VIEWS, cameras, strict=True))
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_calibrated_camera_that_does_not_fit_is_left_out(wrong):
    cameras = list(EXACT)
    turn = setups.turned(20)
    if wrong:
        cameras[wrong] = replace(cameras[wrong], rotation=turn @ cameras[wrong].rotation)
    else:  # the frame of the file is that of the first camera, so the others are wrong by the same rotation
        cameras[1:] = [replace(one, rotation=one.rotation @ turn) for one in cameras[1:]]
    lab = Lab(np.eye(3), np.zeros(3))
    scene = find_scene(runs_of(TRACKS, cameras), NAMES, Given(cameras, offsets=[0.0] * 3, lab=lab))
    kept = [index for index in range(3) if index != wrong]
    assert scene.kept == kept
    assert [camera["name"] for camera in scene.cameras] == [NAMES[index] for index in kept]
    assert scene.rig.notes[0].startswith(f"{NAMES[wrong]}: ")
    assert "left out" in scene.rig.notes[0]
    first = cameras[kept[0]]
    np.testing.assert_allclose(scene.lab.axes, first.rotation, atol=1e-12)
    np.testing.assert_allclose(scene.rig.cameras[0].rotation, np.eye(3), atol=1e-12)
    angle = scenes.degrees_between(cameras[kept[1]].rotation @ first.rotation.T, scene.rig.cameras[1].rotation)
    assert angle < 1e-4
    assert len(scene.motions) == 1
    assert np.nanmedian(scene.motions[0].residual) < 10


@pytest.mark.parametrize("wrong", [0, 2])
def test_an_uncalibrated_camera_of_another_scene_is_left_out(wrong):
    other = scenes.track(VIEWS[wrong], wrong, scenes.person(11, 3.0), noise_px=1.0)
    tracks = [other if index == wrong else track for index, track in enumerate(TRACKS)]
    scene = find_scene(runs_of(tracks, scenes.told(VIEWS)), NAMES, Given(offsets=[0.0] * 3))
    assert scene.kept == [index for index in range(3) if index != wrong]
    assert f"{NAMES[wrong]}: its motion matches no other camera's" in scene.rig.notes[0]


def test_two_cameras_that_do_not_fit_end_the_run():
    cameras = [EXACT[0], replace(EXACT[1], rotation=setups.turned(20) @ EXACT[1].rotation), EXACT[2]]
    with pytest.raises(PoseError, match=r"no person is seen by two cameras|does not fit"):
        find_scene(runs_of(TRACKS[:2], cameras)[:2], NAMES[:2], Given(cameras[:2], offsets=[0.0] * 2))


def test_a_distance_to_a_camera_that_is_left_out_is_named():
    cameras = [EXACT[0], EXACT[1], replace(EXACT[2], rotation=setups.turned(20) @ EXACT[2].rotation)]
    given = Given(cameras, offsets=[0.0] * 3, distance=(0, 2, 3.0))
    with pytest.raises(PoseError, match="distance: one of the two cameras was left out; right: "):
        find_scene(runs_of(TRACKS, cameras), NAMES, given)
