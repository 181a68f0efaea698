"""Training in the laboratory: stopped and resumed it is the same, and ridge regression is what its formula says."""

from statistics import mean

import numpy as np
import pytest
import torch
from waving import trial_setup, waving

from pose.errors import UsageError
from pose.training.batches import TensorBatch
from pose.training.laboratory.experiment import Experiment
from pose.training.laboratory.log import Record, TrialLog
from pose.training.laboratory.ridge import RidgeLifter
from pose.training.laboratory.run import run_experiment
from pose.training.laboratory.studies import laboratories
from pose.training.laboratory.table import format_table
from pose.training.laboratory.trial import Clock
from pose.training.measure import measure

EXPERIMENT = Experiment(
    name="tiny",
    kind="lifters",
    claim="Tiny ones learn a little.",
    conditions={
        "gru": {
            "model": {"model": "gru", "dim": 8, "depth": 1},
            "steps": 4,
            "frames": 9,
            "sequences": 2,
            "evaluated": 1,
        },
        "performer": {
            "model": {"attention": "performer", "dim": 8, "depth": 1, "heads": 2},
            "steps": 4,
            "frames": 9,
            "sequences": 2,
            "evaluated": 1,
        },
        "ridge": {
            "model": {"model": "ridge", "before": 1, "after": 0},
            "steps": 4,
            "frames": 9,
            "sequences": 2,
            "evaluated": 1,
        },
    },
)


@pytest.fixture(scope="module")
def motion(tmp_path_factory):
    return waving(tmp_path_factory.mktemp("mocap") / "clips.npz")


def results(folder):
    """Without what is measured with a clock."""
    return [
        {name: value for name, value in record.results.items() if name != "step_ms"}
        for record in TrialLog(folder, "tiny").records()
    ]


class Steps:
    """Processor time that passes by one second for each look at it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1
        return self.now


def test_resumed_trial_gives_the_same_result(motion, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_experiment(EXPERIMENT, whole, seeds=1, clock=Clock(), motion=lambda: motion)
    calls = 0
    for calls in range(1, 20):  # noqa: B007
        progress = run_experiment(EXPERIMENT, parts, seeds=1, clock=Clock(4.5, now=Steps()), motion=lambda: motion)
        if progress.done == progress.total:
            break
    assert calls > 2
    assert results(parts) == results(whole)
    assert len(results(whole)) == 3
    assert list(parts.glob("unfinished/*.pt")) == []


def test_state_of_other_settings_is_not_resumed(motion, tmp_path):
    run_experiment(EXPERIMENT, tmp_path, seeds=1, clock=Clock(3.5, now=Steps()), motion=lambda: motion)
    (state,) = tmp_path.glob("unfinished/*.pt")
    kept = torch.load(state, weights_only=True)
    torch.save(kept | {"key": "other", "step": 4}, state)
    run_experiment(EXPERIMENT, tmp_path, seeds=1, clock=Clock(), motion=lambda: motion)
    run_experiment(EXPERIMENT, tmp_path / "whole", seeds=1, clock=Clock(), motion=lambda: motion)
    assert results(tmp_path) == results(tmp_path / "whole")


def test_ridge_minimises_squared_distance_and_penalty(motion):
    batches = [TensorBatch.of(motion.training(9, 4, 0)(step)) for step in range(3)]
    lifter = RidgeLifter(1, 0, penalty=0.01).fit(batches)
    x = np.concatenate([lifter.inputs(b.observe().features)[b.valid].double().numpy() for b in batches])
    y = np.concatenate([b.joints[b.valid].flatten(1).double().numpy() for b in batches])
    keep = 0.01 * len(x) * np.eye(x.shape[1])
    keep[-1, -1] = 0
    gradient = x.T @ (x @ lifter.weight.double().numpy() - y) + keep @ lifter.weight.double().numpy()
    assert np.abs(gradient).max() < 1e-3 * np.abs(x.T @ y).max()
    first = batches[0].observe().features
    np.testing.assert_array_equal(lifter.inputs(first)[:, 1, : first.shape[-1]], first[:, 0])  # the frame before
    np.testing.assert_array_equal(lifter.inputs(first)[:, 0, : first.shape[-1]], first[:, 0])  # the first stands for it


def test_ridge_regression_is_measured_like_a_lifter(motion):
    batches = [TensorBatch.of(motion.training(9, 4, 0)(step)) for step in range(8)]
    for after in (0, 1):
        metrics = measure(RidgeLifter(1, after).fit(batches), motion.evaluation("validation", "gt", 9))
        nothing = measure(RidgeLifter(1, after), motion.evaluation("validation", "gt", 9))
        assert 0 < metrics.mpjpe < nothing.mpjpe


def test_groups_hold_every_validation_clip_once(motion):
    for by in ("subject", "exercise", "size", "speed"):
        groups = list(motion.groups(by, "gt", 30))
        assert sum(int(batch.valid.sum()) for group in groups for batch in group.batches) == sum(
            int(batch.valid.sum()) for batch in motion.evaluation("validation", "gt", 30)
        )
    assert [group.group for group in motion.groups("subject", "gt", 30)] == ["39"]


TINY = {"dim": 8, "depth": 1, "heads": 2, "expansion": 2}
SECONDS = dict.fromkeys(("01", "39", "05", "uiprmd-s01", "uiprmd-s07", "08"), 1.5) | {"uiprmd-s01": 4.0}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    return trial_setup(tmp_path_factory.mktemp("mocap"), SECONDS)


def test_each_body_counts_the_same_and_test_bodies_are_locked(given):
    settings = laboratories.LaboratorySettings(
        model=TINY, steps=2, frames=9, sequences=2, evaluated=1, trained_on=["cmu", "uiprmd"]
    )
    results = laboratories.run(settings, given).results
    bodies = {
        name.removeprefix("gt@"): value for name, value in results.items() if name.startswith("gt@") and " " in name
    }
    assert set(bodies) == {"cmu 39", "cmu 05", "uiprmd uiprmd-s07"}
    assert results["gt"] == pytest.approx(mean(bodies.values()))
    assert results["gt@cmu"] == pytest.approx((bodies["cmu 39"] + bodies["cmu 05"]) / 2)
    assert results["gt_aligned"] < results["gt_scaled"] < results["gt"]


def test_batches_hold_only_the_chosen_laboratories(given):
    both = given.motion().training(9, 4, 0, laboratories=("cmu", "uiprmd"))(0)
    one = given.motion().training(9, 4, 0, laboratories=("cmu",))(0)
    again = given.motion().training(9, 4, 0, without="uiprmd-s01")(0)
    np.testing.assert_array_equal(one.joints, again.joints)
    assert not np.array_equal(both.joints, one.joints)
    with pytest.raises(UsageError, match="no training subject of the laboratory snu"):
        given.motion().training(9, 4, 0, laboratories=("snu",))
    with pytest.raises(ValueError, match="must name a laboratory"):
        laboratories.LaboratorySettings(model=TINY, trained_on=[])


def test_networks_are_compared_by_seed_and_by_body():
    conditions = {name: {"model": TINY} for name in ("one", "other")}
    experiment = Experiment(name="few", kind="bodies", claim="", conditions=conditions)

    def record(condition, seed, errors):
        results = {"gt": mean(errors)} | {f"gt@cmu {i}": error for i, error in enumerate(errors)}
        return Record(
            experiment="few", condition=condition, seed=seed, settings={}, steps=1, examples=1, cpu_seconds=1.0,
            results=results,
        )  # fmt: skip

    records = {
        "one": [record("one", 0, [10.0, 20.0]), record("one", 1, [30.0, 40.0])],
        "other": [record("other", 0, [12.0, 26.0]), record("other", 1, [32.0, 46.0]), record("other", 2, [99.0, 99.0])],
    }
    titles, _, first, second = format_table(experiment, records).splitlines()
    assert titles.endswith("paired over seeds | exact 2D: difference to one, paired over bodies |")
    assert first.endswith("| |")
    assert second.endswith("| 4.00 ± 0 | 4 ± 25 |")
