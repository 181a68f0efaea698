"""A training loop for small networks that can be interrupted and resumed with exactly equal results."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from pose.training.laboratory.trial import Clock, OutOfTime, Setup
from pose.utils.whole_file import whole_file

CLIP = 1.0  # maximum norm of the gradient
T = TypeVar("T")


@dataclass(slots=True)
class TrainingStatistics:
    """Statistics of a training."""

    seconds: float = 0.0  # processor time of the optimiser steps, without building batches, s
    earlier_seconds: float = 0.0  # processor time of the training before it was interrupted, s
    diverged: bool = False  # whether the training stopped because the loss was not finite


@dataclass(frozen=True, slots=True)
class Training(Generic[T]):
    """A resumable training; equal steps must give equal batches, and a saved state is used if its key is equal."""

    network: nn.Module
    optimizer: Optimizer  # the optimiser
    schedule: LRScheduler  # the learning rate schedule
    batch: Callable[[int], T]  # function from step to batch; equal steps must give equal batches
    loss: Callable[[T, int], Tensor]  # function from batch and step to the loss
    key: str  # identifier of the training. A saved state is used only if its key is equal
    stage: bool = False  # whether the trial has several trainings

    def run(self, steps: int, setup: Setup) -> TrainingStatistics:
        """Train up to step `steps`, starting from the saved state if there is one."""
        trained, first = self._load(setup)
        timer = Clock()
        self.network.train()
        for step in range(first, steps):
            try:
                setup.clock.check()
                batch = self.batch(step)
                began = timer.spent
                loss = self.loss(batch, step)
                if not torch.isfinite(loss):
                    trained.diverged = True
                    return trained
                self._step(loss)
                trained.seconds += timer.spent - began
            except (OutOfTime, KeyboardInterrupt):
                self._save(step, trained, timer.spent, setup)
                raise
        if self.stage and first < steps:
            self._save(steps, trained, timer.spent, setup)
        self.network.eval()
        return trained

    def _step(self, loss: Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        self.optimizer.step()
        self.schedule.step()

    def _parts(self) -> dict[str, nn.Module | Optimizer | LRScheduler]:
        return {"network": self.network, "optimizer": self.optimizer, "schedule": self.schedule}

    def _save(self, step: int, trained: TrainingStatistics, spent: float, setup: Setup) -> None:
        setup.state.parent.mkdir(parents=True, exist_ok=True)
        state = {"key": self.key, "step": step, "seconds": trained.seconds, "before": trained.earlier_seconds + spent}
        with whole_file(setup.state) as hidden:
            torch.save(state | {name: part.state_dict() for name, part in self._parts().items()}, hidden)

    def _load(self, setup: Setup) -> tuple[TrainingStatistics, int]:
        if not setup.state.is_file():
            return TrainingStatistics(), 0
        state = torch.load(setup.state, weights_only=True)
        if state["key"] != self.key:  # saved with different settings
            return TrainingStatistics(), 0
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        return TrainingStatistics(state["seconds"], state["before"]), state["step"]
