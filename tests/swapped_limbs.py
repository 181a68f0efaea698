"""Sequences in which left and right are swapped, and where repair finds them."""

import numpy as np
from pose_datasets.errors import ErrorConfig
from pose_datasets.filming import FilmConfig
from pose_datasets.synthesis import SynthesisConfig, evaluation_batches

from pose.lifting.repair.person import PersonRepair
from pose.lifting.repair.swaps import limb_pairs
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import COCO17, get_skeleton


def film(clips, fps):
    """The recorded people before virtual cameras, with all errors of a detector but swapped limbs."""
    config = SynthesisConfig(film=FilmConfig(errors=ErrorConfig(swap_rate=0)))
    return [
        Sequence2D(batch.keypoints[i][v], batch.scores[i][v], batch.times[i][v], Camera.of((1000, 1000)), "h36m17")
        for batch in evaluation_batches(clips, condition="detector", fps=fps, config=config)
        for i, v in enumerate(batch.valid)
    ]


def swap_limbs(sequence, swapped):
    """The sequence with legs, arms swapped in the frames (T, 2) that say so."""
    xy, scores = sequence.keypoints.copy(), sequence.scores.copy()
    for limb, pairs in enumerate(limb_pairs(get_skeleton(sequence.skeleton)).values()):
        rows = np.flatnonzero(swapped[:, limb])[:, None]
        left, right = pairs.T
        here, there = np.r_[left, right], np.r_[right, left]
        xy[rows, here], scores[rows, here] = xy[rows, there], scores[rows, there]
    return Sequence2D(xy, scores, sequence.times, sequence.camera, sequence.skeleton)


def swapped_by_repair(sequence, lookahead):
    person, frames = PersonRepair(get_skeleton(sequence.skeleton), lookahead), []
    for keypoints, scores, time in zip(sequence.keypoints, sequence.scores, sequence.times.tolist(), strict=True):
        person.push(keypoints, scores, time)
        frames += person.take(time)
    return np.array([frame.swapped for frame in frames + person.take(np.inf)])


def standing(across, times):
    """A person of six pairs of joints, whose legs and arms reach across by these shares of their widths, (T, 2)."""
    heights, widths = np.array([0, 100, 200, -150, -80, 0]), np.array([20, 22, 25, 35, 50, 60])
    keypoints = np.zeros((len(times), 17, 2), np.float32)
    for limb, pairs in enumerate(limb_pairs(COCO17).values()):
        for k, pair in enumerate(pairs):
            for side, joint in zip((1, -1), pair, strict=True):
                keypoints[:, joint, 0] = 500 + side * widths[3 * limb + k] * across[:, limb]
                keypoints[:, joint, 1] = 500 + heights[3 * limb + k]
    return Sequence2D(keypoints, np.ones((len(times), 17), np.float32), times, Camera.of((1000, 1000)), "coco17")
