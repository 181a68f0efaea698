"""Train on Human3.6M and evaluate, start to end, on synthetic data in the real layout."""

import json
from pathlib import Path

import pytest
from benchmark_files import write_protocol_m, write_protocol_v
from pose_apps.evaluate.command import main as evaluate
from pose_apps.train import main as train

RECIPES = Path(__file__).resolve().parents[2] / "configs" / "train"
SMALL = {
    "human36m.frames": "[27]",
    "human36m.batch_frames": "216",
    "train.model": '{"dim": 32, "depth": 2, "heads": 2}',
    "train.schedule": '{"warmup": "none", "decay": "cosine"}',
    "train.optimizer.lr": "0.003",
    "train.precision": "fp32",
    "train.compile": "false",
    "train.ema": "0.9",
    "train.workers": "0",
}
MEASURED = {
    "human36m_v_cpn": ("--protocol", "V", "--2d", "cpn"),
    "human36m_v_gt": ("--protocol", "V", "--2d", "gt"),
    "human36m_m": ("--protocol", "M"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    subjects = ("S1", "S5", "S6", "S7", "S8", "S9", "S11")
    folder = write_protocol_v(tmp_path_factory.mktemp("h36m"), {subject: {"Walking": 60} for subject in subjects})
    videos = [("S1", "Walking", 1, camera, 60) for camera in range(4)]
    return write_protocol_m(folder, [("S9", "Walking", 1, 0, 60)], [*videos, ("S8", "Walking", 1, 2, 60)])


def error_of(lifter, data, recipe, out):
    arguments = (
        "human36m",
        *MEASURED[recipe],
        "--data",
        data,
        "--lifter",
        lifter,
        "--out",
        out,
        "--quiet",
        "--no-report",
    )
    assert evaluate([str(argument) for argument in arguments]) == 0
    return json.loads((out / "results.json").read_text())["results"][0]["variants"]["flip"]["average"]["mpjpe"]


@pytest.mark.parametrize(
    "recipe",
    [pytest.param(name, marks=[] if name == "human36m_m" else pytest.mark.slow) for name in MEASURED],
)
def test_human36m_training_reduces_the_evaluation_error(recipe, data, tmp_path, capsys):
    def trained(steps):
        run = tmp_path / f"{steps}-steps"
        options = {**SMALL, "train.steps": steps, "train.evaluate_every": steps, "human36m.folder": data}
        arguments = ["lifter", "--config", RECIPES / f"{recipe}.yaml", "--out", run, "--quiet"]
        arguments += [f"--{name}={value}" for name, value in options.items()]
        assert train([str(argument) for argument in arguments]) == 0, capsys.readouterr().err
        return run / "final.safetensors"

    before = error_of(trained(1), data, recipe, tmp_path / "before")
    after = error_of(trained(40), data, recipe, tmp_path / "after")
    assert after < 0.6 * before
