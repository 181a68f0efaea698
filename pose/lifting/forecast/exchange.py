"""Export of a forecaster's network to ONNX.

The file is renamed to its final name only after its outputs agree with those of the network.
"""

import json
from pathlib import Path

import torch

from pose.errors import PoseError
from pose.lifting.exchange import export_function
from pose.lifting.forecast.folded import folded
from pose.lifting.forecast.format import FEATURES, FORMAT, INPUT_NAMES, OUTPUT_NAMES, PAST_STEPS
from pose.lifting.forecast.network import ForecasterNetwork

EXPORTED = ("one-shot", "mlp", "blended")  # kinds that predict all times in a single pass
OPSET = 23  # the first opset with attention and rotary embedding


def export_forecaster(network: ForecasterNetwork, path: Path, checkpoint_sha256: str = "") -> float:
    """Write an ONNX file with dynamic people and times; return its largest difference from the network, m."""
    if network.config.kind not in EXPORTED:
        supported = ", ".join(EXPORTED)
        raise PoseError(
            f"{path}: only single-pass forecasters can be exported ({supported}), not {network.config.kind}"
        )
    network = network.eval().cpu()
    metadata = {
        "format": FORMAT,
        "config": json.dumps(network.config.to_dict()),
        "checkpoint_sha256": checkpoint_sha256,
    }
    people, moments = torch.export.Dim("people", min=1, max=4096), torch.export.Dim("moments", min=1, max=4096)
    return export_function(
        folded(network), network, path, metadata, [_example(3, 5), _example(1, 1), _example(4, 25)],
        inputs=INPUT_NAMES, outputs=OUTPUT_NAMES, shapes=({0: people}, {0: people, 1: moments}), opset=OPSET,
    )  # fmt: skip


def _example(people: int, moments: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(people)
    past = torch.randn(people, PAST_STEPS, FEATURES, generator=generator)
    return past, torch.rand(people, moments, generator=generator)
