"""Results of many people in few frames each: portions of the table hold several people, and reports stay bounded."""

import re
from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import random_result, run_info

from pose.body.selection import CHUNK
from pose.body.tracks import Recording
from pose.export import glb, html
from pose.export.table import FOOT_NAMES, rows
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
    return Recording(load_poses(path), "many")


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
