"""What the world does to real clips, without ground truth: docs/studies/world.md.

    python benchmarks/world_clips.py [--videos ../shared/videos] [--cache FOLDER] [--out docs/studies/world.md]

Each clip goes through `pose-run`'s usual pipeline once. "As lifted" is what `--no-world` writes, set on the vertical
and the lowest feet as version 0.2 drew it; "in the world" is what is written now. Both over the same people and
frames: tracks of a moment are in neither, nor is what was filled in. Means over frames of people:

jitter: as in `pose.training.evaluation.world`, at the frame rate of the clip. slide: mm/s, the horizontal speed of
ankles whose
contact is more likely than not. bones: standard deviation over time. below, above floor: of the lower sole. Out of the
room: per cent of frames whose pelvis is less than half or more than twice as far as in the median of that person, or
gets there faster than 12 m/s. 2D: how far, in per cent of the image's longer side, the joints are in the mean from
where they were lifted (the image must stay what it was). cache: of `pose-run --cache`, so that a second run is quick.
"""

import argparse
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from detector_errors import publish
from numpy.typing import NDArray
from world import cell, todays_world

from pose.cached_run import CachedRun
from pose.config import PipelineConfig, default_preset, preset_values
from pose.pipeline import Pipeline
from pose.results.cache import open_cache
from pose.structures.camera import Camera, project
from pose.structures.types import FrameResult
from pose.training.evaluation import world as measures
from pose.video import open_source
from pose.world.floor import ANKLE_HEIGHT
from pose.world.gravity import ANKLES
from pose.world.person import Person
from pose.world.run import PlacedRun

F64 = NDArray[np.float64]

CLIPS = ("dance.mp4", "squats.mp4", "walk-by.mp4", "two-people/view-a.mp4", "two-people/view-b.mp4")
FASTEST = 12.0  # m/s
COLUMNS = (
    "people", "jitter 10 m/s³", "slide mm/s", "bones ± mm", "below floor mm", "above floor mm", "out of the room %",
    "2D %",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """One person: times (T,) s, joints (T, 17, 3) m in the camera frame, placed (T, 17, 3) m, contacts (T, 2)."""

    times: F64
    joints: F64
    placed: F64
    contacts: F64


def rows_of(results: Iterable[FrameResult], number: int) -> list[tuple[FrameResult, int]]:
    """Results in which a person is, not filled in, and their row."""
    found = [(r, int(row)) for r in results for row in np.flatnonzero(r.people.ids == number)]
    return [(r, row) for r, row in found if r.placed is None or not r.placed.filled[row]]


def before_and_after(results: list[FrameResult], run: PlacedRun) -> list[tuple[Seen, Seen]]:
    """All people as lifted and in their world, over the same frames."""
    placed = list(run)
    tracks: dict[int, list[int]] = {number: [number] for number in run.heights}
    for track, number in run.joined.items():
        tracks[number].append(track)
    pairs = []
    for number, parts in tracks.items():
        rows = rows_of(placed, number)
        times = np.array([r.time for r, _ in rows])
        camera = np.array([r.poses.joints[row] + r.poses.root[row] for r, row in rows], np.float64)
        world = np.array([r.placed.joints[row] for r, row in rows if r.placed], np.float64)
        contacts = np.array([r.placed.contacts[row] for r, row in rows if r.placed], np.float64)
        kept = set(times.tolist())  # without the pieces of the track that the world drops (`pose.world.tracks`)
        raw = [one for part in parts for one in rows_of(results, part) if one[0].time in kept]
        raw.sort(key=lambda one: one[0].time)
        joints = np.array([r.poses.joints[row] for r, row in raw], np.float64)
        root = np.array([r.poses.root[row] for r, row in raw], np.float64)
        assert len(raw) == len(rows), "the same people in the same frames"
        nothing = np.zeros((len(raw), 17))
        person = Person(joints, root, nothing + 1, times, np.zeros((len(raw), 17, 2)), nothing)
        lifted = joints + root[:, None]
        pairs.append(
            (
                Seen(times, lifted, todays_world(person).place(lifted), contacts),
                Seen(times, camera, world, contacts),
            )
        )
    return pairs


def row(people: list[Seen], lifted: list[Seen], camera: Camera) -> list[float]:
    """One value for each of COLUMNS."""

    def mean(values: list[F64]) -> float:
        return float(np.mean(np.concatenate([np.ravel(one) for one in values])))

    soles = [one.placed[:, ANKLES, 1] - ANKLE_HEIGHT for one in people]
    moved = [
        np.linalg.norm(project(one.joints, camera.matrix) - project(other.joints, camera.matrix), axis=-1)
        for one, other in zip(people, lifted, strict=True)
    ]
    return [
        len(people),
        mean([measures.jitter(one.placed, 1 / float(np.median(np.diff(one.times)))) for one in people]),
        mean([slides(one) for one in people]),
        mean([measures.bone_variation(one.joints) for one in people]),
        mean([measures.penetrations(sole) for sole in soles]),
        mean([measures.floats(sole) for sole in soles]),
        100 * mean([out_of_room(one) for one in people]),
        100 * mean(moved) / max(camera.size),
    ]


def slides(one: Seen) -> F64:
    """(N,) mm/s of ankles between two frames in which they stand."""
    stands = (one.contacts[1:] > 0.5) & (one.contacts[:-1] > 0.5)
    steps = np.linalg.norm(np.diff(one.placed[:, ANKLES][..., [0, 2]], axis=0), axis=-1)
    return np.asarray(1000 * (steps / np.diff(one.times)[:, None])[stands])


def out_of_room(one: Seen) -> F64:
    """(T,) 1 where no person can be, else 0."""
    away = one.joints[:, 0, 2]
    speed = np.linalg.norm(np.diff(one.joints[:, 0], axis=0), axis=-1) / np.diff(one.times)
    wrong = (away < np.median(away) / 2) | (away > 2 * np.median(away))
    wrong[1:] |= speed > FASTEST
    return wrong.astype(np.float64)


def table(clip: Path, cache: str | None) -> list[str]:
    with ExitStack() as stack:
        source = stack.enter_context(open_source(str(clip)))
        pipeline = Pipeline(PipelineConfig(**preset_values(default_preset("auto"))))
        if cache is None:
            results = list(pipeline.run(source))
        else:
            known = stack.enter_context(open_cache(cache, 2.0))
            results = list(CachedRun(pipeline, source, known).results(threading.Event()))
        camera = pipeline.run_info(source.name, source.info.fps, source.info.size).camera
        run = stack.enter_context(PlacedRun(results, pipeline.skeleton, camera))
        pairs = before_and_after(results, run)
    lifted = [one for one, _ in pairs]
    name = clip.relative_to(clip.parents[1]).as_posix() if clip.parent.name == "two-people" else clip.name
    return [
        f"| {name}, {how} | " + " | ".join(map(cell, row(people, lifted, camera))) + " |"
        for how, people in (("as lifted", lifted), ("in the world", [one for _, one in pairs]))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=Path, default=Path("../shared/videos"))
    parser.add_argument("--cache", help="a folder, of pose-run --cache")
    parser.add_argument("--out", type=Path, help="a Markdown file whose table is replaced; default: print it")
    options = parser.parse_args()
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for clip in CLIPS:
        lines += table(options.videos / clip, options.cache)
        print("\n".join(lines[-2:]), flush=True)
    publish({"By clip": lines}, options.out, "Real clips")


if __name__ == "__main__":
    main()
