"""`pose-train lifter` on made-up motion: what a run leaves behind, how it goes on, and what it says of mistakes."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command_errors import error_line
from pose_apps.train import main
from pose_datasets.mocap import save_clips

from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from motion import waving_clip

pytestmark = pytest.mark.filterwarnings(
    "ignore:train.schedule. the warm-up:pose.errors.PoseWarning"
)  # runs of few steps

TINY = [
    "--data.frames=[9]", "--data.batch_frames=36", "--train.model.dim=16", "--train.model.depth=1",
    "--train.model.heads=2", "--train.precision=fp32", "--train.log_every=1", "--train.checkpoint_every=2",
    "--train.evaluate_every=4", "--train.workers=0", "--quiet",
]  # fmt: skip


@pytest.fixture(scope="module")
def mocap(tmp_path_factory) -> Path:
    """One short clip each to train on, to watch and to test."""
    path = tmp_path_factory.mktemp("mocap") / "clips.npz"
    save_clips([waving_clip(subject, seconds=3.0) for subject in ("01", "39", "08")], path)
    return path


def train(mocap: Path, out: Path, *more: str) -> int:
    return main(["lifter", "--data.mocap", str(mocap), "--out", str(out), *TINY, *more])


def training_rows(out: Path) -> list[dict[str, str]]:
    with (out / "training.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_leaves_weights_logs_images_and_its_configuration(mocap, tmp_path, capsys):
    out = tmp_path / "run"
    assert train(mocap, out, "--train.steps=4") == 0
    printed = capsys.readouterr().out
    assert "validation subjects, gt 2D: MPJPE" in printed
    assert "validation subjects, detector 2D: MPJPE" in printed
    assert [row["step"] for row in training_rows(out)] == ["1", "2", "3", "4"]
    assert (out / "evaluation.csv").read_text().startswith("step,gt_mpjpe,gt_p_mpjpe")
    assert (out / "pictures" / "0000004.png").stat().st_size > 1000
    assert "steps: 4" in (out / "config.yaml").read_text()
    last, final = (load_checkpoint(out / f"{name}.safetensors") for name in ("last", "final"))
    assert last.config.dim == 16
    assert (last.calibration[1] == 0).all()
    assert (final.calibration[1] != 0).all()  # calibrated
    assert (last.head.weight == final.head.weight).all()

    assert train(mocap, out, "--train.steps=4") == 2
    assert "already contains a training run; use --resume, --overwrite" in capsys.readouterr().err

    again = tmp_path / "again"
    assert main(["lifter", "--config", str(out / "config.yaml"), "--out", str(again)]) == 0
    assert [row["loss"] for row in training_rows(again)] == [row["loss"] for row in training_rows(out)]


def test_resume_continues_from_the_last_checkpoint(mocap, tmp_path, capsys, monkeypatch):
    """A run that is interrupted after 3 steps and goes on has the losses of one that was not."""
    from pose_datasets.training import MocapSource

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train(mocap, whole, "--train.steps=5") == 0
    batch = MocapSource.batch

    def interrupted(self, step):
        if step == 3:
            raise KeyboardInterrupt
        return batch(self, step)

    monkeypatch.setattr(MocapSource, "batch", interrupted)
    assert train(mocap, broken, "--train.steps=5") == 130
    monkeypatch.undo()
    assert train(mocap, broken, "--train.steps=5", "--resume") == 0
    losses = [[row["loss"] for row in training_rows(out)] for out in (whole, broken)]
    assert len(losses[0]) == 5
    assert losses[0] == losses[1]
    expected = load_checkpoint(whole / "final.safetensors").state_dict()
    for name, tensor in load_checkpoint(broken / "final.safetensors").state_dict().items():
        assert (tensor == expected[name]).all(), name

    assert train(mocap, broken, "--train.steps=6", "--resume") == 1
    assert "a different configuration" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--train.stepps=4"], 2, "unknown option '--train.stepps=4': did you mean --train.steps?"),
        (["--train.precision=fp8"], 2, "fp32, bf16"),
        (["--train.model.attention=magic"], 2, "magic"),
        (["--train.optimizer.name=radam", "--train.schedule.warmup=linear"], 2, "radam"),
        (["--train.model.init=t-fixup"], 2, "LayerNorm"),
        (["--resume"], 1, "nothing to resume from"),
        (["--data.mocap="], 2, "--data.mocap is missing"),
        (["--data.mocap=missing.npz"], 1, "missing.npz"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(mocap, tmp_path, capsys, arguments, status, said):
    assert train(mocap, tmp_path / "run", *arguments) == status
    assert said in error_line(capsys)


def test_unknown_recipe_key_gives_a_one_line_error(mocap, tmp_path, capsys):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("train:\n  model: {dim: 16, wings: 2}\n")
    assert train(mocap, tmp_path / "run", "--config", str(recipe)) == 2
    assert "wings" in error_line(capsys)


RECIPES = sorted(
    path.stem
    for path in (Path(__file__).parents[2] / "configs" / "train").glob("*.yaml")
    # test_train_on_human36m.py, test_train_forecaster.py, test_train_sensor.py and test_pretraining run the others
    if not path.stem.startswith(("human36m", "forecaster", "pretraining", "sensor"))
)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_takes_a_step(mocap, tmp_path, recipe):
    out = tmp_path / "run"
    path = Path(__file__).parents[2] / "configs" / "train" / f"{recipe}.yaml"
    usual = ["--train.model.heads=6"] if recipe == "stream_gru" else []  # a recurrent one has no heads to change
    text = path.read_text(encoding="utf-8")
    usual += ["--train.start_from=null"] if "start_from" in text else []  # of another size
    usual += ["--train.newest.future=4"] if "future:" in text else []  # of shorter sequences
    usual += ["--data.without=[]"] if "\n  without:" in text else []  # names of other recordings
    assert train(mocap, out, "--config", str(path), *TINY, *usual, "--train.steps=1", "--train.compile=false") == 0
    assert load_checkpoint(out / "last.safetensors").config.streaming == recipe.startswith("stream")


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_model_is_within_the_size_limit(recipe):
    """At most 20 MB, also for a GPU, and of the width that the file says."""
    path = Path(__file__).parents[2] / "configs" / "train" / f"{recipe}.yaml"
    model = yaml.safe_load(path.read_text(encoding="utf-8"))["train"]["model"]
    weights = sum(parameter.numel() for parameter in LifterNetwork(LifterConfig(**model)).parameters())
    assert 500_000 < weights < 5_000_000
    assert (weights > 2_000_000) == recipe.endswith(("gpu", "long"))


def test_train_help_needs_no_torch():
    """The configuration is checked and described before anything heavy is loaded, and without the extra."""
    program = (
        "import sys; sys.modules |= dict.fromkeys(('torch', 'accelerate'))\n"
        "from pose_apps.train import main\n"
        "main(['lifter', '--help-all'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--train.optimizer.name" in done.stdout
    assert "--data.synthesis" in done.stdout
