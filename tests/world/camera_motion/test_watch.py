"""The view of a camera from past frames alone."""

from dataclasses import replace

import numpy as np
from virtual_camera import CAMERA, FPS, people, seen, texture

from benchmarks.common.rendering import lens
from benchmarks.world.camera_motion import ROOMS, Walker, filmed, motion_of
from pose.structures.camera_rotations import to_matrix
from pose.structures.skeletons import H36M17
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.camera_motion.verdict import ROTATING, STATIC, TRANSLATING, UNKNOWN
from pose.world.camera_motion.watch import CameraWatch


def watched(images, focal=float(CAMERA.matrix[0, 0])):
    """Views and states; images: with the people in each."""
    stage, watch = BackgroundMotion(focal, H36M17), CameraWatch()
    views, states = [], []
    for image, who in images:
        views.append(watch.update(stage.step(image, who), who.index, who.time, who.cut))
        states.append(watch.state)
    return views, states


def test_live_pan_is_tracked_causally():
    times = np.arange(90) / FPS
    vectors = np.zeros((90, 3))
    vectors[:, 1] = 10 * np.sin(2 * np.pi * times / 3)
    scene = texture(31)
    views, states = watched((seen(scene, vector), people(index)) for index, vector in enumerate(vectors))
    true = to_matrix(np.radians(vectors))
    apart = np.array([view.rotation @ true[0].T @ turn for view, turn in zip(views, true, strict=True)])
    off = np.degrees(np.arccos(np.clip((np.trace(apart, axis1=1, axis2=2) - 1) / 2, -1, 1)))
    assert states[-1] == ROTATING
    assert np.median(off) < 0.2
    assert off.max() < 0.8


def test_static_live_camera_has_one_view():
    scene = texture(32)
    views, states = watched((seen(scene), people(index)) for index in range(40))
    assert set(states) == {STATIC}
    assert all(np.array_equal(view.rotation, np.eye(3)) for view in views)


def test_translating_live_camera_is_not_tracked():
    rng = np.random.default_rng(7)
    room, walker = ROOMS["hall"](rng), Walker.of(rng)
    motion = motion_of("sideways, 1 m/s", 7)
    _, states = watched(filmed(room, walker, motion, np.arange(36) / 15, rng), float(lens()[0, 0]))
    assert states[-1] == TRANSLATING


def test_lost_view_is_not_used():
    scene, other = texture(33), np.full((216, 384, 3), 90, np.uint8)
    noise = np.random.default_rng(1)
    images = [
        seen(scene) if index < 20 else noise.integers(0, 255, other.shape).astype(np.uint8) for index in range(50)
    ]
    _, states = watched((image, people(index)) for index, image in enumerate(images))
    assert states[19] == STATIC
    assert UNKNOWN in states[20:]
    assert ROTATING not in states


def test_cut_restarts_the_view_tracking():
    one, two = texture(34), texture(35)
    images = ((seen(one if index < 15 else two), replace(people(index), cut=index == 15)) for index in range(30))
    _, states = watched(images)
    assert set(states) == {STATIC}
