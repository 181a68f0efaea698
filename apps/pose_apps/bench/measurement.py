"""Common parts of the subcommands of `pose-bench`."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pose.options import Options, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench(Options):
    """The options of a subcommand.

    Attributes:
        purpose: What is measured.
    """

    purpose: ClassVar[str]

    json: str | None = option(None, "also write the measurements to this JSON file", metavar="FILE")

    @abstractmethod
    def run(self) -> None:
        """Measure, print tables, write JSON.

        Raises:
            PoseError: If options are invalid or a network cannot run.
        """
