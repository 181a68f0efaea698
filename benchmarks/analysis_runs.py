"""Runs: foot strikes and offs, cadence, flight and contact times: tables of docs/studies/analysis.md.

    python benchmarks/analysis_runs.py --cmu ../shared/mocap/cmu

Recordings of CMU hold one to two strides. One stride is therefore repeated: the frames between two similar poses, each
time moved on by the way of that stride; what the poses differ is spread over the stride. Truth comes from physics, not
from the feet: in flight the centre of mass falls freely, so its vertical acceleration is below -g / 2. Masses and
centres of the segments: Winter, Biomechanics and Motor Control of Human Movement, 2009, table 4.1.

`exact`: the recorded joints at 30 frames/s. `lifted`: seen by virtual cameras on a tripod through a detector's skeleton
with its errors, lifted by `offline` and put into the world, without a known body height. The shifts of running in
`pose/analysis/gait.py` are those of subject 09, exact; 16 and 35 are test subjects of the lifter.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from analysis import exact, lifted
from numpy.typing import NDArray
from pose_datasets.mocap import Clip, read_subject

from pose.analysis.gait import analyse_gait
from pose.analysis.motion import SIDES
from pose.structures.skeletons import H36M17
from pose.structures.smooth import zero_phase

F64 = NDArray[np.float64]

RUNS = {
    "09": tuple(f"09_{number:02d}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11)),
    "16": ("16_35", "16_36", "16_45", "16_46"),
    "35": tuple(f"35_{number}" for number in range(17, 27)),
}
WALKS = {
    "08": ("08_01", "08_04", "08_08", "08_11"),
    "16": ("16_15", "16_31", "16_47", "16_58"),
    "35": ("35_01", "35_05", "35_11", "35_28", "35_31", "35_33"),
    "38": ("38_01",),
}
STRIDES = 5
STRIDE_S = (0.55, 0.9)  # of these runs
LOW_PASS_HZ, FREE_FALL_G = 12.0, -0.5
MIN_PHASE_S = 0.05  # shorter flights and contacts are noise
CONTACT_S = 0.1  # after a strike and before an off, the standing foot is the lower one
WITHIN_S = 0.2
# Segment: ends, mass as a share of the body's, place of its centre from the first end.
SEGMENTS = [("pelvis", "thorax", 0.497, 0.5), ("thorax", "head", 0.081, 0.5)]
for _side in SIDES:
    SEGMENTS += [
        (f"{_side}_shoulder", f"{_side}_elbow", 0.028, 0.436), (f"{_side}_elbow", f"{_side}_wrist", 0.022, 0.682),
        (f"{_side}_hip", f"{_side}_knee", 0.100, 0.433), (f"{_side}_knee", f"{_side}_ankle", 0.061, 0.606),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """A run of several equal strides, and its events: (time, side) by name."""

    clip: Clip
    strikes: list[tuple[float, str]]
    offs: list[tuple[float, str]]


def clips(folder: Path, wanted: dict[str, tuple[str, ...]]) -> Iterator[Clip]:
    """The trials at their own frame rate."""
    for subject, names in wanted.items():
        for _, trial, points, fps in read_subject(folder / f"{subject}.zip"):
            if trial in names:
                yield Clip(subject, trial, points.astype(np.float32), np.arange(len(points)) / fps)


def repeated(clip: Clip) -> Clip:
    """The most periodic stride of a clip, `STRIDES` times."""
    points, rate = clip.points.astype(np.float64), (len(clip.times) - 1) / (clip.times[-1] - clip.times[0])
    poses = (points - points[:, :1] * np.array([1.0, 0.0, 1.0])).reshape(len(points), -1)
    best = min(
        (float(np.linalg.norm(poses[a] - poses[b])), a, b)
        for a in range(len(points))
        for b in range(a + round(STRIDE_S[0] * rate), min(a + round(STRIDE_S[1] * rate), len(points)))
    )
    _, first, last = best
    stride = points[first:last]
    way = (points[last, 0] - points[first, 0]) * np.array([1.0, 0.0, 1.0])
    share = (np.arange(len(stride)) / len(stride))[:, None, None]
    closed = stride - share * (points[last] - points[first] - way)
    joined = np.concatenate([closed + number * way for number in range(STRIDES)])
    return replace(clip, points=joined.astype(np.float32), times=np.arange(len(joined)) / rate)


def events(clip: Clip) -> Run:
    """Foot strikes and offs: the ends and beginnings of free fall, of the lower foot."""
    joints, times = clip.points[:, :17].astype(np.float64), clip.times
    height = sum(
        mass * ((1 - at) * joints[:, H36M17.index(a), 1] + at * joints[:, H36M17.index(b), 1])
        for a, b, mass, at in SEGMENTS
    )
    smooth = zero_phase(np.asarray(height)[:, None], times, LOW_PASS_HZ)[:, 0]
    fall = np.gradient(np.gradient(smooth, times), times) / 9.81 - FREE_FALL_G
    changes = [float(np.interp(0, sorted(fall[[i, i + 1]]), times[[i, i + 1]][np.argsort(fall[[i, i + 1]])]))
               for i in np.flatnonzero(np.diff(np.sign(fall)))]  # fmt: skip
    while (
        short := next((at for at, pair in enumerate(pairwise(changes)) if pair[1] - pair[0] < MIN_PHASE_S), None)
    ) is not None:
        del changes[short : short + 2]
    strikes, offs = [], []
    ankles = joints[:, [H36M17.index(f"{side}_ankle") for side in SIDES], 1]
    for time in changes:
        lands = bool(np.interp(time + 0.01, times, fall) > 0)
        row = int(np.argmin(np.abs(times - time - (CONTACT_S if lands else -CONTACT_S))))
        side = SIDES[int(np.argmin(ankles[row]))]
        (strikes if lands else offs).append((time, side))
    return Run(clip, strikes, offs)


def _phases(strikes: list[tuple[float, str]], offs: list[tuple[float, str]]) -> tuple[float, float, float]:
    """Median flight and contact time, s, and cadence, steps/min."""
    flights = [min(t for t, _ in strikes if t > off) - off for off, _ in offs if any(t > off for t, _ in strikes)]
    contacts = [
        min(t for t, other in offs if t > on and other == side) - on
        for on, side in strikes
        if any(t > on and other == side for t, other in offs)
    ]
    strides = np.concatenate([np.diff(sorted(t for t, side in strikes if side == one)) for one in SIDES])
    return float(np.median(flights)), float(np.median(contacts)), 120 / float(np.median(strides))


def table(runs: list[Run], how: "object", views: int) -> None:
    """Print share found, spurious, bias and 95 % of the events, and errors of flight, contact and cadence."""
    errors: dict[str, list[float]] = defaultdict(list)
    missed: dict[str, int] = defaultdict(int)
    spurious: dict[str, int] = defaultdict(int)
    figures: list[tuple[float, ...]] = []
    measured = counted = 0
    for run in (one for one in runs for _ in range(views)):
        number = counted % views
        counted += 1
        clip = replace(run.clip, name=f"{run.clip.name}~{number}")
        gaits = [analyse_gait(motion) for motion in how(clip)]  # type: ignore[operator]
        measured += any(gait.running and bool(gait.strides) for gait in gaits)
        found_all = []
        for name, true, sets in (
            ("foot strike", run.strikes, [gait.strikes for gait in gaits]),
            ("foot off", run.offs, [gait.offs for gait in gaits]),
        ):
            found = [(time, side) for one in sets for side, times in one.items() for time in times]
            found_all.append(found)
            for time, side in true:
                near = [other - time for other, at in found if at == side and abs(other - time) < WITHIN_S]
                missed[name] += not near
                errors[name] += [min(near, key=abs)] if near else []
            inside = [(t, s) for t, s in found if true[0][0] < t < true[-1][0]]
            spurious[name] += sum(all(s != side or abs(t - time) >= WITHIN_S for time, side in true) for t, s in inside)
        if all(len(one) > 2 for one in found_all):
            ours, truth = _phases(*found_all), _phases(run.strikes, run.offs)
            figures.append(tuple(a - b for a, b in zip(ours, truth, strict=True)))
    print(f"{measured} of {counted} recordings measured as runs")
    for name, values in errors.items():
        milliseconds = 1000 * np.array(values)
        print(
            f"| {name} | {len(values)} of {len(values) + missed[name]} | {spurious[name]} | "
            f"{np.median(milliseconds):+.0f} | {np.percentile(np.abs(milliseconds), 95):.0f} |"
        )
    off = np.array(figures)
    for column, (name, factor, unit) in enumerate(
        (("flight time", 1000, "ms"), ("contact time", 1000, "ms"), ("cadence", 1, "steps/min"))
    ):
        part = factor * off[:, column]
        size = np.abs(part)
        print(f"| {name} | {part.mean():+.1f} | {size.mean():.1f} | {np.percentile(size, 95):.1f} {unit} |")


def named_table(recordings: list[Clip], how: "object") -> str:
    """How many recordings are taken for runs."""
    taken = [analyse_gait(motion).running for clip in recordings for motion in how(clip)]  # type: ignore[operator]
    return f"{sum(taken)} of {len(taken)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmu", type=Path, required=True)
    parser.add_argument("--views", type=int, default=3, help="virtual cameras of each run")
    options = parser.parse_args()
    runs = [events(repeated(clip)) for clip in clips(options.cmu, RUNS)]
    walks = list(clips(options.cmu, WALKS))
    for how, views in ((exact, 1), (lifted, options.views)):
        print(f"\n{how.__name__}: taken for runs: walks {named_table(walks, how)}")
        for label, subjects in (("09", ("09",)), ("16, 35", ("16", "35"))):
            print(f"\n{how.__name__}, subjects {label}: found, spurious, bias ms, 95 % ms; figures: bias, mean, 95 %")
            table([run for run in runs if run.clip.subject in subjects], how, views)


if __name__ == "__main__":
    main()
