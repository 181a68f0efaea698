"""The published figures of the presets: made by `benchmarks.presets`, of this version, and unchanged in the page."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from pose_apps.support.options import PRESET_TIMES

from benchmarks.common.two_views import JOINTS, Truth, View
from benchmarks.presets import people
from benchmarks.presets.measure import CLIPS, MARKS, Distance, difference, errors, table
from pose.structures.skeletons import H36M17

ROOT = Path(__file__).resolve().parent.parent
REPORT = json.loads((ROOT / "docs/studies/results/presets.json").read_text(encoding="utf-8"))
PEOPLE = ROOT / "docs/studies/results/people.json"
PAGE = (ROOT / "docs/studies/presets.md").read_text(encoding="utf-8")


def test_the_page_shows_the_measured_tables():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert REPORT["version"] == version, "run the commands of benchmarks.presets"
    assert f"{MARKS[0]}\n{table(REPORT)}\n{MARKS[1]}" in PAGE
    measured = json.loads(PEOPLE.read_text(encoding="utf-8")) if PEOPLE.exists() else None
    assert measured is None or measured["version"] == version, "run benchmarks.presets people"
    assert f"{people.MARKS[0]}\n{people.table(measured) if measured else ''}\n{people.MARKS[1]}" in PAGE


def test_every_preset_has_times_beside_mediapipe_and_errors_of_both_clips():
    rows = {row["name"]: row for row in REPORT["rows"]}
    for name in ("fast", "standard", "best"):
        assert rows[name]["times"].keys() >= {"commit", "ms", "processor_ratio", "time_ratio"}
        for clip in CLIPS:
            assert rows[name][Path(clip).stem].keys() >= {"commit", "mm", "fast", "degrees"}


def result(joints, frames, ids=None):
    count = len(joints)
    return {
        "joints3d": joints, "frame_index": np.arange(count) if frames is None else frames,
        "id": np.ones(count, int) if ids is None else ids, "time": np.arange(count) / 10,
        "box": np.tile([0, 0, 100, 200], (count, 1)),
    }  # fmt: skip


def test_errors_ignore_rotation_and_scale_and_separate_fast_joints():
    rng = np.random.default_rng(0)
    joints = np.repeat(rng.normal(0, 0.4, (1, 17, 3)), 20, axis=0)
    joints[:, 16, 0] += np.arange(20) * 0.3  # 3 m/s
    turned = 1.1 * joints[..., [1, 0, 2]] * [1, -1, 1]
    reference = Distance([], [result(joints, None)])
    same = errors([result(turned, None)], reference)
    zero = {"mm": 0, "fast": 0, "degrees": 0, "found": 1}
    assert {name: same[name] for name in zero} == pytest.approx(zero, abs=1e-5)
    wrong = joints + np.where(np.arange(17) == 16, 0.05, 0)[:, None]
    found = errors([result(wrong[:10], None)], reference)
    assert 0 < found["mm"] < 20
    assert found["fast"] > found["mm"]
    assert found["degrees"] > 0
    assert found["found"] == 0.5
    assert set(found["blocks"]) < set(same["blocks"])
    apart, sigma = difference(found, same)
    assert apart == pytest.approx(found["mm"], abs=0.01)
    assert 0 <= sigma < found["mm"]


def test_truth_of_two_views_is_triangulated_and_excludes_joints_that_do_not_meet():
    rng = np.random.default_rng(1)
    turn = np.array([[0.5, 0, -(3**0.5) / 2], [0, 1, 0], [3**0.5 / 2, 0, 0.5]])
    matrix = np.array([[1500.0, 0, 500], [0, 1500, 900], [0, 0, 1]])
    views = [View(matrix, np.zeros(4), r, np.array([0, 0, 4.0])) for r in (np.eye(3), turn)]
    joints = rng.normal(0, 0.4, (20, 17, 3))
    results = []
    for view in views:
        seen = joints @ view.rotation.T + view.translation
        pixels = (seen[..., :2] / seen[..., 2:]) * 1500 + matrix[:2, 2]
        extra = {"keypoints": pixels, "scores": np.ones((20, 17)), "keypoint_sigma": np.full((20, 17), 10.0)}
        results.append(result(joints, None) | extra | {"skeleton": np.array(H36M17.name)})
    results[1]["keypoints"][:, 3, 1] += 100
    truth = Truth(views, results)
    assert truth.known.sum(axis=0).tolist() == [0 if joint == 3 else 20 for joint in JOINTS]
    found = np.linalg.norm(truth.joints - joints[:, JOINTS], axis=-1)
    assert found[truth.known].max() < 1e-3
    assert [rows.tolist() for rows in truth.of_view(1, results[1])] == [list(range(20))] * 2


def test_the_help_text_says_what_presets_cost():
    times = {row["name"]: row["times"]["ms"] for row in REPORT["rows"]}
    for name, factor in PRESET_TIMES.items():
        assert times[name] / times["fast"] == pytest.approx(factor, rel=0.3), name
