"""Trainings on the people of some laboratories: who is in the batches, and which bodies the means are of."""

from statistics import mean

import numpy as np
import pytest
from waving import trial_setup

from pose.errors import UsageError
from pose.training.laboratory.experiment import Experiment
from pose.training.laboratory.log import Record
from pose.training.laboratory.studies import laboratories
from pose.training.laboratory.table import format_table

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
