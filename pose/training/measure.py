"""Metrics of a lifter on batches with known 3D, and the calibration of its sigma.

A network underestimates its error for input that is worse than its training data, and overestimates it for better
input. The log sigma of joint j is therefore replaced by slope log sigma + offset_j. The offsets place 68 % of each
joint's errors inside one sigma. The slope is the one with which both easy and hard input come closest to that fraction.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pose.lifting.blending import Blend
from pose.lifting.features import TYPICAL_SIGMA, Lifted, observe
from pose.lifting.model import LifterNetwork
from pose.lifting.predict import join_outputs, mirror_mean
from pose.structures.sequences import LiftBatch
from pose.structures.types import F32
from pose.training.batches import TensorBatch
from pose.training.evaluation import metrics
from pose.training.evaluation.metrics import AngleErrors, position_errors

# Expected fraction of errors inside one sigma, as for a normal distribution
SIGMA_COVERAGE = 0.6827


@dataclass(frozen=True, slots=True)
class LiftMetrics:
    """Errors over all valid frames, means except for the root. Joints are relative to the root."""

    mpjpe: float  # mean per-joint position error, mm
    p_mpjpe: float  # MPJPE after Procrustes alignment, mm
    velocity: float  # velocity error, mm/frame
    acceleration: float  # acceleration error, mm/frame^2
    inside: float  # fraction of joint errors (without the pelvis) inside one sigma
    root: float  # median error of the pelvis's position in the camera frame, mm
    root_share: float  # the same error divided by the true distance from the camera: its median, %

    def __str__(self) -> str:
        return (
            f"MPJPE {self.mpjpe:.1f} / P-MPJPE {self.p_mpjpe:.1f} mm, acceleration {self.acceleration:.2f} mm/frame^2, "
            f"{100 * self.inside:.0f} % inside one sigma, root {self.root:.0f} mm ({self.root_share:.1f} %)"
        )


def lift_batch(network: LifterNetwork, batch: LiftBatch, lookahead: int = 0) -> Lifted:
    """Lift a batch like `pose.lifting.predict.Lifter`; return poses (B, T) on the CPU, meaningless where invalid.

    An offline network processes windows and their mirror images; outputs are averaged and blended. A streaming one
    processes the whole sequence, followed by `lookahead` empty frames.
    """
    if network.config.streaming:
        return _lift_streaming(network, batch, lookahead)
    divisions = [network.config.windows.at_rate_of(times) for times in batch.times]
    lengths = [int(row.nonzero()[0].max(initial=0)) + 1 for row in batch.valid]
    rows_of: dict[tuple[int, int], list[int]] = {}
    for row, length in enumerate(lengths):
        for span in divisions[row].spans(length):
            rows_of.setdefault(span, []).append(row)
    mirrored = TensorBatch.of(batch).mirrored()
    mirrored_keypoints, mirrored_scores = mirrored.keypoints.numpy(), mirrored.scores.numpy()
    blends = [Blend(windows, length) for windows, length in zip(divisions, lengths, strict=True)]
    for (start, stop), rows in rows_of.items():
        frames = slice(start, stop)
        times = batch.times[rows, frames]
        plain, mirrored_output = (
            join_outputs(_run(network, batch, rows, keypoints[rows, frames], scores[rows, frames], times))
            for keypoints, scores in ((batch.keypoints, batch.scores), (mirrored_keypoints, mirrored_scores))
        )
        for row, output in zip(rows, mirror_mean(plain, mirrored_output), strict=True):
            blends[row].add(start, output)
    joined = torch.ones(*batch.valid.shape, 17 * 4 + 3)
    for row, (blend, length) in enumerate(zip(blends, lengths, strict=True)):
        joined[row, :length] = torch.from_numpy(blend.take(length))
    joints, root, sigma = joined.split([51, 3, 17], dim=-1)
    return Lifted(joints.unflatten(-1, (17, 3)), root, sigma)


def _lift_streaming(network: LifterNetwork, batch: LiftBatch, lookahead: int) -> Lifted:
    keypoints = np.pad(batch.keypoints, ((0, 0), (0, lookahead), (0, 0), (0, 0)))
    scores = np.pad(np.where(batch.valid[..., None], batch.scores, 0), ((0, 0), (0, lookahead), (0, 0)))
    step = batch.times[:, -1:] - batch.times[:, -2:-1]
    times = np.concatenate([batch.times, batch.times[:, -1:] + step * np.arange(1, lookahead + 1)], axis=1)
    return _run(network, batch, list(range(len(times))), keypoints, scores, times, lookahead)


def _run(
    network: LifterNetwork,
    batch: LiftBatch,
    rows: list[int],
    keypoints: F32,
    scores: F32,
    times: NDArray[np.float64],
    lookahead: int = 0,
) -> Lifted:
    """Run one forward pass for the sequences `rows` of a batch, with the given 2D and times."""
    device = next(network.parameters(), torch.empty(0)).device
    tensors = [torch.from_numpy(array).to(device) for array in (keypoints, scores, times)]
    camera = [array[rows] for array in (batch.intrinsics, batch.derived, batch.intrinsics_known)]
    flags = [torch.from_numpy(array).to(device) for array in camera]
    with torch.inference_mode():
        lifted = network(observe(*tensors, *flags), tensors[2], lookahead)
        return Lifted(lifted.joints.cpu(), lifted.root.cpu(), lifted.sigma.cpu())


def measure(
    network: LifterNetwork, batches: Iterable[LiftBatch], lookahead: int = 0, angles: AngleErrors | None = None
) -> LiftMetrics:
    """Return the metrics of a network. All valid frames have equal weight."""
    position, aligned, velocity, acceleration, inside = ([] for _ in range(5))
    root, distance = [], []
    for batch in batches:
        lifted = lift_batch(network, batch, lookahead)
        joints, valid = lifted.joints.numpy(), batch.valid
        if angles is not None:
            angles.add(joints[valid], batch.joints[valid])
        errors = metrics.position_errors(joints, batch.joints)
        position.append(errors[valid])
        aligned.append(metrics.aligned_errors(joints[valid], batch.joints[valid]))
        velocity.append(metrics.velocity_errors(joints, batch.joints)[metrics.consecutive(valid, 2)])
        acceleration.append(metrics.acceleration_errors(joints, batch.joints)[metrics.consecutive(valid, 3)])
        inside.append((errors < lifted.sigma.numpy())[valid][:, 1:])
        root.append(np.linalg.norm(lifted.root.numpy() - batch.root, axis=-1)[valid] * 1000)
        distance.append(np.linalg.norm(batch.root, axis=-1)[valid] * 1000)
    off, away = np.concatenate(root), np.concatenate(distance)
    means = [float(np.concatenate(part).mean()) for part in (position, aligned, velocity, acceleration, inside)]
    means += [float(np.median(off)), float(100 * np.median(off / away))]
    return LiftMetrics(*means)


# Beyond 2 the fractions of the shipped lifters improve further, but the likelihood of the errors decreases.
SLOPES = sorted(np.arange(0.5, 2.01, 0.1).round(1).tolist(), key=lambda slope: abs(slope - 1))
Pairs = tuple[
    NDArray[np.floating], NDArray[np.floating]
]  # (N, 16) logarithms of errors and of sigma, both divided by TYPICAL_SIGMA


def calibrate(network: LifterNetwork, conditions: Iterable[Iterable[LiftBatch]]) -> None:
    """Set the network's `calibration` on held-out data, with equal weight for each condition."""
    network.calibration[0], network.calibration[1] = 1, 0
    pairs = _balanced([_log_pairs(network, batches) for batches in conditions])
    # Slopes can be equally good, for example with one condition; take the one nearest to 1.
    slope = min(SLOPES, key=lambda slope: round(_largest_deviation(pairs, slope), 3))
    network.calibration[0] = slope
    network.calibration[1] = torch.from_numpy(_offsets(pairs, slope)).to(network.calibration)


def _balanced(pairs: list[Pairs]) -> list[Pairs]:
    """Sample the same number of frames of each condition at even intervals, so that conditions have equal weight."""
    least = min(len(error) for error, _ in pairs)
    rows = [np.linspace(0, len(error) - 1, least).round().astype(int) for error, _ in pairs]
    return [(error[chosen], sigma[chosen]) for (error, sigma), chosen in zip(pairs, rows, strict=True)]


def _log_pairs(network: LifterNetwork, batches: Iterable[LiftBatch]) -> Pairs:
    errors, sigmas = [], []
    for batch in batches:
        lifted = lift_batch(network, batch)
        errors.append(position_errors(lifted.joints.numpy(), batch.joints)[batch.valid][:, 1:])
        sigmas.append(lifted.sigma.numpy()[batch.valid][:, 1:])
    error, sigma = np.concatenate(errors), np.concatenate(sigmas)
    return np.log(np.maximum(error, 1e-6) / TYPICAL_SIGMA), np.log(sigma / TYPICAL_SIGMA)


def _offsets(pairs: list[Pairs], slope: float) -> NDArray[np.floating]:
    """Return the offsets (16,) that place the expected fraction of each joint's errors inside one sigma."""
    result: NDArray[np.floating] = np.quantile(
        np.concatenate([error - slope * sigma for error, sigma in pairs]), SIGMA_COVERAGE, axis=0
    )
    return result


def _largest_deviation(pairs: list[Pairs], slope: float) -> float:
    """Return the largest deviation of a condition from the expected fraction of errors inside one sigma."""
    offsets = _offsets(pairs, slope)
    return max(abs(float((error < slope * sigma + offsets).mean()) - SIGMA_COVERAGE) for error, sigma in pairs)
