"""Saving and loading of lifter checkpoints."""

from pathlib import Path

import torch

from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.networks.checkpoint import CheckpointKind

_LIFTER = CheckpointKind("lifter", "pose-lifter-1", LifterConfig.from_dict, LifterNetwork)


def save_checkpoint(network: LifterNetwork, path: Path) -> None:
    """Write weights and configuration atomically: the file is renamed to `path` once it is complete."""
    _LIFTER.save(network, network.config, path)


def load_checkpoint(path: Path, device: str = "cpu") -> LifterNetwork:
    """Load a network to `device`, in evaluation mode; PoseError if the file is not a complete lifter."""
    return _LIFTER.load(path).to(torch.device(device))
