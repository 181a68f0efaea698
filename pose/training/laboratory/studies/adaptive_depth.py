"""Study of adaptive depth: how often a lifter applies its block (steps) for fast, occluded or difficult frames."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from pose.lifting.model import LifterNetwork
from pose.structures.sequences import LiftBatch
from pose.training.batches import TensorBatch
from pose.training.evaluation import metrics
from pose.training.forms.adaptive import AdaptiveBlock
from pose.training.laboratory.studies import lifters
from pose.training.laboratory.trial import Outcome, Setup

GAP_FRAMES = 15  # frames without keypoints in the middle of a sequence: half a second
COLUMNS = {
    "parameters": "parameters",
    "gt": "exact 2D: MPJPE, mm",
    "detector": "detector's 2D: MPJPE, mm",
    "steps": "steps per frame",
    "steps_detector": "of a detector's",
    "steps_slow": "of the slowest quarter",
    "steps_fast": "of the fastest quarter",
    "steps_hidden": "of frames hidden for 0.5 s",
    "steps_seen": "of the same frames seen",
    "to_error": "correlation of steps and error",
    "step_ms": "processor ms a step of training",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveDepthSettings(lifters.LifterSettings):
    """Settings of an `adaptive-depth` condition with a transformer; steps of a fixed depth are not counted."""

    def __post_init__(self) -> None:
        lifters.LifterSettings.__post_init__(self)
        if self.frames < 3 * GAP_FRAMES:
            raise ValueError(
                f"frames: must be at least {3 * GAP_FRAMES}, because {GAP_FRAMES} in the middle are masked"
            )


@dataclass(frozen=True, slots=True)
class FrameMeasurements:
    """Measurements of N valid frames."""

    steps: np.ndarray  # (N,) number of steps
    speeds: np.ndarray  # (N,) mean speed of the joints, m/s
    errors: np.ndarray  # (N,) MPJPE, mm


def run(settings: AdaptiveDepthSettings, setup: Setup) -> Outcome:
    """Train a lifter with adaptive depth: `parameters`, the results of `lifters.metrics` and of `measure_steps`."""
    batches = setup.motion().training(settings.frames, settings.sequences, setup.seed)
    network = lifters.build_lifter(settings, TensorBatch.of(batches(0)), setup.seed)
    trained = lifters.train(network, batches, settings, setup)
    results = {"parameters": lifters.parameter_count(network)} | lifters.metrics(network, trained, settings, setup)
    if network.config.adaptive_depth and not trained.diverged:
        results |= measure_steps(network, settings, setup)
    return Outcome(results, settings.steps, settings.steps * settings.sequences, trained.earlier_seconds)


def measure_steps(network: LifterNetwork, settings: AdaptiveDepthSettings, setup: Setup) -> dict[str, float]:
    """Return mean steps on the validation subjects by condition, and their correlation with the error."""

    def batches(condition: str) -> Iterator[LiftBatch]:
        every = setup.motion().evaluation("validation", condition, settings.frames)
        return islice(every, settings.evaluated)

    seen = measure_frames(network, batches("gt"))
    slow, fast = np.quantile(seen.speeds, [0.25, 0.75])
    hidden, visible = zip(*(steps_in_gap(network, batch) for batch in batches("gt")), strict=True)
    results = {
        "steps": seen.steps.mean(),
        "steps_detector": measure_frames(network, batches("detector")).steps.mean(),
        "steps_slow": seen.steps[seen.speeds <= slow].mean(),
        "steps_fast": seen.steps[seen.speeds >= fast].mean(),
        "steps_hidden": np.concatenate(hidden).mean(),
        "steps_seen": np.concatenate(visible).mean(),
    }
    if np.ptp(seen.steps):  # a constant has no correlation
        results["to_error"] = np.corrcoef(seen.steps, seen.errors)[0, 1]
    return {name: float(value) for name, value in results.items()}


def measure_frames(network: LifterNetwork, batches: Iterator[LiftBatch]) -> FrameMeasurements:
    """Return the number of steps, the speed and the error of each valid frame of the batches."""
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    for batch in batches:
        joints, steps = steps_taken(network, batch)
        places = batch.joints + batch.root[:, :, None]
        moved = np.linalg.norm(np.diff(places, axis=1), axis=-1).mean(axis=-1) / np.diff(batch.times, axis=1)
        speeds = np.pad(moved, ((0, 0), (1, 0)), mode="edge")
        errors = metrics.position_errors(joints.numpy(), batch.joints).mean(axis=-1)
        for part, values in zip(parts, (steps.numpy(), speeds, errors), strict=True):
            part.append(values[batch.valid])
    return FrameMeasurements(*(np.concatenate(part) for part in parts))


def steps_in_gap(network: LifterNetwork, batch: LiftBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps (N,) for the middle 15 frames of longer sequences, without and with their keypoints."""
    first = (batch.valid.shape[1] - GAP_FRAMES) // 2
    frames = slice(first, first + GAP_FRAMES)
    continues = batch.valid[:, : frames.stop + 1].all(axis=1)  # visible after the occlusion
    scores = batch.scores.copy()
    scores[:, frames] = 0
    hidden, visible = (steps_taken(network, each)[1].numpy() for each in (replace(batch, scores=scores), batch))
    return hidden[continues, frames].ravel(), visible[continues, frames].ravel()


def steps_taken(network: LifterNetwork, batch: LiftBatch) -> tuple[Tensor, Tensor]:
    """Compute the joints (B, T, 17, 3) m, relative to the pelvis, and the number of steps (B, T) of each frame."""
    (block,) = (module for module in network.modules() if isinstance(module, AdaptiveBlock))
    taken: list[Tensor] = []
    handle = block.register_forward_hook(lambda module, given, answer: taken.append(block.run(*given)[1]))
    seen = TensorBatch.of(batch)
    try:
        with torch.inference_mode():
            joints = network(seen.observe(), seen.times).joints
    finally:
        handle.remove()
    return joints, taken[0]
