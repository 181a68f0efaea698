"""Study of the effective memory of a stream: the error as a function of the frames since the stream started."""

from dataclasses import dataclass, field

import torch

from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.model import LifterNetwork
from pose.lifting.predict import checkpoint_path
from pose.training.batches import TensorBatch
from pose.training.laboratory.studies import lifters
from pose.training.laboratory.studies.shipped import concatenate_batches, sequences
from pose.training.laboratory.trial import Outcome, Setup
from pose.utils.json_values import Json

CONTEXTS = (1, 3, 9, 27, 81, 243)  # frames
TARGETS = (0, 27, 54, 81)  # offsets of the evaluated frames, counted from the end of the longest context
CONDITIONS = {"gt": "exact 2D", "detector": "detector's 2D"}
MAX_ERROR_RATIO = 1.01  # maximum ratio to the best error


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings(lifters.LifterSettings):
    """Settings for one condition of a `memory` experiment."""

    # keys of the `LifterConfig` of a streaming lifter to train; empty if `lifter` is given
    model: dict[str, Json] = field(default_factory=dict)
    lifter: str = ""  # name of a shipped lifter, or path of a checkpoint, to measure without training
    share: int = 16  # number of sequences to use out of every 16 of the validation subjects; 16 uses all

    def __post_init__(self) -> None:
        if bool(self.model) == bool(self.lifter):
            raise ValueError("model, lifter: exactly one of them is required")
        if self.model and not self.model.get("streaming"):
            raise ValueError("model: must be a streaming model (streaming: true)")
        if self.model:
            lifters.LifterSettings.__post_init__(self)


def run(settings: MemorySettings, setup: Setup) -> Outcome:
    """Measure MPJPE, mm, of single frames of validation subjects, N frames after the stream started.

    Keys are `exact 2D, N frames`, `detector's 2D, N frames`, and `..., effective frames`, from `effective_context`.
    """
    network, before = _network(settings, setup)
    longest = max(CONTEXTS) + max(TARGETS)
    results: dict[str, float] = {}
    for condition, title in CONDITIONS.items():
        setup.clock.check()
        batch = concatenate_batches(sequences(setup, condition, longest, settings.share))
        errors = {frames: error_after(network, batch, frames) for frames in CONTEXTS}
        results |= {f"{title}, {frames} frame{'s' if frames > 1 else ''}": error for frames, error in errors.items()}
        results[f"{title}, effective frames"] = effective_context(errors)
    steps = settings.steps if settings.model else 0
    return Outcome(results, steps, steps * settings.sequences, before)


def _network(settings: MemorySettings, setup: Setup) -> tuple[LifterNetwork, float]:
    if settings.lifter:
        return load_checkpoint(checkpoint_path(settings.lifter)), 0.0
    batches = setup.motion().training(settings.frames, settings.sequences, setup.seed)
    network = lifters.build_lifter(settings, TensorBatch.of(batches(0)), setup.seed)
    return network, lifters.train(network, batches, settings, setup).earlier_seconds


def error_after(network: LifterNetwork, batch: TensorBatch, frames: int) -> float:
    """Return the mean MPJPE in mm of the last frame of streams of `frames` frames, cut from 324-frame sequences."""
    length, errors = batch.valid.shape[1], []
    for target in TARGETS:
        last = max(CONTEXTS) + target
        some = slice(last - frames, last)
        seen = TensorBatch(*(part[:, some] if part.ndim > 1 and part.shape[1] == length else part for part in batch))
        with torch.inference_mode():
            joints = network(seen.observe(), seen.times).joints[:, -1]
        errors.append((joints - batch.joints[:, last - 1]).norm(dim=-1).mean())
    return 1000 * torch.stack(errors).mean().item()


def effective_context(errors: dict[int, float]) -> int:
    """Return the shortest context, in frames, whose error is at most 1 % above the smallest."""
    return min(frames for frames, error in errors.items() if error <= MAX_ERROR_RATIO * min(errors.values()))
