"""Study of small synthetic tasks: training on a fixed set of questions, evaluation on unseen ones."""

import math
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from pose.lifting.config import LifterConfig
from pose.training.config import OptimizerConfig, check_recipe
from pose.training.laboratory.tasks import free_group, parentheses, task
from pose.training.laboratory.tasks.model import POSITIONS, EncoderDecoder, TokenModel
from pose.training.laboratory.tasks.task import Batch, Example, Task, distinct
from pose.training.laboratory.training import Training
from pose.training.laboratory.trial import Outcome, Setup
from pose.training.optimizers import build_optimizer
from pose.training.schedules import ScheduleConfig, multiplier
from pose.utils.json_values import Json

COLUMNS = {
    "right": "answers right, %",
    "harder": "of the harder ones, %",
    "trick": "best simple trick, %",
    "loss": "loss at the end",
    "parameters": "parameters",
}
TASKS = ("parentheses", "max-min", "calculator", "free-group")
FORMS = ("decoder", "encoder-decoder")
CHUNK = 500  # questions per batch


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTasksSettings:
    """Settings for one condition of a `small-tasks` experiment."""

    task: str  # one of `TASKS`
    letters: int = 6  # number of letters of a word, for the task of the free group
    variant: str = "answer"
    model: dict[str, Json] = field(default_factory=lambda: {"dim": 32, "depth": 1, "heads": 1, "expansion": 2})
    form: str = "decoder"  # `decoder` for one stack of blocks, `encoder-decoder` for two stacks
    positions: str = "learned"  # position encoding, see `TokenModel`
    examples: int = 3000  # number of training questions
    asked: int = 2000  # number of unseen questions in the evaluation
    steps: int = 1500  # number of optimiser steps
    batch: int = 64  # number of questions of a batch
    optimizer: str = "adamw"  # `gd` (plain gradient descent) or a name of `pose.training.config.OptimizerConfig`
    rate: float = 1e-3  # peak learning rate
    beta2: float = 0.999  # second coefficient of Adam's running averages
    warmup: str = "none"  # warm-up of the learning rate, see `pose.training.schedules.ScheduleConfig`
    warmup_steps: int = 100  # length of the warm-up in steps
    decay: str = "none"  # decay of the learning rate, see `ScheduleConfig`

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task: {self.task!r} is not one of {', '.join(TASKS)}")
        if self.positions not in POSITIONS:
            raise ValueError(f"positions: {self.positions!r} is not one of {', '.join(POSITIONS)}")
        if self.form not in FORMS:
            raise ValueError(f"form: {self.form!r} is not one of {', '.join(FORMS)}")
        for name in ("letters", "examples", "asked", "steps", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: must be at least 1")
        if self.form == "encoder-decoder":
            self.network()
        self.build_task()
        check_recipe(self.adam(), self.schedule(), self.stack().init)

    def build_task(self) -> Task:
        """Build the task with the name `task`."""
        if self.task == "free-group":
            return free_group.task(self.letters, self.variant)
        return parentheses.TASK if self.task == "parentheses" else task.task(2 if self.task == "max-min" else 4)

    def network(self) -> TokenModel | EncoderDecoder:
        """Build the network of the form `form`, with random initial weights."""
        task = self.build_task()
        sizes = self.stack(), len(task.vocabulary), task.length, self.positions
        if self.form == "encoder-decoder":
            return EncoderDecoder(*sizes, task.vocabulary.index("="))
        return TokenModel(*sizes)

    def stack(self) -> LifterConfig:
        """Build the configuration of the blocks."""
        return LifterConfig.from_dict({**self.model, "streaming": True})

    def adam(self) -> OptimizerConfig:
        """Build the configuration of the optimiser."""
        name = "adamw" if self.optimizer == "gd" else self.optimizer
        return OptimizerConfig(name=name, lr=self.rate, betas=(0.9, self.beta2), weight_decay=0.01)

    def schedule(self) -> ScheduleConfig:
        """Build the configuration of the learning rate schedule."""
        return ScheduleConfig(warmup=self.warmup, warmup_steps=self.warmup_steps, decay=self.decay, final=0.01)


def run(settings: SmallTasksSettings, setup: Setup) -> Outcome:
    """Train and evaluate a model.

    Returns:
        `right`: percentage of unseen questions with a completely correct answer. `harder`: the same percentage among
        questions that all simple rules (`Task.guesses`) answer wrongly. `trick`: percentage that the best of these
        rules answers correctly. `loss`: mean loss of the last 50 steps. `parameters`: number of trainable parameters.
    """
    task = settings.build_task()
    shown = list(islice(distinct(task, (setup.seed, 0)), settings.examples))
    asked = list(
        islice(distinct(task, (setup.seed, 1), frozenset(example.question for example in shown)), settings.asked)
    )
    torch.manual_seed(setup.seed)
    network = settings.network()
    if settings.optimizer == "gd":
        optimizer: torch.optim.Optimizer = torch.optim.SGD(network.parameters(), lr=settings.rate)
    else:
        optimizer = build_optimizer(network, settings.adam())
    schedule = LambdaLR(optimizer, lambda step: multiplier(step, settings.schedule(), settings.steps, settings.beta2))
    last: list[float] = []

    def batch(step: int) -> Batch:
        rows = np.random.default_rng((setup.seed, 2, step)).integers(len(shown), size=settings.batch)
        return Batch.of([shown[row] for row in rows], task.length)

    def loss(batch: Batch, step: int) -> Tensor:
        value = answer_loss(network, batch)
        last[:] = [*last[-49:], value.item()]
        return value

    training = Training(network, optimizer, schedule, batch, loss, f"{settings} {setup.seed}")
    trained = training.run(settings.steps, setup)
    results = {"parameters": float(sum(p.numel() for p in network.parameters() if p.requires_grad))}
    if trained.diverged:
        results |= dict.fromkeys(("right", "harder", "loss"), math.inf)
    else:
        right = answers_right(network, asked, task)
        missed = np.array([not _trick_right(task, example) for example in asked])
        results |= {
            "right": 100 * float(right.mean()),
            "harder": 100 * float(right[missed].mean()) if missed.any() else math.nan,
            "loss": float(np.mean(last)),
        }
    results["trick"] = 100 * max(tricks(task, asked).values())
    return Outcome(results, settings.steps, settings.steps * settings.batch, trained.earlier_seconds)


def answer_loss(network: nn.Module, batch: Batch) -> Tensor:
    """Compute the mean cross-entropy of the answer tokens of a batch, as a scalar."""
    tokens = torch.from_numpy(batch.tokens)
    chosen = torch.from_numpy(batch.answers)
    return F.cross_entropy(network(tokens[:, :-1])[chosen], tokens[:, 1:][chosen])


@torch.inference_mode()
def answers_right(network: nn.Module, examples: list[Example], task: Task) -> NDArray[np.bool_]:
    """Return a mask (N,), True for examples that greedy decoding answers completely correctly."""
    # One pass with the correct answers as input is equivalent: as long as all earlier tokens are correct, the inputs
    # are those of greedy decoding.
    rights = []
    for first in range(0, len(examples), CHUNK):
        batch = Batch.of(examples[first : first + CHUNK], task.length)
        likeliest = network(torch.from_numpy(batch.tokens[:, :-1])).argmax(dim=-1).numpy()
        rights.append(((likeliest == batch.tokens[:, 1:]) | ~batch.answers).all(axis=1))
    return np.concatenate(rights)


def tricks(task: Task, examples: list[Example]) -> dict[str, float]:
    """Return the fraction of questions that each simple rule of a task answers correctly, by its name."""
    return {
        name: sum(guess(example.question) == example.answer for example in examples) / len(examples)
        for name, guess in task.guesses.items()
    }


def _trick_right(task: Task, example: Example) -> bool:
    return any(guess(example.question) == example.answer for guess in task.guesses.values())
