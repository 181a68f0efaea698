"""How large people are, found together with the floor."""

import math
from dataclasses import replace

import numpy as np
import pytest
from walker import seen_person, standing, walking

from pose.structures.refine import lengths_of
from pose.structures.skeletons import H36M17
from pose.world.clean import Steps, clean, prepare
from pose.world.frame import up_of
from pose.world.gravity import ANKLES
from pose.world.ground import find_world
from pose.world.height import stature
from pose.world.sizes import Evidence, _half_width, _interval_offsets, find_sizes

HEIGHT = 1.74
LENGTHS = {"left_knee": 0.39, "left_ankle": 0.38, "spine": 0.25, "thorax": 0.26, "neck": 0.15, "head": 0.13}
ADULT = np.array([LENGTHS.get(H36M17.names[child].replace("right", "left"), 0.2) for _, child in H36M17.edges])


def evidence(feet, height=HEIGHT, given=False, bones=ADULT):
    return Evidence(bones, height, given, None if feet is None else np.array(feet, np.float64))


def level(*heights, away=4.0, scale=1.0):
    """People whose feet are lifted to so many metres below the camera."""
    return {n: evidence((0.5 * n * scale, -below, -away)) for n, below in enumerate(heights)}


def test_single_adult_keeps_the_lifted_height():
    one = find_sizes(level(1.5), math.radians(3)).people[0]
    assert one.scale == pytest.approx(1, abs=0.01)
    assert one.sigma > 0.05  # who is alone may be a child


def test_height_sigma_of_a_small_person_includes_a_distant_adult():
    """One image does not tell a near child from a distant adult: the adult's scale is within two sigma."""
    bones = ADULT * np.where([H36M17.names[child] in ("neck", "head") for _, child in H36M17.edges], 1.1, 1)
    one = find_sizes({1: evidence((0, -1.5, -4), height=1.68, bones=bones)}, 0.0).people[1]
    assert one.scale < 0.9
    assert math.exp(math.log(one.scale) + 2 * one.sigma) > 1


def test_common_floor_reduces_height_sigma():
    alone = find_sizes(level(1.5), 0.0).people[0]
    found = find_sizes(level(1.5, 1.5, 1.5), 0.0)
    for size in found.people.values():
        assert size.scale == pytest.approx(1, abs=0.02)
        assert size.sigma < alone.sigma
        assert size.on_floor > 0.9
    assert found.floor == pytest.approx(-1.5, abs=0.03)


def test_oversized_person_is_scaled_down_by_the_floor():
    found = find_sizes(level(1.5, 1.5, 2.1), 0.0)
    assert found.people[2].scale == pytest.approx(1.5 / 2.1, rel=0.05)
    assert found.people[0].scale == pytest.approx(1, abs=0.05)
    assert found.people[2].scale_alone == pytest.approx(1, abs=0.01)


def test_floor_is_the_lowest_level():
    found = find_sizes(level(0.05, 1.75, away=7.0), math.radians(2))
    assert found.floor == pytest.approx(-1.75, abs=0.1)
    assert found.people[0].on_floor < 0.1
    assert found.people[1].on_floor > 0.9
    assert found.people[1].scale == pytest.approx(1, abs=0.05)


def test_given_height_determines_the_others():
    people = level(1.5, 2.1)
    people[0] = evidence((0, -1.5, -4), given=True)
    free, given = find_sizes(level(1.5, 2.1), 0.0), find_sizes(people, 0.0)
    assert (given.people[0].scale, given.people[0].sigma) == (pytest.approx(1), pytest.approx(0, abs=1e-6))
    assert given.people[1].scale == pytest.approx(1.5 / 2.1, rel=0.05)
    assert given.people[1].sigma < free.people[1].sigma


def test_uncertain_vertical_weakens_the_floor_constraint():
    """Two adults at 4 and 8 m whose feet differ by what 3 degrees make."""
    people = {1: evidence((0, -1.5, -4)), 2: evidence((0, -1.5 - 4 * math.tan(math.radians(3)), -8))}
    known, uncertain = find_sizes(people, 0.0), find_sizes(people, math.radians(3))
    assert known.tilt == (0, 0)
    about_x = math.degrees(uncertain.tilt[0])
    assert -4 < about_x < -1
    for n in people:
        assert abs(math.log(uncertain.people[n].scale)) <= abs(math.log(known.people[n].scale)) + 0.01


@pytest.mark.parametrize("wide", [0.02, 0.1])
def test_height_sigma_covers_68_percent(wide):
    """Of a normal posterior it is the standard deviation, also between the values of the grid."""
    grid = np.linspace(-0.9, 0.6, 76)
    chance = np.exp(-0.5 * ((grid - 0.013) / wide) ** 2)
    assert _half_width(chance, 0.013) == pytest.approx(wide, rel=0.1)


def test_height_interval_covers_both_posterior_peaks():
    grid = np.linspace(-0.9, 0.6, 76)
    adult, child = (np.exp(-0.5 * ((grid - at) / 0.05) ** 2) for at in (0.0, -0.3))
    for part, wide in ((adult, False), (0.5 * adult + 0.5 * child, True)):
        down, up = _interval_offsets(part, 0.0)
        assert down + up <= 2 * _half_width(part, 0.0) + 0.02
        assert (down > 2 * up) == wide
        inside = (grid > -down - 0.01) & (grid < up + 0.01)
        assert part[inside].sum() / part.sum() == pytest.approx(0.68, abs=0.1)


def test_child_beside_an_adult_is_sized():
    """The lifter makes an adult of a child, who is then too far away and below the floor."""
    up = up_of(-15, 0)
    adult = seen_person(standing(4.0), pitch=-15, distance=4, height=1.5)
    body = standing(4.0)
    for name, up_by in (("neck", 0.1), ("head", 0.15)):  # heads of children are large
        body[:, H36M17.index(name), 1] += up_by
    child = seen_person(0.7 * body + np.array([0.8, 0, 0]), pitch=-15, distance=5, height=1.5)
    lifted = resized_person(child, 1 / 0.7)
    world, people = clean({1: adult, 2: lifted}, adult.times, Steps(up=up))
    low = [np.median(one.placed[:, ANKLES, 1].min(axis=1)) for one in people.values()]
    assert max(low) - min(low) < 0.08
    assert people[2].root[:, 2].mean() == pytest.approx(child.root[:, 2].mean(), rel=0.07)
    assert abs(people[2].height - stature(lengths_of(child.joints, child.sigma))) < 2 * people[2].height_sigma
    assert world.floor == pytest.approx(-1.5, abs=0.1)


def resized_person(person, scale):
    return replace(person, joints=scale * person.joints, root=scale * person.root)


def test_doubtful_tracks_do_not_affect_sizes():
    walker = seen_person(walking(4.0), turn=60, distance=7)
    low = seen_person(standing(4.0) - [0, 0.5, 0], turn=20, distance=5)  # feet 0.5 m below the floor
    works = {n: prepare(n, one, None, Steps()) for n, one in enumerate((walker, low), 1)}
    alone, trusted = find_world({1: works[1]}), find_world(works, doubtful={2})
    np.testing.assert_array_equal(trusted.world.rotation, alone.world.rotation)
    assert trusted.world.floor == alone.world.floor
    assert trusted.sizes[1] == alone.sizes[1]
    assert abs(find_world(works).world.floor - alone.world.floor) > 0.1
    assert find_world(works, doubtful={1, 2}).world.floor == find_world(works).world.floor
