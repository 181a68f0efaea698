"""Error against processor time of presets and of other combinations of 2D networks, as a table and a plot.

    python -m benchmarks.presets errors                                # any machine, about 12 minutes of processor time
    python -m benchmarks.presets times --mediapipe ENV/bin/python      # an idle machine, about 7 minutes
    python -m benchmarks.presets page                                  # only writes the table and the plot again

Rows are kept in `presets.json` one by one: a command that was stopped continues where it ended, and measures again what
was measured with other code. `--names` and `--clips` limit it, `--again` measures rows of the same code anyway.

errors: the reference uses all that there is: BlazePose heavy and MoveNet Thunder, both with mirrored crops, on every
frame. In clips of one camera, the error is the distance from its 3D. It excludes errors of networks that others share
with the reference, so that it shows the cost of sampling and of smaller networks, but not the accuracy of the
reference. In `two-people`, the error is that of each view's 3D against joints that are triangulated from the
reference's 2D in both calibrated views. The 12 joints of the limbs are compared after alignment of the pose (rotation,
translation, scale). "fast": joints faster than 2 m/s in the reference; "degrees": angles of knees and elbows; "to
standard": mean difference of the error from that of `standard`, with its standard error over blocks of half a second,
person and view.

times: processor time of whole processes on `dance.mp4`, with world, without overlay and cache. With --mediapipe, the
loop of MediaPipe 0.10.21 runs before each of them, and the ratios are those of neighbours, which load on the machine
hardly changes. `standard` runs with the overlay, too.

The table replaces the one in the page; a test compares both with `presets.json`, and `.ci/release` refuses a release
whose code is not the measured one.
"""

import json
import statistics
import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory, gettempdir
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import VIDEOS
from benchmarks.common.processes import Finished, Result, add_mediapipe, commit, mediapipe_pose, pose_run
from benchmarks.common.two_views import F64, JOINTS, NAMES, VIEWS, Truth, nearest_rows, read_views
from pose.errors import PoseError
from pose.structures.alignment import similarity_residuals

CLIPS = ("dance.mp4", "two-people")
TIMED = CLIPS[0]
CODE = ("pose", "detectors", "configs/*.yaml")  # what the figures depend on; the same in `.ci/release`
REFERENCE = "--estimator blazepose-heavy --ensemble movenet-thunder --mirrored-crops --keypoint-rate 0"
PRESETS = ("fast", "standard", "best")
OTHERS = {
    "full, every frame": "--estimator blazepose --keypoint-rate 0",
    "full": "--estimator blazepose",
    "lite": "--estimator blazepose-lite",
    "Thunder": "--estimator movenet-thunder",
    "heavy": "--estimator blazepose-heavy",
    "heavy and Thunder": "--estimator blazepose-heavy --ensemble movenet-thunder",
}
FAST_MPS = 2.0
BLOCK_S = 0.5  # longer than errors of networks usually last
COMBINATIONS = {name: f"--config {name}" for name in PRESETS} | OTHERS
MARKS = "<!-- presets -->", "<!-- end of presets -->"
LIMBS = [
    [NAMES.index(f"{side}_{joint}") for joint in joints]
    for side in ("left", "right")
    for joints in (("hip", "knee", "ankle"), ("shoulder", "elbow", "wrist"))
]


def angles(joints: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the angles (N, 4) of knees and elbows in degrees."""
    bones = [(joints[:, a] - joints[:, b], joints[:, c] - joints[:, b]) for a, b, c in LIMBS]
    cosines = [(one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1) for one, two in bones]
    return np.degrees(np.arccos(np.clip(np.stack(cosines, axis=1), -1, 1)))


@dataclass(frozen=True)
class Pairs:
    """Poses of N rows of a result, and those of the reference."""

    mine: F64  # (N, 12, 3) m
    theirs: F64  # (N, 12, 3) m
    known: NDArray[np.bool_]  # (N, 12) whether the joints of the reference are known
    speed: F64  # (N, 12) m/s
    block: NDArray[np.int64]  # (N,) view, person and part of `BLOCK_S`; errors in different blocks are independent
    found: float  # share of the reference's people that are found


class Distance:
    """Distance of results from those of a reference, which has the same errors as the networks it shares with them."""

    def __init__(self, clips: list[Path], references: list[Result]) -> None:
        (self._reference,) = references

    def pairs(self, results: list[Result]) -> Pairs:
        """Compare the result of the clip."""
        (found,), reference = results, self._reference
        rows, others = nearest_rows(found, reference["time"], reference["box"])
        ids, times = reference["id"][others], reference["time"][others]
        mine, theirs = (
            one["joints3d"][at][:, JOINTS].astype(np.float64) for one, at in ((found, rows), (reference, others))
        )
        known, share = np.ones(theirs.shape[:2], bool), len(rows) / len(reference["id"])
        return Pairs(mine, theirs, known, speeds(theirs, times, ids), blocks(0, ids, times), share)


class TrueError:
    """Error of results of two calibrated views, against joints that are triangulated from both views of a reference."""

    def __init__(self, clips: list[Path], references: list[Result]) -> None:
        self._views = read_views(clips[0].parent)
        self._truth = Truth(self._views, references)

    def pairs(self, results: list[Result]) -> Pairs:
        """Compare the results of both views."""
        truth, parts = self._truth, []
        speed = speeds(truth.joints, truth.times, truth.ids)
        for number, (view, result) in enumerate(zip(self._views, results, strict=True)):
            rows, own = truth.of_view(number, result)
            mine = result["joints3d"][rows][:, JOINTS].astype(np.float64)
            block = blocks(number, truth.ids[own], truth.times[own])
            parts.append((mine, truth.joints[own] @ view.rotation.T, truth.known[own], speed[own], block))
        columns = [np.concatenate(part) for part in zip(*parts, strict=True)]
        return Pairs(*columns, len(columns[0]) / len(truth.times) / len(results))


def blocks(view: int, ids: NDArray[np.int64], times: F64) -> NDArray[np.int64]:
    """Return the blocks (N,) of rows of people at times in s."""
    return (view * 1000 + ids) * 100_000 + (times / BLOCK_S).astype(np.int64)


def speeds(joints: F64, times: F64, ids: NDArray[np.int64]) -> F64:
    """Return the speeds (N, J) m/s of joints (N, J, 3) m of several people."""
    speed = np.zeros(joints.shape[:2])
    for person in np.unique(ids):
        own = np.flatnonzero(ids == person)
        if len(own) > 2:
            speed[own] = np.linalg.norm(np.gradient(joints[own], times[own], axis=0), axis=-1)
    return speed


def errors(results: list[Result], reference: Distance | TrueError) -> dict[str, Any]:
    """Return the error: mm, mm of fast joints, degrees of knees and elbows, people found, and mm by block."""
    pairs = reference.pairs(results)
    mine, theirs, known = pairs.mine, pairs.theirs, pairs.known
    # Joints without truth are those of the reference, so that they hardly change the alignment.
    moved = theirs - theirs.mean(axis=1, keepdims=True) + mine.mean(axis=1, keepdims=True)
    filled = np.where(known[..., None], mine, moved)
    distance = 1000 * np.linalg.norm(similarity_residuals(filled, theirs), axis=-1)
    fast, seen = known & (pairs.speed > FAST_MPS), known[:, LIMBS].all(axis=-1)
    parts = {int(one): distance[pairs.block == one][known[pairs.block == one]] for one in np.unique(pairs.block)}
    return {
        "mm": float(distance[known].mean()), "fast": float(distance[fast].mean()) if fast.any() else float("nan"),
        "degrees": float(np.abs(angles(mine) - angles(theirs))[seen].mean()), "found": pairs.found,
        "blocks": {str(one): round(float(part.mean()), 2) for one, part in parts.items() if len(part)},
    }  # fmt: skip


def difference(row: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """Return the mean difference in mm of a row from another one, and its standard error: paired, over blocks."""
    apart = [row["blocks"][one] - other["blocks"][one] for one in row["blocks"].keys() & other["blocks"].keys()]
    return float(np.mean(apart)), float(np.std(apart, ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else float("nan")


def is_current(part: dict[str, Any]) -> bool:
    """Return whether a part of a row was measured with the code of this checkout."""
    return "commit" in part and not subprocess.run(["git", "diff", "--quiet", part["commit"], "--", *CODE]).returncode


def measure_errors(rows: dict[str, dict[str, Any]], given: Namespace) -> Iterator[tuple[str, str]]:
    """Add errors to the rows; yield the name of each row and of its part, when it is measured."""
    for clip in (given.videos / name for name in given.clips):
        missing = [name for name in given.names if given.again or not is_current(rows[name].get(clip.stem, {}))]
        if not missing:
            continue
        clips = [clip / f"{name}.mp4" for name in VIEWS] if clip.is_dir() else [clip]
        references = [reference_of(one, given.keep) for one in clips]
        reference = (TrueError if clip.is_dir() else Distance)(clips, references)
        with TemporaryDirectory() as folder:
            for name in missing:
                found = [pose_run(one, f"{rows[name]['options']} --no-world", Path(folder))[0] for one in clips]
                rows[name][clip.stem] = {"commit": commit(), **errors(found, reference)}
                yield name, clip.stem


def reference_of(clip: Path, keep: Path) -> Result:
    """Return the reference's result of a clip, which is kept beside others of the same code."""
    file = keep / f"{clip.stem}-{commit()}.npz"
    if not file.exists():
        with TemporaryDirectory() as folder:
            result, _ = pose_run(clip, f"{REFERENCE} --no-world", Path(folder))
        with NamedTemporaryFile(dir=keep, suffix=".part", delete=False) as part:
            np.savez(part, **result)
        Path(part.name).replace(file)
    with np.load(file) as arrays:
        return dict(arrays)


def measure_times(rows: dict[str, dict[str, Any]], given: Namespace) -> Iterator[tuple[str, str]]:
    """Add times to the rows; yield the name of each row and of its part, when it is measured."""

    def both(done: Finished) -> NDArray[np.float64]:
        return np.array([done.seconds, done.processor])

    clip = given.videos / TIMED
    for name in given.names:
        if not given.again and is_current(rows[name].get("times", {})):
            continue
        times, ratios, overlays = [], [], []
        for _ in range(given.repeats if name in PRESETS else 1):
            theirs = both(mediapipe_pose(given.mediapipe, clip)[1]) if given.mediapipe else np.nan
            with TemporaryDirectory() as folder:
                found, ours = pose_run(clip, rows[name]["options"], Path(folder))
                if name == "standard":
                    drawn = pose_run(clip, rows[name]["options"], Path(folder), overlay=True)[1]
                    overlays.append(both(drawn) / both(ours))
            times.append(1000 * ours.processor / len(found["timestamps"]))
            ratios.append(both(ours) / theirs)
        wall, processors = np.median(ratios, axis=0).tolist()
        rows[name]["times"] = {"commit": commit(), "ms": statistics.median(times)}
        if overlays:
            rows[name]["times"] |= dict(zip(OVERLAY, np.median(overlays, axis=0).tolist(), strict=True))
        if given.mediapipe:
            rows[name]["times"] |= {"processor_ratio": processors, "time_ratio": wall}
        yield name, "times"


OVERLAY = "overlay_time_ratio", "overlay_processor_ratio"
TIMES = {"ms": "ms", "processor_ratio": "to MediaPipe, processor", "time_ratio": "time"}
ERRORS = {"mm": "mm", "fast": "fast, mm", "degrees": "degrees"}


def table(report: dict[str, Any]) -> str:
    """Return a report as a Markdown table, the cheapest combination first."""
    stems = [Path(clip).stem for clip in CLIPS]
    rows = sorted(report["rows"], key=lambda row: float(row.get("times", {}).get("ms", np.inf)))
    base = next(row for row in rows if row["name"] == "standard")
    heads = [*TIMES.values(), *(f"{stem}: {', '.join(ERRORS.values())} | to standard, mm" for stem in stems)]
    lines = [f"| 2D | {' | '.join(heads)} |", "|---" * (1 + len(TIMES) + 2 * len(stems)) + "|"]
    for row in rows:
        cells = [_digits(row.get("times", {}), key) for key in TIMES]
        for stem in stems:
            part, other = row.get(stem, {}), base.get(stem, {})
            cells.append(", ".join(_digits(part, key) for key in ERRORS) if part else "")
            paired = row is not base and "blocks" in part and "blocks" in other
            cells.append("{:+.1f} ± {:.1f}".format(*difference(part, other)) if paired else "")
        lines.append(f"| {row['name']} | " + " | ".join(cells) + " |")
    lines += ["", f"Version {report['version']}, {measured_commits(report['rows'])}."]
    if base.get("times", {}).keys() >= set(OVERLAY):
        wall, processor = (_digits(base["times"], key) for key in OVERLAY)
        lines[-1] += f" With the overlay, `standard` takes {wall} times its time and {processor} of its processor time."
    return "\n".join(lines)


def measured_commits(rows: list[dict[str, Any]]) -> str:
    """Return the commits of times and errors in words."""
    parts = [(kind, part) for row in rows for kind, part in row.items() if isinstance(part, dict)]
    commits = [
        (title, sorted({part["commit"][:8] for kind, part in parts if (kind == "times") == timed}))
        for title, timed in (("times", True), ("errors", False))
    ]
    return "; ".join(f"{title}: commit {', '.join(found)}" for title, found in commits if found)


def _digits(part: dict[str, Any], key: str) -> str:
    return f"{part[key]:.{2 if 'ratio' in key else 1}f}" if key in part else ""


def with_table(page: str, text: str, marks: tuple[str, str] = MARKS) -> str:
    """Return a page with the table between two comments replaced."""
    before, _, rest = page.partition(marks[0])
    _, _, after = rest.partition(marks[1])
    return f"{before}{marks[0]}\n{text}\n{marks[1]}{after}"


def plot(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """Draw the error over the processor time, and the combinations that no other one beats in both, for each clip."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(len(CLIPS), figsize=(7, 4.2 * len(CLIPS)), squeeze=False)
    for clip, axes in zip((Path(clip).stem for clip in CLIPS), panels[:, 0], strict=True):
        points = [(row["times"]["ms"], row[clip]["mm"], row["name"]) for row in rows if {"times", clip} <= row.keys()]
        front = [point for point in sorted(points) if all(o[0] > point[0] or o[1] >= point[1] for o in points)]
        axes.plot([ms for ms, *_ in front], [mm for _, mm, _ in front], color="0.7")
        for ms, mm, name in points:
            axes.plot(ms, mm, "o", color="C1" if name in PRESETS else "C0")
            axes.annotate(name, (ms, mm), xytext=(4, 4), textcoords="offset points", fontsize=8)
        axes.set(xlabel=f"processor time of {TIMED}, ms a frame", ylabel="error, mm", title=clip)
    figure.tight_layout()
    figure.savefig(file)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--videos", type=Path, default=VIDEOS)
    parser.add_argument("--names", nargs="+", choices=COMBINATIONS, default=list(COMBINATIONS))
    parser.add_argument("--clips", nargs="+", choices=CLIPS, default=CLIPS, help="clips of which errors are measured")
    parser.add_argument("--again", action="store_true", help="measure rows of the same code again")
    parser.add_argument("--page", type=Path, default=Path("docs/studies/presets.md"))
    parser.add_argument("--repeats", type=int, default=1, help="timed runs of each preset; their median counts")
    add_mediapipe(parser)
    parser.add_argument("--out", type=Path, default=Path("docs/studies/results"))
    parser.add_argument("--keep", type=Path, default=Path(gettempdir()), help="folder of reference results")


def main(given: Namespace) -> None:
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *CODE]).returncode:
        raise PoseError("commit first: the figures name the commit")
    file = given.out / "presets.json"
    before = {row["name"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]} if file.exists() else {}
    rows = {name: before.get(name, {}) | {"name": name, "options": text} for name, text in COMBINATIONS.items()}
    report = {"version": version("pose-run"), "rows": list(rows.values())}

    def write() -> None:
        file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")

    measured = {"errors": measure_errors, "times": measure_times, "page": lambda *_: ()}[given.command](rows, given)
    for name, part in measured:
        write()
        figures = {key: round(value, 3) for key, value in rows[name][part].items() if isinstance(value, float)}
        print(f"{part} {name}: {json.dumps(figures)}", flush=True)
    write()
    plot(report["rows"], given.out.parent / "images" / "presets.svg")
    written = table(report)
    page = given.page.read_text(encoding="utf-8")
    given.page.write_text(with_table(page, written), encoding="utf-8")
    print(written)
