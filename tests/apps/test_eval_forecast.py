"""`pose-eval forecast`: its figures are those of the definition, its mistakes are one line."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.evaluate.command import main
from pose_datasets.forecasting import load_motions, prepare_motions

import pose.training.research
from pose.lifting.forecast.build import KINDS, build_network, save_forecaster
from pose.lifting.forecast.config import HORIZONS, ForecasterConfig

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from motion import waving_clip


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Motions whose lifter is 30 mm off in one joint and puts the pelvis 0.2 m too far away."""

    def lift(batch):
        joints = batch.joints.copy()
        joints[:, :, 5, 0] += 0.03
        root = batch.root + np.array([0, 0, 0.2], np.float32)
        return joints, root, np.full(batch.scores.shape, 40, np.float32)

    out = tmp_path_factory.mktemp("motions") / "motions.npz"
    prepare_motions([waving_clip(subject, seconds=4.0) for subject in ("01", "39", "08")], out, lift, count=1)
    return out


def test_zero_velocity_metrics_equal_hand_computed_values(path, tmp_path, capsys):
    assert not main(
        ["forecast", "--motions", str(path), "--out", str(tmp_path), "--quiet", "--forecasters", "zero-velocity"]
    )
    printed = capsys.readouterr().out
    (result,) = json.loads((tmp_path / "forecast.json").read_text())
    motions = load_motions(path, "test")
    last = int(motions.valid[0].sum()) - 1
    moments = np.arange(60, last - 60 + 1, 15)
    moments -= moments % 2  # the newest image, of 30 a second, which the past ends with
    errors = []
    for horizon in (0.4, 1.0):  # whole frames of the truth, at 60 a second
        moved = motions.joints[0, moments + round(60 * horizon)] - motions.joints[0, moments]
        errors.append(1000 * np.linalg.norm(moved, axis=-1).mean())
    found = result["figures"]["truth"]["mpjpe"]
    assert found[3] == pytest.approx(errors[0], rel=1e-3)
    assert found[5] == pytest.approx(errors[1], rel=1e-3)
    pipeline = result["figures"]["pipeline"]
    assert pipeline["mpjpe"][0] > found[0]  # 30 mm in one of 17 joints
    assert pipeline["root"] == pytest.approx(result["figures"]["truth"]["root"], abs=3)  # an offset is not motion
    assert printed.count("| zero-velocity |") == 6
    assert f"| MPJPE, mm, from the truth | {1000 * HORIZONS[0]:.0f} ms |" in printed


def test_tables_distinguish_checkpoints_with_equal_run_names(path, tmp_path, capsys):
    config = ForecasterConfig(dim=16, depth=1, decoder_depth=1, heads=2, mlp_dim=16, mlp_depth=1)
    checkpoints = [tmp_path / parent / "run" / "final.safetensors" for parent in ("a", "b")]
    for checkpoint in checkpoints:
        checkpoint.parent.mkdir(parents=True)
        save_forecaster(build_network(config), checkpoint)
    options = ["--motions", str(path), "--out", str(tmp_path), "--quiet", "--forecasters", *map(str, checkpoints)]
    assert not main(["forecast", *options])
    names = [result["name"] for result in json.loads((tmp_path / "forecast.json").read_text())]
    assert names == ["a-run-final", "b-run-final"]
    printed = capsys.readouterr().out
    assert [printed.count(f"| {name} |") for name in names] == [6, 6]


def test_checkpoint_of_a_recurrent_forecaster_is_evaluated(path, tmp_path, monkeypatch):
    """Recurrent kinds are added by the laboratory, which a new process has not imported."""
    checkpoint = tmp_path / "gru.safetensors"
    save_forecaster(build_network(ForecasterConfig(kind="gru", dim=16, depth=1, heads=2)), checkpoint)
    monkeypatch.delitem(KINDS, "gru")
    for name in ("research", "forecast_recurrent"):
        monkeypatch.delitem(sys.modules, f"pose.training.{name}")
        monkeypatch.delattr(pose.training, name)
    options = ["--motions", str(path), "--out", str(tmp_path), "--quiet", "--forecasters", str(checkpoint)]
    assert not main(["forecast", *options])
    (result,) = json.loads((tmp_path / "forecast.json").read_text())
    assert np.isfinite(result["figures"]["truth"]["mpjpe"]).all()


def test_invalid_arguments_give_a_one_line_error(path, tmp_path, capsys):
    given = ["forecast", "--motions", str(path), "--out", str(tmp_path), "--quiet"]
    for more, said in [
        (["--forecasters", "oracle"], "oracle is neither a file nor one of"),
        (["--forecasters", "zero-velocity", "zero-velocity"], "name each once"),
        (["--forecasters", "one.safetensors", "./one.safetensors"], "name each once"),
        (["--motions", "missing.npz"], "missing.npz"),
        (["--part", "train"], "part"),
    ]:
        assert main([*given, *more]) in (1, 2)
        assert said in error_line(capsys)
    (tmp_path / "forecast.json").write_text("[]")
    assert main(given) == 2
    assert "--overwrite" in capsys.readouterr().err
