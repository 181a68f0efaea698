"""Results with known motion: a body of known bones, turned by known rotations."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from export_fakes import wave
from pose_fakes import run_info

from pose.body.skeleton import NAMES, Body, joint_positions
from pose.body.tracks import open_selection
from pose.results import NpzWriter, WorldInfo
from pose.structures.hand_points import Hands
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Placed, Poses3D
from pose.world.frame import World

QUATERNION_SCALE = np.diag([1.0, -1.0, -1.0])  # between file axes and the camera's


@pytest.fixture
def body() -> Body:
    """Bones of a plausible adult."""
    lengths = {
        "left_hip": (0.12, 0, 0), "left_knee": (0, -0.43, 0), "left_ankle": (0, -0.42, 0), "spine": (0, 0.24, 0),
        "thorax": (0, 0.26, 0), "neck": (0, 0.1, 0.06), "head": (0, 0.13, 0), "left_shoulder": (0.16, -0.03, 0),
        "left_elbow": (0.28, 0, 0), "left_wrist": (0.25, 0, 0),
    }  # fmt: skip
    offsets = np.zeros((17, 3))
    for name, offset in lengths.items():
        offsets[NAMES.index(name)] = offset
        if name.startswith("left"):
            offsets[NAMES.index(name.replace("left", "right"))] = np.array(offset) * (-1, 1, 1)
    return Body(offsets, np.zeros((17, 3)))


def placed_in(world: World, joints: np.ndarray) -> Placed:
    """People with joints (P, 17, 3) m in the camera frame, nothing else being known of them."""
    n = len(joints)
    unknown = np.full(n, np.nan, np.float32)
    return Placed(
        world.place(joints).astype(np.float32), unknown, np.zeros((n, 2), np.float32), np.zeros(n, bool), unknown
    )


def hands_like(shapes, people):
    """Detected hands of people, all of the shapes (2, 21, 3) m in camera axes relative to the wrists."""
    shapes = np.tile(shapes.astype(np.float32), (people, 1, 1, 1))
    return Hands(np.zeros((people, 2, 21, 2), np.float32), np.ones((people, 2, 21), np.float32), shapes)


@pytest.fixture
def save(tmp_path):
    """save(places, times, ...) -> the poses.npz of people whose joints are (P, T, 17, 3) m in file axes."""

    def write(
        places, times=None, *, name="poses", present=None, sigma=30.0, world=None, contacts=None, hands=None
    ) -> Path:
        people, frames = places.shape[:2]
        times = np.arange(frames) / 30 if times is None else times
        present = np.ones((people, frames), bool) if present is None else present
        path = tmp_path / f"{name}.npz"
        camera = (places @ QUATERNION_SCALE).astype(np.float32)
        info = replace(run_info(H36M17), world=None if world is None else WorldInfo(world))
        info = replace(info, settings={**info.settings, "hands": hands is not None})
        with NpzWriter(path, info) as writer:
            for frame, time in enumerate(times):
                here = np.flatnonzero(present[:, frame])
                n, joints = len(here), camera[here, frame]
                seen = People(
                    frame, float(time), here + 1, np.zeros((n, 4), np.float32), np.ones(n, np.float32),
                    np.full((n, 17, 2), 50, np.float32), np.full((n, 17), 0.9, np.float32),
                    hands=None if hands is None else hands_like(hands, n),
                )  # fmt: skip
                poses = Poses3D(joints - joints[:, :1], joints[:, 0], np.full((n, 17), sigma, np.float32))
                placed = None if world is None else placed_in(world, joints)
                if placed is not None and contacts is not None:
                    placed = replace(placed, contacts=np.tile(contacts[frame], (n, 1)).astype(np.float32))
                writer.write(FrameResult(seen, poses, placed))
        return path

    return write


@pytest.fixture
def recorded(save, body, rng):
    """recorded(frames, people, ...) -> a recording of moving people, and their joints (P, T, 17, 3) in file axes."""

    def make(frames=60, people=1, *, times=None, present=None, hands=None, **options):
        places = np.stack([joint_positions(body, wave(frames, rng)) for _ in range(people)])
        return open_selection(save(places, times, present=present, hands=hands), **options), places

    return make
