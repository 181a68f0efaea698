"""`pose-bench lifter`: measure streaming steps, offline frames/s, and attention mechanisms by sequence length."""

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pose.lifting.names import DEFAULT_LIFTER, DEFAULT_LIVE_LIFTER
from pose.utils.json_values import Json
from pose.utils.options import option
from pose.utils.whole_file import write_whole
from pose.utils.written_files import writing
from pose_apps.bench.measurement import Bench
from pose_apps.support.status import StatusLine

if TYPE_CHECKING:
    from pose.lifting.predict import Lifter

PEOPLE = (1, 4)
SEQUENCES, SEQUENCE_FRAMES = 16, 1000
MAX_PASS_SECONDS = 5.0  # s; skips additive attention over all pairs of 4096 frames


@dataclass(frozen=True, slots=True, kw_only=True)
class LifterBench(Bench):
    """The subcommand `pose-bench lifter`, which measures the speed of lifters and attention mechanisms."""

    purpose = "Streaming step time, offline frames/s, and attention cost by sequence length."

    offline: str = option(DEFAULT_LIFTER, "the offline lifter: a shipped name or a checkpoint")
    stream: str = option(DEFAULT_LIVE_LIFTER, "the streaming lifter: a shipped name or a checkpoint")
    lookahead: int = option(0, "look-ahead of the streaming lifter in frames")
    skeleton: str = option("blazepose33", "2D skeleton of the streamed keypoints")
    seconds: float = option(3.0, "measuring time per value, s")
    attention: bool = option(True, "also measure all attention mechanisms")

    def run(self) -> None:
        """Measure lifters and, if requested, attention mechanisms, and print the tables."""
        with StatusLine("loading torch"):
            figures: dict[str, Json] = {"machine": _machine()}
        if self.attention:  # first, because it forks, which requires that torch has no threads yet
            print(
                "Attention, one thread: softmax absolute, other mechanisms as time and memory ratios to it\n",
                flush=True,
            )
            from pose_apps.bench.attention_costs import LENGTHS, measure_all, table

            costs = measure_all(seconds=min(self.seconds, 0.5), max_seconds=MAX_PASS_SECONDS)
            print(table(costs, list(LENGTHS)), end="\n\n")
            figures["attention"] = {
                name: {str(length): asdict(cost) for length, cost in row.items()} for name, row in costs.items()
            }
        steps = bench_stream(self.stream, self.lookahead, self.skeleton, self.seconds)
        print(_stream_table(steps), end="\n\n")
        figures["stream"] = [asdict(step) for step in steps]
        figures["offline_frames_per_second"] = offline = bench_offline(self.offline, self.seconds)
        for backend, rate in offline.items():
            print(f"offline, {backend}: {rate:,.0f} frames/s ({SEQUENCES} sequences of {SEQUENCE_FRAMES} frames)")
        if self.json:
            with writing([Path(self.json)]):
                write_whole(Path(self.json), json.dumps(figures, indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time to lift one frame with several people in streaming use (`LifterStream.step`)."""

    backend: str  # backend, "torch" or "onnx"
    people: int  # number of people in the frame
    p50: float  # median of the time per frame, ms
    p95: float  # 95th percentile of the time per frame, ms


def bench_stream(name: str, lookahead: int, skeleton: str, seconds: float) -> list[StepTime]:
    """Measure the time of a streaming step on one thread, for every backend and number of people."""
    # Steps with different numbers of people alternate, so that other load on the machine affects them equally.
    import torch

    torch.set_num_threads(1)
    found = []
    for backend, lifter in _lifters(name).items():
        steps = [_Steps(lifter, people, lookahead, skeleton) for people in PEOPLE]
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for step in steps:
                step.take(20)
        for people, step in zip(PEOPLE, steps, strict=True):
            p50, p95 = np.percentile(step.times[len(step.times) // 10 :], (50, 95)) * 1000
            found.append(StepTime(backend, people, float(p50), float(p95)))
    return found


def _lifters(name: str) -> dict[str, "Lifter"]:
    """Return the lifter by backend: torch, and ONNX Runtime if an exported file exists."""
    from pose.lifting.onnx_lifter import OnnxLifter
    from pose.lifting.torch_lifter import TorchLifter
    from pose_apps.support.lifters import allow_research_lifters

    allow_research_lifters(name)
    found: dict[str, Lifter] = {"torch": TorchLifter.load(name)}
    if (exported := OnnxLifter.beside(name)) is not None:
        found["onnx"] = exported
    else:
        print(f"onnx not measured: {name} has no .onnx file beside it; run pose-export {name} --format onnx")
    return found


class _Steps:
    """Streaming lifter with synthetic people, which records the time of each step in s."""

    def __init__(self, lifter: "Lifter", people: int, lookahead: int, skeleton: str) -> None:
        from pose.lifting.stream import LifterStream
        from pose.structures.camera import Camera
        from pose.structures.skeletons import get_skeleton

        self._stream = LifterStream(lifter, get_skeleton(skeleton), Camera.of((1280, 720)), lookahead=lookahead)
        self._people = [self._stream.new_person() for _ in range(people)]
        joints = len(get_skeleton(skeleton))
        self._base = np.random.default_rng(0).uniform(200, 500, (people, joints, 2)).astype(np.float32)
        self._scores = np.ones((people, joints), np.float32)
        self.times: list[float] = []

    def take(self, count: int) -> None:
        for _ in range(count):
            now = len(self.times) / 30
            keypoints = self._base + np.float32(20 * np.sin(now))
            start = time.perf_counter()
            self._stream.step(self._people, keypoints, self._scores, now)
            self.times.append(time.perf_counter() - start)


def bench_offline(name: str, seconds: float) -> dict[str, float]:
    """Measure frames/s on complete sequences: "torch" on two threads and, if exported, "onnx" on one."""
    import torch

    torch.set_num_threads(2)
    return {backend: _offline_rate(lifter, seconds) for backend, lifter in _lifters(name).items()}


def _offline_rate(lifter: "Lifter", seconds: float) -> float:
    """Return the speed of `Lifter.lift_many` in frames/s, as the median over several passes."""
    from pose.structures.camera import Camera
    from pose.structures.sequences import Sequence2D

    rng = np.random.default_rng(0)
    keypoints = rng.uniform(200, 500, (SEQUENCE_FRAMES, 17, 2)).astype(np.float32)
    scores = np.ones((SEQUENCE_FRAMES, 17), np.float32)
    sequence = Sequence2D(keypoints, scores, np.arange(SEQUENCE_FRAMES) / 30, Camera.of((1280, 720)), "h36m17")
    lifter.lift_many([sequence])
    rates: list[float] = []
    until = time.perf_counter() + seconds
    while len(rates) < 3 or time.perf_counter() < until:
        start = time.perf_counter()
        lifter.lift_many([sequence] * SEQUENCES)
        rates.append(SEQUENCES * SEQUENCE_FRAMES / (time.perf_counter() - start))
    return float(np.median(rates))


def _stream_table(steps: list[StepTime]) -> str:
    lines = [
        "| streaming step, one thread | people | p50 ms | p95 ms | relative to one person |",
        "|---|---|---|---|---|",
    ]
    alone = {step.backend: step.p50 for step in steps if step.people == 1}
    lines += [
        f"| {step.backend} | {step.people} | {step.p50:.3f} | {step.p95:.3f} | {step.p50 / alone[step.backend]:.2f} |"
        for step in steps
    ]
    return "\n".join(lines)


def _machine() -> dict[str, Json]:
    import torch

    return {"processors": os.cpu_count(), "architecture": platform.machine(), "torch": torch.__version__}
