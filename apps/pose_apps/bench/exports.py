"""`pose-bench exports`: measure the time of the export formats and of the lifter, per frame and person."""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pose.errors import UsageError
from pose.utils.options import option
from pose.utils.whole_file import write_whole
from pose.utils.written_files import writing
from pose_apps.bench.measurement import Bench

FPS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportBench(Bench):
    """The subcommand `pose-bench exports`, which measures the export formats."""

    purpose = "CPU time of each export format per frame and person, with the lifters for comparison."

    frames: int = option(3000, "length of the result: one person, 30 frames/s")
    formats: str | None = option(None, "only these formats, separated by commas")

    def run(self) -> None:
        """Measure the time of each export format and of the three exported lifters, and print a table."""
        from pose.export import FORMATS, check_formats, export, is_available, open_selection

        if self.frames < 1:
            raise UsageError("--frames: must be at least 1")
        chosen = self.formats.split(",") if self.formats else list(FORMATS)
        if self.formats:
            check_formats(chosen, "--formats")
        present = [name for name in chosen if is_available(name)]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _save_motion(folder / "poses.npz", self.frames)
            list(export(open_selection(folder / "poses.npz", end=1.0), present, folder, "warm"))
            print(f"{'format':<10}{'us/frame':>12}{'s/hour':>12}{'peak, MB':>10}")
            figures: dict[str, dict[str, float | None]] = {}
            for form in present:
                figures[form] = _measured(folder, [form], self.frames, form)
            all_formats = _measured(folder, present, self.frames, "together")
        lifter = _lifter_microseconds(self.frames)
        for kind, microseconds in lifter.items():
            print(f"{kind:<10}{microseconds:>12.1f}")
        missing = [form for form in chosen if form not in present]
        if missing:
            print(f"not measured, libraries missing: {', '.join(missing)}")
        if self.json:
            facts = {"frames": self.frames, "formats": figures, "together": all_formats, "lifter": lifter}
            with writing([Path(self.json)]):
                write_whole(Path(self.json), json.dumps(facts, indent=1) + "\n")


def _measured(folder: Path, formats: list[str], frames: int, title: str) -> dict[str, float | None]:
    """Measure the time to write each format from one recording, and print the times as a row."""
    from pose.export import export, open_selection
    from pose.utils.resources import forget_peak, peak_megabytes

    forget_peak()
    start = time.process_time()
    list(export(open_selection(folder / "poses.npz"), formats, folder, "poses"))
    each = 1e6 * (time.process_time() - start) / frames
    peak = peak_megabytes()
    print(f"{title:<10}{each:>12.1f}{each * 3600 * FPS / 1e6:>12.1f}" + (f"{peak:>10.0f}" if peak else ""))
    return {"microseconds": each, "peak_megabytes": peak}


def _lifter_microseconds(frames: int) -> dict[str, float]:
    """Measure the time of the offline and the streaming lifter in microseconds per frame and person."""
    from pose.lifting.load import load_lifter
    from pose.structures.camera import Camera
    from pose.structures.sequences import Sequence2D

    rng = np.random.default_rng(0)
    points = np.cumsum(rng.normal(0, 1, (frames, 17, 2)), axis=0) + 300
    scores = np.ones((frames, 17), np.float32)
    person = Sequence2D(points.astype(np.float32), scores, np.arange(frames) / FPS, Camera.of((640, 480)), "coco17")
    costs = {}
    for name in ("offline", "stream"):
        lifter = load_lifter(name)
        lifter.lift(person)
        start = time.process_time()
        lifter.lift(person)
        costs[name] = 1e6 * (time.process_time() - start) / frames
    return costs


def _save_motion(path: Path, frames: int) -> None:
    """Write a result file with one synthetic person who moves all limbs."""
    from pose.results import NpzWriter, RunInfo
    from pose.structures.camera import Camera
    from pose.structures.skeletons import BLAZEPOSE33
    from pose.structures.types import FrameResult, People, Poses3D

    rng = np.random.default_rng(0)
    standing = rng.normal(0, 0.4, (17, 3))
    info = RunInfo(source="bench", fps=FPS, camera=Camera.of((640, 480)), skeleton=BLAZEPOSE33)
    one = np.ones(1, np.float32)
    scores, sigma = np.ones((1, 33), np.float32), np.full((1, 17), 30, np.float32)
    with NpzWriter(path, info) as writer:
        for frame in range(frames):
            joints = (standing + 0.05 * np.sin(frame / 20 + np.arange(51).reshape(17, 3))).astype(np.float32)
            points = rng.uniform(0, 400, (1, 33, 2)).astype(np.float32)
            people = People(frame, frame / FPS, np.ones(1, np.int64), np.zeros((1, 4), np.float32), one, points, scores)
            writer.write(FrameResult(people, Poses3D((joints - joints[0])[None], joints[:1] + 3, sigma)))
