"""Evaluation of a whole pipeline on a video. Detected people are matched with the ground truth frame by frame.

Errors are defined for matched people only. The fraction of people that were found is therefore reported with the
errors; otherwise a pipeline that finds only easy people would seem more accurate.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pose.errors import PoseError
from pose.structures.camera import Camera
from pose.structures.labelled import LabelledSequence
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17, Skeleton, to_h36m17
from pose.structures.types import F32, F64, FrameResult

# Maximum mean joint distance of a match, relative to the height of the ground-truth person in the image.
MAX_MATCH_DISTANCE = 0.3


@dataclass(frozen=True, slots=True)
class Matched:
    """Ground truth of people as sequences, valid where found, with the poses and sigmas of the pipeline."""

    sequences: list[LabelledSequence]  # sequence of each person
    poses: list[F32]  # poses of each person (T, 17, 3) in m; NaN in frames in which the person was not found
    sigmas: list[F32]  # uncertainties of each person (T, 17) in mm
    known: int  # number of poses in the ground truth of the evaluated part, summed over people and frames
    found: int  # number of poses of the ground truth that were found


def match(results: Iterable[FrameResult], skeleton: Skeleton, truth: F32, times: F64, camera: Camera) -> Matched:
    """Match people (T, P, 17, 3) m of truth and pipeline; PoseError for several without intrinsics."""
    frames, people = truth.shape[:2]
    if not camera.known and people > 1:
        raise PoseError(f"ground truth of {people} people needs `intrinsics` (3, 3) to match people in the image")
    poses = np.full((people, frames, 17, 3), np.nan, np.float32)
    sigmas = np.ones((people, frames, 17), np.float32)
    pixels = np.zeros((people, frames, 17, 2), np.float32)
    scores = np.zeros((people, frames, 17), np.float32)
    found = np.zeros((people, frames), bool)
    evaluated = np.zeros(frames, bool)
    for row, result in _aligned(results, times):
        evaluated[row] = True
        if not len(result.people):
            continue
        keypoints, keypoint_scores = to_h36m17(result.people.keypoints, result.people.scores, skeleton)
        for person, index in _pairs(result, keypoints, truth[row], camera):
            poses[person, row] = result.poses.joints[index] + result.poses.root[index]
            sigmas[person, row] = result.poses.sigma[index]
            pixels[person, row], scores[person, row] = keypoints[index], keypoint_scores[index]
            found[person, row] = True
    sequences = [
        LabelledSequence(
            f"person {person + 1}",
            f"person {person + 1}",
            "video",
            "0",
            Sequence2D(pixels[person], scores[person], times, camera, H36M17.name),
            truth[:, person],
            found[person],
        )
        for person in range(people)
    ]
    known = int(np.isfinite(truth[evaluated]).all(axis=(2, 3)).sum())
    return Matched(sequences, list(poses), list(sigmas), known, int(found.sum()))


def _aligned(results: Iterable[FrameResult], times: F64) -> Iterator[tuple[int, FrameResult]]:
    """Yield each result that is within half a frame of a time in `times`, with the index of that time."""
    tolerance = float(np.median(np.diff(times))) / 2 if len(times) > 1 else 0.02
    for result in results:
        row = int(np.abs(times - result.time).argmin())
        if abs(times[row] - result.time) < tolerance:
            yield row, result


def _pairs(result: FrameResult, keypoints: F32, truth: F32, camera: Camera) -> list[tuple[int, int]]:
    """Match the people of one frame, closest pairs first; return (ground-truth index, result index) pairs."""
    known = np.flatnonzero(np.isfinite(truth).all(axis=(1, 2)))
    if not len(known):
        return []
    if not camera.known:
        boxes = result.people.boxes
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        return [(int(known[0]), int(areas.argmax()))]
    expected = camera.project(truth[known])
    heights = np.ptp(expected, axis=1).max(axis=-1)
    distances = np.linalg.norm(expected[:, None] - keypoints[None], axis=-1).mean(axis=-1) / heights[:, None]
    pairs = []
    while distances.size and distances.min() < MAX_MATCH_DISTANCE:
        a, b = (int(i) for i in np.unravel_index(distances.argmin(), distances.shape))
        pairs.append((int(known[a]), b))
        distances[a], distances[:, b] = np.inf, np.inf
    return pairs
