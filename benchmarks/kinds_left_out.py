"""What a kind of motion costs that was never trained on: three small trainings, alike but for what they leave out.

    for name in all exercises dance; do pose-train lifter --config configs/train/kinds.yaml \\
        --data.mocap cmu.npz,ui-prmd.npz --data.without "..." --out runs/$name; done
    python benchmarks/kinds_left_out.py --mocap cmu.npz,ui-prmd.npz --runs runs

`exercises` leaves out "uiprmd-*" (rehabilitation, another laboratory), `dance` leaves out "01", "05", "94", "131"
(climbing and hanging, modern, Indian and Michael Jackson's dance); `all` none. The people measured were in none of
the three; salsa is subject 60. Prints MPJPE and P-MPJPE in mm.
"""

import argparse
from pathlib import Path

from pose_datasets.synthesis import evaluation_batches
from pose_datasets.training import MocapConfig, MocapSource, is_ui_prmd

from pose.lifting.torch_lifter import TorchLifter
from pose.training.measure import measure

RUNS = ("all", "exercises", "dance")
DANCER = "60"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--runs", required=True, type=Path, help=f"folder of {', '.join(RUNS)}, or of some of them")
    options = parser.parse_args()
    test = MocapSource(MocapConfig(mocap=options.mocap), seed=0).clips("test")
    kinds = {
        "exercises (s09, s10)": [clip for clip in test if is_ui_prmd(clip)],
        "salsa": [clip for clip in test if clip.subject == DANCER],
        "other test people": [clip for clip in test if not is_ui_prmd(clip) and clip.subject != DANCER],
    }
    for run in (run for run in RUNS if (options.runs / run / "final.safetensors").is_file()):
        network = TorchLifter.load(str(options.runs / run / "final.safetensors")).network
        for kind, clips in kinds.items():
            for condition in ("gt", "detector"):
                figures = measure(network, evaluation_batches(clips, condition=condition))
                print(f"{run:10s} {kind:21s} {condition:9s} {figures}", flush=True)


if __name__ == "__main__":
    main()
