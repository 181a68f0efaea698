"""How closely our BlazePose follows MediaPipe's own.

    python benchmarks/mediapipe_agreement.py [--python ENV/bin/python] [--videos ../shared/videos]

Runs `mediapipe==0.10.21` pose (static_image_mode=False, model_complexity=1, smooth_landmarks=False) in an environment
of its own and the people stage here, on the same decoded frames, and prints for every clip the distance between the
landmarks of the same person, in per cent of the height of the box around the person's landmarks. MediaPipe follows one
person; ours that is nearest to it counts. MediaPipe takes every clip to have 30 frames a second, on which its region's
smoothing depends: the first two figures give ours the same clock, the other two the clip's own.
"""

import argparse
import json
import tempfile
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from peer_environment import make_environment, run_peer
from pose_detectors.blazepose import BlazePoseDetector

from pose.networks.estimators.blazepose import BlazePose
from pose.tracking.people_tracker import PeopleTracker

RECORDED_FRAMES = range(0, 60, 6)
PEER_RATE = 30.0


def nearest_landmarks(
    clip: Path, reference: NDArray[np.float32], tracker: PeopleTracker, rate: float | None
) -> NDArray[np.float32]:
    """(T, 33, 2) our landmarks of the person nearest to `reference` (T, 33, 2 or more); NaN where we found no person.

    rate: frames a second, None for the clip's own time stamps.
    """
    found = np.full((len(reference), 33, 2), np.nan, np.float32)
    with av.open(str(clip)) as container:
        for index, frame in enumerate(container.decode(video=0)):
            time = index / rate if rate else float(frame.time)
            people = tracker.step(frame.to_ndarray(format="rgb24"), index, time)
            if len(people):
                distances = np.linalg.norm(people.keypoints - reference[index, :, :2], axis=2).mean(axis=1)
                found[index] = people.keypoints[np.argmin(np.nan_to_num(distances))]
    return found


def percent_of_height(ours: NDArray[np.float32], reference: NDArray[np.float32]) -> NDArray[np.float32]:
    """(T, 33) distances in per cent of the height of the reference's box; NaN where either found no person."""
    heights = np.ptp(reference[:, :, 1], axis=1)[:, None]
    return 100 * np.linalg.norm(ours - reference[:, :, :2], axis=2) / heights


def report(clip: Path, python: Path, model: dict[str, Path | None], record: Path | None) -> None:
    """Print one row; keep some frames of the reference if asked."""
    reference = run_peer(python, clip)[0]["landmarks"].astype(np.float32)
    theirs = np.isfinite(reference[:, 0, 0])
    row = f"{clip.name:14} {len(reference):6} {theirs.sum():6}"
    for rate in (PEER_RATE, None):
        tracker = PeopleTracker(BlazePoseDetector(model=model["detector"]), BlazePose(model=model["landmarks"]))
        ours = nearest_landmarks(clip, reference, tracker, rate)
        both = theirs & np.isfinite(ours[:, 0, 0])
        distances = percent_of_height(ours[both], reference[both])
        row += f" | {both.sum():6} {np.median(distances):8.3f} {np.percentile(distances, 95):8.3f}"
    print(row, flush=True)
    if record:
        frames = {str(i): reference[i, :, :2].round(2).tolist() for i in RECORDED_FRAMES}
        record.write_text(json.dumps({"clip": clip.name, "landmarks_px": frames}) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="a Python that has mediapipe==0.10.21 and av; default: make one")
    parser.add_argument("--videos", type=Path, default=Path("../shared/videos"), help="folder of clips, or one clip")
    parser.add_argument("--detector", type=Path, help="LiteRT file; default: from the weight cache")
    parser.add_argument("--landmarks", type=Path, help="LiteRT file; default: from the weight cache")
    parser.add_argument(
        "--record", type=Path, help="write some frames of the reference of the one clip to this JSON file"
    )
    options = parser.parse_args()
    clips = [options.videos] if options.videos.is_file() else sorted(options.videos.glob("*.mp4"))
    model = {"detector": options.detector, "landmarks": options.landmarks}
    with tempfile.TemporaryDirectory() as folder:
        python = options.python or make_environment(Path(folder) / "peer")
        columns = f"{'both':>6} {'median %':>8} {'95 % <':>8}"
        print(f"{'clip':14} {'frames':>6} {'theirs':>6} | {columns} | {columns}")
        for clip in clips:
            report(clip, python, model, options.record)


if __name__ == "__main__":
    main()
