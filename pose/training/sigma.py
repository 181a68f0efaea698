"""Calibrate a lifter's sigma on people whom it has not been trained on.

A network underestimates its error where its input is worse than what it has learnt from, and less sure where it is
better. So what the network says is corrected on a logarithmic scale, log sigma_j -> slope log sigma_j + offset_j: the
offsets put 68 % of each joint's errors inside one sigma, and the slope, above one, brings easy input and hard input
both near to that share. Order is kept: of two answers for a joint the one with the smaller sigma keeps it.
"""

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

from pose.evaluation.metrics import position_errors
from pose.lifter.features import TYPICAL_SIGMA
from pose.lifter.model import LifterNetwork
from pose.sequences import LiftBatch
from pose.training.measure import SIGMA_SHARE, lift_batch

# Beyond 2 the shares of the shipped lifters come nearer still, but the likelihood of the errors falls.
SLOPES = sorted(np.arange(0.5, 2.01, 0.1).round(1).tolist(), key=lambda slope: abs(slope - 1))
Pairs = tuple[NDArray[np.floating], NDArray[np.floating]]  # (N, 16) log error and log sigma, over the typical sigma


def calibrate(network: LifterNetwork, conditions: Iterable[Iterable[LiftBatch]]) -> None:
    """Set the network's `calibration` from batches of each condition (clean input, a detector's, ...)."""
    network.calibration[0], network.calibration[1] = 1, 0
    pairs = _alike_long([_log_pairs(network, batches) for batches in conditions])
    # Where several slopes do as well, as with one condition, the one nearest to 1.
    slope = min(SLOPES, key=lambda slope: round(_worst_share(pairs, slope), 3))
    network.calibration[0] = slope
    network.calibration[1] = torch.from_numpy(_offsets(pairs, slope)).to(network.calibration)


def _alike_long(pairs: list[Pairs]) -> list[Pairs]:
    """The same number of frames of each condition, spread over it: none counts more for having more to show."""
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
    """(16,) that put the share of all errors of a joint inside."""
    result: NDArray[np.floating] = np.quantile(
        np.concatenate([error - slope * sigma for error, sigma in pairs]), SIGMA_SHARE, axis=0
    )
    return result


def _worst_share(pairs: list[Pairs], slope: float) -> float:
    """How far from the share the condition is that is farthest from it."""
    offsets = _offsets(pairs, slope)
    return max(abs(float((error < slope * sigma + offsets).mean()) - SIGMA_SHARE) for error, sigma in pairs)
