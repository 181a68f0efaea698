"""The kinds of experiments by name. To add one, write a module in `studies/` and add a line here."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import pose.training.research  # noqa: F401  adds mechanisms and forms by name
from pose.errors import PoseError
from pose.training.laboratory.experiment import Experiment, Settings
from pose.training.laboratory.studies import (
    adaptive_depth,
    branch_gradients,
    laboratories,
    left_out,
    lifters,
    map_sharing,
    memory,
    pretraining,
    score_widths,
    shipped,
    small_tasks,
    step_cost,
    without_norm,
)
from pose.training.laboratory.trial import Outcome, Setup


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of experiment."""

    settings: Callable[..., Any]  # dataclass of a condition's settings; raises ValueError for invalid ones
    run: Callable[[Any, Setup], Outcome]  # function that runs one trial (one condition with one seed)
    # Titles of the table's columns by name of the result. If empty, each result is a row of the table.
    columns: Mapping[str, str]
    seeded: bool = True  # whether results depend on the seed; otherwise there is one trial per condition


KINDS: dict[str, Kind] = {
    "score-widths": Kind(score_widths.ScoreWidthsSettings, score_widths.run, score_widths.COLUMNS),
    "branch-gradients": Kind(branch_gradients.BranchGradientsSettings, branch_gradients.run, branch_gradients.COLUMNS),
    "lifters": Kind(lifters.LifterSettings, lifters.run, lifters.COLUMNS),
    "pretraining": Kind(pretraining.PretrainingSettings, pretraining.run, pretraining.COLUMNS),
    "small-tasks": Kind(small_tasks.SmallTasksSettings, small_tasks.run, small_tasks.COLUMNS),
    "adaptive-depth": Kind(adaptive_depth.AdaptiveDepthSettings, adaptive_depth.run, adaptive_depth.COLUMNS),
    "bodies": Kind(laboratories.LaboratorySettings, laboratories.run, laboratories.BODY_COLUMNS),
    "laboratories": Kind(laboratories.LaboratorySettings, laboratories.run, laboratories.LABORATORY_COLUMNS),
    "left-out": Kind(left_out.LeftOutSettings, left_out.run, {}),
    "map-sharing": Kind(map_sharing.MapSharingSettings, map_sharing.run, map_sharing.COLUMNS),
    "memory": Kind(memory.MemorySettings, memory.run, {}),
    "step-cost": Kind(step_cost.StepCostSettings, step_cost.run, step_cost.COLUMNS),
    "without-norm": Kind(without_norm.WithoutNormSettings, without_norm.run, without_norm.COLUMNS),
    "maps": Kind(shipped.MapSettings, shipped.maps, shipped.MAP_COLUMNS, seeded=False),
    "gaps": Kind(shipped.GapSettings, shipped.gaps, shipped.GAP_COLUMNS, seeded=False),
    "context": Kind(shipped.ContextSettings, shipped.context, shipped.CONTEXT_COLUMNS, seeded=False),
    "groups": Kind(shipped.GroupSettings, shipped.groups, {}, seeded=False),
}


def kind_of(experiment: Experiment) -> Kind:
    """Return the kind of an experiment; PoseError if the experiment's kind is unknown."""
    if experiment.kind not in KINDS:
        raise PoseError(f"experiment {experiment.name}: kind {experiment.kind!r} is not one of {', '.join(KINDS)}")
    return KINDS[experiment.kind]


def settings_of(experiment: Experiment, condition: str) -> Any:
    """Return the settings of a condition; PoseError names it if they are invalid."""
    kind, values = kind_of(experiment), experiment.conditions[condition]
    try:
        return _checked(kind.settings, values)
    except (ValueError, TypeError) as error:
        raise PoseError(f"experiment {experiment.name}, condition {condition}: {error}") from error


def _checked(settings: Callable[..., Any], values: Settings) -> Any:
    known = {f.name: f for f in fields(settings)}  # type: ignore[arg-type]
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"unknown setting {name}; known: {', '.join(known)}")
        default, default_factory = known[name].default, known[name].default_factory
        if default_factory is not MISSING:
            default = default_factory()
        allowed = (int, float) if isinstance(default, float) else type(default)
        if (
            default is not MISSING
            and default is not None
            and (not isinstance(value, allowed) or _is_bool(value, default))
        ):
            raise ValueError(f"{name}: expected {type(default).__name__}, got {value!r}")
    return settings(**values)


def _is_bool(value: object, default: object) -> bool:
    """Return whether `value` is a bool although `default` is not."""
    return isinstance(value, bool) and not isinstance(default, bool)
