"""Limbs whose 2D contradicts the person's own bones."""

from dataclasses import replace

import numpy as np
import pytest
from walker import seen_person, standing

from pose.structures.skeletons import H36M17, LIMBS
from pose.world.clean import Steps, clean
from pose.world.consistency import check_limbs

STANDER = seen_person(standing(4.0))


def displaced(person, limb, share=0.5, frames=slice(None)):
    """The middle joint of a limb is seen at a share of the upper bone."""
    first, middle, _ = (H36M17.index(joint) for joint in LIMBS[limb])
    rays = person.rays.copy()
    rays[frames, middle] = rays[frames, first] + share * (rays[frames, middle] - rays[frames, first])
    return replace(person, rays=rays)


def test_normal_person_is_not_flagged():
    flags, added = check_limbs(STANDER)
    assert not flags.any()
    assert not added.any()


@pytest.mark.parametrize("limb", ["left_leg", "right_leg"])
def test_misplaced_knee_flags_only_its_leg(limb):
    flags, added = check_limbs(displaced(STANDER, limb))
    column = list(LIMBS).index(limb)
    assert flags[:, column].mean() > 0.9
    assert not np.delete(flags, column, axis=1).any()
    _, knee, ankle = (H36M17.index(joint) for joint in LIMBS[limb])
    assert np.median(added[:, knee]) > 60  # mm; the knee is seen 0.2 m away from where it is
    assert np.array_equal(added[:, knee], added[:, ankle])
    assert not np.delete(added, [knee, ankle], axis=1).any()


def test_cleaning_enlarges_sigma_and_keeps_the_flag():
    person = displaced(STANDER, "left_leg")
    knee = H36M17.index("left_knee")
    before = clean({1: STANDER}, STANDER.times, Steps())[1][1]
    after = clean({1: person}, person.times, Steps())[1][1]
    assert not before.inconsistent.any()
    assert after.inconsistent[:, 0].mean() > 0.9
    assert np.median(after.sigma[:, knee]) > np.median(before.sigma[:, knee]) + 30
