"""Study that trains lifters on the subjects of some laboratories and measures them on each validation body."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import mean

import numpy as np

from pose.lifting.model import LifterNetwork
from pose.structures.types import F64
from pose.training.batches import TensorBatch
from pose.training.evaluation import metrics
from pose.training.laboratory.studies import lifters
from pose.training.laboratory.trial import Outcome, Setup
from pose.training.measure import lift_batch

MEASURES = {"": metrics.position_errors, "_scaled": metrics.scaled_errors, "_aligned": metrics.aligned_errors}
BODY_COLUMNS = {
    "parameters": "parameters",
    "gt": "exact 2D: MPJPE, mm",
    "gt_scaled": "scaled",
    "gt_aligned": "P-MPJPE",
    "detector": "detector's 2D: MPJPE, mm",
    "detector_scaled": "scaled",
    "detector_aligned": "P-MPJPE",
    "step_ms": "processor ms a step",
}
LABORATORY_COLUMNS = {
    f"{condition}{measure}@{name}": f"{shown}, {seen}{', scaled' if measure else ''}"
    for condition, seen in (("gt", "exact"), ("detector", "detector's"))
    for name, shown in (("cmu", "CMU"), ("uiprmd", "UI-PRMD"), ("snu", "SNU"))
    for measure in ("", "_scaled")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaboratorySettings(lifters.LifterSettings):
    """Settings for one condition of a `laboratories` or `bodies` experiment."""

    # Laboratories of the training subjects, each in as many sequences as the others.
    trained_on: list[str] = field(default_factory=lambda: ["cmu", "uiprmd", "snu"])

    def __post_init__(self) -> None:
        lifters.LifterSettings.__post_init__(self)
        if not self.trained_on or self.model.get("model") == lifters.RIDGE:
            raise ValueError(f"trained_on: must name a laboratory, and model must not be {lifters.RIDGE}")


def run(settings: LaboratorySettings, setup: Setup) -> Outcome:
    """Train a lifter, then measure it on the validation bodies, with `evaluated` batches of each.

    Returns:
        `parameters`, and `step_ms`, the processor time of a step. With X for `gt` and `detector`, the 2D: `X`,
            `X_scaled` (after the best scale of each frame) and `X_aligned`, mean errors in mm, in which each body has
            the same weight; `X@LABORATORY` and `X@LABORATORY SUBJECT`, the same for the bodies of a laboratory and for
            one body.
    """
    batches = setup.motion().training(
        settings.frames, settings.sequences, setup.seed, laboratories=tuple(settings.trained_on)
    )
    network = lifters.build_lifter(settings, TensorBatch.of(batches(0)), setup.seed)
    trained = lifters.train(network, batches, settings, setup)
    results = {
        "parameters": lifters.parameter_count(network),
        "step_ms": 1000 * trained.seconds / settings.steps,
    }
    for condition in ("gt", "detector"):
        results |= _errors(network, condition, settings, setup)
    return Outcome(results, settings.steps, settings.steps * settings.sequences, trained.earlier_seconds)


def _errors(network: LifterNetwork, condition: str, settings: LaboratorySettings, setup: Setup) -> dict[str, float]:
    """Return the errors of all bodies, of each laboratory and of each body."""
    of_body: dict[str, dict[str, float]] = {name: {} for name in MEASURES}
    for body in setup.motion().groups("body", condition, settings.frames):
        parts: dict[str, list[F64]] = {name: [] for name in MEASURES}
        for batch in islice(body.batches, settings.evaluated):
            joints = lift_batch(network, batch).joints.numpy()[batch.valid]
            for name, measure in MEASURES.items():
                parts[name].append(measure(joints, batch.joints[batch.valid]))
        for name, errors in parts.items():
            of_body[name][body.group] = float(np.concatenate(errors).mean())
    results: dict[str, float] = {}
    for name, errors_by_body in of_body.items():
        results |= _means(f"{condition}{name}", errors_by_body)
    return results


def _means(key: str, errors: Mapping[str, float]) -> dict[str, float]:
    """Return the mean of the errors of bodies, "LABORATORY SUBJECT", those of each laboratory, and the errors."""
    groups: dict[str, list[float]] = {}
    for body, error in errors.items():
        groups.setdefault(body.partition(" ")[0], []).append(error)
    means: Sequence[tuple[str, float]] = [(f"{key}@{name}", mean(values)) for name, values in groups.items()]
    return {key: mean(errors.values())} | dict(means) | {f"{key}@{body}": error for body, error in errors.items()}
