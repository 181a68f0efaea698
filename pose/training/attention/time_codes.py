"""Time encodings, which are added to the inputs of queries and keys or used as rotation angles.

Axes: B batch, T time, D feature.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from pose.lifting.attention.base import Context, rotary_phases

DEFAULT_LENGTH = 243


class RotaryTime(nn.Module):
    """Rotary time (Su et al., 2021): queries and keys are rotated by their seconds. Base of other time encodings."""

    streaming = True
    max_length: int | None = None  # longest sequence in frames; None for any

    def forward(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Context]:
        """Encode the times; return tokens (B, T, D) for queries and keys, and the context whose phases rotate them."""
        return x_BTD, context


class NoTime(RotaryTime):
    """No time encoding: the frames form an unordered set (causal: the set of frames so far)."""

    def forward(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Context]:
        return x_BTD, replace(context, cos=torch.ones_like(context.cos), sin=torch.zeros_like(context.sin))


class SinusoidalTime(NoTime):
    """Sines and cosines of the seconds since the first valid frame, added to the input (Vaswani et al., 2017)."""

    streaming = False

    def forward(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Context]:
        seconds_BT, valid_BT = context.seconds, context.valid
        first_B1 = seconds_BT[:, :1]
        if valid_BT is not None:
            first_B1 = seconds_BT.masked_fill(~valid_BT, torch.inf).amin(dim=1, keepdim=True)
            first_B1 = first_B1.where(valid_BT.any(dim=1, keepdim=True), 0)
        code_BTD = torch.cat(rotary_phases(seconds_BT - first_B1, x_BTD.shape[2], x_BTD.dtype), dim=-1)
        return super().forward(x_BTD + code_BTD, context)


class LearntTime(NoTime):
    """A learned vector per frame number, added to the input (Gehring et al., 2017)."""

    streaming = False

    def __init__(self, dim: int, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.codes = nn.Parameter(torch.empty(max_length, dim))
        nn.init.normal_(self.codes, std=0.3)

    def forward(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Context]:
        return super().forward(x_BTD + self.codes[: x_BTD.shape[1]], context)


TIMES: dict[str, Callable[[int, int], RotaryTime]] = {
    "rotary": lambda dim, max_length: RotaryTime(),
    "sinusoidal": lambda dim, max_length: SinusoidalTime(),
    "learnt": LearntTime,
    "none": lambda dim, max_length: NoTime(),
}
