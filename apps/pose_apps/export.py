"""`pose-export`: a lifter as a file for other programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import UsageError
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.status import Status

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-export`."""
    options = parse_arguments(_parser(), argv)
    out = Path(options.out)
    if out.exists() and not options.overwrite:
        raise UsageError(f"--out {out} exists already; add --overwrite to replace it")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.parent}")
    with Status("exporting"):
        from pose.lifter.exchange import export_lifter
        from pose.lifter.torch_lifter import TorchLifter

        lifter = TorchLifter.load(options.lifter)
        difference = export_lifter(lifter.network, options.format, out, lifter.sha256)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB, at most {difference:.1e} from the network")
    return 0


def _parser() -> "ArgumentParser":
    from typing import Literal

    from jsonargparse import ArgumentParser

    parser = ArgumentParser(
        prog="pose-export",
        description="Write a lifter for other programs: an offline one lifts windows, a streaming one takes a step.",
        exit_on_error=False,
    )
    parser.add_argument("lifter", help="offline, stream, or a checkpoint of pose-train")
    parser.add_argument("--format", type=Literal["onnx", "torch-export", "torchscript"], required=True)
    parser.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    return parser
