"""Study that leaves one subject out: the increase in error on a subject that is not in the training data."""

import math
from dataclasses import dataclass, field
from itertools import islice

from pose.training.batches import TensorBatch
from pose.training.laboratory.studies import lifters
from pose.training.laboratory.trial import Outcome, Setup
from pose.training.measure import measure

EVERYBODY = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutSettings(lifters.LifterSettings):
    """Settings for one condition of a `left-out` experiment. All its trainings have equal length."""

    subjects: list[str] = field(default_factory=list)  # names of training subjects, each left out in turn

    def __post_init__(self) -> None:
        lifters.LifterSettings.__post_init__(self)
        if not self.subjects:
            raise ValueError("subjects: must not be empty")
        if self.model.get("model") == lifters.RIDGE:
            raise ValueError(f"model: must be a network, not {lifters.RIDGE}")


def run(settings: LeftOutSettings, setup: Setup) -> Outcome:
    """Measure MPJPE, mm, on exact 2D of each subject, such as S1, of lifters `S1: trained with` and `without` it.

    All trainings start from equal weights; `S1: costs` is the difference. An interrupted training is continued.
    """
    names = (EVERYBODY, *settings.subjects)
    stages = {name: setup.stage(name) for name in names}
    errors: dict[tuple[str, str], float] = {}
    before = 0.0
    for left_out, stage in stages.items():
        batches = setup.motion().training(settings.frames, settings.sequences, setup.seed, without=left_out)
        network = lifters.build_lifter(settings, TensorBatch.of(batches(0)), setup.seed)
        trained = lifters.train(network, batches, settings, stage, f"without {left_out} ")
        before += trained.earlier_seconds
        for name in [left_out] if left_out else settings.subjects:
            batches_of = setup.motion().of_subject(name, "gt", settings.frames)
            error = math.inf if trained.diverged else measure(network, islice(batches_of, settings.evaluated)).mpjpe
            errors[left_out, name] = error
    for stage in stages.values():
        stage.state.unlink(missing_ok=True)
    results: dict[str, float] = {}
    for name in settings.subjects:
        known, unknown = errors[EVERYBODY, name], errors[name, name]
        results |= {f"{name}: trained with": known, f"{name}: trained without": unknown}
        results[f"{name}: costs"] = unknown - known
    steps = settings.steps * len(stages)
    return Outcome(results, settings.steps, steps * settings.sequences, before)
