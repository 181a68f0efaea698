"""How good is 3D from one frame alone, and is its uncertainty honest? The figure behind `pose-run --stills`.

    python benchmarks/single_frames.py --mocap cmu.npz,ui-prmd.npz

The shipped offline lifter on the test subjects (in no training batch), first with whole sequences, then with each frame
(every tenth) as all it sees. "inside": the share of joints within their sigma, which should be 68 %. "factor": what all
sigmas must be multiplied by for that.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from pose_datasets.synthesis import SynthesisConfig, evaluation_batches
from pose_datasets.training import MocapConfig, MocapSource, is_ui_prmd

from pose.lifting.torch_lifter import TorchLifter
from pose.structures.sequences import LiftBatch
from pose.training.measure import SIGMA_COVERAGE, lift_batch

STEP = 10
WHOLE = ("derived", "intrinsics", "intrinsics_known", "image_size")  # of a sequence, not of its frames


def frames_alone(batches: Iterable[LiftBatch]) -> Iterator[LiftBatch]:
    """Every `STEP`th frame as a sequence of its own."""
    for batch in batches:
        keep = batch.valid[:, ::STEP].reshape(-1)
        length = batch.valid[:, ::STEP].shape[1]
        values = {}
        for name in batch.__dataclass_fields__:
            array = getattr(batch, name)
            array = (
                np.repeat(array, length, axis=0) if name in WHOLE else array[:, ::STEP].reshape(-1, 1, *array.shape[2:])
            )
            values[name] = array[keep]
        yield replace(batch, **values)


def measured(lifter: TorchLifter, batches: Iterable[LiftBatch]) -> str:
    errors, ratios = [], []
    for batch in batches:
        lifted = lift_batch(lifter.network, batch)
        distance = np.linalg.norm(lifted.joints.numpy() - batch.joints, axis=-1)[..., 1:]
        sigma = lifted.sigma.numpy()[..., 1:]
        errors.append(distance[batch.valid].ravel())
        ratios.append((1000 * distance / sigma)[batch.valid].ravel())
    error, ratio = np.concatenate(errors), np.concatenate(ratios)
    inside, factor = (ratio < 1).mean(), np.quantile(ratio, SIGMA_COVERAGE)
    return f"MPJPE {1000 * error.mean() * 16 / 17:.1f} mm, inside {100 * inside:.0f} %, factor {factor:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--lifter", default="offline")
    options = parser.parse_args()
    source = MocapSource(MocapConfig(mocap=options.mocap, synthesis=SynthesisConfig()), seed=0)
    lifter = TorchLifter.load(options.lifter)
    for name, wanted in (("cmu", False), ("ui-prmd", True)):
        clips = [clip for clip in source.clips("test") if is_ui_prmd(clip) == wanted]
        for condition in ("gt", "detector"):
            whole = evaluation_batches(clips, condition=condition)
            alone = frames_alone(evaluation_batches(clips, condition=condition))
            print(f"{name:8s} {condition:9s} sequences: {measured(lifter, whole)}", flush=True)
            print(f"{name:8s} {condition:9s} frames:    {measured(lifter, alone)}", flush=True)


if __name__ == "__main__":
    main()
