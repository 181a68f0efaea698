"""Calibration of a forecaster's sigma on held-out subjects.

How much a network under- or overestimates its errors depends on the input (lifted or exact), the horizon and the speed
of the person. For each kind of input, log sigma is therefore replaced by slope log sigma + weight log speed + offset,
with a weight per horizon and an offset per horizon and point. The offsets place 68 % of a point's errors inside one
sigma. Slopes and weights minimise the quantile loss of the log errors (quantile regression, Koenker and Bassett, 1978).
"""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from pose.lifting.forecast.batch import ForecastBatch
from pose.lifting.forecast.format import HORIZONS
from pose.lifting.forecast.network import ForecasterNetwork, lifted_weight, log_speed
from pose.training.forecaster import ForecastTensors
from pose.training.measure import SIGMA_COVERAGE

_SLOPES = np.arange(0.4, 2.01, 0.2).tolist()
_WEIGHTS = np.arange(0, 1.21, 0.2).tolist()
Numbers = NDArray[np.floating]


class Predictions(NamedTuple):
    """N predictions at H horizons each."""

    error: Numbers  # (N, H, 17) logarithm of the errors in m, of 16 joints and then of the pelvis
    sigma: Numbers  # (N, H, 17) logarithm of sigma in m, in the same order
    speed: Numbers  # (N,) logarithm of the speed before the prediction, from `log_speed`
    lifted: Numbers  # (N,) similarity of the past to lifted poses, from 0 (exact) to 1 (lifted), from `lifted_weight`

    def rows(self, chosen: NDArray[np.integer]) -> Self:
        """Return the predictions with the indices `chosen`."""
        return type(self)(*(values[chosen] for values in self))


@torch.inference_mode()
def calibrate_forecaster(network: ForecasterNetwork, conditions: Iterable[Iterable[ForecastBatch]]) -> None:
    """Set the network's `calibration` from batches of several conditions (original speed, other speeds, ...).

    If all pasts are exact, or all are lifted, both kinds get the same calibration.

    Args:
        conditions: Batches of each condition. Their times `ahead` must be `pose.lifting.forecast.format.HORIZONS`.
    """
    predictions = [_predictions(network, batches) for batches in conditions]
    kinds = [
        [one.rows(np.flatnonzero((one.lifted > 0.5) == lifted)) for one in predictions] for lifted in (False, True)
    ]
    kinds = [[one for one in kind if len(one.error)] for kind in kinds]
    fitted = [_fit(_balanced(kind)) if kind else None for kind in kinds]
    for row, own in enumerate(fitted):
        found = own if own is not None else fitted[1 - row]
        assert found is not None
        network.calibration[row] = torch.from_numpy(found)


def _predictions(network: ForecasterNetwork, batches: Iterable[ForecastBatch]) -> Predictions:
    parts = []
    for batch in batches:
        assert np.allclose(batch.ahead, HORIZONS)
        past, ahead, truth, _ = ForecastTensors.of(batch)
        found = network.at(past, ahead)
        error = (found.displacement - truth).unflatten(-1, (-1, 3)).norm(dim=-1).clamp(min=1e-9).log()
        values = error, found.log_sigma, log_speed(past), lifted_weight(past)
        parts.append(Predictions(*(value.numpy() for value in values)))
    return Predictions(*map(np.concatenate, zip(*parts, strict=True)))


def _balanced(conditions: list[Predictions]) -> Predictions:
    """Sample the same number of predictions of each condition at even intervals, for equal weights."""
    least = min(len(condition.error) for condition in conditions)
    chosen = [
        condition.rows(np.linspace(0, len(condition.error) - 1, least).round().astype(int)) for condition in conditions
    ]
    return Predictions(*map(np.concatenate, zip(*chosen, strict=True)))


def _fit(predictions: Predictions) -> Numbers:
    """Return slope, weight and 17 offsets (H, 2 + 17) at each horizon."""
    # The slope is common to all horizons; otherwise sigma might not increase from one horizon to the next.
    horizons = range(len(HORIZONS))
    tried = {
        (h, slope, weight): _offsets(
            predictions.error[:, h], slope * predictions.sigma[:, h] + weight * predictions.speed[:, None]
        )
        for h, slope, weight in product(horizons, _SLOPES, _WEIGHTS)
    }
    best = {(h, slope): min(_WEIGHTS, key=lambda w: tried[h, slope, w][0]) for h, slope in product(horizons, _SLOPES)}
    slope = min(_SLOPES, key=lambda s: sum(tried[h, s, best[h, s]][0] for h in horizons))
    return np.stack([[slope, best[h, slope], *tried[h, slope, best[h, slope]][1]] for h in horizons])


def _offsets(error: Numbers, sigma: Numbers) -> tuple[float, Numbers]:
    """Return the smallest quantile loss and the offsets (17,) that achieve it, for logarithms (N, 17)."""
    offsets = np.quantile(error - sigma, SIGMA_COVERAGE, axis=0)
    above = error - sigma - offsets
    return float(np.maximum(SIGMA_COVERAGE * above, (SIGMA_COVERAGE - 1) * above).mean()), offsets
