"""Heights of virtual people of 0.9 to 2.0 m, alone, in pairs and in groups of three: docs/studies/world.md.

    python benchmarks/world_sizes.py --mocap cmu.npz [--part test] [--scenes 45] [--seed 77]

Three people of random heights with the motion of random clips stand on one floor before one known camera, through a
detector's skeleton with its errors. Below 1.62 m a share of them has a child's proportions, between those of two years
and of adults: sitting height 0.585 to 0.52 of the height (A. M. Fredriks et al., "Nationwide age references for sitting
height, leg length, and sitting height/height ratio", Arch. Dis. Child. 90, 2005), head 0.19 to 0.133 of it. Limbs vary
by 4 to 6 %. Error: RMS of the difference of the logarithms of the found and the true height. Distance: frames whose
pelvis is as far from the camera as `root_sigma` says or less off. No person is occluded.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pose_datasets import errors, rotations
from pose_datasets.bodies import HEAD, assemble, to_bones
from pose_datasets.cameras import project_batch, random_lenses
from pose_datasets.definitions import observed_joints
from pose_datasets.errors import ErrorConfig
from pose_datasets.fixed_views import COCO_ROWS
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.sampling import resample
from pose_datasets.vectors import unit

from pose.lifting.load import load_lifter
from pose.lifting.repair.person import repair
from pose.structures.camera import Camera
from pose.structures.refine import lengths_of, refine
from pose.structures.sequences import Sequence2D
from pose.structures.types import F32
from pose.world.clean import clean
from pose.world.height import stature
from pose.world.person import Person, person_of
from pose.world.rules import RULES

F64 = NDArray[np.float64]

FPS, FRAMES = 30.0, 120
SHORTEST, TALLEST = 0.9, 2.0  # m
BOUNDS = (1.2, 1.4, 1.6, 1.8)  # m, between the columns of the table
ADULT_SITTING, ADULT_HEAD = 0.52, 0.133  # of the height
CHILD_SITTING, CHILD_HEAD = 0.585, 0.19  # at two years, 0.87 m
FIXED = RULES.size.ankle_height_m + RULES.size.crown_height_m
ANKLES = [3, 6]


@dataclass(frozen=True, slots=True)
class Actor:
    """height: m, true. lifted: m, the lifter's. person: as lifted. depth: (T,) m of the pelvis, true."""

    height: float
    lifted: float
    person: Person
    depth: F32


def body(points: F64, height: float, rng: np.random.Generator) -> F32:
    """The motion (T, 19, 3) m of a person `height` m tall, feet on 0."""
    own = stature(lengths_of(points[:, :17], np.ones((len(points), 17))))
    child = rng.random() < np.clip((1.62 - height) / 0.2, 0, 1)
    grown = float(np.clip((height - 0.87) / 0.75, 0, 1)) if child else 1.0
    sitting = CHILD_SITTING + (ADULT_SITTING - CHILD_SITTING) * grown + rng.normal(0, 0.013)
    head = (CHILD_HEAD + (ADULT_HEAD - CHILD_HEAD) * grown) * np.exp(rng.normal(0, 0.05))
    factors = np.ones(19)
    factors[[0, 2, 3, 5, 6]] = (1 - sitting) / (1 - ADULT_SITTING)
    factors[[7, 8]] = (sitting - head) / (ADULT_SITTING - ADULT_HEAD)
    factors[HEAD] = head / ADULT_HEAD
    factors[[12, 13, 15, 16]] = np.exp(rng.normal(-0.03 * (1 - grown), 0.04))
    factors[[11, 14]], factors[[1, 4]] = np.exp(rng.normal(0, 0.05)), np.exp(rng.normal(0, 0.06))
    bones = to_bones(points.astype(np.float32)) * factors[:, None].astype(np.float32)
    bare = stature(lengths_of(assemble(bones)[:, :17], np.ones((len(bones), 17)))) - FIXED
    placed = assemble(bones * np.float32((height - FIXED * height / own) / bare))
    placed[..., 1] -= np.percentile(placed[:, ANKLES, 1].min(axis=1), 10) - 0.08 * height / own
    return placed


def camera(rng: np.random.Generator, points: F64, lens: F32, size: F32) -> tuple[F64, F64]:
    """Rotation (3, 3) and centre (3,) m of a tripod camera that has 99 % of the points (N, 3) in its image."""
    aim = np.array([0.0, 0.8, 0.0])
    elevation, azimuth = np.radians(np.clip(rng.normal(8, 10), -8, 45)), rng.uniform(-np.pi, np.pi)
    away = np.array([np.cos(elevation) * np.sin(azimuth), np.sin(elevation), np.cos(elevation) * np.cos(azimuth)])
    roll = rotations.from_vector(np.array([0, 0, rng.normal(0, np.radians(2.5))], np.float32))
    distance = rng.uniform(4, 7)
    for _ in range(60):
        centre = aim + away * distance
        centre[1] = max(centre[1], 0.3)
        forward = unit((aim - centre)[None])[0]
        right = unit(np.cross(forward, [0.0, 1.0, 0.0])[None])[0]
        rotation = (roll @ np.stack([right, np.cross(forward, right), forward])).astype(np.float64)
        seen = (points - centre) @ rotation.T
        pixels = project_batch(np.maximum(seen, [-np.inf, -np.inf, 0.1])[None].astype(np.float32), lens)[0]
        if ((pixels > 0).all(axis=-1) & (pixels < size - 1).all(axis=-1) & (seen[:, 2] > 0.5)).mean() >= 0.99:
            break
        distance *= 1.08
    return rotation, centre


def scene(clips: list[Clip], rng: np.random.Generator, network: object) -> list[Actor]:
    """Three people on one floor before one camera, lifted."""
    sizes, lens = random_lenses(rng, 1)
    heights, bodies = rng.uniform(SHORTEST, TALLEST, 3).tolist(), []
    for height in heights:
        points, _ = resample(clips[rng.integers(len(clips))], FPS)
        first = rng.integers(0, max(1, len(points) - FRAMES))
        placed = body(points[first : first + FRAMES].astype(np.float64), height, rng)
        placed[..., [0, 2]] -= placed[..., [0, 2]].mean(axis=(0, 1))
        cos, sin = np.cos(angle := rng.uniform(0, 2 * np.pi)), np.sin(angle)
        placed = placed @ np.array([[cos, 0, -sin], [0, 1, 0], [sin, 0, cos]], np.float32)
        bodies.append(placed + np.array([rng.uniform(-2, 2), 0, rng.uniform(-2.5, 2.5)], np.float32))
    frames = min(map(len, bodies))
    bodies = [one[:frames] for one in bodies]
    rotation, centre = camera(rng, np.concatenate([one.reshape(-1, 3) for one in bodies]), lens, sizes[0])
    actors, times = [], np.arange(frames) / FPS
    for height, placed in zip(heights, bodies, strict=True):
        there = ((placed - centre) @ rotation.T).astype(np.float32)
        pixels = project_batch(observed_joints(there)[None], lens)
        depth = there[None, :, :17, 2] - there[None, :, :1, 2]
        pixels, scores = errors.add_errors(rng, pixels, times[None], sizes, depth, ErrorConfig())
        known = Camera.of((int(sizes[0, 0]), int(sizes[0, 1])), lens[0])
        seen = Sequence2D(pixels[0][:, COCO_ROWS], scores[0][:, COCO_ROWS], times, known, "coco17")
        mended = repair(seen)
        person = person_of(refine(network.lift(mended), mended), seen)
        actors.append(Actor(height, stature(lengths_of(person.joints, person.sigma)), person, there[:, 0, 2]))
    return actors


def row(scenes: list[list[Actor]], count: int) -> str:
    """What is found of the first `count` people of each scene; of all people where each is alone."""
    groups = [(n,) for n in range(3)] if count == 1 else [tuple(range(count))]
    found, near = [], []
    for actors in scenes:
        for group in groups:
            _, people = clean({n: actors[n].person for n in group})
            found += [
                (actors[n].height, actors[n].lifted, one.height, one.height_sigma, *one.height_interval)
                for n, one in people.items()
            ]
            near += [1000 * np.abs(one.root[:, 2] - actors[n].depth) <= one.root_sigma for n, one in people.items()]
    true, lifted, height, sigma, shortest, tallest = np.array(found).T
    inside = np.abs(height - true) <= sigma
    sizes = np.searchsorted(BOUNDS, true, side="right")
    rms = [float(np.sqrt(np.mean(np.log(one / true) ** 2))) for one in (lifted, height)]
    by_size = [inside[sizes == size] for size in range(len(BOUNDS) + 1)]
    parts = [inside, *by_size, (shortest <= true) & (true <= tallest)]
    parts.append(np.concatenate(near))
    shares = [f"{100 * part.mean():.0f} %" if len(part) else "-" for part in parts]
    cells = [*(f"{value:.3f}" for value in rms), *shares, f"{np.median(sigma / height):.2f}"]
    return f"| {count} | {len(found)} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", type=Path, required=True)
    parser.add_argument("--part", default="test")
    parser.add_argument("--scenes", type=int, default=45)
    parser.add_argument("--seed", type=int, default=77)
    options = parser.parse_args()
    rng, network = np.random.default_rng(options.seed), load_lifter("offline", "cpu")
    clips = [c for c in split(load_clips(options.mocap), options.part) if c.times[-1] - c.times[0] >= 3]
    scenes = [scene(clips, rng, network) for _ in range(options.scenes)]
    print(
        "| together | people | error as lifted | error | within sigma | below 1.2 m | to 1.4 | to 1.6 | to 1.8 | above "
        "| within the interval | distance within root_sigma | sigma / height, median |"
    )
    print("|---" * 13 + "|")
    for count in (1, 2, 3):
        print(row(scenes, count), flush=True)


if __name__ == "__main__":
    main()
