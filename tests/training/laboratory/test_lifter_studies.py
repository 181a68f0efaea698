"""Studies of a trained lifter: what is hidden is hidden, context is cut, and every test frame is counted."""

import numpy as np
import pytest
import torch
from waving import trial_setup

from pose.errors import PoseError
from pose.training.laboratory.studies import shipped


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    return trial_setup(tmp_path_factory.mktemp("mocap"), dict.fromkeys(("01", "39", "05", "08"), 6.0))


def test_sequences_have_the_requested_length(given):
    for frames in (20, 81):
        batches = list(shipped.sequences(given, "gt", frames, 1))
        assert batches
        assert all(batch.valid.shape == (1, frames) and batch.valid.all() for batch in batches)
        assert all(batch.joints.shape == (1, frames, 17, 3) for batch in batches)
    assert list(shipped.sequences(given, "gt", 500, 1)) == []


class Answer:
    """What a lifter would say that knows the truth."""

    def __init__(self, batch):
        self.joints = torch.from_numpy(batch.joints)


@pytest.fixture
def seen(monkeypatch):
    """The batches that the lifter gets."""
    batches = []
    monkeypatch.setattr(shipped, "lift_batch", lambda network, batch: batches.append(batch) or Answer(batch))
    return batches


def test_only_chosen_frames_are_hidden(given, seen):
    settings = shipped.GapSettings(hidden="right arm", seconds=0.5, share=1)
    assert shipped.gaps(settings, given).results == {"mpjpe": 0, "rest": 0}
    original = next(shipped.sequences(given, "gt", 81, 1))
    hidden = np.zeros_like(original.scores, bool)
    hidden[:, 33:48, 14:17] = True
    assert (seen[0].scores[hidden] == 0).all()
    np.testing.assert_array_equal(seen[0].scores[~hidden], original.scores[~hidden])
    assert set(shipped.gaps(shipped.GapSettings(hidden="everything", seconds=0.1, share=1), given).results) == {"mpjpe"}


def test_hiding_everything_for_long_costs_much(given):
    def error(seconds):
        return shipped.gaps(shipped.GapSettings(hidden="everything", seconds=seconds, share=1), given).results["mpjpe"]

    assert error(2.0) > error(0.0)


def test_a_linear_fill_is_a_line_between_the_frames_beside_it(given, seen):
    settings = shipped.GapSettings(hidden="right leg", seconds=0.5, fill="linear", share=1)
    assert shipped.gaps(settings, given).results == {"mpjpe": 0, "rest": 0}
    original = next(shipped.sequences(given, "gt", 81, 1))
    filled, gap = seen[0].keypoints[0], slice(33, 48)
    assert (filled[: gap.start] == original.keypoints[0, : gap.start]).all()
    assert (filled[:, 7:] == original.keypoints[0, :, 7:]).all()
    leg = filled[gap.start - 1 : gap.stop + 1, 1:4]
    np.testing.assert_allclose(np.diff(leg, axis=0), np.broadcast_to(np.diff(leg, axis=0)[:1], (16, 3, 2)), atol=1e-2)


def test_more_context_is_not_worse_and_all_of_it_is_the_whole_window(given):
    errors = {
        frames: shipped.context(shipped.ContextSettings(context=frames, share=1), given).results["gt"]
        for frames in (1, 27, 81)
    }
    assert errors[81] < errors[1]
    assert len(set(errors.values())) == 3
    with pytest.raises(ValueError, match="an odd number"):
        shipped.ContextSettings(context=4)


def test_maps_of_every_block_but_the_last_are_compared_to_the_next(given):
    first = shipped.maps(shipped.MapSettings(block=1, frames=20), given).results
    last = shipped.maps(shipped.MapSettings(block=5, frames=20), given).results
    assert set(first) == set(shipped.MAP_COLUMNS)
    assert set(last) == set(shipped.MAP_COLUMNS) - {"apart", "apart_frames"}
    assert 1 < first["seen"] <= 20
    assert 1 <= first["rank"] <= 20
    assert 0 < first["apart"] < 1
    with pytest.raises(PoseError, match="offline has 5"):
        shipped.maps(shipped.MapSettings(block=6, frames=20), given)


def test_groups_are_the_test_subjects(given):
    results = shipped.groups(shipped.GroupSettings(by="subject"), given).results
    assert set(results) == {"05", "39"}
    assert all(0 < error < 1000 for error in results.values())
    assert set(shipped.groups(shipped.GroupSettings(by="exercise"), given).results) == {"CMU"}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (shipped.GapSettings, {"hidden": "tail", "seconds": 0.1}),
        (shipped.GapSettings, {"hidden": "right arm", "seconds": 9.0}),
        (shipped.GapSettings, {"hidden": "right arm", "seconds": 0.1, "fill": "magic"}),
        (shipped.GroupSettings, {"by": "mood"}),
        (shipped.GroupSettings, {"by": "size", "condition": "fog"}),
        (shipped.MapSettings, {"block": 0}),
    ],
)
def test_invalid_settings_are_rejected(kind, settings):
    with pytest.raises(ValueError, match=r"\w+: |must be"):
        kind(**settings)
