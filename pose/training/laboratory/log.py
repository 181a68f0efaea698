"""Logs of trials: one JSON object per line, one file per experiment."""

import functools
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import NotRequired, Self, TypedDict, cast

from pose.errors import PoseError
from pose.training.laboratory.experiment import Settings
from pose.utils.json_values import check_type, read_text_file, strict_json
from pose.utils.shown import in_brief
from pose.utils.whole_file import file_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The log entry of one finished trial, which ran one condition with one seed."""

    experiment: str
    condition: str
    seed: int  # random seed
    settings: Settings  # settings of the condition
    steps: int  # number of optimiser steps
    examples: int  # number of training sequences, repetitions included
    cpu_seconds: float  # processor time of all threads, s
    results: Mapping[str, float | None]  # results by name
    # Half of the 95 % intervals of results of a single trial, over its sequences.
    half_widths: Mapping[str, float] = field(default_factory=dict)
    # Commit and versions of the packages; in rows of earlier versions, the commit that added the row to this project.
    made_with: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, line: str) -> Self:
        """Parse a line written by `TrialLog.append`; ValueError or TypeError if it is invalid."""
        values = strict_json(line)
        check_type(values, _Fields)
        assert isinstance(values, dict)
        if unknown := values.keys() - _Fields.__annotations__.keys():
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
    half_widths: NotRequired[dict[str, float]]
    made_with: NotRequired[dict[str, str]]


@functools.cache
def versions() -> dict[str, str]:
    """Return the commit of this checkout, with "+" if files have changed, and versions of what results depend on."""
    found = {name: version(name) for name in ("pose-run", "torch", "numpy")} | {"python": platform.python_version()}
    folder = Path(__file__).parent
    try:
        commit = _git("rev-parse", "--short=12", "HEAD", folder=folder)
        changed = _git("status", "--porcelain", "--untracked-files=no", folder=folder)
    except (OSError, subprocess.SubprocessError):  # no git, or not a checkout
        return found
    return {"commit": commit + ("+" if changed else "")} | found


def _git(*words: str, folder: Path) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def digest(records: Sequence[Record]) -> str:
    """Return a short hash of the results of all trials, independent of their order."""
    known = sorted((record.condition, record.seed, sorted(record.results.items())) for record in records)
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:12]


class TrialLog:
    """Log of one experiment's records in `folder`; an incomplete last line is ignored and replaced."""

    def __init__(self, folder: Path, experiment: str) -> None:
        self.path = folder / f"{experiment}.jsonl"

    def records(self) -> list[Record]:
        """Read all records, without an incomplete last line; PoseError if another is invalid."""
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
        """Append one record and synchronise it to the disk."""
        line = json.dumps(cast(dict[str, object], asdict(record)), allow_nan=False) + "\n"
        with file_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._end_line()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())

    def _end_line(self) -> None:
        """Remove an incomplete last line."""
        if not self.path.is_file():
            return
        content = self.path.read_bytes()
        complete = content.rfind(b"\n") + 1
        if complete < len(content):
            os.truncate(self.path, complete)
