"""Calibrate a forecaster's sigma on people whom it has not been trained on.

What is off is not the same after a lifter and after exact poses, early and late, for who stands and who runs. So for
each of the two kinds of past log sigma becomes slope log sigma + weight log speed + an offset of each point, weight and
offset each horizon's own: the offsets put 68 % of a point's errors inside one sigma, and of all slopes and weights
those are taken with which that quantile of log errors is met best (quantile regression, Koenker and Bassett, 1978).
"""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from pose.forecast.batch import ForecastBatch
from pose.forecast.format import HORIZONS
from pose.forecast.network import ForecasterNetwork, log_speed, share_lifted
from pose.training.forecaster import ForecastTensors
from pose.training.measure import SIGMA_SHARE

_SLOPES = np.arange(0.4, 2.01, 0.2).tolist()
_WEIGHTS = np.arange(0, 1.21, 0.2).tolist()
Numbers = NDArray[np.floating]


class Said(NamedTuple):
    """Of N moments. error, sigma: (N, H, 17) logarithms, of m. speed: (N,) `log_speed`. lifted: (N,) `share_lifted`."""

    error: Numbers
    sigma: Numbers
    speed: Numbers
    lifted: Numbers

    def rows(self, chosen: NDArray[np.integer]) -> Self:
        """Select rows."""
        return type(self)(*(values[chosen] for values in self))


@torch.inference_mode()
def calibrate_forecaster(network: ForecasterNetwork, conditions: Iterable[Iterable[ForecastBatch]]) -> None:
    """Set the network's `calibration` from batches of each condition (people as recorded, at other speeds, ...), asked
    at HORIZONS. Of a kind of past of which there is none, it is that of the other kind."""
    said = [_said(network, batches) for batches in conditions]
    kinds = [[one.rows(np.flatnonzero((one.lifted > 0.5) == lifted)) for one in said] for lifted in (False, True)]
    kinds = [[one for one in kind if len(one.error)] for kind in kinds]
    fitted = [_fit(_alike_many(kind)) if kind else None for kind in kinds]
    for row, own in enumerate(fitted):
        found = own if own is not None else fitted[1 - row]
        assert found is not None
        network.calibration[row] = torch.from_numpy(found)


def _said(network: ForecasterNetwork, batches: Iterable[ForecastBatch]) -> Said:
    parts = []
    for batch in batches:
        assert np.allclose(batch.ahead, HORIZONS)
        past, ahead, truth, _ = ForecastTensors.of(batch)
        said = network.at(past, ahead)
        error = (said.places - truth).unflatten(-1, (-1, 3)).norm(dim=-1).clamp(min=1e-9).log()
        parts.append(Said(*(one.numpy() for one in (error, said.log_sigma, log_speed(past), share_lifted(past)))))
    return Said(*map(np.concatenate, zip(*parts, strict=True)))


def _alike_many(conditions: list[Said]) -> Said:
    """As many moments of each condition, spread over it: none counts more for having more to show."""
    least = min(len(one.error) for one in conditions)
    chosen = [one.rows(np.linspace(0, len(one.error) - 1, least).round().astype(int)) for one in conditions]
    return Said(*map(np.concatenate, zip(*chosen, strict=True)))


def _fit(said: Said) -> Numbers:
    """(H, 2 + 17): slope, weight and offsets at each horizon. The slope is the same at all, since sigma would not grow
    from one horizon to the next where it changes."""
    horizons = range(len(HORIZONS))
    tried = {
        (h, slope, weight): _offsets(said.error[:, h], slope * said.sigma[:, h] + weight * said.speed[:, None])
        for h, slope, weight in product(horizons, _SLOPES, _WEIGHTS)
    }
    best = {(h, slope): min(_WEIGHTS, key=lambda w: tried[h, slope, w][0]) for h, slope in product(horizons, _SLOPES)}
    slope = min(_SLOPES, key=lambda s: sum(tried[h, s, best[h, s]][0] for h in horizons))
    return np.stack([[slope, best[h, slope], *tried[h, slope, best[h, slope]][1]] for h in horizons])


def _offsets(error: Numbers, sigma: Numbers) -> tuple[float, Numbers]:
    """Of (N, 17) logarithms: how badly the quantile is met, and the (17,) offsets with which it is met best."""
    offsets = np.quantile(error - sigma, SIGMA_SHARE, axis=0)
    above = error - sigma - offsets
    return float(np.maximum(SIGMA_SHARE * above, (SIGMA_SHARE - 1) * above).mean()), offsets
