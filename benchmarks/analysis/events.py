"""Gait events and repetitions against measured truth: the tables of docs/studies/analysis.md.

    python -m benchmarks.analysis events --gait ../shared/mocap/gait --ui-prmd ../shared/mocap/ui-prmd

Gait: six people with force plates, straight walks and turns, 100 Hz, resampled to 30 frames/s. Repetitions: UI-PRMD,
the correct episodes of an exercise and person joined to one recording, 0.3 s between two of them. `exact`: the measured
joints. `lifted`: seen by one virtual camera on a tripod through a detector's skeleton with its errors
(`common/views.py`), lifted by `offline` and put into the world. `lifted_height`: with the body height known.
An event is found within 0.2 s. `--every N`: only each Nth recording of UI-PRMD.
"""

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from pose_datasets.mocap import Clip

from benchmarks.common.recordings import Trial, exact, gait_trials, placed, seen_again, ui_prmd_recordings, views_of
from benchmarks.common.views import FPS
from pose.analysis.repetitions import body_frame_poses, find_repetitions
from pose.body.gait import analyse_gait
from pose.body.segments import Motion
from pose.structures.refine import lengths_of
from pose.world.clean import Steps
from pose.world.height import stature

WITHIN_S = 0.2
ONSET_M = 0.02  # RMS movement of the joints at which a repetition has begun
How = Callable[[Clip], list[Motion]]


def recorded(clip: Clip) -> list[Motion]:
    """The measured joints."""
    return [exact(clip)]


def lifted(clip: Clip, steps: Steps | None = None) -> list[Motion]:
    """What one camera, a detector, the lifter and the world make of them; none for recordings below 1 s."""
    found, offset = [], 0.0
    for view in views_of(clip):
        person, (one,) = placed(view, steps or Steps())
        found.append(Motion(person.times + offset, one.placed.astype(float), np.full(one.placed.shape[:2], 50.0)))
        offset += person.times[-1] + 1 / FPS
    return found


def lifted_height(clip: Clip) -> list[Motion]:
    """As `lifted`, with the body height known."""
    joints = exact(clip).joints.astype(np.float32)
    height = stature(lengths_of(joints, np.full(joints.shape[:2], 10.0, np.float32)))
    return lifted(clip, Steps(heights={1: height}))


def gait_table(trials: list[Trial], how: How) -> None:
    """Print share found, spurious, bias and 95 % of the events, and errors of stride length and speed."""
    errors: dict[str, list[float]] = defaultdict(list)
    missed: dict[str, int] = defaultdict(int)
    spurious: dict[str, int] = defaultdict(int)
    lengths, speeds = [], []
    for trial in trials:
        gaits = [analyse_gait(motion) for motion in how(trial.clip)]
        for name, events in (("Foot Strike", [g.strikes for g in gaits]), ("Foot Off", [g.offs for g in gaits])):
            found = [(side, time) for one in events for side, times in one.items() for time in times]
            true = [(side, time) for kind, side, time in trial.events if kind == name]
            for side, time in true:
                near = [b - time for other, b in found if other == side and abs(b - time) < WITHIN_S]
                missed[name] += not near
                errors[name] += [min(near, key=abs)] if near else []
            spurious[name] += sum(
                all(other != side or abs(a - time) >= WITHIN_S for other, a in true)
                for side, time in found
                if min(a for _, a in true) < time < max(a for _, a in true)
            )
        strides = [stride for gait in gaits for stride in gait.strides if stride.straight]
        truth = [stride for stride in analyse_gait(exact(trial.clip)).strides if stride.straight]
        if strides and truth:
            length, true_length = (np.mean([one.length for one in part]) for part in (strides, truth))
            speed, true_speed = (np.mean([one.length / one.duration for one in part]) for part in (strides, truth))
            lengths.append(100 * (length - true_length))
            speeds.append(100 * (speed / true_speed - 1))
    for name, values in errors.items():
        count = len(values) + missed[name]
        milliseconds = 1000 * np.array(values)
        print(
            f"| {name} | {len(values)} of {count} | {spurious[name]} | {np.median(milliseconds):+.0f} | "
            f"{np.percentile(np.abs(milliseconds), 95):.0f} |"
        )
    length, speed = (np.mean(np.abs(values)) for values in (lengths, speeds))
    print(f"stride length: mean error {length:.1f} cm; speed: mean error {speed:.1f} %")


def repetition_table(recordings: dict[str, tuple[Clip, list[float]]], how: How) -> None:
    """Print for each exercise how many recordings are counted right, and how far starts are off, in s.

    Starts are compared with the start of the episode, and with the onset of movement in it, since episodes begin with
    pauses of different length.
    """
    right: dict[str, list[bool]] = defaultdict(list)
    starts: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, (clip, true) in recordings.items():
        items = [item for motion in how(clip) for item in find_repetitions(motion).items]
        exercise = name.rpartition("_")[2]
        right[exercise].append(len(items) == len(true))
        onsets = [_onset(exact(clip), time) for time in true]
        for item in items:
            at = int(np.argmin([abs(item.start - time) for time in true]))
            starts[exercise].append((abs(item.start - true[at]), abs(item.start - onsets[at])))
    for exercise in sorted(right):
        found, (from_start, from_onset) = right[exercise], np.median(starts[exercise] or [(np.nan, np.nan)], axis=0)
        print(f"| {exercise} | {sum(found)} of {len(found)} | {from_start:.2f} | {from_onset:.2f} |")
    within = np.mean([off <= WITHIN_S for part in starts.values() for _, off in part])
    print(f"all: {sum(map(sum, right.values()))} of {sum(map(len, right.values()))} counted exactly; ", end="")
    print(f"{within:.0%} of the starts within {WITHIN_S} s of the onset")


def _onset(motion: Motion, start: float) -> float:
    """First time after `start`, s, at which the joints have moved by `ONSET_M` (RMS) in the body's frame."""
    poses, first = body_frame_poses(motion), int(np.argmin(np.abs(motion.times - start)))
    moved = np.sqrt(((poses[first:] - poses[first]) ** 2).sum(axis=-1).mean(axis=1)) > ONSET_M
    return float(motion.times[first + int(np.argmax(moved))])


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--gait", type=Path)
    parser.add_argument("--ui-prmd", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--views", type=int, default=1, help="virtual cameras of each walk")


def main(given: Namespace) -> None:
    names: dict[str, How] = {"exact": recorded, "lifted": lifted, "lifted_height": lifted_height}
    if given.gait:
        trials = gait_trials(given.gait)
        for name, how in names.items():
            print(f"\ngait events, {name}: found, spurious, bias ms, 95 % ms")
            views = 1 if name == "exact" else given.views
            seen = [replace(one, clip=seen_again(one.clip, number)) for number in range(views) for one in trials]
            gait_table(seen, how)
    if given.ui_prmd:
        recordings = dict(list(ui_prmd_recordings(given.ui_prmd).items())[:: given.every])
        for name in ("exact", "lifted"):
            print(f"\nrepetitions, {name}: counted exactly; median start error s: episode, onset")
            repetition_table(recordings, names[name])
