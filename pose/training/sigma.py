"""Calibration of a lifter's sigma on held-out subjects.

A network underestimates its error for input that is worse than its training data, and overestimates it for better
input. The log sigma of joint j is therefore replaced by slope log sigma + offset_j. The offsets place 68 % of each
joint's errors inside one sigma. The slope is the one with which both easy and hard input come closest to that fraction.
"""

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

from pose.lifting.features import TYPICAL_SIGMA
from pose.lifting.model import LifterNetwork
from pose.structures.sequences import LiftBatch
from pose.training.evaluation.metrics import position_errors
from pose.training.measure import SIGMA_COVERAGE, lift_batch

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
