"""A mechanism in a file of the user works from training to evaluation and use, in every command."""

import sys
from pathlib import Path

import numpy as np
import pytest
from accelerate.state import AcceleratorState
from pose_apps.evaluate.command import main as pose_eval
from pose_apps.export import main as pose_export
from pose_apps.lift import main as pose_lift
from pose_apps.train import main as pose_train
from pose_datasets.mocap import save_clips

from pose.lifting.attention import ATTENTIONS
from pose.lifting.config import LifterConfig
from pose.lifting.initialization import initialize
from pose.lifting.model import LifterNetwork
from pose.utils import presets

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from motion import waving_clip

EXAMPLE = Path(__file__).parents[2] / "examples" / "new_attention.py"


@pytest.fixture
def forget(monkeypatch):
    """A function that forgets the plugin, as a new process would."""
    monkeypatch.setenv(presets.VARIABLE, "")

    def again() -> None:
        monkeypatch.setenv(presets.VARIABLE, "")
        ATTENTIONS.pop("mean", None)
        for name in [name for name in sys.modules if name.startswith("pose_plugin")]:
            del sys.modules[name]

    again()
    AcceleratorState._reset_state(reset_partial_state=True)  # accelerate keeps the first precision of a process
    yield again
    AcceleratorState._reset_state(reset_partial_state=True)
    again()


PLUGIN = ["--plugin", str(EXAMPLE)]


@pytest.fixture
def trained(tmp_path, forget) -> str:
    """A checkpoint of a lifter with the mechanism of the plugin."""
    clips, run = tmp_path / "clips.npz", tmp_path / "run"
    save_clips([waving_clip(subject, seconds=2.0) for subject in ("01", "39")], clips)
    small = ["--train.model.dim=16", "--train.model.heads=2", "--train.model.depth=1", "--train.steps=1"]
    data = [f"--data.mocap={clips}", "--data.frames=[9]", "--data.batch_frames=27"]
    words = ["lifter", *PLUGIN, "--train.model.attention=mean", *small, *data, "--out", str(run), "--quiet"]
    assert pose_train(words) == 0
    forget()
    return str(run / "final.safetensors")


def runs_with_the_plugin_only(main, words, forget, capsys) -> bool:
    assert main(words) != 0
    assert "mean" in capsys.readouterr().err
    forget()
    return main([*words, *PLUGIN]) == 0


def test_lifter_with_an_own_mechanism_is_evaluated_and_used(trained, tmp_path, forget, capsys, rng):
    seen, truth = tmp_path / "seen.npz", tmp_path / "truth.npz"
    keypoints = rng.uniform(100, 400, (20, 17, 2)).astype(np.float32)
    known = {"scores": np.ones((20, 17), np.float32), "timestamps": np.arange(20) / 30, "skeleton": "h36m17"}
    np.savez(seen, keypoints=keypoints, image_size=[640, 480], **known)
    np.savez(truth, joints3d=rng.normal(0, 0.5, (20, 17, 3)) + np.array([0, 0, 4]))
    evaluation = ["sequence", "--keypoints", str(seen), "--gt", str(truth), "--out", str(tmp_path / "evaluation")]
    assert runs_with_the_plugin_only(pose_eval, [*evaluation, "--lifter", trained], forget, capsys)
    forget()
    lift = [str(seen), "--lifter", trained, "--out", str(tmp_path / "lifted.npz")]
    assert runs_with_the_plugin_only(pose_lift, lift, forget, capsys)


@pytest.mark.slow
def test_lifter_with_an_own_mechanism_is_exported(trained, tmp_path, forget, capsys):
    words = [trained, "--format", "onnx", "--out", str(tmp_path / "lifter.onnx")]
    assert runs_with_the_plugin_only(pose_export, words, forget, capsys)


def test_a_plugin_that_is_missing_is_one_line(forget, capsys):
    assert pose_lift(["a.npz", "--plugin", "missing.py"]) == 2
    assert "--plugin: expected a Python file, got 'missing.py'" in capsys.readouterr().err


def test_t_fixup_names_the_layer_that_it_needs(forget, monkeypatch):
    presets.without_plugins(["--plugin", str(EXAMPLE)])
    network = LifterNetwork(LifterConfig(dim=16, depth=1, heads=2, attention="mean", norm="none", init="t-fixup"))
    network.blocks[0].attention.answer = network.blocks[0].attention.out_proj
    del network.blocks[0].attention.out_proj
    with pytest.raises(ValueError, match=r"MeanAttention has no out_proj\. Give its output layer this name"):
        initialize(network, "t-fixup")
