"""Configuration, sizes and tensor names of a forecaster, without torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from pose.lifting.config import LifterConfig
from pose.utils.json_values import Json, check_config

KINDS = ("one-shot", "autoregressive", "gru", "gru-attention", "mlp", "blended")


@dataclass(frozen=True, kw_only=True)
class ForecasterConfig:
    """Architecture of a forecaster."""

    # `one-shot`: encoder, and a decoder that predicts every requested time independently. `autoregressive`: encoder,
    # and a decoder that predicts in steps of 0.04 s. `gru`, `gru-attention`: recurrent baselines, without and with
    # Bahdanau's attention. `mlp`: residual MLP baseline. `blended`: a one-shot decoder and an MLP, with predicted
    # weights per point.
    kind: str = "one-shot"
    dim: int = 96  # width of the tokens
    depth: int = 2  # number of blocks of the encoder, or of the MLP; unused by recurrent kinds
    decoder_depth: int = 2  # number of blocks of the decoder
    heads: int = 4  # number of attention heads
    expansion: int = 2  # width of the feed-forward layers as a multiple of `dim`
    norm: str = "pre"  # placement of LayerNorm, as in `pose.config.LifterConfig`
    init: str = "xavier"  # initialisation of the weights, as in `pose.config.LifterConfig`
    mlp_dim: int = 128  # width of the MLP of `blended`
    mlp_depth: int = 48  # number of blocks of the MLP of `blended`

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind: {self.kind!r} is not one of {', '.join(KINDS)}")
        for blocks in (self.encoder, self.decoder):
            if blocks.dim % (2 * blocks.heads):
                raise ValueError(f"dim: must be an even multiple of heads, got {blocks.dim} and {blocks.heads} heads")

    @property
    def mlp(self) -> "ForecasterConfig":
        """Configuration of the MLP part of a `blended` forecaster."""
        return ForecasterConfig(kind="mlp", dim=self.mlp_dim, depth=self.mlp_depth)

    @property
    def encoder(self) -> LifterConfig:
        """The encoder's blocks as a lifter configuration."""
        return self._blocks(self.depth)

    @property
    def decoder(self) -> LifterConfig:
        """The decoder's blocks as a lifter configuration."""
        return self._blocks(self.decoder_depth)

    def _blocks(self, depth: int) -> LifterConfig:
        return LifterConfig(
            dim=self.dim, depth=depth, heads=self.heads, expansion=self.expansion, norm=self.norm, init=self.init
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """Build a configuration from untrusted `to_dict` output; ValueError or TypeError if invalid."""
        checked = check_config(values, cls().to_dict())
        return cls(**checked)

    def to_dict(self) -> dict[str, Json]:
        """Return the configuration as JSON values."""
        return asdict(self)


STEP = 0.04  # s between two ages of the past, and between two predicted steps
PAST_STEPS = 25
FUTURE_STEPS = 25
HORIZONS = (0.08, 0.16, 0.32, 0.4, 0.56, 1.0)  # s; sigma is calibrated and errors are reported at these times
AGES = -STEP * np.arange(PAST_STEPS - 1, -1, -1)  # s, the last frame is 0
COORDINATES = 51  # x, y, z in m: 16 joints relative to the pelvis, then the pelvis relative to its last position
POINTS = 17  # number of these points (16 joints and the pelvis); each has a sigma
SIGMA_FEATURES = 16  # number of joints whose log sigma (mm) is a feature
FEATURES = (
    COORDINATES + COORDINATES + SIGMA_FEATURES + 1 + 3
)  # positions, velocities, log sigma, gap, direction from the camera
VELOCITY_SCALE = 0.2 / STEP  # factor from displacements in m per step to velocity features, in 5 m/s
SIGMA_SCALE = 0.3  # factor from log sigma to features
GAP_SCALE = 10.0  # factor from s to features

INPUT_NAMES = ("past", "ahead")
OUTPUT_NAMES = ("ways", "sigma")
FORMAT = "pose-forecaster-1"
