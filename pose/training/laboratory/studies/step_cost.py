"""Study of the cost of a stream's newest frame: one step with the cache, or a pass over all frames so far."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from pose.lifting.attention import Context
from pose.lifting.config import LifterConfig
from pose.lifting.format import FEATURES
from pose.lifting.model import LifterNetwork
from pose.training.laboratory.trial import Outcome, Setup
from pose.utils.json_values import Json

COLUMNS = {
    "step": "a step from the cache, ms",
    "anew": "recomputing the past, ms",
    "times": "times as fast",
    "apart": "relative difference of outputs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCostSettings:
    """Settings for one condition of a `step-cost` experiment."""

    model: dict[str, Json]  # keys of the `LifterConfig` of a streaming lifter
    past: int  # number of frames so far, including the newest
    times: int = 20  # number of repetitions in each of five rounds; the fastest round counts

    def __post_init__(self) -> None:
        if self.past < 2 or self.times < 1:
            raise ValueError("past must be at least 2 frames, times at least 1")
        self.stream()

    def stream(self) -> LifterConfig:
        """Build the configuration of the streaming lifter."""
        return LifterConfig.from_dict({**self.model, "streaming": True})


@torch.inference_mode()
def run(settings: StepCostSettings, setup: Setup) -> Outcome:
    """Measure the processor time for one person, with random weights at 30 frames/s.

    Returns:
        `step`, `anew`: processor time of a step and of a pass over all frames, ms. `times`: ratio of the two. `apart`:
            relative difference of their outputs, which should be a rounding error.
    """
    torch.manual_seed(setup.seed)
    network = LifterNetwork(settings.stream()).eval()
    tokens = torch.randn(1, settings.past, 2 * FEATURES + 1)
    times = torch.arange(settings.past, dtype=torch.float64)[None] / 30
    contexts = [Context.from_times(times[:, t : t + 1], network.head_dim) for t in range(settings.past)]
    caches = network.init_caches(1)
    for t in range(settings.past - 1):
        _, caches = network.step(tokens[:, t : t + 1], contexts[t], caches)

    def step() -> torch.Tensor:
        return network.step(tokens[:, -1:], contexts[-1], caches)[0][:, 0]

    def anew() -> torch.Tensor:
        x, context = network.embed(tokens), Context.from_times(times, network.head_dim)
        for block in network.blocks:
            x = block(x, context)
        outputs: torch.Tensor = network.head(network.norm(x[:, -1]))
        return outputs

    kept, whole = step(), anew()
    seconds = {name: _measured(work, settings.times, setup) for name, work in (("step", step), ("anew", anew))}
    return Outcome(
        {name: 1000 * spent for name, spent in seconds.items()}
        | {"times": seconds["anew"] / seconds["step"], "apart": float((kept - whole).norm() / whole.norm())}
    )


def _measured(work: Callable[[], object], count: int, setup: Setup) -> float:
    """Return the processor seconds of one call, the minimum of five rounds."""
    rounds = []
    for _ in range(5):
        setup.clock.check()
        began = time.process_time()
        for _ in range(count):
            work()
        rounds.append((time.process_time() - began) / count)
    return min(rounds)
