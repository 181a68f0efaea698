"""Peak memory of `pose-run` on a short and on a long video: it must not grow with the length.

    python -m benchmarks.speed memory [--options "--no-overlay --no-world"]

The long video is the clip over and over, its packets copied into one file, so that nothing is decoded in advance.
With --repeated, `pose-run` processes the clip once, and its frames are recorded, placed in the world (unless
--no-world is given) and written over and over: what the length changes, in a hundredth of the time.
"""

import sys
from argparse import ArgumentParser, Namespace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import av

from benchmarks.common.command import VIDEOS
from benchmarks.common.processes import POSE_RUN, finished

REPEATED = """
import sys
from dataclasses import replace
from pathlib import Path
from pose.results import load_poses
from pose.results.recorded import record, write_results
from pose.world.clean import Steps

source, out, frames, world = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "True"
table = load_poses(source)

def repeated():
    for index in range(frames):
        people, poses = table[index % len(table)].people, table[index % len(table)].poses
        # A new person each minute: the world holds one at a time.
        ids = people.ids + 1000 * (index // 1800)
        yield type(table[0])(replace(people, index=index, time=index / table.fps, ids=ids), poses)

info = replace(table.run, world=None, motion=None, doubtful=())
with record(repeated(), info, Steps() if world else None, join=False, folder=out) as recorded:
    write_results(recorded.results, recorded.info, {name: out / f"poses.{name}" for name in ("json", "npz")})
"""


def loop_clip(clip: Path, target: Path, frames: int) -> None:
    """Write a video of `frames` frames, the clip repeated."""
    written = 0
    with av.open(str(target), "w") as output:
        stream = None
        for turn in count():
            with av.open(str(clip)) as source:
                video = source.streams.video[0]
                if stream is None:
                    stream = output.add_stream_from_template(video)
                for packet in source.demux(video):
                    if packet.dts is None:
                        continue
                    if written == frames:
                        return
                    packet.pts += turn * video.duration
                    packet.dts += turn * video.duration
                    packet.stream = stream
                    output.mux(packet)
                    written += 1


def print_run(frames: int, program: str, *words: str) -> None:
    """Run a Python program; print its peak memory and its time."""
    done = finished([sys.executable, "-c", program, *words])
    print(f"{frames:8} {done.peak_mb:8.0f} {done.seconds:8.1f}", flush=True)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--clip", type=Path, default=VIDEOS / "dance.mp4")
    parser.add_argument("--frames", type=int, nargs="+", default=[500, 50_000])
    parser.add_argument("--repeated", action="store_true", help="repeat the results of one run instead of the video")
    parser.add_argument("--options", default="", help="of pose-run")


def main(given: Namespace) -> None:
    options = ["--quiet", *given.options.split()]
    print(f"{'frames':>8} {'peak MB':>8} {'s':>8}")
    with TemporaryDirectory() as folder:
        if given.repeated:
            call = ["--video", str(given.clip), "--out", folder, *options, "--formats", "npz"]
            finished([sys.executable, "-c", POSE_RUN, *call])
        for frames in given.frames:
            if given.repeated:
                world = str("--no-world" not in options)
                print_run(frames, REPEATED, f"{folder}/poses.npz", folder, str(frames), world)
                continue
            loop_clip(given.clip, Path(folder) / "long.mp4", frames)
            print_run(frames, POSE_RUN, "--video", f"{folder}/long.mp4", "--out", f"{folder}/{frames}", *options)
