"""Where errors of strides, jumps and REBA come from, by substitution: tables of docs/studies/analysis.md.

    python benchmarks/analysis_causes.py --gait ../shared/mocap/gait --cmu ../shared/mocap/cmu --snu ../shared/mocap/snu

One part of the lifted motion at a time is replaced by the recorded one before the world is made: the depth of the
pelvis, the joints relative to it, gravity, the body height. What then remains is due to the other parts. REBA: one part
score at a time is that of the recorded joints. Each recording is seen by `--views` virtual cameras, through a
detector's skeleton with its errors.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from analysis import exact, gait_trials
from analysis_lifted import NEAR_S, cmu_clips, woody_clips
from pose_datasets.fixed_views import FixedView, fixed_views
from pose_datasets.mocap import Clip

from pose.analysis.ergonomics import posture_of, scores_of
from pose.analysis.gait import analyse_gait
from pose.analysis.jumps import find_jumps
from pose.analysis.motion import Motion
from pose.keypoint_runs import lift_sequences
from pose.lifting.load import load_lifter
from pose.structures.refine import lengths_of
from pose.world.clean import Steps, clean
from pose.world.height import scale_to, stature
from pose.world.person import Person, person_of
from pose.world.rules import RULES, DepthRules, Rules, SmoothRules

DEVELOPED_ON = ("HC002D", "HC031A", "HC033A")  # walks on which thresholds were chosen
# Rows of the tables: name, parts that are the recorded ones or steps left out, and other thresholds.
GAIT_ROWS = (
    ("lifted", (), RULES),
    ("height", ("height",), RULES),
    ("height, gravity", ("height", "gravity"), RULES),
    ("height, depth", ("height", "depth"), RULES),
    ("height, joints", ("height", "joints"), RULES),
    ("height, joints, depth", ("height", "joints", "depth"), RULES),
    ("height; feet not held", ("height", "loose"), RULES),
    ("height; not smoothed", ("height", "raw"), RULES),
    ("height; depth less smooth (agility 3)", ("height",), Rules(depth=DepthRules(agility_mps15=3.0))),
    ("height; depth smoother (agility 0.3)", ("height",), Rules(depth=DepthRules(agility_mps15=0.3))),
    ("height; depth from the 2D alone", ("height",), Rules(depth=DepthRules(fit_weight=1.0))),
)
JUMP_ROWS = (
    *GAIT_ROWS[:6],
    ("depth", ("depth",), RULES),
    ("not smoothed", ("raw",), RULES),
    ("smoothed at 12 Hz", (), Rules(smooth=SmoothRules(cutoff_hz=12.0))),
)


@dataclass(frozen=True, slots=True)
class Lift:
    """A person seen by one virtual camera, as recorded and as lifted."""

    view: FixedView
    person: Person

    @property
    def true(self) -> Motion:
        """The recorded joints with the floor at 0."""
        joints = self.view.joints.astype(float)
        joints[..., 1] -= np.percentile(joints[:, [3, 6], 1], 2) - 0.08
        return Motion(self.person.times, joints, np.full(joints.shape[:2], 50.0))

    def placed(self, parts: Iterable[str], rules: Rules) -> Motion:
        """The motion in the world with some parts as recorded."""
        true, person = self.view.camera_joints.astype(np.float64), self.person
        if "joints" in parts:
            sigma = np.full(person.sigma.shape, 10.0, np.float32)
            person = replace(person, joints=(true - true[:, :1]).astype(np.float32), sigma=sigma)
        known = self.view.joints
        height = stature(lengths_of(known, np.full(known.shape[:2], 10.0, np.float32)), rules.size)
        if "depth" in parts:
            own = stature(lengths_of(person.joints, person.sigma), rules.size)
            factor = scale_to(height, own, rules.size) if "height" in parts else 1.0
            depth = true[:, 0, 2] / person.root[:, 2] / factor  # the world scales the root with the body
            person = replace(person, root=person.root * depth[:, None])
        steps = Steps(
            depth="depth" not in parts, smooth="raw" not in parts, feet="loose" not in parts,
            up=self.view.up if "gravity" in parts else None, heights={1: height} if "height" in parts else {},
        )  # fmt: skip
        one = clean({1: person}, person.times, steps, rules)[1][1]
        return Motion(person.times, one.placed.astype(float), np.full(one.placed.shape[:2], 50.0))


def lifts(clips: list[Clip], views: int) -> Iterator[Lift]:
    """Every clip of at least 1 s, seen by several cameras."""
    network = load_lifter("offline")
    many = [replace(clip, name=f"{clip.name}~{number}") for number in range(views) for clip in clips]
    for view in fixed_views(many, detector=True, min_duration_s=1.0):
        seen, answers = lift_sequences(network, [view.seen], repair=True, constant_bones=True)
        yield Lift(view, person_of(answers[0], seen[0]))


def stride_table(found: list[Lift], truth: dict[str, Motion]) -> None:
    """Mean errors of stride length and speed of each row, all people and those held out."""
    for name, parts, rules in GAIT_ROWS:
        off: list[tuple[bool, float, float]] = []
        for one in found:
            means = []
            for motion in (one.placed(parts, rules), truth[one.view.name.split("~")[0]]):
                straight = [stride for stride in analyse_gait(motion).strides if stride.straight]
                means.append([(s.length, s.length / s.duration) for s in straight])
            if all(means):
                (length, speed), (true_length, true_speed) = (np.mean(part, axis=0) for part in means)
                held_out = one.view.subject not in DEVELOPED_ON
                off.append((held_out, 100 * (length - true_length), 100 * (speed / true_speed - 1)))
        size = np.abs([(length, speed) for _, length, speed in off])
        held = np.abs([(length, speed) for held_out, length, speed in off if held_out])
        cells = [f"{value:.1f}" for value in (*size.mean(axis=0), *held.mean(axis=0))]
        print(f"| {name} | {len(off)} | {' | '.join(cells)} |")


def jump_table(found: list[Lift], label: str) -> None:
    """Jumps found, spurious, and mean errors of both heights of each row."""
    print(f"\njumps, {label}: found, spurious; flight time: bias, mean; pelvis: bias, mean, cm")
    for name, parts, rules in JUMP_ROWS:
        there = spurious = 0
        off: list[tuple[float, float]] = []
        for one in found:
            true, ours = find_jumps(one.true), find_jumps(one.placed(parts, rules))
            there += len(true)
            for jump in true:
                near = [other for other in ours if abs(other.takeoff - jump.takeoff) < NEAR_S]
                if near:
                    ours.remove(near[0])
                    off.append((near[0].flight_height - jump.flight_height, near[0].pelvis_height - jump.pelvis_height))
            spurious += len(ours)
        bias, size = 100 * np.mean(off, axis=0), 100 * np.abs(off).mean(axis=0)
        cells = " | ".join(f"{bias[column]:+.1f} | {size[column]:.1f}" for column in range(2))
        print(f"| {name} | {len(off)} of {there} | {spurious} | {cells} |")


def reba_table(found: list[Lift]) -> None:
    """Share of frames within 1 of the true REBA: one part score recorded, and one part score lifted."""
    pairs = [(posture_of(one.true), posture_of(one.placed((), RULES))) for one in found]
    truth = [scores_of(true).reba for true, _ in pairs]
    used = {"neck": ("neck_reba",), "trunk": ("trunk_reba",), "legs": ("legs_reba",),
            "upper arms": ("upper_arm",), "lower arms": ("lower_arm",)}  # fmt: skip
    names = {field.name for field in fields(pairs[0][0])}

    def within(true_parts: Iterable[str]) -> float:
        mixed = [replace(ours, **{one: getattr(true, one) for one in true_parts}) for true, ours in pairs]
        return float(
            np.mean(np.concatenate([abs(scores_of(m).reba - t) <= 1 for m, t in zip(mixed, truth, strict=True)]))
        )

    print(f"\nREBA within 1: lifted {within(()):.1%}; this part recorded; only this part lifted")
    for name, parts in used.items():
        print(f"| {name} | {within(parts):.1%} | {within(names - set(parts)):.1%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("gait", "cmu", "snu"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--views", type=int, default=4, help="virtual cameras of each recording")
    options = parser.parse_args()
    trials = gait_trials(options.gait)
    truth = {trial.clip.name: exact(trial.clip)[0] for trial in trials}
    walks = list(lifts([trial.clip for trial in trials], options.views))
    print("strides: recordings; length cm, speed %; people held out: length cm, speed %")
    stride_table(walks, truth)
    jumps = list(lifts([*cmu_clips(options.cmu), *woody_clips(options.snu)], options.views))
    jump_table([one for one in jumps if one.view.subject != "16"], "13, 14, woody")
    jump_table([one for one in jumps if one.view.subject == "16"], "16, held out")
    reba_table([*walks, *jumps])


if __name__ == "__main__":
    main()
