"""Transformer forecasters: an encoder of the past, and a one-shot or autoregressive decoder."""

from typing import cast

import torch
from torch import Tensor, nn

from pose.lifting.attention import Cache, Context
from pose.lifting.attention.softmax import CrossAttention, SoftmaxAttention
from pose.lifting.blocks import FeedForward, PreciseLinear
from pose.lifting.config import LifterConfig
from pose.lifting.forecast.config import (
    COORDINATES,
    FUTURE_STEPS,
    PAST_STEPS,
    POINTS,
    STEP,
    VELOCITY_SCALE,
    ForecasterConfig,
)
from pose.lifting.forecast.network import Displacements, Encoder, ForecasterNetwork, Head, context_at, step_times
from pose.lifting.initialization import initialize, initialize_decoder

Remembered = tuple[Tensor, Tensor]
_TIME_HZ = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # Hz, frequencies of the time encoding of a query


class DecoderBlock(nn.Module):
    """Self-attention, attention to the past and a feed-forward layer, each with its own residual connection.

    LayerNorm is before or after each layer, or absent. Only a `causal` block has self-attention, to `memory` steps
    including the query's own; otherwise every token is processed independently.
    """

    def __init__(self, config: LifterConfig, causal: bool, memory: int = FUTURE_STEPS) -> None:
        super().__init__()
        dim, heads = config.dim, config.heads
        self.attention = SoftmaxAttention(dim, heads, causal=True, memory=memory) if causal else None
        self.cross = CrossAttention(dim, heads)
        self.ffn = FeedForward(dim, config.expansion)
        self.post = config.norm == "post"
        normalized = config.norm != "none"
        self.norm1 = nn.LayerNorm(dim) if normalized and causal else nn.Identity()
        self.norm2, self.norm3 = (nn.LayerNorm(dim) if normalized else nn.Identity() for _ in range(2))

    def forward(self, x: Tensor, context: Context, remembered: Remembered) -> Tensor:
        """Process tokens (B, T, D), of which t depends on tokens up to t, with `remembered` keys and values."""
        if self.attention is not None:
            x = self.norm1(x + self.attention(x, context)) if self.post else x + self.attention(self.norm1(x), context)
        return self._attend(x, context, remembered)

    def init_cache(self, like: Tensor) -> Cache:
        """Return an empty cache for B people, with the device and type of `like` (B, ...)."""
        assert self.attention is not None
        return self.attention.init_cache(len(like), device=like.device, dtype=like.dtype)

    def step(self, x: Tensor, context: Context, cache: Cache, remembered: Remembered) -> tuple[Tensor, Cache]:
        """Process the next token (B, 1, D) of every sequence as `forward` does; return its output and the new cache."""
        assert self.attention is not None
        y, cache = self.attention.step(x if self.post else self.norm1(x), context, cache)
        x = self.norm1(x + y) if self.post else x + y
        return self._attend(x, context, remembered), cache

    def _attend(self, x: Tensor, context: Context, remembered: Remembered) -> Tensor:
        if self.post:
            x = self.norm2(x + self.cross(x, context, remembered))
            result: Tensor = self.norm3(x + self.ffn(x))
        else:
            x = x + self.cross(self.norm2(x), context, remembered)
            result = x + self.ffn(self.norm3(x))
        return result


class Decoder(nn.Module):
    """Stack of decoder blocks for tokens of the future, which attend to the encoded past."""

    def __init__(self, config: LifterConfig, inputs: int, *, causal: bool) -> None:
        super().__init__()
        self.head_dim = config.dim // config.heads
        self.embed: nn.Linear = PreciseLinear(inputs, config.dim)
        self.blocks = nn.ModuleList(DecoderBlock(config, causal) for _ in range(config.depth))

    def remember(self, memory: Tensor, context: Context) -> list[Remembered]:
        """Compute keys and values of the past (B, K, D) for every block."""
        return [block.cross.remember(memory, context) for block in self.stack]

    @property
    def stack(self) -> list[DecoderBlock]:
        """The blocks, first to last."""
        return [cast(DecoderBlock, block) for block in self.blocks]

    def forward(self, x: Tensor, times: Tensor, remembered: list[Remembered]) -> Tensor:
        """Decode tokens (B, T, D) at `times` (s after the last frame)."""
        context = context_at(times, self.head_dim)
        for block, known in zip(self.blocks, remembered, strict=True):
            x = block(x, context, known)
        return x


class OneShot(ForecasterNetwork):
    """Transformer forecaster in which every requested time is an independent query."""

    # The displacement of a point is a predicted correction plus a weighted sum of its past displacements, with weights
    # that the network predicts for every query and point. Constant velocity and a repeated step are special cases.

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__(config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config.decoder, 1 + 2 * len(_TIME_HZ), causal=False)
        self.head = Head(config.dim, config.norm)
        self.filter: nn.Linear = PreciseLinear(config.dim, POINTS * (PAST_STEPS - 1))
        initialize(self.encoder, config.init)
        initialize_decoder(self.decoder, config.init)
        nn.init.zeros_(self.filter.weight)
        nn.init.zeros_(self.filter.bias)

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Displacements:
        assert ahead is not None
        return self.read(self.tokens(past, ahead), past, ahead)

    def tokens(self, past: Tensor, ahead: Tensor) -> Tensor:
        """Return decoded tokens (B, Q, D) for `ahead` (B, Q) s after the last frame, from network inputs `past`."""
        memory, context = self.encoder(past)
        x = self.decoder.embed(_time_features(ahead)) + memory[:, -1:]
        decoded: Tensor = self.decoder(x, ahead, self.decoder.remember(memory, context))
        return decoded

    def read(self, x: Tensor, past: Tensor, ahead: Tensor) -> Displacements:
        """Convert tokens `x` (B, Q, D), which `tokens` returned for `past` and `ahead`, to displacements."""
        correction, log_sigma = self.head(x, ahead)
        weights = self.filter(self.head.norm(x)).float().unflatten(-1, (POINTS, 1, PAST_STEPS - 1))
        past_displacements = (
            (past[:, -1:, :COORDINATES] - past[:, :-1, :COORDINATES]).unflatten(-1, (POINTS, 3)).transpose(1, 2)
        )
        return Displacements(correction + (weights @ past_displacements[:, None]).flatten(-3), log_sigma)


def _time_features(ahead: Tensor) -> Tensor:
    """Encode times (B, Q) s as (B, Q, 13): the seconds, and their sines and cosines at six frequencies."""
    phase = ahead[..., None] * (2 * torch.pi * torch.tensor(_TIME_HZ, device=ahead.device, dtype=ahead.dtype))
    return torch.cat([ahead[..., None], phase.sin(), phase.cos()], dim=-1)


class Autoregressive(ForecasterNetwork):
    """Transformer forecaster that predicts every point's velocity step by step, from the previous pose and velocity."""

    predicts_steps = True

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__(config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config.decoder, 2 * COORDINATES, causal=True)
        self.head = Head(config.dim, config.norm)
        initialize(self.encoder, config.init)
        initialize_decoder(self.decoder, config.init)

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Displacements:
        """Predict the displacements of all `FUTURE_STEPS` steps in turn; `ahead` is ignored."""
        memory, context = self.encoder(past)
        remembered = self.decoder.remember(memory, context)
        times = step_times(past.device)
        caches = [block.init_cache(past) for block in self.decoder.stack]
        displacement, velocity = (
            torch.zeros_like(past[:, -1:, :COORDINATES]),
            past[:, -1:, COORDINATES : 2 * COORDINATES],
        )
        displacements, log_sigmas = [], []
        for s in range(FUTURE_STEPS):
            now = times[:, s : s + 1]
            x, now_context = (
                self.decoder.embed(torch.cat([displacement, velocity], dim=-1)),
                context_at(now, self.decoder.head_dim),
            )
            for b, block in enumerate(self.decoder.stack):
                x, caches[b] = block.step(x, now_context, caches[b], remembered[b])
            moved, log_sigma = self.head(x, now)
            displacement, velocity = displacement + STEP * moved, STEP * VELOCITY_SCALE * moved
            displacements.append(displacement)
            log_sigmas.append(log_sigma)
        return Displacements(torch.cat(displacements, dim=1), torch.cat(log_sigmas, dim=1))

    def scheduled_sampling(
        self, past: Tensor, truth: Tensor, truth_probability: float, generator: torch.Generator
    ) -> Displacements:
        """Predict all steps with scheduled sampling in two passes (Mihaylova & Martins, 2019)."""
        # In the second pass, outputs of the first pass replace some of the true earlier steps. No gradient flows
        # through the replaced steps.
        memory, context = self.encoder(past)
        remembered = self.decoder.remember(memory, context)
        if truth_probability < 1:
            with torch.no_grad():
                predicted = self._teacher_forced(past, truth, remembered).displacement
            use_truth = torch.rand(truth.shape[:2], generator=generator).to(truth.device) < truth_probability
            truth = torch.where(use_truth[..., None], truth, predicted)
        return self._teacher_forced(past, truth, remembered)

    def _teacher_forced(self, past: Tensor, steps: Tensor, remembered: list[Remembered]) -> Displacements:
        """Predict every step from the step before it, given by `steps` (B, S, 51)."""
        times = step_times(past.device)
        before = torch.cat([torch.zeros_like(steps[:, :1]), steps[:, :-1]], dim=1)
        velocity = torch.diff(before, dim=1) * VELOCITY_SCALE
        velocity = torch.cat([past[:, -1:, COORDINATES : 2 * COORDINATES], velocity], dim=1)
        x = self.decoder(self.decoder.embed(torch.cat([before, velocity], dim=-1)), times, remembered)
        moved, log_sigma = self.head(x, times)
        return Displacements(before + STEP * moved, log_sigma)
