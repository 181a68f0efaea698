"""The sensor network: the lifter's transformer from 3D joints to corrections, and its export."""

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from pose.lifting.attention import Context, rotary_phases
from pose.lifting.blocks import PreciseLinear
from pose.lifting.config import LifterConfig
from pose.lifting.exchange import export_function
from pose.lifting.initialization import initialize
from pose.lifting.model import attention_blocks, attention_knows_time
from pose.lifting.sensor.features import FEATURES, FORMAT, INPUT_NAMES, JOINTS, OUTPUT_NAMES, OUTPUTS
from pose.networks.checkpoint import CheckpointKind

TYPICAL_SIGMA_M = 0.03


class SensorNetwork(nn.Module):
    """Network that corrects the joints of people over time, all frames of a window at once."""

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        if config.streaming or config.form != "frames":
            raise ValueError("model: a sensor network is a transformer over frames, which does not stream")
        self.config = config
        self.embed = PreciseLinear(FEATURES, config.dim)
        blocks = attention_blocks(config)
        self.blocks = nn.ModuleList(blocks)
        self.clock = None if attention_knows_time(blocks) else PreciseLinear(config.dim // 2 * 2, config.dim)
        self.norm = nn.LayerNorm(config.dim) if config.norm == "pre" and config.last_norm else nn.Identity()
        self.head = PreciseLinear(config.dim, OUTPUTS)
        self.definition: Tensor  # (51,) m, mean correction of the joints of a Kinect v2, set before training
        self.register_buffer("definition", torch.zeros(3 * JOINTS))
        self.calibration: Tensor  # (2, 17) slope and offset of log sigma, set on held-out people
        self.register_buffer("calibration", torch.tensor([1.0, 0.0])[:, None].repeat(1, JOINTS))
        initialize(self, config.init)
        nn.init.normal_(self.head.weight, std=0.01 / config.dim**0.5)
        nn.init.zeros_(self.head.bias)

    def forward(self, features: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
        """Return corrections (B, T, 51) m and sigma (B, T, 17) m (joint 0: of the path) of `describe`'s inputs."""
        corrections, log_sigma = self.predict(features, times)
        return corrections, (self.calibration[0] * log_sigma + self.calibration[1]).exp() * TYPICAL_SIGMA_M

    def predict(self, features: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
        """Return corrections (B, T, 51) m, and the logarithm of sigma (B, T, 17) in units of 0.03 m, not calibrated."""
        x = self.embed(features)
        if self.clock is not None:
            x = x + self.clock(torch.cat(rotary_phases(times - times[:, :1], self.config.dim), dim=-1))
        context = Context.from_times(times, self.config.dim // self.config.heads)
        for block in self.blocks:
            x = block(x, context)
        corrections, log_sigma = self.head(self.norm(x)).float().split([3 * JOINTS, JOINTS], dim=-1)
        return corrections + features[..., -1:] * self.definition, log_sigma.clamp(-4, 3)


SENSOR = CheckpointKind("sensor network", FORMAT, LifterConfig.from_dict, SensorNetwork)


def export_sensor(network: SensorNetwork, path: Path, checkpoint_sha256: str = "") -> float:
    """Write an ONNX file with dynamic sizes; return its difference in m. PoseError if that is too large."""
    network = network.eval().cpu()
    axes = {0: torch.export.Dim("people", min=1, max=4096), 1: torch.export.Dim("time", min=2, max=4096)}
    metadata = {
        "format": FORMAT,
        "config": json.dumps(network.config.to_dict()),
        "checkpoint_sha256": checkpoint_sha256,
    }
    return export_function(
        network, network, path, metadata, [_example(2, 20), _example(1, 9), _example(3, 50)],
        inputs=INPUT_NAMES, outputs=OUTPUT_NAMES, shapes=(axes, axes),
    )  # fmt: skip


def _example(people: int, frames: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(people)
    features = torch.randn(people, frames, FEATURES, generator=generator)
    return features, (torch.arange(frames, dtype=torch.float64) / 30).repeat(people, 1)
