"""Ids per person, switches, and doubled ids on clips of a moving camera with known truth: docs/studies/tracking.md.

    python -m benchmarks.tracking crowds --folder /tmp/crowds
    python -m benchmarks.tracking crowds --folder /tmp/crowds --scenes walk --options tracker=botsort

Two kinds of clips: `broadcast`, a camera above the edge of an ice rink that pans after 15 skaters in one costume
(7.4 s), and `walk`, a hand-held camera that walks through 24 people (4 s). People are real ones, cut out of the shared
clips with BlazePose, on paths on a floor of textured planes, nearer ones over farther ones. Clips are written as MP4
once, with their truth beside them. Evaluated is the 2D of the frames in which people are tracked.

A pose belongs to the person whose true joints are nearest, within 20 % of the height in the median. `ids` counts all
ids, `ids per person` those that a person has for at least 3 frames. `switches` counts frames in which the id of a
person changes, `doubled` frames in which a person has two ids with poses within 15 % of the height, `stray` poses that
belong to none, and `found` is the share of the frames of visible people with a pose.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.common.command import SHARED
from benchmarks.common.rendering import Panel, Pose, box, lens, panel, render, shake, turned
from benchmarks.tracking.cutouts import VISIBLE, Cutout, cut_out, dyed, frames_of
from pose.config import PipelineConfig
from pose.pipeline import Pipeline
from pose.structures.types import F32, F64, U8
from pose.video import open_source
from pose.video.encode import VideoWriter

SIZE = 960, 540
ON_BODY = 0.2  # of the height: largest median distance of the joints of a pose from those of its person
DOUBLED = 0.15  # of the height: largest median distance of two poses of one body
MIN_FRAMES = 3  # a person has an id that lasts so long
STARTS = (0, 120, 240, 360)  # frames of the dancer's film where a stretch begins
STRETCH = 90  # frames
REPEATED = 3  # the squats were taken at 5 Hz: each image of them stands for so many
Draw = np.random.Generator
Path2D = Callable[[float], tuple[float, float]]  # s -> x and z, m


class Lot:
    """Who may play: stretches of the dancer, and the woman who does squats."""

    def __init__(self, shared: Path) -> None:
        videos, weights = shared / "videos", shared / "weights"
        film_of_dancer = frames_of(videos / "dance.mp4", 0, STARTS[-1] + STRETCH)
        stretches = [film_of_dancer[start : start + STRETCH] for start in STARTS]
        squats = [_half(image) for image in frames_of(videos / "squats.mp4", 0, 64)]
        self.dancers = [[_cropped(one) for one in cut_out(images, weights)] for images in stretches]
        self.athlete = [_cropped(one) for one in cut_out(squats, weights) for _ in range(REPEATED)]


def _half(image: U8) -> U8:
    return np.asarray(cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), np.uint8)


@dataclass(frozen=True, slots=True)
class Person:
    """A person of a clip. place: s -> x, z (m) on the floor. height: m of the joints' box. colour: RGB of clothes."""

    cutouts: list[Cutout]
    place: Path2D
    height: float
    colour: F64
    mirrored: bool


@dataclass(frozen=True, slots=True)
class Clip:
    """What is filmed: people and planes, by a camera `floor` m above y = 0 at rate Hz."""

    people: list[Person]
    room: list[Panel]
    camera: Callable[[float], Pose]
    fov: float
    floor: float
    rate: float
    seconds: float


def broadcast(lot: Lot, draw: Draw) -> Clip:
    """Synchronised skating: two rows of 7 and 8 in one costume pass through each other while all move along the ice."""
    floor, people, colour, start = 6.0, [], draw.uniform(0, 255, 3), draw.uniform(1, 2.5)
    speed, spacing, depth = draw.uniform(3.5, 5.5), draw.uniform(1.2, 1.6), draw.uniform(7, 11)

    def middle(time: float) -> tuple[float, float]:
        """Of the rows along the ice, and the share of the way of each row to the place of the other."""
        passed = float(np.clip((time - start) / 3, 0, 1))
        return speed * (time - 3.7), passed * passed * (3 - 2 * passed)

    def skater(row: int, place: int) -> Path2D:
        off, sway, phase = draw.normal(0, 0.25, 2), draw.uniform(0.1, 0.4), draw.uniform(0, 6.3)

        def at(time: float) -> tuple[float, float]:
            along, passed = middle(time)
            far = 28 + depth * (passed - 0.5) * (1 - 2 * row)
            return along + (place - 3.5 + 0.5 * row) * spacing + off[0] + sway * np.sin(3 * time + phase), far + off[1]

        return at

    people = [_person(lot, draw, skater(row, place), colour) for row in (0, 1) for place in range(8 - row)]

    def camera(time: float) -> Pose:
        along = np.mean([middle(time - late)[0] for late in np.linspace(0, 0.8, 5)])
        pan, tilt = np.degrees(np.arctan2(along, 28)), np.degrees(np.arctan2(floor - 1, np.hypot(along, 28)))
        return Pose(np.zeros(3), turned(0, pan) @ turned(-tilt))

    ice = panel(draw, (-42, floor, 14), (84, 0, 0), (0, 0, 30), 12, 6)
    boards = panel(draw, (-42, floor - 1.2, 44), (84, 0, 0), (0, 1.2, 0), 30)
    stands = panel(draw, (-70, floor - 14, 48), (140, 0, 0), (0, 13, 0), 12)
    return Clip(people, [ice, boards, stands], camera, 26, floor, 25, 7.4)


def walk(lot: Lot, draw: Draw) -> Clip:
    """24 people on a square; most walk towards the camera or cross its way. It walks at 1.2 m/s."""
    floor, people, hand = 1.6, [], shake(int(draw.integers(1000)), 0.6)
    for number in range(24):
        x, z = draw.uniform(-5, 5), draw.uniform(3, 18)
        speed = (
            (0, -draw.uniform(0.8, 1.6)) if number % 3 else (float(draw.choice([-1, 1])) * draw.uniform(0.8, 1.6), 0)
        )
        people.append(_person(lot, draw, _straight(x, z, speed)))

    def camera(time: float) -> Pose:
        step = 0.03 * np.sin(4 * np.pi * time), 0.03 * np.sin(2 * np.pi * 1.9 * time)
        return Pose(
            np.array([step[1], step[0], 1.2 * time]), turned(*(hand(time) + np.array([-3, 8 * np.sin(time), 0])))
        )

    ground = panel(draw, (-20, floor, -2), (40, 0, 0), (0, 0, 37), 20)
    houses = panel(draw, (-60, floor - 20, 35), (120, 0, 0), (0, 20, 0), 12)
    sides = [panel(draw, (x, floor - 9, 2), (0, 0, 33), (0, 9, 0), 12, 6) for x in (-9, 9)]
    stalls = [side for x, z in ((-7, 8), (7, 12), (-6, 20), (6, 24)) for side in _box(draw, x, z, floor)]
    return Clip(people, [ground, houses, *sides, *stalls], camera, 65, floor, 30, 4.0)


def _box(draw: Draw, x: float, z: float, floor: float) -> list[Panel]:
    """A stall of 2 m on the floor."""
    lowered = np.array([0, floor - 1.5, 0])
    return [Panel(one.corner + lowered, one.across, one.down, one.texture) for one in box(draw, (x, z), (2, 2, 1.5))]


def _straight(x: float, z: float, speed: tuple[float, float]) -> Path2D:
    return lambda time: (x + speed[0] * time, z + speed[1] * time)


def _person(lot: Lot, draw: Draw, place: Path2D, colour: F64 | None = None) -> Person:
    cutouts = lot.athlete if draw.random() < 0.2 else lot.dancers[int(draw.integers(len(lot.dancers)))]
    start, height, mirrored = int(draw.integers(len(cutouts))), float(draw.uniform(1.4, 1.7)), bool(draw.random() < 0.5)
    colour = draw.uniform(0, 255, 3) if colour is None else colour
    return Person(cutouts[start:] + cutouts[:start], place, height, colour, mirrored)


def _cropped(cutout: Cutout) -> Cutout:
    """The part of a cutout that shows the person."""
    (top, bottom), (left, right) = (np.flatnonzero((cutout.alpha > 0.02).any(axis=a))[[0, -1]] for a in (1, 0))
    part = slice(top, bottom + 1), slice(left, right + 1)
    corner = np.array([left, top], np.float32)
    return Cutout(
        cutout.image[part].copy(), cutout.alpha[part].copy(), cutout.joints - corner, cutout.box - np.tile(corner, 2)
    )


KINDS: dict[str, Callable[[Lot, Draw], Clip]] = {"broadcast": broadcast, "walk": walk}


def filmed(clip: Clip, grain: Draw) -> Iterator[tuple[U8, F32, F32]]:
    """Images, true joints (P, J, 2) px and visible shares (P,) of the people, 0 outside the image."""
    matrix, count = lens(1.0, SIZE, clip.fov), len(clip.people)
    for index in range(round(clip.seconds * clip.rate)):
        time = index / clip.rate
        pose = clip.camera(time)
        image = render(clip.room, pose, matrix, SIZE).astype(np.float32)
        image += grain.normal(0, 2, image.shape[:2])[..., None]
        joints = np.full((count, len(clip.people[0].cutouts[0].joints), 2), np.nan, np.float32)
        shown: dict[int, F32] = {}  # visible shares of the pixels of the boxes
        boxes: dict[int, list[int]] = {}
        areas = np.ones(count)
        depths = [(np.array([x, 0, z]) - pose.place) @ pose.turn[:, 2] for x, z in (p.place(time) for p in clip.people)]
        for number in np.argsort(depths)[::-1].tolist():
            if depths[number] < 0.6:
                continue
            person = clip.people[number]
            cutout = person.cutouts[index % len(person.cutouts)]
            affine = _affine(person, cutout, time, clip.floor, pose, matrix)
            joints[number] = cutout.joints @ affine[:, :2].T + affine[:, 2]
            box = _box_in_image(cutout, affine)
            corner, size = box[:2], (box[2] - box[0], box[3] - box[1])
            areas[number] = float(cutout.alpha.sum()) * float(affine[1, 1]) ** 2
            if min(size) <= 0:
                continue
            own = affine - np.array([[0, 0, corner[0]], [0, 0, corner[1]]], np.float32)
            picture = cv2.warpAffine(dyed(cutout, person.colour).image, own, size, flags=cv2.INTER_LINEAR)
            alpha = cv2.warpAffine(cutout.alpha, own, size, flags=cv2.INTER_LINEAR)
            part = image[box[1] : box[3], box[0] : box[2]]
            part += alpha[..., None] * (picture.astype(np.float32) - part)
            for farther, seen in shown.items():
                _hide(seen, boxes[farther], alpha, box)
            shown[number], boxes[number] = alpha, box
        visible = np.array([shown[n].sum() if n in shown else 0 for n in range(count)]) / areas
        yield image.round().clip(0, 255).astype(np.uint8), joints, visible.astype(np.float32)


def _affine(person: Person, cutout: Cutout, time: float, floor: float, pose: Pose, matrix: F64) -> F32:
    """(2, 3) map from the pixels of a cutout to those of the image."""
    x, z = person.place(time)
    ends = (np.array([[x, floor, z], [x, floor - person.height, z]]) - pose.place) @ pose.turn @ matrix.T
    foot, head = ends[:, :2] / ends[:, 2:]
    tall = np.median([other.box[3] - other.box[1] for other in person.cutouts])
    scale = float(np.linalg.norm(head - foot) / tall)
    turn = -scale if person.mirrored else scale
    middle = (cutout.box[0] + cutout.box[2]) / 2
    return np.array([[turn, 0, foot[0] - turn * middle], [0, scale, foot[1] - scale * cutout.box[3]]], np.float32)


def _box_in_image(cutout: Cutout, affine: F32) -> list[int]:
    """Left, top, right and bottom (px) of the part of the image that shows a cutout."""
    height, width = cutout.alpha.shape
    corners = np.array([[0, 0], [width, 0], [0, height], [width, height]]) @ affine[:, :2].T + affine[:, 2]
    low, high = np.floor(corners.min(axis=0)) - 1, np.ceil(corners.max(axis=0)) + 2
    return [int(value) for value in np.clip([*low, *high], 0, [*SIZE, *SIZE])]


def _hide(seen: F32, box: list[int], alpha: F32, nearer: list[int]) -> None:
    """Reduce the visible shares of a person by the alpha of a nearer one, in place."""
    left, top, right, bottom = (f(a, b) for f, a, b in zip((max, max, min, min), box, nearer, strict=True))
    if left < right and top < bottom:
        seen[top - box[1] : bottom - box[1], left - box[0] : right - box[0]] *= (
            1 - alpha[top - nearer[1] : bottom - nearer[1], left - nearer[0] : right - nearer[0]]
        )


def written(kind: str, seed: int, folder: Path, lot: Callable[[], Lot]) -> tuple[Path, dict[str, Any]]:
    """The MP4 of a clip and its truth, made unless they are there."""
    path = folder / f"{kind}-{seed}.mp4"
    truth = path.with_suffix(".npz")
    if not truth.exists():
        draw = np.random.default_rng([seed, sorted(KINDS).index(kind)])
        clip = KINDS[kind](lot(), draw)
        with VideoWriter(path, SIZE, fps=clip.rate) as writer:
            frames = []
            for index, (image, joints, visible) in enumerate(filmed(clip, draw)):
                writer.write(image, index / clip.rate)
                frames.append((joints, visible))
        joints, visible = (np.stack(parts) for parts in zip(*frames, strict=True))
        np.savez_compressed(truth, joints=joints, visible=visible)
    with np.load(truth) as arrays:
        return path, dict(arrays)


def owners(keypoints: F32, joints: F32) -> list[int]:
    """The true person (P, J, 2) of each pose (N, J, 2), -1 for none."""
    if not len(keypoints):
        return []
    heights = np.ptp(joints[..., 1], axis=1)  # NaN outside the image
    apart = np.median(np.linalg.norm(keypoints[:, None] - joints[None], axis=-1), axis=2) / heights
    apart = np.where(np.isfinite(apart), apart, np.inf)
    return [int(row.argmin()) if row.min() < ON_BODY else -1 for row in apart]


def _coincide(poses: F32, height: float) -> bool:
    """Whether any two of N poses (N, J, 2) show one body, not two that overlap."""
    apart = np.median(np.linalg.norm(poses[:, None] - poses[None], axis=-1), axis=2)
    return bool((apart[np.triu_indices(len(poses), 1)] < DOUBLED * height).any())


def row(frames: list[tuple[list[int], F32]], truth: dict[str, Any]) -> list[str]:
    """Cells of the table from ids and keypoints of every frame."""
    people = truth["joints"].shape[1]
    frames_of: list[dict[int, int]] = [{} for _ in range(people)]
    last = [0] * people
    switches = doubled = found = stray = 0
    for (ids, keypoints), joints, visible in zip(frames, truth["joints"], truth["visible"], strict=True):
        mine: dict[int, list[int]] = {}
        owner_of = owners(keypoints, joints)
        for number, owner in zip(ids, owner_of, strict=True):
            mine.setdefault(owner, []).append(number)
        for owner in mine.keys() - {-1}:
            doubled += _coincide(keypoints[np.array(owner_of) == owner], np.ptp(joints[owner, :, 1]))
        stray += len(mine.pop(-1, []))
        for owner, numbers in mine.items():
            for number in numbers:
                frames_of[owner][number] = frames_of[owner].get(number, 0) + 1
            kept = last[owner] if last[owner] in numbers else numbers[0]
            switches += last[owner] not in (0, kept)
            last[owner] = kept
        found += sum(visible[owner] >= VISIBLE for owner in mine)
    counts = [sum(count >= MIN_FRAMES for count in known.values()) for known in frames_of]
    named = [count for count in counts if count]
    ids_of_all = {number for ids, _ in frames for number in ids}
    share = 100 * found / max(int((truth["visible"] >= VISIBLE).sum()), 1)
    return [
        str(len(named)), str(len(ids_of_all)), f"{np.mean(named):.2f}", str(switches), str(doubled), str(stray),
        f"{share:.0f} %",
    ]  # fmt: skip


def samples(pipeline: Pipeline, path: Path) -> dict[int, tuple[list[int], F32]]:
    """Ids and keypoints of the frames in which people are tracked."""
    with open_source(path) as source:
        session = pipeline.session(source.info.size, source.info.focal_35mm)
        people = [one.people for frame in chain(source, [None]) for one in session.tracked(frame)]
    return {one.index: (one.ids.tolist(), one.keypoints) for one in people if one.sampled}


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--folder", type=Path, required=True, help="folder of the clips, which are made if missing")
    parser.add_argument("--scenes", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--options", nargs="+", default=[], help="settings of the pipeline, NAME=VALUE")


def main(given: Namespace) -> None:
    """Print a row for each clip."""
    given.folder.mkdir(parents=True, exist_ok=True)
    settings = dict(text.split("=", 1) for text in given.options)
    changes = {name: int(value) if value.isdigit() else value for name, value in settings.items()}
    pipeline, lot = Pipeline(PipelineConfig(**changes)), cache(lambda: Lot(given.shared))
    print(
        "| clip | people with an id | ids | ids per person | switches | doubled | stray | found |\n" + "|---" * 8 + "|"
    )
    for kind in given.scenes:
        for seed in given.seeds:
            path, truth = written(kind, seed, given.folder, lot)
            found = samples(pipeline, path)
            seen = {name: values[list(found)] for name, values in truth.items()}
            print("| " + " | ".join([f"{kind}, {seed}", *row(list(found.values()), seen)]) + " |", flush=True)
