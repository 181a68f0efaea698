"""Runs with edits: the same bytes from the command and Python, and the injected errors are gone."""

import warnings

import numpy as np
import pytest
from pose_apps.run import main

from pose.config import PipelineConfig
from pose.errors import PoseWarning, UsageError
from pose.pipeline import Pipeline
from pose.results.edits import Place, write_edits
from pose.results.edits.types import (
    Contact,
    Delete,
    Floor,
    Gravity,
    Height,
    Hidden,
    Joint,
    Keep,
    Rename,
    Sides,
    Split,
    Swap,
)
from pose.structures.skeletons import to_h36m17

pytestmark = pytest.mark.usefixtures("at_hand")
TRUNK = [1, 4, 11, 14]


def place(result, person, time):
    """Where a person of a result is at a time."""
    table = result.table
    position = np.abs(result.times - time).argmin()
    rows = (table.id == person) & (table.frame_index == table.frames[position])
    points, _ = to_h36m17(table.keypoints[rows], table.scores[rows], table.skeleton)
    x, y = points[0, TRUNK].mean(axis=0)
    return Place(float(result.times[position]), float(x), float(y))


def test_a_command_and_python_give_equal_bytes_and_reuse_the_2d(dance, tmp_path, tiny_lifter, monkeypatch, capsys):
    out, cache = tmp_path / "out", str(tmp_path / "cache")
    call = ["--video", dance, "--end", "0.4", "--lifter", str(tiny_lifter), "--cache", cache, "--no-overlay"]
    assert main([*call, "--out", str(out)]) == 0
    first = (out / "poses.npz").read_bytes()
    pipeline = Pipeline(PipelineConfig(lifter=str(tiny_lifter)), lazy=True)
    plain = pipeline.process(dance, end=0.4, cache=cache)
    here = place(plain, plain.people[0], 0.2)
    edits = [Rename(here, "Anna"), Joint(here, "left_knee", 200, 300), Height(here, 1.7), Delete(Place(0.2, 1e4, 0))]
    write_edits(tmp_path / "edits.json", edits)
    capsys.readouterr()
    with monkeypatch.context() as no_2d:
        no_2d.setattr("pose.session.Session.tracked", lambda *_: pytest.fail("computed again"))
        with pytest.warns(PoseWarning, match=r"edit 4 \(delete\) is not applied: no person"):
            edited = pipeline.process(dance, end=0.4, cache=cache, edits=tmp_path / "edits.json")
    edited.save(tmp_path / "python.npz")
    again = tmp_path / "again"
    assert main([*call, "--out", str(again), "--edits", str(tmp_path / "edits.json")]) == 0
    assert "edit 4 (delete) is not applied" in capsys.readouterr().err
    written = (again / "poses.npz").read_bytes()
    assert written == (tmp_path / "python.npz").read_bytes() != first
    uncached = tmp_path / "uncached"
    assert main([*call[:-3], "--no-overlay", "--out", str(uncached), "--edits", str(tmp_path / "edits.json")]) == 0
    assert (uncached / "poses.npz").read_bytes() == written
    assert (out / "poses.npz").read_bytes() == first
    assert edited.table.run.settings["names"] == {"1": "Anna"}
    assert edited.heights[1] == (1.7, 0)


def test_sides_need_a_lifter_that_sees_the_whole_clip(dance, tmp_path):
    pipeline = Pipeline.from_preset("fast", lifter="stream")
    edits = [Sides(Place(0.1, 0, 0), "legs", 0.3, (0, 0), (1, 1))]
    plain = pipeline.process(dance, end=0.3, cache=tmp_path)
    edits = [Sides(place(plain, plain.people[0], 0.1), "legs", 0.3, (0, 0), (1, 1))]
    with pytest.raises(UsageError, match="offline lifter"):
        pipeline.process(dance, end=0.3, cache=tmp_path, edits=edits)


def error(result, truth, people):
    """Mean error of all joints in the world, mm; a missing person counts 1 m."""
    off = [
        np.linalg.norm(result.joints(people=[one]) - truth.joints(people=[one]), axis=-1)
        if one in result.people
        else np.ones((1, len(truth.times), 17))
        for one in people
    ]
    known = np.isfinite(truth.joints(people=people)).all(axis=-1)
    return 1000 * float(np.nan_to_num(np.concatenate(off), nan=1.0)[known].mean())


@pytest.mark.slow
def test_edits_undo_swapped_ids_a_split_a_hidden_limb_and_a_wrong_floor(videos, tmp_path):
    pipeline = Pipeline(lazy=True)

    def run(edits=()):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PoseWarning)
            return pipeline.process(videos / "two-people" / "view-a.mp4", cache=tmp_path, edits=edits)

    truth = run()
    one, two = truth.people[:2]
    damage = [
        Swap(place(truth, one, 0.5), place(truth, two, 0.5)),
        Joint(place(truth, two, 0.9), "left_knee", 100, 100),
        Floor(place(truth, one, 1.0), 0.3),
        Gravity(0.5, (100.0, 100.0), (260.0, 700.0)),
    ]
    broken = run(damage)
    before = error(broken, truth, (one, two))
    table = truth.table
    at = np.abs(truth.times - 0.9).argmin()
    row = (table.id == one) & (table.frame_index == table.frames[at])
    knee = table.keypoints[row][0, table.skeleton.index("left_knee")]
    repaired = run(
        [
            *damage[:2],
            Joint(place(broken, two, 0.9), "left_knee", float(knee[0]), float(knee[1])),
            Swap(place(broken, one, 0.6), place(broken, two, 0.6)),
        ]
    )
    assert before > 300
    assert error(repaired, truth, (one, two)) < 0.2 * before


@pytest.mark.slow
def test_every_kind_of_edit_runs_and_changes_what_it_says(videos, tmp_path):
    pipeline = Pipeline(lazy=True)
    clip = videos / "two-people" / "view-a.mp4"
    truth = pipeline.process(clip, cache=tmp_path)
    one, two = truth.people[:2]
    here = place(truth, one, 0.4)

    def run(*edits):
        return pipeline.process(clip, cache=tmp_path, edits=edits)

    assert run(Delete(here)).people == (two,)
    assert run(Split(here)).people == (one, two, two + 1)
    assert run(Height(here, 1.9)).heights[one] == (1.9, 0)
    assert np.array_equal(run(Keep(here)).joints(), truth.joints())
    raised = run(Floor(here, 0.4)).joints(people=[one]) - run(Floor(here)).joints(people=[one])
    assert np.nanmedian(raised[..., 1]) == pytest.approx(0.4, abs=0.1)
    off = run(Contact(here, "left", False, 0.8), Contact(here, "right", False, 0.8)).contacts(people=[one])
    inside = (truth.times >= here.time) & (truth.times <= 0.8)
    assert (off[0, inside] == 0).all()
    assert truth.contacts(people=[one])[0, inside].max() > 0.5
    hidden = run(Hidden(here, "left_arm", 0.8))
    wrist = truth.joint_names.index("left_wrist")
    assert np.nanmean(hidden.sigma(people=[one])[0, inside, wrist]) > 1.3 * np.nanmean(
        truth.sigma(people=[one])[0, inside, wrist]
    )
    knees = [truth.table.skeleton.index(f"{side}_knee") for side in ("left", "right")]
    row = (truth.table.id == one) & (truth.table.frame_index == truth.table.frames[np.abs(truth.times - 0.4).argmin()])
    left, right = truth.table.keypoints[row][0, knees].tolist()
    crossed = run(Sides(here, "legs", 0.8, tuple(right), tuple(left)))
    same = run(Sides(here, "legs", 0.8, tuple(left), tuple(right)))
    assert crossed.table.swapped[(crossed.table.id == one), 0].sum() > 5
    ankles = [truth.joint_names.index(f"{side}_ankle") for side in ("left", "right")]
    off = crossed.joints(people=[one]) - truth.joints(people=[one])
    assert np.nanmax(np.linalg.norm(off, axis=-1)[0, inside][:, ankles]) > 0.15
    assert np.array_equal(same.joints(), truth.joints())
