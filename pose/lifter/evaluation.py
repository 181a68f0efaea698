"""Measure a network on batches with known 3D: the figures that training watches and the model card reports."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pose import metrics
from pose.lifter.features import Lifted, observe
from pose.lifter.model import LifterNetwork
from pose.types import F32, LiftBatch

# The share of errors that one sigma should hold, and the share that is then counted.
SIGMA_SHARE = 0.6827


@dataclass(frozen=True, slots=True)
class Figures:
    """Errors over all valid frames, root-relative: mm, mm/frame for velocity, mm/frame^2 for acceleration.

    inside: share of joint errors (pelvis left out) below their sigma. root: mean distance of the pelvis, mm.
    """

    mpjpe: float
    p_mpjpe: float
    velocity: float
    acceleration: float
    inside: float
    root: float

    def __str__(self) -> str:
        return (
            f"MPJPE {self.mpjpe:.1f} / P-MPJPE {self.p_mpjpe:.1f} mm, acceleration {self.acceleration:.2f} mm/frame^2, "
            f"{100 * self.inside:.0f} % inside one sigma, root {self.root:.0f} mm"
        )


def lift_batch(network: LifterNetwork, batch: LiftBatch, lookahead: int = 0) -> Lifted:
    """Answers for the T frames of a batch; a streaming network sees nothing in the last `lookahead` newest frames."""
    keypoints, scores, times = batch.keypoints, batch.scores, batch.times
    if lookahead:
        keypoints = np.pad(keypoints, ((0, 0), (0, lookahead), (0, 0), (0, 0)))
        scores = np.pad(scores, ((0, 0), (0, lookahead), (0, 0)))
        step = times[:, -1:] - times[:, -2:-1]
        times = np.concatenate([times, times[:, -1:] + step * np.arange(1, lookahead + 1)], axis=1)
    tensors = [torch.from_numpy(array) for array in (keypoints, scores, times)]
    flags = [torch.from_numpy(array) for array in (batch.intrinsics, batch.derived, batch.intrinsics_known)]
    with torch.inference_mode():
        return network(observe(*tensors, *flags), tensors[2], lookahead)


def measure(network: LifterNetwork, batches: Iterable[LiftBatch], lookahead: int = 0) -> Figures:
    """Figures of `network` over `batches`, every valid frame counting alike."""
    position, aligned, velocity, acceleration, inside, root = ([] for _ in range(6))
    for batch in batches:
        lifted = lift_batch(network, batch, lookahead)
        joints, valid = lifted.joints.numpy(), batch.valid
        errors = metrics.position_errors(joints, batch.joints)
        position.append(errors[valid])
        aligned.append(metrics.aligned_errors(joints[valid], batch.joints[valid]))
        velocity.append(metrics.velocity_errors(joints, batch.joints)[metrics.consecutive(valid, 2)])
        acceleration.append(metrics.acceleration_errors(joints, batch.joints)[metrics.consecutive(valid, 3)])
        inside.append((errors < lifted.sigma.numpy() * 1000)[valid][:, 1:])
        root.append(np.linalg.norm(lifted.root.numpy() - batch.root, axis=-1)[valid] * 1000)
    return Figures(
        *(float(np.concatenate(part).mean()) for part in (position, aligned, velocity, acceleration, inside, root))
    )


def calibration_scale(network: LifterNetwork, batches: Iterable[LiftBatch], lookahead: int = 0) -> float:
    """The factor on sigma that puts 68 % of the errors inside one sigma."""
    ratios: list[NDArray[np.floating]] = []
    for batch in batches:
        lifted = lift_batch(network, batch, lookahead)
        errors: F32 = np.linalg.norm(lifted.joints.numpy() - batch.joints, axis=-1)
        ratios.append((errors / lifted.sigma.numpy())[batch.valid][:, 1:].ravel())
    return float(np.quantile(np.concatenate(ratios), SIGMA_SHARE))
