"""A forecaster's network from its configuration, and as a file: safetensors, no pickle."""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from pose.errors import PoseError
from pose.forecast.blended import Blended
from pose.forecast.config import ForecasterConfig
from pose.forecast.decoder import Autoregressive, OneShot
from pose.forecast.format import FORMAT
from pose.forecast.network import ForecasterNetwork
from pose.forecast.rival_networks import Recurrent, ResidualMLP
from pose.system.whole_file import whole_file

_KINDS: dict[str, Callable[[ForecasterConfig], ForecasterNetwork]] = {
    "one-shot": OneShot,
    "autoregressive": Autoregressive,
    "gru": lambda config: Recurrent(config, attends=False),
    "gru-attention": lambda config: Recurrent(config, attends=True),
    "mlp": ResidualMLP,
    "blended": Blended,
}


def build_network(config: ForecasterConfig) -> ForecasterNetwork:
    """Raises ValueError for parts that do not go together."""
    return _KINDS[config.kind](config)


def save_forecaster(network: ForecasterNetwork, path: Path) -> None:
    """Write weights and config; the file appears under its name only when it is whole."""
    state = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in network.state_dict().items()}
    with whole_file(path) as hidden:
        save_file(state, hidden, metadata={"format": FORMAT, "config": json.dumps(network.config.to_dict())})


def load_network(path: Path) -> ForecasterNetwork:
    """The network in evaluation mode. Raises PoseError for a file that is not a whole forecaster."""
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            config = _config(file.metadata() or {}, path)
            names = list(file.keys())
            _check_form(config, {name: tuple(file.get_slice(name).get_shape()) for name in names}, path)
            state = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise PoseError(f"{path}: not a readable forecaster checkpoint ({error})") from error
    if not all(torch.isfinite(tensor).all() for tensor in state.values()):
        raise PoseError(f"{path}: damaged, some of its weights are no numbers")
    network = build_network(config)
    network.load_state_dict(state)
    return network.eval()


def _config(metadata: dict[str, str], path: Path) -> ForecasterConfig:
    if metadata.get("format") != FORMAT:
        raise PoseError(f"{path}: a safetensors file, but no forecaster that pose-train wrote")
    try:
        return ForecasterConfig.from_dict(json.loads(metadata["config"]))
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise PoseError(f"{path}: a forecaster whose configuration is missing or damaged ({error})") from error


def _check_form(config: ForecasterConfig, shapes: dict[str, tuple[int, ...]], path: Path) -> None:
    """Hold the file to its own configuration before anything of that size takes memory. Raises PoseError."""
    try:
        with torch.device("meta"):
            expected = {name: tuple(tensor.shape) for name, tensor in build_network(config).state_dict().items()}
    except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        raise PoseError(f"{path}: a forecaster whose configuration cannot be ({error})") from error
    if shapes != expected:
        raise PoseError(f"{path}: a forecaster of another form than this program's; train or fetch it again")
