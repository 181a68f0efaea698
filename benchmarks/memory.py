"""Peak memory of `pose-run` on a short and on a long video: it must not grow with the length.

    python benchmarks/memory.py [--clip ../shared/videos/dance.mp4] [--frames 500 50000] [options of pose-run]

The long video is the clip over and over, its packets copied into one file, so that nothing is decoded in advance.
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
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", start_line, "--video", video, "--out", out, "--quiet", *options])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"pose-run failed with wait status {status}")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes
    return usage.ru_maxrss * unit / 1e6, time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", type=Path, default=Path("../shared/videos/dance.mp4"))
    parser.add_argument("--frames", type=int, nargs="+", default=[500, 50_000])
    options, passed_on = parser.parse_known_args()
    print(f"{'frames':>8} {'peak MB':>8} {'s':>8}")
    for frames in options.frames:
        with tempfile.TemporaryDirectory() as folder:
            video = Path(folder) / "long.mp4"
            loop_clip(options.clip, video, frames)
            peak, seconds = peak_of_run(video, Path(folder) / "out", passed_on)
        print(f"{frames:8} {peak:8.0f} {seconds:8.1f}", flush=True)


if __name__ == "__main__":
    main()
