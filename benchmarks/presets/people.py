"""Processor time for each further person, beside MediaPipe Tasks and rtmlib's loop, on the same clip.

    python -m benchmarks.presets people --mediapipe ENV/bin/python

The clip shows N copies of the dancer in an image of always the same size (1250 x 992). Every program is a whole
process; measured is its processor time for each frame after the first third, so without start-up. MediaPipe Tasks
(PoseLandmarker 0.10.21, video mode, `num_poses` N) gets a model bundle made of `blazepose-detector` and
`blazepose-landmark-full`. rtmlib (`pip install --no-deps rtmlib`) runs RTMDet-nano and RTMPose-t with random weights,
which take the time of the published ones; its boxes are those of the copies. `pose-run` runs without overlay and world.
The table, with the people found per frame, and the times go to the page and to `people.json`. About three minutes on
two idle cores.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import VIDEOS
from benchmarks.common.processes import Finished, add_mediapipe, commit, finished, mediapipe_loop, pose_run
from benchmarks.presets.measure import with_table
from pose.networks.weights import locate

TILES, TILE = (2, 5), (496, 250)  # rows and columns of copies; height and width of a copy
START, LEFT = 120, 60  # first frame and first column of the clip that are shown
MARKS = "<!-- people -->", "<!-- end of people -->"


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


def rtmlib_loop(clip: str, detector: str, people: str) -> None:
    """Print the people whose keypoints rtmlib estimated."""
    from rtmlib import RTMDet, RTMPose

    from benchmarks.speed.rtmlib import keypoint_networks, with_threads

    corners = [divmod(copy, TILES[1]) for copy in range(int(people))]
    boxes = np.array([[c * TILE[1] + 20, r * TILE[0] + 50, c * TILE[1] + 230, r * TILE[0] + 430] for r, c in corners])
    with TemporaryDirectory() as folder:
        _, file = next(keypoint_networks(None, Path(folder)))
        detect = with_threads(lambda: RTMDet(detector, (320, 320)), 2)
        estimate = with_threads(lambda: RTMPose(str(file), (192, 256)), 2)
        with av.open(clip) as container:
            for frame in container.decode(video=0):
                image = frame.to_ndarray(format="bgr24")
                detect(image)
                estimate(image, boxes)
    print(people)


def programs_of(mediapipe: Path | None) -> dict[str, Callable[[Path, int], tuple[float, Finished]]]:
    """Return what runs each program on a clip with some people; they return the people found, and the process."""

    def of_preset(preset: str, clip: Path, people: int) -> tuple[float, Finished]:
        with TemporaryDirectory() as folder:
            found, done = pose_run(clip, f"--config {preset} --max-people {people} --no-world", Path(folder))
        return len(found["id"]) / len(found["timestamps"]), done

    def tasks(clip: Path, people: int) -> tuple[float, Finished]:
        done = mediapipe_loop(mediapipe, "tasks", str(clip), str(locate("blazepose-detector").parent), str(people))
        return float(json.loads(done.output.splitlines()[-1])), done

    def rtmlib(clip: Path, people: int) -> tuple[float, Finished]:
        call = "import sys; from benchmarks.presets.people import rtmlib_loop; rtmlib_loop(*sys.argv[1:])"
        detector = str(locate("rtmdet-nano-person-320"))
        done = finished([sys.executable, "-c", call, str(clip), detector, str(people)])
        return float(json.loads(done.output.splitlines()[-1])), done  # rtmlib prints lines of its own

    programs = {name: partial(of_preset, name) for name in ("fast", "standard")}
    programs |= {"MediaPipe Tasks": tasks} if mediapipe else {}
    return programs | ({"rtmlib": rtmlib} if find_spec("rtmlib") else {})


def add_options(parser: ArgumentParser) -> None:
    add_mediapipe(parser)
    parser.add_argument("--clip", type=Path, default=VIDEOS / "dance.mp4")
    parser.add_argument("--people", type=int, nargs="+", default=[1, 4, 10])
    parser.add_argument("--frames", type=int, default=90)
    parser.add_argument("--page", type=Path, default=Path("docs/studies/presets.md"))
    parser.add_argument("--out", type=Path, default=Path("docs/studies/results/people.json"))


def main(given: Namespace) -> None:
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        clips = [Path(folder) / "short.mp4", Path(folder) / "whole.mp4"]
        for count in given.people:
            images = draw(given.clip, count, given.frames)
            for clip, frames in zip(clips, (given.frames // 3, given.frames), strict=True):
                write_clip(images[:frames], clip)
            row: dict[str, Any] = {"people": count}
            for name, program in programs_of(given.mediapipe).items():
                (_, short), (found, whole) = (program(clip, count) for clip in clips)
                seconds = whole.processor - short.processor
                row[name] = {"ms": 1000 * seconds / (given.frames - given.frames // 3), "found": found}
                print(count, name, row[name], flush=True)
            rows.append(row)
    report = {"version": version("pose-run"), "commit": commit(), "frames": given.frames, "rows": rows}
    given.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    page = given.page.read_text(encoding="utf-8")
    given.page.write_text(with_table(page, table(report), MARKS), encoding="utf-8")
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
