"""Rotation, zoom and shake of known virtual cameras."""

import numpy as np
import pytest
from virtual_camera import FPS, measured, off_degrees, people, seen, texture

from pose.world.camera_motion.verdict import ROTATING, STATIC, UNKNOWN, ZOOMING


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
