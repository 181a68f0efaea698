"""Published lifters as baselines: a residual network on single frames, and convolutions over time.

Both have the features, the output and the training of the lifter.
"""

import torch
from torch import Tensor, nn

from pose.lifting.attention import Cache, Context
from pose.lifting.blocks import FeedForward, Residual
from pose.lifting.config import LifterConfig

DROPOUT = 0.25  # of VideoPose3D


class FrameBlock(nn.Module):
    """Two linear layers on each frame alone, with a residual connection (Martinez et al., 2017)."""

    cache_fields: tuple[str, ...] = ()

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        self.ffn, self.residual = FeedForward(config.dim, 1), Residual(config)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        output: Tensor = self.residual(x, self.ffn)
        return output

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        return ()

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        """Do nothing, because these blocks draw no random numbers."""

    def step(self, x: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """Process one new frame (B, 1, D) as `forward` would."""
        return self(x, context), cache


class ConvolutionBlock(FrameBlock):
    """Dilated convolution of 3 frames and one of 1 frame, with a residual connection (Pavllo et al., 2019).

    Four blocks with dilations of 1, 3, 9 and 27 frames see 81 frames. The first and the last frame are repeated at the
    ends, so that the output has as many frames as the input.
    """

    def __init__(self, config: LifterConfig, dilation: int) -> None:
        nn.Module.__init__(self)
        self.dilation = dilation
        self.layers = nn.ModuleList(
            nn.Sequential(layer, nn.BatchNorm1d(config.dim), nn.ReLU(), nn.Dropout(DROPOUT))
            for layer in (
                nn.Conv1d(config.dim, config.dim, 3, dilation=dilation, bias=False),
                nn.Conv1d(config.dim, config.dim, 1, bias=False),
            )
        )

    def forward(self, x: Tensor, context: Context) -> Tensor:
        padded = nn.functional.pad(x.transpose(1, 2), (self.dilation, self.dilation), mode="replicate")
        for layer in self.layers:
            padded = layer(padded)
        return x + padded.transpose(1, 2)


def frame_mlp_blocks(config: LifterConfig) -> list[FrameBlock]:
    """Return the blocks on single frames, first block first."""
    return [FrameBlock(config) for _ in range(config.depth)]


def convolution_blocks(config: LifterConfig) -> list[ConvolutionBlock]:
    """Return the blocks of convolutions, first block first; each has three times the dilation of the one before."""
    return [ConvolutionBlock(config, 3**number) for number in range(config.depth)]
