"""What a change costs: start-up, speed, memory and live latency of two checkouts, measured in turns.

    python -m benchmarks.speed against --base ../before --base-python ../before/.venv/bin/python

Each measurement is a whole process, and those of the two checkouts follow each other, so that other work on the machine
meets both. A row is the median of each checkout, and minimum, median and maximum of the rounds' ratios new / base: a
maximum above 1 is noise where the minimum is below. Processor time says more than wall time on a busy machine. Weights
are those of POSE_WEIGHTS_DIR, by default ../shared/weights.
"""

import json
import os
import statistics
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common.command import VIDEOS
from benchmarks.common.processes import finished

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("pose", "apps", "datasets", "detectors")
# Arguments of each measured process; the first word is a command, or `python`. {out} is a new folder.
PROCESSES = {
    "pose-run --help": ["pose-run", "--help"],
    "import pose": ["python", "-c", "import pose"],
    "pose-run --no-overlay": ["pose-run", "{clip}", "--no-overlay", "--quiet", "--out", "{out}/run"],
    "pose-run": ["pose-run", "{clip}", "--quiet", "--out", "{out}/run"],
    "pose-webcam": [
        "pose-webcam",
        "--source",
        "{clip}",
        "--headless",
        "--seconds",
        "10",
        "--report",
        "{out}/live.json",
    ],
}
LATENCY, TAIL, FRAME = "latency, median", "latency, 95 %", "processor a frame"
UNITS = {"wall": "s", "processor": "s", "peak memory": "MB", LATENCY: "ms", TAIL: "ms", FRAME: "ms"}


@dataclass(frozen=True)
class Checkout:
    """A checkout, and the Python of an environment with what it needs."""

    folder: Path
    python: Path
    options: tuple[str, ...] = ()  # of pose-run and pose-webcam

    def words(self, name: str) -> list[str]:
        return [str(self.python)] if name == "python" else [str(self.python.parent / name)]

    def environment(self) -> dict[str, str]:
        """Environment variables by which the code of the folder is run, whatever the environment has installed."""
        places = [self.folder, *(self.folder / name for name in FOLDERS[1:])]
        weights = os.environ.get("POSE_WEIGHTS_DIR", str(ROOT.parent / "shared/weights"))
        return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places)), "POSE_WEIGHTS_DIR": weights}


def measure(checkout: Checkout, arguments: list[str], clip: Path) -> dict[str, float]:
    """Run a process in a new folder; its times, its peak memory, and the latencies of a live run."""
    with TemporaryDirectory() as out:
        first, *others = (word.format(clip=clip, out=out) for word in arguments)
        others += checkout.options if "{clip}" in arguments else ()
        done = finished([*checkout.words(first), *others], cwd=out, env=checkout.environment())
        memory = {"peak memory": done.peak_mb}
        report = Path(out) / "live.json"
        if not report.exists():
            return {"wall": done.seconds, "processor": done.processor, **memory}
        live = json.loads(report.read_text(encoding="utf-8"))  # it takes as long as told, for as many frames as it can
        frame = 1000 * live["cpu_seconds"] / live["processed"]
        return {LATENCY: live["latency_ms"]["median"], TAIL: live["latency_ms"]["p95"], FRAME: frame, **memory}


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--base", type=Path, required=True, help="the checkout to compare with")
    parser.add_argument("--base-python", type=Path, default=Path(sys.executable), help="Python of its environment")
    parser.add_argument("--new", type=Path, default=ROOT, help="the checkout with the change (default: this one)")
    parser.add_argument("--new-python", type=Path, default=Path(sys.executable), help="Python of its environment")
    parser.add_argument(
        "--new-options", nargs="+", default=[], help="of new runs, such as config=fast, if defaults differ"
    )
    parser.add_argument("--clip", type=Path, default=VIDEOS / "dance.mp4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=list(PROCESSES), choices=PROCESSES, help="measure these only")


def main(given: Namespace) -> None:
    new_options = tuple(f"--{word}" for word in given.new_options)
    checkouts = {  # not resolved: the python of an environment is a link
        "base": Checkout(given.base.resolve(), given.base_python.absolute()),
        "new": Checkout(given.new.resolve(), given.new_python.absolute(), new_options),
    }
    clip = given.clip.resolve()
    for checkout in checkouts.values():
        folders = [str(checkout.folder / name) for name in FOLDERS]
        subprocess.run([str(checkout.python), "-m", "compileall", "-q", *folders], capture_output=True, check=False)
        measure(checkout, PROCESSES["pose-run --help"], clip)  # so that no round writes bytecode or reads cold files
    print("| process | | base | new | new / base: minimum | median | maximum |\n|---|---|---|---|---|---|---|")
    for name in given.only:
        rows: dict[str, list[dict[str, float]]] = {"base": [], "new": []}
        for turn in range(given.rounds):
            for label in sorted(rows, reverse=turn % 2 == 1):
                rows[label].append(measure(checkouts[label], PROCESSES[name], clip))
        for what in rows["base"][0]:
            before, after = ([row[what] for row in rows[label]] for label in ("base", "new"))
            ratios = [one / other for one, other in zip(after, before, strict=True)]
            medians = [f"{statistics.median(values):.3g} {UNITS[what]}" for values in (before, after)]
            shares = [f"{share:.3f}" for share in (min(ratios), statistics.median(ratios), max(ratios))]
            print(f"| `{name}` | {what} | {' | '.join((*medians, *shares))} |", flush=True)
