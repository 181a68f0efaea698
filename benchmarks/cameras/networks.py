"""Errors of real 2D networks on `two-people`, as series that `benchmarks.cameras simulated --errors` adds to exact 2D.

    python -m benchmarks.cameras networks --out errors.npz [--keep FOLDER]

The error of a joint is its distance from the joint that is triangulated from the reference's 2D of both calibrated
views (`common/two_views.py`), seen by the same camera; joints without such a truth have the distance from the
reference's 2D instead. It is relative to the size of the person: the longer side of the box around the joints, averaged
over the series. A series is a person in a view, 1.7 s. What both views have in common, such as another definition of a
joint, stays in the reference and is not part of the errors. `--keep` finds results of the reference that
`benchmarks.presets errors` has kept.
"""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Self

import numpy as np
from pose_datasets.errors import person_size

from benchmarks.common.command import VIDEOS
from benchmarks.common.processes import Result, pose_run
from benchmarks.common.two_views import JOINTS, VIEWS, Truth, View, read_views
from benchmarks.presets.measure import reference_of
from pose.structures.skeletons import H36M17, SKELETONS, to_h36m17
from pose.structures.types import F32, F64

NETWORKS = {"full": "--estimator blazepose --keypoint-rate 0", "standard": "--config standard", "best": "--config best"}


@dataclass(frozen=True)
class Series:
    """Errors of a network for one person."""

    times: F64  # (T,) s from the first frame
    errors: F32  # (T, 17, 2) in sizes of the person
    scores: F32  # (T, 17)

    def at(self, rng: np.random.Generator, times: F64) -> tuple[F32, F32]:
        """Return errors (K, 17, 2) and scores (K, 17) at times (K,), from a random moment on, to and fro, or mirrored.

        A series that is mirrored has left and right swapped.
        """
        length = float(self.times[-1])
        folded = np.abs((times - times[0] + rng.uniform(0, 2 * length)) % (2 * length) - length)
        flat = np.concatenate([self.errors.reshape(len(self.times), -1), self.scores], axis=1)
        found = np.stack([np.interp(folded, self.times, column) for column in flat.T], axis=1).astype(np.float32)
        errors, scores = found[:, :34].reshape(-1, 17, 2), found[:, 34:]
        if rng.random() < 0.5:
            order = list(H36M17.flip_order)
            errors, scores = errors[:, order] * np.float32([-1, 1]), scores[:, order]
        return errors, scores


class Library:
    """Error series of one network, of which every person in every camera gets a random one."""

    def __init__(self, series: list[Series]) -> None:
        self._series = series

    @classmethod
    def load(cls, file: Path, network: str) -> Self:
        """Read the series of a network from a file that this command wrote."""
        with np.load(file) as arrays:
            numbers = [name.split("/")[1] for name in arrays if name.startswith(f"{network}/") and "times" in name]
            return cls([
                Series(*(arrays[f"{network}/{one}/{part}"] for part in ("times", "errors", "scores")))
                for one in numbers
            ])  # fmt: skip

    def add(self, rng: np.random.Generator, pixels: F32, times: F64) -> tuple[F32, F32]:
        """Add errors to exact joints (P, T, 17, 2) px at times (T,) s; return pixels, and scores (P, T, 17)."""
        drawn = [self._series[int(rng.integers(len(self._series)))].at(rng, times) for _ in pixels]
        errors, scores = (np.stack(part) for part in zip(*drawn, strict=True))
        return (pixels + errors * person_size(pixels)[..., None]).astype(np.float32), scores


def series_of(view: View, number: int, truth: Truth, found: Result, reference: Result) -> list[Series]:
    """Return the errors of a result of one view, for each person."""
    rows, own = truth.of_view(number, found)
    other, again = truth.of_view(number, reference)
    if again.tolist() != list(range(len(truth.times))):
        raise SystemExit("the reference has lost people")
    skeleton = SKELETONS[str(found["skeleton"])]
    mine, scores = to_h36m17(found["keypoints"][rows], found["scores"][rows], skeleton)
    exact, _ = to_h36m17(
        reference["keypoints"][other][own], reference["scores"][other][own], SKELETONS[str(reference["skeleton"])]
    )
    seen = truth.joints[own] @ view.rotation.T + view.translation
    projected = seen[..., :2] / seen[..., 2:] * view.matrix[[0, 1], [0, 1]] + view.matrix[:2, 2]
    exact = view.undistorted(exact)
    exact[:, JOINTS] = np.where(truth.known[own][..., None], projected, exact[:, JOINTS])
    off = view.undistorted(mine) - exact
    parts = []
    for person in np.unique(truth.ids[own]):
        at = np.flatnonzero(truth.ids[own] == person)
        size = person_size(exact[at][None].astype(np.float32))[0]
        times = truth.times[own][at]
        parts.append(Series(times - times[0], (off[at] / size[..., None]).astype(np.float32), scores[at]))
    return parts


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--videos", type=Path, default=VIDEOS)
    parser.add_argument("--keep", type=Path, default=Path(gettempdir()), help="folder of reference results")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--out", type=Path, required=True)


def main(given: Namespace) -> None:
    clips = [given.videos / "two-people" / f"{name}.mp4" for name in VIEWS]
    references, views = [reference_of(clip, given.keep) for clip in clips], read_views(clips[0].parent)
    truth, arrays = Truth(views, references), {}
    print("| network | median, % | bulk, % | lasting, % | 95 %, % |\n|---|---|---|---|---|")
    for name in given.networks:
        with TemporaryDirectory() as folder:
            found = [pose_run(clip, f"{NETWORKS[name]} --no-world", Path(folder))[0] for clip in clips]
        parts = [series_of(view, n, truth, found[n], references[n]) for n, view in enumerate(views)]
        for number, series in enumerate(chain.from_iterable(parts)):
            for key in ("times", "errors", "scores"):
                arrays[f"{name}/{number}/{key}"] = getattr(series, key)
        limbs = [100 * series.errors[:, JOINTS] for part in parts for series in part]
        size = np.concatenate([np.linalg.norm(one, axis=-1).ravel() for one in limbs])
        lasting = np.sqrt(np.mean([one.mean(axis=0) ** 2 for one in limbs]))
        bulk = 1.4826 * np.median([np.median(np.abs(one)) for one in limbs])
        figures = np.median(size), bulk, lasting, np.percentile(size, 95)
        print(f"| {name} | {{:.2f}} | {{:.2f}} | {{:.2f}} | {{:.2f}} |".format(*figures), flush=True)
    np.savez(given.out, **arrays)
