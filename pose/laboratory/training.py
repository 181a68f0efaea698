"""The training loop of the laboratory's small networks: steps by number, and a trial goes on as if never stopped."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from pose.laboratory.trial import Clock, OutOfTime, Setup
from pose.system.whole_file import whole_file

CLIP = 1.0  # largest norm of the gradient
T = TypeVar("T")


@dataclass(slots=True)
class Trained:
    """How a training went. seconds: of processor time in steps, without making batches. before: of the trial in earlier
    calls. diverged: the loss was no number."""

    seconds: float = 0.0
    before: float = 0.0
    diverged: bool = False


@dataclass(frozen=True, slots=True)
class Training(Generic[T]):
    """batch: of a step, the same for the same number. loss: of a batch. key: what a kept state must agree with. stage:
    of a trial of several trainings; its state stays when it is done, so that a later one can be gone on with."""

    network: nn.Module
    optimizer: Optimizer
    schedule: LRScheduler
    batch: Callable[[int], T]
    loss: Callable[[T, int], Tensor]
    key: str
    stage: bool = False

    def run(self, steps: int, setup: Setup) -> Trained:
        """Train to step `steps`, from where the trial was stopped. Raises OutOfTime, with everything kept in
        `setup.state`, when the budget is spent; an interruption keeps it, too."""
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

    def _save(self, step: int, trained: Trained, spent: float, setup: Setup) -> None:
        setup.state.parent.mkdir(parents=True, exist_ok=True)
        state = {"key": self.key, "step": step, "seconds": trained.seconds, "before": trained.before + spent}
        with whole_file(setup.state) as hidden:
            torch.save(state | {name: part.state_dict() for name, part in self._parts().items()}, hidden)

    def _load(self, setup: Setup) -> tuple[Trained, int]:
        if not setup.state.is_file():
            return Trained(), 0
        state = torch.load(setup.state, weights_only=True)
        if state["key"] != self.key:  # of a condition that was set otherwise
            return Trained(), 0
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        return Trained(state["seconds"], state["before"]), state["step"]
