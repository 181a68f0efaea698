"""The path of a camera that the background does not show, from the standing feet of people with known truth."""

import numpy as np
import pytest
from test_carried import CAMERA, FRAMES, PLACES, TURNS, path_of, results_of
from walker import filmed, walking

from pose.structures.skeletons import H36M17
from pose.world.clean import Steps
from pose.world.people_path import path_from_feet
from pose.world.run import PlacedRun


@pytest.fixture(scope="module")
def walkers():
    views = {"pitch": -6, "distance": 7}
    return {n + 1: filmed(walking(FRAMES / 30), turn=turn, **views)[0] for n, turn in enumerate((60, -50))}


def found_path(walkers, turns=TURNS, places=PLACES):
    path = path_of(None, turns)
    with PlacedRun(results_of(walkers, turns, places), H36M17, CAMERA, Steps(path=path)) as run:
        return path_from_feet(path, run.scenes, run.foot_velocities), run.scenes[0].ground.path_scale


def test_standing_feet_give_the_path_of_the_camera(walkers):
    found, scale = found_path(walkers)
    away = np.linalg.norm(scale * found.path.positions - (PLACES - PLACES[0]), axis=1)
    assert away.max() < 0.1 + 0.15 * np.linalg.norm(PLACES[-1] - PLACES[0])
    assert away[-1] < 2 * found.sigma
    assert found.seen > 0.9


def test_path_of_a_static_camera_is_short(walkers):
    found, _ = found_path(walkers, places=0 * PLACES)
    assert found.distance < 0.15


def test_uncertainty_grows_where_no_feet_are_in_view(walkers):
    path = path_of(None, TURNS)
    with PlacedRun(results_of(walkers, TURNS, PLACES), H36M17, CAMERA, Steps(path=path)) as run:
        early = [rows[rows[:, 0] < 1.5] for rows in run.foot_velocities]
        part = path_from_feet(path, run.scenes, early)
        whole = path_from_feet(path, run.scenes, run.foot_velocities)
    assert part.sigma > 2 * whole.sigma
    assert part.seen < 0.8


def test_without_standing_feet_there_is_no_path(walkers):
    path = path_of(None, TURNS)
    with PlacedRun(results_of(walkers, TURNS, PLACES), H36M17, CAMERA, Steps(path=path)) as run:
        assert path_from_feet(path, run.scenes, [np.zeros((0, 6))]) is None
