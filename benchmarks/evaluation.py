"""How fast is `pose-eval`? Synthetic Human3.6M in the real layout: 543,344 frames, flip test-time augmentation on.

    python -m benchmarks.evaluation --lifter offline [--frames 543344] [--threads 2]

Prints frames/s of lifter and metrics, each by itself, and the metrics' share of the lifter's time, which must stay
under 5 % on the CPU.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from datasets import human36m
from pose.evaluation.lifting import evaluate_lifter
from pose.lifter.predict import Lifter

WHOLE_TEST_SET = 543_344
FRAMES_A_TAKE = 2_300


def write_data(folder: Path, frames: int) -> None:
    """The .npz files of protocol V for S9 and S11: 15 actions, two takes each, of a body that wanders about."""
    rng = np.random.default_rng(0)
    takes = [
        (subject, f"{action}{take}")
        for subject in human36m.TEST_SUBJECTS
        for action in human36m.ACTIONS
        for take in ("", " 1")
    ]
    takes = [take for take in takes if take not in human36m.LEFT_OUT]
    takes = takes[:: max(len(takes) * FRAMES_A_TAKE * 4 // frames, 1)]
    lengths = np.full(len(takes), frames // 4 // len(takes))
    lengths[: frames // 4 % len(takes)] += 1
    body = rng.normal(size=(human36m.RAW_JOINTS, 3)) * [0.2, 0.2, 0.5] + [0, 0, 1]
    positions: human36m.Positions3D = {subject: {} for subject in human36m.TEST_SUBJECTS}
    for (subject, take), length in zip(takes, lengths, strict=True):
        wander = np.cumsum(rng.normal(scale=0.002, size=(length, human36m.RAW_JOINTS, 3)), axis=0)
        positions[subject][take] = (body + 0.3 * np.tanh(wander)).astype(np.float32)
    from datasets.human36m_release import project_all

    np.savez(folder / human36m.FILE_3D, positions_3d=np.array(positions, dtype=object))
    np.savez(folder / human36m.FILES_2D["gt"], positions_2d=np.array(project_all(positions), dtype=object))


def main() -> None:
    """Run the benchmark and print one line for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lifter", default="offline")
    parser.add_argument("--frames", type=int, default=WHOLE_TEST_SET)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as name:
        write_data(Path(name), options.frames)
        start = time.perf_counter()
        sequences = human36m.load_sequences(Path(name), "gt")
        print(f"reading: {time.perf_counter() - start:.1f} s for {sum(map(len, sequences)):,} frames")
    found = evaluate_lifter(sequences, Lifter.load(options.lifter))
    lifted, measured = found.frames_lifted / found.lifter_seconds, found.frames_measured / found.metrics_seconds
    print(f"lifter:  {lifted:,.0f} frames/s ({found.frames_lifted:,} frames, with the mirrored ones)")
    print(f"metrics: {measured:,.0f} frames/s ({found.frames_measured:,} frames, with and without flip)")
    print(f"metrics take {100 * found.metrics_seconds / found.lifter_seconds:.2f} % of the lifter's time")


if __name__ == "__main__":
    main()
