"""`pose-run --imu`: inertial sensors on a person of a video, simulated from the poses of a run without them."""

import json

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.run import main

from pose.results import load_poses
from pose.structures.skeletons import H36M17
from tests.worn_sensors import RATE, simulate

END, CLOCK = "4", 3.4


def write_xio(recording, folder):
    """Write a recording as a folder of x-io."""
    for sensor in recording.sensors:
        own = folder / sensor.segment
        own.mkdir(parents=True)
        table = np.column_stack([np.round(sensor.times * 1e6), sensor.orientation])
        np.savetxt(own / "Quaternion.csv", table, delimiter=",", header="Timestamp (us),W,X,Y,Z", comments="")
        name = sensor.segment.replace("shank", "lower leg").replace("_", " ")
        (own / "Command.json").write_text(json.dumps([{"ping": {"interface": "USB", "name": name, "sn": "1"}}]))
    return folder


@pytest.fixture(scope="module")
def runs(shared, tmp_path_factory):
    """Results of a clip without and with sensors on the shanks whose clock is `CLOCK` behind."""
    folder = tmp_path_factory.mktemp("imu")
    words = [str(shared / "videos/dance.mp4"), "--end", END, "--cache", str(folder / "cache"), "--no-overlay"]
    assert main([*words, "--out", str(folder / "plain"), "--quiet"]) == 0
    table = load_poses(folder / "plain" / "poses.npz")
    times, joints = table.time, table.placed.joints.astype(float)
    at = np.arange(times[0], times[-1], 1 / RATE)
    fast = np.stack([np.interp(at, times, values) for values in joints.reshape(len(times), -1).T], axis=1)
    sensors = simulate(
        fast.reshape(-1, 17, 3), ["left_shank", "right_shank"], np.random.default_rng(1), tissue_degrees=1.0,
        drift=(0.0, 0.5), disturbed=0.0, clock=CLOCK,
    )  # fmt: skip
    return folder, words, write_xio(sensors, folder / "sensors")


def test_sensors_are_found_on_the_person_and_named_in_the_result(runs, capsys):
    folder, words, sensors = runs
    assert main([*words, "--imu", str(sensors), "--out", str(folder / "with")]) == 0
    line = next(one for one in capsys.readouterr().out.splitlines() if "inertial sensors" in one)
    assert "inertial sensors: 2 on person 1, offset " in line
    assert float(line.split("offset ")[1].split(" s")[0]) == pytest.approx(-CLOCK, abs=0.04)
    table = load_poses(folder / "with" / "poses.npz")
    ankles = [H36M17.index("left_ankle"), H36M17.index("right_ankle")]
    bits = table.placed.measured_by
    assert (bits[:, ankles] & 4 > 0).mean() > 0.95
    assert not (np.delete(bits, ankles, axis=1) & 4).any()
    assert (bits[:, 0] & 1).mean() > 0.9
    info = json.loads((folder / "with" / "poses.json").read_text())
    assert info["settings"]["sensors"] == ["camera", "imu"]
    assert len(info["frames"][5]["people"][0]["measured_by"]) == 17


def test_sensors_of_another_motion_are_refused(runs, capsys):
    folder, words, _ = runs
    random = np.random.default_rng(0)
    noise = np.cumsum(random.normal(0, 0.02, (400, 17, 3)), axis=0) + random.normal(0, 1, (17, 3))
    other = write_xio(simulate(noise, ["left_shank"], random), folder / "other")
    assert main([*words, "--imu", str(other), "--out", str(folder / "refused")]) == 1
    assert "fits the video nowhere" in error_line(capsys)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--imu", "no-such-folder"], 2, "no-such-folder"),
        (["--imu-offset", "2"], 2, "only with --imu"),
        (["--imu", ".", "--no-world"], 2, "needs world coordinates"),
        (["--imu", ".", "--edits", "a.json"], 2, "not with --edits"),
        (["b.mp4", "--imu", "."], 2, "imu: not supported with several cameras"),
        (["b.mp4", "--depth", "."], 2, "depth: not supported with several cameras"),
    ],
)
def test_wrong_uses_end_in_one_line(words, status, message, shared, tmp_path, capsys):
    assert main([str(shared / "videos/dance.mp4"), *words, "--out", str(tmp_path / "out")]) == status
    assert message in error_line(capsys)
