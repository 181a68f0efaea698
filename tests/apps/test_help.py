"""--help of every command and subcommand: short, an example first, in groups, and without any extra."""

import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from pose_apps import train, weights

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
SCRIPTS = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["scripts"]
EXTRAS = """torch torchvision accelerate tensorboard matplotlib onnx onnxscript open3d aiohttp websockets pygame rerun
cdflib h5py ultralytics trackers supervision"""
WITHOUT_EXTRAS = """
import importlib, sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS.split():
            raise ModuleNotFoundError(f"no {name}", name=name)

sys.meta_path.insert(0, Absent())
for module, function, *words in CALLS:
    try:
        getattr(importlib.import_module(module), function)(words)
        sys.exit(f"{module} {words} did not end")
    except SystemExit as end:
        if end.code:
            raise
"""


def told(*words: str) -> str:
    """What the command prints; each call is made once at a width of the terminal."""
    return _told(words, os.environ.get("COLUMNS"))


@cache
def _told(words: tuple[str, ...], columns: str | None) -> str:
    module, function = SCRIPTS[words[0]].split(":")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as end:
        getattr(importlib.import_module(module), function)(list(words[1:]))
    assert end.value.code == 0
    return said.getvalue()


def calls_of(command: str) -> list[tuple[str, ...]]:
    """The command, and the command with each of its subcommands."""
    listed = told(command, "--help-all").partition("\ncommands\n")[2]
    return [(command,), *((command, name) for name in re.findall(rf"^  {command} ([a-z][\w-]*)", listed, re.MULTILINE))]


def test_help_lists_every_subcommand():
    assert calls_of("pose-run") == [("pose-run",)]
    assert calls_of("pose-train")[1:] == [("pose-train", name) for name in train.MODELS]
    assert calls_of("pose-weights")[1:] == [("pose-weights", name) for name in weights.COMMANDS]


@pytest.mark.parametrize("command", SCRIPTS)
def test_help_is_short_and_plain_and_starts_with_an_example(command, monkeypatch):
    for call, columns in product(calls_of(command), ("80", "60")):
        monkeypatch.setenv("COLUMNS", columns)
        text = told(*call, "--help")
        assert len(text.splitlines()) <= 60, call
        assert max(map(len, text.splitlines())) <= 100, call
        assert not re.search(r"type:|Literal|\bstr\b|null|\x1b", text), call
        options = [line for line in text.partition("\n\n")[2].splitlines() if not line.startswith("  pose-")]
        assert [line for line in options if len(line) > int(columns)] == [], call
    lines = told(command, "--help").splitlines()
    assert lines[0].startswith(f"{command}: ")
    assert any(line.startswith(f"  {command}") for line in lines[:6])


@pytest.mark.parametrize("command", ["pose-run", "pose-webcam"])
def test_help_groups_the_options(command):
    text = told(command, "--help")
    assert re.findall(r"^(\w+)$", text, re.MULTILINE) == ["input", "output", "people", "networks", "speed"]
    hidden = set(re.findall(r"--[\w-]+", told(command, "--help-all"))) - set(re.findall(r"--[\w-]+", text))
    assert {"--detector-model", "--precision", "--print_config"} <= hidden


@pytest.mark.parametrize(
    "call", [("pose-train", "lifter"), ("pose-eval", "sequence"), ("pose-export",), ("pose-run",), ("pose-webcam",)]
)
def test_help_mentions_own_attention_mechanisms(call):
    short = ("--help",) if call[0] in ("pose-train", "pose-eval", "pose-export") else ("--help-all",)
    assert "--plugin FILE" in told(*call, *short)


def test_help_needs_no_extra():
    found = [call for command in SCRIPTS for call in calls_of(command)]
    calls = [(*SCRIPTS[command].split(":"), *words, "--help") for command, *words in found]
    program = WITHOUT_EXTRAS.replace("EXTRAS", repr(EXTRAS)).replace("CALLS", repr(calls))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
