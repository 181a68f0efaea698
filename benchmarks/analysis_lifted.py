"""Angles, RULA, REBA, jumps and transfers of lifted against true poses: tables of docs/studies/analysis.md.

    python benchmarks/analysis_lifted.py --gait ../shared/mocap/gait --ui-prmd ../shared/mocap/ui-prmd \\
        --cmu ../shared/mocap/cmu --snu ../shared/mocap/snu

The motion is seen by one virtual camera on a tripod through a detector's skeleton with its errors
(`pose_datasets.fixed_views`), lifted by `offline` and put into the world without a known body height. Truth is the same
analysis of the recorded joints, 30 frames/s. Jumps: trials of CMU and of `woody`; transfers: UI-PRMD m05 and
CMU. Of CMU and `woody`, the lifter was trained on some subjects. `--every`: each so-many-th recording of
UI-PRMD, and all of m05. Transfers are seen by several cameras.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from analysis import gait_trials, ui_prmd_recordings
from numpy.typing import NDArray
from pose_datasets.fixed_views import fixed_views
from pose_datasets.mocap import Clip, read_subject, trial_clips
from pose_datasets.snu import GROUPS, read_group

from pose.analysis.body_angles import body_angles
from pose.analysis.ergonomics import ergonomic_scores
from pose.analysis.exercise import TRANSFER_ERROR_S
from pose.analysis.jumps import find_jumps
from pose.analysis.metrics import mean_interval
from pose.analysis.motion import Motion
from pose.analysis.sit_to_stand import find_transfers
from pose.keypoint_runs import lift_sequences
from pose.lifting.load import load_lifter
from pose.world.clean import Steps, clean
from pose.world.person import person_of

F64 = NDArray[np.float64]

NEAR_S = 0.4  # between a moment and its match
# Trials of CMU by what they hold (mocap.cs.cmu.edu): jumps on the spot and forwards, sitting.
CMU = {
    "13": ("13_01", "13_11", "13_13", "13_19", "13_32", "13_39", "13_40", "13_41", "13_42"),
    "14": ("14_27", "14_28", "14_29", "14_30"),
    "16": tuple(f"16_{number:02d}" for number in (1, 2, 3, 4, 5, 6, 7, 9, 10)),
}
WOODY = ("Physics_Jump", "broad_jump")
# Sitting on stools and on the floor. The definition of a transfer was chosen on 14 and on s01 to s07 of UI-PRMD.
SEATS = {
    "01": ("01_09", "01_11"),
    "13": tuple(f"13_{number:02d}" for number in range(1, 7)),
    "14": tuple(f"14_{number}" for number in range(27, 33)),
}
WOODY_SEATS = ("Physics_Raise",)
SEAT_ROWS = {
    "14": ("14_",),
    "01, 13, woody": ("01_", "13_", "snu-woody"),
    "s01 to s07": tuple(f"uiprmd-s0{number}" for number in range(1, 8)),
    "s09, s10": ("uiprmd-s09", "uiprmd-s10"),
}
SEAT_VIEWS = 4  # cameras of each recording with transfers


@dataclass(frozen=True, slots=True)
class Pair:
    """The same motion, recorded and lifted."""

    name: str
    true: Motion
    lifted: Motion


def pairs(clips: list[Clip]) -> Iterator[Pair]:
    """Every clip of at least 1 s."""
    network = load_lifter("offline")
    for view in fixed_views(clips, detector=True, min_duration_s=1.0):
        seen, answers = lift_sequences(network, [view.seen], repair=True, constant_bones=True)
        person = person_of(answers[0], seen[0])
        _, cleaned = clean({1: person}, person.times, Steps())
        one = cleaned[1]
        sigma = np.full(one.placed.shape[:2], 50.0)
        truth = view.joints.astype(float)
        truth[..., 1] -= np.percentile(truth[:, [3, 6], 1], 2) - 0.08  # the floor at 0
        yield Pair(view.name, Motion(person.times, truth, sigma), Motion(person.times, one.placed.astype(float), sigma))


def cmu_clips(folder: Path, trials: Mapping[str, Sequence[str]] = CMU) -> list[Clip]:
    """Some trials of CMU by subject."""
    clips = []
    for subject, wanted in trials.items():
        for _, trial, points, fps in read_subject(folder / f"{subject}.zip"):
            if trial in wanted:
                clips += trial_clips(subject, trial, points, fps)
    return clips


def woody_clips(folder: Path, words: Sequence[str] = WOODY) -> list[Clip]:
    """The trials of `woody` that have one of the words in their name."""
    clips = []
    for subject, trial, points, fps in read_group(folder / "woody.zip", GROUPS["woody"]):
        if any(word in trial for word in words):
            clips += trial_clips(subject, trial, points, fps)
    return clips


def angle_table(found: list[Pair]) -> None:
    """Mean and 95 % of the error of each angle, and 95 % of that of its range in a recording."""
    errors: dict[str, list[F64]] = defaultdict(list)
    ranges: dict[str, list[float]] = defaultdict(list)
    for pair in found:
        true, lifted = body_angles(pair.true), body_angles(pair.lifted)
        for (angle, side), values in true.items():
            other = lifted[angle, side]
            errors[angle].append(np.abs((other - values + 180) % 360 - 180))
            ranges[angle].append(abs(float(np.ptp(other) - np.ptp(values))))
    for angle, parts in errors.items():
        joined = np.concatenate(parts)
        print(
            f"| {angle} | {joined.mean():.1f} | {np.percentile(joined, 95):.1f} | "
            f"{np.mean(ranges[angle]):.1f} | {np.percentile(ranges[angle], 95):.1f} |"
        )


def ergonomics_table(found: list[Pair]) -> None:
    """Share of frames whose RULA and REBA score is exact, and within 1."""
    for name in ("rula", "reba"):
        scores = [(getattr(ergonomic_scores(one), name) for one in (pair.true, pair.lifted)) for pair in found]
        off = np.concatenate([np.abs(a - b) for a, b in scores])
        print(f"| {name.upper()} | {(off == 0).mean():.0%} | {(off <= 1).mean():.0%} | {len(off)} frames |")


def matched_table(
    found: list[Pair], events: Callable[[Motion], list[object]], time: str, values: dict[str, tuple[float, str]]
) -> None:
    """How many moments of the true motion are found in the lifted one, and the errors of their values."""
    errors: dict[str, list[float]] = defaultdict(list)
    there = missed = spurious = 0
    for pair in found:
        true, lifted = events(pair.true), events(pair.lifted)
        there += len(true)
        taken: set[int] = set()
        for one in true:
            near = [
                at
                for at, other in enumerate(lifted)
                if at not in taken and abs(getattr(other, time) - getattr(one, time)) < NEAR_S
            ]
            if not near:
                missed += 1
                continue
            taken.add(near[0])
            for name in values:
                errors[name].append(getattr(lifted[near[0]], name) - getattr(one, name))
        spurious += len(lifted) - len(taken)
    print(f"found {there - missed} of {there}, spurious {spurious}")
    for name, (factor, unit) in values.items():
        off = factor * np.array(errors[name])
        if len(off):
            size = np.abs(off)
            print(f"| {name} | {off.mean():+.1f} | {size.mean():.1f} | {np.percentile(size, 95):.1f} {unit} |")


def transfer_table(found: list[Pair], label: str) -> None:
    """Transfers matched by overlap: errors of start, end and duration, and how many intervals hold the true mean."""
    errors: list[tuple[float, float, float]] = []
    held: list[bool] = []
    there = spurious = 0
    for pair in found:
        true, lifted = find_transfers(pair.true), find_transfers(pair.lifted)
        there += len(true)
        matches = [
            (one, other)
            for one in true
            for other in lifted
            if one.rising == other.rising and min(one.end, other.end) > max(one.start, other.start)
        ]
        spurious += len(lifted) - len({other.start for _, other in matches})
        errors += [(b.start - a.start, b.end - a.end, b.duration - a.duration) for a, b in matches]
        for rising in (True, False):
            own = [(a.duration, b.duration) for a, b in matches if a.rising == rising]
            if own:
                truth, ours = np.transpose(own)
                _, low, high = mean_interval(ours.tolist(), TRANSFER_ERROR_S)
                held.append(bool(low <= truth.mean() <= high))
    size = np.abs(errors)
    rows = zip(size.mean(axis=0), np.percentile(size, 95, axis=0), strict=True)
    cells = " | ".join(f"{mean:.2f}, {most:.2f}" for mean, most in rows)
    print(f"| {label} | {len(errors)} of {there} | {spurious} | {cells} | {sum(held)} of {len(held)} |")


def seat_pairs(options: argparse.Namespace) -> list[Pair]:
    """Recordings with transfers, seen by several cameras."""
    clips = cmu_clips(options.cmu, SEATS) if options.cmu else []
    clips += woody_clips(options.snu, WOODY_SEATS) if options.snu else []
    if options.ui_prmd:
        clips += [clip for name, (clip, _) in ui_prmd_recordings(options.ui_prmd).items() if name.endswith("m05")]
    many = [replace(clip, name=f"{clip.name}~{number}") for number in range(SEAT_VIEWS) for clip in clips]
    return list(pairs(many))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("gait", "ui-prmd", "cmu", "snu"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--every", type=int, default=8)
    options = parser.parse_args()
    walks = list(pairs([trial.clip for trial in gait_trials(options.gait)])) if options.gait else []
    exercises: list[Pair] = []
    if options.ui_prmd:
        recordings = ui_prmd_recordings(options.ui_prmd)
        chosen = set(list(recordings)[:: options.every]) | {name for name in recordings if name.endswith("m05")}
        exercises = list(pairs([clip for name, (clip, _) in recordings.items() if name in chosen]))
    sports = list(pairs(cmu_clips(options.cmu))) if options.cmu else []
    sports += list(pairs(woody_clips(options.snu))) if options.snu else []
    for name, part in (("walks", walks), ("exercises", exercises)):
        if part:
            print(f"\nangles, {name}: mean, 95 %; range: mean, 95 %, degrees")
            angle_table(part)
    everything = [*walks, *exercises, *sports]
    if everything:
        print("\nscores: exact, within 1")
        ergonomics_table(everything)
    if sports:
        print("\njumps: bias, mean, 95 %")
        heights = dict.fromkeys(("flight_height", "pelvis_height", "countermovement"), (100.0, "cm"))
        angles = dict.fromkeys(("landing_flexion", "landing_valgus"), (1.0, "degrees"))
        matched_table(sports, find_jumps, "takeoff", heights | angles)  # type: ignore[arg-type]
        apart = [abs(jump.flight_height - jump.pelvis_height) for pair in sports for jump in find_jumps(pair.true)]
        print(f"heights of recorded joints, flight time against pelvis: {100 * np.mean(apart):.1f} cm apart")
    seats = seat_pairs(options)
    if seats:
        print(
            "\ntransfers: found, spurious; start, end, duration: mean, 95 %, s; intervals that hold the true duration"
        )
        for label, chosen in SEAT_ROWS.items():
            part = [pair for pair in seats if pair.name.startswith(chosen)]
            if part:
                transfer_table(part, label)


if __name__ == "__main__":
    main()
