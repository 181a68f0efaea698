"""Leave one subject out: what a lifter loses on somebody whom it was not trained on."""

import math
from dataclasses import dataclass, field
from itertools import islice

from pose.laboratory.studies import lifters
from pose.laboratory.trial import Outcome, Setup
from pose.training.batches import TensorBatch
from pose.training.measure import measure

EVERYBODY = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutSettings(lifters.LifterSettings):
    """subjects: of the training set, each left out in turn. As many steps on as many sequences either way."""

    subjects: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        lifters.LifterSettings.__post_init__(self)
        if not self.subjects:
            raise ValueError("subjects: empty")
        if self.model.get("model") == lifters.RIDGE:
            raise ValueError("model: must be a network")


def run(settings: LeftOutSettings, setup: Setup) -> Outcome:
    """The error on each subject, exact 2D, of a lifter trained on everybody and of one trained without this subject,
    from the same weights; what is interrupted goes on with the training it was at."""
    names = (EVERYBODY, *settings.subjects)
    stages = {name: setup.stage(name) for name in names}
    errors: dict[tuple[str, str], float] = {}
    before = 0.0
    for left_out, stage in stages.items():
        batches = setup.motion().training(settings.frames, settings.sequences, setup.seed, without=left_out)
        network = lifters.built(settings, TensorBatch.of(batches(0)), setup.seed)
        trained = lifters.train(network, batches, settings, stage, f"without {left_out} ")
        before += trained.before
        for name in [left_out] if left_out else settings.subjects:
            batches_of = setup.motion().of_subject(name, "gt", settings.frames)
            figures = math.inf if trained.diverged else measure(network, islice(batches_of, settings.evaluated)).mpjpe
            errors[left_out, name] = figures
    for stage in stages.values():
        stage.state.unlink(missing_ok=True)
    results: dict[str, float] = {}
    for name in settings.subjects:
        known, unknown = errors[EVERYBODY, name], errors[name, name]
        results |= {f"{name}: trained with": known, f"{name}: trained without": unknown}
        results[f"{name}: costs"] = unknown - known
    steps = settings.steps * len(stages)
    return Outcome(results, settings.steps, steps * settings.sequences, before)
