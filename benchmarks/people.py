"""Processor time for each further person, beside MediaPipe Tasks and rtmlib's loop, on the same clip.

    python -m benchmarks.people --mediapipe ENV/bin/python [--people 1 4 10] [--frames 90]
                                [--clip ../shared/videos/dance.mp4]

The clip shows N copies of the dancer in an image of always the same size (1250 x 992). Every program is a whole
process; measured is its processor time for each frame after the first third, so without start-up. MediaPipe Tasks
(PoseLandmarker 0.10.21, video mode, `num_poses` N) gets a model bundle made of `blazepose-detector` and
`blazepose-landmark-full`. rtmlib (`pip install --no-deps rtmlib`) runs RTMDet-nano and RTMPose-t with random weights,
which take the time of the published ones; its boxes are those of the copies. `pose-run` runs without overlay and world.
The table, with the people found per frame, and the times go to the page and to `people.json`. About three minutes on
two idle cores.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

TILES, TILE = (2, 5), (496, 250)  # rows and columns of copies; height and width of a copy
START, LEFT = 120, 60  # first frame and first column of the clip that are shown
MARKS = "<!-- people -->", "<!-- end of people -->"
MIN_CONFIDENCE = 0.1  # of MediaPipe Tasks; with its default of 0.5 it finds no one in images of several people


def draw(clip: Path, people: int, frames: int) -> list[NDArray[np.uint8]]:
    """Return images with copies of the clip, each some frames later than the one before."""
    with av.open(str(clip)) as container:
        needed = START + frames + 3 * TILES[0] * TILES[1]
        decoded = [f.to_ndarray(format="rgb24") for f, _ in zip(container.decode(video=0), range(needed), strict=False)]
    images = []
    for frame in range(frames):
        image = np.full((TILES[0] * TILE[0], TILES[1] * TILE[1], 3), 114, np.uint8)
        for copy in range(people):
            row, column = divmod(copy, TILES[1])
            place = slice(row * TILE[0], (row + 1) * TILE[0]), slice(column * TILE[1], (column + 1) * TILE[1])
            image[place] = decoded[START + frame + 3 * copy][:, LEFT : LEFT + TILE[1]]
        images.append(image)
    return images


def write_clip(images: list[NDArray[np.uint8]], path: Path) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"crf": "18", "preset": "ultrafast"})
        stream.height, stream.width, stream.pix_fmt = *images[0].shape[:2], "yuv420p"
        for image in images:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())


def tasks_loop(clip: str, models: str, people: int) -> None:
    """Print the people found by MediaPipe Tasks; runs in MediaPipe's environment."""
    import mediapipe
    from mediapipe.tasks.python import BaseOptions, vision
    from mediapipe.tasks.python.metadata.metadata_writers.metadata_writer import MetadataWriter

    bundle = Path(clip).with_suffix(".task")
    parts = (  # name, our file, mean and scale of the input
        ("pose_detector", "blazepose-detector", 127.5, 127.5),
        ("pose_landmarks_detector", "blazepose-landmark-full", 0.0, 255.0),
    )
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_STORED) as archive:
        for name, file, mean, scale in parts:
            writer = MetadataWriter.create(bytearray((Path(models) / f"{file}.tflite").read_bytes()))
            archive.writestr(f"{name}.tflite", writer.add_image_input([mean], [scale]).populate()[0])
    options = vision.PoseLandmarkerOptions(
        base_options=BaseOptions(model_asset_path=str(bundle)),
        running_mode=vision.RunningMode.VIDEO,
        num_poses=people,
        min_pose_detection_confidence=MIN_CONFIDENCE,
        min_pose_presence_confidence=MIN_CONFIDENCE,
    )
    found = []
    with vision.PoseLandmarker.create_from_options(options) as landmarker, av.open(clip) as container:
        for number, frame in enumerate(container.decode(video=0)):
            pixels = np.ascontiguousarray(frame.to_ndarray(format="rgb24"))
            image = mediapipe.Image(image_format=mediapipe.ImageFormat.SRGB, data=pixels)
            found.append(len(landmarker.detect_for_video(image, number * 33).pose_landmarks))
    print(json.dumps(float(np.mean(found))))


def rtmlib_loop(clip: str, detector: str, people: int) -> None:
    """Print the people whose keypoints rtmlib estimated."""
    from rtmlib import RTMDet, RTMPose

    from benchmarks.peers import keypoint_networks, with_threads

    corners = [divmod(copy, TILES[1]) for copy in range(people)]
    boxes = np.array([[c * TILE[1] + 20, r * TILE[0] + 50, c * TILE[1] + 230, r * TILE[0] + 430] for r, c in corners])
    with tempfile.TemporaryDirectory() as folder:
        _, file = next(keypoint_networks(None, Path(folder)))
        detect = with_threads(lambda: RTMDet(detector, (320, 320)), 2)
        estimate = with_threads(lambda: RTMPose(str(file), (192, 256)), 2)
        with av.open(clip) as container:
            for frame in container.decode(video=0):
                image = frame.to_ndarray(format="bgr24")
                detect(image)
                estimate(image, boxes)
    print(json.dumps(people))


def pose_run(clip: Path, preset: str, people: int) -> float:
    """Run `pose-run`; return the people found for each frame."""
    from benchmarks.runs import run

    with tempfile.TemporaryDirectory() as folder:
        found = run(clip, f"--config {preset} --max-people {people} --no-world", Path(folder))[0]
    return len(found["id"]) / len(found["timestamps"])


def main() -> None:
    if sys.argv[1:2] in (["tasks-loop"], ["rtmlib-loop"]):
        {"tasks-loop": tasks_loop, "rtmlib-loop": rtmlib_loop}[sys.argv[1]](*sys.argv[2:4], int(sys.argv[4]))
        return
    from benchmarks.peers import processor_seconds, timed
    from benchmarks.presets import with_table
    from pose.networks.weights import locate

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mediapipe", type=Path, help="Python of an environment with mediapipe==0.10.21 and av")
    parser.add_argument("--clip", type=Path, default=Path("../shared/videos/dance.mp4"))
    parser.add_argument("--people", type=int, nargs="+", default=[1, 4, 10])
    parser.add_argument("--frames", type=int, default=90)
    parser.add_argument("--page", type=Path, default=Path("docs/studies/presets.md"))
    parser.add_argument("--out", type=Path, default=Path("docs/studies/results/people.json"))
    options = parser.parse_args()

    def loop(*program: str) -> Callable[[Path, int], float]:
        *start, name, models = program

        def people(clip: Path, count: int) -> float:
            printed = timed([*start, name, str(clip), models, str(count)])[1]
            return float(json.loads(printed.splitlines()[-1]))  # rtmlib prints lines of its own

        return people

    programs: dict[str, Callable[[Path, int], float]] = {
        preset: lambda clip, count, preset=preset: pose_run(clip, preset, count) for preset in ("fast", "standard")
    }
    if options.mediapipe:
        models = str(locate("blazepose-detector").parent)
        programs["MediaPipe Tasks"] = loop(str(options.mediapipe), __file__, "tasks-loop", models)
    if find_spec("rtmlib"):
        detector = str(locate("rtmdet-nano-person-320"))
        programs["rtmlib"] = loop(sys.executable, "-m", "benchmarks.people", "rtmlib-loop", detector)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for count in options.people:
            images = draw(options.clip, count, options.frames)
            short, whole = Path(folder) / "short.mp4", Path(folder) / "whole.mp4"
            write_clip(images[: options.frames // 3], short)
            write_clip(images, whole)
            row: dict[str, Any] = {"people": count}
            for name, program in programs.items():
                marks, found = [processor_seconds()], 0.0
                for clip in (short, whole):
                    found = program(clip, count)
                    marks.append(processor_seconds())
                first, second = np.diff(marks).tolist()
                row[name] = {"ms": 1000 * (second - first) / (options.frames - options.frames // 3), "found": found}
                print(count, name, row[name], flush=True)
            rows.append(row)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    report = {"version": version("pose-run"), "commit": commit, "frames": options.frames, "rows": rows}
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    page = options.page.read_text(encoding="utf-8")
    options.page.write_text(with_table(page, table(report), MARKS), encoding="utf-8")
    print(table(report))


def table(report: dict[str, Any]) -> str:
    """Return a report as a Markdown table, with the slope of a line through the times."""
    rows = report["rows"]
    counts, programs = [row["people"] for row in rows], [name for name in rows[0] if name != "people"]
    lines = [f"| people | {' | '.join(programs)} |", "|---" * (1 + len(programs)) + "|"]
    for row in rows:
        cells = [f"{row[name]['ms']:.1f} ({row[name]['found']:.1f})" for name in programs]
        lines.append(f"| {row['people']} | {' | '.join(cells)} |")
    slopes = [np.polyfit(counts, [row[name]["ms"] for row in rows], 1)[0] for name in programs]
    lines.append("| each further person | " + " | ".join(f"{slope:.1f}" for slope in slopes) + " |")
    return "\n".join([*lines, "", f"Version {report['version']}, commit {report['commit'][:8]}."])


if __name__ == "__main__":
    main()
