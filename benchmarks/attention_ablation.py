"""Every attention mechanism in the same lifter, trained for the same time: accuracy, parameters, cost of a step.

    pose-prepare mocap ../shared/mocap/cmu clips.npz
    python benchmarks/attention_ablation.py --mocap clips.npz

The budget is processor time of one thread, so that other work on the machine does not matter. Offline lifters see the
whole window, streaming ones (look-ahead 0) the past. Errors are those of the validation subjects. Prints the table of
docs/studies/lifter.md and writes docs/studies/attention-ablation.json.
"""

import argparse
import json
import math
import multiprocessing
import time
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch
from pose_datasets.synthesis import evaluation_batches
from pose_datasets.training import MocapConfig, MocapSource

from pose.lifting.attention import ATTENTIONS
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.training.config import LossWeights, OptimizerConfig
from pose.training.measure import measure
from pose.training.optimizers import build_optimizer
from pose.training.trainer import batch_loss

OPTIONS: dict[str, dict[str, Any]] = {"linformer": {"max_length": 81}}
EVALUATED = 4  # batches a condition
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Row:
    """Errors in mm; milliseconds of processor time a training step."""

    attention: str
    streaming: bool
    parameters: int
    steps: int
    step_ms: float
    gt_mpjpe: float
    gt_p_mpjpe: float
    detector_mpjpe: float
    detector_p_mpjpe: float


def train(network: LifterNetwork, source: MocapSource, seconds: float, rate: float) -> int:
    """Train for so many seconds of processor time, the learning rate falling to 0 as a cosine; returns the steps."""
    optimizer = build_optimizer(network, OptimizerConfig(lr=rate, weight_decay=0.02))
    spent = 0.0
    for step in count():
        batch = source.batch(step)  # making batches is not the mechanism's doing and does not count
        began = time.process_time()
        for group in optimizer.param_groups:
            warm = min(1.0, (step + 1) / 50)
            group["lr"] = rate * warm * (1 + math.cos(math.pi * min(1.0, spent / seconds))) / 2
        loss, _ = batch_loss(network, batch, 0, LossWeights(), CPU)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        spent += time.process_time() - began
        if spent >= seconds:
            return step + 1
    raise AssertionError


def measure_row(task: tuple[str, bool, argparse.Namespace]) -> Row:
    name, streaming, options = task
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = LifterConfig(
        dim=options.dim,
        depth=options.depth,
        heads=4,
        expansion=2,
        attention=name,
        attention_options=OPTIONS.get(name, {}),
        streaming=streaming,
    )
    network = LifterNetwork(config)
    data = MocapConfig(mocap=options.mocap, frames=(options.frames,), batch_frames=options.frames * options.batch)
    source = MocapSource(data, seed=0)
    steps = train(network, source, options.seconds, options.rate)
    network.eval()
    clips, errors = source.clips("validation"), {}
    for condition in ("gt", "detector"):
        batches = evaluation_batches(clips, condition=condition, frames=options.frames)
        errors[condition] = measure(network, islice(batches, EVALUATED))
    return Row(
        name,
        streaming,
        sum(parameter.numel() for parameter in network.parameters()),
        steps,
        1000 * options.seconds / steps,
        errors["gt"].mpjpe,
        errors["gt"].p_mpjpe,
        errors["detector"].mpjpe,
        errors["detector"].p_mpjpe,
    )


def table(rows: list[Row]) -> str:
    lines = ["| attention | kind | parameters | steps | ms a step | GT 2D: MPJPE / P-MPJPE | detector-like 2D |"]
    lines.append("|---" * 7 + "|")
    lines += [
        f"| {row.attention} | {'stream' if row.streaming else 'offline'} | {row.parameters:,} | {row.steps} "
        f"| {row.step_ms:.0f} | {row.gt_mpjpe:.1f} / {row.gt_p_mpjpe:.1f} "
        f"| {row.detector_mpjpe:.1f} / {row.detector_p_mpjpe:.1f} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the file that `pose-prepare mocap` wrote")
    parser.add_argument("--seconds", type=float, default=100.0, help="of processor time, for each mechanism")
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--frames", type=int, default=81)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--docs", type=Path, default=Path("docs/studies"), help="where the figures go")
    options = parser.parse_args()
    tasks = [(name, False, options) for name, kind in ATTENTIONS.items() if kind.capabilities.bidirectional]
    tasks += [(name, True, options) for name, kind in ATTENTIONS.items() if kind.capabilities.streaming]
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        rows = pool.map(measure_row, tasks, chunksize=1)
    print(table(rows))
    settings = {key: value for key, value in vars(options).items() if key not in ("docs", "mocap", "workers")}
    figures = settings | {"rows": [asdict(row) for row in rows]}
    (options.docs / "attention-ablation.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
