"""Uncertainty of 2D keypoints in two calibrated real views (`two-people`).

    python -m benchmarks.cameras sigma

The error of 2D keypoints is measured without a truth: the rays of a joint from two calibrated cameras meet, so the
distance from the epipolar line shows one component of the errors of both views. Printed: the share of these distances
inside their standard deviation, which follows from `keypoint_sigma` (nominal 68 %), by person and by size of sigma. An
error that has the same 3D cause in both views, such as another definition of the hip, is not seen.
"""

from argparse import ArgumentParser, Namespace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.common.command import VIDEOS
from benchmarks.common.processes import Result, pose_run
from benchmarks.common.two_views import VIEWS, View, misses, read_views, same_rows
from pose.structures.keypoint_sigma import RADIUS_68_2D

MIN_SCORE = 0.05


def calibration(views: list[View], results: list[Result]) -> str:
    """Return the shares of keypoints inside one sigma, as a text."""
    rows = same_rows(views, results)
    parts = list(zip(views, results, rows.T, strict=True))
    sigma = [result["keypoint_sigma"][own].astype(np.float64) for _, result, own in parts]
    off = misses(views, [view.undistorted(result["keypoints"][own]) for view, result, own in parts], sigma)
    seen = np.logical_and.reduce([result["scores"][own] > MIN_SCORE for _, result, own in parts])
    heights = [np.ptp(result["box"][own].reshape(-1, 2, 2), axis=1).max(axis=1)[:, None] for _, result, own in parts]
    relative = [(one / height) ** 2 for one, height in zip(sigma, heights, strict=True)]
    size = np.sqrt(np.mean(relative, axis=0)) / RADIUS_68_2D
    ids = results[0]["id"][rows[:, 0]]
    bounds = np.quantile(size[seen], (0, 0.25, 0.5, 0.75, 1))
    own, quarters = (
        ", ".join(f"{100 * np.mean(off[mask] < 1):.0f}" for mask in masks)
        for masks in (
            [seen & (ids == one)[:, None] for one in np.unique(ids)],
            [seen & (size >= low) & (size <= high) for low, high in pairwise(bounds)],
        )
    )
    limits = ", ".join(f"{100 * bound:.1f}" for bound in bounds)
    one, two = (100 * np.mean(off[seen] < limit) for limit in (1, 2))
    return (
        f"{one:.0f} % of {seen.sum()} keypoints inside one sigma, {two:.0f} % inside two; people {own} %; quarters of "
        f"sigma {quarters} % (limits {limits} % of the height)"
    )


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--videos", type=Path, default=VIDEOS)
    parser.add_argument("--options", nargs="+", default=[f"--config {name}" for name in ("fast", "standard", "best")])


def main(given: Namespace) -> None:
    folder = given.videos / "two-people"
    for text in given.options:
        with TemporaryDirectory() as out:
            results = [pose_run(folder / f"{name}.mp4", f"{text} --no-world", Path(out))[0] for name in VIEWS]
        print(f"{text}: {calibration(read_views(folder), results)}", flush=True)
