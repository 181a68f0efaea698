"""Error against processor time of presets and of other combinations of 2D networks, as a table and a plot.

    python -m benchmarks.presets [--videos ../shared/videos] [--repeats 1] [--mediapipe ENV/bin/python] [--out FOLDER]
                               [--start S] [--end S] [--page docs/studies/presets.md]

No clip here has truth. The error is the distance from a reference that uses all that there is: BlazePose heavy and
MoveNet Thunder, both with mirrored crops, on every frame. It contains errors of the networks that others share with
the reference, so that it shows the cost of sampling and of smaller networks, but not the accuracy of the reference.
Each pair of joints is compared after alignment of the pose (rotation, translation, scale). "fast": joints faster than
2 m/s in the reference. Runs are whole processes without overlay and cache; with --mediapipe, the loop of MediaPipe
0.10.21 runs before each of them, and the ratios are those of neighbours, which load on the machine hardly changes. The
table replaces the one in the page; a test compares both with `presets.json`, and `.ci/release` refuses a release whose
code is not the measured one.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import POSE_RUN, processor_seconds, run_mediapipe
from pose.structures.alignment import similarity_residuals
from pose.structures.skeletons import H36M17

CLIPS = ("dance.mp4", "two-people/view-a.mp4")
REFERENCE = "--estimator blazepose-heavy --ensemble movenet-thunder --mirrored-crops --keypoint-rate 0"
PRESETS = ("fast", "standard", "best")
OTHERS = {
    "full, every frame": "--estimator blazepose --keypoint-rate 0",
    "full, 30 Hz": "--estimator blazepose --keypoint-rate 30",
    "full, 10 Hz": "--estimator blazepose --keypoint-rate 10",
    "lite": "--estimator blazepose-lite",
    "Thunder": "--estimator movenet-thunder",
    "full, mirrored": "--estimator blazepose --mirrored-crops",
    "heavy": "--estimator blazepose-heavy",
    "full and Thunder": "--estimator blazepose --ensemble movenet-thunder",
    "full and Thunder, 10 Hz": "--estimator blazepose --ensemble movenet-thunder --keypoint-rate 10",
    "heavy and Thunder": "--estimator blazepose-heavy --ensemble movenet-thunder",
}
FAST_MPS = 2.0
BEGIN, END = "<!-- presets -->", "<!-- end of presets -->"
LIMBS = [
    [H36M17.index(f"{side}_{joint}") for joint in joints]
    for side in ("left", "right")
    for joints in (("hip", "knee", "ankle"), ("shoulder", "elbow", "wrist"))
]
Result = dict[str, NDArray[Any]]


def run(clip: Path, options: str, folder: Path) -> tuple[Result, float, float]:
    """Run `pose-run` on a clip; return its result, its time and its processor time in s."""
    fixed = ["--cache", "off", "--no-overlay", "--quiet", "--formats", "npz", "--overwrite", "--no-world"]
    words = [sys.executable, "-c", POSE_RUN, str(clip), *fixed, *options.split(), "--out", str(folder / "out")]
    before, start = processor_seconds(), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds, processor = time.perf_counter() - start, processor_seconds() - before
    with np.load(folder / "out" / "poses.npz") as arrays:
        return dict(arrays), seconds, processor


def angles(joints: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the angles (N, 4) of knees and elbows in degrees."""
    bones = [(joints[:, a] - joints[:, b], joints[:, c] - joints[:, b]) for a, b, c in LIMBS]
    cosines = [(one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1) for one, two in bones]
    return np.degrees(np.arccos(np.clip(np.stack(cosines, axis=1), -1, 1)))


def same_people(found: Result, reference: Result) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows of the same person in the same frame: those whose boxes are nearest."""
    rows, others = [], []
    for frame in np.unique(reference["frame_index"]):
        mine, theirs = (np.flatnonzero(each["frame_index"] == frame) for each in (found, reference))
        for other in theirs:
            if len(mine):
                apart = np.abs(found["box"][mine] - reference["box"][other]).max(axis=1)
                size = (reference["box"][other, 2:] - reference["box"][other, :2]).max()
                if apart.min() < size / 4:
                    rows.append(mine[apart.argmin()])
                    others.append(other)
    return np.array(rows, np.int64), np.array(others, np.int64)


def errors(found: Result, reference: Result) -> dict[str, float]:
    """Return the distance from the reference: mm, mm of fast joints, degrees, and the share of people found."""
    rows, others = same_people(found, reference)
    mine, theirs = found["joints3d"][rows].astype(np.float64), reference["joints3d"][others].astype(np.float64)
    distance = 1000 * np.linalg.norm(similarity_residuals(mine, theirs), axis=-1)
    speed = np.zeros_like(distance)
    for person in np.unique(reference["id"][others]):
        own = np.flatnonzero(reference["id"][others] == person)
        if len(own) > 2:
            slope = np.gradient(theirs[own], reference["time"][others][own], axis=0)
            speed[own] = np.linalg.norm(slope, axis=-1)
    return {
        "mm": float(distance.mean()), "fast": float(distance[speed > FAST_MPS].mean()),
        "degrees": float(np.abs(angles(mine) - angles(theirs)).mean()), "found": len(rows) / len(reference["id"]),
    }  # fmt: skip


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each combination."""
    combinations = {name: f"--config {name}" for name in PRESETS} | OTHERS
    rows: dict[str, dict[str, Any]] = {name: {"name": name, "options": text} for name, text in combinations.items()}
    for clip in (options.videos / name for name in options.clips):
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            part = f" --start {options.start} --end {options.end}"
            reference, *_ = run(clip, REFERENCE + part, folder)
            frames = len(reference["timestamps"])
            for name, combination in combinations.items():
                times, ratios = [], []
                for _ in range(options.repeats):
                    theirs = peer_seconds(options, clip)
                    found, seconds, processor = run(clip, combination + part, folder)
                    times.append(1000 * processor / frames)
                    ratios.append((seconds / theirs[0], processor / theirs[1]))
                wall, processors = np.median(ratios, axis=0)
                row = errors(found, reference) | {"ms": statistics.median(times)}
                if options.mediapipe:
                    row |= {"time_ratio": float(wall), "processor_ratio": float(processors)}
                rows[name][clip.stem] = row
                print(f"{clip.stem} {name}: {json.dumps({k: round(v, 3) for k, v in row.items()})}", flush=True)
    return list(rows.values())


def peer_seconds(options: argparse.Namespace, clip: Path) -> tuple[float, float]:
    """Return the time and the processor time of MediaPipe's loop in s; NaN without it."""
    if options.mediapipe is None:
        return float("nan"), float("nan")
    before = processor_seconds()
    _, seconds = run_mediapipe(options.mediapipe, clip)
    return seconds, processor_seconds() - before


def table(report: dict[str, Any]) -> str:
    """Return a report as a Markdown table, the cheapest combination first."""
    stems, keys = report["clips"], ("ms", "mm", "fast", "degrees", "processor_ratio", "time_ratio")
    shown = [key for key in keys if key in report["rows"][0][stems[0]]]
    lines = ["| 2D | " + " | ".join(f"{stem}: {', '.join(shown)}" for stem in stems) + " |"]
    lines.append("|---" * (len(stems) + 1) + "|")
    for row in sorted(report["rows"], key=lambda row: float(row[stems[0]]["ms"])):
        cells = [", ".join(_digits(key, row[stem][key]) for key in shown) for stem in stems]
        lines.append(f"| {row['name']} | " + " | ".join(cells) + " |")
    measured = f"Version {report['version']}, commit {report['commit'][:8]}"
    if report["end"] < 1000:
        measured += f", {report['start']:g} to {report['end']:g} s of each clip"
    return "\n".join([*lines, "", f"{measured}."])


def _digits(key: str, value: float) -> str:
    return f"{value:.2f}" if "ratio" in key else f"{value:.1f}"


def with_table(page: str, text: str) -> str:
    """Return a page with the table between the two comments replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def plot(rows: Sequence[dict[str, Any]], clip: str, file: Path) -> None:
    """Draw the error over the processor time, and the combinations that no other one beats in both."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2))
    points = [(row[clip]["ms"], row[clip]["mm"], row["name"]) for row in rows]
    front = [point for point in sorted(points) if all(o[0] > point[0] or o[1] >= point[1] for o in points)]
    axes.plot(*zip(*[point[:2] for point in front], strict=True), color="0.7")
    for ms, mm, name in points:
        axes.plot(ms, mm, "o", color="C1" if name in PRESETS else "C0")
        axes.annotate(name, (ms, mm), xytext=(4, 4), textcoords="offset points", fontsize=8)
    axes.set(xlabel="processor time, ms a frame", ylabel="distance from the reference, mm", title=clip)
    figure.tight_layout()
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=Path, default=Path("../shared/videos"))
    parser.add_argument("--clips", nargs="+", default=CLIPS)
    parser.add_argument("--start", type=float, default=0.0, help="part of the clips in s, not with --mediapipe")
    parser.add_argument("--end", type=float, default=1000.0)
    parser.add_argument("--page", type=Path, default=Path("docs/studies/presets.md"))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--mediapipe", type=Path, help="Python of an environment with mediapipe==0.10.21 and av")
    parser.add_argument("--out", type=Path, default=Path("docs/studies/results"))
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    rows = measure(options)
    report = {"version": version("pose-run"), "commit": commit, "clips": [Path(clip).stem for clip in options.clips]}
    report |= {"start": options.start, "end": options.end, "rows": rows}
    (options.out / "presets.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    plot(rows, Path(options.clips[0]).stem, options.out.parent / "images" / "presets.svg")
    written = table(report)
    page = options.page.read_text(encoding="utf-8")
    options.page.write_text(with_table(page, written), encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
