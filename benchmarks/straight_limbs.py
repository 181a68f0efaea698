"""What a person's own clip says of straight limbs: rules that shorten thigh and shank, or both bones of the arm.

    python benchmarks/straight_limbs.py --mocap cmu.npz,ui-prmd.npz [--part test] [--every 2]

All put a person on one body (`pose.structures.refine`) and differ in what they take for a straight limb:

- `constant bones`: nothing.
- `in line`: `pose.structures.refine.refine`; legs that are straight in the image.
- `longest`: the longest that limbs of a clip appear, the 90th or 95th percentile of hip to ankle (shoulder to wrist)
  over the frames in which the three joints are seen. Where that is a bend of less than 25 degrees, it is taken for 3
  degrees at the knee and 5 at the elbow. A limb that is always bent further is left alone.

Hips, ankles, shoulders and wrists stay, the middle joint goes where the shorter bones meet. Sequences are those of the
accuracy table, at most ten seconds each. A stream's answers are put on the body of the whole sequence: what is known
while it goes on can only be less.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.synthesis import evaluation_batches
from pose_datasets.training import is_ui_prmd

from pose.lifting.model import LifterNetwork
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.camera import Camera
from pose.structures.refine import bone_lengths, constant_bones, refine
from pose.structures.sequences import LiftBatch, Sequence2D, Sequence3D
from pose.structures.skeletons import H36M17
from pose.structures.two_bones import place_middle, reach
from pose.structures.types import F32
from pose.training.evaluation import metrics
from pose.training.evaluation.angles import LIMBS, AngleErrors, flexion
from pose.training.measure import lift_batch

ANY_CAMERA = Camera.of((1, 1))  # refinement does not look at it
SURE = 0.5  # least score of the three joints
ENOUGH = 20  # limbs of both sides
MOST_BENT = 25.0  # degrees at the longest, beyond which a person may sit
STRAIGHT = {"knee": 3.0, "elbow": 5.0}  # degrees of flexion of a straight limb
LEAST = 0.9  # bones do not get shorter than by this

Rule = Callable[[Sequence3D, Sequence2D], F32]


def longest(joint: str, percentile: float) -> Rule:
    """The rule of that name for knees or elbows: joints (T, 17, 3) m of a motion and its 2D."""
    names = LIMBS[joint]
    limbs = [tuple(H36M17.names.index(f"{side}_{part}") for part in names) for side in ("right", "left")]

    def rule(lifted: Sequence3D, seen: Sequence2D) -> F32:
        bones, joints = bone_lengths(lifted), constant_bones(lifted).joints
        near, far = (float(bones[H36M17.edges.index(edge)]) for edge in pairwise(limbs[0]))  # equal on both sides
        apart = [
            np.linalg.norm(joints[:, limb[2]] - joints[:, limb[0]], axis=-1)[seen.scores[:, limb].min(axis=1) > SURE]
            for limb in limbs
        ]
        found = np.concatenate(apart)
        if len(found) < ENOUGH:
            return joints
        stretched = float(np.percentile(found, percentile))
        if stretched < reach(near, far, MOST_BENT):
            return joints
        factor = float(np.clip(stretched / reach(near, far, STRAIGHT[joint]), LEAST, 1))
        exact = joints.astype(np.float64)
        if factor < 1:
            for start, middle, end in limbs:
                place_middle(exact, (start, middle, end), (factor * near, factor * far))
        return exact.astype(np.float32)

    return rule


RULES: dict[str, Rule] = {
    "as lifted": lambda lifted, seen: lifted.joints,
    "constant bones": lambda lifted, seen: constant_bones(lifted).joints,
    "in line": lambda lifted, seen: refine(lifted, seen).joints,
    "longest leg, 90th": longest("knee", 90),
    "longest leg, 95th": longest("knee", 95),
    "longest arm, 90th": longest("elbow", 90),
    "longest arm, 95th": longest("elbow", 95),
}


@dataclass
class Row:
    """Errors of one rule in one set."""

    position: list[NDArray[np.floating]] = field(default_factory=list)
    aligned: list[NDArray[np.floating]] = field(default_factory=list)
    angles: AngleErrors = field(default_factory=AngleErrors)

    def add(self, joints: F32, true: F32) -> None:
        self.position.append(metrics.position_errors(joints, true))
        self.aligned.append(metrics.aligned_errors(joints, true))
        self.angles.add(joints, true)

    def cells(self) -> str:
        mean, aligned = (float(np.concatenate(part).mean()) for part in (self.position, self.aligned))
        angles = self.angles.table()
        bins = [" ".join("-" if one["bias"] is None else f"{one['bias']:+.0f}" for one in angles[j]) for j in LIMBS]
        return " | ".join([f"{mean:.1f} / {aligned:.1f}", *bins])


def pieces(network: LifterNetwork, batches: Iterable[LiftBatch]) -> Iterator[tuple[Sequence3D, Sequence2D, F32]]:
    """For each sequence the lifted motion, its 2D and the true joints (T, 17, 3) m."""
    for batch in batches:
        answer = lift_batch(network, batch)
        for i, valid in enumerate(batch.valid):
            joints, root, sigma = (part[i].numpy()[valid] for part in (answer.joints, answer.root, answer.sigma))
            times = batch.times[i][valid]
            seen = Sequence2D(batch.keypoints[i][valid], batch.scores[i][valid], times, ANY_CAMERA, "h36m17")
            yield Sequence3D(joints, root, sigma, times), seen, batch.joints[i][valid]


def table(lifter: str, clips: list[Clip]) -> Iterator[str]:
    """The rows of one lifter, for each laboratory and condition one a rule."""
    network = TorchLifter.load(lifter).network
    for name, ours in (("CMU", False), ("UI-PRMD", True)):
        people = [clip for clip in clips if is_ui_prmd(clip) == ours]
        for condition, label in (("gt", "exact"), ("detector", "a detector's")):
            found = {rule: Row() for rule in RULES}
            for lifted, seen, true in pieces(network, evaluation_batches(people, condition=condition)):
                for rule, row in found.items():
                    row.add(RULES[rule](lifted, seen), true)
            for rule, row in found.items():
                yield f"| {lifter} | {name}, {label} | {rule} | {row.cells()} |"


def straightest(clips: list[Clip]) -> str:
    """How straight people's knees are at their straightest: the 10th percentile of each sequence's true flexion."""
    batches = evaluation_batches(clips, condition="gt")
    tenth = [
        np.nanpercentile(flexion(batch.joints[i][valid], "knee"), 10)
        for batch in batches
        for i, valid in enumerate(batch.valid)
    ]
    low, middle, high = np.percentile(tenth, (25, 50, 75))
    return f"{middle:.0f} degrees in the median of {len(tenth)} sequences, quartiles {low:.0f} and {high:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--part", default="test", help="train, validation or test")
    parser.add_argument("--every", type=int, default=1, help="only every n-th clip")
    parser.add_argument("--lifters", nargs="+", default=["offline", "stream"], help="names or checkpoints")
    options = parser.parse_args()
    clips = split([clip for path in options.mocap.split(",") for clip in load_clips(Path(path))], options.part)
    clips = clips[:: options.every]
    for name, ours in (("CMU", False), ("UI-PRMD", True)):
        people = [clip for clip in clips if is_ui_prmd(clip) == ours]
        print(f"{name}, true knees at their straightest: {straightest(people)}")
    print("| lifter | 2D | rule | MPJPE / P-MPJPE, mm | knee, bias by true angle | elbow |\n|---|---|---|---|---|---|")
    for lifter in options.lifters:
        for row in table(lifter, clips):
            print(row, flush=True)


if __name__ == "__main__":
    main()
