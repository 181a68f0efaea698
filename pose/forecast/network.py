"""Common parts of the forecasters' networks: outputs, calibration, encoder, and interpolation of steps.

Axes: B person, K age of the past, S step of the future, Q requested time, D feature, C the 51 coordinates of a
displacement (`pose.forecast.format`).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pose.attention import Context, build_attentions, rotary_phases
from pose.forecast.config import ForecasterConfig
from pose.forecast.format import (
    AGES,
    FEATURES,
    FUTURE_STEPS,
    HORIZONS,
    PATHS,
    POINTS,
    SPREAD_SCALE,
    SPREADS,
    STEP,
)
from pose.lifter.blocks import Block, PreciseLinear

_AT_REST = 0.03  # minimum speed in units of VELOCITY_SCALE, like all speeds of a past
_NEAR, _DRIFT = 0.01, 0.15  # typical errors in m and m/s; sigma is predicted relative to them


class Displacements(NamedTuple):
    """Predicted displacements.

    Attributes:
        places: (B, Q, 51) m, displacements since the last frame.
        log_sigma: (B, Q, 17), logarithm of m; joints first, the pelvis' displacement last, as in `places`.
    """

    places: Tensor
    log_sigma: Tensor


class ForecasterNetwork(nn.Module):
    """Base of networks that predict the displacements of people from their past.

    Subclasses implement `predict`. Autoregressive ones predict all steps of `STEP`, and implement `forced` for teacher
    forcing.
    """

    rolls_out = False

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.config = config
        self.calibration: Tensor
        self.register_buffer("calibration", uncalibrated())

    def forward(self, past: Tensor, ahead: Tensor) -> tuple[Tensor, Tensor]:
        """Return displacements (B, Q, 51) m and sigma (B, Q, 17) m, with the pelvis displacement first in sigma.

        Times beyond the last of HORIZONS are clamped to it.
        """
        ahead = ahead.clamp(0.0, HORIZONS[-1])
        ways = self.at(past, ahead)
        exact, lifted = self.calibration
        numbers = between_horizons(exact + share_lifted(past)[:, None, None] * (lifted - exact), ahead)
        slope, weight, offset = numbers.split([1, 1, POINTS], dim=-1)
        sigma = (slope * ways.log_sigma + weight * log_speed(past)[:, None, None] + offset).exp()
        return ways.places, torch.cat([sigma[..., -1:], sigma[..., :-1]], dim=-1)

    def at(self, past: Tensor, ahead: Tensor) -> Displacements:
        """Return the uncalibrated prediction at `ahead` (B, Q) s, up to the last of HORIZONS."""
        if self.rolls_out:
            return between_steps(self.predict(past), ahead)
        return self.predict(past, ahead)

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Displacements:
        """Predict at `ahead` (B, Q) s; autoregressive networks predict all steps."""
        raise NotImplementedError

    def forced(self, past: Tensor, truth: Tensor, keep: float, generator: torch.Generator) -> Displacements:
        """Predict all steps (B, S, 51) with scheduled sampling.

        Each step depends on the previous steps, which are true ones with probability `keep` and otherwise the network's
        own.
        """
        raise NotImplementedError


def uncalibrated() -> Tensor:
    """Return the initial calibration (2, len(HORIZONS), 2 + 17), for exact and for lifted pasts.

    Each horizon has a slope of log sigma, a weight of `log_speed`, and an offset per point.
    `pose.training.forecast_sigma` sets these values after training.
    """
    numbers = torch.zeros(2, len(HORIZONS), 2 + POINTS)
    numbers[..., 0] = 1
    return numbers


def share_lifted(past: Tensor) -> Tensor:
    """Estimate from sigma how much pasts (B, K, F) look like lifted ones; (B,), from 0 to 1.

    0 if sigma is at most 1 mm, as for exact poses; 1 if its geometric mean is at least 10 mm, as always for a lifter.
    """
    return (past[..., 2 * PATHS : 2 * PATHS + SPREADS].mean(dim=(1, 2)) / (SPREAD_SCALE * math.log(10))).clamp(0.0, 1.0)


def log_speed(past: Tensor) -> Tensor:
    """Return the logarithm (B,) of the mean speed of the joints in pasts (B, K, F), at least that of `_AT_REST`."""
    speed = past[:, 1:, PATHS : PATHS + 3 * SPREADS].square().mean(dim=(1, 2)).sqrt()
    return (speed + _AT_REST).log()


class Encoder(nn.Module):
    """Encodes the past: one token per age, mixed by blocks of a lifter."""

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        blocks = config.encoder
        self.head_dim = blocks.dim // blocks.heads
        self.embed: nn.Linear = PreciseLinear(FEATURES, blocks.dim)
        attentions = build_attentions("softmax", blocks.depth, blocks.dim, blocks.heads, {})
        self.blocks = nn.ModuleList(Block(blocks, attention) for attention in attentions)
        self.norm = nn.LayerNorm(blocks.dim) if blocks.norm == "pre" else nn.Identity()

    def forward(self, past: Tensor) -> tuple[Tensor, Context]:
        """Encode (B, K, F) as (B, K, D); also returns the context."""
        context = context_at(torch.as_tensor(AGES, device=past.device)[None], self.head_dim)
        x = self.embed(past)
        for block in self.blocks:
            x = block(x, context)
        return self.norm(x), context


def context_at(times: Tensor, head_dim: int) -> Context:
    """Return a context with the phases of times (B, T) or (1, T) s; one row serves all people."""
    return Context(*rotary_phases(times, head_dim))


class Head(nn.Module):
    """Output layer: tokens (B, Q, D) to coordinates and log sigma; initialised close to zero velocity."""

    def __init__(self, dim: int, norm: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim) if norm == "pre" else nn.Identity()
        self.linear: nn.Linear = PreciseLinear(dim, PATHS + POINTS)
        nn.init.normal_(self.linear.weight, std=0.01 / dim**0.5)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, ahead: Tensor) -> tuple[Tensor, Tensor]:
        """Apply the layer.

        Args:
            x: (B, Q, D).
            ahead: (B or 1, Q) s.
        """
        places, log_sigma = self.linear(self.norm(x)).float().split([PATHS, POINTS], dim=-1)
        return places, log_sigma.clamp(-5, 5) + (_NEAR + _DRIFT * ahead).log()[..., None].to(places.dtype)


def step_times(device: torch.device) -> Tensor:
    """Return the times of the steps, (1, S) s."""
    return STEP * torch.arange(1, FUTURE_STEPS + 1, device=device, dtype=torch.float32)[None]


def between_steps(steps: Displacements, ahead: Tensor) -> Displacements:
    """Interpolate steps (B, S, .) at STEP, 2 STEP, ... to `ahead` (B, Q) s; the value at 0 is 0."""
    reached = ahead / STEP
    position = (reached - 1).clamp(min=0.0)
    index = torch.arange(FUTURE_STEPS, device=ahead.device)
    weights = (1 - (position[..., None] - index).abs()).clamp(min=0).to(steps.places.dtype)
    places = weights @ steps.places * reached.clamp(max=1.0)[..., None].to(weights.dtype)
    return Displacements(places, weights @ steps.log_sigma)


def between_horizons(values: Tensor, ahead: Tensor) -> Tensor:
    """Interpolate values (B, len(HORIZONS), .) linearly to `ahead` (B, Q) s, constant beyond the ends."""
    knots = torch.tensor(HORIZONS, device=ahead.device, dtype=ahead.dtype)
    share = ((ahead[..., None] - knots[:-1]) / (knots[1:] - knots[:-1])).clamp(0.0, 1.0)
    return values[:, :1] + share @ values.diff(dim=1)
