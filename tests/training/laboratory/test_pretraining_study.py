"""The study of pre-training: each share has its subjects, and a trial of several trainings goes on where it stopped."""

from itertools import count

import pytest
from pose_datasets.training import MocapConfig
from waving import waving

from pose.training.laboratory.experiment import Experiment
from pose.training.laboratory.kinds import settings_of
from pose.training.laboratory.log import TrialLog
from pose.training.laboratory.run import run_experiment
from pose.training.laboratory.studies import pretraining
from pose.training.laboratory.trial import Clock

MODEL = {"dim": 8, "depth": 1, "heads": 2, "expansion": 2}
COMMON = {"model": MODEL, "first": 3, "steps": 2, "frames": 9, "sequences": 2, "evaluated": 1, "shares": ["1/4", "all"]}
EXPERIMENT = Experiment(
    name="tiny",
    kind="pretraining",
    claim="It helps.",
    conditions={name: COMMON | {"objective": name} for name in ("none", "any-order")},
)


@pytest.fixture(scope="module")
def motion(tmp_path_factory):
    subjects = ("01", "02", "03", "06", "39", "08")
    return waving(tmp_path_factory.mktemp("mocap") / "clips.npz", dict.fromkeys(subjects, 1.5))


def results(folder):
    return [record.results for record in TrialLog(folder, "tiny").records()]


def test_multi_training_trial_resumes(motion, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_experiment(EXPERIMENT, whole, seeds=1, clock=Clock(), motion=lambda: motion)
    calls = 0
    for calls in range(1, 30):  # noqa: B007
        clock = Clock(5.5, now=count(0.0).__next__)
        progress = run_experiment(EXPERIMENT, parts, seeds=1, clock=clock, motion=lambda: motion)
        if progress.done == progress.total:
            break
    assert 2 < calls < 20
    assert results(parts) == results(whole)
    without, with_first = results(whole)
    assert set(without) == {"1/4", "all"}
    assert set(with_first) == {"1/4", "all", "distance", "simple"}
    assert without["all"] != with_first["all"]
    assert list(parts.glob("unfinished/*.pt")) == []


def test_data_shares_are_nested_subject_sets(motion, monkeypatch):
    left_out = []

    def config(**values):
        left_out.append(set(values["without"]))
        return MocapConfig(**values)

    monkeypatch.setattr("pose_apps.lab.motion.MocapConfig", config)
    everybody = {clip.subject for clip in motion._clips.clips("train")}
    assert len(everybody) == 4
    for seed in range(10, 14):
        for share in (1 / 16, 0.25, 0.5, 1.0):
            motion.training(9, 2, seed, share)
    for sixteenth, quarter, half, whole in zip(*[iter(left_out)] * 4, strict=True):
        assert [len(everybody - some) for some in (sixteenth, quarter, half, whole)] == [1, 1, 2, 4]
        assert half < quarter == sixteenth
    assert len({frozenset(some) for some in left_out[::4]}) > 1


@pytest.mark.parametrize(
    ("values", "message"),
    [({"objective": "magic"}, "objective"), ({"shares": ["1/3"]}, "shares"), ({"first": 0}, "first"),
     ({"model": {"model": "ridge"}}, "ridge is solved"), ({"steps": 0}, "steps")],
)  # fmt: skip
def test_invalid_settings_are_rejected(values, message):
    with pytest.raises(ValueError, match=message):
        pretraining.PretrainingSettings(**(COMMON | values))


def test_shipped_experiment_is_valid():
    from pose_apps.lab.command import _folder

    from pose.training.laboratory.experiment import load_experiment

    experiment = load_experiment(_folder() / "pretraining.yaml")
    settings = [settings_of(experiment, condition) for condition in experiment.conditions]
    assert len(settings) >= 2
    assert all(isinstance(one, pretraining.PretrainingSettings) for one in settings)
