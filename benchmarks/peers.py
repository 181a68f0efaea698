"""Speed and agreement beside MediaPipe and rtmlib, on the same images.

    python -m benchmarks.peers mediapipe [--python ENV/bin/python] [--clip ../shared/videos/dance.mp4] [--repeats 5]
    python -m benchmarks.peers agreement [--python ENV/bin/python] [--videos ../shared/videos]
    python -m benchmarks.peers rtmlib --detector rtmdet-nano-person-320.onnx [--pose end2end.onnx] [--threads 1 2]

`mediapipe`: our decoding, 2D, tracking, 3D and JSON against decoding and `mediapipe==0.10.21` pose
(model_complexity=1). Both run alternately, each in its own process; the medians of the ratios count, because other work
on the machine slows both. "process" is the whole process with its start; ours is `pose-run` without overlay. The last
column is the ratio of processor seconds, which depends least on other work.

`agreement`: distances between our landmarks and MediaPipe's, in percent of the height of the person's box. MediaPipe
follows one person; ours that is nearest counts. MediaPipe assumes 30 frames/s, on which the smoothing of its region
depends: the first columns use the same clock, the others the clip's own.

`rtmlib` (`pip install --no-deps rtmlib`): detector and keypoints of 8 people in one image, with the same ONNX files and
threads; rtmlib sends one crop at a time through the network. Without --pose, RTMPose t, s and m with random weights are
timed, which compute as much as trained ones.

MediaPipe pins NumPy 1, so it runs in an environment of its own. This file imports only NumPy and PyAV at its top,
because that environment runs it, too.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pose.tracking.people_tracker import PeopleTracker

MEDIAPIPE = ("mediapipe==0.10.21", "av")
LANDMARKS = "blazepose-landmark-full"
PEER_RATE = 30.0
RECORDED_FRAMES = range(0, 60, 6)
TILES = (2, 4)  # rows, columns of the one dancer
BOX = np.array([110, 50, 270, 430], np.float32)  # around the dancer in the first frame
SPEED_ROW = "{:22.1f} {:13.1f} {:6.1f} {:6.2f} {:25.1f} {:5.1f} {:6.2f} {:11.2f}"
SPEED_TITLE = (
    "ms a frame:           theirs  (pose alone)   ours  ratio  whole process, s: theirs ours  ratio  processors"
)
POSE_RUN = "from pose_apps.run import main; main()"


def mediapipe_loop(clip: str, result: str) -> None:
    """Write landmarks (T, 33, 4), seconds of the whole loop and of MediaPipe alone; runs in MediaPipe's environment."""
    import mediapipe

    landmarks: list[NDArray[np.float32]] = []
    process = 0.0
    pose = mediapipe.solutions.pose.Pose(static_image_mode=False, model_complexity=1, smooth_landmarks=False)
    start = time.perf_counter()
    with av.open(clip) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            image = frame.to_ndarray(format="rgb24")
            before = time.perf_counter()
            found = pose.process(image).pose_landmarks
            process += time.perf_counter() - before
            row = np.full((33, 4), np.nan, np.float32)
            if found:
                height, width = image.shape[:2]
                row[:] = [(p.x * width, p.y * height, p.visibility, p.presence) for p in found.landmark]
            landmarks.append(row)
    seconds = time.perf_counter() - start
    np.savez(result, landmarks=np.array(landmarks), seconds=seconds, process_seconds=process)


def our_loop(clip: str, out: str) -> None:
    """Print the seconds of our loop without the loading of the networks."""
    from pose.pipeline import Pipeline
    from pose.results import JsonWriter
    from pose.video import open_source

    pipeline = Pipeline.from_preset("fast")
    start = time.perf_counter()
    with open_source(clip) as source:
        info = pipeline.run_info(source.name, source.info.fps, source.info.size)
        with JsonWriter(Path(out), info) as writer:
            for result in pipeline.run(source):
                writer.write(result)
            writer.close()
    print(time.perf_counter() - start)


def make_environment(folder: Path) -> Path:
    """Return the Python of a new virtual environment with MediaPipe."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *MEDIAPIPE], check=True)
    return python


def processor_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(command: list[str]) -> tuple[float, str]:
    """Return the seconds that a command took, and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return time.perf_counter() - start, done.stdout


def run_mediapipe(python: Path, clip: Path) -> tuple[dict[str, NDArray[np.float64]], float]:
    """Return what `mediapipe_loop` wrote, and the seconds of its whole process."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.npz"
        seconds, _ = timed([str(python), __file__, "mediapipe-loop", str(clip), str(result)])
        with np.load(result) as arrays:
            return dict(arrays), seconds


def run_ours(clip: Path) -> tuple[float, float, float]:
    """Return seconds of our loop, of a whole `pose-run`, and of the processors in it."""
    with tempfile.TemporaryDirectory() as folder:
        _, printed = timed([sys.executable, __file__, "our-loop", str(clip), f"{folder}/poses.json"])
        before = processor_seconds()
        options = ["--no-overlay", "--out", f"{folder}/out", "--formats", "json", "--quiet"]
        process, _ = timed([sys.executable, "-c", POSE_RUN, "--video", str(clip), *options])
        return float(printed), process, processor_seconds() - before


def mediapipe_speed(options: argparse.Namespace, python: Path) -> None:
    with av.open(str(options.clip)) as container:
        frames = sum(1 for _ in container.decode(video=0))
    rows = []
    print(SPEED_TITLE)
    for _ in range(options.repeats):
        before = processor_seconds()
        peer, their_process = run_mediapipe(python, options.clip)
        their_processors = processor_seconds() - before
        loop, process, processors = run_ours(options.clip)
        theirs, alone = (1000 * float(peer[key]) / frames for key in ("seconds", "process_seconds"))
        ours = 1000 * loop / frames
        ratios = (process / their_process, processors / their_processors)
        rows.append((theirs, alone, ours, ours / theirs, their_process, process, *ratios))
        print(" " * 6 + SPEED_ROW.format(*rows[-1]), flush=True)
    print("median" + SPEED_ROW.format(*(statistics.median(column) for column in zip(*rows, strict=True))))


def nearest_landmarks(
    clip: Path, reference: NDArray[np.float32], tracker: "PeopleTracker", rate: float | None
) -> NDArray[np.float32]:
    """Return our landmarks (T, 33, 2) of the person nearest to `reference`; NaN where we found no person.

    rate: frames/s, None for the clip's own time stamps.
    """
    found = np.full((len(reference), 33, 2), np.nan, np.float32)
    with av.open(str(clip)) as container:
        for index, frame in enumerate(container.decode(video=0)):
            moment = index / rate if rate else float(frame.time)
            people = tracker.step(frame.to_ndarray(format="rgb24"), index, moment)
            if len(people):
                distances = np.linalg.norm(people.keypoints - reference[index, :, :2], axis=2).mean(axis=1)
                found[index] = people.keypoints[np.argmin(np.nan_to_num(distances))]
    return found


def mediapipe_agreement(options: argparse.Namespace, python: Path) -> None:
    from pose_detectors.blazepose import BlazePoseDetector

    from pose.networks.estimators.blazepose import BlazePose
    from pose.networks.weights import locate
    from pose.tracking.people_tracker import PeopleTracker

    columns = f"{'both':>6} {'median %':>8} {'95 % <':>8}"
    print(f"{'clip':14} {'frames':>6} {'theirs':>6} | {columns} | {columns}")
    for clip in [options.videos] if options.videos.is_file() else sorted(options.videos.glob("*.mp4")):
        reference = run_mediapipe(python, clip)[0]["landmarks"].astype(np.float32)
        theirs = np.isfinite(reference[:, 0, 0])
        heights = np.ptp(reference[:, :, 1], axis=1)[:, None]
        row = f"{clip.name:14} {len(reference):6} {theirs.sum():6}"
        for rate in (PEER_RATE, None):
            networks = BlazePoseDetector(model=locate("blazepose-detector")), BlazePose(model=locate(LANDMARKS))
            ours = nearest_landmarks(clip, reference, PeopleTracker(*networks), rate)
            both = theirs & np.isfinite(ours[:, 0, 0])
            distances = (100 * np.linalg.norm(ours - reference[:, :, :2], axis=2) / heights)[both]
            row += f" | {both.sum():6} {np.median(distances):8.3f} {np.percentile(distances, 95):8.3f}"
        print(row, flush=True)
        if options.record:
            frames = {str(i): reference[i, :, :2].round(2).tolist() for i in RECORDED_FRAMES}
            text = json.dumps({"clip": clip.name, "landmarks_px": frames})
            options.record.write_text(text + "\n", encoding="utf-8")


def with_threads(make: Callable[[], Any], threads: int) -> Any:
    """Return `make()`; its ONNX sessions get this number of threads, for which rtmlib has no option."""
    import onnxruntime

    session = onnxruntime.InferenceSession

    def limited(path_or_bytes: str, providers: list[str]) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        return session(path_or_bytes, options, providers=providers)

    onnxruntime.InferenceSession = limited
    try:
        return make()
    finally:
        onnxruntime.InferenceSession = session


def medians(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Return the median ms of both, which run alternately."""
    taken: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 2):
        for times, function in zip(taken, (ours, theirs), strict=True):
            time.sleep(0.05)  # until the threads of the other side are idle
            start = time.perf_counter()
            function()
            if turn >= 2:
                times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken[0]), statistics.median(taken[1])


def keypoint_networks(given: Path | None, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and files of the keypoint networks to time."""
    if given:
        yield given.name, given
        return
    from tests.networks.estimators.rtmpose_weights import export_onnx, random_network

    for size in "tsm":
        export_onnx(random_network(size, 17), folder / f"{size}.onnx")
        yield f"random {size}", folder / f"{size}.onnx"


def compare_rtmlib(detector_file: Path, pose_file: Path, clip: Path, threads: int, rounds: int) -> tuple[float, float]:
    """Return the median ms of our stages and of rtmlib's."""
    from pose_detectors.rtmdet import RTMDetDetector
    from rtmlib import RTMDet
    from rtmlib import RTMPose as PeerPose

    from pose.networks.estimators.rtmpose import RTMPose
    from pose.networks.options import StageOptions
    from pose.structures.types import Boxes
    from pose.video import open_source

    with open_source(str(clip)) as source:
        frame = next(iter(source)).image
    height, width = frame.shape[:2]
    corners = [(column * width, row * height) for row in range(TILES[0]) for column in range(TILES[1])]
    image, boxes = np.tile(frame, (*TILES, 1)), BOX + np.array(corners, np.float32)[:, [0, 1, 0, 1]]
    bgr = np.ascontiguousarray(image[..., ::-1])
    stage_options = StageOptions(device="cpu", threads=threads)
    detector = RTMDetDetector(model=detector_file, options=stage_options)
    estimator = RTMPose(model=pose_file, options=stage_options)
    people = Boxes(boxes, np.ones(len(boxes), np.float32))
    peer_detector = with_threads(lambda: RTMDet(str(detector_file), (320, 320)), threads)
    peer_pose = with_threads(lambda: PeerPose(str(pose_file), estimator._network.crop), threads)

    def ours() -> Any:
        detector.detect([image])
        return estimator.estimate([image], [estimator.regions(people)])

    def theirs() -> Any:
        peer_detector(bgr)
        return peer_pose(bgr, boxes)

    return medians(ours, theirs, rounds)


def rtmlib_speed(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        networks = list(keypoint_networks(options.pose, Path(folder)))
        print(f"{'network':14} {'threads':>7} {'ours ms':>8} {'peer ms':>8} {'ratio':>6}")
        for threads in options.threads:
            for name, file in networks:
                own, peer = compare_rtmlib(options.detector, file, options.clip, threads, options.rounds)
                print(f"{name:14} {threads:7} {own:8.1f} {peer:8.1f} {own / peer:6.2f}", flush=True)


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = whole.add_subparsers(dest="command", required=True)
    speed, agreement, rtmlib = (commands.add_parser(name) for name in ("mediapipe", "agreement", "rtmlib"))
    for one in (speed, agreement):
        one.add_argument("--python", type=Path, help=f"a Python with {' and '.join(MEDIAPIPE)}; default: make one")
    for one in (speed, rtmlib):
        one.add_argument("--clip", type=Path, default=Path("../shared/videos/dance.mp4"))
    speed.add_argument("--repeats", type=int, default=5)
    agreement.add_argument("--videos", type=Path, default=Path("../shared/videos"), help="folder of clips, or one clip")
    agreement.add_argument("--record", type=Path, help="write some frames of MediaPipe's answer to this JSON file")
    rtmlib.add_argument("--detector", type=Path, required=True, help="RTMDet for people, ONNX, 320 px")
    rtmlib.add_argument("--pose", type=Path, help="RTMPose, ONNX; default: random weights")
    rtmlib.add_argument("--threads", type=int, nargs="+", default=[2])
    rtmlib.add_argument("--rounds", type=int, default=20)
    return whole


def main() -> None:
    if sys.argv[1:2] == ["mediapipe-loop"]:
        mediapipe_loop(*sys.argv[2:])
    elif sys.argv[1:2] == ["our-loop"]:
        our_loop(*sys.argv[2:])
    else:
        options = parser().parse_args()
        if options.command == "rtmlib":
            rtmlib_speed(options)
            return
        with tempfile.TemporaryDirectory() as folder:
            python = options.python or make_environment(Path(folder) / "peer")
            {"mediapipe": mediapipe_speed, "agreement": mediapipe_agreement}[options.command](options, python)


if __name__ == "__main__":
    main()
