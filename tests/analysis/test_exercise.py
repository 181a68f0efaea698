"""Repetitions, jumps and transfers of motions whose figures are known."""

from dataclasses import replace

import numpy as np
import pytest
from stick_figures import UPPER, bend_knees, exercise, jump, motion, move, squats, standing, walk

from pose.analysis.exercise import find_transfers, jump_metrics, repetition_metrics, repetition_rows, transfer_metrics
from pose.analysis.jumps import find_jumps
from pose.analysis.repetitions import find_repetitions, movement_name


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("rate", [5.0, 30.0])
def test_squats_are_counted(count, rate):
    mover, starts = squats(count, rate=rate)
    found = find_repetitions(mover)
    assert len(found.items) == count
    assert movement_name(found.courses) == "squat"
    for one, start in zip(found.items, starts, strict=True):
        assert one.start == pytest.approx(start, abs=0.45)
        assert one.peak == pytest.approx(start + 1.5, abs=0.25)


def test_noise_does_not_change_the_count():
    mover, _ = squats(4)
    noisy = mover.joints + np.random.default_rng(1).normal(0, 0.02, mover.joints.shape)
    assert len(find_repetitions(motion(mover.times, noisy)).items) == 4


def test_arm_raises_are_named_with_their_side_difference():
    times = np.arange(0, 13, 1 / 30)
    joints = standing(times)
    lift = 1.1 * (1 - np.cos(2 * np.pi * times / 3)) / 2 * (times < 12)
    zero = np.zeros_like(times)
    move(joints, ["left_wrist"], np.stack([0.3 * lift, lift, zero], axis=1))
    one = repetition_metrics(1, motion(times, joints.copy()))[0]
    move(joints, ["right_wrist"], np.stack([-0.3 * lift, lift, zero], axis=1))
    both = repetition_metrics(1, motion(times, joints))[0]
    assert [metric.name.partition(":")[0] for metric in (one[0], both[0])] == ["one-arm raise", "arm raise"]
    assert [metrics[0].value for metrics in (one, both)] == [4, 4]
    difference = [next(f.value for f in metrics if "left-right" in f.name) for metrics in (one, both)]
    assert difference[0] > 0.1 > 0.01 > difference[1]


def test_standing_and_walking_count_no_repetitions():
    times = np.arange(0, 6, 1 / 30)
    noise = np.random.default_rng(2).normal(0, 0.01, (len(times), 17, 3))
    assert repetition_metrics(1, motion(times, standing(times) + noise)) == (
        [],
        [],
        "the joints move by less than 6 cm",
    )
    assert repetition_metrics(1, walk()[0]) == ([], [], "the person moves through the room")


@pytest.mark.parametrize("height", [0.12, 0.3, 0.5])
@pytest.mark.parametrize("rate", [30.0, 60.0])
def test_jump_height_is_measured(height, rate):
    jumper, takeoff, landing = jump(height, rate)
    (found,) = find_jumps(jumper)
    assert found.flight_height == pytest.approx(height, abs=0.03)
    assert found.pelvis_height == pytest.approx(height, abs=0.03)
    assert found.takeoff == pytest.approx(takeoff, abs=0.03)
    assert found.landing == pytest.approx(landing, abs=0.03)
    assert found.countermovement == pytest.approx(0.2, abs=0.03)
    metrics, events, _ = jump_metrics(1, jumper)
    assert {event.name for event in events} == {"takeoff", "highest point", "landing"}
    assert all(metric.low < metric.value < metric.high for metric in metrics)


def test_jump_is_found_despite_floor_drift_with_depth():
    jumper, *_ = jump(0.3, 60.0)
    drift = 0.08 * np.sin(2 * np.pi * jumper.times / 8)
    (found,) = find_jumps(
        motion(jumper.times, jumper.joints + np.stack([0 * drift, drift, 0 * drift], axis=1)[:, None])
    )
    assert found.flight_height == pytest.approx(0.3, abs=0.05)


def test_rise_without_free_fall_is_not_a_jump():
    times = np.arange(0, 4, 1 / 30)
    joints = standing(times)
    rise = 0.3 * ((times > 1) & (times < 3)) * np.sin(np.pi * (times - 1) / 2) ** 2
    joints[..., 1] += rise[:, None]
    assert find_jumps(motion(times, joints)) == []


def test_standing_up_from_a_seat_is_timed():
    times = np.arange(0, 12, 1 / 30)
    joints = standing(times)
    seat = 0.5 - 0.5 * np.cos(np.pi * np.clip((times - 2) / 1.5, 0, 1))  # 0 seated, 1 standing
    seat *= 0.5 + 0.5 * np.cos(np.pi * np.clip((times - 7) / 2.0, 0, 1))
    zero = np.zeros_like(times)
    move(joints, UPPER, np.stack([zero, -0.42 * (1 - seat), -0.35 * (1 - seat)], axis=1))
    bend_knees(joints)
    up, down = find_transfers(motion(times, joints))
    assert (up.rising, down.rising) == (True, False)
    assert up.start == pytest.approx(2.2, abs=0.25)
    assert up.end == pytest.approx(3.3, abs=0.25)
    assert down.start == pytest.approx(7.3, abs=0.3)
    metrics, _, _ = transfer_metrics(1, motion(times, joints))
    assert [metric.name for metric in metrics] == ["sit to stand: duration", "stand to sit: duration"]


def test_drift_on_the_seat_does_not_move_the_start_of_a_transfer():
    """The lifted height of a person who sits still rises by a few centimetres, and falls again while they stand."""
    times = np.arange(0, 10, 1 / 30)
    seat = 0.5 - 0.5 * np.cos(np.pi * np.clip((times - 4) / 1.5, 0, 1))  # 0 seated, 1 standing
    drift = 0.05 * np.clip((times - 1) / 2, 0, 1) + 0.05 * np.clip((times - 6) / 3, 0, 1)
    zero, joints = np.zeros_like(times), standing(times)
    move(joints, UPPER, np.stack([zero, -0.47 * (1 - seat) + drift, -0.35 * (1 - seat)], axis=1))
    bend_knees(joints)
    (up,) = find_transfers(motion(times, joints))
    assert up.start == pytest.approx(4.1, abs=0.15)
    assert up.end == pytest.approx(5.4, abs=0.15)


def test_smooth_repetitions_have_more_smoothness():
    mover, _ = squats(4)
    upper = mover.joints[..., 1:2] > 0.9
    trembling = mover.joints + 0.03 * np.sin(2 * np.pi * 2.5 * mover.times)[:, None, None] * upper
    values = [
        next(metric.value for metric in repetition_metrics(1, one)[0] if "smoothness" in metric.name)
        for one in (mover, motion(mover.times, trembling))
    ]
    assert values[0] > values[1] + 0.5


def test_squats_have_tempo_and_depth():
    metrics = {metric.name: metric for metric in repetition_metrics(1, squats(4, depth=0.4)[0])[0]}
    assert metrics["squat: tempo"].value == pytest.approx(15.0, rel=0.02)  # one each 4 s
    assert metrics["squat: depth"].value == pytest.approx(0.4, rel=0.1)


def test_jumping_jacks_are_classified():
    times = np.arange(0, 9, 1 / 30)
    joints = standing(times)
    open_ = (1 - np.cos(2 * np.pi * times / 1.5)) / 2 * (times < 7.5)
    zero = np.zeros_like(times)
    for side, sign in (("left", 1), ("right", -1)):
        move(joints, [f"{side}_wrist"], np.stack([sign * 0.1 * open_, 1.1 * open_, zero], axis=1))
        move(joints, [f"{side}_ankle", f"{side}_knee"], np.stack([sign * 0.25 * open_, zero, zero], axis=1))
    metrics = repetition_metrics(1, motion(times, joints))[0]
    assert (metrics[0].name, metrics[0].value) == ("jumping jack: count", 5)
    assert not any(metric.name.endswith("depth") for metric in metrics), "the pelvis does not sink"


def test_two_different_movements_are_not_repetitions():
    """Both resemble their own median; they do not resemble each other."""
    times = np.arange(0, 8, 1 / 30)
    joints = standing(times)
    first, second = (0.5 * np.sin(np.pi * np.clip((times - start) / 2, 0, 1)) for start in (1, 5))
    move(joints, ["left_wrist", "left_elbow"], np.stack([0 * first, first + 0.6 * second, 0 * first], axis=1))
    move(joints, ["right_wrist", "right_elbow"], np.stack([0 * first, 0 * first, 0.9 * second], axis=1))
    assert find_repetitions(motion(times, joints)).items == []


@pytest.mark.parametrize("name", ["hip hinge", "lunge", "push-up"])
def test_each_repetition_of_an_exercise_has_a_row(name):
    rows = repetition_rows(1, exercise(name))
    assert [(row.movement, row.number) for row in rows] == [(name, number) for number in (1, 2, 3)]
    for row in rows:
        assert row.out_s == pytest.approx(row.back_s, abs=0.3)
        if name == "hip hinge":
            assert row.trunk_lean_degrees == pytest.approx(75, abs=3)
            assert row.hip_flexion_left_degrees > 1.5 * row.knee_flexion_left_degrees > 45
        elif name == "lunge":
            assert row.front_foot_m == pytest.approx(0.8, abs=0.03), "the left foot is in front"
            assert row.knee_flexion_left_degrees > 60
        else:
            assert row.elbow_flexion_right_degrees > 60
            assert row.hip_flexion_right_degrees < 20, "the body is straight"


def test_valgus_is_absent_where_the_view_does_not_show_it():
    front, side = (replace(squats(3)[0], camera=np.array(at)) for at in ((0.0, 1.0, 6.0), (6.0, 1.0, 0.0)))
    assert {row.valgus_left_degrees is None for row in repetition_rows(1, front)} == {False}
    assert {row.valgus_left_degrees for row in repetition_rows(1, side)} == {None}


def test_a_dance_has_no_name():
    """Alike repetitions of different movements: a live page once counted a dance as forward bends."""
    courses = np.concatenate([find_repetitions(exercise(kind)).courses for kind in ("hip hinge", "lunge")])
    assert movement_name(courses) == "movement A"
