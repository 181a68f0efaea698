"""Export of a forecaster's network to ONNX.

The file is renamed to its final name only after its outputs agree with those of the network.
"""

import json
from pathlib import Path

import numpy as np
import torch

from pose.errors import PoseError
from pose.lifting.backends import OnnxGraph
from pose.lifting.exchange import TOLERANCE, quiet
from pose.lifting.forecast.folded import folded
from pose.lifting.forecast.format import FEATURES, FORMAT, INPUT_NAMES, OUTPUT_NAMES, PAST_STEPS
from pose.lifting.forecast.network import ForecasterNetwork
from pose.utils.whole_file import whole_file

EXPORTED = ("one-shot", "mlp", "blended")  # kinds that predict all times in a single pass
OPSET = 23  # the first opset with attention and rotary embedding


def export_forecaster(network: ForecasterNetwork, path: Path, checkpoint_sha256: str = "") -> float:
    """Write an ONNX file with dynamic people and times; return its largest difference from the network, m."""
    if network.config.kind not in EXPORTED:
        supported = ", ".join(EXPORTED)
        raise PoseError(
            f"{path}: only single-pass forecasters can be exported ({supported}), not {network.config.kind}"
        )
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise PoseError('ONNX export needs more packages: pip install "pose-run[export]"') from error
    network = network.eval().cpu()
    metadata = {
        "format": FORMAT,
        "config": json.dumps(network.config.to_dict()),
        "checkpoint_sha256": checkpoint_sha256,
    }
    people, moments = torch.export.Dim("people", min=1, max=4096), torch.export.Dim("moments", min=1, max=4096)
    with whole_file(path) as hidden:
        with quiet():
            program = torch.onnx.export(
                folded(network),
                _example(3, 5),
                dynamo=True,
                verbose=False,
                input_names=list(INPUT_NAMES),
                output_names=list(OUTPUT_NAMES),
                dynamic_shapes=({0: people}, {0: people, 1: moments}),
                opset_version=OPSET,
            )
        assert program is not None
        for node in program.model.graph.all_nodes():
            node.metadata_props.clear()  # remove stack traces, which contain local paths
        program.model.metadata_props.update(metadata)
        program.save(str(hidden), external_data=False)
        difference = max(_difference(network, OnnxGraph(hidden), *sizes) for sizes in ((1, 1), (4, 25)))
        if not difference <= TOLERANCE:
            raise PoseError(f"{path}: not written, its outputs differ from the network's by {difference:.1e} m")
    return difference


def _example(people: int, moments: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(people)
    past = torch.randn(people, PAST_STEPS, FEATURES, generator=generator)
    return past, torch.rand(people, moments, generator=generator)


def _difference(network: ForecasterNetwork, graph: OnnxGraph, people: int, moments: int) -> float:
    given = _example(people, moments)
    with torch.inference_mode():
        expected = network(*given)
    found = graph.run({name: array.numpy() for name, array in zip(INPUT_NAMES, given, strict=True)})
    pairs = zip(OUTPUT_NAMES, expected, strict=True)
    return max(float(np.abs(np.asarray(found[name], np.float32) - array.numpy()).max()) for name, array in pairs)
