"""Export of a sensor network to ONNX; the file gets its name only if its outputs agree with those of the network."""

import json
from pathlib import Path

import torch

from pose.lifting.exchange import export_function
from pose.lifting.sensor.format import FEATURES, FORMAT, INPUT_NAMES, OUTPUT_NAMES
from pose.lifting.sensor.network import SensorNetwork


def export_sensor(network: SensorNetwork, path: Path, checkpoint_sha256: str = "") -> float:
    """Write an ONNX file with dynamic people and frames; return its largest difference from the network, m.

    Raises:
        PoseError: If the package onnxscript is missing, or the outputs differ.
    """
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
