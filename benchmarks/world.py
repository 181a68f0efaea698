"""People in the world, before and after every step, on motion capture seen by fixed virtual cameras:
docs/studies/world.md.

    python benchmarks/world.py --mocap cmu.npz --out docs/studies/world.md [--every 4] [--part train]

The test subjects (or those of `--part`), clips of at least 3 s in pieces of at most 30 s, 30 frames a second, one known
camera on a tripod for each piece, at heights and tilts that tripods have (`pose_datasets.fixed_views`). `exact`: the
exact 2D of the 17 joints. `detector`: a detector's skeleton with its errors, also with a camera that is not known: then
55 degrees are assumed, where the lenses span 35 to 90. The offline lifter sees what repair leaves. `--every`: only each
so-many-th piece, for a quick look.

Metrics are those of `pose.training.evaluation.world`, means over frames. A true foot stands where its ankle moves less
than
0.25 m/s and is less than 0.1 m above where it stands lowest, on the floor or on what the person has climbed. Gravity:
the median over pieces of the angle. Height: the mean over pieces of the error of the bones' sum, in per cent. In the
room: frames whose pelvis is less than 2 m from the box that the true path fills. Distance within sigma: frames whose
pelvis is as far from the camera as `root_sigma` says or less off; 68 % is right. Today: what 0.2 wrote and drew,
constant bones on the vertical of its inset.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from detector_errors import publish
from numpy.typing import NDArray
from pose_datasets.fixed_views import FPS, FixedView, fixed_views
from pose_datasets.mocap import load_clips, split

from pose.lifting.load import load_lifter
from pose.lifting.repair.person import repair
from pose.structures.camera import Camera
from pose.structures.refine import lengths_of, refine
from pose.training.evaluation import world as measures
from pose.training.evaluation.metrics import aligned_errors, position_errors
from pose.world.clean import Cleaned, Steps, clean
from pose.world.contacts import ankle_speeds, ground_below
from pose.world.floor import ANKLE_HEIGHT
from pose.world.frame import World, rotation_of
from pose.world.gravity import ANKLES
from pose.world.height import stature
from pose.world.person import Person, person_of

F64 = NDArray[np.float64]

AS_LIFTED = Steps(depth=False, bones=False, fill=False, smooth=False, feet=False)
VARIANTS = {
    "as lifted": AS_LIFTED,
    "today": Steps(depth=False, fill=False, smooth=False, feet=False),
    "depth": Steps(fill=False, smooth=False, feet=False),
    "depth, smoothing": Steps(fill=False, feet=False),
    "all steps": Steps(),
}
TODAYS = ("as lifted", "today")
STANDING = 0.25  # m/s of a true ankle that stands (GVHMR's labels)
LOW = 0.1  # m above where the ankle stands lowest
ROOM = 2.0  # m around the true path

COLUMNS = (
    "MPJPE mm", "P-MPJPE mm", "W mm", "WA mm", "W0 mm", "WA0 mm", "RTE %", "jitter 10 m/s³", "FS-ankle mm",
    "below floor mm", "above floor mm", "gravity °", "height %", "contact F1", "bones ± mm", "root depth mm",
    "in the room %", "distance within σ %",
)  # fmt: skip


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


def todays_world(person: Person) -> World:
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
    if variant in TODAYS:
        world = todays_world(person)
        placed = world.place(camera)
    return Answer(view, camera, placed, world.up, standing(one), one.height, one.root_sigma)


def standing(one: Cleaned) -> NDArray[np.bool_]:
    return one.contacts > 0.5


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
        return mean(lambda a: measures.chunk_errors(a.placed, a.view.joints, first=first, scale=scale))

    counts = sum((measures.f1_counts(a.stands, true_contacts(a.view)) for a in answers), np.zeros(3, np.int64))
    soles = [a.placed[:, ANKLES, 1] - ANKLE_HEIGHT for a in answers]
    true = [stature(lengths_of(a.view.joints, np.ones((len(a.view.joints), 17)))) for a in answers]
    first = measures.ALIGNED_FRAMES
    return [
        mean(lambda a: position_errors(rooted(a.camera), rooted(a.view.camera_joints))),
        mean(lambda a: aligned_errors(a.camera, a.view.camera_joints)),
        chunks(first, True), chunks(None, True), chunks(first, False), chunks(None, False),
        mean(lambda a: measures.root_path_errors(a.placed[:, 0], a.view.joints[:, 0])),
        mean(lambda a: measures.jitter(a.placed, FPS)),
        mean(lambda a: measures.foot_slides(a.placed[:, ANKLES], a.view.joints[:, ANKLES])),
        float(np.mean(np.concatenate([measures.penetrations(sole) for sole in soles]))),
        float(np.mean(np.concatenate([measures.floats(sole) for sole in soles]))),
        float(np.median([measures.angle_between(a.up, a.view.up) for a in answers])),
        100 * float(np.mean([abs(a.height / height - 1) for a, height in zip(answers, true, strict=True)])),
        measures.f1_score(counts),
        mean(lambda a: measures.bone_variation(a.camera)),
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


def table(views: list[FixedView], lifter: str) -> tuple[list[str], str]:
    people = list(lifted(views, lifter))
    frames = sum(len(view.seen) for view in views)
    rows = {"truth": row([truth(view) for view, *_ in people])}
    seconds = 0.0
    for variant in VARIANTS:
        begun = time.process_time()
        answers = [answer(view, raw if variant == "as lifted" else one, variant) for view, raw, one in people]
        seconds = time.process_time() - begun
        rows[variant] = row(answers)
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(map(cell, values)) + " |" for name, values in rows.items()]
    return lines, f"{len(views)} pieces, {frames} frames; all steps {1e3 * seconds / frames:.3f} ms a frame and person"


def cell(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}" if 0 < value < 1 else f"{value:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="files of pose-prepare, separated by commas")
    parser.add_argument("--part", choices=("train", "validation", "test"), default="test")
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th piece")
    parser.add_argument("--lifter", default="offline", help="an offline lifter: a name or a checkpoint")
    parser.add_argument("--out", type=Path, help="a Markdown file whose tables are replaced; default: print them")
    options = parser.parse_args()
    sections = {}
    for file in options.mocap.split(","):
        clips = split(load_clips(Path(file)), options.part)
        exact, seen = (fixed_views(clips, detector=detector)[:: options.every] for detector in (False, True))
        blind = [unknown_camera(view) for view in seen]
        states = {"exact 2D": exact, "a detector's errors": seen, "a detector's errors, camera not known": blind}
        for name, views in states.items():
            lines, note = table(views, options.lifter)
            sections[f"{Path(file).stem}, {name}"] = [note, "", *lines]
            print("\n".join([f"{Path(file).stem}, {name}: {note}", *lines]), flush=True)
    if options.out:
        publish(sections, options.out)


if __name__ == "__main__":
    main()
