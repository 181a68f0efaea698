"""Peak memory of `pose-run` on a short and on a long video: it must not grow with the length.

    python benchmarks/memory.py [--clip ../shared/videos/dance.mp4] [--frames 500 50000] [options of pose-run]

The long video is the clip over and over, its packets copied into one file, so that nothing is decoded in advance.
With --repeated, `pose-run` processes the clip once, and its frames are recorded, placed in the world (unless
--no-world is given) and written over and over: what the length changes, in a hundredth of the time.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import av

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


def peak_of_run(video: Path, out: Path, options: list[str]) -> tuple[float, float]:
    """(MB, s): the peak resident memory of one `pose-run`, and how long it took."""
    start_line = "import sys; from pose_apps.run import main; sys.exit(main())"
    return peak_of(start_line, "--video", str(video), "--out", str(out), "--quiet", *options)


def peak_of(program: str, *words: str) -> tuple[float, float]:
    """(MB, s): the peak resident memory of a Python program, and how long it took."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", program, *words])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the run failed with wait status {status}")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes
    return usage.ru_maxrss * unit / 1e6, time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", type=Path, default=Path("../shared/videos/dance.mp4"))
    parser.add_argument("--frames", type=int, nargs="+", default=[500, 50_000])
    parser.add_argument("--repeated", action="store_true", help="repeat the results of one run instead of the video")
    options, passed_on = parser.parse_known_args()
    print(f"{'frames':>8} {'peak MB':>8} {'s':>8}")
    if options.repeated:
        with tempfile.TemporaryDirectory() as folder:
            peak_of_run(options.clip, Path(folder), [*passed_on, "--formats", "npz"])
            for frames in options.frames:
                world = "--no-world" not in passed_on
                peak, seconds = peak_of(REPEATED, f"{folder}/poses.npz", folder, str(frames), str(world))
                print(f"{frames:8} {peak:8.0f} {seconds:8.1f}", flush=True)
        return
    for frames in options.frames:
        with tempfile.TemporaryDirectory() as folder:
            video = Path(folder) / "long.mp4"
            loop_clip(options.clip, video, frames)
            peak, seconds = peak_of_run(video, Path(folder) / "out", passed_on)
        print(f"{frames:8} {peak:8.0f} {seconds:8.1f}", flush=True)


if __name__ == "__main__":
    main()
