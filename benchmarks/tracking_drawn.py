"""Randomly drawn scenes: paths, paces, heights, stretches of film, mirrored people and clothes.

The scenes of tracking_scenes.py are few, and a rule can be made to fit them. These are as many as wanted, of the same
kinds: a change is judged on seeds that were not looked at while it was made.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from tracking_scenes import Actor, Cutout, SceneFrame, cut_out, film, frames_of

from pose.structures.types import U8

STARTS = (0, 120, 240, 360)  # frames of the dancer's film where a stretch begins
STRETCH = 90  # frames
REPEATED = 3  # the squats were taken at 5 Hz: each image of them stands for so many
NECK = 0.18  # of the height of the joints' box: below are clothes
DYE = 0.4  # how much of a colour is that of other clothes
SECONDS = 4.0

Path2D = Callable[[float], tuple[float, float, float]]
Draw = np.random.Generator


class Lot:
    """Who may play: stretches of the dancer, the woman who does squats, and an empty room."""

    def __init__(self, shared: Path) -> None:
        videos, weights = shared / "videos", shared / "weights"
        film_of_dancer = frames_of(videos / "dance.mp4", 0, STARTS[-1] + STRETCH)
        stretches = [film_of_dancer[start : start + STRETCH] for start in STARTS]
        squats = [_half(image) for image in frames_of(videos / "squats.mp4", 0, 64)]
        self.dancers = [cut_out(images, weights) for images in stretches]
        self.athlete = [cutout for cutout in cut_out(squats, weights) for _ in range(REPEATED)]
        self.room = frames_of(videos / "walk-by.mp4", 0, 1)[0]

    def scenes(self, seed: int) -> Iterator[tuple[str, list[SceneFrame]]]:
        """One scene of every kind."""
        for number, (name, paths) in enumerate(KINDS.items()):
            draw = np.random.default_rng([seed, number])
            alike = bool(draw.random() < 0.5)  # all people wear what they wear in the film
            actors = [self._actor(draw, path, alike) for path in paths(draw)]
            room = self.room[:, ::-1] if draw.random() < 0.5 else self.room
            yield name, list(film(room, actors, SECONDS))

    def _actor(self, draw: Draw, path: Path2D, alike: bool) -> Actor:
        cutouts = self.athlete if draw.random() < 0.2 else self.dancers[int(draw.integers(len(self.dancers)))]
        start = int(draw.integers(len(cutouts)))
        cutouts = cutouts[start:] + cutouts[:start]
        if not alike:
            cutouts = _dyed(cutouts, draw.uniform(0, 255, 3))
        return Actor(cutouts, path, bool(draw.random() < 0.5))


def _half(image: U8) -> U8:
    return np.asarray(cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), np.uint8)


def _dyed(cutouts: list[Cutout], colour: np.ndarray) -> list[Cutout]:
    """The same people in clothes of another colour (3,)."""
    out = []
    for cutout in cutouts:
        image = cutout.image.copy()
        neck = max(0, int(cutout.box[1] + NECK * (cutout.box[3] - cutout.box[1])))
        image[neck:] = (image[neck:] * (1 - DYE) + colour * DYE).astype(np.uint8)
        out.append(replace(cutout, image=image))
    return out


def _walk(draw: Draw, *points: tuple[float, float], height: float | None = None) -> Path2D:
    """Through (s, x px); a person who is nearer stands lower."""
    height = float(draw.uniform(250, 340)) if height is None else height
    times, xs = zip(*points, strict=True)
    return lambda time: (float(np.interp(time, times, xs)), 245 + height / 2, height)


def _crossing(draw: Draw) -> list[Path2D]:
    ends = [(float(draw.uniform(90, 180)), float(draw.uniform(590, 680))) for _ in range(2)]
    paces = [float(draw.uniform(1.8, 4)) for _ in range(2)]
    (a, b), (d, c) = ends
    return [_walk(draw, (0, a), (paces[0], b)), _walk(draw, (0, c), (paces[1], d))]


def _overtaking(draw: Draw) -> list[Path2D]:
    slow, fast = draw.uniform(200, 260), draw.uniform(90, 140)
    return [
        _walk(draw, (0, slow), (4, draw.uniform(400, 480))),
        _walk(draw, (0, fast), (draw.uniform(2.5, 4), draw.uniform(600, 680))),
    ]


def _meeting(draw: Draw) -> list[Path2D]:
    gap, at, wait = draw.uniform(25, 60), draw.uniform(1.2, 1.8), draw.uniform(0.3, 1.0)
    ends = draw.uniform(120, 180), draw.uniform(590, 650)
    return [_walk(draw, (0, e), (at, m), (at + wait, m), (4, e)) for e, m in zip(ends, _both(gap), strict=True)]


def _hugging(draw: Draw) -> list[Path2D]:
    gap, height = draw.uniform(15, 30), draw.uniform(300, 340)
    ends = draw.uniform(120, 180), draw.uniform(590, 650)
    heights = height, height + draw.uniform(-15, 15)
    return [
        _walk(draw, (0, end), (1.2, middle), (3, middle), (4, end), height=h)
        for end, middle, h in zip(ends, _both(gap), heights, strict=True)
    ]


def _both(gap: float) -> tuple[float, float]:
    return 385 - gap, 385 + gap


def _passing(draw: Draw) -> list[Path2D]:
    stands, pace = draw.uniform(330, 430), draw.uniform(0.6, 1.2)
    return [
        _walk(draw, (0, stands)),
        _walk(
            draw, (0, 680), (pace, stands + 65), (pace + 1, stands + 55), (pace + 1.8, stands - 60), (pace + 2.8, 80)
        ),
    ]


def _dancing(draw: Draw) -> list[Path2D]:
    start, period = draw.uniform(0, 2 * np.pi), draw.uniform(2.4, 4.0)
    radius, height = draw.uniform(55, 95), draw.uniform(290, 330)

    def place(phase: float) -> Path2D:
        def at(time: float) -> tuple[float, float, float]:
            angle = start + phase + 2 * np.pi * time / period
            near = 0.06 * float(np.sin(angle))
            return 380 + radius * float(np.cos(angle)), 395 * (1 + 0.5 * near), height * (1 + near)

        return at

    return [place(0.0), place(np.pi)]


def _crowd(draw: Draw) -> list[Path2D]:
    starts, ends = draw.permutation(8), draw.permutation(8)
    turns = draw.uniform(1.5, 3, 8)
    return [
        _walk(
            draw, (0, 60 + 92 * starts[n]), (turns[n], 60 + 92 * ends[n]), (4, 60 + 92 * starts[n]), height=160 + 16 * n
        )
        for n in range(8)
    ]


KINDS: dict[str, Callable[[Draw], list[Path2D]]] = {
    "crossing": _crossing,
    "overtaking": _overtaking,
    "meeting and parting": _meeting,
    "hugging": _hugging,
    "passing in touch": _passing,
    "dancing together": _dancing,
    "a crowd of eight": _crowd,
}
