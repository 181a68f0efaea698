"""Limbs with a middle joint that the 2D puts in the middle of the upper bone: what the check of limbs finds of them.

    python benchmarks/limb_consistency.py --mocap cmu.npz ui-prmd.npz [--part test] [--every 3] [--seed 9]

Pieces of motion capture are seen by fixed virtual cameras with a detector's errors and lifted twice: as they are, and
with the knee or elbow of a random limb at half the upper bone in every frame. Printed for legs and arms: flagged frames
of healthy limbs, displaced limbs that are flagged, and displaced joints within sigma in flagged frames, with each piece
counting alike. docs/studies/world.md quotes them.
"""

import argparse
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pose_datasets.fixed_views import FixedView, fixed_views
from pose_datasets.mocap import load_clips, split

from pose.lifting.load import load_lifter
from pose.lifting.repair.person import repair
from pose.structures.refine import assembled, lengths_of, refine
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import COCO17, H36M17, LIMBS
from pose.structures.types import F64
from pose.world.consistency import check_limbs
from pose.world.person import Person, person_of
from pose.world.rules import RULES

SHARE = 0.5  # of the upper bone, where the displaced joint is seen
DRAWN = ("left_leg", "right_leg", "left_leg", "right_leg", "left_arm", "right_arm")
FACTORS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the displacement, added to sigma
FOUND = 0.3  # share of the frames of a piece


@dataclass(frozen=True, slots=True)
class Piece:
    """limb: that was displaced. healthy: (4,) share of flagged frames of each limb, undisturbed. found: share of the
    flagged frames of the displaced limb. covered: (2, F) share of its flagged frames in which the middle and the end
    joint are within sigma, for each of `FACTORS`; None where nothing is flagged.
    """

    limb: str
    healthy: F64
    found: float
    covered: F64 | None


def displaced(seen: Sequence2D, limb: str) -> Sequence2D:
    """The same person with the middle joint of a limb at `SHARE` of the upper bone."""
    first, middle, _ = (COCO17.index(joint) for joint in LIMBS[limb])
    keypoints = seen.keypoints.copy()
    keypoints[:, middle] = keypoints[:, first] + SHARE * (keypoints[:, middle] - keypoints[:, first])
    return replace(seen, keypoints=keypoints)


def lifted(network: object, seen: Sequence2D) -> Person:
    """A person with constant bones."""
    mended = repair(seen)
    person = person_of(refine(network.lift(mended), mended), seen)  # type: ignore[attr-defined]
    return replace(person, joints=assembled(person.joints, lengths_of(person.joints, person.sigma)))


def piece(network: object, view: FixedView, limb: str) -> Piece:
    """Both runs of one view."""
    rules = replace(RULES.consistency, leg_sigma_share=1.0, arm_sigma_share=1.0)
    healthy, _ = check_limbs(lifted(network, view.seen), rules)
    person = lifted(network, displaced(view.seen, limb))
    flags, moved = check_limbs(person, rules)
    flagged = flags[:, list(LIMBS).index(limb)]
    if not flagged.any():
        return Piece(limb, healthy.mean(axis=0), 0.0, None)
    truth = view.camera_joints - view.camera_joints[:, :1]
    error = 1000 * np.linalg.norm(person.joints - person.joints[:, :1] - truth, axis=-1)
    covered = np.empty((2, len(FACTORS)))
    for row, joint in enumerate(H36M17.index(name) for name in LIMBS[limb][1:]):
        for column, factor in enumerate(FACTORS):
            sigma = np.hypot(person.sigma[flagged, joint], factor * moved[flagged, joint])
            covered[row, column] = (error[flagged, joint] <= sigma).mean()
    return Piece(limb, healthy.mean(axis=0), float(flagged.mean()), covered)


def percent(value: float | np.floating) -> str:
    return f"{100 * float(value):.0f} %"


def row(kind: str, pieces: list[Piece]) -> str:
    """Of legs or arms."""
    limbs = [index for index, name in enumerate(LIMBS) if name.endswith(kind)]
    own = [one for one in pieces if one.limb.endswith(kind)]
    healthy = 100 * np.mean([one.healthy[limbs].mean() for one in pieces])
    found = [one.found for one in own]
    covered: NDArray[np.float64] = np.mean([one.covered for one in own if one.covered is not None], axis=0)
    cells = [f"{healthy:.2f} %", f"{percent(np.mean(np.array(found) > FOUND))} of {len(own)}", percent(np.mean(found))]
    cells += [f"{percent(middle)}, {percent(end)}" for middle, end in covered.T]
    return f"| {kind}s | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", type=Path, nargs="+", required=True)
    parser.add_argument("--part", default="test")
    parser.add_argument("--every", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="of the pieces")
    parser.add_argument("--seed", type=int, default=9)
    options = parser.parse_args()
    rng, network = np.random.default_rng(options.seed), load_lifter("offline", "cpu")
    pieces: list[Piece] = []
    for path in options.mocap:
        views = fixed_views(split(load_clips(path), options.part), detector=True)[options.first :: options.every]
        pieces += [piece(network, view, rng.choice(DRAWN)) for view in views]
    count: dict[str, int] = defaultdict(int)
    for one in pieces:
        count[one.limb] += 1
    print(f"{len(pieces)} pieces: {dict(count)}; middle and end joint within sigma, by factor of the displacement")
    print("| | healthy, flagged | displaced, found | flagged | " + " | ".join(map(str, FACTORS)) + " |")
    print("|---" * (4 + len(FACTORS)) + "|")
    for kind in ("leg", "arm"):
        print(row(kind, pieces), flush=True)


if __name__ == "__main__":
    main()
