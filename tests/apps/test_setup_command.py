"""`pose-setup`: what it says when it cannot install, and, slowly, that it can."""

import dataclasses
import importlib.util
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from command_errors import error_line
from pose_apps import run, setup

HERE = Path(__file__).parents[2]


def package(**changes):
    return dataclasses.replace(setup.PACKAGES["mmpose"], **changes)


def test_failed_install_prints_the_reason_of_pip(monkeypatch, capsys):
    monkeypatch.setitem(setup.PACKAGES, "mmpose", package(steps=(("--no-index", "pose-run-has-no-such-package"),)))
    assert setup.main(["mmpose"]) == 1
    assert "No matching distribution" in error_line(capsys)


@pytest.mark.parametrize("name", setup.PACKAGES)
def test_printed_next_command_is_valid(name, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(setup.PACKAGES, name, dataclasses.replace(setup.PACKAGES[name], steps=(), check="pass"))
    monkeypatch.setattr(setup, "OTHER_OPENCV", ())
    assert setup.main([name]) == 0
    options = re.findall(r"--\S+ [^\s,]+", capsys.readouterr().out)
    assert len(options) == 2
    assert run.main([*" ".join(options).split(), "--video", str(tmp_path / "absent.mp4")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_conflicting_opencv_is_replaced(monkeypatch, capsys):
    installed = {"opencv-python": "5.0.1", "opencv-python-headless": "5.0.0"}
    calls = []
    monkeypatch.setattr(setup, "_release", installed.get)
    monkeypatch.setattr(setup, "_pip", lambda *words: calls.append(words))
    monkeypatch.setitem(setup.PACKAGES, "mmpose", package(steps=(), check="pass"))
    assert setup.main(["mmpose"]) == 0
    assert calls == [
        ("uninstall", "--yes", "opencv-python"),
        ("install", "--force-reinstall", "--no-deps", "opencv-python-headless==5.0.0"),
    ]


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="needs the torchvision that fits this torch (.ci/nightly)"
)
def test_mmpose_installs_into_a_fresh_environment(tmp_path):
    """The new environment sees the packages of this one, so that torch need not be installed again.

    `addsitedir` reads the .pth files of that folder as well, of which one finds an editable installation.

    What needs MMPose is tested there: its skips would say that MMPose cannot be used after all.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    python = tmp_path / "bin" / "python"
    found = sysconfig.get_path("purelib", vars={"base": str(tmp_path)})
    here = sysconfig.get_path("purelib")
    (Path(found) / "below.pth").write_text(f"import site; site.addsitedir({here!r})\n{HERE}\n")
    command = [python, "-c", "import sys; from pose_apps.setup import main; sys.exit(main(['mmpose']))"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mmpose is ready" in done.stdout
    windows = "import cv2; print([line for line in cv2.getBuildInformation().splitlines() if 'GUI:' in line])"
    assert "NONE" in subprocess.run([python, "-c", windows], capture_output=True, text=True, check=True).stdout
    tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/networks/estimators/test_mmpose.py"]
    tested = subprocess.run(tests, capture_output=True, text=True, cwd=HERE)
    assert tested.returncode == 0, tested.stdout
    assert "needs mmpose" not in tested.stdout
