"""Golden outputs: what the commands write for short clips, frozen once and compared after each change of structure.

    python -m tests.golden freeze FOLDER [--checkout DIR]
    python -m tests.golden compare FOLDER [--checkout DIR] [--keep DIR] [--only CASE ...]

`freeze` makes the clips, runs the commands on them and keeps clips and results in FOLDER. `compare` runs the same
commands on the kept clips and keypoints, prints a line for each file that differs, and exits with 1 if there is one.
The commands are those of the current environment; with --checkout they run the code of that checkout. Both runs need
the same machine, the same packages and ../shared (or POSE_TEST_SHARED). The script imports nothing that it compares.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

import av
import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from golden_files import compare_folders

SHARED = Path(os.environ.get("POSE_TEST_SHARED", Path(__file__).resolve().parents[2] / "shared"))
# Those that need only the packages of the extra [dev].
MOTION = "bvh,glb,trc,c3d,mot,opensim,csv,parquet,angles,angles-parquet"
EXPORTS = f"{MOTION},faces,coco,openpose,rrd,html"
RESULT = "json,npz,overlay"
# The networks of the preset fast on every frame: their results depend neither on sampling nor on the default networks.
SAME = "--config fast --keypoint-rate 0"
RUN = f"pose-run --threads 1 --seed 0 {SAME}"
EXPORTED = "clips/exported/poses.npz"
VIEWS = "clips/view-a.mp4 clips/view-b.mp4"
LIFT = "--world --fps 60 --image-size 1088x1920"
OUT_FILE = {"pose-lift": "/poses.npz", "pose-prepare": "/keypoints.npz"}  # others write a folder

# Cases by name; the folder results/NAME is added to a command as --out. clips/exported holds results of `static` that
# were kept when the outputs were frozen: what is made of them does not depend on what precedes it.
CASES = {
    "static": f"{RUN} --cache off clips/view-a.mp4 --hands --face --analyse --formats {RESULT},{EXPORTS}",
    "squats": f"{RUN} --cache off clips/squats.mp4 --analyse --body --formats {RESULT},csv",
    "panning": f"{RUN} --cache off clips/panning.mp4 --formats {RESULT},{EXPORTS}",
    "sliding": f"{RUN} --cache off clips/sliding.mp4 --formats {RESULT},glb,csv",
    "cuts": f"{RUN} --cache off clips/cuts.mp4 --analyse --formats {RESULT},{EXPORTS}",
    "cameras": f"{RUN} --cache off {VIEWS} --cameras clips/calibration.json --formats {RESULT},{EXPORTS}",
    "cameras-uncalibrated": f"{RUN} --cache off {VIEWS} --distance view-a,view-b=3 --formats json,npz,csv",
    "lifted-openpose": f"pose-lift clips/exported/poses-openpose {LIFT}",
    "lifted-coco": f"pose-lift clips/exported/poses-coco.json {LIFT} --lifter sliding --lookahead 4",
    "keypoints": f"pose-prepare sequence --source {EXPORTED} --person 1",
    "lifted": "pose-lift results/keypoints/keypoints.npz --world",
    "lifted-exports": f"pose-convert results/lifted/poses.npz --to {MOTION}",
    "stills": f"{RUN} --cache off clips/stills --stills --formats {RESULT}",
    "stream": f"{RUN} --cache off clips/panning.mp4 --end 1 --estimator movenet --lifter stream --formats json,npz",
    "cache-filled": f"{RUN} --cache results/.cache clips/squats.mp4 --end 3 --formats json,npz",
    "cache-read": f"{RUN} --cache results/.cache clips/squats.mp4 --end 3 --height 1.8 --formats {RESULT},csv",
    "batch": f"pose-batch {SAME} clips/squats.mp4 clips/panning.mp4 --end 1 --workers 1 --quiet --formats json,npz,csv",
    "converted": f"pose-convert {EXPORTED} --to {MOTION} --fps 25 --rig unreal --space camera --no-trim --person 1",
    "analysed": f"pose-analyse {EXPORTED} --formats csv,json,parquet,html,c3d",
}


def frames_of(video: Path, start: int, stop: int) -> Iterator[np.ndarray]:
    """Decode frames [start, stop) as RGB."""
    with av.open(str(video)) as source:
        for frame in islice(source.decode(video=0), start, stop):
            yield frame.to_ndarray(format="rgb24")


def encode(target: Path, fps: int, frames: Iterator[np.ndarray]) -> None:
    with av.open(str(target), "w") as output:
        stream = None
        for image in frames:
            if stream is None:
                stream = output.add_stream("libx264", rate=fps, options={"crf": "18", "threads": "1"})
                stream.height, stream.width, stream.pix_fmt = *image.shape[:2], "yuv420p"
            output.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        output.mux(stream.encode())


def fitted(images: Iterator[np.ndarray], width: int, height: int) -> Iterator[np.ndarray]:
    """Crop images to the shape of width x height around their centre, and resize them."""
    for image in images:
        scale = max(width / image.shape[1], height / image.shape[0])
        larger = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        top, left = (larger.shape[0] - height) // 2, (larger.shape[1] - width) // 2
        yield np.ascontiguousarray(larger[top : top + height, left : left + width])


def cuts(videos: Path) -> Iterator[np.ndarray]:
    """Two people, another room with another person, and the two people again."""
    yield from fitted(islice(frames_of(videos / "two-people/view-a.mp4", 0, 60), 0, None, 2), 384, 496)
    yield from fitted(frames_of(videos / "dance.mp4", 100, 140), 384, 496)
    yield from fitted(islice(frames_of(videos / "two-people/view-a.mp4", 60, 100), 0, None, 2), 384, 496)


def make_clips(folder: Path) -> None:
    """Make the inputs of all cases but what `static` exports."""
    videos = SHARED / "videos"
    (folder / "stills").mkdir(parents=True)
    shutil.copyfile(videos / "two-people/calibration.json", folder / "calibration.json")
    for view in ("view-a.mp4", "view-b.mp4"):
        encode(folder / view, 60, frames_of(videos / "two-people" / view, 0, 60))
    encode(folder / "squats.mp4", 5, frames_of(videos / "squats.mp4", 0, 30))
    encode(folder / "panning.mp4", 30, frames_of(videos / "dance.mp4", 90, 180))
    walk = enumerate(frames_of(videos / "walk-by.mp4", 90, 130))
    encode(folder / "sliding.mp4", 10, (np.ascontiguousarray(image[:, 6 * k : 6 * k + 512]) for k, image in walk))
    encode(folder / "cuts.mp4", 30, cuts(videos))
    stills = (("street", 0), ("walk-by", 100), ("dance", 120), ("walk-by", 500), ("squats", 12))
    for number, (name, index) in enumerate(stills):
        (image,) = frames_of(videos / f"{name}.mp4", index, index + 1)
        cv2.imwrite(str(folder / f"stills/{number}-{name}.png"), image[..., ::-1])


def call_of(command: str, checkout: Path | None) -> list[str]:
    """The words that start a command of the current environment, or of a checkout."""
    if checkout is None:
        return [str(Path(sys.executable).parent / command)]
    scripts = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, _, function = scripts[command].partition(":")
    return [sys.executable, "-P", "-c", f"import sys; from {module} import {function}; sys.exit({function}())"]


def run_cases(folder: Path, checkout: Path | None, cases: Collection[str], freezing: bool) -> None:
    """Run the commands in a folder with clips; results and what is printed go to its folder `results`."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", "POSE_WEIGHTS_DIR": str(SHARED / "weights")}
    if checkout is not None:
        places = [checkout, *(checkout / name for name in ("apps", "datasets", "detectors"))]
        environment["PYTHONPATH"] = os.pathsep.join(str(place) for place in places)
    results = folder / "results"
    results.mkdir()
    for name in cases:
        command, *arguments = CASES[name].split()
        out = f"results/{name}{OUT_FILE.get(command, '')}"
        if command != "pose-run":
            (results / name).mkdir()
        words = [*call_of(command, checkout), *arguments, "--out", out]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: exit status {done.returncode}: {' '.join(words)}\n{done.stderr}", file=sys.stderr)
            if freezing:
                raise SystemExit(1)
        (results / f"{name}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
        print(f"ran {name}", file=sys.stderr, flush=True)
        if name == "static" and freezing:
            exported = folder / "clips/exported"
            shutil.copytree(results / "static/poses-openpose", exported / "poses-openpose")
            for file in ("poses.npz", "poses-coco.json"):
                shutil.copyfile(results / "static" / file, exported / file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("freeze", "compare"))
    parser.add_argument("folder", type=Path, help="folder of the frozen clips and results")
    parser.add_argument("--checkout", type=Path, help="run the code of this checkout instead of the installed one")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the new results here, to look at differences")
    parser.add_argument("--only", nargs="+", metavar="CASE", choices=CASES, help="compare these only: %(choices)s")
    options = parser.parse_args()
    folder = options.folder.resolve()
    checkout = options.checkout and options.checkout.resolve()
    if options.action == "freeze":
        make_clips(folder / "clips")
        run_cases(folder, checkout, CASES, freezing=True)
        return 0
    with tempfile.TemporaryDirectory() as place:
        work = (options.keep or Path(place) / "new").resolve()
        work.mkdir(parents=True)
        (work / "clips").symlink_to(folder / "clips")
        cases = [name for name in CASES if not options.only or name in options.only]
        run_cases(work, checkout, cases, freezing=False)
        return compare_folders(folder / "results", work / "results", cases)


if __name__ == "__main__":
    sys.exit(main())
