"""Tables of an offline lifter's errors: by body, with the body height, by frame rate, camera and angle of the elbow.

    python -m benchmarks.lifter tables bodies --mocap cmu.npz,ui-prmd.npz,snu.npz
    python -m benchmarks.lifter tables bodies --part validation --subjects 39,uiprmd-s07,snu-girl --mocap ...
    python -m benchmarks.lifter tables heights --gait ../shared/mocap/gait --mocap ...
    python -m benchmarks.lifter tables rates|cameras|elbows --mocap ...

All subjects of one part of the data are measured, by default those for testing, with fixed random cameras at 30
frames/s; every frame counts the same. `exact`: exact 2D of the 17 joints. `detector's`: a detector's skeleton with its
errors. The shipped weights have seen the validation subjects 05, 09, 17, 131 and 135, so `--subjects` names the others
where weights are compared. Clips and `--every` determine the cameras, so only tables of the same clips are comparable.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from pose_datasets.filming import FilmConfig
from pose_datasets.mapping import POINTS
from pose_datasets.mocap import Clip, laboratory
from pose_datasets.synthesis import SynthesisConfig, evaluation_batches
from pose_datasets.training import MocapConfig, MocapSource

from benchmarks.common.recordings import gait_files, gait_trials
from benchmarks.common.views import fixed_views, minutes
from pose.functions import lift_sequences
from pose.lifting.config import LifterConfig
from pose.lifting.load import load_lifter
from pose.lifting.model import LifterNetwork
from pose.lifting.predict import Lifter
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.refine import lengths_of
from pose.structures.types import F32, F64
from pose.training.evaluation.metrics import aligned_errors, flexion, position_errors, scaled_errors
from pose.training.laboratory.statistics import mean_and_half_width
from pose.training.measure import lift_batch
from pose.world.height import scale_to, stature

SEEN = {"gt": "exact", "detector": "detector's"}
RATES = (15.0, 30.0, 60.0, 120.0)  # frames/s
FIELDS = (0, 40, 55, 70, 180)  # degrees between which horizontal fields of view are counted together
ANGLES = (0, 30, 60, 90, 120, 180)  # degrees of flexion, likewise
EARS_TO_HEAD = 0.08  # m, the median of UI-PRMD; the walkers' own points have 0.15
CHEST = SynthesisConfig(film=FilmConfig(chest_height=True))


class FixedWindows(LifterConfig):
    """A configuration whose windows have as many frames at any rate."""

    windows = property(lambda self: replace(super().windows, any_length=False))


@dataclass(frozen=True, slots=True)
class Sequence:
    """A lifted sequence: joints (T, 17, 3) m relative to the pelvis, true ones, sigma (T, 17) mm, field of view."""

    joints: F32
    true: F32
    sigma: F32
    view: float  # horizontal field of view, degrees


def lifted(
    network: LifterNetwork, clips: list[Clip], condition: str, fps: float = 30.0, config: SynthesisConfig | None = None
) -> Iterator[Sequence]:
    """Lift clips, in sequences of at most ten seconds."""
    for batch in evaluation_batches(clips, condition=condition, fps=fps, frames=round(10 * fps), config=config):
        found = lift_batch(network, batch)
        views = 2 * np.degrees(np.arctan(batch.image_size[:, 0] / 2 / batch.intrinsics[:, 0, 0]))
        for row, valid in enumerate(batch.valid):
            joints, sigma = (part[row].numpy()[valid] for part in (found.joints, found.sigma))
            yield Sequence(joints, batch.joints[row][valid], sigma, float(views[row]))


def joined(sequences: list[Sequence]) -> tuple[F32, F32, F32]:
    """Return joints, true joints and sigma of all frames."""
    parts = zip(*[(s.joints, s.true, s.sigma) for s in sequences], strict=True)
    joints, true, sigma = map(np.concatenate, parts)
    return joints, true, sigma


def figures(sequences: list[Sequence]) -> str:
    """Return MPJPE, after the best scale, P-MPJPE and the shares of errors inside one and two sigma, as cells."""
    joints, true, sigma = joined(sequences)
    errors = position_errors(joints, true)
    inside = [(errors < times * sigma)[:, 1:].mean() for times in (1, 2)]
    shown = [f"{part.mean():.1f}" for part in (errors, scaled_errors(joints, true), aligned_errors(joints, true))]
    return " | ".join([*shown, *(f"{share:.0%}" for share in inside)])


def grouped(clips: list[Clip], name_of: Callable[[Clip], str]) -> dict[str, list[Clip]]:
    return {name: [c for c in clips if name_of(c) == name] for name in sorted({name_of(c) for c in clips})}


def bodies(network: LifterNetwork, clips: list[Clip]) -> None:
    """Print the errors of each body and, where it has several, each laboratory, and the mean over bodies."""
    print("| | minutes | 2D | MPJPE | scaled | P-MPJPE | in 1 sigma | in 2 sigma |\n|---|---|---|---|---|---|---|---|")
    for condition, seen in SEEN.items():
        means = []
        for name, chosen in grouped(clips, lambda clip: laboratory(clip.subject)).items():
            of_body = grouped(chosen, lambda clip: clip.subject)
            found = {body: list(lifted(network, own, condition)) for body, own in of_body.items()}
            means += [float(position_errors(*joined(part)[:2]).mean()) for part in found.values()]
            rows = [(body, of_body[body], part) for body, part in found.items()]
            rows += [(name, chosen, [s for part in found.values() for s in part])] if len(found) > 1 else []
            for label, of_row, part in rows:
                print(f"| {label} | {minutes(of_row):.1f} | {seen} | {figures(part)} |", flush=True)
        mean, half = mean_and_half_width(means)
        print(f"| mean of {len(means)} bodies | | {seen} | {mean:.1f} ± {half:.1f} | | | | |", flush=True)


def rates(network: LifterNetwork, clips: list[Clip]) -> None:
    """Print the errors of each laboratory at each frame rate, in windows of 81 frames and of 2.7 s."""
    in_seconds, in_frames = network.config, FixedWindows(**network.config.to_dict())
    print("| | 2D | frames/s | windows | MPJPE | scaled | P-MPJPE | in 1 sigma | in 2 sigma |\n" + "|---" * 9 + "|")
    for name, chosen in grouped(clips, lambda clip: laboratory(clip.subject)).items():
        for condition, seen in SEEN.items():
            for fps in RATES:
                for label, network.config in (("81 frames", in_frames), ("2.7 s", in_seconds)):
                    cells = figures(list(lifted(network, chosen, condition, fps)))
                    print(f"| {name} | {seen} | {fps:.0f} | {label} | {cells} |", flush=True)


def cameras(network: LifterNetwork, clips: list[Clip]) -> None:
    """Print the errors of each laboratory by field of view of random cameras, and with cameras at chest height."""
    print("| | 2D | camera | MPJPE | scaled | P-MPJPE | in 1 sigma | in 2 sigma |\n" + "|---" * 8 + "|")
    for name, chosen in grouped(clips, lambda clip: laboratory(clip.subject)).items():
        for condition, seen in SEEN.items():
            rows = {"at chest height": list(lifted(network, chosen, condition, config=CHEST))}
            found = list(lifted(network, chosen, condition))
            for low, high in pairwise(FIELDS):
                rows[f"{low} to {high} degrees"] = [s for s in found if low <= s.view < high]
            for camera, part in rows.items():
                if part:
                    print(f"| {name} | {seen} | {camera} | {figures(part)} |", flush=True)


def heights(lifter: Lifter, clips: list[Clip], given: dict[str, float]) -> None:
    """Print the errors of each laboratory without and with the body height, for tripod cameras and as in `pose-run`.

    The height scales a sequence as `--height` does. It is that of the true bones, and in a second column the one that
    was measured, if `given` has it, m. `best` is the best single factor of each sequence, `scaled` that of each frame.
    """
    print("| | 2D | as lifted | height of the bones | measured height | best | scaled | P-MPJPE |\n" + "|---" * 8 + "|")
    for name, chosen in grouped(clips, lambda clip: laboratory(clip.subject)).items():
        for detector, seen in enumerate(SEEN.values()):
            parts: list[list[F64]] = [[] for _ in range(6)]
            for view in fixed_views(chosen, detector=bool(detector), min_duration_s=1.0):
                found = lift_sequences(lifter, [view.seen], repair=True, constant_bones=True, fit=True)[1][0]
                joints, true = (part - part[:, :1] for part in (found.joints, view.camera_joints))
                own = stature(lengths_of(joints, found.sigma))
                true_height = stature(lengths_of(true, np.ones((len(true), 17))))
                factors = [scale_to(height, own) for height in (true_height, given.get(view.subject, np.nan))]
                best = float((joints * true).sum() / (joints**2).sum())
                for part, factor in zip(parts, (1.0, *factors, best), strict=False):
                    part.append(position_errors(factor * joints, true))
                parts[4].append(scaled_errors(joints, true))
                parts[5].append(aligned_errors(joints, true))
            cells = " | ".join(f"{np.concatenate(part).mean():.1f}" for part in parts)
            print(f"| {name} | {seen} | {cells} |".replace("nan", "-"), flush=True)


def elbows(network: LifterNetwork, clips: list[Clip]) -> None:
    """Print the mean error of elbow flexion, degrees, by true and by lifted flexion."""
    print("| | 2D | by | " + " | ".join(f"{a} to {b}" for a, b in pairwise(ANGLES)) + " |")
    print("|---" * (len(ANGLES) + 2) + "|")
    for name, chosen in grouped(clips, lambda clip: laboratory(clip.subject)).items():
        for condition, seen in SEEN.items():
            found = list(lifted(network, chosen, condition))
            angles = [flexion(part, "elbow").ravel() for part in joined(found)[:2]]
            errors = angles[0] - angles[1]
            for label, by in (("true angle", angles[1]), ("lifted angle", angles[0])):
                bins = [errors[(low <= by) & (by < high)] for low, high in pairwise(ANGLES)]
                cells = [f"{part.mean():+.1f} ({len(part)})" if len(part) else "-" for part in bins]
                print(f"| {name} | {seen} | {label} | {' | '.join(cells)} |", flush=True)


def measured_heights(folder: Path) -> dict[str, float]:
    """Return the measured body height of each walker, m."""
    return {
        f"gait-{subject}": file["parameters"]["PROCESSING"]["Height"]["value"][0] / 1000
        for subject, name, file in gait_files(folder)
        if "Static" in name
    }


def head_lowered(clip: Clip) -> Clip:
    """Return a clip of a walker with the head as far above the ears as in the training data."""
    points, (ears, head) = clip.points.copy(), (POINTS.index("ears"), POINTS.index("head"))
    up = points[:, head] - points[:, ears]
    points[:, head] = points[:, ears] + EARS_TO_HEAD * up / np.linalg.norm(up, axis=-1, keepdims=True)
    return replace(clip, points=points)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("table", choices=("bodies", "rates", "cameras", "heights", "elbows"))
    parser.add_argument("--mocap", default="", help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--part", default="test", choices=("validation", "test"))
    parser.add_argument("--subjects", default="", help="only these subjects of the part, separated by commas")
    parser.add_argument("--gait", type=Path, help="folder of the walkers with measured height, measured as well")
    parser.add_argument("--every", type=int, default=1, help="only every n-th clip of each subject")
    parser.add_argument("--lifter", default="offline", help="offline lifter: a name or a checkpoint")


def main(given: Namespace) -> None:
    clips = MocapSource(MocapConfig(mocap=given.mocap), seed=0).clips(given.part) if given.mocap else []
    wanted = given.subjects.split(",") if given.subjects else sorted({clip.subject for clip in clips})
    clips = [clip for name in wanted for clip in [c for c in clips if c.subject == name][:: given.every]]
    if given.gait:
        trials = gait_trials(given.gait)
        clips += [replace(head_lowered(trial.clip), subject=f"gait-{trial.clip.subject}") for trial in trials]
    if given.table == "heights":
        heights(load_lifter(given.lifter), clips, measured_heights(given.gait) if given.gait else {})
    else:
        network = TorchLifter.load(given.lifter).network
        {"bodies": bodies, "rates": rates, "cameras": cameras, "elbows": elbows}[given.table](network, clips)
