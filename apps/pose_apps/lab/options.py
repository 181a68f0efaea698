"""Options of `pose-lab`."""

from dataclasses import dataclass

from pose.errors import UsageError
from pose.utils.options import Options, argument, option, quiet_option


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions(Options):
    """Options of the subcommands of `pose-lab` that use the folder of the logs."""

    log: str = option("lab", "folder with the results of trials", metavar="DIR")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(LogOptions):
    """Options of `pose-lab run`."""

    names: list[str] = argument([], "experiments, or YAML files of your own; default: all", metavar="NAME")
    seeds: int = option(3, "trials per condition", minimum=1)
    budget: float | None = option(None, "stop after this processor time in seconds", metavar="SECONDS")
    mocap: str | None = option(None, "files written by pose-prepare mocap, separated by commas", metavar="FILES")
    threads: int = option(1, "CPU threads per network", minimum=1)
    quiet: bool = quiet_option()

    def __post_init__(self) -> None:
        LogOptions.__post_init__(self)
        if self.budget is not None and not self.budget > 0:
            raise UsageError(f"--budget must be above 0 seconds, got {self.budget:g}")
