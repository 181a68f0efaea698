"""What the error of the shipped lifters consists of: the person's size, their orientation, their shape.

    python benchmarks/error_parts.py --mocap cmu.npz,ui-prmd.npz [--every 2]

The test sets are those of benchmarks/lifter_accuracy.py. Each figure is the mean joint error (mm, root-relative) after
the truth has corrected the answer, about the pelvis:

- `MPJPE`: by nothing.
- `size`: by one factor for the sequence. This is what the person's height is worth (`--height`), which no single camera
  can see.
- `turn`: by one factor and one rotation for the sequence: what is known of how the person leans and faces besides.
- `P-MPJPE`: by the best similarity of every frame: shape alone.

`factor` is the mean of the factors, and their spread over sequences: people come out too large where it is below 1.
"""

import argparse
from collections.abc import Iterable, Iterator

import numpy as np
from lifter_accuracy import test_sets
from numpy.typing import NDArray
from pose_datasets.synthesis import SynthesisConfig
from pose_datasets.training import MocapConfig, MocapSource

from pose.lifting.model import LifterNetwork
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.alignment import best_rotation, fit_scale
from pose.structures.sequences import LiftBatch
from pose.training.evaluation import metrics
from pose.training.measure import lift_batch

F64 = NDArray[np.float64]


def sequences(network: LifterNetwork, batches: Iterable[LiftBatch]) -> Iterator[tuple[F64, F64]]:
    """What is answered for each sequence and what is true, (T, 17, 3) m each, root-relative."""
    for batch in batches:
        joints = lift_batch(network, batch).joints.numpy()
        for pred, true, valid in zip(joints, batch.joints, batch.valid, strict=True):
            yield metrics.root_relative(pred[valid].astype(float)), metrics.root_relative(true[valid].astype(float))


def parts(pred: F64, true: F64) -> tuple[list[F64], float]:
    """Errors (T, 17) of one sequence as it is, with its size, with its turn, aligned; and the factor of its size."""
    every, truth = pred.reshape(-1, 3), true.reshape(-1, 3)
    factor = float(fit_scale(every, truth))
    turned = every @ best_rotation(every.T @ truth)
    turned = (fit_scale(turned, truth) * turned).reshape(pred.shape)
    errors = [metrics.position_errors(corrected, true) for corrected in (pred, factor * pred, turned)]
    return [*errors, metrics.aligned_errors(pred, true)], factor


def row(network: LifterNetwork, batches: Iterable[LiftBatch]) -> str:
    errors, factors = zip(*(parts(*sequence) for sequence in sequences(network, batches)), strict=True)
    means = [np.concatenate(column).mean() for column in zip(*errors, strict=True)]
    return " | ".join([*(f"{mean:.1f}" for mean in means), f"{np.mean(factors):.3f} ± {np.std(factors):.3f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--every", type=int, default=1, help="every how manieth batch of a set is measured")
    options = parser.parse_args()
    source = MocapSource(MocapConfig(mocap=options.mocap, synthesis=SynthesisConfig()), seed=0)
    print("| | MPJPE | size | turn | P-MPJPE | factor |\n|---|---|---|---|---|---|")
    for name in ("offline", "stream"):
        network = TorchLifter.load(name).network
        for condition, batches in test_sets(source):
            chosen = (batch for n, batch in enumerate(batches) if n % options.every == 0)
            print(f"| {name}, {condition} | {row(network, chosen)} |", flush=True)


if __name__ == "__main__":
    main()
