"""Lifter weights at rest."""

from pathlib import Path

import torch

from pose.lifter.config import LifterConfig
from pose.lifter.model import LifterNetwork
from pose.networks.checkpoint import Kind

_LIFTER = Kind("lifter", "pose-lifter-1", LifterConfig.from_dict, LifterNetwork)


def save_checkpoint(network: LifterNetwork, path: Path) -> None:
    """Write weights and config; the file appears under its name only when it is whole."""
    _LIFTER.save(network, network.config, path)


def load_checkpoint(path: Path, device: str = "cpu") -> LifterNetwork:
    """The network in evaluation mode. Raises PoseError for a file that is not a whole lifter."""
    return _LIFTER.load(path).to(torch.device(device))
