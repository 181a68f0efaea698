"""Throughput of `pose-batch` beside one `pose-run` after the other, on the same clips, in turns.

    python benchmarks/batch.py [--short 12] [--seconds 1] [--turns 3] [--options ...]

"short": many clips of a second each, where the start counts; "long": whole clips, two of each. Both ways write json and
npz and remember nothing. Wall-clock times on a machine with other work mean little, their ratio within a turn more, and
seconds of processor time hardly depend on it.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import av

SHARED = Path(os.environ.get("POSE_TEST_SHARED", Path(__file__).resolve().parents[2] / "shared"))
RUN = "import sys; from pose_apps.run import main; sys.exit(main())"
BATCH = "import sys; from pose_apps.batch.command import main; sys.exit(main())"


def cut(video: Path, target: Path, seconds: float) -> None:
    """The beginning of a video, not encoded again."""
    with av.open(str(video)) as source, av.open(str(target), "w") as written:
        stream = written.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None and packet.dts * packet.time_base < seconds:
                packet.stream = stream
                written.mux(packet)


def timed(way: Callable[[list[Path], list[str]], None], clips: list[Path], options: list[str]) -> tuple[float, float]:
    """Seconds by the clock, and of the processors."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    way(clips, options)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended - begun, spent


def one_after_the_other(clips: list[Path], options: list[str]) -> None:
    for clip in clips:
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, "-c", RUN, str(clip), "--out", out, "--formats", "json,npz", "--quiet", *options]
            subprocess.run(command, check=True)


def all_at_once(clips: list[Path], options: list[str]) -> None:
    with tempfile.TemporaryDirectory() as out:
        common = ["--out", out, "--formats", "json,npz", "--quiet", "--cache", "off", *options]
        subprocess.run([sys.executable, "-c", BATCH, *map(str, clips), *common], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", type=int, default=12, help="short clips")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each short clip")
    parser.add_argument("--long", type=float, default=18.0, help="seconds of each of four longer clips")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=["short", "long"], choices=["short", "long"])
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="for both")
    asked = parser.parse_args()
    videos = [SHARED / "videos" / "dance.mp4", SHARED / "videos" / "squats.mp4"]
    print(
        f"{'set':<8}{'turn':>6}{'pose-run s':>12}{'(cpu)':>9}{'pose-batch s':>14}{'(cpu)':>9}{'ratio':>8}{'of cpu':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.sets:
            clips = []
            for number in range(asked.short if name == "short" else 4):
                clips.append(Path(folder) / f"{name}{number}.mp4")
                cut(videos[number % 2], clips[-1], asked.seconds if name == "short" else asked.long)
            ratios = []
            for turn in range(asked.turns):
                ways = [one_after_the_other, all_at_once]
                results = {way: timed(way, clips, asked.options) for way in ways[:: 1 - 2 * (turn % 2)]}
                (single, single_cpu), (batch, batch_cpu) = (results[way] for way in ways)
                ratios.append(single / batch)
                row = f"{name:<8}{turn:>6}{single:>12.1f}{single_cpu:>9.1f}{batch:>14.1f}{batch_cpu:>9.1f}"
                print(f"{row}{ratios[-1]:>8.2f}{single_cpu / batch_cpu:>8.2f}", flush=True)
            print(f"{name}: median ratio {statistics.median(ratios):.2f}", flush=True)


if __name__ == "__main__":
    main()
