"""Vertical and floor of a calibration file are kept where people agree with them."""

import json

import numpy as np
import pytest

from pose.multiview.calibration_files import read_lab
from pose.multiview.motions import find_world
from pose.multiview.types import Lab
from pose.structures.camera_rotations import to_matrix
from pose.world.frame import CALIBRATION


@pytest.fixture
def lab(scene):
    """The frame of a laboratory with z up, in the frame of the first camera; its vertical is the true one."""
    views, *_ = scene
    rotation = views[0].rotation
    y_up_to_z_up = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]).T  # axes of the file in those of the scene
    return Lab(rotation @ y_up_to_z_up, np.asarray(views[0].translation))


def test_vertical_and_floor_of_the_calibration_are_kept(scene, lab):
    views, _, _, line, motions, *_ = scene
    world = find_world(motions, line, lab=lab)
    assert world.found_by == CALIBRATION
    np.testing.assert_allclose(world.up, views[0].rotation[:, 1], atol=1e-9)
    assert world.sigma_degrees == 0
    assert world.floor == pytest.approx(find_world(motions, line).floor, abs=0.3)


def test_frame_that_contradicts_people_is_not_used(scene, lab):
    _, _, _, line, motions, *_ = scene
    turned = Lab(to_matrix(np.radians([35.0, 0, 35.0])) @ lab.axes, lab.origin)
    assert find_world(motions, line, lab=turned).found_by != CALIBRATION


def test_given_vertical_overrides_the_calibration(scene, lab):
    _, _, _, line, motions, *_ = scene
    assert find_world(motions, line, np.array([0.0, -1.0, 0.0]), lab).found_by == "given"


@pytest.mark.parametrize(("turned", "there"), [(0.0, False), (0.5, True)])
def test_frame_of_the_first_camera_is_no_laboratory(tmp_path, turned, there):
    cameras = [
        {"name": name, "K": [[500, 0, 320], [0, 500, 240], [0, 0, 1]], "R": to_matrix(np.array([angle, 0, 0])).tolist(),
         "t": [place, 0, 1], "image_size": [640, 480]}
        for name, angle, place in (("a", turned, 0.0), ("b", turned + 0.3, 1.0))
    ]  # fmt: skip
    file = tmp_path / "cameras.json"
    file.write_text(json.dumps({"cameras": cameras}))
    found = read_lab(file, ["a", "b"], [(640, 480)] * 2)
    assert (found is not None) == there
    if found is not None:
        np.testing.assert_allclose(found.origin, [0, 0, 1])
