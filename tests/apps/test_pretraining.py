"""`pose-train pretraining`, and `pose-train lifter` that goes on from what it left."""

import sys
from pathlib import Path

import pytest
from command_errors import error_line
from pose_apps.train import main
from pose_datasets.mocap import save_clips

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from motion import waving_clip

pytestmark = pytest.mark.filterwarnings(
    "ignore:train.schedule. the warm-up:pose.errors.PoseWarning"
)  # runs of few steps

RECIPE = Path(__file__).parents[2] / "configs" / "train" / "pretraining.yaml"
TINY = ["--data.frames=[9]", "--data.batch_frames=36", "--train.model.dim=16", "--train.model.depth=1",
        "--train.model.heads=2", "--train.precision=fp32", "--train.steps=2", "--quiet"]  # fmt: skip


@pytest.fixture(scope="module")
def mocap(tmp_path_factory):
    path = tmp_path_factory.mktemp("mocap") / "clips.npz"
    save_clips([waving_clip(subject, seconds=2.0) for subject in ("01", "39", "08")], path)
    return ["--data.mocap", str(path)]


def test_lifter_trains_from_a_pretrained_checkpoint(mocap, tmp_path, capsys):
    first, tuned = tmp_path / "first", tmp_path / "tuned"
    assert main(["pretraining", "--config", str(RECIPE), *mocap, *TINY, "--out", str(first)]) == 0
    printed = capsys.readouterr().out
    assert "nats per coordinate" in printed
    assert "simple baseline" in printed
    final = first / "final.safetensors"
    model = ["--train.model={dim: 16, depth: 1, heads: 2, expansion: 2}"]
    more = ["--train.start_from", str(final), *model, "--out", str(tuned)]
    assert main(["lifter", *mocap, *TINY, *more]) == 0
    assert "MPJPE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--train.objective.name=magic"], "not one of masked, next, any-order"),
        (["--train.objective.name=any-order", "--train.model.streaming=true"], "needs softmax attention"),
        (["--data.mocap="], "--data.mocap is missing"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(mocap, tmp_path, capsys, arguments, said):
    assert main(["pretraining", *mocap, *TINY, "--out", str(tmp_path / "run"), *arguments]) == 2
    assert said in error_line(capsys)
