"""Common parts of the forecasters' networks: outputs, calibration, encoder, and interpolation of steps.

Axes: B person, K age of the past, S step of the future, Q requested time, D feature, C the 51 coordinates of a
displacement (`pose.lifting.forecast.config`).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pose.lifting.attention import Context, build_attentions, rotary_phases
from pose.lifting.blocks import Block, PreciseLinear
from pose.lifting.forecast.config import (
    AGES,
    COORDINATES,
    FEATURES,
    FUTURE_STEPS,
    HORIZONS,
    POINTS,
    SIGMA_FEATURES,
    SIGMA_SCALE,
    STEP,
    ForecasterConfig,
)

_SPEED_OFFSET = 0.03  # 0.15 m/s in the unit of the velocity features; added to speeds before the logarithm
_INITIAL_ERROR_M, _ERROR_GROWTH_M_S = 0.01, 0.15  # typical errors; sigma is predicted relative to them


class Displacements(NamedTuple):
    """Predicted displacements."""

    # (B, Q, 51) m, displacements since the last frame along the person's axes: x, y, z of 16 joints relative to the
    # pelvis, then of the pelvis.
    displacement: Tensor
    log_sigma: Tensor  # (B, Q, 17) logarithm of sigma in m, of the 16 joints, then of the pelvis


class ForecasterNetwork(nn.Module):
    """Base class of networks that predict the displacements of people from their past.

    Subclasses implement `predict`. Those with `predicts_steps` predict all S steps of the future, which are `STEP`
    seconds apart, and also implement `scheduled_sampling` for training.
    """

    predicts_steps = False  # whether the network predicts all steps instead of arbitrary times

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.config = config  # architecture of the network
        self.calibration: Tensor  # calibration of sigma, see `uncalibrated`
        self.register_buffer("calibration", uncalibrated())

    def forward(self, past: Tensor, ahead: Tensor) -> tuple[Tensor, Tensor]:
        """Return displacements (B, Q, 51) m and calibrated sigma (B, Q, 17) m for inputs (B, K, F) and times (B, Q) s.

        In sigma the pelvis comes first, in the displacements last. Times beyond the last of `HORIZONS` (1 s) are
        clamped.
        """
        ahead = ahead.clamp(0.0, HORIZONS[-1])
        predicted = self.at(past, ahead)
        exact, lifted = self.calibration
        coefficients = interpolate_horizons(exact + lifted_weight(past)[:, None, None] * (lifted - exact), ahead)
        slope, weight, offset = coefficients.split([1, 1, POINTS], dim=-1)
        sigma = (slope * predicted.log_sigma + weight * log_speed(past)[:, None, None] + offset).exp()
        return predicted.displacement, torch.cat([sigma[..., -1:], sigma[..., :-1]], dim=-1)

    def at(self, past: Tensor, ahead: Tensor) -> Displacements:
        """Predict from network inputs `past` at `ahead` (B, Q) s, at most 1 s, without calibration of sigma."""
        if self.predicts_steps:
            return interpolate_steps(self.predict(past), ahead)
        return self.predict(past, ahead)

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Displacements:
        """Predict at `ahead` (B, Q) s from `past` (B, K, F), or all S steps of networks with `predicts_steps`."""
        raise NotImplementedError

    def scheduled_sampling(
        self, past: Tensor, truth: Tensor, truth_probability: float, generator: torch.Generator
    ) -> Displacements:
        """Predict all steps, each from the true step (B, S, 51) m with a probability, else from the predicted one."""
        raise NotImplementedError


def uncalibrated() -> Tensor:
    """Return a calibration (2, len(HORIZONS), 2 + 17) that does not change sigma."""
    # The first axis is the kind of past: exact or lifted. Each horizon has a slope of log sigma, a weight of
    # `log_speed`, and an offset per point. `pose.training.forecaster` determines these values after training.
    coefficients = torch.zeros(2, len(HORIZONS), 2 + POINTS)
    coefficients[..., 0] = 1
    return coefficients


def lifted_weight(past: Tensor) -> Tensor:
    """Estimate whether network inputs `past` were lifted from 2D, as weights (B,) from 0 (exact) to 1 (lifted).

    The weight is 0 if sigma is at most 1 mm, as for exact poses. It is 1 if the geometric mean of sigma is at least
    10 mm, as it is for every lifter.
    """
    return (
        past[..., 2 * COORDINATES : 2 * COORDINATES + SIGMA_FEATURES].mean(dim=(1, 2)) / (SIGMA_SCALE * math.log(10))
    ).clamp(0.0, 1.0)


def log_speed(past: Tensor) -> Tensor:
    """Return log(v + 0.03), (B,), for the root-mean-square joint velocity v in network inputs `past`, unit 5 m/s."""
    speed = past[:, 1:, COORDINATES : COORDINATES + 3 * SIGMA_FEATURES].square().mean(dim=(1, 2)).sqrt()
    return (speed + _SPEED_OFFSET).log()


class Encoder(nn.Module):
    """Encoder of the past, with one token per age and the blocks of a lifter."""

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        blocks = config.encoder
        self.head_dim = blocks.dim // blocks.heads
        self.embed: nn.Linear = PreciseLinear(FEATURES, blocks.dim)
        attentions = build_attentions("softmax", blocks.depth, blocks.dim, blocks.heads, {})
        self.blocks = nn.ModuleList(Block(blocks, attention) for attention in attentions)
        self.norm = nn.LayerNorm(blocks.dim) if blocks.norm == "pre" else nn.Identity()

    def forward(self, past: Tensor) -> tuple[Tensor, Context]:
        """Encode F features at K ages (B, K, F) as tokens (B, K, D); also returns the context with the ages."""
        context = context_at(torch.as_tensor(AGES, device=past.device)[None], self.head_dim)
        x = self.embed(past)
        for block in self.blocks:
            x = block(x, context)
        return self.norm(x), context


def context_at(times: Tensor, head_dim: int) -> Context:
    """Return a context with the rotary phases of times (B, T) s, or (1, T) s for all people."""
    return Context(*rotary_phases(times, head_dim))


class Head(nn.Module):
    """Output layer, initialised so that predicted coordinates are close to zero."""

    def __init__(self, dim: int, norm: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim) if norm == "pre" else nn.Identity()
        self.linear: nn.Linear = PreciseLinear(dim, COORDINATES + POINTS)
        nn.init.normal_(self.linear.weight, std=0.01 / dim**0.5)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, ahead: Tensor) -> tuple[Tensor, Tensor]:
        """Return coordinates (B, Q, 51) and log sigma (B, Q, 17) of tokens (B, Q, D) at `ahead` s."""
        displacement, log_sigma = self.linear(self.norm(x)).float().split([COORDINATES, POINTS], dim=-1)
        return displacement, log_sigma.clamp(-5, 5) + (_INITIAL_ERROR_M + _ERROR_GROWTH_M_S * ahead).log()[
            ..., None
        ].to(displacement.dtype)


def step_times(device: torch.device) -> Tensor:
    """Return the times (1, S) of the S predicted steps after the last frame, s."""
    return STEP * torch.arange(1, FUTURE_STEPS + 1, device=device, dtype=torch.float32)[None]


def interpolate_steps(steps: Displacements, ahead: Tensor) -> Displacements:
    """Interpolate predictions at all S steps linearly to `ahead` (B, Q) s. The displacement at 0 s is 0."""
    reached = ahead / STEP
    position = (reached - 1).clamp(min=0.0)
    index = torch.arange(FUTURE_STEPS, device=ahead.device)
    weights = (1 - (position[..., None] - index).abs()).clamp(min=0).to(steps.displacement.dtype)
    displacement = weights @ steps.displacement * reached.clamp(max=1.0)[..., None].to(weights.dtype)
    return Displacements(displacement, weights @ steps.log_sigma)


def interpolate_horizons(values: Tensor, ahead: Tensor) -> Tensor:
    """Interpolate values (B, len(HORIZONS), N) from `HORIZONS` linearly to `ahead` (B, Q) s; constant outside."""
    knots = torch.tensor(HORIZONS, device=ahead.device, dtype=ahead.dtype)
    fraction = ((ahead[..., None] - knots[:-1]) / (knots[1:] - knots[:-1])).clamp(0.0, 1.0)
    return values[:, :1] + fraction @ values.diff(dim=1)
