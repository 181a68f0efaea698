"""People before a carried camera, with the translation that structure from motion finds: docs/studies/moving-camera.md.

    python -m benchmarks.moving_camera_travel --mocap clips.npz [--part test] [--rooms hall] [--clips 4] [--seconds 10]

Motion capture in a rendered room (`benchmarks/rendered_rooms.py`), filmed by a camera that is carried past the person,
after them or round them, by hand. 2D: a detector's errors (`pose_datasets.errors`); 3D: the offline lifter. Everything
else is the program's own: background, key frames, COLMAP, scale and world. Beside it: the same with `rotating` (the
translation ignored) and with a camera that stands where the other begins. Needs the extra `slam`.

RTE: after one rigid alignment, % of the true path's length. Scale: the camera's path over the true one. Rotation:
degrees off, the median, after the alignment of the first frame. FS-ankle: mm a frame, where true ankles stand.
"""

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import cv2
import numpy as np
from numpy.typing import NDArray
from pose_datasets import errors
from pose_datasets.definitions import observed_joints
from pose_datasets.fixed_views import COCO_ROWS
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.sampling import resample

from benchmarks.rendered_rooms import FLOOR, ROOMS, Panel, Pose, lens, render, shake, turned
from pose.lifting.load import load_lifter
from pose.lifting.repair.person import repair
from pose.structures.camera import Camera
from pose.structures.camera_rotations import to_matrix
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17, get_skeleton
from pose.structures.types import U8, Frame, FrameResult, People, Poses3D
from pose.training.evaluation import world as measures
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.carried import RunData
from pose.world.clean import Steps
from pose.world.placing import place_run

F64 = NDArray[np.float64]

FPS, SIZE, FOV = 30.0, (640, 360), 55.0
ANKLES = [3, 6]
AWAY = 4.0  # m from the camera to the person, in the beginning
NOISE = 2.0  # grey levels
COLUMNS = (
    "RTE %",
    "root mm",
    "W-MPJPE mm",
    "WA-MPJPE mm",
    "FS-ankle mm",
    "gravity °",
    "rotation °",
    "camera %",
    "scale",
)


@dataclass(frozen=True, slots=True)
class Scene:
    """joints: (T, 19, 3) m in the room's axes (y down). times: (T,) s. poses: of the camera."""

    joints: F64
    times: F64
    poses: list[Pose]


def in_room(clip: Clip, seconds: float) -> tuple[F64, F64]:
    """The piece of a clip with the longest way, on the room's floor, its middle AWAY m before the origin."""
    points, times = resample(clip, FPS)
    length = min(len(points), int(seconds * FPS))
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points[:, 0, [0, 2]], axis=0), axis=1))])
    begin = int(np.argmax(way[length - 1 :] - way[: len(way) - length + 1]))
    part = points[begin : begin + length].astype(np.float64) * [1, -1, -1]
    middle = (part[:, 0].min(axis=0) + part[:, 0].max(axis=0)) / 2
    low = np.percentile(part[:, ANKLES, 1], 99) + 0.08
    spread = np.ptp(part[:, 0, 2]) / 2
    return part + np.array([-middle[0], FLOOR - low, AWAY + spread - middle[2]]), times[:length]


def looking(place: F64, at: F64, hand: F64) -> Pose:
    """A level camera that has a point in its middle, shaken by degrees (3,)."""
    ahead = at - place
    pan, tilt = np.arctan2(ahead[0], ahead[2]), np.arctan2(-ahead[1], np.hypot(ahead[0], ahead[2]))
    turn = to_matrix(np.array([0.0, pan, 0.0])) @ to_matrix(np.array([tilt, 0.0, 0.0])) @ turned(*hand)
    return Pose(place, turn)


def smooth(values: F64, seconds: float) -> F64:
    """(T, 3) over time, as an operator follows."""
    return np.asarray(cv2.GaussianBlur(values, (1, 0), 0.01, sigmaY=seconds * FPS, borderType=cv2.BORDER_REPLICATE))


def cameras(joints: F64, times: F64, seed: int) -> dict[str, list[Pose]]:
    """The poses of each kind of camera, first of one that stands."""
    hand, middle = shake(seed), smooth(np.ascontiguousarray(joints[:, 0]), 1.0)
    bob = np.stack([0.02 * np.sin(2 * np.pi * times), 0.02 * np.sin(4 * np.pi * times), 0 * times], axis=1)
    span = times[-1] - times[0]

    def filmed(places: F64, shaken: float = 1.0) -> list[Pose]:
        return [looking(p, m, shaken * hand(t)) for p, m, t in zip(places, middle, times.tolist(), strict=True)]

    def line(begin: tuple[float, float, float], end: tuple[float, float, float]) -> F64:
        share = ((times - times[0]) / span)[:, None]
        return np.asarray((1 - share) * np.array(begin) + share * np.array(end))

    angle = np.radians(70) * ((times - times[0]) / span - 0.5)
    centre = middle.mean(axis=0)
    radius = max(AWAY, float(np.linalg.norm((joints[:, 0] - centre)[:, [0, 2]], axis=1).max()) + 2.5)
    orbit = np.stack([centre[0] + radius * np.sin(angle), 0 * angle, centre[2] - radius * np.cos(angle)], axis=1)
    follow = middle - middle[0]
    follow[:, 1] = 0
    still = [Pose(np.zeros(3), np.eye(3))] * len(times)
    return {
        "static": still,
        "past, 0.3 m/s": filmed(line((-0.15 * span, 0, 0), (0.15 * span, 0, 0))),
        "past by hand, 0.6 m/s": filmed(line((-0.3 * span, 0, 0), (0.3 * span, 0, 0)) + bob),
        "beside the person": filmed(follow + bob),
        "round the person": filmed(orbit + bob),
        "forwards, 0.3 m/s": filmed(line((0, 0, -0.3 * span), (0.3, 0, 0)) + bob),
    }  # fmt: skip


def seen_by(scene: Scene, rng: np.random.Generator) -> tuple[F64, Sequence2D]:
    """(T, 17, 3) m in the camera frame, and the 2D with a detector's errors."""
    turns, places = np.array([p.turn for p in scene.poses]), np.array([p.place for p in scene.poses])
    there = np.einsum("tji,tkj->tki", turns, scene.joints - places[:, None])
    matrix, observed = lens(size=SIZE, fov=FOV), observed_joints(there.astype(np.float32))
    pixels = observed @ matrix.T.astype(np.float32)
    pixels = (pixels[..., :2] / np.maximum(pixels[..., 2:], 0.1))[None]
    depth = (there[None, :, :17, 2] - there[None, :, :1, 2]).astype(np.float32)
    sizes = np.array([SIZE], np.float32)
    pixels, scores = errors.add_errors(
        rng, pixels, scene.times[None], sizes, depth, errors.ErrorConfig()
    )  # fmt: skip
    camera = Camera.of(SIZE, matrix)
    return there[:, :17], Sequence2D(pixels[0][:, COCO_ROWS], scores[0][:, COCO_ROWS], scene.times, camera, "coco17")


def drawn(image: U8, joints: F64, matrix: F64) -> U8:
    """A person over an image: limbs and head as thick as they are. joints: (17, 3) m in the camera frame."""
    pixels = (joints @ matrix.T)[:, :2] / np.maximum(joints[:, 2:], 0.1)
    thick = max(1, int(0.11 * matrix[0, 0] / max(float(joints[0, 2]), 0.3)))
    ends = np.round(pixels).astype(int).tolist()
    for number, (one, other) in enumerate(H36M17.edges):
        grey = 40 + 12 * number
        cv2.line(image, ends[one], ends[other], (grey, grey, grey), thick)
    cv2.circle(image, ends[10], thick, (200, 200, 200), -1)
    return image


def images(scene: Scene, panels: list[Panel], there: F64, seed: int) -> Iterator[Frame]:
    rng, matrix = np.random.default_rng(seed), lens(size=SIZE, fov=FOV)
    for index, (time, pose) in enumerate(zip(scene.times.tolist(), scene.poses, strict=True)):
        image = drawn(render(panels, pose, matrix, SIZE), there[index], matrix)
        grain = rng.normal(0, NOISE, image.shape[:2])[..., None]
        yield Frame(np.clip(image + grain, 0, 255).astype(np.uint8), index, time)


def results_of(seen: Sequence2D, lifter: str) -> list[FrameResult]:
    lifted = load_lifter(lifter, "cpu").lift(repair(seen))
    results = []
    for at, time in enumerate(seen.times.tolist()):
        points, scores = seen.keypoints[at : at + 1], seen.scores[at : at + 1]
        shown = points[0][scores[0] > 0] if (scores[0] > 0).any() else points[0]
        boxes = np.concatenate([shown.min(axis=0), shown.max(axis=0)])[None].astype(np.float32)
        people = People(at, time, np.array([1]), boxes, np.ones(1, np.float32), points, scores)
        poses = Poses3D(lifted.joints[at : at + 1], lifted.root[at : at + 1], lifted.sigma[at : at + 1])
        results.append(FrameResult(people, poses))
    return results


def measured(
    scene: Scene, frames: list[Frame], results: list[FrameResult], camera: str, known: bool
) -> tuple[str, list[float]]:
    """What was found, and a value for each of COLUMNS."""
    skeleton = get_skeleton("coco17")
    matrix = lens(size=SIZE, fov=FOV)
    stage, log = BackgroundMotion(float(matrix[0, 0]), skeleton, known), MotionLog()
    for frame, result in zip(frames, results, strict=True):
        background = stage.step(frame.image, result.people)
        log.add(People(**{n: getattr(result.people, n) for n in People.__slots__} | {"background": background}))
    recorded = RunData(results, skeleton, Camera(matrix, known, SIZE), lambda: iter(frames))
    run, decision = place_run(recorded, log, camera, Steps(camera_known=known))
    if run is None:
        return f"{decision.motion.kind}: {decision.problem}", [np.nan] * len(COLUMNS)
    with run:
        rows = [(r.index, r.placed.joints[0]) for r in run if r.placed is not None and len(r.placed.joints)]
        path, up = run.path, run.world.up
    at = np.array([index for index, _ in rows])
    one, two = np.array([joints for _, joints in rows], np.float64), scene.joints[at, :17] * [1, -1, -1]
    turn, _, move = measures.fit(one[:, 0], two[:, 0], scale=False)
    apart = np.linalg.norm(one[:, 0] @ turn + move - two[:, 0], axis=1)
    first = scene.poses[0]
    gravity = float(np.degrees(np.arccos(np.clip(up @ (first.turn.T @ [0, -1, 0]), -1, 1))))
    off = way = scale = np.nan
    if path is not None:
        true = np.array([first.turn.T @ pose.turn for pose in scene.poses])
        off = float(
            np.median(np.degrees(np.arccos(np.clip((np.einsum("tij,tij->t", path.rotations, true) - 1) / 2, -1, 1))))
        )
        if path.positions is not None:
            places = np.array([first.turn.T @ (pose.place - first.place) for pose in scene.poses])
            length = np.linalg.norm(np.diff(places, axis=0), axis=1).sum()
            way = 100 * float(np.sqrt(((path.positions - places) ** 2).sum(axis=1).mean())) / length
            scale = float((path.positions * places).sum() / (places * places).sum())
    return decision.motion.kind + (f" ({decision.translation})" if decision.translation else ""), [
        float(np.nanmean(measures.root_path_errors(one[:, 0], two[:, 0]))), 1000 * float(apart.mean()),
        float(measures.chunk_errors(one, two, scale=False).mean()),
        float(measures.chunk_errors(one, two, first=None, scale=False).mean()),
        float(measures.foot_slides(one[:, ANKLES], two[:, ANKLES]).mean()), gravity, off, way, scale,
    ]  # fmt: skip


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", type=Path, required=True, help="a file of pose-prepare")
    parser.add_argument("--part", choices=("train", "validation", "test"), default="test")
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=["hall"])
    parser.add_argument("--names", nargs="+", help="of clips; default: those with the longest way")
    parser.add_argument("--clips", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--motions", nargs="+", default=None)
    parser.add_argument("--lifter", default="offline")
    parser.add_argument(
        "--assumed", action="store_true", help="the focal length is not known (and happens to be right)"
    )
    options = parser.parse_args()
    cv2.setNumThreads(1)
    warnings.simplefilter("ignore")
    clips = [
        c for c in split(load_clips(options.mocap), options.part) if c.times[-1] - c.times[0] >= options.seconds / 2
    ]
    chosen = [c for c in clips if c.name in options.names] if options.names else farthest(clips, options)
    print(f"| room, clip, motion | camera | found | {' | '.join(COLUMNS)} | s |\n|{'---|' * (len(COLUMNS) + 4)}")
    for room in options.rooms:
        for number, clip in enumerate(chosen):
            joints, times = in_room(clip, options.seconds)
            panels = ROOMS[room](np.random.default_rng(number))
            for name, poses in cameras(joints, times, number).items():
                if options.motions and name not in options.motions:
                    continue
                scene = Scene(joints, times, poses)
                there, seen = seen_by(scene, np.random.default_rng(number))
                frames, results = list(images(scene, panels, there, number)), results_of(seen, options.lifter)
                for camera in ("fixed",) if name == "static" else ("auto", "rotating"):
                    begun = perf_counter()
                    found, row = measured(scene, frames, results, camera, not options.assumed)
                    cells = " | ".join(f"{value:.3g}" for value in row)
                    seconds = perf_counter() - begun
                    print(f"| {room}, {clip.name}, {name} | {camera} | {found} | {cells} | {seconds:.0f} |", flush=True)


def farthest(clips: list[Clip], options: argparse.Namespace) -> list[Clip]:
    """Clips whose people go the longest way, of different takes."""
    ways: list[tuple[float, Clip]] = []
    for clip in clips:
        joints, times = in_room(clip, options.seconds)
        if times[-1] - times[0] > 0.6 * options.seconds and np.ptp(joints[:, 0, 0]) < 8 and np.ptp(joints[:, 0, 2]) < 6:
            ways.append((float(np.linalg.norm(np.diff(joints[:, 0], axis=0), axis=1).sum()), clip))
    ways.sort(key=lambda pair: -pair[0])
    return [clip for _, clip in ways[: options.clips]]


if __name__ == "__main__":
    main()
