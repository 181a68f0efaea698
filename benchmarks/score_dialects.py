"""What other scores change in the answers of the shipped lifters: by every change that should not matter, and by the
dialects of known networks.

    python benchmarks/score_dialects.py --mocap clips.npz [--offline CHECKPOINT --stream CHECKPOINT] [--out FILE.json]
    python benchmarks/score_dialects.py --measure blazepose --shared ../shared

On every fourth clip of the test subjects, 30 frames a second: the error with the scores as they are and in each dialect
(MPJPE), and how far joints move between the two (mm, mean). `--measure` prints the quantiles of the scores that a
network gives on three clips, which `pose_datasets.dialects` holds.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pose_datasets.dialects import CHANGES, NETWORKS, Dialect, apply_dialect_to_batches
from pose_datasets.synthesis import evaluation_batches
from pose_datasets.training import MocapConfig, MocapSource

from pose.lifting.model import LifterNetwork
from pose.lifting.torch_lifter import TorchLifter
from pose.pipeline import Pipeline
from pose.structures.sequences import LiftBatch
from pose.training.measure import lift_batch

CLIPS = ("dance.mp4", "squats.mp4", "walk-by.mp4")
LEVELS = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
FRAMES = 150  # of each clip


def measured_quantiles(estimator: str, shared: Path) -> list[float]:
    """Of all scores above 0 that a network gives in three clips, at `LEVELS`."""
    scores = []
    for clip in CLIPS:
        pipeline = Pipeline.from_preset("fast", estimator=estimator, max_people=1)
        results = zip(range(FRAMES), pipeline.run(str(shared / "videos" / clip)), strict=False)
        scores += [result.people.scores.ravel() for _, result in results]
    joined = np.concatenate(scores)
    return [round(float(value), 3) for value in np.quantile(joined[joined > 0], LEVELS)]


def compared(network: LifterNetwork, batches: list[LiftBatch], dialect: Dialect) -> tuple[float, float]:
    """(MPJPE in the dialect, mean distance of the joints from those with the scores as they are), mm."""
    errors, moves = [], []
    for batch, said in zip(batches, apply_dialect_to_batches(iter(batches), dialect), strict=True):
        plain, other = (lift_batch(network, one).joints.numpy()[batch.valid] for one in (batch, said))
        errors.append(np.linalg.norm(other - batch.joints[batch.valid], axis=-1))
        moves.append(np.linalg.norm(other - plain, axis=-1))
    return 1000 * float(np.concatenate(errors).mean()), 1000 * float(np.concatenate(moves).mean())


def table(name: str, network: LifterNetwork, batches: list[LiftBatch]) -> Iterator[tuple[str, dict[str, float]]]:
    for kind, dialect in {"as they are": lambda scores: scores, **CHANGES, **NETWORKS}.items():
        error, moved = compared(network, batches, dialect)
        print(f"{name:8s} {kind:18s} MPJPE {error:6.1f} mm, joints move {moved:5.1f} mm", flush=True)
        yield kind, {"mpjpe": round(error, 2), "moved": round(moved, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--offline", default="offline")
    parser.add_argument("--stream", default="stream")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", metavar="ESTIMATOR")
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    options = parser.parse_args()
    if options.measure:
        print(measured_quantiles(options.measure, options.shared))
        return
    clips = MocapSource(MocapConfig(mocap=options.mocap), seed=0).clips("test")[::4]
    figures: dict[str, Any] = {}
    for condition in ("gt", "detector"):
        batches = list(evaluation_batches(clips, condition=condition))
        for name in ("offline", "stream"):
            network = TorchLifter.load(getattr(options, name)).network
            print(f"{condition}:")
            figures[f"{name}, {condition}"] = dict(table(name, network, batches))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
