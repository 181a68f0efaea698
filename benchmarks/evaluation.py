"""How fast is `pose-eval`? Synthetic Human3.6M in the real layout: 543,344 frames, flip test-time augmentation on.

    python -m benchmarks.evaluation --lifter offline [--frames 543344] [--window 243] [--threads 2]

The lifter sees windows of `--window` frames one after the other, as published lifters of that length do; 0 leaves it
its own windows, which overlap. Prints frames/s of lifter and metrics, each by itself, and the metrics' share of the
lifter's time, which must stay under 5 % on the CPU: by the clock, and in processor time, which other work on the
machine changes less.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from pose_datasets import human36m

from pose.lifting.predict import CHUNK, Lifter, split_outputs
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.types import F32
from pose.training.evaluation.lifting import evaluate_lifter, evaluate_predictions

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
    takes = [take for take in takes if take not in human36m.EXCLUDED_TAKES]
    takes = takes[:: max(len(takes) * FRAMES_A_TAKE * 4 // frames, 1)]
    lengths = np.full(len(takes), frames // 4 // len(takes))
    lengths[: frames // 4 % len(takes)] += 1
    body = rng.normal(size=(human36m.RAW_JOINTS, 3)) * [0.2, 0.2, 0.5] + [0, 0, 1]
    positions: human36m.Positions3D = {subject: {} for subject in human36m.TEST_SUBJECTS}
    for (subject, take), length in zip(takes, lengths, strict=True):
        wander = np.cumsum(rng.normal(scale=0.002, size=(length, human36m.RAW_JOINTS, 3)), axis=0)
        positions[subject][take] = (body + 0.3 * np.tanh(wander)).astype(np.float32)
    from pose_datasets.human36m_release import project_all

    np.savez(folder / human36m.FILE_3D, positions_3d=np.array(positions, dtype=object))
    np.savez(folder / human36m.FILES_2D["gt"], positions_2d=np.array(project_all(positions), dtype=object))


class WindowedLifter:
    """A `pose.training.evaluation.lifting.SequenceLifter` whose network sees `window` frames at a time, without
    overlap.

    processor_seconds: what all its work took, of all threads together.
    """

    def __init__(self, lifter: Lifter, window: int) -> None:
        self.name, self._lifter, self._window = lifter.name, lifter, window
        self.processor_seconds = 0.0

    def lift_many(self, sequences: list[Sequence2D], lookahead: int = 0, *, mirrored: bool = True) -> list[Sequence3D]:
        """3D for every frame of each sequence."""
        start = time.process_time()
        answers = (
            self._in_windows(sequences)
            if self._window
            else self._lifter.lift_many(sequences, lookahead, mirrored=mirrored)
        )
        self.processor_seconds += time.process_time() - start
        return answers

    def _in_windows(self, sequences: list[Sequence2D]) -> list[Sequence3D]:
        """What is left of a sequence after its last whole window is a window too."""
        cuts = [(i, start) for i, one in enumerate(sequences) for start in range(0, len(one), self._window)]
        pieces = [sequences[i][start : start + self._window] for i, start in cuts]
        answers: dict[int, F32] = {}
        for length in {len(piece) for piece in pieces}:
            alike = [index for index, piece in enumerate(pieces) if len(piece) == length]
            for first in range(0, len(alike), CHUNK):
                chunk = alike[first : first + CHUNK]
                answers.update(zip(chunk, self._lifter.forward([pieces[i] for i in chunk]), strict=True))
        whole = [np.concatenate([answers[k] for k, (i, _) in enumerate(cuts) if i == n]) for n in range(len(sequences))]
        return [Sequence3D(*split_outputs(one), seen.times) for one, seen in zip(whole, sequences, strict=True)]


def main() -> None:
    """Run the benchmark and print one line for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lifter", default="offline")
    parser.add_argument("--frames", type=int, default=WHOLE_TEST_SET)
    parser.add_argument("--window", type=int, default=243)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as name:
        write_data(Path(name), options.frames)
        start = time.perf_counter()
        sequences = human36m.load_sequences(Path(name), "gt")
        print(f"reading: {time.perf_counter() - start:.1f} s for {sum(map(len, sequences)):,} frames")
    lifter = WindowedLifter(TorchLifter.load(options.lifter), options.window)
    found = evaluate_lifter(sequences, lifter)
    start = time.process_time()
    evaluate_predictions(sequences, found.predictions)
    metrics = (time.process_time() - start) / sum(map(len, sequences))
    lifted, measured = found.frames_lifted / found.lifter_seconds, found.frames_measured / found.metrics_seconds
    print(f"lifter:  {lifted:,.0f} frames/s ({found.frames_lifted:,} frames, with the mirrored ones)")
    print(f"metrics: {measured:,.0f} frames/s ({found.frames_measured:,} frames, with and without flip)")
    print(f"metrics take {100 * found.metrics_seconds / found.lifter_seconds:.2f} % of the lifter's time")
    network = lifter.processor_seconds / found.frames_lifted
    print(f"processor time a frame: lifter {1e6 * network:.1f} µs, metrics {1e6 * metrics:.2f} µs", end="")
    print(f", which is {100 * metrics / network:.2f} %")


if __name__ == "__main__":
    main()
