"""Known camera motions over a clip of a static camera: how well they are found, and what the world keeps of them.

    python -m benchmarks.moving_camera CLIP RESULT [--motions pan shake] [--drift]

CLIP: of a camera that stands still. RESULT: its `poses.npz`, of `pose-run --no-world --camera fixed`. Each frame is
seen through a virtual camera of 1.6 times the focal length that turns, shakes, zooms or has a rolling shutter. The
people are those of the result, turned with it: what is compared is the camera alone, not the networks. The truth is
the world of the static clip. `--drift`: no worlds. docs/studies/moving-camera.md.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import thread_time

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.rendered_rooms import shake as hand
from pose.results import PoseTable, load_poses
from pose.structures.camera import Camera
from pose.structures.camera_rotations import to_matrix
from pose.structures.types import U8, FrameResult, Poses3D
from pose.training.evaluation import world as measures
from pose.video import open_source
from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import TRANSLATING, UNKNOWN, CameraMotion
from pose.world.clean import Steps
from pose.world.footing import check_with_feet
from pose.world.frame import World
from pose.world.run import PlacedRun

F64 = NDArray[np.float64]
Motion = Callable[[F64], tuple[F64, F64]]  # times (F,) s to rotation vectors (F, 3) in degrees and zooms (F,)
Placed = dict[tuple[int, int], tuple[NDArray[np.float32], NDArray[np.float32]]]

NARROW = 1.6  # focal length of the virtual cameras over that of the clip
ANKLES = [3, 6]
READOUT, BANDS = 0.02, 24  # s that a rolling shutter takes over the image, in so many bands


def still(times: F64) -> tuple[F64, F64]:
    return np.zeros((len(times), 3)), np.ones(len(times))


def pan(times: F64) -> tuple[F64, F64]:
    """By 8 degrees either way in 6 s, and up and down by 3 in 4.3 s."""
    turn = np.zeros((len(times), 3))
    turn[:, 1], turn[:, 0] = 8 * np.sin(2 * np.pi * times / 6), 3 * np.sin(2 * np.pi * times / 4.3)
    return turn, np.ones(len(times))


def shake(times: F64) -> tuple[F64, F64]:
    """Of a hand, 0.3 degrees rms about each axis."""
    wave = hand(0)
    return np.array([wave(float(time)) for time in times]), np.ones(len(times))


def zoom(times: F64) -> tuple[F64, F64]:
    """In and out by 30 % in 8 s."""
    return np.zeros((len(times), 3)), np.asarray(1.3 ** np.sin(2 * np.pi * times / 8))


MOTIONS: dict[str, Motion] = {"static": still, "pan": pan, "shake": shake, "zoom": zoom, "pan, rolling shutter": pan}


def matrices(camera: Camera, zooms: F64) -> F64:
    """(F, 3, 3) px of the virtual camera."""
    lens = np.tile(camera.matrix, (len(zooms), 1, 1))
    lens[:, [0, 1], [0, 1]] *= NARROW * zooms[:, None]
    return lens


def render(image: U8, camera: Camera, turn: F64, lens: F64) -> U8:
    back = camera.matrix @ turn @ np.linalg.inv(lens)
    way = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpPerspective(image, back, image.shape[1::-1], flags=way), np.uint8)


def images(video: str, table: PoseTable, name: str) -> Iterator[U8]:
    camera, times = table.camera, table.timestamps
    assert camera is not None
    vectors, zooms = MOTIONS[name](times)
    lenses = matrices(camera, zooms)
    with open_source(video) as source:
        for at, frame in zip(range(len(times)), source, strict=False):
            if "shutter" not in name:
                yield render(frame.image, camera, to_matrix(np.radians(vectors[at])), lenses[at])
                continue
            borders = np.linspace(0, frame.image.shape[0], BANDS + 1).astype(int)
            late = MOTIONS[name](times[at] + READOUT * (np.arange(BANDS) / (BANDS - 1) - 0.5))[0]
            bands = [render(frame.image, camera, to_matrix(np.radians(turn)), lenses[at]) for turn in late]
            yield np.concatenate([band[a:b] for band, a, b in zip(bands, borders, borders[1:], strict=False)])


def turned(table: PoseTable, vectors: F64, zooms: F64) -> list[FrameResult]:
    """The result as the virtual camera has it; distances as the lens of its first frame makes them."""
    camera = table.camera
    assert camera is not None
    lenses, turns = matrices(camera, zooms), to_matrix(np.radians(vectors))
    results = []
    for at, result in enumerate(table):
        joints, root = result.poses.joints @ turns[at], result.poses.root @ turns[at]
        rays = np.concatenate([result.people.keypoints, np.ones((*result.people.keypoints.shape[:2], 1))], axis=2)
        seen = rays @ np.linalg.inv(camera.matrix).T @ turns[at] @ lenses[at].T
        pixels = (seen[..., :2] / np.maximum(seen[..., 2:], 1e-3)).astype(np.float32)
        boxes = result.people.boxes
        if len(pixels):
            boxes = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)
        root = root * [1, 1, zooms[0] / zooms[at]]
        poses = Poses3D(joints.astype(np.float32), root.astype(np.float32), result.poses.sigma, result.poses.swapped)
        results.append(FrameResult(replace(result.people, keypoints=pixels, boxes=boxes, background=None), poses))
    return results


def world_of(
    results: list[FrameResult], table: PoseTable, lens: F64, path: CameraPath | None
) -> tuple[Placed, World, list[F64]]:
    """By frame and id, the joints in the world (17, 3) m and the contacts (2,); the world; and how feet move in it."""
    assert table.camera is not None
    with PlacedRun(results, table.skeleton, Camera(lens, True, table.camera.size), Steps(path=path), join=False) as run:
        placed = {
            (result.index, number): (result.placed.joints[row], result.placed.contacts[row])
            for result in run
            for row, number in enumerate(result.people.ids.tolist())
            if result.placed is not None
        }
        return placed, run.world, run.foot_velocities


def world_row(placed: Placed, world: World, begin: F64, truth: Placed, true_world: World, times: F64) -> list[float]:
    """W-MPJPE, WA-MPJPE and difference in place (mm), RTE (%), FS-ankle (mm), jitter, gravity (degrees), share of the
    frames with a standing foot whose lower ankle is within 8 cm of the floor (%). begin: (3, 3), from the axes of the
    world's camera to the still one's.
    """
    rows: list[list[NDArray[np.floating]]] = [[] for _ in range(6)]
    fps = 1 / float(np.median(np.diff(times)))
    for number in sorted({number for _, number in truth}):
        frames = sorted(index for index, other in truth if other == number and (index, number) in placed)
        if len(frames) < 30:
            continue
        one, two = (np.array([side[index, number][0] for index in frames], np.float64) for side in (placed, truth))
        rows[0].append(measures.chunk_errors(one, two, scale=False).mean(axis=1))
        rows[1].append(measures.chunk_errors(one, two, first=None, scale=False).mean(axis=1))
        rows[2].append(1000 * np.linalg.norm(one - two, axis=2).mean(axis=1))
        rows[3].append(measures.root_path_errors(one[:, 0], two[:, 0]))
        rows[4].append(measures.foot_slides(one[:, ANKLES], two[:, ANKLES]))
        rows[5].append(measures.jitter(one, fps))
    lows = [abs(joints[ANKLES, 1].min() - 0.08) for joints, contacts in placed.values() if (contacts > 0.5).any()]
    gravity = float(np.degrees(np.arccos(np.clip(begin @ world.up @ true_world.up, -1, 1))))
    return [*(float(np.concatenate(row).mean()) for row in rows), gravity, 100 * float((np.array(lows) < 0.08).mean())]


def found(
    video: str, table: PoseTable, name: str, results: list[FrameResult]
) -> tuple[CameraPath, CameraMotion, float]:
    """The path and what it amounts to, and ms of processor time a frame."""
    assert table.camera is not None
    lens = matrices(table.camera, MOTIONS[name](table.timestamps)[1][:1])[0]
    stage, log, seconds = BackgroundMotion(float(lens[0, 0]), table.skeleton), MotionLog(), 0.0
    for image, result in zip(images(video, table, name), results, strict=True):
        begun = thread_time()
        background = stage.step(image, result.people)
        seconds += thread_time() - begun
        log.add(replace(result.people, background=background))
    return *log.solve(), 1000 * seconds / len(results)


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip")
    parser.add_argument("result")
    parser.add_argument("--motions", nargs="+", choices=MOTIONS, default=list(MOTIONS))
    parser.add_argument("--drift", action="store_true")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    table = load_poses(options.result)
    times = table.timestamps
    assert table.camera is not None
    truth = None if options.drift else world_of(
        turned(table, *still(times)), table, matrices(table.camera, np.ones(1))[0], None
    )[:2]  # fmt: skip
    print("| motion | found | known % | error °, median | maximum | after 10 s ° | after 2 min ° | zoom error % | ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    lines = []
    for name in options.motions:
        vectors, zooms = MOTIONS[name](times)
        results, lens = turned(table, vectors, zooms), matrices(table.camera, zooms[:1])[0]
        path, motion, cost = found(options.clip, table, name, results)
        true = to_matrix(np.radians(vectors))
        apart = np.swapaxes(path.rotations, 1, 2) @ (true[0].T @ true)
        off = np.degrees(np.arccos(np.clip((np.trace(apart, axis1=1, axis2=2) - 1) / 2, -1, 1)))
        after = [
            float(off[(at := np.searchsorted(times, second)) - 15 : at].mean()) if times[-1] > second else np.nan
            for second in (10, 120)
        ]
        scale = 100 * float(np.abs(path.zooms / (zooms / zooms[0]) - 1).max())
        numbers = (100 * motion.known, float(np.median(off)), float(off.max()), *after, scale, cost)
        print(f"| {name} | {motion.kind} | {' | '.join(f'{number:.3g}' for number in numbers)} |", flush=True)
        if truth is None:
            continue
        for said, used in (("--camera fixed", None), ("auto", path if motion.moves else None)):
            if said == "auto" and motion.kind in (TRANSLATING, UNKNOWN):
                lines.append((f"{name}, auto: no world", [np.nan] * 8))
                continue
            placed, world, feet = world_of(results, table, lens, used)
            if check_with_feet(Decision(motion, used, check_feet=True), feet).problem:
                lines.append((f"{name}, {said}: no world, feet slide", [np.nan] * 8))
                continue
            begin = np.eye(3) if used is None else true[0]
            lines.append((f"{name}, {said}", world_row(placed, world, begin, *truth, times)))
    if lines:
        names = "W-MPJPE mm | WA-MPJPE mm | offset mm | RTE % | FS-ankle mm | jitter | gravity ° | ankle within 8 cm %"
        print(f"\n| | {names} |\n|{'---|' * 9}")
    for name, row in lines:
        print(f"| {name} | {' | '.join(f'{number:.3g}' for number in row)} |")


if __name__ == "__main__":
    main()
