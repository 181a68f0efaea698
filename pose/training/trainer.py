"""The training loop: one process or many, mixed precision, clipping, averaged weights, exact resume.

The loop knows nothing of files of motion capture: it asks a `BatchSource` for batch number `step`, which must depend on
nothing but that number and the rank, so that a run which was killed goes on as if nothing had happened.
"""

import json
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from accelerate import Accelerator
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim.swa_utils import AveragedModel

from pose.errors import PoseError
from pose.lifter.checkpoint import load_checkpoint, save_checkpoint
from pose.lifter.features import Lifted
from pose.lifter.initialization import initialize
from pose.lifter.model import Block, LifterNetwork
from pose.lifter.predict import checkpoint_path
from pose.lifter.recurrent import RecurrentBlock
from pose.sequences import LiftBatch
from pose.system.json_values import Json
from pose.system.whole_file import whole_file
from pose.training.batches import BatchSource, TensorBatch, generator, load, mirrored_joints, timed
from pose.training.config import LossWeights, TrainConfig
from pose.training.dialects import in_dialects
from pose.training.logs import TrainingLog
from pose.training.losses import lifting_loss
from pose.training.optimizers import build_optimizer
from pose.training.schedules import build_schedule

STATE_FILE = "state.pt"


Evaluate = Callable[[LifterNetwork, int], dict[str, float]]


class Trainer:
    """Trains one lifter in `folder`: `last.safetensors`, `best.safetensors`, `state.pt` for resuming, and logs."""

    def __init__(
        self, config: TrainConfig, source: BatchSource, folder: Path, evaluate: Evaluate | None = None
    ) -> None:
        torch.manual_seed(config.seed)
        self.config, self.source, self.folder, self.evaluate = config, source, folder, evaluate
        self.accelerator = Accelerator(
            mixed_precision="no" if config.precision == "fp32" else config.precision,
            cpu=not torch.accelerator.is_available(),  # without it processes on CPUs would not find each other
        )
        network = LifterNetwork(config.model)
        if config.start_from:
            _start_from(network, config.start_from)
        elif config.model.init in ("t-fixup", "dt-fixup"):
            initialize(network, config.model.init, self._example_features(network))
        if config.compile:
            network.compile()
        optimizer = build_optimizer(network, config.optimizer)
        self.schedule = build_schedule(optimizer, config.schedule, config.steps)
        self.network, self.optimizer = self.accelerator.prepare(network, optimizer)
        self.average = AveragedModel(self.bare_network, multi_avg_fn=partial(_average, config.ema))
        self.step = 0
        self.best = float("inf")
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def bare_network(self) -> LifterNetwork:
        return cast(LifterNetwork, self.accelerator.unwrap_model(self.network))

    @property
    def averaged_network(self) -> LifterNetwork:
        """The network whose weights are the running average: the one that is evaluated and saved."""
        return cast(LifterNetwork, self.average.module)

    def _example_features(self, network: LifterNetwork) -> Tensor:
        """What the network's embedding sees of the first batch, for initialisations that scale by the data."""
        batch = TensorBatch.of(self.source.batch(0))
        return network.features(batch.observe(), batch.times, max(self.config.lookaheads))

    def run(self, progress: Callable[[int, dict[str, float]], None] = lambda step, figures: None) -> None:
        """Train to the last step. `progress` is told the averaged figures every `log_every` steps."""
        if not self.accelerator.is_main_process:
            self._run(None, progress)
            return
        with closing(TrainingLog(self.folder, self.step)) as log:
            self._run(log, progress)

    def _run(self, log: TrainingLog | None, progress: Callable[[int, dict[str, float]], None]) -> None:
        config, figures = self.config, Running()
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        numbers = range(self.step * world + rank, config.steps * world, world)
        for batch, waited in timed(load(self.source, numbers, config.workers, self.accelerator.device)):
            began = time.perf_counter()
            parts = self._train_step(batch, self.step)
            self.step += 1
            figures.add(parts | {"data_share": waited / (waited + time.perf_counter() - began)})
            last = self.step == config.steps
            if self.step % config.log_every == 0 or last:
                self._tell(figures.take(), log, progress)
            if (self.step % config.evaluate_every == 0 or last) and self.evaluate and log:
                self._evaluate(log)
            if (self.step % config.checkpoint_every == 0 or last) and log:
                self.save()

    def _tell(
        self, means: dict[str, float], log: TrainingLog | None, progress: Callable[[int, dict[str, float]], None]
    ) -> None:
        if not math.isfinite(means["loss"]):
            raise PoseError(
                f"training diverged before step {self.step}: the loss is {means['loss']}; lower the learning rate"
            )
        if log:
            means |= {"learning_rate": float(self.schedule.get_last_lr()[0])}
            log.training(self.step, means)
            progress(self.step, means)

    def _train_step(self, batch: TensorBatch, step: int) -> dict[str, float | Tensor]:
        config, device = self.config, self.accelerator.device
        fitting = [lookahead for lookahead in config.lookaheads if lookahead < batch.times.shape[1] / 2]
        lookahead = random.Random(f"{config.seed}/{step}").choice(fitting or [0])
        for layer, block in enumerate(self.bare_network.blocks):
            random_numbers = generator(torch.device("cpu"), config.seed, step, layer)
            cast(Block | RecurrentBlock, block).begin_step(step, random_numbers)
        batches = [batch, batch.mirrored()] if config.consistency else [batch]
        if config.dialects:
            scores = (in_dialects(b.scores, generator(device, config.seed, step, i)) for i, b in enumerate(batches))
            batches = [b._replace(scores=said) for b, said in zip(batches, scores, strict=True)]
        with self._attention_kernels():
            with self.accelerator.autocast():
                loss, parts = self._loss(batches, lookahead)
            self.accelerator.backward(loss)
        norm = self.accelerator.clip_grad_norm_(self.network.parameters(), config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.schedule.step()
        self.average.update_parameters(self.bare_network)
        assert norm is not None
        return {"loss": loss.detach(), "gradient_norm": norm} | {name: part.detach() for name, part in parts.items()}

    def _loss(self, batches: list[TensorBatch], lookahead: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Of a batch, or of a batch and its mirror image, whose answers should agree."""
        config = self.config
        if len(batches) == 1:
            return tensor_loss(self.network, batches[0], lookahead, config.loss)[:2]
        both = TensorBatch(*(torch.cat(pair) for pair in zip(*batches, strict=True)))
        loss, parts, lifted = tensor_loss(self.network, both, lookahead, config.loss)
        one, other = lifted.joints.chunk(2)
        apart = (one - mirrored_joints(other)).norm(dim=-1).mean(-1)
        valid = batches[0].valid[:, : apart.shape[1]]
        parts["consistency"] = torch.where(valid, apart, 0.0).sum() / valid.sum().clamp(min=1)
        return loss + config.consistency * parts["consistency"], parts

    def _attention_kernels(self) -> AbstractContextManager[None]:
        """On a CPU the plain kernels: the backward pass of the fused one takes twice as long for heads so small."""
        if self.accelerator.device.type == "cpu":
            return cast(AbstractContextManager[None], sdpa_kernel(SDPBackend.MATH))
        return nullcontext()

    def _evaluate(self, log: TrainingLog) -> None:
        assert self.evaluate is not None
        figures = self.evaluate(self.averaged_network.eval(), self.step)
        log.evaluation(self.step, figures)
        score = next(iter(figures.values()))
        if score < self.best:
            self.best = score
            save_checkpoint(self.averaged_network, self.folder / "best.safetensors")

    def save(self) -> None:
        """Write `last.safetensors` and the state that `resume` needs; an interrupted write leaves the old ones."""
        save_checkpoint(self.averaged_network, self.folder / "last.safetensors")
        state = {
            "step": self.step,
            "best": self.best,
            "config": json.dumps(asdict(self.config)),
            "network": self.bare_network.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }
        with whole_file(self.folder / STATE_FILE) as hidden:
            torch.save(state, hidden)

    def resume(self) -> None:
        """Go on from `state.pt`. Raises PoseError when there is none or it belongs to another configuration."""
        path = self.folder / STATE_FILE
        if not path.is_file():
            raise PoseError(f"{path}: nothing to resume from")
        state = torch.load(path, map_location=self.accelerator.device, weights_only=True)
        trained_with = _filled(json.loads(state["config"]), asdict(TrainConfig()))
        if trained_with != json.loads(json.dumps(asdict(self.config))):
            raise PoseError(f"{path}: was trained with another configuration; use its config or another --out")
        self.step, self.best = state["step"], state["best"]
        self.bare_network.load_state_dict(state["network"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])


def _filled(stored: dict[str, Json], usual: dict[str, Any]) -> dict[str, Json]:
    """A stored configuration with the usual value of fields that were not there when it was stored."""
    known = {
        name: _filled(value, usual[name]) if isinstance(usual.get(name), dict) and isinstance(value, dict) else value
        for name, value in stored.items()
    }
    return json.loads(json.dumps(usual)) | known


def _start_from(network: LifterNetwork, name_or_path: str) -> None:
    """Copy the weights of a lifter. Raises PoseError when its form is not that of `network`."""
    trained = load_checkpoint(checkpoint_path(name_or_path))
    if trained.config != network.config:
        raise PoseError(f"train.start_from: {name_or_path} is of another form than train.model")
    # What is trained further is calibrated anew at its end.
    network.load_state_dict(trained.state_dict() | {"calibration": network.calibration})


def _average(decay: float, averages: Sequence[Tensor], current: Sequence[Tensor], count: Tensor | int) -> None:
    """Exponential moving average that forgets faster while it is young, so that the start leaves no trace."""
    torch._foreach_lerp_(list(averages), list(current), 1 - min(decay, (1 + int(count)) / (10 + int(count))))


class Running:
    """Means of named figures since they were last taken. Figures on a GPU are not waited for before."""

    def __init__(self) -> None:
        self._sums: dict[str, float | Tensor] = {}
        self._count = 0

    def add(self, figures: dict[str, float | Tensor]) -> None:
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._count += 1

    def take(self) -> dict[str, float]:
        means = {name: float(value) / self._count for name, value in self._sums.items()}
        self._sums, self._count = {}, 0
        return means


def batch_loss(
    network: torch.nn.Module, batch: LiftBatch, lookahead: int, weights: LossWeights, device: torch.device
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of one batch, and its parts. Frames within `lookahead` of the end have no answer and no loss."""
    return tensor_loss(network, TensorBatch.of(batch).to(device), lookahead, weights)[:2]


def tensor_loss(
    network: torch.nn.Module, batch: TensorBatch, lookahead: int, weights: LossWeights
) -> tuple[Tensor, dict[str, Tensor], Lifted]:
    """The loss of one batch, its parts, and the answers."""
    times = batch.times
    lifted = network(batch.observe(), times, lookahead)
    count = times.shape[1] - lookahead
    answered = batch.valid[:, :count] & batch.valid[:, lookahead:]
    loss, parts = lifting_loss(
        lifted, batch.joints[:, :count], batch.root[:, :count], times[:, :count], answered, weights
    )
    return loss, parts, lifted
