"""How Post-LN, Pre-LN and T-Fixup begin: loss curves and sizes of the first updates, at depth 4 and 12.

    pose-prepare mocap ../shared/mocap/cmu clips.npz
    python benchmarks/tfixup_study.py --mocap clips.npz

Every method trains the same network on the same batches with Adam at each of several learning rates; its best one (by
the mean error of the last steps, every batch being new) is plotted, all are in the table. Writes
docs/studies/images/tfixup-loss.png and tfixup-updates.png and docs/studies/tfixup-study.json, and prints the table of
docs/studies/lifter.md.
"""

import argparse
import json
import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pose_datasets.filming import FilmConfig
from pose_datasets.synthesis import SynthesisConfig
from pose_datasets.training import MocapConfig, MocapSource

from pose.lifting.config import LifterConfig
from pose.lifting.initialization import initialize
from pose.lifting.model import LifterNetwork
from pose.structures.sequences import LiftBatch
from pose.training.batches import TensorBatch
from pose.training.config import LossWeights, OptimizerConfig
from pose.training.optimizers import build_optimizer
from pose.training.schedules import ScheduleConfig, build_schedule
from pose.training.trainer import batch_loss

RATES = (2e-4, 6e-4, 2e-3, 6e-3)
DEPTHS = (4, 12)
RECORDED = 100  # steps whose updates are counted
SIZES = np.linspace(-7, -1, 61)  # log10 of an update's size
CPU = torch.device("cpu")
# The recorded people and exact 2D: so few steps would not see past the variety and the noise of the shipped recipe.
EXACT = SynthesisConfig(natural=1.0, film=FilmConfig(derived=0.0, exact=1.0, intrinsics_known=1.0))


@dataclass(frozen=True)
class Method:
    name: str
    norm: str
    init: str
    warmup: str


METHODS = (
    Method("Post-LN, warm-up", "post", "xavier", "linear"),
    Method("Post-LN", "post", "xavier", "none"),
    Method("Pre-LN", "pre", "xavier", "none"),
    Method("T-Fixup", "none", "t-fixup", "none"),
)


@dataclass(frozen=True)
class Run:
    method: Method
    depth: int
    rate: float


@dataclass(frozen=True)
class Outcome:
    """errors: (steps,) mean joint error, mm, NaN after divergence. updates: (RECORDED, len(SIZES) - 1) shares."""

    errors: NDArray[np.float64]
    updates: NDArray[np.float64]

    @property
    def final(self) -> float:
        """Mean error of the last tenth, infinite for a run that diverged."""
        mean = float(self.errors[-len(self.errors) // 10 :].mean())
        return mean if np.isfinite(mean) else float("inf")


def train(run: Run, batches: list[LiftBatch], dim: int) -> Outcome:
    """One run of as many steps as there are batches."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    method, steps = run.method, len(batches)
    network = LifterNetwork(
        LifterConfig(dim=dim, depth=run.depth, heads=4, expansion=2, norm=method.norm, init=method.init)
    )
    if method.init == "t-fixup":
        initialize(network, method.init, TensorBatch.of(batches[0]).observe().features)
    optimizer = build_optimizer(network, OptimizerConfig(name="adam", lr=run.rate, weight_decay=0.0))
    schedule = build_schedule(
        optimizer, ScheduleConfig(warmup=method.warmup, warmup_steps=max(1, steps // 4), decay="none"), steps
    )
    matrices = [parameter for parameter in network.blocks.parameters() if parameter.ndim == 2]
    errors, updates = np.full(steps, np.nan), np.zeros((min(RECORDED, steps), len(SIZES) - 1))
    for step, batch in enumerate(batches):
        loss, parts = batch_loss(network, batch, 0, LossWeights(), CPU)
        if not torch.isfinite(loss):
            break
        errors[step] = 1000 * parts["position"].item()
        before = [matrix.detach().clone() for matrix in matrices] if step < len(updates) else []
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        for matrix, old in zip(matrices, before, strict=False):
            size = (matrix.detach() - old).abs().clamp(min=1e-12).log10().numpy()
            updates[step] += np.histogram(size.clip(SIZES[0], SIZES[-1]), SIZES)[0]
    return Outcome(errors, updates / sum(matrix.numel() for matrix in matrices))


_batches: list[LiftBatch] = []  # of a worker process


def _start(mocap: str, steps: int, frames: int, batch: int) -> None:
    data = MocapConfig(mocap=mocap, frames=(frames,), batch_frames=frames * batch, synthesis=EXACT)
    source = MocapSource(data, seed=1)
    _batches[:] = [source.batch(step) for step in range(steps)]


def _work(task: tuple[Run, int]) -> Outcome:
    return train(task[0], _batches, task[1])


def smooth(errors: NDArray[np.float64], steps: int = 15) -> NDArray[np.float64]:
    return np.convolve(errors, np.ones(steps) / steps, mode="valid")


def plot_losses(best: dict[tuple[int, Method], tuple[float, Outcome]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, depth in zip(figure.subplots(1, len(DEPTHS), sharey=True), DEPTHS, strict=True):
        for method in METHODS:
            rate, outcome = best[depth, method]
            axes.plot(smooth(outcome.errors), label=f"{method.name}, {rate:g}")
        axes.set(title=f"depth {depth}", xlabel="step", yscale="log")
        axes.grid(alpha=0.3, which="both")
        axes.legend(title="method, learning rate")
        if depth == DEPTHS[0]:
            axes.set_ylabel("joint error of new batches, mm")
    figure.savefig(path, dpi=90)


def plot_updates(best: dict[tuple[int, Method], tuple[float, Outcome]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    grid = figure.subplots(len(DEPTHS), len(METHODS), sharex=True, sharey=True)
    for row, depth in zip(grid, DEPTHS, strict=True):
        for axes, method in zip(row, METHODS, strict=True):
            rate, outcome = best[depth, method]
            extent = (0, len(outcome.updates), SIZES[0], SIZES[-1])
            axes.imshow(outcome.updates.T, origin="lower", aspect="auto", extent=extent, cmap="magma", vmax=0.15)
            axes.set_title(f"{method.name}, depth {depth}, {rate:g}", fontsize=9)
    figure.supxlabel("step")
    figure.supylabel("log10 of the change of a weight; bright: many weights")
    figure.savefig(path, dpi=80)


def table(outcomes: dict[Run, Outcome]) -> str:
    """Markdown: the final error of every run, mm."""
    lines = ["| depth | method | " + " | ".join(f"lr {rate:g}" for rate in RATES) + " |"]
    lines.append("|---" * (len(RATES) + 2) + "|")
    for depth in DEPTHS:
        for method in METHODS:
            finals = [outcomes[Run(method, depth, rate)].final for rate in RATES]
            cells = [f"{value:.1f}" if value < 1000 else "diverged" for value in finals]
            cells[int(np.argmin(finals))] = f"**{min(finals):.1f}**"
            lines.append(f"| {depth} | {method.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the file that `pose-prepare mocap` wrote")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--frames", type=int, default=27)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--docs", type=Path, default=Path("docs/studies"), help="where images/ and the figures go")
    options = parser.parse_args()
    began = time.perf_counter()
    runs = [Run(method, depth, rate) for depth in reversed(DEPTHS) for method in METHODS for rate in RATES]
    data = (options.mocap, options.steps, options.frames, options.batch)
    with multiprocessing.get_context("spawn").Pool(options.workers, _start, data) as pool:
        found = pool.map(_work, [(run, options.dim) for run in runs], chunksize=1)
    outcomes = dict(zip(runs, found, strict=True))
    best: dict[tuple[int, Method], tuple[float, Outcome]] = {}
    for run, outcome in sorted(outcomes.items(), key=lambda item: item[1].final):
        best.setdefault((run.depth, run.method), (run.rate, outcome))
    images = options.docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    plot_losses(best, images / "tfixup-loss.png")
    plot_updates(best, images / "tfixup-updates.png")
    print(table(outcomes))
    figures: dict[str, Any] = {key: getattr(options, key) for key in ("steps", "frames", "batch", "dim")}
    figures["final_error_mm"] = {
        f"depth {run.depth}, {run.method.name}, lr {run.rate:g}": outcome.final for run, outcome in outcomes.items()
    }
    (options.docs / "tfixup-study.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"{len(runs)} runs in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
