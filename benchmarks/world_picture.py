"""The figures of docs/studies/world.md: one walk of a test subject as it was lifted, and in its world, seen from the
side.

python benchmarks/world_picture.py --mocap cmu.npz --clip 35_29 --out docs/studies/images/world.png
python benchmarks/world_picture.py --mocap cmu.npz --clip 35_29 --live --out docs/studies/images/world-live.png
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from pose_datasets.fixed_views import FixedView, fixed_views
from pose_datasets.mocap import load_clips, split
from world import answer, lifted
from world_live import as_lifted, placed
from world_live import lifted as lifted_live

from pose.lifting.load import load_lifter
from pose.structures.skeletons import H36M17
from pose.world.clean import Steps
from pose.world.gravity import ANKLES

mpl.use("agg")
import matplotlib.pyplot as plt

EVERY = 6  # frames between two drawn bodies
COLOURS = {"left": "#2f7ed8", "right": "#f28f43", "centre": "#555555"}
TITLES = {"today": "as lifted, on the vertical of the inset", "all steps": "in its world"}
LIVE_TITLES = ("live as lifted, on the stage that was drawn", "live in its world")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, type=Path)
    parser.add_argument("--clip", default="35_29")
    parser.add_argument("--live", action="store_true", help="as it is seen while it happens")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    clips = [clip for clip in split(load_clips(options.mocap), "test") if clip.name == options.clip]
    views = fixed_views(clips, detector=True)[:1]
    walks = live_walks(*views) if options.live else offline_walks(*views)
    figure, axes = plt.subplots(
        2, 2, figsize=(11, 4.4), height_ratios=(2, 1), sharex=True, sharey="row", layout="constrained"
    )
    for column, (title, walk) in enumerate(walks.items()):
        along = direction(walk)
        draw(axes[0, column], walk, along)
        axes[0, column].set_title(title)
        for side, joint in zip(("left", "right"), ANKLES, strict=True):
            axes[1, column].plot(walk[:, joint] @ along, walk[:, joint, 1], color=COLOURS[side], lw=1)
        axes[1, column].axhline(0, color="k", lw=0.8)
        axes[1, column].set(ylim=(-0.1, 0.5), xlabel="along the walk, m")
    axes[0, 0].set_ylabel("height, m")
    axes[1, 0].set_ylabel("ankles, m")
    figure.savefig(options.out, dpi=100)


def offline_walks(view: FixedView) -> dict[str, NDArray[np.float64]]:
    """By title, the walk (T, 17, 3) m."""
    ((_, _, person),) = lifted([view], "offline")
    return {title: answer(view, person, variant).placed for variant, title in TITLES.items()}


def live_walks(view: FixedView) -> dict[str, NDArray[np.float64]]:
    results = lifted_live(view, load_lifter("stream", "cpu"))
    walks = as_lifted(view, results).placed, placed(view, results, Steps()).answer.placed
    return dict(zip(LIVE_TITLES, walks, strict=True))


def direction(walk: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) the way of the walk on the floor."""
    way = (walk[-1, 0] - walk[0, 0]) * [1, 0, 1]
    return np.asarray(way / np.linalg.norm(way))


def draw(axes: plt.Axes, walk: NDArray[np.float64], along: NDArray[np.float64]) -> None:
    """Bodies from the side, on a line for the floor."""
    axes.axhline(0, color="k", lw=0.8)
    for body in walk[::EVERY]:
        for a, b in H36M17.edges:
            ends = body[[a, b]]
            axes.plot(ends @ along, ends[:, 1], color=COLOURS[H36M17.side(b)], lw=1.5, solid_capstyle="round")
    axes.set_aspect("equal")


if __name__ == "__main__":
    main()
