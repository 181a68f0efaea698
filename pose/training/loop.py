"""The training loop: one or several processes, mixed precision, gradient clipping, averaged weights, exact resume.

A `BatchSource` returns the batch of a given number, which is different for every step and process. The batch must
depend only on this number, so that a resumed run equals an uninterrupted one.
"""

import csv
import json
import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar, cast

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim.swa_utils import AveragedModel

from pose.errors import PoseError, PoseWarning
from pose.training.batches import BatchSource, Tensors, load, timed
from pose.training.config import TrainingRunConfig
from pose.training.optimizers import build_optimizer
from pose.training.schedules import build_schedule, warmup_length
from pose.utils.json_values import Json
from pose.utils.whole_file import whole_file


class TrainingLog:
    """Log in `training.csv`, `evaluation.csv` and TensorBoard, if installed, without rows after `step`."""

    def __init__(self, folder: Path, step: int) -> None:
        self._folder, self._step = folder, step
        self._files: dict[str, TextIO] = {}
        self._writers: dict[str, csv.DictWriter[str]] = {}
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self._board = None
        else:
            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=step)

    def training(self, step: int, metrics: dict[str, float]) -> None:
        """Log metrics of a training step."""
        self._row("training", step, metrics)

    def evaluation(self, step: int, metrics: dict[str, float]) -> None:
        """Log metrics of an evaluation."""
        self._row("evaluation", step, metrics)

    def _row(self, name: str, step: int, metrics: dict[str, float]) -> None:
        row = {"step": step} | {key: round(value, 6) for key, value in metrics.items()}
        if name not in self._writers:
            self._open(name, list(row))
        self._writers[name].writerow(row)
        self._files[name].flush()
        if self._board:
            for key, value in metrics.items():
                self._board.add_scalar(f"{name}/{key}", value, step)

    def _open(self, name: str, columns: list[str]) -> None:
        path = self._folder / f"{name}.csv"
        earlier_rows: list[dict[str, str]] = []
        if path.is_file() and self._step:
            with path.open(newline="") as file:
                earlier_rows = [row for row in csv.DictReader(file) if int(row["step"]) <= self._step]
        with whole_file(path) as hidden, hidden.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(earlier_rows)
        file = self._files[name] = path.open("a", newline="")
        self._writers[name] = csv.DictWriter(file, columns, extrasaction="ignore")

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        if self._board:
            self._board.close()


STATE_FILE = "state.pt"
Net = TypeVar("Net", bound=nn.Module)
SourceBatch = TypeVar("SourceBatch")  # a batch from a source
Batch = TypeVar("Batch", bound=Tensors)  # the batch as tensors
Loss = tuple[Tensor, dict[str, Tensor]]  # loss, and its terms by name


class TrainingLoop(ABC, Generic[Net, SourceBatch, Batch]):
    """Base class of training loops.

    A loop trains one network and writes `last.safetensors`, `best.safetensors`, `state.pt` for resuming, and logs.
    Subclasses build the network, compute the loss of a batch and write checkpoints.

    Args:
        evaluate: Function that computes metrics of a network at a step. The checkpoint with the smallest first metric
            is the best.
    """

    to_tensors: Callable[[SourceBatch], Batch]  # converts a batch of the source to tensors, which may share its memory

    def __init__(
        self,
        config: TrainingRunConfig,
        source: BatchSource[SourceBatch],
        folder: Path,
        evaluate: Callable[[Net, int], dict[str, float]] | None = None,
    ) -> None:
        torch.manual_seed(config.seed)
        self.run_config, self.source, self.folder, self.evaluate = config, source, folder, evaluate
        self.accelerator = Accelerator(
            mixed_precision="no" if config.precision == "fp32" else config.precision,
            cpu=not torch.accelerator.is_available(),  # needed to connect processes on CPUs
        )
        network = self.build()
        if config.compile:
            network.compile()
        optimizer = build_optimizer(network, config.optimizer)
        self._warn_of_long_warmup()
        self.schedule = build_schedule(optimizer, config.schedule, config.steps)
        self.network, self.optimizer = self.accelerator.prepare(network, optimizer)
        self.average = AveragedModel(self.bare_network, multi_avg_fn=partial(_average, config.ema))
        self.step = 0
        self.best = float("inf")
        folder.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def build(self) -> Net:
        """Build the initial network. torch's random state is set from the run's seed before the call."""

    @abstractmethod
    def loss(self, batch: Batch, step: int) -> Loss:
        """Compute the loss of a batch on the device, and the terms of the loss by name."""

    @abstractmethod
    def write(self, network: Net, path: Path) -> None:
        """Write a checkpoint."""

    @property
    def bare_network(self) -> Net:
        """The network without the wrappers of accelerate."""
        return cast(Net, self.accelerator.unwrap_model(self.network))

    @property
    def averaged_network(self) -> Net:
        """The network with averaged weights, which is evaluated and saved."""
        return cast(Net, self.average.module)

    def run(self, progress: Callable[[int, dict[str, float]], None] = lambda step, metrics: None) -> None:
        """Train to the end; `progress` gets means every `log_every` steps. PoseError if the loss is not finite."""
        if not self.accelerator.is_main_process:
            self._run(None, progress)
            return
        with closing(TrainingLog(self.folder, self.step)) as log:
            self._run(log, progress)

    def _run(self, log: TrainingLog | None, progress: Callable[[int, dict[str, float]], None]) -> None:
        config, metrics = self.run_config, RunningMeans()
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        numbers = range(self.step * world + rank, config.steps * world, world)
        batches = load(self.source, type(self).to_tensors, numbers, config.workers, self.accelerator.device)
        for batch, waited_s in timed(batches):
            began = time.perf_counter()
            parts = self._train_step(batch, self.step)
            self.step += 1
            metrics.add(parts | {"data_share": waited_s / (waited_s + time.perf_counter() - began)})
            last = self.step == config.steps
            if self.step % config.log_every == 0 or last:
                self._report(metrics.take(), log, progress)
            if (self.step % config.evaluate_every == 0 or last) and self.evaluate and log:
                self._evaluate(log)
            if (self.step % config.checkpoint_every == 0 or last) and log:
                self.save()

    def _report(
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

    def _train_step(self, batch: Batch, step: int) -> dict[str, float | Tensor]:
        with self._attention_kernels():
            with self.accelerator.autocast():
                loss, parts = self.loss(batch, step)
            self.accelerator.backward(loss)
        norm = self.accelerator.clip_grad_norm_(self.network.parameters(), self.run_config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.schedule.step()
        self.average.update_parameters(self.bare_network)
        assert norm is not None
        return {"loss": loss.detach(), "gradient_norm": norm} | {name: part.detach() for name, part in parts.items()}

    def _warn_of_long_warmup(self) -> None:
        config = self.run_config
        length = warmup_length(config.schedule, config.optimizer.betas[1])
        if length > config.steps:
            warnings.warn(
                f"train.schedule: the warm-up takes {length:.0f} of {config.steps} steps, so the learning rate never "
                "reaches train.optimizer.lr; reduce warmup_steps, or increase train.steps",
                PoseWarning,
                stacklevel=2,
            )

    def _attention_kernels(self) -> AbstractContextManager[None]:
        """Return a context that selects unfused attention kernels on a CPU."""
        # The backward pass of the fused kernel takes twice as long for small heads.
        if self.accelerator.device.type == "cpu":
            return cast(AbstractContextManager[None], sdpa_kernel(SDPBackend.MATH))
        return nullcontext()

    def _evaluate(self, log: TrainingLog) -> None:
        assert self.evaluate is not None
        metrics = self.evaluate(self.averaged_network.eval(), self.step)
        log.evaluation(self.step, metrics)
        score = next(iter(metrics.values()))
        if score < self.best:
            self.best = score
            self.write(self.averaged_network, self.folder / "best.safetensors")

    def save(self) -> None:
        """Write `last.safetensors` and the state for `resume` atomically."""
        self.write(self.averaged_network, self.folder / "last.safetensors")
        state = {
            "step": self.step,
            "best": self.best,
            "config": json.dumps(asdict(self.run_config)),
            "network": self.bare_network.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }
        with whole_file(self.folder / STATE_FILE) as hidden:
            torch.save(state, hidden)

    def resume(self) -> None:
        """Continue from `state.pt`; PoseError if `state.pt` does not exist or belongs to another configuration."""
        path = self.folder / STATE_FILE
        if not path.is_file():
            raise PoseError(f"{path}: nothing to resume from")
        state = torch.load(path, map_location=self.accelerator.device, weights_only=True)
        trained_with = _with_defaults(json.loads(state["config"]), asdict(type(self.run_config)()))
        if trained_with != json.loads(json.dumps(asdict(self.run_config))):
            raise PoseError(f"{path}: has a different configuration; use its config or another --out")
        self.step, self.best = state["step"], state["best"]
        self.bare_network.load_state_dict(state["network"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])


def _with_defaults(stored: dict[str, Json], defaults: dict[str, Any]) -> dict[str, Json]:
    """Return a stored configuration, with defaults for fields that were added after it was stored."""
    known = {
        name: _with_defaults(value, defaults[name])
        if isinstance(defaults.get(name), dict) and isinstance(value, dict)
        else value
        for name, value in stored.items()
    }
    result: dict[str, Json] = json.loads(json.dumps(defaults)) | known
    return result


def _average(decay: float, averages: Sequence[Tensor], current: Sequence[Tensor], count: Tensor | int) -> None:
    """Update an exponential moving average in place."""
    # In the first steps the decay is smaller, so that the initial weights lose their influence.
    torch._foreach_lerp_(list(averages), list(current), 1 - min(decay, (1 + int(count)) / (10 + int(count))))


class RunningMeans:
    """Running means of named metrics, which do not synchronise with the GPU before `take`."""

    def __init__(self) -> None:
        self._sums: dict[str, float | Tensor] = {}
        self._count = 0

    def add(self, metrics: dict[str, float | Tensor]) -> None:
        """Add the metrics of one step."""
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._count += 1

    def take(self) -> dict[str, float]:
        """Return the means since the last call, and restart."""
        means = {name: float(value) / self._count for name, value in self._sums.items()}
        self._sums, self._count = {}, 0
        return means
