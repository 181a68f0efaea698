"""How fast the pipeline is beside a plain loop of MediaPipe Pose on the same clip.

    python benchmarks/mediapipe_speed.py [--python ENV/bin/python] [--clip ../shared/videos/dance.mp4] [--repeats 5]

Both sides run in turn, each in a process of its own, `--repeats` times; the median of the ratios counts, so that other
work on the machine slows both alike. Theirs: decode and `mediapipe==0.10.21` pose (model_complexity=1). Ours: decode,
2D, tracking, 3D and JSON (`--stages all`) or without the last two (`--stages 2d`). "process" is the whole process,
start-up included; for `all` it is the command `pose-run` without the overlay. Wall-clock times mean little on a machine
that is busy with other things; the last column is the ratio of the processors' seconds that the processes used.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import av
from peer_environment import make_environment, run_peer

ROW = "{:22.1f} {:13.1f} {:6.1f} {:6.2f} {:25.1f} {:5.1f} {:6.2f} {:11.2f}"
OUR_LOOP = Path(__file__).with_name("our_loop.py")


def processor_seconds() -> float:
    """Used by all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(command: list[str]) -> tuple[float, str]:
    """Seconds that a command took, and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return time.perf_counter() - start, done.stdout


def run_ours(stages: str, clip: Path) -> tuple[float, float, float]:
    """Seconds of our loop, of our whole process, and of the processors in that process."""
    with tempfile.TemporaryDirectory() as folder:
        before = processor_seconds()
        process, printed = timed([sys.executable, str(OUR_LOOP), stages, str(clip), f"{folder}/poses.json"])
        if stages == "all":
            command = [
                sys.executable,
                "-c",
                "from pose_apps.run import main; main()",
                "--video",
                str(clip),
                "--no-overlay",
            ]
            before = processor_seconds()
            process, _ = timed([*command, "--out", f"{folder}/out", "--formats", "json", "--quiet"])
        return float(printed), process, processor_seconds() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="a Python that has mediapipe==0.10.21 and av; default: make one")
    parser.add_argument("--clip", type=Path, default=Path("../shared/videos/dance.mp4"))
    parser.add_argument("--stages", choices=("2d", "all"), default="all")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with av.open(str(options.clip)) as container:
        frames = sum(1 for _ in container.decode(video=0))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        python = options.python or make_environment(Path(folder) / "peer")
        print(
            "ms a frame:           theirs  (pose alone)   ours  ratio  whole process, s: theirs ours  ratio  processors"
        )
        for _ in range(options.repeats):
            before = processor_seconds()
            peer, their_process = run_peer(python, options.clip)
            their_processors = processor_seconds() - before
            loop, process, processors = run_ours(options.stages, options.clip)
            theirs, alone = (1000 * float(peer[key]) / frames for key in ("seconds", "process_seconds"))
            ours = 1000 * loop / frames
            shares = (process / their_process, processors / their_processors)
            rows.append((theirs, alone, ours, ours / theirs, their_process, process, *shares))
            print(" " * 6 + ROW.format(*rows[-1]), flush=True)
    print("median" + ROW.format(*(statistics.median(column) for column in zip(*rows, strict=True))))


if __name__ == "__main__":
    main()
