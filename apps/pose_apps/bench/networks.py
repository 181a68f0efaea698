"""`pose-bench detectors` and `pose-bench estimators`: networks on images of 1, 4 and 16 people.

Each network runs in its own process, so that its memory can be measured.
"""

import json
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeAlias

import numpy as np

from pose.config import PipelineConfig
from pose.errors import PoseError, UsageError
from pose.networks.options import StageOptions
from pose.registry import DETECTORS, ESTIMATORS, ONE_PASS, Choice, Stage, build, weight_file
from pose.structures.types import F32, U8, Boxes
from pose.utils.device import resolve_device
from pose.utils.options import option, same_option
from pose.utils.resources import forget_peak, peak_megabytes, resident_megabytes
from pose.utils.whole_file import write_whole
from pose.utils.written_files import writing
from pose_apps.bench.measurement import Bench

if TYPE_CHECKING:
    from pose.structures.stages import Detector, Estimator, OnePass

PEOPLE = (1, 4, 16)
IMAGE_SIZE = (1280, 720)  # width, height, px
WARM_UP_RUNS, MIN_RUNS = 1, 3
# Image with people in these boxes -> the timed function, which returns the number of people found.
Prepare = Callable[[U8, Boxes], Callable[[], int]]


@dataclass(frozen=True, slots=True)
class NetworkTable(Generic[Stage]):
    """Networks of one kind, such as all detectors, and how to time them."""

    # `prepare` takes a loaded network, an image (H, W, 3) uint8 RGB and the boxes of its people. It returns the
    # function to time, which runs the network once and returns the number of people found.

    choices: dict[str, Choice[Stage]]  # available networks by name
    prepare: Callable[[Stage, U8, Boxes], Callable[[], int]]  # function that takes a loaded network
    suffix: str = ""  # text appended to the names of the networks in the report

    def loaded(self, name: str, options: StageOptions, model: str | None) -> tuple[str, Prepare]:
        """Load a network; return its device, and a function from an image and boxes to the function to time."""
        stage = build(self.choices, name, options, model, "--models")
        return getattr(stage, "device", "cpu"), partial(self.prepare, stage)  # LiteRT supports no other device

    def file(self, name: str, model: str | None) -> Path | None:
        """Return the weight file of a network; None if it has no file."""
        return weight_file(self.choices[name], model, "--models")


AnyTable: TypeAlias = "NetworkTable[Detector] | NetworkTable[Estimator] | NetworkTable[OnePass]"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCase:
    """Measurement of one network on the first frame of a clip or on random noise."""

    table: AnyTable  # table that contains the network
    name: str  # name of the network
    model: str | None  # weight file; None for the default
    config: PipelineConfig  # options of the pipeline, such as device and precision
    video: str | None  # clip whose first frame is the image; None for random noise
    seconds: float  # minimum time of the measurement for each number of people, s


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMetrics:
    """Results of one network for one number of people."""

    network: str
    weights: str  # name of the weight file
    device: str  # device of the network
    people: int  # number of people in the image
    milliseconds: float  # median time per image, ms
    frames_per_second: float  # number of images per second
    megabytes: float | None  # peak memory of the process or GPU minus the memory before loading, MB
    found: int  # number of people that the network found


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkBench(Bench):
    """Options of a subcommand that measures networks."""

    names: list[str] = option([], "measure only these networks; default: all")
    models: list[str] = option([], "weights, as for --detector-model", metavar="NAME=FILE")
    video: str | None = option(None, "use the first frame of this clip, tiled; default: random noise")
    device: str = same_option(PipelineConfig, "device")
    precision: str = same_option(PipelineConfig, "precision")
    threads: int = same_option(PipelineConfig, "threads")
    seconds: float = option(1.0, "measuring time per value, s")

    def report(self, tables: Sequence[AnyTable]) -> None:
        """Measure all networks, print the table and failures, and write a JSON file if requested."""
        machine = describe_machine(self.device)
        print(", ".join(f"{key} {value}" for key, value in machine.items()), end="\n\n", flush=True)
        figures: list[NetworkMetrics] = []
        missing: list[str] = []
        for case in self._cases(tables):
            try:
                _require_weights(case)
                figures += measure_in_process(case)
            except PoseError as error:
                missing.append(f"not measured: {case.name}{case.table.suffix}: {error}")
        print(as_table(figures), *missing, sep="\n")
        if self.json:
            document = {"machine": machine, "figures": [asdict(figure) for figure in figures], "missing": missing}
            with writing([Path(self.json)]):
                write_whole(Path(self.json), json.dumps(document, indent=1) + "\n")

    def _cases(self, tables: Sequence[AnyTable]) -> Iterator[NetworkCase]:
        config = PipelineConfig(device=self.device, precision=self.precision, threads=self.threads)
        pairs = [model.partition("=")[::2] for model in self.models]
        all_names = dict.fromkeys(name for table in tables for name in table.choices)
        for name in [*self.names, *(name for name, _ in pairs)]:
            if name not in all_names:
                raise UsageError(f"no network {name!r}; known: {', '.join(all_names)}")
        for table in tables:
            for name in table.choices:
                if self.names and name not in self.names:
                    continue
                model_files: list[str | None] = [file for owner, file in pairs if owner == name]
                for model in model_files or [None]:
                    yield NetworkCase(
                        table=table, name=name, model=model, config=config, video=self.video, seconds=self.seconds
                    )


def _require_weights(case: NetworkCase) -> None:
    """Check that the weights of the network are on this machine, because the measurement does not fetch weights."""
    from pose.networks.weights import Store

    weight = case.table.choices[case.name].weight
    if case.model is None and weight is not None and Store.from_environment().find(weight) is None:
        raise PoseError(f"weights missing; run `pose-weights fetch {weight}`")


def measure(case: NetworkCase) -> list[NetworkMetrics]:
    """Measure time per image and memory of a network with 1, 4 and 16 people; PoseError if it cannot run."""
    file = case.table.file(case.name, case.model)
    frame = _first_frame(case.video)
    pictures = {people: tiled(frame, people) for people in PEOPLE}
    memory = _Memory(resolve_device(case.config.device))
    device, prepare = case.table.loaded(case.name, case.config.stage_options, case.model)
    figures = []
    for people, (image, boxes) in pictures.items():
        run = prepare(image, boxes)
        forget_peak()
        found = [run() for _ in range(WARM_UP_RUNS)][-1]
        times: list[float] = []
        until = time.perf_counter() + case.seconds
        while len(times) < MIN_RUNS or time.perf_counter() < until:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        median = statistics.median(times)
        figures.append(
            NetworkMetrics(
                network=case.name + case.table.suffix, weights=file.name if file else "none",
                device=device, people=people,
                milliseconds=1e3 * median, frames_per_second=1 / median, megabytes=memory.grown(device), found=found,
            )
        )  # fmt: skip
    return figures


def measure_in_process(case: NetworkCase) -> list[NetworkMetrics]:
    """Run `measure` in a separate process, so that memory of earlier measurements does not affect the result."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(measure, case).result()


class _Memory:
    """Measurement of the increase of memory since construction."""

    def __init__(self, device: str) -> None:
        self._device_used = 0.0 if device == "cpu" else self._on_device()
        self._resident = resident_megabytes()

    def grown(self, device: str) -> float | None:
        """Return the increase in MB of the peak process memory (CPU) or of the allocated memory (GPU)."""
        if device != "cpu":
            return self._on_device() - self._device_used
        peak = peak_megabytes()
        return None if peak is None or self._resident is None else peak - self._resident

    @staticmethod
    def _on_device() -> float:
        import torch

        free, total = torch.cuda.mem_get_info()
        return (total - free) / 2**20


def tiled(frame: U8, people: int) -> tuple[U8, Boxes]:
    """Return a 1280 x 720 px image with `people` copies of an image, and a box with score 1 around each."""
    import cv2

    rows = round(people**0.5)
    width, height = IMAGE_SIZE[0] // rows, IMAGE_SIZE[1] // rows
    scale = min(width / frame.shape[1], height / frame.shape[0])
    tile = cv2.resize(frame, (int(frame.shape[1] * scale), int(frame.shape[0] * scale)))
    canvas = np.full((IMAGE_SIZE[1], IMAGE_SIZE[0], 3), 114, np.uint8)
    boxes = []
    for number in range(people):
        x, y = (number % rows) * width, (number // rows) * height
        canvas[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
        boxes.append([x, y, x + tile.shape[1], y + tile.shape[0]])
    xyxy: F32 = np.array(boxes, np.float32)
    return canvas, Boxes(xyxy, np.ones(people, np.float32))


def _first_frame(video: str | None) -> U8:
    if video is None:
        return np.random.default_rng(0).integers(0, 256, (480, 270, 3), np.uint8)
    from pose.video import open_source

    with open_source(video) as source:
        return next(iter(source)).image


def describe_machine(device: str) -> dict[str, str | int | None]:
    """Return `processors`, `architecture` and used `gpu` ("none" without) of this machine for the report."""
    about: dict[str, str | int | None] = {
        "processors": os.cpu_count(),
        "architecture": platform.machine(),
        "gpu": "none",
    }
    if resolve_device(device) == "cuda":
        import torch

        about["gpu"] = torch.cuda.get_device_name()
    return about


def as_table(figures: Sequence[NetworkMetrics]) -> str:
    """Return a Markdown table with one row per network, and time, frames/s and memory for each number of people."""
    columns = [f"{people} {'person' if people == 1 else 'people'}" for people in PEOPLE]
    lines = [
        f"| network | weights | device | {' | '.join(columns)} |",
        "|---" * (3 + len(columns)) + "|",
    ]
    rows: dict[tuple[str, str, str], list[str]] = {}
    for figure in figures:
        memory = "" if figure.megabytes is None else f", {figure.megabytes:.0f} MB"
        cell = f"{figure.milliseconds:.1f} ms, {_short(figure.frames_per_second)}/s{memory}"
        rows.setdefault((figure.network, figure.weights, figure.device), []).append(cell)
    lines += [f"| {' | '.join([*names, *cells])} |" for names, cells in rows.items()]
    return "\n".join(lines)


def _short(number: float) -> str:
    """Format a number with one decimal below 99.95, and without decimals from there on."""
    return f"{number:.1f}" if number < 99.95 else f"{number:.0f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorBench(NetworkBench):
    """The subcommand `pose-bench detectors`, which measures the person detectors."""

    purpose = "Time, frames/s and memory of each person detector for 1, 4 and 16 people."

    def run(self) -> None:
        """Measure time and memory of the detectors, and print a table."""
        self.report([NetworkTable(DETECTORS, detection)])


def detection(detector: "Detector", image: "U8", boxes: "Boxes") -> Callable[[], int]:
    """Return a function to time, which runs the detector on an image and returns the number of people found."""
    return lambda: len(detector.detect([image])[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorBench(NetworkBench):
    """The subcommand `pose-bench estimators`, which measures the 2D pose estimators."""

    purpose = "Time, frames/s and memory of each 2D estimator for 1, 4 and 16 people."

    def run(self) -> None:
        """Measure time and memory of the estimators and of the one-pass networks, and print a table."""
        self.report([NetworkTable(ESTIMATORS, estimation), NetworkTable(ONE_PASS, one_pass, ", one pass")])


def estimation(estimator: "Estimator", image: "U8", boxes: "Boxes") -> Callable[[], int]:
    """Return a function to time, which estimates the joints of all people in an image and returns their number."""
    regions = estimator.regions(boxes)
    return lambda: len(estimator.estimate([image], [regions])[0])


def one_pass(network: "OnePass", image: "U8", boxes: "Boxes") -> Callable[[], int]:
    """Return a function to time, which runs a network on an image and returns the number of people found."""
    return lambda: len(network.find([image])[0][0])
