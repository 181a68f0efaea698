"""RULA and REBA: scores worked out with the published tables, and postures."""

import numpy as np
import pytest
from stick_figures import motion, standing

from pose.analysis.ergonomics import (
    REBA_A,
    REBA_B,
    REBA_C,
    RULA_A,
    RULA_B,
    RULA_C,
    RULA_LEVELS,
    Inputs,
    _shares,
    ergonomic_metrics,
    ergonomic_scores,
    reba,
    rula,
)
from pose.structures.skeletons import H36M17

TIMES = np.arange(0, 1, 1 / 10)


def one(*scores):
    return (np.array([score]) for score in scores)


@pytest.mark.parametrize(
    ("parts", "extra", "expected"),
    [
        ((1, 1, 1, 1, 1, 1, 1), {}, 1),  # neutral: A 1, B 1
        ((3, 2, 3, 1, 3, 2, 1), {"arm_use": 1, "body_use": 1}, 5),  # A 4 + 1, B 3 + 1 -> row 5, column 4
        ((6, 3, 4, 2, 6, 6, 2), {}, 7),  # A 9, B 9
    ],
)
def test_rula_scores_follow_the_worksheet(parts, extra, expected):
    assert rula(*one(*parts), **extra) == [expected]


@pytest.mark.parametrize(
    ("parts", "extra", "expected"),
    [
        ((1, 1, 1, 1, 1, 1), {}, 1),
        ((2, 2, 2, 1, 2, 3), {}, 4),  # A 4, B 3
        ((2, 2, 2, 1, 2, 2), {}, 4),  # A 4, B 2
        ((3, 5, 4, 6, 2, 3), {"load": 3, "coupling": 3, "activity": 3}, 15),
    ],
)
def test_reba_scores_follow_the_worksheet(parts, extra, expected):
    assert reba(*one(*parts), **extra) == [expected]


@pytest.mark.parametrize("table", [RULA_B, RULA_C, REBA_B, REBA_C], ids=["rula-b", "rula-c", "reba-b", "reba-c"])
def test_score_tables_end_with_the_highest_score(table):
    assert table.max() == table[(-1,) * table.ndim]
    assert table.min() == table[(0,) * table.ndim] == 1


@pytest.mark.parametrize("table", [RULA_A, REBA_A, RULA_C, REBA_C], ids=["rula-a", "reba-a", "rula-c", "reba-c"])
def test_scores_are_monotonic_in_each_body_part(table):
    for axis in range(table.ndim):
        assert (np.diff(table, axis=axis) >= 0).all()


def bent_forward(degrees):
    joints = standing(TIMES)
    angle = np.radians(degrees)
    upper = [index for index, name in enumerate(H36M17.names) if not name.endswith(("hip", "knee", "ankle", "pelvis"))]
    pelvis = joints[:, :1]
    rotation = np.array([[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]])
    joints[:, upper] = (joints[:, upper] - pelvis) @ rotation.T + pelvis
    return joints


def test_scores_grow_with_the_lean_of_the_trunk():
    means = [ergonomic_scores(motion(TIMES, bent_forward(lean))) for lean in (0, 15, 40, 75)]
    assert [int(scores.reba[0]) for scores in means] == sorted(int(scores.reba[0]) for scores in means)
    assert means[-1].reba[0] > means[0].reba[0]
    assert means[-1].rula[0] > means[0].rula[0]


def test_metrics_list_observed_and_assumed_inputs():
    """A score without them cannot be judged."""
    mover = motion(TIMES, standing(TIMES))
    metrics, _, _ = ergonomic_metrics(1, [mover], Inputs(load=2, coupling=1))
    assert {metric.note for metric in metrics} == {"given scores: wrist 1, twist 1, load 2, grip 1, muscle use 0"}
    assert ergonomic_metrics(1, [mover], Inputs())[0][0].note == "assumed: no load, neutral wrists, good grip"


@pytest.mark.parametrize(("values", "near"), [([1, 1, 1, 1], 1.0), ([2, 2, 2, 2], 0.0)])
def test_lowest_risk_level_needs_an_interval_below_its_threshold(values, near):
    """RULA 1 may be 2, which is the same level; RULA 2 may be 3, which is not."""
    shares = dict(_shares(np.array(values), RULA_LEVELS))
    assert shares["acceptable"] == (1.0, near, 1.0)
