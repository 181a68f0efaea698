"""How straight are the knees of people who stand? In real clips, where the image itself says that a leg is straight.

    python -m benchmarks.lifter knees [--lifter offline] [--preset fast] [CLIP.mp4 ...]

A leg counts in the frames in which hip, knee and ankle lie on a line in the image (within 8 degrees) and are as far
apart as they are within a second before and after (within 3 %), measured by the person's trunk: a leg that is bent
towards the camera lies on a line as well, but is short. Markers on standing people say 1 to 9 degrees (UI-PRMD, median
3). For each clip, over all people: legs that count, flexion in the image and in 3D (median), and how many come out
below 10 degrees.
"""

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import VIDEOS
from pose.pipeline import Pipeline
from pose.structures.skeletons import H36M17, get_skeleton, to_h36m17
from pose.structures.types import F32, F64, FrameResult
from pose.training.evaluation.metrics import flexion

CLIPS = ("dance.mp4", "squats.mp4", "walk-by.mp4")
STRAIGHT = 8.0  # degrees in the image
REACH = 0.97  # of the longest within `SECONDS` before and after
SECONDS = 1.0
SURE = 0.5  # score of hip, knee and ankle
_LEGS = tuple(tuple(H36M17.names.index(f"{side}_{part}") for part in ("hip", "knee", "ankle"))
              for side in ("right", "left"))  # fmt: skip


def tracks(results: list[FrameResult], skeleton: str) -> list[tuple[F64, F32, F32, F32]]:
    """For every person: times (T,) s, 2D joints (T, 17, 2) px, their scores (T, 17), 3D joints (T, 17, 3) m."""
    rows = defaultdict(list)
    for result in results:
        joints, scores = to_h36m17(result.people.keypoints, result.people.scores, get_skeleton(skeleton))
        for row, person in enumerate(result.people.ids.tolist()):
            rows[person].append((result.time, joints[row], scores[row], result.poses.joints[row]))
    return [tuple(np.array(column) for column in zip(*one, strict=True)) for one in rows.values()]  # type: ignore[misc]


def standing(times: F64, joints: F32, scores: F32) -> tuple[NDArray[np.bool_], F64]:
    """(T, 2) whether the right and the left leg is straight in the image, and their flexion there in degrees."""
    flat = np.concatenate([joints, np.zeros_like(joints[..., :1])], axis=-1)
    bent = flexion(flat, "knee")
    trunk = np.linalg.norm(joints[:, H36M17.names.index("thorax")] - joints[:, 0], axis=-1)
    straight = np.zeros((len(times), 2), bool)
    for side, leg in enumerate(_LEGS):
        reach = np.linalg.norm(joints[:, leg[2]] - joints[:, leg[0]], axis=-1) / np.maximum(trunk, 1)
        near = np.abs(times[:, None] - times) <= SECONDS
        longest = np.where(near, reach, 0).max(axis=1)
        sure = scores[:, leg].min(axis=1) > SURE
        straight[:, side] = sure & (bent[:, side] < STRAIGHT) & (reach > REACH * longest)
    return straight, bent


def report(clip: Path, lifter: str, preset: str) -> str:
    """One row for one clip."""
    pipeline = Pipeline.from_preset(preset, lifter=lifter)
    seen, lifted = [], []
    for times, joints, scores, poses in tracks(list(pipeline.run(clip)), pipeline.skeleton.name):
        straight, bent = standing(times, joints, scores)
        seen.append(bent[straight])
        lifted.append(flexion(poses, "knee")[straight])
    image, space = np.concatenate(seen), np.concatenate(lifted)
    if not len(space):
        return f"{clip.name:14} no leg is straight in the image"
    below = 100 * np.mean(space < 10)
    return f"{clip.name:14} {len(space):6} {np.median(image):8.1f} {np.median(space):8.1f} {below:9.0f} %"


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("clips", nargs="*", type=Path, help=f"by default {', '.join(CLIPS)} of --videos")
    parser.add_argument("--videos", type=Path, default=VIDEOS)
    parser.add_argument("--lifter", default="offline", help="offline, stream or a checkpoint")
    parser.add_argument("--preset", default="fast")


def main(given: Namespace) -> None:
    print(f"{'clip':14} {'legs':>6} {'image':>8} {'3D':>8} {'below 10':>11}")
    for clip in given.clips or [given.videos / name for name in CLIPS]:
        print(report(clip, given.lifter, given.preset), flush=True)
