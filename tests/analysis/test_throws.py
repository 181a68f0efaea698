"""Throws and strokes: phases, speed of the hand, kinds, and motions that are none."""

from dataclasses import replace

import numpy as np
import pytest
from stick_figures import jump, motion, move, run, squats, standing, throw, walk

from pose.analysis.throws import find_throws, throw_metrics


@pytest.mark.parametrize(
    ("height", "kind"),
    [(2.1, "overhead stroke"), (1.5, "overarm throw"), (1.2, "sidearm throw"), (0.9, "underarm throw")],
)
@pytest.mark.parametrize("rate", [30.0, 120.0])
def test_phases_and_hand_speed_of_a_throw(height, kind, rate):
    mover, back, release = throw(height, rate=rate)
    (found,) = find_throws(mover)
    assert (found.side, found.kind) == ("right", kind)
    assert found.start == pytest.approx(1.15, abs=0.1), "95 % of the way back are ahead"
    assert found.back == pytest.approx(back, abs=0.05)
    assert found.release == pytest.approx(release, abs=0.02)
    assert found.end == pytest.approx(release + 0.09, abs=0.04)
    assert found.speed == pytest.approx(np.pi / 2 / 0.22, rel=0.15 if rate < 60 else 0.05)
    assert found.height == pytest.approx(height - 1.42)


def test_each_throw_has_metrics_with_the_name_given():
    metrics, events, reason = throw_metrics(1, replace(throw(2.1)[0], movement="serve"))
    assert [one.name.partition(": ")[2] for one in metrics] == [
        "hand speed", "wind-up", "forward phase", "follow-through", "elbow flexion at release", "hand above shoulder"
    ]  # fmt: skip
    assert {one.name.partition(":")[0] for one in metrics} == {"serve 1"}
    assert [(one.name, one.side) for one in events] == [
        (f"serve {moment}", "right") for moment in ("wind-up", "farthest back", "release")
    ]
    assert reason == ""


def waving():
    times = np.arange(0, 6, 1 / 60)
    joints, zero = standing(times), np.zeros_like(times)
    move(joints, ["left_wrist", "right_wrist"], np.stack([zero, 0.5 + 0.5 * np.sin(12 * times), zero], axis=1))
    return motion(times, joints)


@pytest.mark.parametrize(
    "mover",
    [
        walk()[0], run()[0], squats()[0], jump()[0], waving(), throw(reach=(0.25, 0.1, 0.7), forward_s=0.12)[0],
        throw(forward_s=0.5)[0],
    ],
    ids=["walk", "run", "squats", "jump", "fast hands up and down", "punch", "slow"],
)  # fmt: skip
def test_other_movements_are_no_throws(mover):
    assert throw_metrics(1, mover) == ([], [], "no hand moves forwards fast from behind the shoulders")


def test_frame_rates_too_low_for_a_throw_are_a_reason():
    assert throw_metrics(1, throw(rate=10.0)[0])[2] == "only 10 frames/s, at least 20 are needed"
