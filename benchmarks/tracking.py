"""MOTA, HOTA, IDF1 and identity switches of every tracker on scenes of known truth: docs/studies/tracking.md.

    python -m benchmarks.tracking --shared ../shared
    python -m benchmarks.tracking --shared ../shared --stages "rtmdet, blazepose" --trackers ocsort --drawn 3

Needs `trackers`, which brings a second OpenCV: install it into an environment of its own beside this project.

The scenes are made of real people. BlazePose's segmentation cuts a person out of every frame of a clip. A scene places
such people over a real, empty background, nearer ones over farther ones, so the image has real occlusions and the
truth is known. `--drawn N` draws N random scenes of each kind instead: paths, paces, heights, parts of the clips,
mirrored people and clothes. A rule can be fitted to a few scenes; judge a change on seeds that were not used for it.

The metrics are those of `trackers.eval`, which follows TrackEval. A person counts as found where the box around the
joints has an IoU of at least 0.4 with the true one (the stages' skeletons end at different joints); HOTA averages over
all IoUs. YOLO-pose processes each frame on its own, so its identities come from association alone, and it is also run
without keypoint similarity.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import av
import cv2
import numpy as np
from pose_detectors.blazepose import BlazePoseDetector

from pose.config import PipelineConfig
from pose.networks import crops
from pose.networks.estimators.blazepose import SIDE, BlazePose
from pose.networks.litert import LiteRTModel, sigmoid
from pose.pipeline import Pipeline
from pose.structures.stages import PeopleStage
from pose.structures.types import F32, I64, U8
from pose.tracking.box_trackers import BOX_TRACKERS
from pose.tracking.identities import Identities

RATE = 30
SIZE = (768, 432)  # width, height of a scene, px: that of its background
VISIBLE = 0.25  # a person who is visible to a smaller share counts as absent
SEGMENTATION = 2  # which of the network's outputs
STARTS = (0, 120, 240, 360)  # frames of the dancer's film where a stretch begins
STRETCH = 90  # frames
REPEATED = 3  # the squats were taken at 5 Hz: each image of them stands for so many
NECK = 0.18  # of the height of the joints' box: below are clothes
DYE = 0.4  # how much of a colour is that of other clothes
SECONDS = 4.0

Path2D = Callable[[float], tuple[float, float, float]]
Draw = np.random.Generator
FOUND = 0.4  # IoU


@dataclass(frozen=True, slots=True)
class Cutout:
    """A person cut out. image: (H, W, 3). alpha: (H, W) in [0, 1]. joints: (J, 2) px. box: (4,) of the joints."""

    image: U8
    alpha: F32
    joints: F32
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
        cutouts.append(Cutout(image, alpha, seen.xy[0], crops.bounds(seen.xy, seen.scores > 0)[0]))
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
            colour = draw.uniform(0, 255, 3)
            cutouts = [dyed(cutout, colour) for cutout in cutouts]
        return Actor(cutouts, path, bool(draw.random() < 0.5))


def _half(image: U8) -> U8:
    return np.asarray(cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), np.uint8)


def dyed(cutout: Cutout, colour: np.ndarray) -> Cutout:
    """The same person in clothes of another colour (3,)."""
    image = cutout.image.copy()
    neck = max(0, int(cutout.box[1] + NECK * (cutout.box[3] - cutout.box[1])))
    image[neck:] = (image[neck:] * (1 - DYE) + colour * DYE).astype(np.uint8)
    return replace(cutout, image=image)


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


def drawn(shared: Path, seeds: range) -> dict[str, list[SceneFrame]]:
    """Randomly drawn scenes, one of each kind for every seed."""
    lot = Lot(shared)
    return {f"{name}, {seed}": images for seed in seeds for name, images in lot.scenes(seed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--stages", nargs="+", help="only these stages, by their names in the table")
    parser.add_argument("--trackers", nargs="+", choices=list(BOX_TRACKERS), default=list(BOX_TRACKERS))
    parser.add_argument("--drawn", type=int, default=0, help="in place of the table's scenes, this many of each kind")
    parser.add_argument("--first-seed", type=int, default=0, help="with --drawn: the seed of the first of each kind")
    options = parser.parse_args()
    chosen = stages(options.shared)
    if unknown := set(options.stages or chosen) - set(chosen):
        parser.error(f"--stages: unknown {sorted(unknown)}; known: {list(chosen)}")
    if options.first_seed < 0 or (options.first_seed and not options.drawn):
        parser.error("--first-seed: a number of 0 or more, with --drawn")
    seeds = range(options.first_seed, options.first_seed + options.drawn)
    films = drawn(options.shared, seeds) if seeds else scenes(Cast.load(options.shared))
    print("| stage | tracker | OKS | scene | MOTA | HOTA | IDF1 | switches |\n|---|---|---|---|---|---|---|---|")
    for name, changes in chosen.items():
        if options.stages and name not in options.stages:
            continue
        for tracker in options.trackers:
            pipeline = Pipeline(PipelineConfig(tracker=tracker, **changes))
            for similarity in (False, True) if name == "yolo-pose" else (True,):
                for scene, images in films.items():
                    stage = pipeline.people_stage()
                    if not similarity:
                        stage._identities = Identities(tracker)  # type: ignore[attr-defined]
                    cells = [name, tracker, "yes" if similarity else "no", scene, *row(stage, images)]
                    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
