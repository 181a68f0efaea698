"""Experiments, read from YAML: a claim, the conditions under which it is tested, and the finding.

This module does not import torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import yaml

from pose.errors import PoseError, UsageError
from pose.utils.json_values import Json
from pose.utils.shown import in_brief

Settings = Mapping[str, Json]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Published:
    """A result as published in the literature."""

    value: float
    of: int = 0  # number of test cases on which a percentage is based; 0 if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot of y over x with one line per value of `by`."""

    x: str  # name of the setting on the x axis
    y: str  # name of the result on the y axis
    by: str  # name of the setting that has one value per line
    log: bool = False  # whether both axes are logarithmic


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A claim, the conditions under which it is tested, and the finding."""

    name: str  # name of the file
    kind: str  # one of `pose.training.laboratory.kinds.KINDS`
    claim: str  # one sentence, with its source
    finding: str = ""  # the result in one sentence; empty before the first evaluation
    found_in: str = ""  # `log.digest` of the trials that the finding is about; empty for any
    conditions: Mapping[str, Settings]  # settings of each condition, by its name
    # Published values, by condition and result.
    published: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    plot: Plot | None = None  # the plot; None for no plot


def load_experiment(path: Path) -> Experiment:
    """Read an experiment from a YAML file."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PoseError(f"{path}: not a readable YAML file ({in_brief(error)})") from error
    try:
        return _experiment(path.stem, values)
    except (TypeError, ValueError, AttributeError) as error:
        raise PoseError(f"{path}: not an experiment: {error}") from error


def _experiment(name: str, values: dict[str, Json]) -> Experiment:
    if not isinstance(values, dict):
        raise TypeError("expected a mapping")
    known = {"kind", "claim", "finding", "found_in", "common", "conditions", "published", "plot"}
    if unknown := set(values) - known:
        raise ValueError(f"unknown key {sorted(map(str, unknown))[0]}; known: {', '.join(sorted(known))}")
    for key in ("kind", "claim"):
        if not isinstance(values.get(key), str):
            raise ValueError(f"{key} is missing or not a string")
    common, conditions = _mapping(values, "common"), _mapping(values, "conditions")
    if not conditions:
        raise ValueError("conditions: empty")
    published = {
        str(condition): {
            result: _from_mapping(Published, printed, result)
            for printed in [_mapping(entries, condition)]
            for result in printed
        }
        for entries in [_mapping(values, "published")]
        for condition in entries
    }
    if unknown_conditions := set(published) - set(map(str, conditions)):
        raise ValueError(f"published: {sorted(unknown_conditions)[0]!r} is not a condition")
    return Experiment(
        name=name,
        kind=str(values["kind"]),
        claim=" ".join(str(values["claim"]).split()),
        finding=" ".join(str(values.get("finding") or "").split()),
        found_in=str(values.get("found_in") or ""),
        conditions={str(key): common | _mapping(conditions, key) for key in conditions},
        published=published,
        plot=_from_mapping(Plot, values, "plot") if "plot" in values else None,
    )


def _mapping(values: Mapping[str, Json], key: str) -> dict[str, Json]:
    value = values.get(key) or {}
    if not isinstance(value, dict):
        raise TypeError(f"{key}: expected a mapping, got {str(value)[:40]!r}")
    return value


def _from_mapping(kind: type[T], values: Mapping[str, Json], key: str) -> T:
    build: Callable[..., T] = kind  # the dataclass checks the names and types of its arguments
    return build(**_mapping(values, key))


def experiments(folder: Path) -> dict[str, Experiment]:
    """Read all experiments of a folder; returns them by name."""
    return {path.stem: load_experiment(path) for path in sorted(folder.glob("*.yaml"))}


def find_experiment(name: str, folder: Path) -> Experiment:
    """Return an experiment by name, or of the user's own YAML file; UsageError if unknown."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(path.stem for path in folder.glob("*.yaml")))
        raise UsageError(f"no experiment {name!r}; known: {known}, or a .yaml file of your own")
    return load_experiment(path)
