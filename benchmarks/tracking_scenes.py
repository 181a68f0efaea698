"""Clips with known identities, made of real people: cut out of the clips, and put into one image on paths of our own.

BlazePose's segmentation cuts a person out of every frame. A scene places such people over a real, empty background,
nearer ones over farther ones, so the image has real occlusions and the truth is known: who is where, and who is
hidden.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import cv2
import numpy as np
from pose_detectors.blazepose import BlazePoseDetector

from pose.networks import crops
from pose.networks.estimators.blazepose import SIDE, BlazePose
from pose.networks.litert import LiteRTModel, sigmoid
from pose.structures.types import F32, I64, U8

RATE = 30
SIZE = (768, 432)  # width, height of a scene, px: that of its background
VISIBLE = 0.25  # a person who is visible to a smaller share counts as absent
SEGMENTATION = 2  # which of the network's outputs


@dataclass(frozen=True, slots=True)
class Cutout:
    """A person without what was around them. image: (H, W, 3). alpha: (H, W) in [0, 1]. box: (4,) of the joints."""

    image: U8
    alpha: F32
    box: F32


@dataclass(frozen=True, slots=True)
class Actor:
    """A person of a scene. place: s -> centre x, bottom y (px) of the person, and their height, px."""

    cutouts: list[Cutout]
    place: Callable[[float], tuple[float, float, float]]
    mirrored: bool = False


@dataclass(frozen=True, slots=True)
class SceneFrame:
    """One frame of a scene and its truth: ids (P,), and boxes (P, 4) xyxy px around the joints of who can be seen."""

    image: U8
    time: float
    ids: I64
    boxes: F32


def frames_of(clip: Path, start: int, count: int) -> list[U8]:
    with av.open(str(clip)) as container:
        frames = (frame.to_ndarray(format="rgb24") for frame in container.decode(video=0))
        return [frame for _, frame in zip(range(start + count), frames, strict=False)][start:]


def cut_out(images: list[U8], weights: Path) -> list[Cutout]:
    """The person of every image, followed by BlazePose."""
    model = weights / "blazepose-landmark-full.tflite"
    estimator, segmenter = BlazePose(model=model), LiteRTModel(model, 2, (SEGMENTATION,))
    detector = BlazePoseDetector(model=weights / "blazepose-detector.tflite")
    region, cutouts = estimator.regions(detector.detect([images[0]])[0])[:1], []
    for image in images:
        matrix = crops.crop_matrices(region, (SIDE, SIDE))
        segmenter.input()[0] = crops.crop(image, matrix[0], (SIDE, SIDE)).astype(np.float32) / 255
        mask = sigmoid(segmenter.run()[0].reshape(SIDE, SIDE).astype(np.float32))
        size = image.shape[1], image.shape[0]
        alpha = cv2.warpAffine(mask, matrix[0], size, flags=cv2.INTER_LINEAR)
        seen = estimator.estimate([image], [region])[0]
        region = seen.next_regions
        cutouts.append(Cutout(image, alpha, crops.bounds(seen.xy, seen.scores > 0)[0]))
    return cutouts


def film(background: U8, actors: list[Actor], seconds: float) -> Iterator[SceneFrame]:
    """The scene, frame by frame. Who stands lower in the image is in front, of two alike the later one.

    Identities count from 1.
    """
    for index in range(round(seconds * RATE)):
        time = index / RATE
        image = background.astype(np.float32)
        shown: dict[int, F32] = {}
        boxes, areas = np.zeros((len(actors), 4), np.float32), np.zeros(len(actors))
        for number in sorted(range(len(actors)), key=lambda number: actors[number].place(time)[1]):
            picture, alpha, boxes[number], areas[number] = _placed(actors[number], index, time)
            image += alpha[..., None] * (picture - image)
            shown = {farther: before * (1 - alpha) for farther, before in shown.items()} | {number: alpha}
        visible = np.array([shown[number].sum() for number in range(len(actors))]) / np.maximum(areas, 1)
        there = np.flatnonzero(visible >= VISIBLE)
        yield SceneFrame(image.round().astype(np.uint8), time, there + 1, boxes[there])


def _placement(actor: Actor, index: int, time: float) -> tuple[Cutout, F32]:
    """The cutout of this frame and the (2, 3) map from its pixels to the scene's."""
    cutout = actor.cutouts[index % len(actor.cutouts)]
    x, bottom, height = actor.place(time)
    scale = height / np.median([other.box[3] - other.box[1] for other in actor.cutouts])
    turned = -scale if actor.mirrored else scale
    middle = (cutout.box[0] + cutout.box[2]) / 2
    return cutout, np.array([[turned, 0, x - turned * middle], [0, scale, bottom - scale * cutout.box[3]]], np.float32)


def _placed(actor: Actor, index: int, time: float) -> tuple[F32, F32, F32, float]:
    """The person in the scene: image, alpha, box, and how many pixels they cover, those outside the image too."""
    cutout, matrix = _placement(actor, index, time)
    picture = cv2.warpAffine(cutout.image, matrix, SIZE, flags=cv2.INTER_AREA).astype(np.float32)
    alpha = cv2.warpAffine(cutout.alpha, matrix, SIZE, flags=cv2.INTER_AREA)
    corners = crops.apply_affine(matrix[None], cutout.box.reshape(1, 2, 2))[0]
    area = float(cutout.alpha.sum()) * float(matrix[1, 1]) ** 2
    return picture, alpha, np.concatenate([corners.min(axis=0), corners.max(axis=0)]), area


def line(*points: tuple[float, float], bottom: float = 410, height: float = 330) -> Callable[[float], tuple]:
    """A path through (time s, x px) points, at one depth."""
    times, xs = zip(*points, strict=True)
    return lambda time: (float(np.interp(time, times, xs)), bottom, height)


def round_each_other(start: float, bottom: float = 390) -> Callable[[float], tuple]:
    """A turn in three seconds around the middle of the image, at arm's length. start: rad."""

    def place(time: float) -> tuple[float, float, float]:
        angle = start + 2 * np.pi * time / 3
        near = 0.06 * float(np.sin(angle))
        return 380 + 75 * float(np.cos(angle)), bottom * (1 + 0.5 * near), 310 * (1 + near)

    return place


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays: two stretches of the dancer, four seconds each, and an empty room."""

    first: list[Cutout]
    second: list[Cutout]
    room: U8

    @classmethod
    def load(cls, shared: Path, frames: int = 120) -> "Cast":
        videos, weights = shared / "videos", shared / "weights"
        return cls(
            cut_out(frames_of(videos / "dance.mp4", 0, frames), weights),
            cut_out(frames_of(videos / "dance.mp4", 180, frames), weights),
            frames_of(videos / "walk-by.mp4", 0, 1)[0],
        )


def scenes(cast: Cast) -> dict[str, list[SceneFrame]]:
    """The scenes of the benchmark, by name."""
    wall = np.full_like(cast.room, 150)

    def play(*actors: Actor, seconds: float = 4.0) -> list[SceneFrame]:
        return list(film(cast.room, list(actors), seconds))

    def behind_a_pillar(frames: list[SceneFrame]) -> list[SceneFrame]:
        """The same with a wall of 110 px in the middle of the image, in front of all people."""
        out = []
        for frame in frames:
            image = frame.image.copy()
            image[:, 330:440] = wall[:, 330:440]
            middle = frame.boxes[:, [0, 2]].mean(axis=1)
            there = (middle < 315) | (middle > 455)
            out.append(SceneFrame(image, frame.time, frame.ids[there], frame.boxes[there]))
        return out

    a, b = cast.first, cast.second
    return {
        "side by side": play(Actor(a, line((0, 200))), Actor(b, line((0, 540)))),
        "crossing": play(Actor(a, line((0, 120), (4, 640)), True), Actor(b, line((0, 640), (4, 120)))),
        "crossing, one nearer": play(
            Actor(a, line((0, 120), (4, 640), bottom=380, height=270)), Actor(b, line((0, 660), (4, 100)))
        ),
        "meeting and parting": play(
            Actor(a, line((0, 150), (1.8, 350), (2.4, 350), (4, 150))),
            Actor(b, line((0, 620), (1.8, 420), (2.4, 420), (4, 620)), True),
        ),
        "leaving and coming back": play(
            Actor(a, line((0, 250), (1.2, 250), (1.6, -150), (2.2, -150), (2.6, 250), (4, 250))),
            Actor(b, line((0, 540))),
        ),
        "behind a pillar": behind_a_pillar(play(Actor(a, line((0, 150), (4, 650))))),
        "hugging": play(
            Actor(a, line((0, 150), (1.2, 350), (3, 350), (4, 160))),
            Actor(b, line((0, 620), (1.2, 400), (3, 400), (4, 610)), True),
        ),
        "passing in touch": play(
            Actor(a, line((0, 380), bottom=395, height=315)),
            Actor(b, line((0, 680), (1, 450), (2, 440), (2.8, 320), (3.2, 310), (4, 80)), True),
        ),
        "dancing together": play(Actor(a, round_each_other(0.0)), Actor(b, round_each_other(np.pi), True)),
        "a crowd of eight": play(*(_passer_by(row, a if row % 2 else b) for row in range(8))),
    }


def _passer_by(number: int, cutouts: list[Cutout]) -> Actor:
    """One of eight people at eight depths, who cross the image to and fro, each at a pace of their own."""
    start, end = 60 + 92 * number, 60 + 92 * ((number * 5 + 3) % 8)
    later = cutouts[17 * number % len(cutouts) :] + cutouts[: 17 * number % len(cutouts)]
    path = line((0, start), (2.5, end), (4, start), bottom=270 + 20 * number, height=150 + 18 * number)
    return Actor(later, path, number % 3 == 0)
