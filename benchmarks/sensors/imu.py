"""Leg angles of test people from a video, without and with two sensors on the shanks: docs/studies/sensors.md.

    python -m benchmarks.sensors imu --mocap snu.npz --clips 16 [--standing]

A static camera at chest height films the middle 10 s of clips of over 5 s. The 2D has the errors of detectors
(`pose_datasets.errors`), sensors those of `tests/worn_sensors.py`, with another clock. In a second run, no keypoint is
seen for 2 s.
"""

from argparse import ArgumentParser, Namespace

import numpy as np
from pose_datasets.filming import CANONICAL, FilmConfig, film
from pose_datasets.mocap import Clip
from pose_datasets.sampling import resample

from benchmarks.common.views import add_mocap, clips_of
from pose.body.imu import find_worn
from pose.errors import PoseError
from pose.functions import LiftOptions, record_keypoints
from pose.lifting.fit.windows import fit_motion
from pose.lifting.load import load_lifter
from pose.lifting.predict import Lifter
from pose.lifting.repair.person import repair
from pose.results.run import FirstRun
from pose.structures.camera import Camera
from pose.structures.refine import refine
from pose.structures.rotations import dot, unit
from pose.structures.sequences import Sequence2D
from pose.structures.types import F64, Flags
from pose.utils.device import resolve_device
from pose.world.clean import Steps
from tests.worn_sensors import RATE, simulate

FPS, FRAMES, HIDDEN_S, CLOCK_S = 30.0, 300, 2.0, 7.31
FILM = FilmConfig(
    derived=1.0, exact=0.0, intrinsics_known=1.0, steep=0.0, chest_height=True, definitions=CANONICAL
)  # fmt: skip
OPTIONS = LiftOptions(lifter="offline", lookahead=0, repair=True, constant_bones=True, fit=True, world=True)
OFFSETS = list[float]()  # errors, s
BONES = np.array([[1, 2], [4, 5], [2, 3], [5, 6]])  # thighs, then shanks


def leg_errors(found: F64, true: F64) -> F64:
    """Return the angles (T, 4) between the directions of thighs and shanks of joints (T, 17, 3), degrees."""
    a, b = (unit(joints[:, BONES[:, 1]] - joints[:, BONES[:, 0]]) for joints in (found, true))
    return np.degrees(np.arccos(np.clip(dot(a, b), -1, 1)))


def errors(clip: Clip, number: int, lifter: Lifter, segments: list[str], standing: bool) -> F64 | None:
    """Return errors in degrees, (3, 2, 2): frames of each kind, without or with sensors, thighs and shanks."""
    fast = resample(clip, RATE)[0].astype(np.float64)  # the middle of the clip
    fast = fast[max(0, (len(fast) - 2 * FRAMES) // 2) :][: 2 * FRAMES]
    points = fast[::2].astype(np.float32)
    times = np.arange(len(points)) / FPS
    batch = film(np.random.default_rng(number), points[None], times[None], np.ones((1, len(points)), bool), FILM)
    hidden = np.abs(times - times[-1] / 2) < HIDDEN_S / 2
    if ((batch.scores[0] > 0.05).any(axis=1) & ~hidden).sum() < 2 * FPS:
        return None
    camera = Camera(batch.intrinsics[0], True, (int(batch.image_size[0, 0]), int(batch.image_size[0, 1])))
    recording = simulate(
        fast[:, :17], segments, np.random.default_rng(1000 + number), standing=standing, clock=CLOCK_S, hinged=True
    )
    true = batch.joints[0].astype(np.float64)
    rows = []
    for scores in (batch.scores[0], np.where(hidden[:, None], 0, batch.scores[0])):
        seen = repair(Sequence2D(batch.keypoints[0], scores, times, camera, "h36m17"))
        with record_keypoints(clip.name, {1: seen}, lifter, OPTIONS, Steps()) as first:
            worn = find_worn(recording)(FirstRun.of(first, None))
        OFFSETS.append(worn.offset + CLOCK_S)
        lifted = refine(lifter.lift_many([seen])[0], seen)
        each = [fit_motion(lifted, seen, None, one).joints for one in (None, worn.directions)]
        rows.append([leg_errors(joints.astype(np.float64), true) for joints in each])

    def mean(values: F64, frames: Flags) -> list[float]:
        return [float(values[frames, :2].mean()), float(values[frames, 2:].mean())]

    every = np.ones(len(times), bool)
    return np.array(
        [[mean(one, every) for one in rows[0]], *([mean(one, part) for one in rows[1]] for part in (~hidden, hidden))]
    )


def add_options(parser: ArgumentParser) -> None:
    add_mocap(parser)
    parser.add_argument("--clips", type=int, default=30)
    parser.add_argument("--sensors", default="left_shank,right_shank")
    parser.add_argument("--standing", action="store_true", help="a standing pose precedes the motion")


def main(given: Namespace) -> None:
    """Print the errors of each clip and their means."""
    clips = clips_of(given, min_duration_s=5)
    lifter, table, refused = load_lifter("offline", resolve_device("cpu")), [], []
    for number, at in enumerate(np.unique(np.linspace(0, len(clips) - 1, given.clips).astype(int))):
        clip = clips[at]
        try:
            found = errors(clip, number, lifter, given.sensors.split(","), given.standing)
        except PoseError as error:
            refused.append(clip.name)
            print(f"{clip.name}: {error}", flush=True)
            continue
        if found is not None:
            table.append(found)
            print(f"{clip.name}: {found.mean(axis=-1).round(1).tolist()}", flush=True)
    mean = np.mean(table, axis=0)
    off = 1000 * np.abs(OFFSETS)
    print(f"{len(table)} clips, {len(refused)} refused; offset wrong by {np.median(off):.0f} ms (median), ", end="")
    print(f"{off.max():.0f} ms (greatest), within a frame in {np.mean(off < 1000 / FPS):.0%} of the runs")
    for name, pair in zip(("all visible", "beside 2 s hidden", "hidden"), mean, strict=True):
        values = np.append(pair, pair.mean(axis=1, keepdims=True), axis=1).T
        parts = zip(("thighs", "shanks", "legs"), values, strict=True)
        print(f"{name}: " + ", ".join(f"{part} {a:.1f} -> {b:.1f}" for part, (a, b) in parts), "degrees")
