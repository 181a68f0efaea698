"""Common parts of the subcommands of `pose-bench`."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pose.utils.options import Options, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench(Options):
    """Options of a subcommand of `pose-bench`."""

    purpose: ClassVar[str]  # description of what is measured

    json: str | None = option(None, "also write the measurements to this JSON file", metavar="FILE")

    @abstractmethod
    def run(self) -> None:
        """Run the measurement, print the results as tables, and write a JSON file if requested."""
