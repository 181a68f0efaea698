"""All steps in their order: what comes out of a walk, and what each switch leaves alone."""

import math
from dataclasses import replace

import numpy as np
import pytest
from walker import ANKLES, FPS, seen_person, standing, walking

from benchmarks.world.steps import bone_variation, jitter
from pose.structures.refine import assembled, lengths_of
from pose.structures.sequences import mirror_poses
from pose.structures.skeletons import H36M17
from pose.world.clean import Steps, clean
from pose.world.frame import up_of
from pose.world.height import scale_to, stature
from pose.world.scene.model import ADULT_LOG_SIGMA, ADULT_M, DISTANCE_LOG_SIGMA, LIFTED_SLOPE
from pose.world.work import Person

_WALKER = seen_person(walking(1.0))
WALKER_M = stature(lengths_of(_WALKER.joints, _WALKER.sigma))
CAMERA = {"pitch": -10.0, "roll": 2.0, "turn": 25.0, "distance": 7.0}


@pytest.fixture
def noisy(rng):
    walker = seen_person(walking(4.0), **CAMERA)
    size = len(walker)
    return replace(
        walker,
        joints=walker.joints + 0.01 * rng.standard_normal((size, 17, 3)) * (np.arange(17) > 0)[:, None],
        root=walker.root * (1 + 0.02 * rng.standard_normal((size, 1))),
        rays=walker.rays + 0.002 * rng.standard_normal(walker.rays.shape),
    )


def test_walk_stands_on_the_floor(noisy):
    world, people = clean({7: noisy}, noisy.times)
    walker = people[7]
    assert world.floor_known
    assert world.floor == pytest.approx(-1.4, abs=0.1)
    np.testing.assert_allclose(world.place(walker.joints + walker.root[:, None]), walker.placed, atol=1e-9)
    assert abs(np.percentile(walker.placed[:, [3, 6], 1], 5) - 0.08) < 0.03
    assert bone_variation(walker.placed).max() < 0.01
    assert jitter(walker.placed, FPS).mean() < 0.1 * jitter(noisy.joints + noisy.root[:, None], FPS).mean()
    assert (walker.moved > 0).all()
    assert not walker.filled.any()
    assert (walker.root_sigma > 0).all()


def test_consistent_body_keeps_its_bones(noisy):
    """The lifter gave each track one body; the world keeps it, and makes one of those of two joined tracks."""

    def bones(joints):
        parents, children = np.array(H36M17.edges).T
        return np.linalg.norm(joints[:, children] - joints[:, parents], axis=-1)

    size = np.where(np.arange(len(noisy)) < 30, 1.1, 1.0)[:, None, None]
    one = replace(noisy, joints=assembled(noisy.joints, lengths_of(noisy.joints, noisy.sigma)))
    two = replace(one, joints=size * one.joints)
    expected = bones(one.joints)
    for person in (one, two):
        cleaned = clean({1: person}, noisy.times)[1][1]
        lifted = stature(lengths_of(one.joints, one.sigma))
        # A person alone is an average adult, whatever height the lifter returns.
        assert cleaned.height == pytest.approx(ADULT_M * (lifted / ADULT_M) ** LIFTED_SLOPE, rel=0.01)
        factor = scale_to(cleaned.height, lifted)
        np.testing.assert_allclose(bones(cleaned.joints), factor * expected, rtol=1e-3)


def test_a_mirrored_image_gives_mirrored_people(noisy):
    side, flip = np.array([-1, 1, 1]), list(H36M17.flip_order)
    mirrored = Person(
        mirror_poses(noisy.joints).astype(float), noisy.root * side, noisy.sigma[:, flip], noisy.times,
        noisy.rays[:, flip] * side[:2], noisy.scores[:, flip],
    )  # fmt: skip
    one, other = (clean({1: person}, noisy.times)[1][1] for person in (noisy, mirrored))
    np.testing.assert_allclose(other.placed, mirror_poses(one.placed), atol=1e-4)
    np.testing.assert_array_equal(other.feet_held, one.feet_held[:, ::-1])


def test_given_vertical_and_height_are_used(noisy):
    steps = Steps(up=up_of(-10, 2), heights={1: 1.9})
    world, people = clean({1: noisy, 2: noisy}, noisy.times, steps)
    assert world.found_by == "given"
    assert world.confidence == 1
    np.testing.assert_allclose(world.up, up_of(-10, 2))
    assert people[1].height == 1.9
    assert people[1].height_sigma == 0
    assert people[2].height != 1.9
    assert people[2].height_sigma > 0
    # Their feet are at one place of the image and on one floor, so at one distance. Each foot level has an error of 4 %
    # (`FOOT_SIGMA_M` and `FLOOR_SIGMA_M` at 1.4 m), and the average adult would be 11 % nearer than 1.9 m, +- 8 %: the
    # posterior difference is 3.2 %.
    ratio = people[2].root[:, 2].mean() / people[1].root[:, 2].mean()
    assert ratio == pytest.approx(0.968, abs=0.01)


def test_distance_sigma_is_calibrated(rng):
    """Adults of all heights, which the lifter outputs as about average, seen with noise."""
    inside = []
    for _ in range(24):
        height = ADULT_M * math.exp(ADULT_LOG_SIGMA * rng.standard_normal())
        body = height / WALKER_M * walking(2.0)
        walker = seen_person(body, turn=rng.uniform(-90, 90), distance=rng.uniform(5, 10))
        size = ADULT_M / height * math.exp(DISTANCE_LOG_SIGMA * rng.standard_normal())
        noise = 0.01 * rng.standard_normal(walker.joints.shape) * (np.arange(17) > 0)[:, None]
        taken = replace(walker, joints=size * walker.joints + noise, root=size * walker.root)
        one = clean({1: taken}, taken.times)[1][1]
        inside.append(np.abs(one.root[:, 2] - walker.root[:, 2]) < one.root_sigma / 1000)
    assert 0.5 < np.concatenate(inside).mean() < 0.95


def test_filled_gaps_are_marked_and_not_measured(noisy):
    kept = np.ones(len(noisy), bool)
    kept[40:46] = False
    person = replace(noisy, **{name: getattr(noisy, name)[kept] for name in noisy.__slots__})
    walker = clean({1: person}, noisy.times)[1][1]
    assert np.flatnonzero(walker.filled).tolist() == list(range(40, 46))
    assert np.isnan(walker.moved[walker.filled]).all()
    assert np.isfinite(walker.moved[~walker.filled]).all()
    assert np.isfinite(walker.placed).all()
    assert len(clean({1: person}, noisy.times, Steps(fill=False))[1][1].times) == kept.sum()


def test_people_share_a_floor_unless_one_is_raised():
    low, high = (seen_person(standing(3.0) + np.array([x, y, 0])) for x, y in ((-1, 0), (1, 0.12)))
    stage = seen_person(standing(3.0) + np.array([0, 0.6, 0]))
    _, people = clean({1: low, 2: high, 3: stage}, low.times, Steps(up=up_of(0, 0)))
    soles = {n: p.placed[:, [3, 6], 1].mean() - 0.08 for n, p in people.items()}
    assert abs(soles[1] - soles[2]) < 0.02
    assert soles[3] - soles[1] > 0.4
    assert people[3].raised == 0


def test_person_in_one_frame_stands_on_the_floor_of_the_others():
    """A size that is wrong would lift the person, and one frame does not show which foot stands."""
    lone = seen_person(standing(0.04), distance=9.0, height=1.6)
    tall = replace(lone, joints=0.8 * lone.joints)
    _, cleaned = clean({1: seen_person(walking(2.0), height=1.6), 2: tall})
    assert cleaned[2].placed[0, ANKLES, 1].min() == pytest.approx(0.08, abs=0.01)


def test_no_people_give_an_empty_world():
    world, people = clean({}, np.arange(3.0))
    assert world.found_by == "unknown"
    assert people == {}
    assert not world.floor_known
