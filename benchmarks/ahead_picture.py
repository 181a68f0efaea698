"""The scale from `--ahead` to `--lookahead` as a figure of docs/studies/ahead.md.

    python benchmarks/ahead_picture.py --out docs/studies/images/ahead.png

A hand that swings, a camera at 30 frames a second, and a screen that shows an image 66 ms after it was taken: where
the hand is, and where each end of the scale shows it. What is drawn are the definitions and not a measurement: the pose
is taken to be exact, and the prediction goes on with the speed of the last two frames.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

LATENCY = 0.066  # s
FRAMES = 4  # of the look-ahead
FPS = 30
NOW = 1.0  # s
INK, TRUE, AHEAD, LATE, RIGHT = "#222222", "#9aa0a6", "#0072b2", "#c05a00", "#007f77"


def hand(time: np.ndarray) -> np.ndarray:
    """cm."""
    return np.asarray(30 * np.sin(2 * np.pi * (time - 0.9) / 1.4))


def paint_hand(axes: Axes) -> None:
    times = np.linspace(NOW - 0.32, NOW, 200)
    axes.plot(1000 * (times - NOW), hand(times), color=TRUE, lw=5, solid_capstyle="round", zorder=0)
    seen = NOW - LATENCY
    before = seen - 1 / FPS
    speed = (hand(np.array(seen)) - hand(np.array(before))) * FPS
    waited = seen - FRAMES / FPS
    shown = [
        (AHEAD, "--ahead auto", hand(np.array(seen)) + speed * LATENCY, seen, "predicted to now"),
        (LATE, "neither", hand(np.array(seen)), seen, f"as seen {1000 * LATENCY:.0f} ms ago"),
        (
            RIGHT,
            f"--lookahead {FRAMES}",
            hand(np.array(waited)),
            waited,
            f"as it was {1000 * (NOW - waited):.0f} ms ago",
        ),
    ]
    for colour, name, place, moment, words in shown:
        axes.plot(1000 * (moment - NOW), hand(np.array(moment)), "o", color=colour, ms=7)
        axes.annotate(
            "",
            (0, place),
            (1000 * (moment - NOW), hand(np.array(moment))),
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.8, "shrinkA": 4, "shrinkB": 5},
        )
        axes.plot(0, place, "D", color=colour, ms=8, zorder=5)
        axes.text(
            14, place - (2.2 if colour == AHEAD else 0), f"{name}\n{words}", color=colour, va="center", fontsize=10
        )
    axes.plot(0, hand(np.array(NOW)), "*", color=INK, ms=14, zorder=6)
    axes.text(-10, hand(np.array(NOW)) + 2.2, "where the hand is", color=INK, ha="right", fontsize=10)
    axes.axvline(0, color=INK, lw=0.8, ls=":")
    axes.set(xlim=(-260, 150), xlabel="ms before the image is on the screen", ylabel="the hand, cm")
    axes.set_xticks([-200, -150, -100, -50, 0])
    axes.spines[["top", "right"]].set_visible(False)


def paint_scale(axes: Axes) -> None:
    axes.axhline(0, color=INK, lw=2)
    marks = [
        (-150, "--ahead 150", AHEAD),
        (-66, "--ahead 66", AHEAD),
        (0, "neither", LATE),
        (4 * 33, "--lookahead 4", RIGHT),
        (8 * 33, "--lookahead 8", RIGHT),
    ]
    for place, name, colour in marks:
        axes.plot(place, 0, "o", color=colour, ms=9)
        axes.text(place, 0.25, name, color=colour, ha="center", fontsize=10)
    axes.text(-150, -0.3, "to be now\npredicts: -MS", color=AHEAD, ha="center", va="top", fontsize=10)
    axes.text(0, -0.3, "what was seen,\nlate", color=LATE, ha="center", va="top", fontsize=10)
    waits = "to be right\nwaits: +N frames (33 ms each at 30 a second)"
    axes.text(200, -0.3, waits, color=RIGHT, ha="center", va="top", fontsize=10)
    axes.set(xlim=(-230, 320), ylim=(-1.0, 0.7))
    axes.axis("off")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    drawing = Figure(figsize=(9, 5.6), layout="constrained")
    above, below = drawing.subplots(2, 1, height_ratios=(1, 3.2))
    paint_scale(above)
    paint_hand(below)
    drawing.savefig(options.out, dpi=90)


if __name__ == "__main__":
    main()
