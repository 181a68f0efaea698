"""MOTA, HOTA, IDF1 and identity switches of every tracker on scenes of known truth: docs/studies/tracking.md.

    python -m benchmarks.tracking scenes
    python -m benchmarks.tracking scenes --stages "rtmdet, blazepose" --trackers ocsort

Needs `trackers`, which brings a second OpenCV: install it into an environment of its own beside this project.

The scenes are made of real people. BlazePose's segmentation cuts a person out of every frame of a clip. A scene places
such people over a real, empty background, nearer ones over farther ones, so the image has real occlusions and the
truth is known. A rule can be fitted to a few scenes; judge a change by `crowds` with seeds that were not used for it.

The metrics are those of `trackers.eval`, which follows TrackEval. A person counts as found where the box around the
joints has an IoU of at least 0.4 with the true one (the stages' skeletons end at different joints); HOTA averages over
all IoUs. YOLO-pose processes each frame on its own, so its identities come from association alone.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from benchmarks.common.command import SHARED
from benchmarks.tracking.cutouts import VISIBLE, Cutout, cut_out, frames_of
from pose.config import PipelineConfig
from pose.networks import crops
from pose.pipeline import Pipeline
from pose.structures.stages import PeopleStage
from pose.structures.types import F32, I64, U8
from pose.tracking.box_trackers import BOX_TRACKERS

RATE = 30
SIZE = (768, 432)  # width, height of a scene, px: that of its background
FOUND = 0.4  # IoU


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


def stages(shared: Path) -> dict[str, dict[str, str]]:
    """What differs from the default configuration, by the stage's name."""
    yolo = str(shared / "weights" / "yolo26n-pose-256-int8.onnx")
    return {
        "rtmdet, blazepose": {"detector": "rtmdet", "estimator": "blazepose"},
        "blazepose": {"detector": "blazepose", "estimator": "blazepose"},
        "yolo-pose": {"detector": "yolo-pose", "estimator": "yolo-pose", "detector_model": yolo},
    }


def row(stage: PeopleStage, images: list[SceneFrame]) -> list[str]:
    """MOTA, HOTA, IDF1 and switches of a stage on a scene."""
    from trackers.eval import compute_clear_metrics, compute_hota_metrics, compute_identity_metrics

    truth, answers, similar = [], [], []
    for index, frame in enumerate(images):
        people = stage.step(frame.image, index, frame.time)
        boxes = crops.bounds(people.keypoints, people.scores > 0) if len(people) else people.boxes
        truth.append(frame.ids - 1)
        answers.append(people.ids)
        similar.append(crops.box_iou(frame.boxes, boxes).astype(float))
    names = sorted({int(number) for ids in answers for number in ids})
    answers = [np.searchsorted(names, ids) for ids in answers]
    clear = compute_clear_metrics(truth, answers, similar, threshold=FOUND)
    identity = compute_identity_metrics(truth, answers, similar, threshold=FOUND)
    hota = compute_hota_metrics(truth, answers, similar)
    shares = clear["MOTA"], hota["HOTA"], identity["IDF1"]
    return [*(f"{100 * share:.1f}" for share in shares), str(clear["IDSW"])]


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--stages", nargs="+", choices=stages(SHARED), default=list(stages(SHARED)))
    parser.add_argument("--trackers", nargs="+", choices=list(BOX_TRACKERS), default=list(BOX_TRACKERS))


def main(given: Namespace) -> None:
    films = scenes(Cast.load(given.shared))
    print("| stage | tracker | scene | MOTA | HOTA | IDF1 | switches |\n|---|---|---|---|---|---|---|")
    for name in given.stages:
        for tracker in given.trackers:
            pipeline = Pipeline(PipelineConfig(tracker=tracker, **stages(given.shared)[name]))
            for scene, images in films.items():
                cells = [name, tracker, scene, *row(pipeline.people_stage(), images)]
                print("| " + " | ".join(cells) + " |", flush=True)
