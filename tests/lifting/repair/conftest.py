"""Recorded people before virtual cameras, and a dancer as a detector sees him."""

from itertools import islice

import av
import numpy as np
import pytest
from pose_datasets import mocap
from pose_detectors.blazepose import BlazePoseDetector
from swapped_limbs import film

from pose.networks.estimators.blazepose import BlazePose
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.tracking.config import TrackingConfig
from pose.tracking.people_tracker import PeopleTracker

TRIALS = {"07": ("07_01", "07_04"), "26": ("26_01", "26_04", "26_08"), "131": ("131_01", "131_06")}


@pytest.fixture(scope="session")
def recorded(shared):
    """Recorded people: a few clips of the motion capture."""
    clips = []
    for subject, wanted in TRIALS.items():
        for _, trial, points, rate in mocap.read_subject(shared / "mocap" / "cmu" / f"{subject}.zip"):
            if trial in wanted:
                points, times = mocap.decimate(points, np.arange(len(points)) / rate)
                clips.append(mocap.Clip(subject, trial, points.astype(np.float32)[:600], times[:600]))
    return clips


@pytest.fixture(scope="session")
def filmed(recorded):
    return film(recorded, 30)


@pytest.fixture(scope="session")
def danced(videos, weights_dir):
    """What BlazePose sees of the dancer's first four seconds."""
    detector = BlazePoseDetector(model=weights_dir / "blazepose-detector.tflite")
    estimator = BlazePose(model=weights_dir / "blazepose-landmark-lite.tflite", variant="lite")
    stage = PeopleTracker(detector, estimator, TrackingConfig(max_people=1))
    with av.open(str(videos / "dance.mp4")) as container:
        images = [frame.to_ndarray(format="rgb24") for frame in islice(container.decode(video=0), 120)]
    people = [stage.step(image, i, i / 30) for i, image in enumerate(images)]
    return Sequence2D(
        np.concatenate([p.keypoints for p in people]), np.concatenate([p.scores for p in people]),
        np.arange(120) / 30, Camera.of((384, 496)), "blazepose33",
    )  # fmt: skip
