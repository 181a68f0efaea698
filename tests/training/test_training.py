"""Training: it learns, it goes on after a kill as if nothing had happened, and it says what is wrong."""

import csv
import json
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from pose_datasets.mocap import Clip, decimate, read_subject
from safetensors.torch import save_file

from pose.errors import PoseError, PoseWarning, UsageError
from pose.lifting.checkpoint import load_checkpoint, save_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.training.batches import TensorBatch
from pose.training.config import OptimizerConfig
from pose.training.schedules import ScheduleConfig
from pose.training.trainer import Trainer, batch_loss

sys.path.append(str(Path(__file__).parent))
from training_fixtures import killed, source_of, train_config

TIMING = "data_share"  # the one figure of a run that is not a pure function of its configuration


@pytest.fixture(scope="module")
def source(tmp_path_factory, shared):
    """Two real clips."""
    clips = []
    for _, trial, points, fps in islice(read_subject(shared / "mocap" / "cmu" / "32.zip"), 2):
        points, times = decimate(points, np.arange(len(points)) / fps)
        clips.append(Clip("32", trial, points.astype(np.float32), times))
    return source_of(clips, tmp_path_factory.mktemp("mocap"))


@pytest.mark.parametrize(
    "schedule",
    [
        ScheduleConfig(warmup="linear", warmup_steps=3),
        ScheduleConfig(warmup="untuned-linear"),
        ScheduleConfig(decay="noam"),
    ],
)
def test_warmup_longer_than_the_run_warns(source, tmp_path, schedule):
    with pytest.warns(PoseWarning, match=r"the warm-up takes \d+ of 2 steps"):
        Trainer(replace(train_config(), steps=2, schedule=schedule), source, tmp_path)


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "training.csv").open(newline="") as file:
        return [{key: value for key, value in row.items() if key != TIMING} for row in csv.DictReader(file)]


def same_weights(got: LifterNetwork, expected: LifterNetwork) -> None:
    for name, tensor in expected.state_dict().items():
        torch.testing.assert_close(got.state_dict()[name], tensor, rtol=0, atol=0)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_killed_run_resumes_exactly(source, tmp_path, optimizer):
    model = LifterConfig(dim=16, depth=1, heads=2, attention="performer")
    config = train_config(model=model, lookaheads=(0,), optimizer=OptimizerConfig(name=optimizer))
    whole, stopped = tmp_path / "whole", tmp_path / "killed"
    uninterrupted = Trainer(config, source, whole)
    uninterrupted.run()
    killed(config, source, stopped, last=4)
    assert [row["step"] for row in rows(stopped)] == ["1", "2", "3", "4", "5"]
    resumed = Trainer(config, source, stopped)
    resumed.resume()
    assert resumed.step == 4
    resumed.run()
    assert rows(stopped) == rows(whole)
    same_weights(resumed.bare_network, uninterrupted.bare_network)
    same_weights(load_checkpoint(stopped / "last.safetensors"), load_checkpoint(whole / "last.safetensors"))


def test_other_configuration_is_not_resumed(source, tmp_path):
    trainer = Trainer(train_config(steps=2), source, tmp_path)
    with pytest.raises(PoseError, match="nothing to resume from"):
        trainer.resume()
    trainer.run()
    with pytest.raises(PoseError, match="a different configuration"):
        Trainer(train_config(steps=3), source, tmp_path).resume()


def test_run_of_an_older_configuration_is_resumed(source, tmp_path):
    config = train_config(steps=2)
    Trainer(config, source, tmp_path).run()
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    stored = json.loads(state["config"])
    del stored["dialects"], stored["model"]["model"]
    torch.save(state | {"config": json.dumps(stored)}, tmp_path / "state.pt")
    Trainer(config, source, tmp_path).resume()
    with pytest.raises(PoseError, match="a different configuration"):
        Trainer(replace(config, dialects=True), source, tmp_path).resume()


@pytest.mark.slow
def test_training_learns_real_motion(source, tmp_path):
    """Four sequences of it, until they are known."""

    class Four:
        def batch(self, step):
            return source.batch(0)

    config = train_config(
        model=LifterConfig(dim=32, depth=1, heads=2),
        steps=150,
        optimizer=OptimizerConfig(lr=1e-2),
        checkpoint_every=150,
    )
    Trainer(config, Four(), tmp_path).run()
    position = [float(row["position"]) for row in rows(tmp_path)]
    assert position[-1] < 0.4 * position[0]


def test_the_saved_weights_are_the_running_average(source, tmp_path):
    trainer = Trainer(train_config(steps=4, ema=0.2), source, tmp_path)
    seen: list[torch.Tensor] = []
    trainer.run(lambda step, metrics: seen.append(trainer.bare_network.head.weight.detach().clone()))
    average = seen[0]
    for weight, decay in zip(seen[1:], (2 / 11, 0.2, 0.2), strict=True):  # it forgets faster at the start
        average = decay * average + (1 - decay) * weight
    saved = load_checkpoint(tmp_path / "last.safetensors").head.weight
    torch.testing.assert_close(saved, average, rtol=1e-5, atol=1e-7)
    assert not torch.allclose(saved, seen[-1], atol=1e-5)


def test_divergence_gives_a_one_line_error(source, tmp_path):
    class Broken:
        def batch(self, step):
            batch = source.batch(step)
            return replace(batch, joints=batch.joints * np.float32("nan")) if step == 2 else batch

    with pytest.raises(PoseError, match="diverged before step 3: the loss is nan; lower the learning rate"):
        Trainer(train_config(), Broken(), tmp_path).run()


def test_training_starts_from_given_weights(source, tmp_path):
    first = Trainer(train_config(steps=2), source, tmp_path / "first")
    first.run()
    path = tmp_path / "first" / "last.safetensors"
    second = Trainer(train_config(start_from=str(path), seed=1), source, tmp_path / "second")
    same_weights(second.bare_network, load_checkpoint(path))
    with pytest.raises(PoseError, match=r"start_from: .* does not match train.model"):
        Trainer(train_config(start_from="offline"), source, tmp_path / "third")


def test_a_deeper_network_starts_as_the_function_of_a_shallower_one(source, tmp_path):
    Trainer(train_config(steps=2), source, tmp_path / "shallow").run()
    path = tmp_path / "shallow" / "last.safetensors"
    shallow = load_checkpoint(path)
    model = replace(shallow.config, depth=3 * shallow.config.depth)
    trainer = Trainer(train_config(start_from=str(path), model=model, steps=3), source, tmp_path / "deep")
    batch = TensorBatch.of(source.batch(0))
    expected, deep = (n.eval()(batch.observe(), batch.times) for n in (shallow, trainer.bare_network))
    torch.testing.assert_close(deep.joints, expected.joints, rtol=0, atol=1e-6)
    before = {name: weight.clone() for name, weight in trainer.bare_network.state_dict().items()}
    trainer.run()
    outputs = {n: w for n, w in trainer.bare_network.state_dict().items() if n.endswith("ffn.fc2.weight")}
    assert all(not torch.equal(weight, before[name]) for name, weight in outputs.items())  # every block learns
    with pytest.raises(PoseError, match=r"start_from: .* does not match train.model"):
        Trainer(train_config(start_from=str(path), model=replace(model, norm="post")), source, tmp_path / "other")


def test_final_weights_interpolate_with_the_initial_ones(source, tmp_path):
    first = Trainer(train_config(), source, tmp_path / "first")
    first.save()
    path = tmp_path / "first" / "last.safetensors"
    second = Trainer(train_config(start_from=str(path), start_share=0.25, steps=3), source, tmp_path / "second")
    second.run()
    began, trained = first.averaged_network.state_dict(), dict(second.averaged_network.state_dict())
    trained = {name: weight.clone() for name, weight in trained.items()}
    final = second.final_network().state_dict()
    assert any(not torch.equal(began[name], trained[name]) for name in began)
    for name, weight in final.items():
        torch.testing.assert_close(weight, 0.75 * trained[name] + 0.25 * began[name])
    with pytest.raises(ValueError, match="start_share: needs start_from"):
        train_config(start_share=0.5)


def test_a_run_starts_from_the_mean_of_several_checkpoints(source, tmp_path):
    paths = []
    for seed in (1, 2):
        trainer = Trainer(train_config(seed=seed), source, tmp_path / str(seed))
        trainer.save()
        paths.append(tmp_path / str(seed) / "last.safetensors")
    one, other = (load_checkpoint(path).state_dict() for path in paths)
    several = train_config(start_from=",".join(map(str, paths)), start_share=1.0)
    mean = Trainer(several, source, tmp_path / "mean").final_network().state_dict()
    assert any(not torch.equal(one[name], other[name]) for name in one)
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (one[name] + other[name]) / 2)


def test_checkpoint_round_trips(tmp_path):
    network = LifterNetwork(LifterConfig(dim=16, depth=2, heads=2, attention="local", streaming=True))
    network.calibration[1] = 0.3
    save_checkpoint(network, tmp_path / "a.safetensors")
    back = load_checkpoint(tmp_path / "a.safetensors")
    assert back.config == network.config
    assert not back.training
    same_weights(back, network)
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_incomplete_checkpoint_is_named(tmp_path):
    path = tmp_path / "a.safetensors"
    save_checkpoint(LifterNetwork(LifterConfig(dim=16, depth=1, heads=2)), path)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(PoseError, match=r"a\.safetensors: not a readable lifter checkpoint"):
        load_checkpoint(path)
    save_file({"x": torch.zeros(3)}, path)
    with pytest.raises(PoseError, match="not a lifter checkpoint written by pose-train"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"optimizer": OptimizerConfig(name="radam"), "schedule": ScheduleConfig(warmup="linear")}, "radam"),
        (
            {"model": LifterConfig(norm="none", init="t-fixup"), "schedule": ScheduleConfig(decay="noam")},
            "needs no warm-up",
        ),
        ({"lookaheads": (0, 4)}, "only a streaming model"),
        ({"precision": "fp8"}, "fp32, bf16"),
        ({"steps": 0}, "steps: must be at least 1"),
    ],
)
def test_invalid_recipes_are_rejected(changes, reason):
    with pytest.raises(ValueError, match=reason):
        train_config(**changes)


@pytest.mark.slow
def test_two_processes_train_on_the_mean_of_their_gradients(source, tmp_path):
    import subprocess

    config, mocap = train_config(steps=1, clip=1e9), source._config.mocap
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\n"
        f"sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[2])]!r}\n"
        "from pathlib import Path\n"
        "from training_fixtures import train_config, MocapConfig, MocapSource\n"
        "from pose.training.trainer import Trainer\n"
        f"source = MocapSource(MocapConfig(mocap={mocap!r}, frames=(12,), batch_frames=48), seed=0)\n"
        f"trainer = Trainer(train_config(steps=1, clip=1e9), source, Path({str(tmp_path / 'out')!r}))\n"
        "assert trainer.accelerator.num_processes == 2\n"
        "trainer.run()\n"
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(torchrun, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

    alone = Trainer(config, source, tmp_path / "alone")
    network, optimizer = alone.bare_network, alone.optimizer
    losses = [batch_loss(network, source.batch(i), 0, config.loss, torch.device("cpu"))[0] for i in range(2)]
    (sum(losses) / 2).backward()
    optimizer.step()
    saved = load_checkpoint(tmp_path / "out" / "last.safetensors").state_dict()
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(saved[name], tensor, rtol=1e-4, atol=1e-6)


def test_only_training_subjects_can_be_left_out(tmp_path, source):
    clip = source.clips("train")[0]
    clips = [replace(clip, subject=subject) for subject in ("01", "02", "uiprmd-s01", "39", "08")]
    source = source_of(clips, tmp_path, without=("uiprmd-*", "02"))
    assert [clip.subject for clip in source.clips("train")] == ["01"]
    assert [clip.subject for part in ("validation", "test") for clip in source.clips(part)] == ["39", "08"]
    with pytest.raises(UsageError, match=r"data\.without: no training subject is named 03; known: 01, 02, uiprmd-s01"):
        source_of(clips, tmp_path, without=("03",))
    with pytest.raises(UsageError, match=r"data\.without: excludes all training subjects"):
        source_of(clips, tmp_path, without=("*",))


def test_no_subject_dominates_an_evaluation(tmp_path, source):
    clip = source.clips("train")[0]
    minutes = [replace(clip, subject=subject) for subject, count in (("39", 40), ("09", 2)) for _ in range(count)]
    seconds = clip.times[-1] - clip.times[0]
    data = source_of([clip, *minutes], tmp_path)
    frames = sum(int(batch.valid.sum()) for batch in data.evaluation("validation")["gt"])
    assert frames / 30 < 60 + 4 * seconds
    assert frames / 30 > 40
