"""`pose-setup`: install what a plain `pip install` cannot."""

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from pose.errors import PoseError
from pose.system.device import require_torch
from pose_apps.support.command import parse_arguments, run_command

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

# mmpose 1.3.2 as it works on current Python, NumPy 2 and torch. chumpy's setup.py imports pip, so it must be built in
# this environment, not in one of its own; xtcocotools' wheel was built for NumPy 1; full mmcv does not compile against
# current torch (`pose.estimators.mmpose_import` stands in for its operators); mmengine imports pkg_resources.
STEPS: tuple[tuple[str, ...], ...] = (
    ("setuptools<81", "wheel", "cython"),
    ("--no-build-isolation", "chumpy==0.70"),
    ("--no-build-isolation", "--no-binary", "xtcocotools", "xtcocotools==1.14.3"),
    ("mmengine==0.10.7", "mmcv-lite==2.1.0", "mmdet==3.3.0"),
    ("mmpose==1.3.2",),
)
CHECK = "from pose.estimators.mmpose_import import import_apis; import_apis()"


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-setup`."""
    parse_arguments(_parser(), argv)
    if importlib.util.find_spec("pip") is None:
        raise PoseError("this environment has no pip: python -m ensurepip, then again")
    require_torch("pose-setup mmpose")
    # Whatever torch and NumPy are here stay: a torchvision is taken that fits them.
    kept = [f"{name}=={version(name).partition('+')[0]}" for name in ("torch", "numpy")]
    for step in STEPS:
        print(f"pip install {' '.join(step)}", flush=True)
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--no-input", *step, *kept])
    _run([sys.executable, "-W", "ignore", "-c", CHECK])
    print("mmpose is ready: --estimator mmpose --estimator-model MODEL.pth, with its config MODEL.py beside it")
    return 0


def _parser() -> "ArgumentParser":
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(prog="pose-setup", description="Install what pip alone cannot.", exit_on_error=False)
    commands = parser.add_subcommands(required=True, dest="command")
    purpose = "Install MMPose 1.3.2 into this environment."
    commands.add_subcommand("mmpose", ArgumentParser(description=purpose, exit_on_error=False), help=purpose)
    return parser


def _run(command: list[str]) -> None:
    """Raises PoseError with the last line of what a failed command said."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith("error:")]
        reason = (errors or lines or [f"exit status {done.returncode}"])[-1]
        raise PoseError(f"{' '.join(command[1:])} failed: {reason}")
