"""Results of many people in few frames each: portions of the table hold several people, and reports stay bounded."""

import re
from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import random_result, run_info
from strict import read_trc

from pose.body.selection import CHUNK
from pose.body.soles import FOOT_NAMES
from pose.body.tracks import Selection
from pose.export import c3d, glb, html, trc
from pose.export.table import rows
from pose.results import NpzWriter, load_poses
from pose.structures.skeletons import H36M17

PEOPLE = 40


@pytest.fixture
def recording(tmp_path):
    """Each person is in two frames, two people are in each frame."""
    path, draw = tmp_path / "poses.npz", np.random.default_rng(0)
    with NpzWriter(path, run_info()) as writer:
        for index in range(PEOPLE + 1):
            result = random_result(draw, index, 2)
            writer.write(replace(result, people=replace(result.people, ids=np.array([index, index + 1]))))
    return Selection(load_poses(path), "many")


def test_portions_with_several_people_lose_no_row(recording):
    people = recording.people
    parts = list(rows(recording, people))
    assert [part.names for part in parts] == [H36M17.names, FOOT_NAMES]
    each = [list(rows(recording, [person])) for person in people]
    for part in parts:
        apart = [one for of_person in each for one in of_person if one.names == part.names]
        assert len(part.frame) == sum(len(one.frame) for one in apart) < CHUNK
        for name in ("person", "frame", "time", "values", "filled"):
            np.testing.assert_array_equal(getattr(part, name), np.concatenate([getattr(one, name) for one in apart]))


@pytest.mark.parametrize("z_up", [False, True])
def test_marker_files_hold_heels_and_toes(recording, tmp_path, z_up):
    """The same as the table's, with y or z up."""
    ezc3d = pytest.importorskip("ezc3d")
    recording = Selection(recording.table, "many", space="world", z_up=z_up)
    recording.table.columns["scores"][:] = 1  # all feet are detected
    track = recording.track(5, recording.uniform)
    trc.write(track, tmp_path / "a.trc")
    c3d.write(track, tmp_path / "a.c3d")
    markers = read_trc((tmp_path / "a.trc").read_text())
    made = ezc3d.c3d(str(tmp_path / "a.c3d"))
    assert tuple(markers.names) == (*H36M17.names, *FOOT_NAMES)
    assert made["parameters"]["POINT"]["LABELS"]["value"] == markers.names
    assert made["parameters"]["POINT"]["Y_SCREEN"]["value"] == ["+Z" if z_up else "+Y"]
    points = np.moveaxis(made["data"]["points"][:3] / 1000, [0, 1, 2], [2, 1, 0])
    np.testing.assert_allclose(points, markers.values, atol=2e-5)
    listed = {name: part.values[:, at, :3] for part in rows(recording, [5]) for at, name in enumerate(part.names)}
    # These random images show some feet backwards, which are missing.
    all_four = np.isfinite(markers.values[:, -len(FOOT_NAMES) :, 0]).all(axis=1)
    assert all_four.any()
    for name, places in listed.items():
        own = markers.values[:, markers.names.index(name)]
        np.testing.assert_allclose(own[all_four] if name in FOOT_NAMES else own, places, atol=2e-5)
    upright = rows(Selection(recording.table, "many", space="world"), [5])
    x, y, z = next(iter(upright)).values[:, :, :3].T
    expected = np.stack([x, -z, y] if z_up else [x, y, z]).T
    np.testing.assert_allclose(markers.values[:, :17], expected, atol=2e-5)


@pytest.mark.parametrize("form", [glb, html])
def test_people_with_the_most_frames_are_exported(recording, tmp_path, monkeypatch, form):
    monkeypatch.setattr(form, "MAX_PEOPLE", 5)
    recording.rig = "sticks"
    people = recording.people
    notes = form.write(recording, people, tmp_path / "file")
    assert f"the 5 of {len(people)} people in the most frames; --person chooses others" in notes
    if form is html:
        page = (tmp_path / "file").read_text()
        assert re.search(rf'"leftOut": ?{len(people) - 5}', page)
