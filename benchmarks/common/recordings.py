"""Recordings of gait with force plates and of exercises, and what one camera makes of recorded people."""

import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from pose_datasets.mapping import POINTS
from pose_datasets.mocap import Clip
from pose_datasets.ui_prmd import load_ui_prmd

from benchmarks.common.views import FPS, FixedView, fixed_views
from pose.body.segments import Motion
from pose.functions import lift_sequences
from pose.lifting.load import load_lifter
from pose.lifting.predict import Lifter
from pose.structures.refine import lengths_of
from pose.structures.types import F64
from pose.world.clean import Cleaned, Steps, clean
from pose.world.height import stature
from pose.world.work import Person, person_of

PAUSE_S = 0.3  # between two episodes of an exercise
HELD_OUT = ("HC038A", "HC044A", "HC055A", "uiprmd-s09", "uiprmd-s10", "16")  # no constant was chosen on them
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


def gait_files(folder: Path, plates: bool = False) -> Iterator[tuple[str, str, Any]]:
    """Subject, name and content of the C3D files of the walkers; of each subject, the static trial first."""
    import ezc3d

    for archive in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(archive) as opened, NamedTemporaryFile(suffix=".c3d") as file:
            names = [name for name in opened.namelist() if name.endswith(".c3d")]
            for name in sorted(names, key=lambda name: ("Static" not in name, name)):
                Path(file.name).write_bytes(opened.read(name))
                yield archive.stem, name, ezc3d.c3d(file.name, extract_forceplat_data=plates)


def gait_trials(folder: Path) -> list[Trial]:
    """The straight walks and turns that have events."""
    files = gait_files(folder)
    trials = [trial_of(file, subject, name) for subject, name, file in files if "Static" not in name]
    return [trial for trial in trials if trial is not None]


def trial_of(file: Any, subject: str, name: str) -> Trial | None:
    parameters, points = file["parameters"], file["data"]["points"][:3].transpose(2, 1, 0) / 1000
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
    first = file["header"]["points"]["first_frame"] / rate
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
            points, _ = even(clip)
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


def even(clip: Clip) -> tuple[F64, F64]:
    times = clip.times - clip.times[0]
    at = np.arange(0, times[-1], 1 / FPS)
    flat = clip.points.reshape(len(clip.points), -1)
    return np.stack([np.interp(at, times, column) for column in flat.T], axis=1).reshape(len(at), -1, 3), at


def seen_again(clip: Clip, number: int) -> Clip:
    """The clip under another name for each further camera, since the name determines the camera."""
    return clip if number == 0 else replace(clip, name=f"{clip.name}~{number}")


def exact(clip: Clip) -> Motion:
    """The measured joints."""
    points, times = even(clip)
    return Motion(times, points[:, :17], np.full((len(times), 17), 10.0))


def part_of(clip: Clip, number: int, middle: float, within_s: float) -> Clip:
    """The part of a clip around a time, s."""
    points, times = even(clip)
    rows = np.abs(times - middle) <= within_s
    return Clip(clip.subject, f"{clip.name}/{number}", points[rows].astype(np.float32), times[rows] - times[rows][0])


@cache
def offline() -> Lifter:
    return load_lifter("offline")


def views_of(clip: Clip) -> list[FixedView]:
    """What one camera and a detector make of a recording; nothing of recordings below 1 s."""
    return fixed_views([clip], detector=True, min_duration_s=1.0)


def placed(view: FixedView, *each: Steps) -> tuple[Person, list[Cleaned]]:
    """What the lifter makes of a person, and the world with each of the steps."""
    seen, answers = lift_sequences(offline(), [view.seen], repair=True, constant_bones=True)
    person = person_of(answers[0], seen[0])
    return person, [clean({1: person}, person.times, steps)[1][1] for steps in each]


@dataclass(frozen=True, slots=True)
class Seen:
    """A recording as it was, with the position of the camera, and as it was lifted."""

    subject: str
    true: Motion
    lifted: Motion
    sized: Motion  # lifted, with known body height


def filmed(clip: Clip) -> Iterator[Seen]:
    """Film a clip and lift it."""
    for view in views_of(clip):
        height = stature(lengths_of(view.joints, np.full(view.joints.shape[:2], 10.0, np.float32)))
        person, (cleaned, sized) = placed(view, Steps(), Steps(heights={1: height}))
        known = np.isfinite(cleaned.placed).all(axis=(1, 2)) & np.isfinite(sized.placed).all(axis=(1, 2))
        times, sigma = person.times[known], np.full((known.sum(), 17), 50.0)
        true = view.joints[np.searchsorted(view.seen.times, times)].astype(float)
        lifted = [Motion(times, one.placed[known].astype(float), sigma) for one in (cleaned, sized)]
        yield Seen(view.subject, Motion(times, true, sigma, camera=view.centre), *lifted)
