"""A person of straight lines who walks, stands, slides or jumps on a known floor, seen by a known camera."""

import numpy as np

from pose.structures.camera import Camera, intrinsics_from_fov, project
from pose.structures.refine import lengths_of
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import H36M17
from pose.structures.two_bones import place_middle
from pose.world.frame import up_of
from pose.world.height import stature
from pose.world.scene.model import ADULT_M
from pose.world.work import person_of

FPS = 30.0
SIZE = (1280, 720)
LENS = intrinsics_from_fov(SIZE)
ANKLES = [H36M17.index("left_ankle"), H36M17.index("right_ankle")]
# x to the person's left, y up, z ahead; m from the pelvis, who stands 0.93 m above the floor.
_UPPER = {
    "pelvis": (0, 0, 0), "right_hip": (-0.12, 0, 0), "left_hip": (0.12, 0, 0), "spine": (0, 0.25, 0),
    "thorax": (0, 0.5, 0), "neck": (0, 0.6, 0.03), "head": (0, 0.7, 0), "left_shoulder": (0.17, 0.45, 0),
    "left_elbow": (0.2, 0.17, 0), "left_wrist": (0.2, -0.07, 0.05), "right_shoulder": (-0.17, 0.45, 0),
    "right_elbow": (-0.2, 0.17, 0), "right_wrist": (-0.2, -0.07, 0.05),
}  # fmt: skip
PELVIS_HEIGHT, ANKLE_HEIGHT, BONE = 0.93, 0.08, 0.44
FEET_BEHIND = 0.07  # the ankle is behind the middle of the foot, which is below the body's centre


def person(pelvis, ankles):
    """World joints (T, 17, 3), y up, facing +z, of pelvis (T, 3) and left and right ankles (T, 2, 3)."""
    joints = np.zeros((len(pelvis), 17, 3))
    for name, place in _UPPER.items():
        joints[:, H36M17.index(name)] = pelvis + np.array(place)
    for side, name in enumerate(("left", "right")):
        hip, knee, ankle = (H36M17.index(f"{name}_{part}") for part in ("hip", "knee", "ankle"))
        joints[:, ankle] = ankles[:, side]
        joints[:, knee] = (joints[:, hip] + joints[:, ankle]) / 2 + [0, 0, 0.05]
        place_middle(joints, (hip, knee, ankle), (BONE, BONE))
    return joints


def standing(seconds=4.0):
    count = round(seconds * FPS)
    pelvis = np.tile([0.0, PELVIS_HEIGHT, 0.0], (count, 1))
    feet = np.array([[0.12, ANKLE_HEIGHT, -FEET_BEHIND], [-0.12, ANKLE_HEIGHT, -FEET_BEHIND]])
    return person(pelvis, np.tile(feet, (count, 1, 1)))


def walking(seconds=4.0, speed=1.2, step=0.5):
    """Along z: each foot stands for `step` s and swings for as long."""
    t = np.arange(round(seconds * FPS)) / FPS
    pelvis = np.stack([0 * t, np.full(len(t), PELVIS_HEIGHT - 0.03), speed * t], axis=1)
    ankles = np.zeros((len(t), 2, 3))
    stride = 2 * step * speed
    for side in range(2):
        phase = t / (2 * step) + 0.5 * side
        whole, part = np.floor(phase), phase - np.floor(phase)
        swing = np.clip(2 * part - 1, 0, 1)
        along = (whole + (swing - np.sin(2 * np.pi * swing) / (2 * np.pi))) * stride - side * stride / 2
        ankles[:, side] = np.stack(
            [np.full(len(t), 0.12 - 0.24 * side), ANKLE_HEIGHT + 0.1 * np.sin(np.pi * swing), along], axis=1
        )
    ankles[..., 2] += stride / 4 - FEET_BEHIND
    return person(pelvis, ankles)


def average(world):
    """The same person at the average height of adults, which a scene assumes without another measure of its scale."""
    lifted = seen_person(standing(0.5))
    return ADULT_M / stature(lengths_of(lifted.joints, lifted.sigma)) * world


def filmed(world, *, pitch=0.0, roll=0.0, distance=5.0, height=1.4, turn=0.0):
    """The person before a camera: Sequence3D as lifted without error, Sequence2D, and the vertical in its frame."""
    up = up_of(pitch, roll)
    ahead = np.array([0, 0, 1.0]) - up[2] * up
    ahead /= np.linalg.norm(ahead)
    rotation = np.stack([np.cross(up, -ahead), up, -ahead], axis=1)  # world axes (x right, y up, z towards) in columns
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    turned = world @ np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
    centre = np.array([0, height, distance])
    joints = (turned - centre) @ rotation.T
    times = np.arange(len(world)) / FPS
    root = joints[:, 0].astype(np.float32)
    sigma = np.full(joints.shape[:2], 30, np.float32)
    lifted = Sequence3D((joints - joints[:, :1]).astype(np.float32), root, sigma, times)
    scores = np.ones(joints.shape[:2], np.float32)
    seen = Sequence2D(project(joints, LENS).astype(np.float32), scores, times, Camera.of(SIZE, LENS), "h36m17")
    return lifted, seen, up


def seen_person(world, **camera):
    lifted, seen, _ = filmed(world, **camera)
    return person_of(lifted, seen)
