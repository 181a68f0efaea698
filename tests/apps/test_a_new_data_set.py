"""A new data set: a file with its reader and options, and one line in the catalogue, are all that commands need."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from benchmark_files import walker
from pose_apps.evaluate import command as evaluation
from pose_apps.prepare import main as prepare
from pose_datasets.catalogue import (
    DATA_SETS,
    DataSet,
    EvaluationTask,
    LabelledEvaluation,
    Preparation,
    ToEvaluate,
    ToPrepare,
    make_benchmark,
)

from pose.structures.camera import Camera, project
from pose.structures.labelled import LabelledSequence
from pose.structures.sequences import Sequence2D
from pose.utils.options import REQUIRED, option


def read(path: Path) -> list[LabelledSequence]:
    """The reader: (T, 17, 3) m in the camera frame, 25 frames a second."""
    poses = np.load(path).astype(np.float32)
    camera = Camera.of((640, 480))
    points = project(poses, camera.matrix).astype(np.float32)
    times = np.arange(len(poses)) / 25
    observed = Sequence2D(points, np.ones(points.shape[:2], np.float32), times, camera, "h36m17")
    return [LabelledSequence(path.stem, "toy", "walking", "1", observed, poses, np.ones(len(poses), bool))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyPreparation(Preparation):
    scale: float = option(1.0, "metres in a unit", minimum=0.001)

    def prepare(self, log) -> None:
        np.save(self.out, self.scale * np.load(self.source))
        log(f"wrote {self.out}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyEvaluation(LabelledEvaluation):
    data: str = option(REQUIRED, "its file")

    def task(self) -> EvaluationTask:
        sequences = read(Path(self.data))
        return EvaluationTask(
            sequences, make_benchmark("Toy", "", "exact", sequences, "frames", ("walking",)), 25.0, "toy"
        )


@pytest.fixture
def raw(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "toys.toy", sys.modules[__name__])
    line = DataSet(ToPrepare("A toy.", "toys.toy:ToyPreparation"), ToEvaluate("A toy.", "toys.toy:ToyEvaluation"))
    monkeypatch.setitem(DATA_SETS, "toy", line)
    poses = walker(20) @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]).T + [0, 0, 4.0]  # z forward instead of up
    np.save(tmp_path / "raw.npy", 1000 * poses)
    return tmp_path / "raw.npy"


def test_new_data_set_needs_a_file_and_one_line(raw, tmp_path, capsys):
    toy = tmp_path / "toy.npy"
    assert prepare(["toy", "--source", str(raw), "--out", str(toy), "--scale", "0.001"]) == 0
    (one,) = read(toy)
    moved = one.truth - one.truth[:, :1]
    moved[:, 1:] += np.array([0.03, 0.04, 0], np.float32)
    np.savez(tmp_path / "theirs.npz", **{one.key: moved})
    arguments = ["--predictions", str(tmp_path / "theirs.npz"), "--out", str(tmp_path / "out"), "--no-report"]
    assert evaluation.main(["toy", "--data", str(toy), *arguments]) == 0
    said = capsys.readouterr().out
    assert f"wrote {toy}\n" in said
    assert "Toy" in said
    assert f"{50 * 16 / 17:.1f}" in said  # the pelvis is where it was


def test_new_data_set_reports_option_errors_like_others(raw, tmp_path, capsys):
    assert prepare(["toy", "--source", str(tmp_path / "none"), "--out", "x"]) == 2
    assert prepare(["toy", "--source", str(raw), "--out", "x", "--scale", "0"]) == 2
    assert evaluation.main(["toy"]) == 2
    none, scale, data = capsys.readouterr().err.splitlines()
    assert none.endswith("none: no such file or folder")
    assert scale == "error: --scale: 0.0 is out of range; allowed: at least 0.001"
    assert data == "error: missing: --data"
