"""The focal length that a rotation shows is used where an assumed one is clearly wrong."""

from dataclasses import replace

import numpy as np
import pytest
from virtual_camera import CAMERA, people, seen, texture

from pose.structures.camera_rotations import to_vector
from pose.structures.skeletons import H36M17
from pose.structures.types import NO_LINK, Background
from pose.world.camera_motion.decision import decide
from pose.world.camera_motion.log import MotionLog, focal_ratios, rescaled
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, ZOOMING, CameraMotion

DEGREES = 0.5  # per frame
CLEAR = CameraMotion(ROTATING, 1.0, pan=20.0, tilt=1.0, focal_ratio=1.3, focal_sigma=0.02)
PATH = CameraPath(np.zeros(1), np.eye(3)[None], np.ones(1), np.zeros(1), np.zeros(1, np.int64))


@pytest.fixture(scope="module")
def log_of():
    """log_of(factor) -> the log of a pan, measured with so many times the true focal length."""
    scene = texture(13)
    images = [seen(scene, (0, DEGREES * index, 0)) for index in range(48)]

    def make(factor):
        stage, log = BackgroundMotion(factor * float(CAMERA.matrix[0, 0]), H36M17), MotionLog()
        for index, image in enumerate(images):
            one = people(index, [(10, 10, 30, 80)])
            log.add(replace(one, background=stage.step(image, one)))
        return log

    return make


@pytest.mark.parametrize("factor", [0.75, 1.3])
def test_wrong_assumed_focal_length_is_corrected(log_of, factor):
    log, pan = log_of(factor), DEGREES * 47
    wrong, found = decide(log), decide(log, assumed_focal=True)
    assert found.focal * factor == pytest.approx(1, abs=0.02)
    turned = [
        np.degrees(np.linalg.norm(to_vector(one.path.rotations[0].T @ one.path.rotations[-1])))
        for one in (wrong, found)
    ]
    assert abs(turned[0] - pan) > 3
    assert turned[1] == pytest.approx(pan, abs=0.8)


def test_telephoto_lens_of_a_pan_is_found():
    """A broadcast camera: a field of view of 15 degrees where 55 are assumed, and feet must support it."""
    scene, zoom = texture(13, grain=1.0), 4.0
    stage, log = BackgroundMotion(float(CAMERA.matrix[0, 0]), H36M17), MotionLog()
    for index in range(60):
        one = people(index, [(10, 10, 30, 80)])
        image = seen(scene, (0, 0.2 * (index - 30), 0), zoom)
        log.add(replace(one, background=stage.step(image, one)))
    found = decide(log, assumed_focal=True)
    assert found.motion.kind == ROTATING
    assert found.focal == pytest.approx(zoom, rel=0.1)
    assert found.motion.pan == pytest.approx(0.2 * 59, rel=0.15)
    assert not found.motion.excludes_translation


def test_correct_assumed_focal_length_is_kept(log_of):
    log = log_of(1.0)
    found = decide(log, assumed_focal=True)
    assert found.focal == 1.0
    np.testing.assert_array_equal(found.path.rotations, decide(log).path.rotations)


@pytest.mark.parametrize(
    ("change", "used"),
    [({}, True), ({"focal_ratio": 1.1}, False), ({"focal_sigma": 0.1}, False),
     ({"focal_ratio": 2.4, "focal_sigma": 0.1}, True), ({"focal_ratio": 2.4, "focal_sigma": 0.2}, False),
     ({"pan": 5.0}, False), ({"kind": ZOOMING}, False), ({"focal_ratio": float("nan")}, False)],
)  # fmt: skip
def test_estimated_focal_length_is_used_only_when_reliable(change, used):
    assert bool(focal_ratios(PATH, replace(CLEAR, **change))) is used


def test_focal_correction_keeps_image_displacements():
    links = np.zeros((2, 6))
    links[:, 0] = 7, NO_LINK
    links[0, 1:3] = 0.1, 0.2
    ((at, scaled),) = rescaled([(0, Background(links, 50, 1.0, 20.0))], [0], {0: 2.0})
    assert at == 0
    size = np.hypot(0.1, 0.2)
    assert np.tan(np.linalg.norm(scaled.links[0, 1:3])) == pytest.approx(np.tan(size) / 2)
    np.testing.assert_allclose(scaled.links[0, 1:3] / np.linalg.norm(scaled.links[0, 1:3]), [0.1 / size, 0.2 / size])
    np.testing.assert_array_equal(scaled.links[1], links[1])
