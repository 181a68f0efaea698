"""Error of live poses when displayed late, and of predicted poses: the tables of docs/studies/ahead.md.

    python benchmarks/ahead.py --mocap cmu.npz,ui-prmd.npz --out docs/studies/ahead.md [--every 4] \
        [--forecasters NAME,NAME]

The test subjects, clips of at least 3 s in pieces of at most 30 s, 30 frames a second, each before a camera on a
tripod, through a detector's skeleton with its errors (`pose_datasets.fixed_views`). They are played through the
streaming lifter with its repair and through `pose.live.ahead`, as the live loop does it. An image is shown LATENCIES
after it was taken; what is shown then is compared with where the person then is.

`in the image`: mm across the line of sight at the person's distance, what an eye before the screen can see. `pose`:
mm relative to the pelvis. `in space`: mm in the camera's frame, distance included. `moving`: what changes of it, the
error less that of the late pose in the mean of the second around; an error that always stays the same is not lag. Means
over joints and frames after the first half second. `limit`: the late pose moved as the person truly moved meanwhile;
what stays is the lifter's own error, which no forecast of motion takes away. At rest: frames around which no true joint
is faster than 0.15 m/s for half a second; jitter is the mean length of the second difference of what is shown, as a
multiple of the late pose's.

Gaps: twice a second the person is hidden; how far off they are carried on after GAPS, and held where they were.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from detector_errors import publish
from pose_datasets.fixed_views import FPS, FixedView, fixed_views
from pose_datasets.mocap import load_clips, split

from pose.lifting.forecast import Forecaster, load_forecaster
from pose.lifting.forecast.past_buffer import PastBuffer
from pose.lifting.forecast.stabilized import StabilizedForecaster
from pose.lifting.load import load_lifter
from pose.lifting.names import SLIDING
from pose.lifting.predict import Lifter
from pose.lifting.stream import LifterStream, StreamLifter
from pose.live.ahead import PosePredictor
from pose.structures.skeletons import COCO17
from pose.structures.types import F64, Flags, FrameResult, People

LATENCIES = (33, 66, 100, 150)  # ms
FROM = 0.5  # s of a piece, before which no track exists
SLOW = 0.15  # m/s, the fastest joint of a person at rest
STILL = 0.25  # s on both sides
LATE, LIMIT = "late pose", "limit"
GAPS = (100, 200, 300, 400, 500)  # ms
FORECASTERS = ("damped-velocity", "steady damped-velocity", "steady forecaster")
EVERY = 0.5  # s between gaps
AROUND = 31  # frames over which an error that stays is found
MEASURES = ("in the image", "pose", "in space")
MOVING = tuple(f"{name}, moving" for name in MEASURES[:2])


@dataclass(frozen=True, slots=True)
class Played:
    """One piece as the lifter answered it. truth: (T, 17, 3) m in the camera frame. rest: (T,)."""

    view: FixedView
    results: list[FrameResult]
    truth: F64
    rest: Flags


def play(views: list[FixedView], lifter: Lifter) -> Iterator[Played]:
    for view in views:
        stage = StreamLifter(LifterStream(lifter, COCO17, view.seen.camera), repair=True)
        results = [result for people in frames(view) for result in stage.push(people)]
        truth = view.camera_joints.astype(np.float64)
        yield Played(view, results, truth, at_rest(truth))


def frames(view: FixedView) -> Iterator[People]:
    """The only person of each frame; who is not seen at all is in none."""
    seen = view.seen
    for index, (keypoints, scores, when) in enumerate(
        zip(seen.keypoints, seen.scores, seen.times.tolist(), strict=True)
    ):
        people = People(
            index,
            when,
            np.array([1]),
            np.concatenate([keypoints.min(axis=0), keypoints.max(axis=0)])[None],
            np.ones(1, np.float32),
            keypoints[None],
            scores[None],
        )
        here = slice(0, int(scores.max() > 0))
        parts = ("ids", "boxes", "box_scores", "keypoints", "scores")
        yield replace(people, **{name: getattr(people, name)[here] for name in parts})


def at_rest(truth: F64) -> Flags:
    """(T,) no joint moves for a while before and after."""
    speed = np.linalg.norm(np.diff(truth, axis=0, prepend=truth[:1]), axis=-1).max(axis=1) * FPS
    reach = round(STILL * FPS)
    padded = np.pad(speed, reach, mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(axis=1) < SLOW


def shown(played: Played, forecaster: Forecaster | None, seconds: float) -> F64:
    """(T, 17, 3) m in the camera frame, as it is on the screen `seconds` after each image; NaN without a person.

    forecaster: None shows the late pose; a person who was occluded then is not shown.
    """
    ahead = None if forecaster is None else PosePredictor(COCO17, played.view.seen.camera, forecaster=forecaster)
    places = np.full_like(played.truth, np.nan)
    for row, result in enumerate(played.results):
        poses = (result if ahead is None else ahead(result, seconds)).poses
        if len(result.people):
            places[row] = poses.joints[0].astype(np.float64) + poses.root[0]
    return places


def moved_truth(played: Played, seconds: float) -> F64:
    """The truth `seconds` later, on the line between its frames; NaN after its end."""
    times = played.view.seen.times
    later = np.full_like(played.truth, np.nan)
    known = times + seconds <= times[-1] + 1e-9
    at = np.interp(times[known] + seconds, times, np.arange(len(times)))
    before = np.minimum(at.astype(int), len(times) - 2)
    share = (at - before)[:, None, None]
    later[known] = played.truth[before] * (1 - share) + played.truth[before + 1] * share
    return later


def views_of(places: F64, depth: F64) -> tuple[F64, F64, F64]:
    """By MEASURES: (T, 17, 3) m in the camera frame as seen at `depth` (T, 17, 1) m, from the pelvis, and itself."""
    with np.errstate(invalid="ignore", divide="ignore"):
        across = np.where(places[..., 2:] > 0.1, places[..., :2] / places[..., 2:], np.nan) * depth
    return across, places - places[:, :1], places


def errors(places: F64, truth: F64, late: F64, before: F64) -> dict[str, F64]:
    """(N,) mm, the mean over joints, by MEASURES and MOVING; of frames in which all is known.

    places against truth, and late against before, which is known to be late: what always stays of that is not motion.
    """
    both = np.isfinite(places + truth).all(axis=(1, 2))
    found: dict[str, F64] = {}
    depth, old = truth[..., 2:], before[..., 2:]
    pairs = zip(
        views_of(places, depth), views_of(truth, depth), views_of(late, old), views_of(before, old), strict=True
    )
    for name, (shown_there, true_there, late_there, before_there) in zip(MEASURES, pairs, strict=True):
        error = shown_there - true_there
        standing = around(late_there - before_there)
        found[name] = lengths(error)[both]
        if name in MEASURES[:2]:
            found[f"{name}, moving"] = lengths(error - standing)[both & np.isfinite(standing).all(axis=(1, 2))]
    return {name: values[np.isfinite(values)] for name, values in found.items()}


def lengths(vectors: F64) -> F64:
    """(T,) mm, the mean over joints."""
    return np.asarray(1000 * np.linalg.norm(vectors, axis=-1).mean(axis=1))


def around(values: F64) -> F64:
    """The mean over AROUND frames around each, of those that are known."""
    known = np.isfinite(values)
    kernel = np.ones(AROUND)

    def summed(rows: F64) -> F64:
        return np.apply_along_axis(lambda row: np.convolve(row, kernel, "same"), 0, rows)

    count = summed(known.astype(np.float64))
    return np.where(count > 0, summed(np.where(known, values, 0.0)) / np.maximum(count, 1), np.nan)


def jitter(places: F64, rest: Flags) -> dict[str, F64]:
    """(N,) mm, the second difference at rest, by the first two of MEASURES."""
    depth = np.full((*places.shape[:2], 1), np.nanmean(places[..., 2]))
    found = {}
    for name, values in zip(MEASURES[:2], views_of(places, depth)[:2], strict=True):
        sizes = lengths(np.diff(values, 2, axis=0))
        found[f"rest {name}"] = sizes[rest[1:-1] & np.isfinite(sizes)]
    return found


def measure(pieces: list[Played], way: str, forecaster: Forecaster | None, milliseconds: int) -> dict[str, float]:
    """Means over all frames of all pieces: errors by MEASURES and MOVING, and jitter by "rest" and a measure."""
    seconds = milliseconds / 1000
    rows: dict[str, list[F64]] = {}
    for played in pieces:
        later, late = moved_truth(played, seconds), shown(played, None, 0.0)
        places = late + later - played.truth if way == LIMIT else shown(played, forecaster, seconds)
        known = played.view.seen.times >= FROM
        found = errors(places[known], later[known], late[known], played.truth[known])
        for name, values in (found | jitter(places[known], played.rest[known])).items():
            rows.setdefault(name, []).append(values)
    return {name: float(np.mean(np.concatenate(parts))) for name, parts in rows.items()}


def shown_table(pieces: list[Played], forecasters: list[Forecaster]) -> list[str]:
    """Markdown: errors of every way to show a person, in mm and against the late pose, and their jitter at rest."""
    ways: list[tuple[str, Forecaster | None]] = [(LATE, None), *((one.name, one) for one in forecasters), (LIMIT, None)]
    found = {(name, ms): measure(pieces, name, way, ms) for name, way in ways for ms in LATENCIES}
    lines = ["| mm | | " + " | ".join(f"{ms} ms" for ms in LATENCIES) + " |", "|---" * (2 + len(LATENCIES)) + "|"]
    for measured in (*MEASURES, *MOVING):
        for name, _ in ways:
            cells = [cell(found[name, ms][measured], found[LATE, ms][measured], name == LATE) for ms in LATENCIES]
            lines.append(f"| {measured} | {name} | " + " | ".join(cells) + " |")
    for kind in MEASURES[:2]:
        for name, way in ways:
            if way is not None:
                ratios = [found[name, ms][f"rest {kind}"] / found[LATE, ms][f"rest {kind}"] for ms in LATENCIES]
                lines.append(f"| {kind}, jitter at rest | {name} | " + " | ".join(f"x {r:.2f}" for r in ratios) + " |")
    return lines


def gap_table(pieces: list[Played], forecasters: list[Forecaster]) -> list[str]:
    """Markdown: how far off who is hidden is carried on, and how many joints are within their sigma."""
    hold = load_forecaster("zero-velocity")
    found = {one.name: hidden(pieces, one) for one in (hold, *forecasters)}
    held = found[hold.name]
    lines = ["| mm | | " + " | ".join(f"{ms} ms" for ms in GAPS) + " |", "|---" * (2 + len(GAPS)) + "|"]
    for measured in MEASURES:
        for name, values in found.items():
            plain = name == hold.name
            cells = [cell(a, b, plain) for a, b in zip(values[measured], held[measured], strict=True)]
            lines.append(f"| {measured} | {'held' if plain else name} | " + " | ".join(cells) + " |")
    for one in forecasters:
        shares = " | ".join(f"{100 * share:.0f} %" for share in found[one.name]["inside"])
        lines.append(f"| joints within sigma | {one.name} | {shares} |")
    return lines


def hidden(pieces: list[Played], forecaster: Forecaster) -> dict[str, list[float]]:
    """By MEASURES the mean error, mm, after each of GAPS; and "inside", the share of joints within their sigma."""
    rows: dict[str, list[F64]] = {}
    after = np.array(GAPS) / 1000
    for played in pieces:
        later = np.stack([moved_truth(played, seconds) for seconds in after], axis=1)
        pasts = PastBuffer()
        due = FROM
        for result, truth in zip(played.results, later, strict=True):
            pasts.add(result)
            if result.time < due or not len(result.people) or not np.isfinite(truth).all():
                continue
            due += EVERY
            said = forecaster.predict(pasts.past_of([1]), result.time + after[None])
            places = said.joints[0].astype(np.float64) + said.root[0][:, None]
            pairs = zip(views_of(places, truth[..., 2:]), views_of(truth, truth[..., 2:]), strict=True)
            for name, (place, true) in zip(MEASURES, pairs, strict=True):
                rows.setdefault(name, []).append(lengths(place - true))
            off = 1000 * np.linalg.norm(said.joints[0] - (truth - truth[:, :1]), axis=-1)
            rows.setdefault("inside", []).append((off < said.sigma[0])[:, 1:].mean(axis=1))
    return {name: np.nanmean(values, axis=0).tolist() for name, values in rows.items()}


def named(name: str) -> Forecaster:
    """A forecaster, or after "steady" one that is steadied as live ones are."""
    first, _, rest = name.partition(" ")
    if first != "steady":
        return load_forecaster(name)
    steady = StabilizedForecaster(load_forecaster(rest))
    steady.name = name
    return steady


def cell(value: float, late: float, plain: bool) -> str:
    return f"{value:.1f}" if plain else f"{value:.1f} ({100 * (value / late - 1):+.0f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="files of pose-prepare, separated by commas")
    parser.add_argument("--forecasters", default=",".join(FORECASTERS), help="names, separated by commas")
    parser.add_argument("--lifter", default=SLIDING, help="streaming lifter: a name or a checkpoint")
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th piece")
    parser.add_argument("--out", type=Path, help="a Markdown file whose tables are replaced; default: print them")
    options = parser.parse_args()
    lifter = load_lifter(options.lifter, "cpu")
    forecasters = [named(name) for name in options.forecasters.split(",")]
    sections = {}
    for file in options.mocap.split(","):
        begun = time.monotonic()
        views = fixed_views(split(load_clips(Path(file)), "test"), detector=True)[:: options.every]
        pieces = list(play(views, lifter))
        count, rest = sum(len(p.rest) for p in pieces), sum(int(p.rest.sum()) for p in pieces)
        note = f"{len(pieces)} pieces, {count} frames, {rest} of them at rest."
        sections[f"Late and predicted poses, {Path(file).stem}"] = [note, "", *shown_table(pieces, forecasters)]
        sections[f"Occluded, {Path(file).stem}"] = gap_table(pieces, forecasters)
        print(f"{file}: {note} {time.monotonic() - begun:.0f} s", flush=True)
    publish(sections, options.out)


if __name__ == "__main__":
    main()
