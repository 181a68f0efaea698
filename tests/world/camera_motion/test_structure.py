"""Structure from motion on key frames, and the path that it gives."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.common.rendering import lens, render
from benchmarks.world.camera_motion import ROOMS, motion_of
from pose.structures.camera_rotations import to_matrix
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.structure import (
    KeyImage,
    Structure,
    choose_keys,
    reconstruct,
    scaled_matrix,
    with_translation,
)

SIZE = (480, 270)


def filmed(name, times, room="small room"):
    """Key images, and the true turns and places from the first camera's axes."""
    rng = np.random.default_rng(3)
    panels, motion, matrix = ROOMS[room](rng), motion_of(name, 3), lens(size=SIZE)
    poses = [motion(float(time)) for time in times]
    images = [render(panels, pose, matrix, SIZE)[..., 0] for pose in poses]
    noisy = [np.clip(image + rng.normal(0, 2, image.shape), 0, 255).astype(np.uint8) for image in images]
    begin = poses[0].turn.T
    turns = np.array([begin @ pose.turn for pose in poses])
    places = np.array([begin @ (pose.place - poses[0].place) for pose in poses])
    return [KeyImage(image, np.full(image.shape, 255, np.uint8)) for image in noisy], turns, places, matrix


@pytest.mark.parametrize("wrong", [pytest.param(1.0, marks=pytest.mark.slow), 1.2])
def test_translating_camera_path_is_recovered(wrong):
    """With the focal length, and with one that is 20 % too long."""
    pytest.importorskip("pycolmap", reason="needs the extra slam")
    images, turns, places, matrix = filmed("walking, 0.5 m/s", np.arange(9) / 3)
    matrix[[0, 1], [0, 1]] *= wrong
    found = reconstruct(images, matrix, focal_known=wrong == 1)
    assert isinstance(found, Structure), found
    assert found.share == 1
    assert found.focal == pytest.approx(1 / wrong, rel=0.02)
    scale = (found.positions * places).sum() / (found.positions**2).sum()
    length = np.linalg.norm(np.diff(places, axis=0), axis=1).sum()
    assert np.linalg.norm(scale * found.positions - places, axis=1).max() < 0.03 * length
    apart = np.einsum("tij,tij->t", found.rotations, turns)
    assert np.degrees(np.arccos(np.clip((apart - 1) / 2, -1, 1))).max() < 1


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("pan and tilt", marks=pytest.mark.slow),
        "tripod, 10 cm off axis",
        pytest.param("static", marks=pytest.mark.slow),
    ],
)
def test_rotating_camera_has_no_structure(name):
    pytest.importorskip("pycolmap", reason="needs the extra slam")
    images, _, _, matrix = filmed(name, np.arange(7) / 3)
    assert isinstance(reconstruct(images, matrix, focal_known=True), str)


def test_images_without_texture_have_no_structure():
    pytest.importorskip("pycolmap", reason="needs the extra slam")
    plain = KeyImage(np.full((90, 160), 128, np.uint8), np.full((90, 160), 255, np.uint8))
    assert isinstance(reconstruct([plain] * 6, lens(size=(160, 90)), focal_known=True), str)


def path_of(times, turns):
    count = len(times)
    return CameraPath(times, turns, np.ones(count), np.full(count, 1e-3), np.zeros(count, np.int64))


def test_between_key_frames_the_rotation_follows_the_background():
    """Which is wrong by a drift that the key frames do not have."""
    times = np.arange(90) / 30
    shake = np.radians(np.stack([0.5 * np.sin(20 * times), 10 * np.sin(times), 0 * times], axis=1))
    true = to_matrix(shake)
    true = true[0].T @ true
    drift = to_matrix(np.radians(np.stack([0 * times, 3 * times, 0 * times], axis=1)))
    keys = choose_keys(path_of(times, drift @ true))
    places = np.stack([times, 0.1 * np.sin(2 * times), 0 * times], axis=1)
    rows = np.arange(len(keys))
    found = Structure(rows, true[keys], places[keys], 0.2, 1.0, 8.0, 5.0, 1.1)
    path = with_translation(path_of(times, drift @ true), keys, found)
    apart = np.einsum("tij,tij->t", path.rotations, true)
    assert np.degrees(np.arccos(np.clip((apart - 1) / 2, -1, 1))).max() < 0.1
    assert np.abs(path.positions - places).max() < 0.003
    np.testing.assert_allclose(path.zooms, 1.1)
    assert np.isfinite(path.sigmas).all()


def test_frames_far_from_every_placed_key_frame_are_unknown():
    times = np.arange(90) / 30
    turns = np.tile(np.eye(3), (90, 1, 1))
    keys = choose_keys(path_of(times, turns))
    rows = np.arange(len(keys) - 3)
    found = Structure(rows, turns[keys[rows]], np.outer(times[keys[rows]], [1, 0, 0]), 0.2, 0.9, 8.0, 5.0, 1.0)
    assert np.isnan(with_translation(path_of(times, turns), keys, found).sigmas[-1])


@pytest.mark.parametrize(("seconds", "why"), [(100, "longer"), (1, "short")])
def test_clips_without_structure_give_the_reason(seconds, why):
    times = np.arange(seconds * 30) / 30
    assert why in choose_keys(path_of(times, np.tile(np.eye(3), (len(times), 1, 1))))


def test_cuts_end_the_structure():
    times = np.arange(90) / 30
    path = path_of(times, np.tile(np.eye(3), (90, 1, 1)))
    assert "cuts" in choose_keys(replace(path, scenes=(times > 1).astype(np.int64)))


def test_downscaled_images_keep_their_viewing_rays():
    matrix = scaled_matrix(lens(size=(1280, 720)), 0.5)
    np.testing.assert_allclose(matrix, lens(size=(640, 360)), atol=1e-9)
