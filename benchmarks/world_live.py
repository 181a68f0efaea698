"""People put into their world while they are seen, on motion capture seen by fixed virtual cameras:
docs/studies/world.md.

    python benchmarks/world_live.py --mocap cmu.npz --out docs/studies/world.md [--every 4] [--part train]

Pieces, cameras and measures are those of `benchmarks/world.py`. The streaming lifter answers every frame at once, as
live (`StreamLifter`, with its repair), and each answer is placed before the next frame is seen. Rows: what was lifted,
on the stage where it was drawn before there was a world live (`CausalWorld`); then with bones and depth; then with
One-Euro too, which is what is done by default. First frames count: the way to gravity and floor is in every number.

The second table says how the vertical, the height and the bones settle: medians and 90th percentiles over pieces. The
last line is the time that placing took, on one thread, of the pieces one after the other and of five people at once.
"""

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from detector_errors import publish
from numpy.typing import NDArray
from pose_datasets.fixed_views import FPS, FixedView, fixed_views
from pose_datasets.mocap import load_clips, split
from world import COLUMNS, Answer, cell, row, truth

from pose.lifting.load import load_lifter
from pose.lifting.predict import Lifter
from pose.lifting.stream import LifterStream, StreamLifter
from pose.structures.refine import lengths_of
from pose.structures.skeletons import get_skeleton
from pose.structures.types import FrameResult, People
from pose.training.evaluation.world import angle_between, bone_variation
from pose.world.clean import Steps
from pose.world.frame import LEVEL_UP
from pose.world.height import stature
from pose.world.live import LiveWorld
from pose.world.upright import CausalWorld

F64 = NDArray[np.float64]

VARIANTS = {"bones, depth": Steps(smooth=False), "all steps": Steps()}
MOMENTS = (0.5, 1.0, 2.0, 4.0, 8.0)  # s
TOGETHER = 5  # people


@dataclass(frozen=True, slots=True)
class Lived:
    """An answer, and what was known on the way: ups (T, 3), heights (T,) m, and the s that it took."""

    answer: Answer
    ups: F64
    heights: F64
    seconds: float


def lifted(view: FixedView, network: Lifter) -> list[FrameResult]:
    """The frames of a piece as they are answered live."""
    skeleton = get_skeleton(view.seen.skeleton)
    lifter = StreamLifter(LifterStream(network, skeleton, view.seen.camera), repair=True)
    box, one, results = np.zeros((1, 4), np.float32), np.ones(1, np.float32), []
    for index, when in enumerate(view.seen.times.tolist()):
        keypoints, scores = view.seen.keypoints[index][None], view.seen.scores[index][None]
        results += lifter.push(People(index, when, np.array([1]), box, one, keypoints, scores))
    return results


def placed(view: FixedView, results: list[FrameResult], steps: Steps) -> Lived:
    skeleton, world = get_skeleton(view.seen.skeleton), LiveWorld(view.seen.camera, steps)
    frames, ups, heights, begun = [], [], [], time.process_time()
    for result in results:
        frames.append(world.place(result, skeleton))
        ups.append(world.world.up)
        heights.append(world.heights[1][0])
    seconds = time.process_time() - begun
    camera = np.array([frame.poses.joints[0] + frame.poses.root[0] for frame in frames], np.float64)
    where = [frame.placed for frame in frames if frame.placed is not None]
    joints = np.array([one.joints[0] for one in where], np.float64)
    stands, sigma = np.array([one.contacts[0] > 0.5 for one in where]), np.array([one.root_sigma[0] for one in where])
    answer = Answer(view, camera, joints, ups[-1], stands, heights[-1], sigma.astype(np.float64))
    return Lived(answer, np.array(ups), np.array(heights), seconds)


def as_lifted(view: FixedView, results: list[FrameResult]) -> Answer:
    """On the stage that draws results without a world."""
    stage, joints = CausalWorld(), []
    for result in results:
        joints.append(stage.place([1], result.poses.joints, result.poses.root, result.time)[0])
    camera = np.array([result.poses.joints[0] + result.poses.root[0] for result in results], np.float64)
    turn, *_ = np.linalg.lstsq(camera[-1] - camera[-1, 0], joints[-1] - joints[-1][0], rcond=None)
    up = turn[:, 1] / np.linalg.norm(turn[:, 1])
    unknown = np.full(len(camera), np.nan)
    nothing = np.zeros((len(camera), 2), bool)
    return Answer(view, camera, np.array(joints), up, nothing, stature(own_bones(camera)), unknown)


def own_bones(joints: F64) -> F64:
    return lengths_of(joints, np.ones(joints.shape[:2])).astype(np.float64)


def settling(lived: list[Lived]) -> list[str]:
    """How errors fall in the first seconds."""
    head = " | ".join(["after s", "pieces", "gravity °", "90th", "height %", "90th", "bones ± mm in the second after"])
    lines = [f"| {head} |", "|---" * 7 + "|"]
    for moment in MOMENTS:
        at, gravity, height, breath = round(moment * FPS), [], [], []
        for one in lived:
            if at + round(FPS) >= len(one.ups):
                continue
            gravity.append(angle_between(one.ups[at], one.answer.view.up))
            true = stature(own_bones(one.answer.view.joints.astype(np.float64)))
            height.append(100 * abs(one.heights[at] / true - 1))
            breath.append(float(bone_variation(one.answer.camera[at : at + round(FPS)]).mean()))
        if not gravity:
            continue
        values = [np.median(gravity), np.percentile(gravity, 90), np.median(height), np.percentile(height, 90)]
        cells = [f"{moment:g}", str(len(gravity)), *(f"{value:.1f}" for value in values), f"{np.mean(breath):.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    level = np.median([angle_between(LEVEL_UP, one.answer.view.up) for one in lived])
    return [*lines, "", f"A level camera would be {level:.1f}° off (median)."]


def together(view: FixedView, results: list[FrameResult]) -> float:
    """ms a frame and person where several people are in the image."""
    skeleton, world = get_skeleton(view.seen.skeleton), LiveWorld(view.seen.camera)
    crowd = [_crowd(result) for result in results]
    begun = time.process_time()
    for result in crowd:
        world.place(result, skeleton)
    return 1e3 * (time.process_time() - begun) / len(crowd) / TOGETHER


def _crowd(result: FrameResult) -> FrameResult:
    """The same person several times, side by side."""
    rows, people, poses = np.zeros(TOGETHER, int), result.people, result.poses
    names = ("boxes", "box_scores", "keypoints", "scores")
    many = {name: getattr(people, name)[rows] for name in names}
    root = poses.root[rows] + np.arange(TOGETHER, dtype=np.float32)[:, None] * [1, 0, 0]
    return FrameResult(
        replace(people, ids=np.arange(TOGETHER), **many),
        replace(
            poses,
            joints=poses.joints[rows],
            root=root.astype(np.float32),
            sigma=poses.sigma[rows],
            swapped=poses.swapped[rows],
            ahead=poses.ahead[rows],
            seen_by=poses.seen_by[rows],
        ),
    )


def report(views: list[FixedView], network: Lifter) -> list[str]:
    pieces = [(view, lifted(view, network)) for view in views]
    rows = {
        "truth": row([truth(view) for view, _ in pieces]),
        "as lifted": row([as_lifted(view, results) for view, results in pieces]),
    }
    for name, steps in VARIANTS.items():
        lived = [placed(view, results, steps) for view, results in pieces]
        rows[name] = row([one.answer for one in lived])
    frames = sum(len(results) for _, results in pieces)
    cost = 1e3 * sum(one.seconds for one in lived) / frames
    longest = max(pieces, key=lambda piece: len(piece[1]))
    return [
        f"{len(views)} pieces, {frames} frames; all steps {cost:.2f} ms a frame and person, "
        f"{together(*longest):.2f} ms with {TOGETHER} people in view",
        "",
        "| | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
        *(f"| {name} | " + " | ".join(map(cell, values)) + " |" for name, values in rows.items()),
        "",
        *settling(lived),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="files of pose-prepare, separated by commas")
    parser.add_argument("--part", choices=("train", "validation", "test"), default="test")
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th piece")
    parser.add_argument("--lifter", default="stream", help="a streaming lifter: a name or a checkpoint")
    parser.add_argument("--out", type=Path, help="a Markdown file whose tables are replaced; default: print them")
    options = parser.parse_args()
    network, sections = load_lifter(options.lifter, "cpu"), {}
    for file in options.mocap.split(","):
        clips = split(load_clips(Path(file)), options.part)
        for name, detector in (("exact 2D", False), ("a detector's errors", True)):
            title = f"{Path(file).stem}, live, {name}"
            sections[title] = report(fixed_views(clips, detector=detector)[:: options.every], network)
            print("\n".join([title, *sections[title]]), flush=True)
    if options.out:
        publish(sections, options.out, "Measured live")


if __name__ == "__main__":
    main()
