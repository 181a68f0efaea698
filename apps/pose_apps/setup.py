"""`pose-setup`: install packages that `pip install` alone cannot."""

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from jsonargparse import ArgumentParser

from pose.errors import PoseError
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_subcommand, command_parser

# Other variants of cv2 overwrite the headless one, need desktop libraries, and remove its files when uninstalled.
OPENCV = "opencv-python-headless"
OTHER_OPENCV = ("opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless")


@dataclass(frozen=True, slots=True)
class Package:
    """Instructions for installing one package."""

    purpose: str  # help text of the subcommand
    steps: tuple[tuple[str, ...], ...]  # arguments of successive pip calls
    check: str  # python code that raises an exception if the package does not work
    ready: str  # message after the installation


PACKAGES = {
    # MMPose 1.3.2 works on current Python, NumPy 2 and torch only with these steps. The setup.py of chumpy imports
    # pip, so chumpy must be built in this environment. The wheel of xtcocotools was built for NumPy 1. The full
    # mmcv does not compile against current torch (`pose.networks.estimators.mmpose` replaces its operators).
    # mmengine
    # needs pkg_resources.
    "mmpose": Package(
        "Install MMPose 1.3.2 into this environment.",
        (
            ("torch>=2.9", "torchvision>=0.21", "setuptools<81", "wheel", "cython"),
            ("--no-build-isolation", "chumpy==0.70"),
            ("--no-build-isolation", "--no-binary", "xtcocotools", "xtcocotools==1.14.3"),
            ("mmengine==0.10.7", "mmcv-lite==2.1.0", "mmdet==3.3.0"),
            ("mmpose==1.3.2",),
        ),
        "from pose.networks.estimators.mmpose import import_apis; import_apis()",
        "mmpose is ready: --estimator mmpose --estimator-model MODEL.pth, with its config MODEL.py beside it",
    ),
    "ultralytics": Package(
        "Install Ultralytics (AGPL-3.0), which runs YOLO's .pt files, into this environment.",
        (("torch>=2.9", "torchvision>=0.21", "ultralytics>=8.4.190"),),
        "import ultralytics",
        "ultralytics is ready: --detector yolo --detector-model MODEL.pt",
    ),
}


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-setup`."""
    package = PACKAGES[parse_arguments(_parser(), argv).command]
    if importlib.util.find_spec("pip") is None:
        raise PoseError("this environment has no pip: run python -m ensurepip first")
    # Installed versions of torch and NumPy are kept; torchvision is chosen to fit them.
    kept = [f"{name}=={release}" for name in ("torch", "numpy") if (release := _release(name)) is not None]
    for step in package.steps:
        print(f"pip install {' '.join(step)}", flush=True)
        _pip("install", *step, *kept)
    _leave_one_opencv()
    _run([sys.executable, "-W", "ignore", "-c", package.check])
    print(package.ready)
    return 0


def _parser() -> ArgumentParser:
    parser = command_parser("pose-setup", "Install optional packages that need more than pip.")
    commands = parser.add_subcommands(required=True, dest="command")
    for name, package in PACKAGES.items():
        add_subcommand(commands, name, package.purpose)
    return parser


def _leave_one_opencv() -> None:
    """Remove other variants of OpenCV that a package installed, and repair the headless variant."""
    others = [name for name in OTHER_OPENCV if _release(name) is not None]
    if not others:
        return
    mend = f"{OPENCV}=={_release(OPENCV)}"
    print(f"pip uninstall {' '.join(others)}; pip install {mend}", flush=True)
    _pip("uninstall", "--yes", *others)
    _pip("install", "--force-reinstall", "--no-deps", mend)


def _release(name: str) -> str | None:
    """Return the installed version of a package without its local part; None if it is not installed."""
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return None


def _pip(command: str, *words: str) -> None:
    _run([sys.executable, "-m", "pip", command, "--quiet", "--no-input", *words])


def _run(command: list[str]) -> None:
    """Run a command."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith("error:")]
        reason = (errors or lines or [f"exit status {done.returncode}"])[-1]
        raise PoseError(f"{' '.join(command[1:])} failed: {reason}")
