"""Rotation, zoom, shake and focal length of known virtual cameras."""

from dataclasses import replace

import numpy as np
import pytest
from virtual_camera import CAMERA, FPS, measured, off_degrees, people, seen, texture

from pose.structures.camera_rotations import to_vector
from pose.structures.skeletons import H36M17
from pose.structures.types import NO_LINK, Background
from pose.world.camera_motion.decision import decide
from pose.world.camera_motion.log import MotionLog, focal_ratios, rescaled
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, STATIC, UNKNOWN, ZOOMING, CameraMotion


def pan(frames: int, degrees: float, period: float) -> np.ndarray:
    times = np.arange(frames) / FPS
    vectors = np.zeros((frames, 3))
    vectors[:, 1] = degrees * np.sin(2 * np.pi * times / period)
    vectors[:, 0] = degrees / 3 * np.sin(2 * np.pi * times / period / 0.7)
    return vectors


def test_a_pan_is_measured_to_a_fraction_of_a_degree():
    scene, vectors = texture(1), pan(75, 12, 2.5)
    path, motion = measured(seen(scene, vector) for vector in vectors)
    assert motion.kind == ROTATING
    assert motion.pan == pytest.approx(np.ptp(vectors[:, 1]), abs=0.5)
    assert motion.tilt == pytest.approx(np.ptp(vectors[:, 0]), abs=0.5)
    off = off_degrees(path, vectors)
    assert np.median(off) < 0.1
    assert off.max() < 0.3
    assert motion.focal_ratio == pytest.approx(1, abs=0.03)
    assert motion.excludes_translation


def test_static_camera_is_static():
    scene = texture(2)
    path, motion = measured(seen(scene) for _ in range(30))
    assert motion.kind == STATIC
    assert not motion.moves
    assert motion.known == 1
    assert off_degrees(path, np.zeros((30, 3))).max() < 0.05


def test_zoom_is_not_a_rotation():
    scene, zooms = texture(4), np.linspace(1, 1.35, 60)
    path, motion = measured(seen(scene, zoom=zoom) for zoom in zooms)
    assert motion.kind == ZOOMING
    assert np.abs(path.zooms / zooms - 1).max() < 0.01
    assert off_degrees(path, np.zeros((60, 3))).max() < 0.2


def test_people_do_not_count_as_background():
    """A person covers most of the image and walks; the camera stands."""
    scene, coat = texture(5), texture(6)
    images, boxes = [], []
    for index in range(40):
        image = seen(scene).copy()
        left = 20 + 3 * index
        image[10:210, left : left + 150] = coat[100:300, 100:250]
        images.append(image)
        boxes.append((left, 10, left + 150, 210))
    _, motion = measured(images, lambda index: people(index, [boxes[index]]))
    assert motion.kind == STATIC


def test_rotation_estimate_restarts_at_a_cut():
    vectors = np.concatenate([pan(30, 6, 2), np.zeros((20, 3))])
    scenes = [texture(7)] * 30 + [texture(8)] * 20
    images = [seen(scene, vector) for scene, vector in zip(scenes, vectors, strict=True)]
    path, motion = measured(images, lambda index: people(index, cut=index == 30))
    assert motion.known == 1
    assert path.scenes.tolist() == [0] * 30 + [1] * 20
    assert off_degrees(path, vectors)[:30].max() < 0.3
    np.testing.assert_allclose(path.rotations[30:], np.tile(np.eye(3), (20, 1, 1)), atol=2e-3)


def test_textureless_background_gives_unknown_motion():
    """Noise on a plain wall moves nowhere, and says nothing of the camera."""
    plain = np.full((216, 384, 3), 120, np.uint8)
    _, motion = measured((plain for _ in range(40)), lambda index: people(index, [(150, 20, 230, 210)]))
    assert motion.kind == UNKNOWN
    assert motion.known < 0.5


def test_covered_lens_is_bridged_when_the_view_returns():
    scene, black = texture(9), np.zeros((216, 384, 3), np.uint8)
    images = [black if 20 <= index < 50 else seen(scene) for index in range(75)]
    _, motion = measured(images)
    assert motion.kind == STATIC
    assert motion.known == 1


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
