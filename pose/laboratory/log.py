"""What trials found, one JSON object a line, in one file for each experiment."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, TypedDict, cast

from pose.errors import PoseError, in_brief
from pose.laboratory.experiment import Settings
from pose.system.json_types import conform, read_text_file
from pose.system.json_values import strict_json
from pose.system.whole_file import file_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One finished trial. steps: optimiser steps. examples: sequences trained on. cpu_seconds: of all its threads.
    results: figures by name."""

    experiment: str
    condition: str
    seed: int
    settings: Settings
    steps: int
    examples: int
    cpu_seconds: float
    results: Mapping[str, float | None]

    @classmethod
    def parse(cls, line: str) -> Self:
        """Raises ValueError or TypeError for anything but what `TrialLog.append` wrote."""
        values = strict_json(line)
        conform(values, _Fields)
        assert isinstance(values, dict)
        if unknown := values.keys() - _Fields.__required_keys__:
            raise TypeError(f"{min(unknown)[:40]!r} is unknown")
        return cls(**values)


class _Fields(TypedDict):
    experiment: str
    condition: str
    seed: int
    settings: dict[str, object]
    steps: int
    examples: int
    cpu_seconds: float
    results: dict[str, float | None]


class TrialLog:
    """The records of one experiment in `folder`. A line that an interruption left unfinished at the end is no record,
    and the next one begins a line of its own."""

    def __init__(self, folder: Path, experiment: str) -> None:
        self.path = folder / f"{experiment}.jsonl"

    def records(self) -> list[Record]:
        """Raises PoseError for a line, other than an unfinished last one, that is none of ours."""
        if not self.path.is_file():
            return []
        lines = read_text_file(self.path).decode("utf-8", "replace").splitlines(keepends=True)
        records = []
        for number, line in enumerate(lines, start=1):
            try:
                records.append(Record.parse(line))
            except (TypeError, ValueError) as error:
                if not line.endswith("\n"):
                    break
                raise PoseError(f"{self.path}, line {number}: not a record of a trial ({in_brief(error)})") from error
        return records

    def append(self, record: Record) -> None:
        """Add one record; it is on the disk when this returns."""
        line = json.dumps(cast(dict[str, object], asdict(record)), allow_nan=False) + "\n"
        with file_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._end_line()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())

    def _end_line(self) -> None:
        """Drop what is unfinished at the end of the file."""
        if not self.path.is_file():
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)
