"""What all forecasters' networks share: their answer, its calibration, the encoder, and how steps become moments.

Axes: B person, K age of the past, S step of the future, Q asked moment, D feature, C the 51 coordinates of a way
(`pose.forecast.format`).
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

_AT_REST = 0.03  # in units of VELOCITY_SCALE, as all speeds of a past
_NEAR, _DRIFT = 0.01, 0.15  # m and m/s: how far off a forecast typically is, which sigma is told relative to


class Ways(NamedTuple):
    """places: (B, Q, 51) m, the way since the last frame. log_sigma: (B, Q, 17), of metres, joints first, the pelvis'
    way last, as in `places`."""

    places: Tensor
    log_sigma: Tensor


class ForecasterNetwork(nn.Module):
    """The past (B, K, F) to where people are `ahead` (B, Q) seconds later.

    Subclasses write `predict`. Those that roll out in steps of `STEP` predict steps, and `forced`, what they say when
    they are told the truth of earlier steps.
    """

    rolls_out = False

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        self.config = config
        self.calibration: Tensor
        self.register_buffer("calibration", uncalibrated())

    def forward(self, past: Tensor, ahead: Tensor) -> tuple[Tensor, Tensor]:
        """Ways (B, Q, 51) m and sigma (B, Q, 17) m, the pelvis' way first. What is asked beyond the last of HORIZONS is
        answered as that one is."""
        ahead = ahead.clamp(0.0, HORIZONS[-1])
        ways = self.at(past, ahead)
        exact, lifted = self.calibration
        numbers = between_horizons(exact + share_lifted(past)[:, None, None] * (lifted - exact), ahead)
        slope, weight, offset = numbers.split([1, 1, POINTS], dim=-1)
        sigma = (slope * ways.log_sigma + weight * log_speed(past)[:, None, None] + offset).exp()
        return ways.places, torch.cat([sigma[..., -1:], sigma[..., :-1]], dim=-1)

    def at(self, past: Tensor, ahead: Tensor) -> Ways:
        """The answer at `ahead` (B, Q) s, up to the last of HORIZONS, not calibrated."""
        if self.rolls_out:
            return between_steps(self.predict(past), ahead)
        return self.predict(past, ahead)

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Ways:
        """At `ahead` (B, Q) s, or, of those that roll out, at all steps."""
        raise NotImplementedError

    def forced(self, past: Tensor, truth: Tensor, keep: float, generator: torch.Generator) -> Ways:
        """All steps (B, S, 51), each from the steps before, which are the truth with probability `keep` and otherwise
        what the network itself said."""
        raise NotImplementedError


def uncalibrated() -> Tensor:
    """(2, len(HORIZONS), 2 + 17), of exact pasts and of a lifter's: the slope of log sigma, the weight of `log_speed`,
    and an offset of each point, which `pose.training.forecast_sigma` sets after training."""
    numbers = torch.zeros(2, len(HORIZONS), 2 + POINTS)
    numbers[..., 0] = 1
    return numbers


def share_lifted(past: Tensor) -> Tensor:
    """(B,) of pasts (B, K, F): 0 where sigma is at most 1 mm, as of poses that are known exactly, 1 where its
    geometric mean is at least 10 mm, as a lifter's always is."""
    return (past[..., 2 * PATHS : 2 * PATHS + SPREADS].mean(dim=(1, 2)) / (SPREAD_SCALE * math.log(10))).clamp(0.0, 1.0)


def log_speed(past: Tensor) -> Tensor:
    """(B,) of pasts (B, K, F): how fast the joints are in the mean; who stands still has no less than `_AT_REST`."""
    speed = past[:, 1:, PATHS : PATHS + 3 * SPREADS].square().mean(dim=(1, 2)).sqrt()
    return (speed + _AT_REST).log()


class Encoder(nn.Module):
    """The past to a memory: one token for each age, mixed by the lifter's blocks."""

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__()
        blocks = config.encoder
        self.head_dim = blocks.dim // blocks.heads
        self.embed: nn.Linear = PreciseLinear(FEATURES, blocks.dim)
        attentions = build_attentions("softmax", blocks.depth, blocks.dim, blocks.heads, {})
        self.blocks = nn.ModuleList(Block(blocks, attention) for attention in attentions)
        self.norm = nn.LayerNorm(blocks.dim) if blocks.norm == "pre" else nn.Identity()

    def forward(self, past: Tensor) -> tuple[Tensor, Context]:
        """(B, K, F) -> (B, K, D), and their times."""
        context = context_at(torch.as_tensor(AGES, device=past.device)[None], self.head_dim)
        x = self.embed(past)
        for block in self.blocks:
            x = block(x, context)
        return self.norm(x), context


def context_at(times: Tensor, head_dim: int) -> Context:
    """Phases of times (B, T) or (1, T) s; one row serves all people."""
    return Context(*rotary_phases(times, head_dim))


class Head(nn.Module):
    """Tokens (B, Q, D) to coordinates and log sigma, small at first, so that training begins at zero velocity."""

    def __init__(self, dim: int, norm: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim) if norm == "pre" else nn.Identity()
        self.linear: nn.Linear = PreciseLinear(dim, PATHS + POINTS)
        nn.init.normal_(self.linear.weight, std=0.01 / dim**0.5)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, ahead: Tensor) -> tuple[Tensor, Tensor]:
        """ahead: (B or 1, Q) s."""
        places, log_sigma = self.linear(self.norm(x)).float().split([PATHS, POINTS], dim=-1)
        return places, log_sigma.clamp(-5, 5) + (_NEAR + _DRIFT * ahead).log()[..., None].to(places.dtype)


def step_times(device: torch.device) -> Tensor:
    """(1, S) s of the steps."""
    return STEP * torch.arange(1, FUTURE_STEPS + 1, device=device, dtype=torch.float32)[None]


def between_steps(steps: Ways, ahead: Tensor) -> Ways:
    """Steps (B, S, .) at STEP, 2 STEP, ... read at `ahead` (B, Q) s; before the first step between nothing and it."""
    reached = ahead / STEP
    position = (reached - 1).clamp(min=0.0)
    index = torch.arange(FUTURE_STEPS, device=ahead.device)
    weights = (1 - (position[..., None] - index).abs()).clamp(min=0).to(steps.places.dtype)
    places = weights @ steps.places * reached.clamp(max=1.0)[..., None].to(weights.dtype)
    return Ways(places, weights @ steps.log_sigma)


def between_horizons(values: Tensor, ahead: Tensor) -> Tensor:
    """Values (B, len(HORIZONS), .) at HORIZONS read at `ahead` (B, Q) s, linear between two; the ends are held."""
    knots = torch.tensor(HORIZONS, device=ahead.device, dtype=ahead.dtype)
    share = ((ahead[..., None] - knots[:-1]) / (knots[1:] - knots[:-1])).clamp(0.0, 1.0)
    return values[:, :1] + share @ values.diff(dim=1)
