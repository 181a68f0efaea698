"""People in the world, before and after every step, on motion capture seen by fixed virtual cameras:
docs/studies/world.md.

    python -m benchmarks.world steps --mocap cmu.npz [--every 4] [--part train]

The test subjects (or those of `--part`), clips of at least 3 s in pieces of at most 30 s, 30 frames/s. Each piece has
one known camera on a tripod, far enough away to have the whole piece in the image. `exact`: the exact 2D of the 17
joints. `detector`: a detector's skeleton with its errors, also with a camera that is not known: then 55 degrees are
assumed, where the lenses span 35 to 90. `--every N`: only each Nth piece, for a quick look. `--state detector --csv
docs/studies/results/world.csv` measures one of the three and replaces its rows.

Means over frames; `pred` and `true` are (T, J, 3) in metres. W-MPJPE, WA-MPJPE, RTE, jitter and foot skating (FS) are
defined as in the public code of S. Shin et al., "WHAM" (CVPR 2024), and Z. Shen et al., "GVHMR" (SIGGRAPH Asia 2024).
Floor measures follow Y. Yuan et al., "PhysDiff" (ICCV 2023), with ankles instead of a mesh, hence FS-ankle. A true foot
stands where its ankle moves less than 0.25 m/s and is less than 0.1 m above where it stands lowest, on the floor or on
what the person has climbed. Gravity: the median over pieces of the angle. Height: the mean over pieces of the error of
the bones' sum, in percent. In the room: frames whose pelvis is less than 2 m from the box that the true path fills.
Distance within sigma: frames whose pelvis is as far from the camera as `root_sigma` says or less off; 68 % is right.
"""

import csv
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pose_datasets.mocap import load_clips, split

from benchmarks.common.views import FPS, FixedView, add_mocap, fixed_views
from pose.lifting.load import load_lifter
from pose.lifting.repair.person import repair
from pose.structures.alignment import best_rotation
from pose.structures.camera import Camera
from pose.structures.refine import lengths_of, refine
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, Flags
from pose.training.evaluation.metrics import MM_PER_M, aligned_errors, position_errors
from pose.world.clean import Steps, clean
from pose.world.contacts import ANKLE_HEIGHT, ankle_speeds, ground_below
from pose.world.frame import World, rotation_of
from pose.world.gravity import ANKLES
from pose.world.height import stature
from pose.world.work import Person, person_of

Points = NDArray[np.floating]

CHUNK = 100  # frames
ALIGNED_FRAMES = 2  # number of frames at the start of a chunk that determine the alignment of W-MPJPE
MAX_STATIC_STEP_M = 0.010  # m per frame; a foot that truly moves less counts as static
VARIANTS = {
    "as lifted": Steps(depth=False, bones=False, fill=False, smooth=False, feet=False),
    "depth": Steps(fill=False, smooth=False, feet=False),
    "depth, smoothing": Steps(fill=False, feet=False),
    "all steps": Steps(),
}
STATES = {"exact": "exact 2D", "detector": "a detector's errors", "unknown": "a detector's errors, camera not known"}
STANDING = 0.25  # m/s of a true ankle that stands (GVHMR's labels)
LOW = 0.1  # m above where the ankle stands lowest
ROOM = 2.0  # m around the true path

COLUMNS = (
    "MPJPE mm", "P-MPJPE mm", "W mm", "WA mm", "W0 mm", "WA0 mm", "RTE %", "jitter 10 m/s³", "FS-ankle mm",
    "below floor mm", "above floor mm", "gravity °", "height %", "contact F1", "bones ± mm", "root depth mm",
    "in the room %", "distance within σ %",
)  # fmt: skip


def chunk_errors(pred: Points, true: Points, *, first: int | None = ALIGNED_FRAMES, scale: bool = True) -> F64:
    """Return joint errors (T, J) in mm after aligning each chunk of 100 frames. The last chunk may be shorter."""
    errors = []
    for start in range(0, len(true), CHUNK):
        chunk = slice(start, start + CHUNK)
        fitted = slice(start, start + (CHUNK if first is None else first))
        rotation, factor, translation = fit(pred[fitted].reshape(-1, 3), true[fitted].reshape(-1, 3), scale)
        errors.append(np.linalg.norm(factor * pred[chunk] @ rotation + translation - true[chunk], axis=-1))
    return MM_PER_M * np.concatenate(errors) if errors else np.zeros(true.shape[:2])


def fit(source: Points, target: Points, scale: bool) -> tuple[F64, float, F64]:
    """Fit a rotation, scale and translation from `source` to `target` by least squares."""
    source_mean, target_mean = source.mean(axis=0, dtype=np.float64), target.mean(axis=0, dtype=np.float64)
    source, target = source - source_mean, target - target_mean
    rotation = best_rotation(source.T.astype(np.float64) @ target)
    size = float((source**2).sum())
    factor = float(((source @ rotation) * target).sum() / size) if scale and size > 0 else 1.0
    return rotation, factor, target_mean - factor * source_mean @ rotation


def root_path_errors(pred: Points, true: Points) -> F64:
    """Return the root translation error (RTE) of each frame, after one rigid alignment of the whole paths."""
    rotation, factor, translation = fit(pred, true, scale=False)
    length = np.linalg.norm(np.diff(true, axis=0), axis=-1).sum()
    error = np.linalg.norm(factor * pred @ rotation + translation - true, axis=-1)
    return 100 * error / length if length > 0 else np.full(len(true), np.nan)


def jitter(pred: Points, fps: float) -> F64:
    """Return the jitter: the mean over joints of the magnitude of jerk, (T - 3,) in units of 10 m/s^3."""
    result: F64 = np.linalg.norm(np.diff(pred.astype(np.float64), n=3, axis=0), axis=-1).mean(axis=-1) * fps**3 / 10
    return result


def foot_slides(pred: Points, true: Points) -> F64:
    """Return FS-ankle: displacements of the predicted ankles between consecutive frames with a static true ankle."""
    static = np.linalg.norm(np.diff(true, axis=0), axis=-1) < MAX_STATIC_STEP_M
    result: F64 = MM_PER_M * np.linalg.norm(np.diff(pred.astype(np.float64), axis=0), axis=-1)[static]
    return result


def penetrations(heights: Points) -> F64:
    """Return the depth of the lower sole below the floor, (T,) in mm; 0 if it is above."""
    result: F64 = MM_PER_M * np.maximum(-heights.min(axis=1), 0)
    return result


def floats(heights: Points) -> F64:
    """Return the height of the lower sole above the floor, (T,) in mm; 0 if it is below. Jumps are included."""
    result: F64 = MM_PER_M * np.maximum(heights.min(axis=1), 0)
    return result


def angle_between(a: Points, b: Points) -> float:
    """Return the angle between two vectors (3,) in degrees."""
    cross, dot = np.linalg.norm(np.cross(a, b)), float(np.dot(a, b))
    return float(np.degrees(np.arctan2(cross, dot)))


def f1_counts(pred: Flags, true: Flags) -> NDArray[np.int64]:
    """Return the numbers of true positives, false positives and false negatives, (3,), of two masks of one shape."""
    return np.array([(pred & true).sum(), (pred & ~true).sum(), (~pred & true).sum()])


def f1_score(counts: NDArray[np.int64]) -> float:
    """Return the F1 score, 0 to 1; NaN if neither prediction nor ground truth has positives."""
    hit, false, missed = counts.tolist()
    return 2 * hit / (2 * hit + false + missed) if hit + false + missed else float("nan")


def bone_variation(joints: Points) -> F64:
    """Return the standard deviation over time of each bone length, (16,) in mm, for joints (T, 17, 3) in m."""
    parents, children = np.array(H36M17.edges).T
    lengths = np.linalg.norm(joints[:, children].astype(np.float64) - joints[:, parents], axis=-1)
    result: F64 = MM_PER_M * lengths.std(axis=0)
    return result


@dataclass(frozen=True, slots=True)
class Answer:
    """camera: (T, 17, 3) m in the camera frame. placed: the same on its own floor, y up. stands: (T, 2). sigma: (T,)
    mm, of the distance; NaN where nothing is said of it.
    """

    view: FixedView
    camera: F64
    placed: F64
    up: F64
    stands: NDArray[np.bool_]
    height: float
    sigma: F64


def former_world(person: Person) -> World:
    """The vertical and the floor of version 0.2: the mean of feet-to-centre directions, and the lowest feet."""
    bodies = person.joints.mean(axis=1) - person.joints[:, ANKLES].mean(axis=1)
    upright = bodies[:, 1] < -np.cos(np.radians(40)) * np.linalg.norm(bodies, axis=1)
    rotation = rotation_of(bodies[upright].sum(axis=0) if upright.any() else np.array([0.0, -1.0, 0.0]))
    feet = (person.joints[:, ANKLES] + person.root[:, None]) @ rotation.T
    return World(rotation, float(np.percentile(feet[..., 1], 2)) - ANKLE_HEIGHT, "bodies", float("nan"))


def answer(view: FixedView, person: Person, variant: str) -> Answer:
    steps = replace(VARIANTS[variant], camera_known=view.seen.camera.known)
    world, cleaned = clean({1: person}, person.times, steps)
    one = cleaned[1]
    camera, placed = one.joints + one.root[:, None], one.placed
    if variant == "as lifted":  # on the vertical and the floor of version 0.2
        world = former_world(person)
        placed = world.place(camera)
    return Answer(view, camera, placed, world.up, one.contacts > 0.5, one.height, one.root_sigma)


def truth(view: FixedView) -> Answer:
    """The recorded person, as if it were an answer: what the measures without truth say of it."""
    camera = view.camera_joints.astype(np.float64)
    placed = view.joints - [0.0, true_floor(view), 0.0]
    height = stature(lengths_of(camera, np.ones((len(camera), 17))))
    return Answer(view, camera, placed, view.up, true_contacts(view), height, np.full(len(camera), np.nan))


def true_floor(view: FixedView) -> float:
    ankles = view.joints[:, ANKLES]
    slow = ankle_speeds(ankles, view.seen.times) < STANDING
    heights = ankles[..., 1][slow] if slow.any() else ankles[..., 1]
    return float(np.percentile(heights, 10)) - ANKLE_HEIGHT


def true_contacts(view: FixedView) -> NDArray[np.bool_]:
    ankles = view.joints[:, ANKLES]
    slow = ankle_speeds(ankles, view.seen.times) < STANDING
    ground = ground_below(view.joints - [0.0, true_floor(view), 0.0], view.seen.times)
    return slow & (ankles[..., 1] - true_floor(view) - ground[:, None] - ANKLE_HEIGHT < LOW)


def row(answers: list[Answer]) -> list[float]:
    """One value for each of COLUMNS."""

    def mean(measure: Callable[[Answer], F64]) -> float:
        return float(np.nanmean(np.concatenate([np.ravel(measure(a)) for a in answers])))

    def chunks(first: int | None, scale: bool) -> float:
        return mean(lambda a: chunk_errors(a.placed, a.view.joints, first=first, scale=scale))

    counts = sum((f1_counts(a.stands, true_contacts(a.view)) for a in answers), np.zeros(3, np.int64))
    soles = [a.placed[:, ANKLES, 1] - ANKLE_HEIGHT for a in answers]
    true = [stature(lengths_of(a.view.joints, np.ones((len(a.view.joints), 17)))) for a in answers]
    first = ALIGNED_FRAMES
    return [
        mean(lambda a: position_errors(rooted(a.camera), rooted(a.view.camera_joints))),
        mean(lambda a: aligned_errors(a.camera, a.view.camera_joints)),
        chunks(first, True), chunks(None, True), chunks(first, False), chunks(None, False),
        mean(lambda a: root_path_errors(a.placed[:, 0], a.view.joints[:, 0])),
        mean(lambda a: jitter(a.placed, FPS)),
        mean(lambda a: foot_slides(a.placed[:, ANKLES], a.view.joints[:, ANKLES])),
        float(np.mean(np.concatenate([penetrations(sole) for sole in soles]))),
        float(np.mean(np.concatenate([floats(sole) for sole in soles]))),
        float(np.median([angle_between(a.up, a.view.up) for a in answers])),
        100 * float(np.mean([abs(a.height / height - 1) for a, height in zip(answers, true, strict=True)])),
        f1_score(counts),
        mean(lambda a: bone_variation(a.camera)),
        1000 * mean(lambda a: np.abs(a.camera[:, 0, 2] - a.view.camera_joints[:, 0, 2])),
        100 * mean(in_the_room),
        within_sigma(answers),
    ]  # fmt: skip


def rooted(joints: NDArray[np.floating]) -> F64:
    return np.asarray(joints - joints[:, :1], np.float64)


def in_the_room(a: Answer) -> F64:
    """(T,) 1 where the pelvis is within 2 m of the box of the true path, else 0."""
    path = a.view.camera_joints[:, 0]
    low, high = path.min(axis=0) - ROOM, path.max(axis=0) + ROOM
    return ((a.camera[:, 0] > low) & (a.camera[:, 0] < high)).all(axis=1).astype(np.float64)


def within_sigma(answers: list[Answer]) -> float:
    """%, of the frames for which a sigma is said."""
    sigma = np.concatenate([a.sigma for a in answers])
    off = 1000 * np.concatenate([np.abs(a.camera[:, 0, 2] - a.view.camera_joints[:, 0, 2]) for a in answers])
    said = np.isfinite(sigma)
    return 100 * float((off <= sigma)[said].mean()) if said.any() else float("nan")


def unknown_camera(view: FixedView) -> FixedView:
    """The same, by who does not know the lens."""
    return replace(view, seen=replace(view.seen, camera=Camera.of(view.seen.camera.size)))


def lifted(views: list[FixedView], lifter: str) -> Iterator[tuple[FixedView, Person, Person]]:
    """Each view with the person as lifted, and on one body as version 0.2 refined it."""
    network = load_lifter(lifter, "cpu")
    for view in views:
        seen = repair(view.seen)
        answer = network.lift(seen)
        yield view, person_of(answer, view.seen), person_of(refine(answer, seen), view.seen)


def table(views: list[FixedView], lifter: str) -> tuple[dict[str, list[str]], str]:
    people = list(lifted(views, lifter))
    frames = sum(len(view.seen) for view in views)
    rows = {"truth": row([truth(view) for view, *_ in people])}
    seconds = 0.0
    for variant in VARIANTS:
        begun = time.process_time()
        answers = [answer(view, raw if variant == "as lifted" else one, variant) for view, raw, one in people]
        seconds = time.process_time() - begun
        rows[variant] = row(answers)
    note = f"{len(views)} pieces, {frames} frames; all steps {1e3 * seconds / frames:.3f} ms a frame and person"
    return {name: [cell(value) for value in values] for name, values in rows.items()}, note


def write_rows(file: Path, data: str, rows: dict[str, list[str]]) -> None:
    """Write the rows of one state to a CSV file, in place of earlier ones of this state."""
    kept: list[list[str]] = []
    if file.exists():
        with file.open(encoding="utf-8", newline="") as opened:
            kept = [row for row in list(csv.reader(opened))[1:] if row[0] != data]
    with file.open("w", encoding="utf-8", newline="") as opened:
        lines = [["data", "row", *COLUMNS], *kept, *([data, name, *values] for name, values in rows.items())]
        csv.writer(opened, lineterminator="\n").writerows(lines)


def cell(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}" if 0 < value < 1 else f"{value:.1f}"


def add_options(parser: ArgumentParser) -> None:
    add_mocap(parser)
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th piece")
    parser.add_argument("--lifter", default="offline", help="an offline lifter: a name or a checkpoint")
    parser.add_argument("--state", choices=STATES, help="only this one")
    parser.add_argument("--csv", type=Path, help="also write all columns here, in place of earlier rows of a state")


def main(given: Namespace) -> None:
    for file in given.mocap.split(","):
        clips = split(load_clips(Path(file)), given.part)
        for state in [given.state] if given.state else STATES:
            views = fixed_views(clips, detector=state != "exact")[:: given.every]
            data = f"{Path(file).stem}, {STATES[state]}"
            rows, note = table([unknown_camera(view) for view in views] if state == "unknown" else views, given.lifter)
            lines = ["| | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
            lines += [f"| {row} | " + " | ".join(cells) + " |" for row, cells in rows.items()]
            print("\n".join([f"{data}: {note}", *lines]), flush=True)
            if given.csv:
                write_rows(given.csv, data, rows)
