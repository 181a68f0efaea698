"""Errors of offline lifters by laboratory, with the bias of elbows and knees in bins of 30 degrees.

    python benchmarks/laboratories.py --mocap cmu.npz,ui-prmd.npz,snu.npz --lifters offline runs/wide/final.safetensors

Test subjects of CMU and UI-PRMD, the two test sessions of SNU (basketball, table tennis), and with `--others` all
people of other files, such as what `pose-prepare markers` wrote. Cameras and sequences are the same for all lifters.
Conditions are those of `lifter_accuracy.py`; `--chest-height` takes cameras at chest height in place of random ones.
`half:A,B` is a lifter with the mean of two checkpoints' weights.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from pose_datasets.filming import FilmConfig
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.synthesis import SynthesisConfig, evaluation_batches, hard_batches

from pose.lifting.model import LifterNetwork
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.sequences import LiftBatch
from pose.training.evaluation import metrics
from pose.training.evaluation.angles import LIMBS, flexion
from pose.training.measure import lift_batch

BINS = np.arange(0, 181, 30)


def load(name: str) -> LifterNetwork:
    """A lifter's network by name or checkpoint, or the mean of two."""
    if not name.startswith("half:"):
        return TorchLifter.load(name).network
    first, second = (TorchLifter.load(part).network for part in name.removeprefix("half:").split(","))
    weights = {key: value.lerp(second.state_dict()[key], 0.5) for key, value in first.state_dict().items()}
    first.load_state_dict(weights)
    return first


def sets(
    clips: list[Clip], others: list[Clip], part: str, config: SynthesisConfig
) -> Iterator[tuple[str, Iterable[LiftBatch]]]:
    """Fixed sequences by laboratory and condition."""
    tested = split(clips, part)
    groups = {
        name: [
            clip
            for clip in tested
            if clip.subject.partition("-")[0] in prefixes or (name == "CMU" and "-" not in clip.subject)
        ]
        for name, prefixes in (("CMU", ()), ("UI-PRMD", ("uiprmd",)), ("SNU", ("snu",)))
    } | {"others": others}
    for name, group in groups.items():
        for condition in ("gt", "detector") if group else ():
            yield f"{name} {condition}", evaluation_batches(group, condition=condition, config=config)
    if groups["CMU"]:
        yield "CMU hard", hard_batches(groups["CMU"], condition="gt", count=4, config=config)


def row(network: LifterNetwork, batches: Iterable[LiftBatch]) -> str:
    """MPJPE / P-MPJPE in mm, the share inside sigma, and the biases in degrees, as cells of a table."""
    position, aligned, inside = [], [], []
    angles: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {joint: [] for joint in LIMBS}
    for batch in batches:
        found, valid = lift_batch(network, batch), batch.valid
        joints, true = found.joints.numpy()[valid], batch.joints[valid]
        errors = metrics.position_errors(joints, true)
        position.append(errors)
        aligned.append(metrics.aligned_errors(joints, true))
        inside.append((errors < found.sigma.numpy()[valid])[:, 1:])
        for joint, pairs in angles.items():
            pairs.append((flexion(true, joint).ravel(), flexion(joints, joint).ravel()))
    means = [float(np.concatenate(part).mean()) for part in (position, aligned, inside)]
    biases = []
    for joint in ("elbow", "knee"):
        true, given = (np.concatenate(part) for part in zip(*angles[joint], strict=True))
        off, places = given - true, np.digitize(true, BINS) - 1
        of_bins = [off[(places == index) & np.isfinite(off)] for index in range(len(BINS) - 1)]
        biases.append(" ".join(f"{one.mean():+.0f}" if len(one) >= 100 else "-" for one in of_bins))
    return f"{means[0]:.1f} / {means[1]:.1f} | {100 * means[2]:.0f} % | {' | '.join(biases)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--others", type=Path, help="clips of people who are all tested")
    parser.add_argument("--part", default="test", choices=("validation", "test"))
    parser.add_argument("--chest-height", action="store_true", help="cameras at chest height, as in MPI-INF-3DHP")
    parser.add_argument("--every", type=int, default=1, help="only every n-th clip")
    parser.add_argument("--lifters", nargs="+", default=["offline"], help="names, checkpoints or half:A,B")
    options = parser.parse_args()
    clips = [clip for path in options.mocap.split(",") for clip in load_clips(Path(path))]
    others = load_clips(options.others) if options.others else []
    config = SynthesisConfig(film=FilmConfig(chest_height=options.chest_height))
    print("| 2D | lifter | MPJPE / P-MPJPE | inside sigma | elbow | knee |\n|---|---|---|---|---|---|")
    for name, batches in sets(clips[:: options.every], others, options.part, config):
        kept = list(batches)
        for lifter in options.lifters:
            print(f"| {name} | {lifter} | {row(load(lifter), kept)} |", flush=True)


if __name__ == "__main__":
    main()
