"""`pose-prepare forecast` and `pose-train forecaster` on made-up motion, end to end."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from command_errors import error_line
from pose_apps import prepare
from pose_apps.train import main
from pose_datasets.mocap import save_clips

from pose.lifting.forecast import forecast, load_forecaster
from pose.lifting.forecast.build import load_network
from pose.structures.sequences import Sequence3D

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from motion import waving_clip

pytestmark = pytest.mark.filterwarnings(
    "ignore:train.schedule. the warm-up:pose.errors.PoseWarning"
)  # runs of few steps

TINY = [
    "--data.batch=8", "--train.precision=fp32", "--train.model.dim=16", "--train.model.depth=1",
    "--train.model.heads=2", "--train.log_every=1", "--train.checkpoint_every=2", "--train.evaluate_every=4", "--quiet",
]  # fmt: skip
RECIPES = sorted(path.stem for path in (Path(__file__).parents[2] / "configs" / "train").glob("forecaster*.yaml"))


@pytest.fixture(scope="module")
def motions(tmp_path_factory) -> Path:
    """From two files of clips, lifted by the shipped lifter."""
    folder = tmp_path_factory.mktemp("motions")
    save_clips([waving_clip(subject, seconds=4.0) for subject in ("01", "39")], folder / "one.npz")
    save_clips([waving_clip("08", seconds=4.0)], folder / "two.npz")
    out = folder / "motions.npz"
    source = f"{folder / 'one.npz'},{folder / 'two.npz'}"
    assert not prepare.main(["forecast", "--source", source, "--out", str(out), "--sequences", "32", "--quiet"])
    return out


def train(motions: Path, out: Path, *more: str) -> int:
    return main(["forecaster", "--data.motions", str(motions), "--out", str(out), *more])


def losses(out: Path) -> list[str]:
    with (out / "training.csv").open(newline="") as file:
        return [row["loss"] for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    "recipe", [pytest.param(name, marks=[] if name == "forecaster_mlp" else pytest.mark.slow) for name in RECIPES]
)
def test_every_forecaster_recipe_trains_and_predicts(motions, tmp_path, capsys, recipe):
    path = Path(__file__).parents[2] / "configs" / "train" / f"{recipe}.yaml"
    assert train(motions, tmp_path / "run", "--config", str(path), *TINY, "--train.steps=2") == 0
    printed = capsys.readouterr().out
    assert "validation subjects, from the truth: MPJPE" in printed
    assert "validation subjects, from the pipeline: MPJPE" in printed
    final = tmp_path / "run" / "final.safetensors"
    assert (load_network(final).calibration[..., 2:] != 0).all()  # calibrated
    past = Sequence3D(
        np.zeros((5, 17, 3), np.float32), np.ones((5, 3), np.float32), np.ones((5, 17), np.float32), np.arange(5) / 30
    )
    found = forecast(past, 0.5, forecaster=load_forecaster(final))
    assert np.isfinite(found.sequence.joints).all()
    assert (found.sequence.sigma[:, 1:] > 0.1).all()  # mm, not m


def test_resume_continues_from_the_last_checkpoint(motions, tmp_path, monkeypatch):
    """A run that is interrupted and goes on has the losses of one that was not."""
    from pose_datasets.forecasting import MotionSource

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train(motions, whole, *TINY, "--train.steps=5") == 0
    batch = MotionSource.batch

    def interrupted(self, step):
        if step == 3:
            raise KeyboardInterrupt
        return batch(self, step)

    monkeypatch.setattr(MotionSource, "batch", interrupted)
    assert train(motions, broken, *TINY, "--train.steps=5") == 130
    monkeypatch.undo()
    assert train(motions, broken, *TINY, "--train.steps=5", "--resume") == 0
    assert len(losses(whole)) == 5
    assert losses(whole) == losses(broken)
    again = tmp_path / "again"
    assert main(["forecaster", "--config", str(whole / "config.yaml"), "--out", str(again)]) == 0
    assert losses(again) == losses(whole)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--train.model.kind=oracle"], 2, "one-shot, autoregressive"),
        (["--train.model.heads=3"], 2, "even multiple of heads"),
        (["--data.motions="], 2, "--data.motions is missing"),
        (["--data.motions=missing.npz"], 1, "missing.npz"),
        (["--train.lookaheads=[1]"], 2, "train.lookaheads"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(motions, tmp_path, capsys, arguments, status, said):
    assert train(motions, tmp_path / "run", *TINY, *arguments) == status
    assert said in error_line(capsys)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--sequences", "0"], 2, "sequences: 0"),
        (["--lifter", "offline"], 2, "--lifter: offline is not a causal network"),
        (["--source", "missing.npz"], 2, "missing.npz: no such file"),
    ],
)
def test_invalid_preparation_gives_a_one_line_error(motions, tmp_path, capsys, arguments, status, said):
    given = ["forecast", "--source", str(motions.parent / "one.npz"), "--out", str(tmp_path / "out.npz"), *arguments]
    assert prepare.main(given) == status
    assert said in capsys.readouterr().err
