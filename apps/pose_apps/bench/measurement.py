"""What the subcommands of `pose-bench` have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pose.options import Options, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench(Options):
    """The options of a subcommand. purpose: what is measured."""

    purpose: ClassVar[str]

    json: str | None = option(None, "also write the figures to this JSON file", metavar="FILE")

    @abstractmethod
    def run(self) -> None:
        """Measure, print tables, write JSON. Raises PoseError."""
