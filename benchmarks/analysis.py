"""Gait events and repetitions against measured truth: the tables of docs/studies/analysis.md.

    python -m benchmarks.analysis --gait ../shared/mocap/gait --ui-prmd ../shared/mocap/ui-prmd

Gait: six people with force plates, straight walks and turns, 100 Hz, resampled to 30 frames/s. Repetitions: UI-PRMD,
the correct episodes of an exercise and person joined to one recording, 0.3 s between two of them. `exact`: the measured
joints. `lifted`: seen by one virtual camera on a tripod through a detector's skeleton with its errors
(`benchmarks.world`), lifted by `offline` and put into the world. `lifted_height`: with the body height known.
An event is found within 0.2 s. `--every N`: only each Nth recording of UI-PRMD.
"""

import argparse
import io
import tempfile
import zipfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pose_datasets.mapping import POINTS
from pose_datasets.mocap import Clip
from pose_datasets.ui_prmd import load_ui_prmd

from benchmarks.world import fixed_views
from pose.analysis.repetitions import body_frame_poses, find_repetitions
from pose.body.gait import analyse_gait
from pose.body.segments import Motion
from pose.functions import lift_sequences
from pose.lifting.load import load_lifter
from pose.structures.refine import lengths_of
from pose.structures.types import F64
from pose.world.clean import Steps, clean
from pose.world.height import stature
from pose.world.work import person_of

FPS = 30.0
WITHIN_S = 0.2
PAUSE_S = 0.3
ONSET_M = 0.02  # RMS movement of the joints at which a repetition has begun
# Joint centres of the files' own model; the mean of several names.
MARKERS = {
    "pelvis": ("LHJC", "RHJC"), "right_hip": ("RHJC",), "right_knee": ("RFEO",), "right_ankle": ("RTIO",),
    "left_hip": ("LHJC",), "left_knee": ("LFEO",), "left_ankle": ("LTIO",), "thorax": ("C7", "CLAV"),
    "left_shoulder": ("LCLO",), "left_elbow": ("LHUO",), "left_wrist": ("LRAO",), "right_shoulder": ("RCLO",),
    "right_elbow": ("RHUO",), "right_wrist": ("RRAO",),
}  # fmt: skip
HEAD = (("LFHD", "RFHD"), ("LBHD", "RBHD"))  # markers of a band at the height of the forehead: front, back


@dataclass(frozen=True, slots=True)
class Trial:
    """clip: the joints. events: (name, side, s from the start of the clip)."""

    clip: Clip
    events: list[tuple[str, str, float]]


def gait_trials(folder: Path) -> list[Trial]:
    """The straight walks and turns that have events."""
    import ezc3d

    trials = []
    with tempfile.TemporaryDirectory() as scratch:
        for archive in sorted(folder.glob("*.zip")):
            with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as opened:
                for name in sorted(opened.namelist()):
                    if name.endswith(".c3d") and "Static" not in name:
                        path = Path(scratch) / "trial.c3d"
                        path.write_bytes(opened.read(name))
                        trial = _trial(ezc3d.c3d(str(path)), archive.stem, name)
                        trials += [] if trial is None else [trial]
    return trials


def _trial(file: "object", subject: str, name: str) -> Trial | None:
    parameters, points = file["parameters"], file["data"]["points"][:3].transpose(2, 1, 0) / 1000  # type: ignore[index]
    labels, rate = parameters["POINT"]["LABELS"]["value"], float(parameters["POINT"]["RATE"]["value"][0])
    events = parameters["EVENT"]
    if "TIMES" not in events or any(label not in labels for row in (*MARKERS.values(), *HEAD) for label in row):
        return None
    joints = {joint: points[:, [labels.index(one) for one in row]].mean(axis=1) for joint, row in MARKERS.items()}
    joints["spine"] = (joints["pelvis"] + joints["thorax"]) / 2
    front, back = (points[:, [labels.index(one) for one in pair]].mean(axis=1) for pair in HEAD)
    band, ahead = (front + back) / 2, front - back
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    up = joints["thorax"] - joints["pelvis"]
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    joints |= {"head": band + 0.1 * up, "nose": front - 0.08 * up + 0.01 * ahead, "ears": band - 0.05 * up}
    joints["neck"] = (joints["thorax"] + band) / 2
    stacked = np.stack([joints[point] for point in POINTS], axis=1)[..., [1, 2, 0]]  # y up
    times = np.arange(len(stacked)) / rate
    stacked = _filled(stacked, times)
    first = file["header"]["points"]["first_frame"] / rate  # type: ignore[index]
    found = [
        (label, side.lower(), float(time) - first)
        for label, side, time in zip(
            events["LABELS"]["value"], events["CONTEXTS"]["value"], events["TIMES"]["value"][1], strict=True
        )
        if 0 <= time - first <= times[-1]
    ]
    return Trial(Clip(subject, Path(name).stem, stacked.astype(np.float32), times), found) if found else None


def _filled(points: F64, times: F64) -> F64:
    """Points (T, 19, 3) with each coordinate interpolated where a marker was not seen."""
    flat = points.reshape(len(points), -1)
    columns = [np.interp(times, times[np.isfinite(column)], column[np.isfinite(column)]) for column in flat.T]
    return np.stack(columns, axis=1).reshape(points.shape)


def ui_prmd_recordings(folder: Path) -> dict[str, tuple[Clip, list[float]]]:
    """By person and exercise: one recording of its correct episodes, and when each begins, s."""
    groups: dict[str, list[Clip]] = defaultdict(list)
    for clip in load_ui_prmd(folder):
        if "_inc" not in clip.name:
            groups[clip.name.rpartition("_e")[0]].append(clip)
    recordings = {}
    for name, clips in sorted(groups.items()):
        parts: list[F64] = []
        starts: list[float] = []
        for clip in clips:
            points, _ = _even(clip)
            if parts:
                share = np.linspace(0, 1, round(PAUSE_S * FPS) + 2)[1:-1, None, None]
                parts.append(parts[-1][-1] * (1 - share) + points[0] * share)
            starts.append(sum(map(len, parts)) / FPS)
            parts.append(points)
        joined = np.concatenate(parts)
        if len(clips) > 1:
            clip = Clip(clips[0].subject, name, joined.astype(np.float32), np.arange(len(joined)) / FPS)
            recordings[name] = clip, starts
    return recordings


def _even(clip: Clip) -> tuple[F64, F64]:
    times = clip.times - clip.times[0]
    at = np.arange(0, times[-1], 1 / FPS)
    flat = clip.points.reshape(len(clip.points), -1)
    return np.stack([np.interp(at, times, column) for column in flat.T], axis=1).reshape(len(at), -1, 3), at


def exact(clip: Clip) -> list[Motion]:
    """The measured joints."""
    points, times = _even(clip)
    return [Motion(times, points[:, :17], np.full((len(times), 17), 10.0))]


def lifted_height(clip: Clip) -> list[Motion]:
    """As `lifted`, with the body height known."""
    points, _ = _even(clip)
    joints = points[:, :17].astype(np.float32)
    height = stature(lengths_of(joints, np.full(joints.shape[:2], 10.0, np.float32)))
    return lifted(clip, Steps(heights={1: height}))


def lifted(clip: Clip, steps: Steps | None = None) -> list[Motion]:
    """What one camera, a detector, the lifter and the world make of them; none for recordings below 1 s."""
    network, found, offset = load_lifter("offline"), [], 0.0
    for view in fixed_views([clip], detector=True, min_duration_s=1.0):
        seen, answers = lift_sequences(network, [view.seen], repair=True, constant_bones=True)
        person = person_of(answers[0], seen[0])
        _, cleaned = clean({1: person}, person.times, steps or Steps())
        one = cleaned[1]
        found.append(Motion(person.times + offset, one.placed.astype(float), np.full(one.placed.shape[:2], 50.0)))
        offset += person.times[-1] + 1 / FPS
    return found


def gait_table(trials: list[Trial], how: "object") -> None:
    """Print share found, spurious, bias and 95 % of the events, and errors of stride length and speed."""
    errors: dict[str, list[float]] = defaultdict(list)
    missed: dict[str, int] = defaultdict(int)
    spurious: dict[str, int] = defaultdict(int)
    lengths, speeds = [], []
    for trial in trials:
        gaits = [analyse_gait(motion) for motion in how(trial.clip)]  # type: ignore[operator]
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
        truth = [stride for gait in map(analyse_gait, exact(trial.clip)) for stride in gait.strides if stride.straight]
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


def repetition_table(recordings: dict[str, tuple[Clip, list[float]]], how: "object") -> None:
    """Print for each exercise how many recordings are counted right, and how far starts are off, in s.

    Starts are compared with the start of the episode, and with the onset of movement in it, since episodes begin with
    pauses of different length.
    """
    right: dict[str, list[bool]] = defaultdict(list)
    starts: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, (clip, true) in recordings.items():
        items = [item for motion in how(clip) for item in find_repetitions(motion).items]  # type: ignore[operator]
        exercise = name.rpartition("_")[2]
        right[exercise].append(len(items) == len(true))
        onsets = [_onset(exact(clip)[0], time) for time in true]
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


def seen_again(clip: Clip, number: int) -> Clip:
    """The clip under another name for each further camera, since the name determines the camera."""
    return clip if number == 0 else replace(clip, name=f"{clip.name}~{number}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gait", type=Path)
    parser.add_argument("--ui-prmd", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--views", type=int, default=1, help="virtual cameras of each walk")
    options = parser.parse_args()
    if options.gait:
        trials = gait_trials(options.gait)
        for how in (exact, lifted, lifted_height):
            print(f"\ngait events, {how.__name__}: found, spurious, bias ms, 95 % ms")
            views = 1 if how is exact else options.views
            seen = [replace(one, clip=seen_again(one.clip, number)) for number in range(views) for one in trials]
            gait_table(seen, how)
    if options.ui_prmd:
        recordings = dict(list(ui_prmd_recordings(options.ui_prmd).items())[:: options.every])
        for how in (exact, lifted):
            print(f"\nrepetitions, {how.__name__}: counted exactly; median start error s: episode, onset")
            repetition_table(recordings, how)


if __name__ == "__main__":
    main()
