"""The cards of the shipped lifters say what the run and the measurement say, and both must fit the file."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from benchmarks.common.command import run as run_command
from benchmarks.lifter.cards import bodies, settings, unseen_line
from pose.lifting.checkpoint import save_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.networks.weights import sha256_of

ROOT = Path(__file__).parents[2]
FIGURES = ("mpjpe", "p_mpjpe", "velocity", "acceleration", "inside", "root")
BENDS = {"angles": {"knee": [{"above": 0.0, "below": 8.0, "bias": 5.0, "error": 6.0, "count": 9}]}}
CONDITIONS = ("ui-prmd gt", "ui-prmd detector", "gt", "white", "noisy", "detector", "hard")
MODELS = ("mean pose", "offline", "stream, look-ahead 0", "stream, look-ahead 4", "single-frame MLP")


def nested(values: dict) -> dict:
    tree: dict = {}
    for key, value in values.items():
        *branch, leaf = key.split(".")
        place = tree
        for part in branch:
            place = place.setdefault(part, {})
        place[leaf] = value
    return tree


@pytest.fixture
def finished(tmp_path):
    """Runs, models, docs and measured figures of two tiny lifters; the offline run had another rate than its recipe,
    the stream had two rounds.
    """
    runs, models, docs = (tmp_path / name for name in ("runs", "models", "docs"))
    figures = {
        model: {c: {key: 10.0 * number + place for place, key in enumerate(FIGURES)} | BENDS for c in CONDITIONS}
        for number, model in enumerate(MODELS, start=1)
    }
    part = {"subjects": ["01"], "clips": 1, "minutes": 1.5}
    results = {"data": dict.fromkeys(("train", "validation", "test"), part), "sha256": {}, "figures": figures}
    for folder in (models, docs / "images"):
        folder.mkdir(parents=True)
    (docs / "lifter.md").write_text("before\n\n<!-- accuracy -->\nold\n<!-- /accuracy -->\n\nafter\n")
    for name, streaming in (("offline", False), ("stream", True)):
        torch.manual_seed(0)
        network = LifterNetwork(LifterConfig(dim=16, depth=1, heads=2, attention="local", streaming=streaming))
        (runs / name).mkdir(parents=True)
        save_checkpoint(network, runs / name / "final.safetensors")
        shutil.copy(runs / name / "final.safetensors", models / f"{name}.safetensors")
        results["sha256"][name] = sha256_of(models / f"{name}.safetensors")
        used = settings(ROOT / "configs" / "train" / f"{name}.yaml") | {"out": "elsewhere", "data.mocap": "my.npz"}
        used |= {"train.optimizer.lr": 0.5} if name == "offline" else {}
        if name == "stream":
            (runs / "stream-first").mkdir()
            (runs / "stream-first" / "config.yaml").write_text(yaml.safe_dump(nested(used | {"train.seed": 3})))
            used["train.start_from"] = str(runs / "stream-first" / "final.safetensors")
        (runs / name / "config.yaml").write_text(yaml.safe_dump(nested(used)))
    (tmp_path / "accuracy.json").write_text(json.dumps(results))
    return tmp_path


def run(folder: Path, monkeypatch) -> int:
    options = {"--accuracy": "accuracy.json", "--runs": "runs", "--models": "models", "--docs": "docs"}
    words = [part for key, value in options.items() for part in (key, str(folder / value))]
    monkeypatch.setattr("sys.argv", ["lifter", "cards", *words])
    with pytest.raises(SystemExit) as end:
        run_command("lifter", None, "cards")
    return end.value.code


def test_model_card_is_written_from_run_and_measurement(finished, monkeypatch):
    monkeypatch.setattr("benchmarks.lifter.cards.plot", lambda figures, path: None)  # matplotlib takes most of the time
    assert run(finished, monkeypatch) == 0
    cards = {name: json.loads((finished / "models" / f"{name}.json").read_text()) for name in ("offline", "stream")}
    for name, card in cards.items():
        assert card["sha256"] == sha256_of(finished / "models" / f"{name}.safetensors")
        assert (ROOT / card["recipe"]).is_file()
        assert card["seed"] == 0
        assert card["data"]["test"]["subjects"] == ["01"]
        assert card["network"]["streaming"] == (name == "stream")
    assert cards["offline"]["commands"][-1].endswith("--out runs/offline --train.optimizer.lr=0.5")
    first, second = cards["stream"]["commands"]
    assert first.endswith("--out runs/stream-first --train.seed=3")
    assert second.endswith("--out runs/stream --train.start_from=runs/stream-first/final.safetensors")
    assert set(cards["stream"]["metrics"]["figures"]) == {*MODELS} - {"offline"}
    readme = (finished / "models" / "README.md").read_text()
    assert "| whole window, gt | 20.0 | 21.0 | 23.00 | 2400 % |" in readme
    assert cards["stream"]["sha256"] in readme


def test_cards_count_bodies_and_name_figures_that_training_held():
    assert bodies(["06", "13", "94", "01", "uiprmd-s01"]) == 3
    data = {"train": {"subjects": ["06", "01"]}, "test": {"subjects": ["08", "12", "60"]}}
    assert unseen_line(data) == "No training batch held these subjects, but some held the figure of 12 and 60."
    assert unseen_line(data | {"test": {"subjects": ["08"]}}) == "No training batch held these bodies."


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("models/offline.safetensors", "not the weights that were measured"),
        ("runs/stream/final.safetensors", "not the final weights of"),
    ],
)
def test_mismatched_run_and_measurement_are_rejected(finished, capsys, monkeypatch, broken, said):
    save_checkpoint(LifterNetwork(LifterConfig(dim=16, depth=1, heads=2)), finished / broken)
    assert run(finished, monkeypatch) == 1
    assert said in capsys.readouterr().err
    assert list((finished / "models").glob("*.json")) == []
