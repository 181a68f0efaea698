"""The training loop of pre-training objectives, and their metrics."""

from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from pose.lifting.attention import layer_penalty
from pose.lifting.checkpoint import save_checkpoint
from pose.lifting.config import FIXUPS
from pose.lifting.initialization import initialize
from pose.lifting.model import LifterNetwork
from pose.structures.sequences import LiftBatch
from pose.training.batches import BatchSource, TensorBatch, generator
from pose.training.config import PretrainConfig
from pose.training.loop import Loss, TrainingLoop
from pose.training.objectives.pretraining import Pretraining
from pose.training.trainer import begin_step


class Pretrainer(TrainingLoop[Pretraining, LiftBatch, TensorBatch]):
    """Training loop of pre-training on 2D poses.

    Its checkpoints contain the lifter, whose blocks are trained and whose own head is not.
    """

    to_tensors = TensorBatch.of

    def __init__(
        self,
        config: PretrainConfig,
        source: BatchSource[LiftBatch],
        folder: Path,
        evaluate: Callable[[Pretraining, int], dict[str, float]] | None = None,
    ) -> None:
        self.config = config
        super().__init__(config, source, folder, evaluate)

    def build(self) -> Pretraining:
        lifter = LifterNetwork(self.config.model)
        if self.config.model.init in FIXUPS:
            example = TensorBatch.of(self.source.batch(0))
            initialize(lifter, self.config.model.init, lifter.features(example.observe(), example.times))
        return Pretraining(lifter, self.config.objective)

    def write(self, network: Pretraining, path: Path) -> None:
        save_checkpoint(network.lifter, path)

    def loss(self, batch: TensorBatch, step: int) -> Loss:
        begin_step(self.bare_network.lifter, self.config.seed, step)
        predicted = self.network(batch, generator(batch.times.device, self.config.seed, step, "asked"))
        nats, of_layers = predicted.loss(), layer_penalty(self.bare_network)
        with torch.no_grad():
            parts = {"nats": nats, "distance": predicted.error(predicted.density.mean())}
        return (nats if of_layers is None else nats + of_layers), parts


@torch.inference_mode()
def measure_objective(network: Pretraining, batches: Iterable[LiftBatch]) -> dict[str, float]:
    """Compute the metrics of an objective. Masks and orders are the same at every call.

    Returns:
        `nats`: negative log likelihood per coordinate. `distance`: mean distance of the mean prediction from the truth,
            in units of the body's spread. `simple`: the same distance for the baseline.
    """
    drawn = generator(torch.device("cpu"), "measured")
    sums: dict[str, float] = {"nats": 0.0, "distance": 0.0, "simple": 0.0}
    total = 0
    for batch in batches:
        predicted = network(TensorBatch.of(batch), drawn)
        count_in_batch = int(predicted.target_mask.sum())
        metrics = predicted.loss(), predicted.error(predicted.density.mean()), predicted.error(predicted.baseline)
        for name, value in zip(sums, metrics, strict=True):
            sums[name] += count_in_batch * float(value)
        total += count_in_batch
    return {name: value / max(total, 1) for name, value in sums.items()}
