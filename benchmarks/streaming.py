"""What a lifter says live, frame by frame, against lifting the whole: errors by look-ahead, and the time of a step.

    python benchmarks/streaming.py --mocap cmu.npz,ui-prmd.npz --every 3 --out streaming.json
    python benchmarks/streaming.py --mocap cmu.npz,ui-prmd.npz --part validation --sliding runs/a/final.safetensors ...

Test subjects only, every third clip, 30 frames a second: a detector's skeleton with its errors. `offline` lifts whole
sequences, the others answer each frame so many frames later. The first second of each sequence and the last frames that
nothing follows are left out. Steps run in ONNX Runtime on one thread (OMP_NUM_THREADS=1); their times are processor
time, the least of five rounds' medians, with all people in view. To choose weights, `--part validation` takes the
validation subjects, and `--sliding` a checkpoint instead of the shipped sliding window.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from pose_datasets.mocap import load_clips, split
from pose_datasets.synthesis import evaluation_batches

from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.load import load_lifter
from pose.lifting.predict import Lifter
from pose.lifting.step_batch import PeopleState, StreamSettings
from pose.lifting.stream import LifterStream
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.camera import Camera
from pose.structures.sequences import LiftBatch
from pose.structures.skeletons import H36M17
from pose.structures.types import F32
from pose.training.evaluation import metrics
from pose.training.measure import lift_batch

LOOKAHEADS = {"sliding": (0, 1, 2, 4, 9), "stream": (0, 4, 13)}
FIRST, LAST = 30, 13  # frames at the ends that are left out
PEOPLE = (1, 2, 5)


def stepped(lifter: Lifter, batch: LiftBatch, lookaheads: tuple[int, ...]) -> list[F32]:
    """Joints (B, T, 17, 3) m at each look-ahead, NaN where there is no answer."""
    found = {lookahead: np.full(batch.joints.shape, np.nan, np.float32) for lookahead in lookaheads}
    one_pass = lifter.step.cache_layout.ages is not None  # a sliding window answers for all of them at once
    for row, valid in enumerate(batch.valid):
        camera = {name: getattr(batch, name)[row] for name in ("intrinsics", "derived", "intrinsics_known")}
        for passed in [lookaheads] if one_pass else [(lookahead,) for lookahead in lookaheads]:
            person = PeopleState(StreamSettings(lifter.step, passed[0], camera), 1)
            for frame in range(int(valid.sum())):
                answer: F32 | None = person.advance(
                    batch.keypoints[row, frame], batch.scores[row, frame], float(batch.times[row, frame])
                )[0]
                for lookahead in passed:
                    if one_pass:
                        answer = person.output_of(0, lookahead)
                    if answer is not None and frame >= lookahead:
                        found[lookahead][row, frame - lookahead] = answer[:51].reshape(17, 3)
    return list(found.values())


def figures(joints: list[F32], batches: list[LiftBatch]) -> dict[str, float]:
    """Errors of the frames in the middle of all sequences, mm."""
    position, aligned, acceleration = [], [], []
    for found, batch in zip(joints, batches, strict=True):
        frame, length = np.arange(batch.valid.shape[1]), batch.valid.sum(axis=1, keepdims=True)
        rows = (frame >= FIRST) & (frame < length - LAST)
        position.append(metrics.position_errors(found, batch.joints)[rows])
        aligned.append(metrics.aligned_errors(found[rows], batch.joints[rows]))
        acceleration.append(metrics.acceleration_errors(found, batch.joints)[metrics.consecutive(rows, 3)])
    parts = {"mpjpe": position, "p_mpjpe": aligned, "acceleration": acceleration}
    return {name: round(float(np.concatenate(part).mean()), 2) for name, part in parts.items()}


def step_ms(name: str, people: int) -> float:
    """Processor time of a step for so many people, ms."""
    stream = LifterStream(load_lifter(name), H36M17, Camera.of((1280, 720)))
    states = [stream.new_person() for _ in range(people)]
    base = np.random.default_rng(0).uniform(200, 500, (people, 17, 2)).astype(np.float32)
    scores, medians = np.ones((people, 17), np.float32), []
    for first in range(0, 500, 100):
        times = []
        for frame in range(first, first + 100):
            keypoints = base + np.float32(20 * np.sin(frame / 30))
            began = time.process_time()
            stream.step(states, keypoints, scores, frame / 30)
            times.append(time.process_time() - began)
        medians.append(float(np.median(times)))
    return round(1000 * min(medians), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True, help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--every", type=int, default=1, help="take every so many clips")
    parser.add_argument("--part", default="test", choices=("validation", "test"))
    parser.add_argument("--condition", default="detector", choices=("gt", "noisy", "detector"))
    parser.add_argument("--sliding", metavar="FILE", help="a checkpoint for the sliding window, instead of `sliding`")
    parser.add_argument("--only", nargs="+", default=list(LOOKAHEADS), choices=LOOKAHEADS, help="these streams only")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    clips = [clip for path in options.mocap.split(",") for clip in split(load_clips(Path(path)), options.part)]
    batches = list(evaluation_batches(clips[:: options.every], condition=options.condition))
    network = TorchLifter.load("offline").network
    rows = {"offline": figures([lift_batch(network, batch).joints.numpy() for batch in batches], batches)}
    for name in options.only:
        lifter, lookaheads = load_lifter(name), LOOKAHEADS[name]
        if name == "sliding" and options.sliding:
            lifter = TorchLifter(load_checkpoint(Path(options.sliding)), options.sliding, sliding=True)
        answers = [stepped(lifter, batch, lookaheads) for batch in batches]
        for lookahead, joints in zip(lookaheads, zip(*answers, strict=True), strict=True):
            found = figures(list(joints), batches)
            rows[f"{name}, {lookahead}"] = found
            print(name, lookahead, found, round(found["mpjpe"] / rows["offline"]["mpjpe"], 3), flush=True)
    times = {name: {people: step_ms(name, people) for people in PEOPLE} for name in options.only}
    print("offline", rows["offline"], "ms a step:", times)
    options.out.write_text(json.dumps({"figures": rows, "milliseconds": times}, indent=1) + "\n")


if __name__ == "__main__":
    main()
