"""The README is whole and its Python example runs. What it names is looked up by test_docs.py."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import av
import pytest
from short_clips import beginning

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_command_reference_lists_every_command():
    """What each is called with is held to its --help by test_docs.py."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(pose-[a-z]+)", page, re.MULTILINE))
    assert rows == set(scripts)


@pytest.mark.parametrize("command", tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"])
def test_every_command_prints_its_version(command, capsys):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, function = project["scripts"][command].split(":")
    with pytest.raises(SystemExit) as end:
        getattr(importlib.import_module(module), function)(["--version"])
    assert (end.value.code, capsys.readouterr().out) == (0, f"{command} {version('pose-run')}\n")


def test_changelog_has_the_current_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def run_example(example: str, videos: Path, weights_dir: Path, folder: Path) -> str:
    """What a README's example prints; it runs in `folder`."""
    program = example.replace("clip.mp4", str(videos / "squats.mp4"))
    environment = {**os.environ, "POSE_WEIGHTS_DIR": str(weights_dir), "PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, "-c", program]
    done = subprocess.run(call, capture_output=True, text=True, timeout=400, check=False, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_python_example_runs_and_tracks_a_person(videos, weights_dir, tmp_path):
    lines = run_example(blocks("python")[0], videos, weights_dir, tmp_path).splitlines()
    (found,) = [re.fullmatch(r"person 1: left knee bent by up to (\d+) degrees", line) for line in lines]
    assert found is not None
    assert 80 < float(found[1]) < 140  # of a squat


@pytest.mark.slow
def test_live_example_draws_on_every_frame(videos, weights_dir, tmp_path):
    page = (ROOT / "docs" / "guides" / "python.md").read_text(encoding="utf-8")
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "drawn.mp4" in code)
    short = beginning(videos / "squats.mp4", tmp_path / "squats.mp4", 3)
    run_example(example, tmp_path, weights_dir, tmp_path)
    with av.open(str(tmp_path / "drawn.mp4")) as drawn, av.open(str(short)) as clip:
        pairs = [
            (ours.to_ndarray(format="rgb24").astype(int), theirs.to_ndarray(format="rgb24").astype(int))
            for ours, theirs in zip(drawn.decode(video=0), clip.decode(video=0), strict=True)
        ]
    assert len(pairs) >= 12
    changed = [float((abs(ours - theirs).max(axis=2) > 60).mean()) for ours, theirs in pairs[1:]]
    assert min(changed) > 0.001  # a skeleton is drawn,
    assert max(changed) < 0.2  # and red and blue have not changed places
