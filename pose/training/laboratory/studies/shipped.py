"""Studies of a trained lifter: attention maps, and errors in gaps, by group of people and by context."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch

from pose.errors import PoseError
from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.model import LifterNetwork
from pose.lifting.names import DEFAULT_LIFTER
from pose.lifting.predict import checkpoint_path
from pose.structures.sequences import LiftBatch
from pose.structures.types import F64
from pose.training.batches import TensorBatch
from pose.training.evaluation import metrics
from pose.training.laboratory.attention_maps import attention_maps, head_metrics, next_layer_distances
from pose.training.laboratory.statistics import mean_and_half_width
from pose.training.laboratory.trial import Outcome, Setup
from pose.training.measure import lift_batch

SEQUENCE_FRAMES = 81  # frames of the longest sequences from which the shipped lifters learned
MAP_COLUMNS = {
    "seen": "frames seen (2^entropy)",
    "reach": "reach, s",
    "near": "within 0.15 s, %",
    "rank": "rank (90 %)",
    "apart": "to the next block (0 to 1)",
    "apart_frames": "mean map to the next block's",
}
GAP_COLUMNS = {"mpjpe": "MPJPE where hidden, mm", "rest": "elsewhere, mm"}
LIMBS = {"right wrist": (16,), "right arm": (14, 15, 16), "both arms": tuple(range(11, 17)), "right leg": (1, 2, 3),
         "both legs": tuple(range(1, 7)), "everything": tuple(range(17))}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSettings:
    """Settings for one condition of a `maps` experiment."""

    block: int  # number of the block, counted from 1. Results are means over the heads of the block and the sequences.
    lifter: str = DEFAULT_LIFTER  # name of a shipped lifter, or path of a checkpoint
    frames: int = SEQUENCE_FRAMES  # number of frames of a sequence, at 30 frames/s
    share: int = 1  # number of sequences to use out of every 16 of the validation subjects; 16 uses all

    def __post_init__(self) -> None:
        if self.block < 1 or self.frames < 2:
            raise ValueError(f"block must be at least 1 and frames at least 2, got {self.block} and {self.frames}")


def maps(settings: MapSettings, setup: Setup) -> Outcome:
    """Return statistics of one block's maps for validation subjects, with exact 2D at 30 frames/s of `frames` frames.

    `seen`, `reach`, `rank` are means of `HeadMetrics`, `near` too, in per cent. `apart`: mean distance of a head to the
    nearest of the next block. `apart_frames`: distance of the mean maps of the two blocks.
    """
    network = _network(settings.lifter)
    if settings.block > len(network.blocks):
        raise PoseError(f"block: {settings.lifter} has {len(network.blocks)}, got {settings.block}")
    batch = concatenate_batches(sequences(setup, "gt", settings.frames, settings.share))
    every = attention_maps(network, batch.observe(), batch.times)
    at = settings.block - 1
    heads = head_metrics(every[at : at + 1], batch.times)
    results = {name: getattr(heads, name).mean().item() for name in ("seen", "reach", "rank")}
    results["near"] = 100 * heads.near.mean().item()
    if at + 1 < len(every):
        pair = every[at : at + 2]
        results["apart"] = next_layer_distances(pair)[0].amin(dim=1).mean().item()
        results["apart_frames"] = next_layer_distances(pair.mean(dim=2, keepdim=True)).item()
    return Outcome(results)


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSettings:
    """Settings for one condition of a `gaps` experiment."""

    hidden: str  # joints that are masked, a key of `LIMBS`, for example "right arm"
    seconds: float  # duration of the gap in s. The gap is in the middle of each sequence.
    # `none` sets the scores in the gap to 0. `linear` interpolates the keypoints between the frames before and after
    # the gap, and keeps their scores.
    fill: str = "none"
    lifter: str = DEFAULT_LIFTER  # name of a shipped lifter, or path of a checkpoint
    frames: int = SEQUENCE_FRAMES  # number of frames of a sequence, at 30 frames/s
    share: int = 4  # number of sequences to use out of every 16 of the validation subjects; 16 uses all

    def __post_init__(self) -> None:
        if self.hidden not in LIMBS:
            raise ValueError(f"hidden: {self.hidden!r} is not one of {', '.join(LIMBS)}")
        if self.fill not in ("none", "linear"):
            raise ValueError(f"fill: expected none or linear, got {self.fill!r}")
        if not 0 <= self.seconds * 30 <= self.frames - 2:
            raise ValueError(f"seconds: must be 0 to {(self.frames - 2) / 30:.1f} for {self.frames} frames")


def gaps(settings: GapSettings, setup: Setup) -> Outcome:
    """Measure MPJPE in the frames of a gap on exact 2D: `mpjpe` of the masked joints, `rest` of the others, mm."""
    network, count = _network(settings.lifter), round(settings.seconds * 30)
    first = (settings.frames - count) // 2
    frames = slice(first, first + max(count, 1))  # without a gap, the middle frame
    joints = list(LIMBS[settings.hidden])
    others = [joint for joint in range(1, 17) if joint not in joints]
    inside, outside, done = [], [], 0
    for batch in sequences(setup, "gt", settings.frames, settings.share):
        setup.clock.check()
        scores, keypoints = batch.scores.copy(), batch.keypoints.copy()
        if count and settings.fill == "none":
            scores[:, frames, joints] = 0
        elif count:
            share = np.linspace(0, 1, count + 2, dtype=np.float32)[1:-1, None, None]
            before, after = keypoints[:, first - 1, None][:, :, joints], keypoints[:, frames.stop, None][:, :, joints]
            keypoints[:, frames, joints] = before + share * (after - before)
        lifted = lift_batch(network, replace(batch, scores=scores, keypoints=keypoints))
        errors = metrics.position_errors(lifted.joints.numpy(), batch.joints)[:, frames]
        inside.append(errors[:, :, [joint for joint in joints if joint]].mean(axis=(1, 2)))
        if others:
            outside.append(errors[:, :, others].mean(axis=(1, 2)))
        done += len(batch.valid)
    parts = {"mpjpe": np.concatenate(inside)} | ({"rest": np.concatenate(outside)} if outside else {})
    return _means(parts, done)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Settings for one condition of a `groups` experiment."""

    by: str  # property by which sequences are grouped: `subject`, `exercise`, `size` or `speed`
    condition: str = "gt"  # kind of 2D input: `gt` (exact) or `detector`
    lifter: str = DEFAULT_LIFTER  # name of a shipped lifter, or path of a checkpoint
    frames: int = SEQUENCE_FRAMES  # maximum length of a sequence, frames
    batches: int = 2  # number of batches per group

    def __post_init__(self) -> None:
        if self.by not in ("subject", "exercise", "size", "speed"):
            raise ValueError(f"by: {self.by!r} is not one of subject, exercise, size, speed")
        if self.condition not in ("gt", "detector"):
            raise ValueError(f"condition: expected gt or detector, got {self.condition!r}")


def groups(settings: GroupSettings, setup: Setup) -> Outcome:
    """Measure the MPJPE in mm for each group of sequences of the validation subjects; results are named by group."""
    network = _network(settings.lifter)
    means, half_widths, examples = {}, {}, 0
    for group in setup.motion().groups(settings.by, settings.condition, settings.frames):
        setup.clock.check()
        errors = []
        for batch in islice(group.batches, settings.batches):
            lifted = lift_batch(network, batch)
            of_batch = metrics.position_errors(lifted.joints.numpy(), batch.joints)
            errors += [of_one[valid] for of_one, valid in zip(of_batch, batch.valid, strict=True) if valid.any()]
        examples += len(errors)
        means[group.group] = float(np.concatenate(errors).mean())
        half_widths[group.group] = mean_and_half_width([float(one.mean()) for one in errors])[1]
    return Outcome(means, examples=examples, half_widths=half_widths)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """Settings for one condition of a `context` experiment."""

    context: int  # number of consecutive frames that the lifter sees, with the evaluated frame in the middle
    lifter: str = DEFAULT_LIFTER  # name of a shipped lifter, or path of a checkpoint
    share: int = 4  # number of sequences to use out of every 16 of the validation subjects; 16 uses all

    def __post_init__(self) -> None:
        if self.context < 1 or self.context % 2 == 0:
            raise ValueError(
                f"context: must be an odd number of frames, with the target frame in the middle, got {self.context}"
            )


CONTEXT_COLUMNS = {"gt": "exact 2D: MPJPE, mm", "detector": "detector's 2D: MPJPE, mm"}


def context(settings: ContextSettings, setup: Setup) -> Outcome:
    """Measure the error of the middle frame of 81-frame sequences, of which the lifter sees only `context` frames.

    Returns:
        `gt`, `detector`: MPJPE on exact and on detected 2D of the validation subjects, mm.
    """
    network = _network(settings.lifter)
    middle, half = SEQUENCE_FRAMES // 2, settings.context // 2
    frames = slice(middle - half, middle + half + 1)
    errors, count = {}, 0
    for condition in CONTEXT_COLUMNS:
        setup.clock.check()
        batch = concatenate_batches(sequences(setup, condition, SEQUENCE_FRAMES, settings.share))
        seen = TensorBatch(
            *(part[:, frames] if part.ndim > 1 and part.shape[1] == SEQUENCE_FRAMES else part for part in batch)
        )
        with torch.inference_mode():
            joints = network(seen.observe(), seen.times).joints[:, half]
        count += len(batch.valid)
        errors[condition] = 1000 * (joints - batch.joints[:, middle]).norm(dim=-1).mean(dim=-1).double().numpy()
    return _means(errors, count)


def _means(errors: Mapping[str, F64], examples: int) -> Outcome:
    """Return the means of errors (N,) of N sequences, with the half widths of their intervals."""
    means = {name: mean_and_half_width(values.tolist()) for name, values in errors.items()}
    return Outcome(
        {name: mean for name, (mean, _) in means.items()},
        examples=examples,
        half_widths={name: half for name, (_, half) in means.items()},
    )


def _network(lifter: str) -> LifterNetwork:
    return load_checkpoint(checkpoint_path(lifter))


def sequences(setup: Setup, condition: str, frames: int, sixteenths: int) -> Iterator[LiftBatch]:
    """Yield the first `sixteenths` of every 16 sequences of the validation subjects, cut to `frames` frames.

    Shorter sequences are left out. The 2D, `condition`, is "gt" (exact) or "detector".
    """
    # Clips are cut into equal pieces. Pieces of up to twice the length stay long enough.
    for batch in setup.motion().evaluation("validation", condition, 2 * frames):
        if (
            batch.valid.shape[1] >= frames
            and (rows := np.flatnonzero(batch.valid[:, :frames].all(axis=1))[:sixteenths]).size
        ):
            parts = {name: getattr(batch, name)[rows] for name in LiftBatch.__slots__}
            yield LiftBatch(**{name: part[:, :frames] if name in TIME_FIELDS else part for name, part in parts.items()})


TIME_FIELDS = frozenset({"keypoints", "scores", "times", "valid", "joints", "root"})  # (B, T, ...)


def concatenate_batches(batches: Iterable[LiftBatch]) -> TensorBatch:
    """Concatenate batches along the batch axis."""
    return TensorBatch(*(torch.cat(parts) for parts in zip(*map(TensorBatch.of, batches), strict=True)))
