"""What is found of known camera motions in rendered rooms: docs/studies/moving-camera.md.

    python -m benchmarks.world camera-motion

Every motion in every room, 15 frames/s, with noise and a person who walks 3 m away. A camera that keeps its
place must be called static, shaking, rotating or zooming; one that does not, translating or unknown: then there is no
world. Nor is there where the background is not certain (marked ?), unless standing feet support it
(`pose.world.footing`); the walker here is an image and has none. The thresholds of `pose.world.camera_motion.verdict`
were chosen with seed 1; report others.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import cv2
import numpy as np

from benchmarks.common.rendering import FLOOR, SIZE, TEXELS, Panel, Pose, box, lens, panel, render, shake, spots, turned
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, U8, People
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.camera_motion.verdict import TRANSLATING, UNKNOWN, CameraMotion

_NOISE = 2.0  # grey levels of every pixel
_COARSE = 6.0  # texels, of what is seen at a small angle: it would alias
_FPS = 15.0
_SPEEDS = (0.2, 0.5, 1.0, 1.5)  # m/s


def _shell(rng: np.random.Generator, half: float, back: float, front: float, top: float) -> list[Panel]:
    """Floor, back wall and side walls."""
    high, deep = FLOOR + top, back - front
    texels = min(TEXELS, 400 / back)
    return [
        panel(rng, (-half, -top, back), (2 * half, 0, 0), (0, high, 0), texels),
        panel(rng, (-half, FLOOR, front), (2 * half, 0, 0), (0, 0, deep), texels, _COARSE),
        panel(rng, (-half, -top, front), (0, 0, deep), (0, high, 0), texels, _COARSE),
        panel(rng, (half, -top, front), (0, 0, deep), (0, high, 0), texels, _COARSE),
    ]


def _things(rng: np.random.Generator, count: int, half: float, near: float, far: float) -> list[Panel]:
    panels = []
    for _ in range(count):
        size = rng.uniform((0.3, 0.4, 0.3), (1.1, 2.0, 0.8))
        panels += box(rng, (rng.uniform(-half, half), rng.uniform(near, far)), (size[0], size[1], size[2]))
    return panels


def small_room(rng: np.random.Generator) -> list[Panel]:
    """5 m deep, with furniture."""
    return _shell(rng, 3, 5, -3, 1.2) + _things(rng, 7, 2.7, 2.2, 4.7)


def hall(rng: np.random.Generator) -> list[Panel]:
    """12 m deep, with things between 4 and 11 m."""
    return _shell(rng, 9, 12, -4, 4) + _things(rng, 12, 7, 4, 11)


def bare_room(rng: np.random.Generator) -> list[Panel]:
    """7 m deep, without anything in it."""
    return _shell(rng, 5, 7, -4, 1.5)


def far_wall(rng: np.random.Generator) -> list[Panel]:
    """A wall 9 m away, and nothing else."""
    return [panel(rng, (-30, -12, 9), (60, 0, 0), (0, 24, 0), 45)]


def street(rng: np.random.Generator) -> list[Panel]:
    """Houses 35 m away, a textured ground, and things between 6 and 20 m."""
    ground = panel(rng, (-20, FLOOR, 1), (40, 0, 0), (0, 0, 34), 20)
    houses = panel(rng, (-60, -20, 35), (120, 0, 0), (0, 21.5, 0), 12)
    return [ground, houses, *_things(rng, 12, 10, 6, 20)]


def few_things(rng: np.random.Generator) -> list[Panel]:
    """A wall 9 m away, and two things before it."""
    return far_wall(rng) + _things(rng, 2, 2, 3, 5)


def corridor(rng: np.random.Generator) -> list[Panel]:
    """3 m wide and 20 m long."""
    return _shell(rng, 1.5, 20, -6, 1.2)


ROOMS: dict[str, Callable[[np.random.Generator], list[Panel]]] = {
    "small room": small_room, "hall": hall, "bare room": bare_room, "far wall": far_wall, "street": street,
    "few things": few_things, "corridor": corridor,
}  # fmt: skip


# How far down a box joints lie.
_DOWN = {"ankle": 0.97, "knee": 0.75, "hip": 0.52, "shoulder": 0.2, "elbow": 0.35, "wrist": 0.5, "head": 0.03}

# The pose of the camera at a time, s.
Motion = Callable[[float], Pose]


def people_in(index: int, time: float, boxes: list[tuple[float, float, float, float]]) -> People:
    """Standing people who fill these boxes (xyxy px)."""
    corners = np.array(boxes, np.float32).reshape(-1, 4)
    part = [next((at for end, at in _DOWN.items() if name.endswith(end)), 0.4) for name in H36M17.names]
    side = [0.25 if "left" in name else 0.75 if "right" in name else 0.5 for name in H36M17.names]
    at = np.stack([side, part], axis=1).astype(np.float32)
    joints = corners[:, None, :2] + at * (corners[:, None, 2:] - corners[:, None, :2])
    count = len(corners)
    ones = np.ones((count, len(at)), np.float32)
    return People(index, time, np.arange(1, count + 1), corners, ones[:, 0], joints, ones)


@dataclass(frozen=True, slots=True)
class Walker:
    """A person, drawn flat, 3 m away, who walks to and fro."""

    texture: U8
    phase: float

    @classmethod
    def of(cls, rng: np.random.Generator) -> Self:
        return cls(spots(rng, (60, 180)), float(rng.uniform(0, 6)))

    def panel(self, time: float) -> Panel:
        left = 0.8 * np.sin(0.8 * time + self.phase) - 0.25
        return Panel(np.array([left, FLOOR - 1.75, 3.0]), np.array([0.5, 0, 0]), np.array([0, 1.75, 0]), self.texture)

    def boxes(self, time: float, pose: Pose, matrix: F64) -> list[tuple[float, float, float, float]]:
        """xyxy px; none where the camera is beside the walker."""
        panel = self.panel(time)
        corners = panel.corner + np.array([np.zeros(3), panel.across, panel.down, panel.across + panel.down])
        seen = (corners - pose.place) @ pose.turn
        if (seen[:, 2] < 0.2).any():
            return []
        pixels = seen @ matrix.T
        pixels = pixels[:, :2] / pixels[:, 2:]
        return [(*(pixels.min(axis=0) - 4).tolist(), *(pixels.max(axis=0) + 4).tolist())]


def filmed(
    room: list[Panel], walker: Walker, motion: Motion, times: F64, rng: np.random.Generator, fine: int = 1
) -> Iterator[tuple[U8, People]]:
    """Images and people of a room. fine: so many times as large it is drawn, against aliasing."""
    for index, time in enumerate(times.tolist()):
        pose = motion(time)
        matrix = lens(pose.zoom)
        large = np.diag([fine, fine, 1.0]) @ matrix
        large[:2, 2] += (fine - 1) / 2
        image = render([*room, walker.panel(time)], pose, large, (SIZE[0] * fine, SIZE[1] * fine))
        image = np.asarray(cv2.resize(image, SIZE, interpolation=cv2.INTER_AREA), np.uint8)
        grain = rng.normal(0, _NOISE, image.shape[:2])[..., None]
        shown = np.clip(image + grain, 0, 255).astype(np.uint8)
        yield shown, people_in(index, time, walker.boxes(time, pose, matrix))


def sine(time: float, degrees: float, period: float) -> float:
    return float(degrees * np.sin(2 * np.pi * time / period))


def placed(x: float = 0.0, y: float = 0.0, z: float = 0.0, turn: F64 | None = None, zoom: float = 1.0) -> Pose:
    return Pose(np.array([x, y, z]), np.eye(3) if turn is None else turn, zoom)


def off_axis(pan: float) -> Pose:
    """On a tripod whose axis lies 10 cm behind the camera's centre."""
    turn = turned(0, pan)
    return Pose(turn @ [0, 0, 0.1] - [0, 0, 0.1], turn)


def keeping(seed: int) -> dict[str, Motion]:
    """Cameras that keep their place."""
    hand, other = shake(seed), shake(seed + 50)
    return {
        "static": lambda t: placed(),
        "pan and tilt": lambda t: placed(turn=turned(sine(t, 3, 1.8), sine(t, 12, 2.5))),
        "slow pan": lambda t: placed(turn=turned(0, 6 * t)),
        "fast pan": lambda t: placed(turn=turned(0, 25 * t - 30)),
        "shake": lambda t: placed(turn=turned(*hand(t))),
        "zoom": lambda t: placed(zoom=1.3 ** sine(t, 1, 4)),
        "pan and zoom": lambda t: placed(turn=turned(0, 8 * t), zoom=1.15**t),
        "tripod, 10 cm off axis": lambda t: off_axis(sine(t, 15, 3)),
        "tripod, 10 cm off axis, fast": lambda t: off_axis(25 * t - 30),
        "in the hand, 2 cm to and fro": lambda t: placed(
            sine(t, 0.02, 2), sine(t + 1, 0.02, 2.5), sine(t + 2, 0.02, 3), turned(*other(t))
        ),
    }  # fmt: skip


def carried(seed: int, speed: float) -> dict[str, Motion]:
    """Cameras that do not; speed: m/s."""
    hand = shake(seed)

    def orbit(t: float) -> Pose:
        angle = speed * t / 3  # around a person 3 m away
        return placed(3 * np.sin(angle), 0, 3 - 3 * np.cos(angle), turned(0, -np.degrees(angle)))

    def walk(t: float) -> Pose:
        step = sine(t, 0.02, 1.0), sine(t, 0.03, 0.5)
        return placed(0.77 * speed * t + step[0], step[1], 0.64 * speed * t, turned(*(2 * hand(t))))

    return {
        "sideways": lambda t: placed(speed * t),
        "sideways, shaking": lambda t: placed(speed * t, turn=turned(*hand(t))),
        "sideways, panning to and fro": lambda t: placed(speed * t, turn=turned(sine(t, 2, 2), sine(t, 10, 3))),
        "sideways, panning on": lambda t: placed(speed * t, turn=turned(0, 10 * t)),
        "forwards": lambda t: placed(z=0.8 * speed * t - 0.5),
        "round a person": orbit,
        "walking": walk,
    }


def motion_of(name: str, seed: int) -> Motion:
    kept = keeping(seed)
    if name in kept:
        return kept[name]
    kind, speed = name.rsplit(", ", 1)
    return carried(seed, float(speed.removesuffix(" m/s")))[kind]


def found(job: tuple[str, str, int, float]) -> CameraMotion:
    """What is found. job: the room, the motion, the seed and seconds."""
    room, name, seed, seconds = job
    cv2.setNumThreads(1)
    rng = np.random.default_rng(seed)
    panels, walker = ROOMS[room](rng), Walker.of(rng)
    stage, log = BackgroundMotion(float(lens()[0, 0]), H36M17), MotionLog()
    times = np.arange(int(seconds * _FPS)) / _FPS
    fine = 3 if room == "corridor" else 1  # its walls are seen at small angles
    for image, people in filmed(panels, walker, motion_of(name, seed), times, rng, fine):
        log.add(replace(people, background=stage.step(image, people)))
    return log.solve()[1]


def label(motion: CameraMotion) -> str:
    """The kind, with a question mark where feet must support it."""
    sure = motion.excludes_translation or motion.kind in (TRANSLATING, UNKNOWN)
    return motion.kind if sure else f"{motion.kind}?"


def has_world(motion: CameraMotion) -> bool:
    """Whether there is a world if no feet are in view."""
    return motion.kind not in (TRANSLATING, UNKNOWN) and motion.excludes_translation


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--seconds", type=float, default=3.0)


def main(given: Namespace) -> None:
    """Print a table of kinds by motion and room, and the shares that are right."""
    still = list(keeping(0))
    moved = [f"{kind}, {speed:g} m/s" for kind, speed in product(carried(0, 1.0), _SPEEDS)]
    jobs = [(room, name, seed, given.seconds) for name in still + moved for room in given.rooms for seed in given.seeds]
    with ProcessPoolExecutor(2) as pool:
        results = dict(zip(jobs, pool.map(found, jobs, chunksize=4), strict=True))
    print("| motion | " + " | ".join(given.rooms) + " |\n|---|" + "---|" * len(given.rooms))
    for name in still + moved:
        cells = [
            ", ".join(sorted({label(results[room, name, seed, given.seconds]) for seed in given.seeds}))
            for room in given.rooms
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for title, names, right in (
        ("keep their place, world if feet stand", still, lambda motion: motion.kind not in (TRANSLATING, UNKNOWN)),
        ("keep their place, world without feet", still, has_world),
        ("do not, no world without feet", moved, lambda motion: not has_world(motion)),
    ):
        for room in given.rooms:
            motions = [results[room, name, seed, given.seconds] for name in names for seed in given.seeds]
            print(f"{title}: {room}: {sum(map(right, motions))} of {len(motions)}")
