"""Distances between our landmarks and MediaPipe's, in percent of the height of the person's box.

    python -m benchmarks.speed agreement --mediapipe ENV/bin/python

MediaPipe follows one person; ours that is nearest counts. MediaPipe assumes 30 frames/s, on which the smoothing of its
region depends: the first columns use the same clock, the others the clip's own.
"""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from pose_detectors.blazepose import BlazePoseDetector

from benchmarks.common.command import VIDEOS
from benchmarks.common.processes import add_mediapipe, mediapipe_pose
from pose.networks.estimators.blazepose import BlazePose
from pose.networks.weights import locate
from pose.tracking.people_tracker import PeopleTracker

PEER_RATE = 30.0
RECORDED_FRAMES = range(0, 60, 6)


def nearest_landmarks(
    clip: Path, reference: NDArray[np.float32], tracker: PeopleTracker, rate: float | None
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


def add_options(parser: ArgumentParser) -> None:
    add_mediapipe(parser, required=True)
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of clips, or one clip")
    parser.add_argument("--record", type=Path, help="write some frames of MediaPipe's answer to this JSON file")


def main(given: Namespace) -> None:
    columns = f"{'both':>6} {'median %':>8} {'95 % <':>8}"
    print(f"{'clip':14} {'frames':>6} {'theirs':>6} | {columns} | {columns}")
    for clip in [given.videos] if given.videos.is_file() else sorted(given.videos.glob("*.mp4")):
        reference = mediapipe_pose(given.mediapipe, clip)[0].astype(np.float32)
        theirs = np.isfinite(reference[:, 0, 0])
        heights = np.ptp(reference[:, :, 1], axis=1)[:, None]
        row = f"{clip.name:14} {len(reference):6} {theirs.sum():6}"
        for rate in (PEER_RATE, None):
            estimator = BlazePose(model=locate("blazepose-landmark-full"))
            tracker = PeopleTracker(BlazePoseDetector(model=locate("blazepose-detector")), estimator)
            ours = nearest_landmarks(clip, reference, tracker, rate)
            both = theirs & np.isfinite(ours[:, 0, 0])
            distances = (100 * np.linalg.norm(ours - reference[:, :, :2], axis=2) / heights)[both]
            row += f" | {both.sum():6} {np.median(distances):8.3f} {np.percentile(distances, 95):8.3f}"
        print(row, flush=True)
        if given.record:
            frames = {str(i): reference[i, :, :2].round(2).tolist() for i in RECORDED_FRAMES}
            text = json.dumps({"clip": clip.name, "landmarks_px": frames})
            given.record.write_text(text + "\n", encoding="utf-8")
