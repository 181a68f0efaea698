"""What is found of known camera motions in rendered rooms: docs/studies/moving-camera.md.

    python -m benchmarks.moving_camera [--seeds 2 3] [--rooms hall ...] [--seconds 3]

Every motion in every room, 15 frames/s, with noise and a person who walks 3 m away. A camera that keeps its
place must be called static, shaking, rotating or zooming; one that does not, translating or unknown: then there is no
world. Nor is there where the background is not certain (marked ?), unless standing feet support it
(`pose.world.footing`); the walker here is an image and has none. The thresholds of `pose.world.camera_motion.verdict`
were
chosen with seed 1; report others.

The rooms are made of textured planes. World axes: x right, y down, z forward, metres; the camera begins 1.5 m above the
floor.
"""

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import cv2
import numpy as np

from pose.structures.camera import intrinsics_from_fov
from pose.structures.camera_rotations import to_matrix
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, U8, People
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.camera_motion.verdict import TRANSLATING, UNKNOWN, CameraMotion

SIZE = 384, 216
FLOOR = 1.5  # m below the camera
_TEXELS = 60.0  # per metre of a texture
_FINEST = 2.0  # texels
_NOISE = 2.0  # grey levels of every pixel
_COARSE = 6.0  # texels, of what is seen at a small angle: it would alias
_FPS = 15.0
_SPEEDS = (0.2, 0.5, 1.0, 1.5)  # m/s


@dataclass(frozen=True, slots=True)
class Panel:
    """A textured rectangle. corner, across, down: (3,) m in the world. texture: (h, w) grey levels."""

    corner: F64
    across: F64
    down: F64
    texture: U8


def spots(rng: np.random.Generator, size: tuple[int, int], finest: float = _FINEST, contrast: float = 32.0) -> U8:
    """(h, w) smooth random spots with corners everywhere; size: (w, h)."""
    total = np.zeros((size[1], size[0]), np.float32)
    for width in (finest, 3 * finest, 12 * finest):
        small = max(1, int(width / 2))
        noise = rng.standard_normal((size[1] // small + 8, size[0] // small + 8)).astype(np.float32)
        noise = cv2.GaussianBlur(noise, (0, 0), width / small)
        noise = cv2.resize(noise, None, fx=small, fy=small, interpolation=cv2.INTER_LINEAR)[: size[1], : size[0]]
        total += (noise - noise.mean()) / noise.std()
    return np.asarray(np.clip(128 + rng.uniform(-30, 30) + contrast * total, 0, 255), np.uint8)


def panel(
    rng: np.random.Generator,
    corner: object,
    across: object,
    down: object,
    texels: float = _TEXELS,
    finest: float = _FINEST,
) -> Panel:
    """A panel with a texture of its own."""
    one, other = np.asarray(across, np.float64), np.asarray(down, np.float64)
    size = [max(16, int(texels * np.linalg.norm(side))) for side in (one, other)]
    return Panel(np.asarray(corner, np.float64), one, other, spots(rng, (size[0], size[1]), finest))


def box(rng: np.random.Generator, middle: tuple[float, float], size: tuple[float, float, float]) -> list[Panel]:
    """The four sides of a box on the floor. middle: (x, z) m. size: width, height, depth m."""
    (x, z), (wide, high, deep) = middle, size
    left, right, near, top = x - wide / 2, x + wide / 2, z - deep / 2, FLOOR - high
    tall = (0, high, 0)
    return [
        panel(rng, (left, top, near), (wide, 0, 0), tall),
        panel(rng, (left, top, near), (0, 0, deep), tall),
        panel(rng, (right, top, near), (0, 0, deep), tall),
        panel(rng, (left, top, near), (wide, 0, 0), (0, 0, deep)),
    ]


def _shell(rng: np.random.Generator, half: float, back: float, front: float, top: float) -> list[Panel]:
    """Floor, back wall and side walls."""
    high, deep = FLOOR + top, back - front
    texels = min(_TEXELS, 400 / back)
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


@dataclass(frozen=True, slots=True)
class Pose:
    """Of a camera. place: (3,) m. turn: (3, 3), from its axes to the world's. zoom: of its focal length."""

    place: F64
    turn: F64
    zoom: float = 1.0


def lens(zoom: float = 1.0, size: tuple[int, int] = SIZE, fov: float = 55.0) -> F64:
    """(3, 3) px. fov: degrees of the longer side without zoom."""
    matrix = intrinsics_from_fov(size, fov)
    matrix[[0, 1], [0, 1]] *= zoom
    return matrix


def render(panels: list[Panel], pose: Pose, matrix: F64, size: tuple[int, int] = SIZE) -> U8:
    """(H, W, 3) RGB. matrix: (3, 3) px, of the camera."""
    width, height = size
    image = np.full((height, width), 90, np.uint8)
    nearest = np.full((height, width), 1e-3, np.float32)
    back = pose.turn @ np.linalg.inv(matrix)  # pixels to rays in the world, z = 1 in the camera
    for item in panels:
        normal = _cross(item.across, item.down)
        offset = normal @ (item.corner - pose.place)
        part = _part_of_image(item, pose, matrix, size)
        if abs(offset) < 1e-9 or part is None:
            continue
        rows, columns = (np.arange(side.start, side.stop, dtype=np.float32) for side in part)

        def plane(form: F64, rows: F32 = rows, columns: F32 = columns) -> F32:
            a, b, c = (form @ back).astype(np.float32)
            return np.asarray(a * columns + (b * rows + c)[:, None], np.float32)

        inverse = plane(normal / offset)
        across = item.across / (item.across @ item.across)
        down = item.down / (item.down @ item.down)
        away, safe = pose.place - item.corner, np.maximum(inverse, 1e-6)
        u = (plane(across) + np.float32(across @ away) * inverse) / safe
        v = (plane(down) + np.float32(down @ away) * inverse) / safe
        shown = (inverse > nearest[part]) & (u > 0) & (u < 1) & (v > 0) & (v < 1)
        high, wide = item.texture.shape
        drawn = cv2.remap(item.texture, u * np.float32(wide - 1), v * np.float32(high - 1), cv2.INTER_LINEAR)
        image[part][shown], nearest[part][shown] = drawn[shown], inverse[shown]
    return np.repeat(image[..., None], 3, axis=2)


def _cross(one: F64, other: F64) -> F64:
    """(3,), without the cost of NumPy's."""
    (a, b, c), (x, y, z) = one.tolist(), other.tolist()
    return np.array([b * z - c * y, c * x - a * z, a * y - b * x])


def _part_of_image(item: Panel, pose: Pose, matrix: F64, size: tuple[int, int]) -> tuple[slice, slice] | None:
    """Rows and columns in which a panel may lie; None outside the image."""
    corners = item.corner + np.array([[a, b] for a in (0, 1) for b in (0, 1)]) @ np.stack([item.across, item.down])
    seen = (corners - pose.place) @ pose.turn
    if (seen[:, 2] < 0.1).all():
        return None
    if (seen[:, 2] < 0.1).any():
        return slice(0, size[1]), slice(0, size[0])
    pixels = seen @ matrix.T
    pixels = pixels[:, :2] / pixels[:, 2:]
    low, high = np.floor(pixels.min(axis=0)).clip(0), np.ceil(pixels.max(axis=0) + 1).clip(max=size)
    if (low >= high).any():
        return None
    return slice(int(low[1]), int(high[1])), slice(int(low[0]), int(high[0]))


# How far down a box joints lie.
_DOWN = {"ankle": 0.97, "knee": 0.75, "hip": 0.52, "shoulder": 0.2, "elbow": 0.35, "wrist": 0.5, "head": 0.03}

# Motions: the pose of the camera at a time, s.
Motion = Callable[[float], Pose]


def turned(tilt: float = 0.0, pan: float = 0.0, roll: float = 0.0) -> F64:
    """(3, 3) of degrees about x, y and z."""
    return to_matrix(np.radians(np.array([tilt, pan, roll])))


def shake(seed: int, degrees: float = 0.3) -> Callable[[float], F64]:
    """Of a hand: (3,) degrees at a time, sines of 0.5 to 4 Hz, so many degrees rms about each axis."""
    rng = np.random.default_rng(seed)
    hertz, phase = rng.uniform(0.5, 4, (3, 8)), rng.uniform(0, 2 * np.pi, (3, 8))
    return lambda time: np.asarray(degrees / 2 * np.sin(2 * np.pi * hertz * time + phase).sum(axis=1))


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


def main() -> None:
    """Print a table of kinds by motion and room, and the shares that are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    still = list(keeping(0))
    moved = [f"{kind}, {speed:g} m/s" for kind, speed in product(carried(0, 1.0), _SPEEDS)]
    jobs = [
        (room, name, seed, options.seconds)
        for name in still + moved
        for room in options.rooms
        for seed in options.seeds
    ]
    with ProcessPoolExecutor(2) as pool:
        results = dict(zip(jobs, pool.map(found, jobs, chunksize=4), strict=True))
    print("| motion | " + " | ".join(options.rooms) + " |\n|---|" + "---|" * len(options.rooms))
    for name in still + moved:
        cells = [
            ", ".join(sorted({label(results[room, name, seed, options.seconds]) for seed in options.seeds}))
            for room in options.rooms
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for title, names, right in (
        ("keep their place, world if feet stand", still, lambda motion: motion.kind not in (TRANSLATING, UNKNOWN)),
        ("keep their place, world without feet", still, has_world),
        ("do not, no world without feet", moved, lambda motion: not has_world(motion)),
    ):
        for room in options.rooms:
            motions = [results[room, name, seed, options.seconds] for name in names for seed in options.seeds]
            print(f"{title}: {room}: {sum(map(right, motions))} of {len(motions)}")


if __name__ == "__main__":
    main()
