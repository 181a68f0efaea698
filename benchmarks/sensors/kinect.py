"""Errors of Kinect skeletons before and after correction, on the people of UI-PRMD left out of training.

    python -m benchmarks.sensors kinect --pairs pairs.npz --mocap cmu.npz,ui-prmd.npz

Rows: the raw skeleton; a zero-phase Butterworth filter at the cut-off frequency with the least position error on these
very people; the same after the mean offset of each joint on the training people is subtracted; a small MLP over time
with losses of position and acceleration, the idea of SmoothNet (Zeng et al., ECCV 2022), on the same batches; the
sensor network. `--part validation` shows the people on whom choices were made.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from pose_datasets.kinect import Pair, load_pairs
from pose_datasets.sensor_training import SensorDataConfig, SensorSource, definitions, pair_batches, pairs_of_part
from torch import Tensor, nn

from benchmarks.common.views import add_mocap
from pose.body.sensors.kinect import FPS
from pose.lifting.sensor.features import filled_gaps, heading
from pose.lifting.sensor.network import SENSOR
from pose.structures.smooth import zero_phase
from pose.structures.types import F64
from pose.training.sensor import SensorErrors, corrected, errors_of

CUTOFFS_HZ = (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
WINDOW = 32  # frames of SmoothNet


class SmoothMlp(nn.Module):
    """Residual MLP over the frames of a window, the same for each coordinate."""

    def __init__(self, hidden: int = 256) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(WINDOW, hidden), nn.Linear(hidden, WINDOW)
        self.middle = nn.ModuleList(nn.Sequential(nn.Linear(hidden, hidden), nn.LeakyReLU(0.2)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """Return smooth coordinates (N, WINDOW) of noisy ones."""
        y = nn.functional.leaky_relu(self.into(x), 0.2)
        for layer in self.middle:
            y = y + layer(y)
        return x + self.out(y)


def train_mlp(source: SensorSource, steps: int) -> SmoothMlp:
    """Train on the batches of the sensor network: joints about the pelvis, gaps interpolated."""
    torch.manual_seed(0)
    network = SmoothMlp()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    done = number = 0
    while done < steps:
        batch = source.batch(number)
        number += 1
        if batch.times.shape[1] < WINDOW:
            continue
        noisy = filled_gaps(batch.sensor, np.ones(batch.sensor.shape[:3]), batch.times)
        given, truth = (
            torch.from_numpy((joints - joints[:, :, :1])[:, :WINDOW].reshape(len(joints), WINDOW, 51)).float()
            for joints in (noisy, batch.truth)
        )
        given, truth = (part.transpose(1, 2).reshape(-1, WINDOW) for part in (given, truth))
        error = network(given) - truth
        loss = error.abs().mean() + torch.diff(error, n=2, dim=-1).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        done += 1
    return network.eval()


@torch.inference_mode()
def smooth(network: SmoothMlp, joints: F64) -> F64:
    """Return joints (T, 17, 3) about the pelvis, the mean of all windows of each frame; short ones repeat their end."""
    about = (joints - joints[:, :1]).reshape(len(joints), -1)
    about = np.concatenate([about, np.repeat(about[-1:], max(0, WINDOW - len(about)), axis=0)])
    total, count = np.zeros_like(about), np.zeros((len(about), 1))
    for start in range(len(about) - WINDOW + 1):
        rows = slice(start, start + WINDOW)
        total[rows] += network(torch.from_numpy(about[rows].T.copy()).float()).numpy().T
        count[rows] += 1
    return (total / count)[: len(joints)].reshape(joints.shape)


def table(pairs: list[Pair], train: list[Pair], source: SensorSource, network: Path, steps: int) -> None:
    """Print the errors of each method."""
    mean, _ = definitions(train)

    def errors(method: Callable[[F64, F64], F64]) -> SensorErrors:
        found = []
        for pair in pairs:
            times = np.arange(len(pair.sensor)) / FPS
            found.append((method(pair.sensor.astype(np.float64), times), pair.truth.astype(np.float64), times))
        return errors_of(found)

    def moved(joints: F64) -> F64:
        return joints - mean @ heading(joints[None])[0]

    def filtered(prepared: Callable[[F64], F64], cutoff: float) -> SensorErrors:
        return errors(lambda joints, times: zero_phase(prepared(joints), times, cutoff))

    rows = [("raw", errors(lambda joints, times: joints))]
    for name, prepared in (("Butterworth", np.asarray), ("offsets and Butterworth", moved)):
        tried = {cutoff: filtered(prepared, cutoff) for cutoff in CUTOFFS_HZ}
        best = min(tried, key=lambda cutoff: tried[cutoff].position)
        rows.append((f"{name}, {best:g} Hz", tried[best]))
    if steps:
        mlp = train_mlp(source, steps)
        rows.append((f"MLP over time, {steps} steps", errors(lambda joints, times: smooth(mlp, joints))))
    loaded = SENSOR.load(network)
    found, inside = [], []
    for pair, batch in zip(pairs, pair_batches(pairs), strict=True):
        joints, sigma = corrected(loaded, batch)
        found.append((joints[0], pair.truth.astype(np.float64), batch.times[0]))
        off = np.linalg.norm((joints - joints[:, :, :1] - batch.truth + batch.truth[:, :, :1])[0, :, 1:], axis=-1)
        inside.append(off < sigma[0, :, 1:])
    rows.append(("sensor network", errors_of(found)))
    print("| | position, mm | angle, degrees | velocity, m/s | acceleration, m/s2 | jitter, m/s3 |")
    print("|---|---|---|---|---|---|")
    for name, row in rows:
        values = (
            f"{row.position:.1f} | {row.angle:.1f} | {row.velocity:.3f} | {row.acceleration:.2f} | {row.jitter:.0f}"
        )
        print(f"| {name} | {values} |")
    print(f"inside one sigma: {np.concatenate(inside).mean():.0%}; {len(pairs)} recordings")


def add_options(parser: ArgumentParser) -> None:
    add_mocap(parser)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--network", type=Path, default=Path("runs/sensor/final.safetensors"))
    parser.add_argument("--smoothnet-steps", type=int, default=1000)


def main(given: Namespace) -> None:
    """Print the table."""
    torch.set_num_threads(1)
    source = SensorSource(SensorDataConfig(mocap=given.mocap, pairs=str(given.pairs), recorded=0.6, kinect=0.6), 1)
    pairs = load_pairs(given.pairs)
    train = pairs_of_part(pairs, "train")
    table(pairs_of_part(pairs, given.part), train, source, given.network, given.smoothnet_steps)
