"""Export of a sensor network to ONNX; the file gets its name only if its outputs agree with those of the network."""

import json
from pathlib import Path

import numpy as np
import torch

from pose.errors import PoseError
from pose.lifting.backends import OnnxGraph
from pose.lifting.exchange import OPSET, TOLERANCE, quiet
from pose.lifting.sensor.format import FEATURES, FORMAT, INPUT_NAMES, OUTPUT_NAMES
from pose.lifting.sensor.network import SensorNetwork
from pose.utils.whole_file import whole_file


def export_sensor(network: SensorNetwork, path: Path, checkpoint_sha256: str = "") -> float:
    """Write an ONNX file with dynamic people and frames; return its largest difference from the network, m.

    Raises:
        PoseError: If the package onnxscript is missing, or the outputs differ.
    """
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise PoseError('ONNX export needs more packages: pip install "pose-run[export]"') from error
    network = network.eval().cpu()
    axes = {0: torch.export.Dim("people", min=1, max=4096), 1: torch.export.Dim("time", min=2, max=4096)}
    with whole_file(path) as hidden:
        with quiet():
            program = torch.onnx.export(
                network, _example(2, 20), dynamo=True, verbose=False, input_names=list(INPUT_NAMES),
                output_names=list(OUTPUT_NAMES), dynamic_shapes=(axes, axes), opset_version=OPSET,
            )  # fmt: skip
        assert program is not None
        for node in program.model.graph.all_nodes():
            node.metadata_props.clear()  # remove stack traces, which contain local paths
        program.model.metadata_props.update(
            format=FORMAT, config=json.dumps(network.config.to_dict()), checkpoint_sha256=checkpoint_sha256
        )
        program.save(str(hidden), external_data=False)
        difference = max(_difference(network, OnnxGraph(hidden), *sizes) for sizes in ((1, 9), (3, 50)))
        if not difference <= TOLERANCE:
            raise PoseError(f"{path}: not written, its outputs differ from the network's by {difference:.1e} m")
    return difference


def _example(people: int, frames: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(people)
    features = torch.randn(people, frames, FEATURES, generator=generator)
    return features, (torch.arange(frames, dtype=torch.float64) / 30).repeat(people, 1)


def _difference(network: SensorNetwork, graph: OnnxGraph, people: int, frames: int) -> float:
    given = _example(people, frames)
    with torch.inference_mode():
        expected = network(*given)
    found = graph.run({name: tensor.numpy() for name, tensor in zip(INPUT_NAMES, given, strict=True)})
    pairs = zip(OUTPUT_NAMES, expected, strict=True)
    return max(float(np.abs(np.asarray(found[name]) - tensor.numpy()).max()) for name, tensor in pairs)
