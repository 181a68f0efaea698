"""Accuracy of the shipped lifters on the test subjects, beside a mean pose and a single-frame MLP of the same data.

    python -m benchmarks.lifter accuracy --mocap cmu.npz,ui-prmd.npz --out docs/studies/lifter-accuracy.json

The test subjects were in no training batch; cameras are random but fixed, 30 frames a second. `ui-prmd gt` and
`ui-prmd detector`: people of another laboratory, exact 2D and a detector's skeleton with its errors. The others are
people of the CMU database. `gt`: the exact 2D of the 17 joints. `white`: the same with white noise of 5 px in a
image 1000 px wide. `noisy`: with a detector's errors instead. `detector`: a detector's skeleton with its errors.
`hard`: exact 2D of the test people in strongly changed poses. The MLP sees one frame through the same features, is
trained on the same batches with the same loss, and answers through the same geometry: what it lacks is time.

`cards` makes the model cards, the tables of docs/studies/lifter.md and their plot from the result; `tables` has tables
by body, frame rate and camera.
"""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pose_datasets.mocap import Clip
from pose_datasets.synthesis import SynthesisConfig, evaluation_batches, hard_batches
from pose_datasets.training import MocapConfig, MocapSource, is_ui_prmd
from torch import Tensor, nn
from tqdm import tqdm

import pose.training.research  # noqa: F401  adds the single-frame MLP
from benchmarks.common.views import add_mocap, minutes
from pose.lifting.config import LifterConfig
from pose.lifting.features import Lifted, LifterInput
from pose.lifting.model import LifterNetwork
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.sequences import LiftBatch
from pose.training.config import LossWeights
from pose.training.evaluation.metrics import AngleErrors
from pose.training.measure import measure
from pose.training.trainer import batch_loss

WHITE = 0.005  # standard deviation of white noise in each axis, of the image's width
LOOKAHEADS = (0, 4, 13, 40)
MLP_STEPS = 3000
MLP = LifterConfig(model="mlp", dim=512, depth=3)


class MeanPose(nn.Module):
    """The mean of all training poses, whatever is seen."""

    config = LifterConfig()  # an offline one: measured as the offline lifter is

    def __init__(self, source: MocapSource) -> None:
        super().__init__()
        joints = torch.cat([torch.from_numpy(source.batch(step).joints).flatten(0, 1) for step in range(20)])
        self.pose = joints.mean(dim=0)

    def forward(self, observations: LifterInput, times: Tensor, lookahead: int = 0) -> Lifted:
        b, t = times.shape
        return Lifted(self.pose.expand(b, t, 17, 3), torch.zeros(b, t, 3), torch.full((b, t, 17), 1000.0))


def train_mlp(source: MocapSource, steps: int) -> LifterNetwork:
    """With the loss of the lifter, AdamW and a cosine schedule."""
    torch.manual_seed(0)
    network = LifterNetwork(MLP)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in tqdm(range(steps), desc="single-frame MLP", disable=None):
        loss, _ = batch_loss(network, source.batch(step), 0, LossWeights(), torch.device("cpu"))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return network.eval()


def with_white_noise(batches: Iterable[LiftBatch]) -> Iterator[LiftBatch]:
    """Noise that no frame shares with the next, in joints that are all seen, with scores that say nothing of it."""
    rng = np.random.default_rng(0)
    for batch in batches:
        noise = rng.standard_normal(batch.keypoints.shape, dtype=np.float32)
        pixels = WHITE * np.asarray(batch.image_size, np.float32)[:, None, None, :1]
        yield replace(batch, keypoints=batch.keypoints + noise * pixels)


def test_sets(source: MocapSource) -> Iterator[tuple[str, Iterable[LiftBatch]]]:
    clips = [clip for clip in source.clips("test") if not is_ui_prmd(clip)]
    others = [clip for clip in source.clips("test") if is_ui_prmd(clip)]
    for condition in ("gt", "detector"):
        yield f"ui-prmd {condition}", evaluation_batches(others, condition=condition)
    yield "gt", evaluation_batches(clips, condition="gt")
    yield "white", with_white_noise(evaluation_batches(clips, condition="gt"))
    for condition in ("noisy", "detector"):
        yield condition, evaluation_batches(clips, condition=condition)
    yield "hard", hard_batches(clips, condition="gt", count=4)


def measured(name: str, network: nn.Module, source: MocapSource, lookahead: int = 0) -> dict[str, dict[str, Any]]:
    """Condition -> the fields of `Figures`, and `angles`, the errors of knees and elbows by true angle."""
    rows = {}
    for condition, batches in test_sets(source):
        angles = AngleErrors()
        figures = measure(network, batches, lookahead, angles)
        rows[condition] = asdict(figures) | {"angles": angles.table()}
        print(f"{name:24s} {condition:9s} {figures}", flush=True)
    return rows


def contents(clips: list[Clip]) -> dict[str, Any]:
    """The amount of motion per subject."""
    subjects = sorted({clip.subject for clip in clips})
    return {"subjects": subjects, "clips": len(clips), "minutes": round(minutes(clips), 1)}


def add_options(parser: ArgumentParser) -> None:
    add_mocap(parser, part=False)
    parser.add_argument("--out", default=Path("accuracy.json"), type=Path)
    parser.add_argument("--offline", default="offline", help="offline lifter: a name or a checkpoint")
    parser.add_argument("--stream", default="stream", help="streaming lifter: a name or a checkpoint")
    parser.add_argument("--mlp-steps", type=int, default=MLP_STEPS)


def main(given: Namespace) -> None:
    source = MocapSource(MocapConfig(mocap=given.mocap, synthesis=SynthesisConfig()), seed=0)
    figures = {"mean pose": measured("mean pose", MeanPose(source), source)}
    offline, stream = TorchLifter.load(given.offline), TorchLifter.load(given.stream)
    figures["offline"] = measured("offline", offline.network, source)
    for lookahead in LOOKAHEADS:
        name = f"stream, look-ahead {lookahead}"
        figures[name] = measured(name, stream.network, source, lookahead)
    figures["single-frame MLP"] = measured("single-frame MLP", train_mlp(source, given.mlp_steps), source)
    results = {
        "data": {part: contents(source.clips(part)) for part in ("train", "validation", "test")},
        "sha256": {"offline": offline.sha256, "stream": stream.sha256},
        "figures": figures,
    }
    given.out.write_text(json.dumps(results, indent=1) + "\n")
