"""A forecaster's network from its configuration, and as a file: safetensors, no pickle."""

from collections.abc import Callable
from pathlib import Path

from pose.forecast.blended import Blended
from pose.forecast.config import ForecasterConfig
from pose.forecast.decoder import Autoregressive, OneShot
from pose.forecast.format import FORMAT
from pose.forecast.network import ForecasterNetwork
from pose.forecast.rival_networks import Recurrent, ResidualMLP
from pose.networks.checkpoint import Kind

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


_FORECASTER = Kind("forecaster", FORMAT, ForecasterConfig.from_dict, build_network)


def save_forecaster(network: ForecasterNetwork, path: Path) -> None:
    """Write weights and config; the file appears under its name only when it is whole."""
    _FORECASTER.save(network, network.config, path)


def load_network(path: Path) -> ForecasterNetwork:
    """The network in evaluation mode. Raises PoseError for a file that is not a whole forecaster."""
    return _FORECASTER.load(path)
