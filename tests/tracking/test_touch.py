"""People who touch, in two views of a man and a woman: each keeps their id, and no track is false.

Where they are was marked by eye (two_people.json): the base of the neck and the middle of the hips in every tenth
frame, between which they move steadily enough.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from pose_detectors.blazepose import BlazePoseDetector
from pose_detectors.rtmdet import RTMDetDetector

from pose.networks.estimators.blazepose import BlazePose
from pose.structures.assignment import best_pairs
from pose.structures.skeletons import BLAZEPOSE33
from pose.tracking.people_tracker import PeopleTracker
from pose.video import open_source

NEAR = 0.4  # of the trunk's length: a pose whose trunk's ends are farther off in the mean is not this person's
SHOULDERS, HIPS = ([BLAZEPOSE33.index(f"{side}_{part}") for side in ("left", "right")] for part in ("shoulder", "hip"))


def trunks(view, frames):
    """Name -> (T, 2, 2) px: neck and hips in every frame."""
    marks = json.loads((Path(__file__).parent / "two_people.json").read_text())[view]
    ends = {}
    for name in ("man", "woman"):
        marked = np.array(marks[name], float)
        columns = [np.interp(frames, marks["frames"], column) for column in marked.reshape(len(marked), 4).T]
        ends[name] = np.stack(columns, axis=1).reshape(-1, 2, 2)
    return ends


def whose(poses, ends):
    """For each pose (33, 2) the name of the person whose body it shows, or None; no body is shown twice, so one
    that lies between the two belongs to the person that no other pose shows. ends: name -> (2, 2) px."""
    names = list(ends)
    far = np.empty((len(poses), len(names)))
    for row, pose in enumerate(poses):
        trunk = np.stack([pose[SHOULDERS].mean(axis=0), pose[HIPS].mean(axis=0)])
        far[row] = [np.linalg.norm(trunk - e, axis=1).mean() / np.linalg.norm(e[0] - e[1]) for e in ends.values()]
    shown = [None] * len(poses)
    for row, column in best_pairs(-far, min_similarity=-NEAR):
        shown[row] = names[column]
    return shown


@pytest.mark.parametrize(
    ("detector", "weights", "view"),
    [
        pytest.param(RTMDetDetector, "rtmdet-nano-person-320.onnx", "view-a", marks=pytest.mark.slow),
        pytest.param(RTMDetDetector, "rtmdet-nano-person-320.onnx", "view-b", marks=pytest.mark.slow),
        pytest.param(BlazePoseDetector, "blazepose-detector.tflite", "view-a", marks=pytest.mark.slow),
        (BlazePoseDetector, "blazepose-detector.tflite", "view-b"),
    ],
)
def test_touching_people_stay_two_tracks(detector, weights, view, videos, weights_dir):
    detector = detector(model=weights_dir / weights)
    stage = PeopleTracker(detector, BlazePose(model=weights_dir / "blazepose-landmark-full.tflite"))
    with open_source(str(videos / "two-people" / f"{view}.mp4")) as source:
        results = [stage.step(frame.image, frame.index, frame.time) for frame in source]
    ends = trunks(view, np.arange(len(results)))
    shown = [
        dict(zip(people.ids.tolist(), whose(people.keypoints, {name: e[i] for name, e in ends.items()}), strict=True))
        for i, people in enumerate(results)
    ]
    assert max(map(len, shown)) == 2
    for name in ("man", "woman"):
        assert np.mean([name in people.values() for people in shown]) >= 0.95
    for person in (1, 2):
        bodies = {people[person] for people in shown if person in people} - {None}
        assert len(bodies) == 1, f"id {person} showed {bodies}"
    assert np.mean([None in people.values() for people in shown]) <= 0.02
