"""Sizes, gravity and focal length of people in one scene, from made evidence and from bodies."""

import math
from dataclasses import replace

import numpy as np
import pytest
from pose_apps.support.world import solutions_line
from walker import seen_person, standing, walking

from pose.structures.refine import lengths_of
from pose.structures.skeletons import H36M17
from pose.world.clean import Steps, clean, prepare
from pose.world.frame import World, up_of
from pose.world.gravity import ANKLES
from pose.world.ground import Ground, find_world
from pose.world.height import stature
from pose.world.rules import GRAVITY
from pose.world.scene.evidence import child_probability, evidence_of
from pose.world.scene.model import ANKLE_HEIGHT_M, FAR_LOG_BIAS, FOCAL_SIGMA, SIZE, PersonEvidence, SceneModel
from pose.world.scene.solve import solve

UP = up_of(-12, 1)
LENGTHS = {"left_knee": 0.39, "left_ankle": 0.38, "spine": 0.25, "thorax": 0.26, "neck": 0.15, "head": 0.13}
ADULT = np.array([LENGTHS.get(H36M17.names[child].replace("right", "left"), 0.2) for _, child in H36M17.edges])


def person(x, away, camera=1.6, height=1.7, lifted=1.7, up=UP, focal=1.0, given=False, body=True):
    """Evidence of a person who stands on a level floor, as lifted at `lifted` m and a focal length off by `focal`."""
    level = np.cross(up, [0, 0, 1.0])
    level /= np.linalg.norm(level)
    ahead = np.cross(level, up)
    foot = (ANKLE_HEIGHT_M - camera) * up - x * level + away * ahead
    centre = foot + 0.9 * up
    scale = lifted / height / np.array([1, 1, focal])
    feet = np.tile(scale * foot, (4, 1))
    axes = np.tile(up, (4, 1))
    count = 4 if body else 0
    return PersonEvidence(axes[:count], np.tile(scale * centre, (count, 1)), feet, axes, lifted, given, 0.1, 4.0)


def test_camera_and_sizes_of_adults_on_one_floor_are_found():
    found = solve([person(-1, 4), person(0.5, 6), person(2, 9)], 0.0)
    assert math.degrees(math.acos(found.up @ UP)) < 1.5
    assert found.camera_height == pytest.approx(1.6, rel=0.05)
    for one in found.people:
        assert one.height == pytest.approx(1.7, rel=0.03)
        assert one.on_floor > 0.9


def test_person_lifted_too_small_gets_the_size_that_the_floor_shows():
    far = person(2, 12, lifted=1.1)
    nearer = math.exp(-FAR_LOG_BIAS)  # of people that the lifter outputs as a child
    far = replace(far, feet=nearer * far.feet, centres=nearer * far.centres)
    found = solve([person(-1, 4), person(0.5, 6), far], 0.0)
    assert found.people[2].height == pytest.approx(1.7, rel=0.06)
    assert found.people[2].distance_scale == pytest.approx(1.7 / 1.1 / nearer, rel=0.06)


def test_person_on_a_platform_is_not_resized():
    raised = person(1, 5, camera=0.8)  # feet 0.8 m above the floor
    found = solve([person(-1, 4), person(0.5, 6), person(2, 9), raised], 0.0)
    assert found.people[3].on_floor < 0.3
    assert found.people[3].height == pytest.approx(1.7, rel=0.06)
    assert found.camera_height == pytest.approx(1.6, rel=0.06)


def test_given_height_is_kept_and_has_no_interval():
    found = solve([person(-1, 4, height=1.9, lifted=1.9, given=True), person(0.5, 6)], 0.0)
    assert found.people[0].height == pytest.approx(1.9, abs=5e-3)
    assert np.ptp(found.people[0].interval) < 0.01


def test_single_person_has_a_wide_interval():
    alone, together = solve([person(0, 5)], 0.0), solve([person(x, 4 + 2 * x) for x in range(4)], 0.0)
    assert np.ptp(alone.people[0].interval) > np.ptp(together.people[0].interval)
    assert alone.people[0].height == pytest.approx(1.7, rel=0.03)


def test_wrong_focal_length_is_found_from_people_on_a_floor():
    up = up_of(-30, 0)
    people = [person(x, away, camera=4.0, up=up, focal=1.8) for x, away in ((-2, 5), (1, 7), (0, 10), (3, 12), (-3, 9))]
    assert solve(people, FOCAL_SIGMA).focal > 1.15


def test_scene_without_people_is_the_prior():
    found = solve([], 0.0)
    assert math.degrees(found.up_sigma) > 12


def test_floor_shows_that_a_small_woman_is_not_an_average_adult():
    """Both are lifted as average adults; only their feet on one floor show that her height is 0.84 of his."""
    man, woman = person(0, 3.5, camera=2.1, height=1.76), person(-1, 4.5, camera=2.1, height=1.48, lifted=1.72)
    found = solve([man, woman], 0.0, UP)
    assert found.people[1].height < 0.92 * found.people[0].height
    scales = [one.distance_scale for one in found.people]
    assert scales[1] / scales[0] == pytest.approx(1.48 / 1.72 / (1.76 / 1.7), rel=0.05)
    low, high = found.people[1].interval
    assert low - 0.06 < 1.48 < high
    # The prior of heights and the 4 % of distances leave no more, even if the height of the man is known.
    known = solve([person(0, 3.5, camera=2.1, height=1.76, lifted=1.76, given=True), woman], 0.0, UP).people[1]
    assert 1.48 < known.height < found.people[1].height
    assert known.height == pytest.approx(1.61, abs=0.02)


def test_long_walk_shows_the_floor_better_than_a_short_one():
    """Each second of standing feet is evidence."""

    def walk(seconds):
        walker = seen_person(walking(seconds), pitch=-12, turn=35, distance=3 + 1.2 * seconds, height=1.6)
        return solve([evidence_of(prepare(1, walker, None, Steps()))], 0.0)

    assert walk(12.0).up_sigma < 0.9 * walk(3.0).up_sigma


def test_people_cut_by_the_edge_of_the_image_do_not_stretch_the_scene():
    """A spectator without feet that the lifter outputs as 0.7 m tall, as in the tennis clip."""
    three = [person(-1, 4), person(0.5, 6), person(2, 9)]
    cut = replace(person(1, 5, lifted=0.7), feet=np.zeros((0, 3)), axes=np.zeros((0, 3)))
    alone, together = solve(three, FOCAL_SIGMA), solve([*three, cut], FOCAL_SIGMA)
    for one, other in zip(alone.people, together.people, strict=False):
        assert other.height == pytest.approx(one.height, rel=0.02)
    assert together.camera_height == pytest.approx(alone.camera_height, rel=0.03)
    assert np.degrees(np.arccos(min(1.0, alone.up @ together.up))) < 1


def test_one_leaning_body_does_not_turn_gravity():
    leaning = replace(person(1, 5), directions=np.tile(up_of(-12, 30), (4, 1)))
    found = solve([person(-1, 4), person(0.5, 6), person(2, 9), leaning], 0.0)
    assert math.degrees(math.acos(found.up @ UP)) < 2.5


def test_density_does_not_depend_on_the_portions(rng):
    people = [person(x, 4 + 2 * x) for x in range(3)]
    candidates = rng.normal(0, 0.2, (500, SIZE))
    model = SceneModel(people)
    np.testing.assert_allclose(model.log_posterior(candidates)[-3:], model.log_posterior(candidates[-3:]))


def test_large_head_makes_a_child_more_probable():
    bones = ADULT * np.where([H36M17.names[child] in ("neck", "head") for _, child in H36M17.edges], 1.25, 1)
    assert child_probability(bones, 1.5) > child_probability(ADULT, 1.5)


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
    assert abs(find_world(works).world.floor - alone.world.floor) > 0.05
    assert find_world(works, doubtful={1, 2}).world.floor == find_world(works).world.floor


def test_second_solution_is_named_with_the_option_that_decides():
    small = replace(person(0, 5), child=0.5)
    (unsure,), (sure,) = solve([small], 0.0).people, solve([person(0, 5)], 0.0).people
    line = solutions_line({7: unsure, 8: sure}, {7: (1.5, 0.2), 8: (1.7, 0.1)}, 0.0)
    assert line.startswith("two solutions remain: person 7 as adult or child (--height 7:METRES decides")
    assert np.ptp(unsure.interval) > np.ptp(sure.interval)
    assert solutions_line({8: sure}, {8: (1.7, 0.1)}, 0.0) == ""


def test_two_verticals_widen_the_uncertainty():
    """Three people lean by 22 degrees to each side: three of the six may be upright."""
    both = [replace(person(0, 5), directions=np.tile(up_of(-12, roll), (4, 1))) for roll in (-22, 22)] * 3
    bent = [replace(one, feet=one.feet[:0], axes=one.axes[:0]) for one in both]
    found = solve(bent, 0.0)
    assert found.second_up > np.radians(10)
    assert found.up_sigma > np.radians(6)
    assert "--pitch and --roll" in solutions_line({}, {}, math.degrees(found.second_up))
    assert solve([person(-1, 4), person(0.5, 6), person(2, 9)], 0.0).second_up == 0


@pytest.mark.parametrize(("before", "expected"), [("unknown", GRAVITY.max_sigma_degrees), ("lines", 1.4)])
def test_a_vertical_at_a_found_focal_length_keeps_the_uncertainty_from_before(before, expected):
    """It was NaN, which no JSON file can have, if the vertical was unknown before."""
    sigma = math.nan if before == "unknown" else 1.4
    first = Ground(World(np.eye(3), 0.0, before, sigma, focal=1.2), {}, {})
    world = Ground(World(np.eye(3), 0.0, "lines", 0.6), {}, {}).refound(first.world).world
    assert (world.sigma_degrees, world.focal, world.found_by) == (expected, 1.2, "lines")


def test_evidence_that_is_not_a_number_decides_nothing():
    broken = replace(person(0, 5), centres=np.full((4, 3), np.nan))
    found = solve([broken], 0.0)
    assert np.isfinite(found.up).all()
    assert math.degrees(found.up_sigma) > 15
