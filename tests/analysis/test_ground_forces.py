"""Ground forces of a walker whose steps are known."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from reader_environments import environment
from stick_figures import motion, run, standing, walk, write

from pose.body.gait import OFF_SHIFT_S, STRIKE_SHIFT_S
from pose.body.ground_forces import DOUBLE_SUPPORT, GRAVITY, _bouts, ground_forces
from pose.body.tracks import open_selection
from pose.export import export
from pose.export.opensim_setup import MASS


def test_the_feet_carry_the_weight_in_their_stance():
    walker, _ = walk(seconds=8, step_s=0.55)
    times = np.arange(1, 6, 0.01)
    found = ground_forces(walker, times)
    assert found.known.all()
    vertical = found.forces[..., 1]
    stride = (times >= 2) & (times < 2 + 4 * 1.1 - 0.005)
    assert vertical[stride].sum(axis=1).mean() == pytest.approx(1, abs=0.01), "mean force is the weight"
    assert vertical.min() >= 0
    one, both = (vertical > 0).sum(axis=1) == 1, (vertical > 0).all(axis=1)
    assert both.mean() == pytest.approx(2 * DOUBLE_SUPPORT, abs=0.03)
    assert (one | both).all(), "walkers do not fly"
    assert np.abs(np.diff(vertical, axis=0)).max() < 0.2, "no jumps from one hundredth of a second to the next"
    assert np.abs(found.forces[..., 2].mean()) < 0.01, "no net braking"


def test_the_centre_of_pressure_stays_under_the_foot_that_carries():
    walker, _ = walk(seconds=8)
    found = ground_forces(walker, walker.times)
    for foot, side in enumerate(("left", "right")):
        main = found.known & (found.forces[:, foot, 1] > 0.7)
        away = (found.points[:, foot] - walker.joint(f"{side}_ankle"))[main]
        assert np.abs(away[:, 0]).max() < 0.02, "beside the ankle"
        assert np.percentile(np.abs(away[:, 2]), 90) < 0.25
    assert (found.points[..., 1] == 0).all()


def test_only_straight_walks_on_the_floor_have_forces():
    walker, _ = walk(step_s=0.55, step_m=0.65)
    belt = walker.joints.copy()
    belt[..., 2] -= (0.65 / 0.55 * walker.times)[:, None]
    for other in (motion(walker.times, standing(walker.times)), run()[0], motion(walker.times, belt)):
        found = ground_forces(other, other.times)
        assert not found.known.any()
        assert not found.forces.any()


def test_a_pause_between_two_walks_does_not_disturb_them():
    walker, _ = walk(seconds=5)
    alone = ground_forces(walker, walker.times)
    pause = np.repeat(walker.joints[-1:], 1800, axis=0)
    there = walker.joints[-1, 0] - walker.joints[0, 0]
    times = np.arange(len(walker.times) * 2 + 1800) / 30
    together = motion(times, np.concatenate([walker.joints, pause, walker.joints + there]))
    found = ground_forces(together, times)
    count = len(walker.times)
    assert not found.known[count : count + 1800].any()
    for rows in (slice(0, count), slice(count + 1800, None)):
        both = found.known[rows] & alone.known
        assert both.sum() > 0.8 * alone.known.sum()
        np.testing.assert_allclose(found.forces[rows][both], alone.forces[both], atol=0.1)


def test_the_times_of_steps_are_evened_without_their_outliers():
    """A strike 0.15 s late moves no step by more than a hundredth of a second; a rhythm that changes is kept."""
    starts = np.cumsum(0.5 + 0.002 * np.arange(14))
    sides = ("left", "right")
    strikes = {side: list(starts[at::2]) for at, side in enumerate(sides)}
    offs = {side: [t + 2 * 0.513 * DOUBLE_SUPPORT for t in starts[1 - at :: 2]] for at, side in enumerate(sides)}
    strikes["left"][3] += 0.15
    gait = SimpleNamespace(strikes=strikes, offs=offs, strides=[SimpleNamespace(duration=1.026)])
    ((first, found),) = _bouts(gait)
    assert first == 0
    np.testing.assert_allclose(found, starts, atol=0.012)


def test_steps_agree_with_the_events_of_the_gait():
    walker, farthest = walk(seconds=8)
    found = ground_forces(walker, walker.times)
    rises = walker.times[1:][np.diff((found.forces[:, 0, 1] > 0).astype(int)) == 1]
    expected = np.array(farthest["left"]) + STRIKE_SHIFT_S
    for time in rises[1:]:
        assert np.abs(expected - time).min() < 0.06
    assert OFF_SHIFT_S > 0


def opensim_folder(tmp_path, model=None):
    walker, _ = walk(seconds=5)
    selection = open_selection(write(tmp_path / "poses.npz", {1: walker}))
    selection.opensim_model = model
    (made,) = export(selection, ["opensim"], tmp_path, "poses")
    return walker, made


def table(path):
    head, _, rest = path.read_text().partition("endheader\n")
    names, *rows = [line.split("\t") for line in rest.splitlines()]
    assert f"nRows={len(rows)}\nnColumns={len(names)}\n" in head
    return dict(zip(names, np.array(rows, float).T, strict=True))


def test_the_folder_for_opensim_has_the_forces_of_a_walk(tmp_path):
    walker, made = opensim_folder(tmp_path)
    forces, angles = table(made.path / "forces.mot"), table(made.path / "motion.mot")
    begin, end = map(float, ElementTree.parse(made.path / "id.xml").findtext(".//time_range").split())
    walking = (forces["time"] >= begin - 1e-6) & (forces["time"] <= end + 1e-6)
    weight = MASS * GRAVITY
    total = forces["ground_force_l_vy"] + forces["ground_force_r_vy"]
    assert total[walking].mean() == pytest.approx(weight, rel=0.05)
    assert not total[~walking].any()
    for letter, side in (("l", "left"), ("r", "right")):
        on = forces[f"ground_force_{letter}_vy"] > weight / 2
        ahead = (forces[f"ground_force_{letter}_px"] - angles["pelvis_tx"])[on]
        assert np.abs(ahead).max() < 1, "under the person, who is turned and centred"
        across = (forces[f"ground_force_{letter}_pz"] - angles["pelvis_tz"])[on]
        assert (across > 0).all() == (side == "right"), "z is right"
    loads = {one.tag: one.text for one in ElementTree.parse(made.path / "loads.xml").iter()}
    assert f"{loads['force_identifier']}y" in forces
    assert "within 0.18 body weights" in str(made)
    assert walker.times[0] <= begin < end <= walker.times[-1]


@pytest.mark.slow
def test_opensim_solves_the_moments_of_a_walk(tmp_path):
    pytest.importorskip("opensim")
    _, made = opensim_folder(tmp_path, environment("rajagopal") / "Rajagopal2015.osim")
    rows = np.genfromtxt(made.path / "moments.csv", delimiter=",", names=True)
    inner = (rows["time"] > rows["time"][0] + 0.2) & (rows["time"] < rows["time"][-1] - 0.2)
    ankle = -rows["ankle_angle_r_moment_nm_per_kg"][inner]
    assert 0.8 < ankle.max() < 2.5, "push-off, N m per kg"
    assert ankle.min() > -0.5
    residual = next(note for note in made.notes if "residual force" in note)
    assert int(residual.split("residual force ")[1].split()[0]) < 30, "% of the body weight"
