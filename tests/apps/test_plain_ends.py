"""What commands say and keep where calls, signals and names are not the usual ones."""

import importlib
import json
import shlex
import signal
import sys
import threading
import tomllib
from pathlib import Path

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.batch import command as batch
from pose_apps.batch.manifest import Line
from pose_apps.evaluate.command import main as evaluate
from pose_apps.run import main as run
from pose_apps.support.command import run_command
from pose_apps.support.help import EXAMPLES
from pose_apps.support.interrupts import Interrupts, signals_as_interrupt

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
SCRIPTS = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["scripts"]


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_sigterm_and_sighup_end_a_run_like_ctrl_c(name):
    number = getattr(signal, name)
    before = signal.getsignal(number)
    signal.signal(number, signal.SIG_DFL)
    try:
        with signals_as_interrupt():
            with Interrupts() as interrupts:
                signal.raise_signal(number)
                assert interrupts.stop.is_set(), "what is finished can be kept"
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number if name == "SIGTERM" else signal.SIGTERM)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


@pytest.mark.usefixtures("usual_signals")
def test_ignored_sighup_stays_ignored():
    """As with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_as_interrupt(), Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
            assert not interrupts.stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signal_handlers_are_not_installed_outside_the_main_thread():
    done = []

    def work() -> None:
        with signals_as_interrupt():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done


def test_a_quiet_batch_names_what_failed(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.mp4").write_text("no video")
    line = Line(path="a.mp4", name="a\x1b[2J", key=None, status="failed", error="cannot read a.mp4")
    monkeypatch.setattr(batch, "make_job", lambda *arguments: None)
    monkeypatch.setattr(batch, "_process_tasks", lambda *arguments: [line])
    assert batch.main([str(tmp_path / "a.mp4"), "--out", str(tmp_path / "out"), "--quiet", "--no-resume"]) == 1
    assert capsys.readouterr().err == "error: a\\x1b[2J: cannot read a.mp4\n"


@pytest.mark.parametrize("words", [["--detect-every", "inf"], ["--image-fps", "inf"], ["--start", "inf"]])
def test_infinite_option_values_are_rejected(words, tmp_path, capsys):
    assert run(["no.mp4", "--out", str(tmp_path), *words]) == 2
    assert "inf is not a finite number" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["1:1.82", "12:30", "-1:59.5"])
def test_yaml_base_60_numbers_are_rejected_with_a_remedy(value, tmp_path, capsys):
    for text, said in ((value, "in quotes: YAML reads it as a base-60 number"), (f"'{value}'", "height")):
        (tmp_path / "a.yaml").write_text(f"height: {text}\n")
        status = run(["no.mp4", "--out", str(tmp_path / "out"), "--config", str(tmp_path / "a.yaml")])
        error = capsys.readouterr().err
        assert status == 2
        assert said in error or (value == "1:1.82" and "no such file" in error)


@pytest.mark.parametrize(
    ("module", "advice"),
    [
        ("torch", 'this needs torch: pip install "pose-run[{}]"'),
        ("safetensors.torch", 'this needs safetensors: pip install "pose-run[{}]"'),
        ("accelerate", 'this needs accelerate: pip install "pose-run[train]"'),
        ("tensorboard.compat", 'this needs tensorboard: pip install "pose-run[train]"'),
    ],
)
@pytest.mark.parametrize(("command", "extra"), [("pose_apps.run", "torch"), ("pose_apps.lab.command", "train")])
def test_a_missing_library_names_the_extra_that_is_enough(module, advice, command, extra, capsys):
    def main(argv=None):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    main.__module__ = command
    assert run_command(main)([]) == 1
    assert capsys.readouterr().err == f"error: {advice.format(extra)}\n"


def test_control_characters_in_file_names_are_escaped(tmp_path, capsys):
    assert run([str(tmp_path / "a\x1b]0;mine\x07\x1b[31m.mp4")]) != 0
    said = capsys.readouterr().err
    assert "\\x1b]0;mine\\x07" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("example", [line for lines in EXAMPLES.values() for line in lines])
def test_help_examples_are_valid_calls(example, monkeypatch):
    """As far as the parser: what an example names need not be there."""
    from pose_apps.support import command as support

    monkeypatch.chdir(PYPROJECT.parent)  # recipes are named as from the repository
    name, *words = shlex.split(example)
    path, _, function = SCRIPTS[name].partition(":")
    main = getattr(importlib.import_module(path), function)
    problems = []
    monkeypatch.setattr(support, "_fail", lambda message, status: problems.append((status, message)) or status)
    real = support.parse_arguments

    class Parsed(Exception):  # noqa: N818 - what ends the call here
        pass

    def parse(parser, argv):
        real(parser, argv)
        raise Parsed

    monkeypatch.setattr(sys.modules[path], "parse_arguments", parse, raising=False)
    with pytest.raises(Parsed):
        main(words)
    assert problems == []


def truth(tmp_path, joints):
    frames = len(joints)
    np.savez(
        tmp_path / "in.npz", keypoints=np.full((frames, 17, 2), 50.0), scores=np.ones((frames, 17)),
        timestamps=np.arange(frames) / 30, image_size=np.array([100, 100]), skeleton="coco17",
    )  # fmt: skip
    np.savez(tmp_path / "truth.npz", joints3d=joints)
    return ["sequence", "--keypoints", str(tmp_path / "in.npz"), "--gt", str(tmp_path / "truth.npz")]


def test_evaluation_without_ground_truth_frames_fails(tmp_path, capsys):
    call = truth(tmp_path, np.full((5, 17, 3), np.nan))
    assert evaluate([*call, "--out", str(tmp_path / "out")]) == 1
    assert "no frame has ground truth" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        lambda content: [], lambda content: 3, lambda content: content | {"results": [3]},
        lambda content: content | {"results": {}}, lambda content: content | {"results": [{}]},
        lambda content: content | {"version": "1"}, lambda content: content | {"results": [{"name": []}]},
    ],
)  # fmt: skip
def test_invalid_results_json_gives_a_one_line_error(tmp_path, capsys, change):
    (tmp_path / "results.json").write_text(json.dumps(change({"format": "pose-eval", "version": 1, "results": []})))
    assert evaluate(["compare", str(tmp_path), str(tmp_path)]) == 1
    assert "not a results.json of pose-eval" in error_line(capsys)
