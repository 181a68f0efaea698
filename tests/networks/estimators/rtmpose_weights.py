"""RTMPose networks with reproducible random weights, to compare, time and test where no others are available.

The numbers come from NumPy's generator, parameter by parameter, so they depend on the names and shapes alone. Every
parameter differs from its usual start and activations keep their size, so that no part of the network can be left out
unnoticed.
"""

import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pose.networks.estimators.rtmpose_net import RTMPoseNetwork

# Fan-in scaling keeps the size of activations; the last layers make scores of about 1, as trained ones are.
GAIN = 1.5
SCORE_GAIN = 0.25


def random_parameters(network: RTMPoseNetwork, seed: int = 0) -> dict[str, Tensor]:
    """Values for every parameter and running statistic of `network`, by name."""
    rng = np.random.default_rng(seed)
    return {name: torch.from_numpy(_values(name, tuple(old.shape), rng)) for name, old in network.state_dict().items()}


def _values(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if name.endswith("num_batches_tracked"):
        return np.array(1)
    if len(shape) > 1 and not name.endswith(("gamma", "beta")):
        gain = SCORE_GAIN if ".cls_" in name else GAIN
        return (rng.standard_normal(shape) * gain / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    if name.endswith(("bn.weight", "running_var", ".g", "scale")):
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    return (rng.standard_normal(shape) * 0.2).astype(np.float32)


def random_network(size: str, joints: int, crop: tuple[int, int] = (192, 256), seed: int = 0) -> RTMPoseNetwork:
    """A network with these weights, ready to run. crop: (width, height) px."""
    network = RTMPoseNetwork(size, joints, crop)
    network.load_state_dict(random_parameters(network, seed))
    return network.eval()


def export_onnx(network: RTMPoseNetwork, path: Path, *, batch: int | None = None) -> None:
    """Write `network` with the names and the layout of MMDeploy's exports. batch: None leaves it free."""
    names = ("input", "simcc_x", "simcc_y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the exporter MMDeploy uses, and the faster one
        torch.onnx.export(
            network,
            (torch.zeros(batch or 1, 3, network.crop[1], network.crop[0]),),
            path,
            input_names=names[:1],
            output_names=names[1:],
            dynamic_axes=None if batch else {name: {0: "batch"} for name in names},
            dynamo=False,
        )


def random_crops(count: int, crop: tuple[int, int] = (192, 256), seed: int = 1) -> Tensor:
    """(N, 3, H, W) normalised crops of noise. crop: (width, height) px."""
    noise = np.random.default_rng(seed).standard_normal((count, 3, crop[1], crop[0]))
    return torch.from_numpy(noise.astype(np.float32))
