"""Motion capture for the laboratory: people who wave, so many seconds each."""

import sys
from collections.abc import Mapping
from pathlib import Path

from pose_apps.lab.motion import MocapMotion
from pose_datasets.mocap import save_clips

from pose.training.laboratory.trial import Clock, Setup

sys.path.append(str(Path(__file__).parents[2] / "datasets"))
from motion import waving_clip

BRIEFLY = {"01": 1.5, "39": 1.5, "08": 1.5}  # s, of a person to train, one to validate and one to test with


def waving(path: Path, seconds: Mapping[str, float] = BRIEFLY) -> MocapMotion:
    """Motion of these subjects, written to `path` and read from there."""
    save_clips([waving_clip(subject, seconds=length) for subject, length in seconds.items()], path)
    return MocapMotion(str(path))


def trial_setup(folder: Path, seconds: Mapping[str, float] = BRIEFLY) -> Setup:
    """What a trial is given that may take as long as it takes."""
    motion = waving(folder / "clips.npz", seconds)
    return Setup(0, Clock(), lambda: motion, folder / "state.pt")
