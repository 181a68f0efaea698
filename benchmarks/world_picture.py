"""The picture of docs/world.md: one walk of a test subject as it was lifted, and in its world, seen from the side.

python benchmarks/world_picture.py --mocap cmu.npz --clip 35_29 --out docs/images/world.png
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from pose_datasets.fixed_views import fixed_views
from pose_datasets.mocap import load_clips, split
from world import VARIANTS, answer, lifted

from pose.skeletons import H36M17
from pose.world.gravity import ANKLES

mpl.use("agg")
import matplotlib.pyplot as plt

EVERY = 6  # frames between two drawn bodies
COLOURS = {"left": "#2f7ed8", "right": "#f28f43", "centre": "#555555"}
TITLES = {"today": "as lifted, on the vertical of the inset", "all steps": "in its world"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, type=Path)
    parser.add_argument("--clip", default="35_29")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    clips = [clip for clip in split(load_clips(options.mocap), "test") if clip.name == options.clip]
    ((view, _, person),) = lifted(fixed_views(clips, detector=True)[:1], "offline")
    figure, axes = plt.subplots(
        2, 2, figsize=(11, 4.4), height_ratios=(2, 1), sharex=True, sharey="row", layout="constrained"
    )
    for column, (variant, title) in enumerate(TITLES.items()):
        assert variant in VARIANTS
        placed = answer(view, person, variant).placed
        along = direction(placed)
        draw(axes[0, column], placed, along)
        axes[0, column].set_title(title)
        for side, joint in zip(("left", "right"), ANKLES, strict=True):
            axes[1, column].plot(placed[:, joint] @ along, placed[:, joint, 1], color=COLOURS[side], lw=1)
        axes[1, column].axhline(0, color="k", lw=0.8)
        axes[1, column].set(ylim=(-0.1, 0.5), xlabel="along the walk, m")
    axes[0, 0].set_ylabel("height, m")
    axes[1, 0].set_ylabel("ankles, m")
    figure.savefig(options.out, dpi=100)


def direction(placed: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) the way of the walk on the floor."""
    way = (placed[-1, 0] - placed[0, 0]) * [1, 0, 1]
    return np.asarray(way / np.linalg.norm(way))


def draw(axes: plt.Axes, placed: NDArray[np.float64], along: NDArray[np.float64]) -> None:
    """Bodies from the side, on a line for the floor."""
    axes.axhline(0, color="k", lw=0.8)
    for body in placed[::EVERY]:
        for a, b in H36M17.edges:
            ends = body[[a, b]]
            axes.plot(ends @ along, ends[:, 1], color=COLOURS[H36M17.side(b)], lw=1.5, solid_capstyle="round")
    axes.set_aspect("equal")


if __name__ == "__main__":
    main()
