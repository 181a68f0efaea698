"""`pose-weights`, as a user calls it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pose_apps.weights import main

from pose.networks.weights import WEIGHTS
from pose.networks.weights.packaged import packaged_weights
from pose.utils.written_files import RECORD

DEFAULT = [
    "blazepose-detector", "blazepose-landmark-full", "movenet-thunder", "movenet-thunder-graph",
    "rtmdet-nano-person-320",
]  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of its own, and no other folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("POSE_WEIGHTS_DIR", raising=False)
    return tmp_path / "pose-run" / "weights"


@pytest.fixture
def at_hand(weights_dir, monkeypatch) -> Path:
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
    return weights_dir


def test_list_shows_every_weight_and_its_state(at_hand, cache, capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0].rstrip("*"): line for line in lines if line}
    assert rows.keys() >= WEIGHTS.keys()
    assert "3.0 MB  Apache-2.0" in rows["blazepose-detector"]
    assert str(at_hand / "blazepose-detector.tflite") in rows["blazepose-detector"]
    assert "AGPL-3.0      missing  from github.com" in rows["yolo26n"]
    assert str(cache) in lines[-1]


def test_list_json_has_every_field(at_hand, capsys):
    assert main(["list", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["blazepose-detector"] == {
        "name": "blazepose-detector",
        "file": "blazepose-detector.tflite",
        "licence": "Apache-2.0",
        "size": 2_959_046,
        "sha256": "9ba9dd3d42efaaba86b4ff0122b06f29c4122e756b329d89dca1e297fd8f866c",
        "source": "from the wheel mediapipe==0.10.21",
        "default": True,
        "state": "present",
        "path": str(at_hand / "blazepose-detector.tflite"),
        "problem": None,
    }


def test_bundle_installs_weights_without_a_network(at_hand, cache, tmp_path, monkeypatch, capsys):
    bundle = str(tmp_path / "weights.zip")
    assert main(["bundle", "--out", bundle]) == 0
    assert main(["bundle", "--out", bundle]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["bundle", "movenet-lightning-int8", *DEFAULT, "--out", bundle, "--overwrite"]) == 0
    monkeypatch.delenv("POSE_WEIGHTS_DIR")
    assert main(["fetch", "--from-bundle", bundle]) == 0
    assert main(["verify", "movenet-lightning-int8", *DEFAULT]) == 0
    files = [WEIGHTS[name].file for name in ["movenet-lightning-int8", *DEFAULT]]
    assert sorted(path.name for path in cache.iterdir()) == sorted([RECORD, *files])


def test_fetch_prints_the_file_path(at_hand, capsys):
    assert main(["fetch", "blazepose-detector", "--all-default"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{name}  {at_hand / WEIGHTS[name].file}" for name in DEFAULT]


def test_verify_names_damaged_and_missing_weights(cache, capsys):
    assert main(["verify"]) == 0
    *shipped, hint = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in shipped] == [["ok", name] for name in packaged_weights()]
    assert "--all-default" in hint
    assert main(["verify", "yolo11n"]) == 1
    assert capsys.readouterr().out == "missing     yolo11n\n"
    cache.mkdir(parents=True)
    (cache / "yolo11n.pt").write_bytes(b"damaged")
    assert main(["verify"]) == 1
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("corrupt")]
    assert line.split()[1] == "yolo11n"
    assert str(cache / "yolo11n.pt") in line


def test_verify_succeeds_with_the_default_weights(at_hand, capsys):
    assert main(["verify"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    assert {line.split()[1] for line in lines} >= set(DEFAULT)


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        ([], 2, "list"),
        (["lst"], 2, "unknown command 'lst': did you mean list?"),
        (["list", "--jsn"], 2, "did you mean --json?"),
        (["fetch"], 2, "--all-default"),
        (["fetch", "blazepose"], 2, "unknown weights 'blazepose'"),
        (["fetch", "blazepose-detector", "nothing-like-it"], 2, "pose-weights list"),
        (["fetch", "--from-bundle", "absent.zip"], 2, "absent.zip"),
        (["fetch", "--from-bundle", "absent.zip", "yolo11n"], 2, "--from-bundle"),
        (["fetch", "rtmpose-t-coco17-256x192"], 1, "--allow-unverified"),
        (["fetch", "yolox-nano-coco-416"], 1, "695e750a5d5754bb5a8d5325643b59282191a7e7a564e435a415fd3c578eab14"),
        (["bundle"], 2, "missing: --out"),
        (["bundle", "--out"], 2, "--out: expected one argument"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(argv, status, words, capsys, cache):
    assert main(argv) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
    assert not cache.exists() or list(cache.iterdir()) == []


def test_pose_weights_starts_without_heavy_imports(at_hand):
    """Also ends quietly when the reader of its output goes away, as `| head -1` does."""
    code = (
        "import sys; from importlib.metadata import entry_points; "
        "[entry] = entry_points(group='console_scripts', name='pose-weights'); "
        "status = entry.load()(['list', '--json']); assert not {'torch', 'cv2', 'ai_edge_litert'} & set(sys.modules); "
        "sys.exit(status)"
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
