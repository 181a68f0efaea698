"""What the fit to the 2D gains and costs: before (`pose.structures.refine`) and after it (`pose.lifting.fit`), by
errors of the 2D.

    python benchmarks/fit.py --mocap cmu.npz,ui-prmd.npz,snu.npz [--part test] [--every 4]

Conditions: exact 2D of the joints; the same with white noise of 0.5 % of the image's width; a detector's skeleton with
0, 0.15, 0.3, 0.6 and 1 times the errors of `pose_datasets.errors`, with scores that say nothing, and with offsets that
last for seconds only. Printed for each, before and after the fit: MPJPE / P-MPJPE (mm), the share of sequences whose
P-MPJPE grows by more than 2 %, the share of errors within sigma (%), and the bias of elbow and knee (degrees)
by the true flexion in bins of 30. Last column: processor time of the fit, on one thread (OMP_NUM_THREADS=1).
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from pose_datasets.dialects import NETWORKS, apply_dialect
from pose_datasets.errors import ErrorConfig
from pose_datasets.filming import FilmConfig
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.synthesis import SynthesisConfig, evaluation_batches

from pose.lifting.fit.windows import fit_motion
from pose.lifting.model import LifterNetwork
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.camera import Camera
from pose.structures.refine import refine
from pose.structures.sequences import LiftBatch, Sequence2D, Sequence3D
from pose.structures.skeletons import COCO17, H36M17
from pose.structures.types import F32
from pose.training.evaluation import metrics
from pose.training.evaluation.angles import flexion
from pose.training.measure import lift_batch

BINS = np.arange(0, 181, 30)
_ERRORS = ErrorConfig()
_SIZES = ("jitter", "speed", "drift", "bias", "outlier_rate", "swap_rate", "drop_rate", "frame_drop_rate")


def scaled(factor: float, only: tuple[str, ...] = _SIZES) -> ErrorConfig:
    """A detector's errors times a factor; those not in `only` are left out."""
    return replace(_ERRORS, **{name: factor * getattr(_ERRORS, name) if name in only else 0.0 for name in _SIZES})


@dataclass(frozen=True)
class Condition:
    """One row. condition: of `evaluation_batches`. white: noise, share of the image's width. dialect: of the scores."""

    condition: str
    errors: ErrorConfig = _ERRORS
    white: float = 0.0
    dialect: str | None = None


CONDITIONS = {
    "exact": Condition("gt"),
    "exact, white noise": Condition("gt", white=0.005),
    "detector's skeleton, exact": Condition("detector", scaled(0.0)),
    "0.15 of a detector's errors": Condition("detector", scaled(0.15)),
    "0.3 of them": Condition("detector", scaled(0.3)),
    "0.6 of them": Condition("detector", scaled(0.6)),
    "a detector's": Condition("detector"),
    "a detector's, scores all 1": Condition("detector", dialect="all 1"),
    "offsets only": Condition("detector", scaled(1.0, ("bias",))),
    "offsets only, doubled": Condition("detector", scaled(2.0, ("bias",))),
}


def batches(clips: list[Clip], chosen: Condition) -> Iterator[LiftBatch]:
    rng = np.random.default_rng(0)
    config = SynthesisConfig(film=FilmConfig(errors=chosen.errors))
    for batch in evaluation_batches(clips, condition=chosen.condition, config=config):
        scores = batch.scores if chosen.dialect is None else apply_dialect(NETWORKS[chosen.dialect], batch.scores)
        noise = rng.standard_normal(batch.keypoints.shape, dtype=np.float32)
        width = np.asarray(batch.image_size, np.float32)[:, None, None, :1]
        yield replace(batch, keypoints=batch.keypoints + chosen.white * width * noise, scores=scores)


def as_coco(keypoints: F32, scores: F32) -> tuple[F32, F32]:
    """Human3.6M-17 of a detector's skeleton, (T, 17, 2) px and (T, 17), as COCO-17, from which it follows again."""
    rows = [H36M17.index({"nose": "neck"}.get(name, "head" if "ear" in name or "eye" in name else name))
            for name in COCO17.names]  # fmt: skip
    return keypoints[:, rows], scores[:, rows]


def pieces(network: LifterNetwork, found: Iterator[LiftBatch]) -> Iterator[tuple[Sequence3D, Sequence2D, F32]]:
    """For each sequence the lifted motion, its 2D and the true joints (T, 17, 3) m."""
    for batch in found:
        answer = lift_batch(network, batch)
        for i, valid in enumerate(batch.valid):
            joints, root, sigma = (part[i].numpy()[valid] for part in (answer.joints, answer.root, answer.sigma))
            width, height = batch.image_size[i].astype(int).tolist()
            camera = Camera.of((width, height), batch.intrinsics[i])
            keypoints, scores, name = batch.keypoints[i][valid], batch.scores[i][valid], "h36m17"
            if batch.derived[i]:
                (keypoints, scores), name = as_coco(keypoints, scores), "coco17"
            times = batch.times[i][valid]
            seen = Sequence2D(keypoints, scores, times, camera, name)
            yield Sequence3D(joints, root, sigma, times), seen, batch.joints[i][valid]


@dataclass
class Errors:
    """Of all frames so far, before or after the fit."""

    position: list[F32] = field(default_factory=list)
    aligned: list[F32] = field(default_factory=list)
    inside: list[F32] = field(default_factory=list)
    angles: dict[str, list[F32]] = field(default_factory=lambda: {"elbow": [], "knee": []})

    def add(self, found: Sequence3D, true: F32) -> float:
        """Returns P-MPJPE of the sequence, mm."""
        aligned = metrics.aligned_errors(found.joints, true).mean(axis=1)
        errors = metrics.position_errors(found.joints, true)
        self.position.append(errors.mean(axis=1))
        self.aligned.append(aligned)
        self.inside.append((errors <= found.sigma)[:, 1:].mean(axis=1))
        for joint, pairs in self.angles.items():
            pairs.append(np.stack([flexion(true, joint), flexion(found.joints, joint)], axis=-1).reshape(-1, 2))
        return float(aligned.mean())

    def mean(self, name: str) -> float:
        return float(np.concatenate(getattr(self, name)).mean())

    def bias(self, joint: str) -> str:
        true, found = np.concatenate(self.angles[joint]).T
        bins = np.digitize(true, BINS) - 1
        off = [(found - true)[(bins == index) & np.isfinite(found - true)] for index in range(len(BINS) - 1)]
        return " ".join(f"{one.mean():+.0f}" if len(one) >= 100 else "-" for one in off)


def row(network: LifterNetwork, clips: list[Clip], name: str) -> str:
    before, after, worse, spent, frames = Errors(), Errors(), [], 0.0, 0
    for lifted, seen, true in pieces(network, batches(clips, CONDITIONS[name])):
        refined = refine(lifted, seen)
        started = time.process_time()
        fitted = fit_motion(refined, seen)
        spent, frames = spent + time.process_time() - started, frames + len(true)
        worse.append(after.add(fitted, true) > 1.02 * before.add(refined, true))
    cells = [
        f"{before.mean('position'):.1f} / {before.mean('aligned'):.1f}",
        f"{after.mean('position'):.1f} / {after.mean('aligned'):.1f}",
        f"{100 * (after.mean('aligned') / before.mean('aligned') - 1):+.1f} %",
        f"{100 * np.mean(worse):.0f} %",
        f"{100 * before.mean('inside'):.0f} to {100 * after.mean('inside'):.0f}",
        *(f"{before.bias(joint)}; {after.bias(joint)}" for joint in ("elbow", "knee")),
        f"{1000 * spent / frames:.2f}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--part", default="test", help="train, validation or test")
    parser.add_argument("--every", type=int, default=1, help="only every n-th clip")
    parser.add_argument("--lifter", default="offline", help="name or checkpoint")
    parser.add_argument("--conditions", nargs="+", default=list(CONDITIONS), choices=list(CONDITIONS))
    options = parser.parse_args()
    clips = split([clip for path in options.mocap.split(",") for clip in load_clips(Path(path))], options.part)
    network = TorchLifter.load(options.lifter).network
    print("| 2D | before | after | P-MPJPE | worse | inside sigma, % | elbow: before; after | knee | ms a frame |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.conditions:
        print(row(network, clips[:: options.every], name), flush=True)


if __name__ == "__main__":
    main()
