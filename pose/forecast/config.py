"""What a forecaster is made of: its configuration, checked, without torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

from pose.lifter.config import LifterConfig
from pose.system.json_values import Json, like

KINDS = ("one-shot", "autoregressive", "gru", "gru-attention", "mlp", "blended")


@dataclass(frozen=True, kw_only=True)
class ForecasterConfig:
    """What the network is made of.

    kind: one-shot (encoder, and a decoder that answers every asked moment by itself), autoregressive (encoder, and a
    decoder that rolls out step by step), gru, gru-attention (recurrent rivals, with Bahdanau's attention), mlp (the
    residual rival), or blended (a one-shot decoder that says for every point how far to trust itself, and an mlp of
    `mlp_depth` blocks and width `mlp_dim` beside it). dim: width. depth, decoder_depth: blocks of encoder and decoder;
    of mlp depth alone, of the recurrent ones neither. heads, expansion, norm, init: as of a lifter.
    """

    kind: str = "one-shot"
    dim: int = 96
    depth: int = 2
    decoder_depth: int = 2
    heads: int = 4
    expansion: int = 2
    norm: str = "pre"
    init: str = "xavier"
    mlp_dim: int = 128
    mlp_depth: int = 48

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind: {self.kind!r} is not one of {', '.join(KINDS)}")
        for blocks in (self.encoder, self.decoder):
            if blocks.dim % (2 * blocks.heads):
                raise ValueError(f"dim: must be an even multiple of heads, got {blocks.dim} and {blocks.heads} heads")

    @property
    def mlp(self) -> "ForecasterConfig":
        """Of what stands beside a blended decoder."""
        return ForecasterConfig(kind="mlp", dim=self.mlp_dim, depth=self.mlp_depth)

    @property
    def encoder(self) -> LifterConfig:
        """The encoder's blocks, as those of a lifter."""
        return self._blocks(self.depth)

    @property
    def decoder(self) -> LifterConfig:
        """The decoder's blocks."""
        return self._blocks(self.decoder_depth)

    def _blocks(self, depth: int) -> LifterConfig:
        return LifterConfig(
            dim=self.dim, depth=depth, heads=self.heads, expansion=self.expansion, norm=self.norm, init=self.init
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """What `to_dict` gave, from anywhere. Raises ValueError or TypeError for anything else."""
        checked = like(values, cls().to_dict())
        return cls(**checked)

    def to_dict(self) -> dict[str, Json]:
        """Plain values for a checkpoint."""
        return asdict(self)
