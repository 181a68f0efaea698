"""What is found of known camera motions in rendered rooms: docs/studies/moving-camera.md.

    python -m benchmarks.moving_camera_kinds [--seeds 2 3] [--rooms hall ...] [--seconds 3]

Every motion in every room, 15 frames a second, with noise and a person who walks 3 m away. A camera that keeps its
place must be called static, shaking, rotating or zooming; one that does not, translating or unknown: then there is no
world. Nor is there where the background is not certain (marked ?), unless standing feet support it
(`pose.world.footing`); the walker here is an image and has none. The thresholds of `pose.world.camera_motion.verdict`
were
chosen with seed 1; report others.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product

import cv2
import numpy as np

from benchmarks.rendered_rooms import F64, ROOMS, Motion, Pose, Walker, filmed, lens, shake, turned
from pose.structures.skeletons import H36M17
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.camera_motion.verdict import TRANSLATING, UNKNOWN, CameraMotion

_FPS = 15.0
_SPEEDS = (0.2, 0.5, 1.0, 1.5)  # m/s


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
