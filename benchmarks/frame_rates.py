"""Error of offline lifters over the frame rate, in windows of 81 frames and of 2.7 s.

python benchmarks/frame_rates.py --mocap cmu.npz,ui-prmd.npz --lifters offline
"""

import argparse
from dataclasses import replace
from pathlib import Path

from pose_datasets.mocap import load_clips, split
from pose_datasets.synthesis import CONDITIONS, evaluation_batches

from pose.lifting.config import LifterConfig
from pose.lifting.torch_lifter import TorchLifter
from pose.training.measure import measure

RATES = (15.0, 30.0, 60.0, 120.0)


class FixedWindows(LifterConfig):
    """A configuration whose windows have as many frames at any rate."""

    windows = property(lambda self: replace(super().windows, any_length=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--part", default="test", choices=("validation", "test"))
    parser.add_argument("--every", type=int, default=1, help="only every n-th clip")
    parser.add_argument("--lifters", nargs="+", default=["offline"], help="names or checkpoints")
    options = parser.parse_args()
    clips = split([clip for path in options.mocap.split(",") for clip in load_clips(Path(path))], options.part)
    print("| lifter | 2D | frames/s | MPJPE / P-MPJPE in windows of 81 frames, mm | of 2.7 s |\n|---|---|---|---|---|")
    for lifter in options.lifters:
        network = TorchLifter.load(lifter).network
        in_seconds = network.config
        in_frames = FixedWindows(**in_seconds.to_dict())
        for condition in (name for name in CONDITIONS if name != "noisy"):
            for fps in RATES:
                batches = list(
                    evaluation_batches(clips[:: options.every], condition=condition, fps=fps, frames=round(10 * fps))
                )
                cells = []
                for network.config in (in_frames, in_seconds):
                    found = measure(network, batches)
                    cells.append(f"{found.mpjpe:.1f} / {found.p_mpjpe:.1f}")
                print(f"| {lifter} | {condition} | {fps:.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
