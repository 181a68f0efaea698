"""Characters stand on the floor: their soles neither float, nor sink in, nor slide while the foot is in contact."""

import numpy as np
import pytest

from pose.body.character.sole_lock import Soles, locked, lowering, rise_of
from pose.structures.skeletons import H36M17

ANKLES = [H36M17.index(f"{side}_ankle") for side in ("left", "right")]
SOLE = np.array([[x, -0.07, z] for x in (-0.04, 0.04) for z in (-0.06, 0.05, 0.16)])
SOLES = Soles((SOLE, SOLE))
TIMES = np.arange(90) / 30
ON = (TIMES > 1) & (TIMES < 2)


def walker(height=0.12, slide=0.3):
    """Ankles at a height, of which the left one slides during its contact; the sole rolls from heel to toe."""
    points = np.zeros((90, 17, 3))
    points[:, ANKLES, 1] = height
    points[:, ANKLES[0], 2] = slide * TIMES
    pitch = np.where(ON, np.clip((TIMES - 1.5) * 2, 0, 1), 0) * np.radians(40)
    feet = np.zeros((90, 2, 2, 3))
    feet[..., 0, 2] = feet[..., 1, 1] = 1
    feet[:, 0, 0] = np.stack([0 * pitch, -np.sin(pitch), np.cos(pitch)], axis=1)
    feet[:, 0, 1] = np.stack([0 * pitch, np.cos(pitch), np.sin(pitch)], axis=1)
    contacts = np.stack([np.where(ON, 0.9, 0.1), np.zeros(90)], axis=1)
    return points, feet, contacts


def left_sole(points, feet):
    along, above = feet[:, 0, 0], feet[:, 0, 1]
    axes = np.stack([np.cross(above, along), above, along], axis=-1)
    return points[:, ANKLES[0], None] + np.einsum("tij,sj->tsi", axes, SOLE)


@pytest.mark.parametrize("height", [0.12, 0.03])
def test_a_sole_in_contact_stays_where_it_is(height):
    points, feet, contacts = walker(height)
    sole = left_sole(locked(points, feet, contacts, TIMES, SOLES), feet)[ON]
    low = sole[..., 1].min(axis=1)
    assert np.abs(low).max() < 1e-9, "neither floats nor sinks in"
    toe = sole[-5:, np.argmax(SOLE[:, 2])]
    assert np.linalg.norm(np.diff(toe, axis=0), axis=1).max() * 30 < 0.02, "the toe holds while the heel rises"
    heel = sole[:15, np.argmin(SOLE[:, 2])]
    assert np.linalg.norm(np.diff(heel, axis=0), axis=1).max() * 30 < 0.02


def test_corrections_fade_and_leave_all_other_joints_alone():
    points, feet, contacts = walker()
    result = locked(points, feet, contacts, TIMES, SOLES)
    others = np.delete(np.arange(17), ANKLES)
    np.testing.assert_array_equal(result[:, others], points[:, others])
    far = (TIMES < 0.75) | (TIMES > 2.25)
    np.testing.assert_allclose(result[far], points[far], atol=1e-9)
    moved = (result - points)[:, ANKLES[0]]
    assert np.linalg.norm(np.diff(moved, axis=0), axis=1).max() < 0.04, "without a jump"


def test_people_on_stairs_keep_their_height_and_feet_in_the_air_do_not_sink():
    points, feet, contacts = walker(height=1.3, slide=0.0)
    result = locked(points, feet, contacts, TIMES, SOLES)
    assert np.abs(left_sole(result, feet)[ON][..., 1].min(axis=1) - 1.23).max() < 0.1
    sunk, feet, _ = walker(height=0.02)
    result = locked(sunk, feet, np.zeros((90, 2)), TIMES, SOLES)
    assert left_sole(result, feet)[..., 1].min() > -1e-9


def test_a_body_that_floats_is_lowered_as_a_whole():
    points, feet, contacts = walker(height=0.12)
    assert rise_of(points, feet, contacts, SOLES) == pytest.approx(-0.05, abs=0.02)
    assert rise_of(points, feet, 0 * contacts, SOLES) == 0


def test_a_body_is_lowered_where_its_legs_are_too_short():
    hips = np.tile([[0.1, 0.95, 0.0], [-0.1, 0.95, 0.0]], (90, 1, 1))
    ankles = np.tile([[0.1, 0.1, 0.0], [-0.1, 0.1, 0.0]], (90, 1, 1))
    ankles[40:50, 0, 2] += 0.3
    contacts = np.ones((90, 2))
    drop = lowering(hips, ankles, contacts, TIMES, (0.44, 0.43))
    apart = np.linalg.norm(hips - [0, 1, 0] * drop[:, None, None] - ankles, axis=-1)
    assert apart.max() < 0.87
    assert drop[40:50].min() > 0.02
    assert (drop[:25] < 1e-9).all()
    assert np.abs(np.diff(drop)).max() < 0.02, "without a jump"
    assert (lowering(hips, ankles, np.zeros((90, 2)), TIMES, (0.44, 0.43)) == 0).all(), "feet in the air do not count"
