"""`pose-export`: export a lifter for other programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pose.errors import UsageError
from pose.utils.options import REQUIRED, Options, argument, option, overwrite_option
from pose.utils.written_files import check_target, writing
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import command_parser, config_of
from pose_apps.support.status import StatusLine


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(Options):
    """Options of `pose-export`."""

    lifter: str = argument(REQUIRED, "offline, stream, sliding, or a checkpoint of pose-train", metavar="LIFTER")
    format: Literal["onnx", "torch-export", "torchscript"] = option(REQUIRED, "export format")
    out: str = option(REQUIRED, "the file to write", metavar="FILE")
    overwrite: bool = overwrite_option("an existing file")


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-export`."""
    about = "Export a lifter: offline lifters take windows, streaming lifters single frames."
    options = config_of(ExportOptions, parse_arguments(command_parser("pose-export", about, ExportOptions), argv))
    out = Path(options.out)
    check_target(out, [options.lifter], overwrite=options.overwrite)
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: no such folder: {out.parent}")
    with StatusLine("exporting"):
        from pose.lifting.exchange import export_lifter
        from pose.lifting.torch_lifter import TorchLifter
        from pose_apps.support.lifters import allow_research_lifters

        allow_research_lifters(options.lifter)

        lifter = TorchLifter.load(options.lifter)
        with writing([out]):
            difference = export_lifter(lifter.network, options.format, out, lifter.sha256, sliding=lifter.sliding)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB, maximum difference to PyTorch {difference:.1e}")
    return 0
