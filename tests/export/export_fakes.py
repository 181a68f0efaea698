"""Motion with known turns."""

import numpy as np

from pose.body.skeleton import NAMES, SkeletonMotion
from pose.structures import rotations


def wave(frames: int, rng: np.random.Generator, size: float = 0.7) -> SkeletonMotion:
    """Smooth turns: a hinge at each knee and elbow, anything at hips, shoulders and the root, none in the trunk."""
    phase = np.arange(frames) / 40
    turns = np.tile(rotations.IDENTITY, (frames, 17, 1))

    def swing(axis, most, least=0.0):
        share = 0.5 + 0.5 * np.sin(phase * rng.uniform(0.7, 1.5) + rng.uniform(0, 6))
        return rotations.about(np.asarray(axis, float), least + (most - least) * share)

    for joint, axis in (("pelvis", (0, 1, 0)), ("left_hip", None), ("right_hip", None), ("left_shoulder", None),
                        ("right_shoulder", None)):  # fmt: skip
        axis = rng.normal(size=3) if axis is None else np.array(axis, float)
        turns[:, NAMES.index(joint)] = swing(axis / np.linalg.norm(axis), size, -size)
    for joint, axis in (("left_knee", (1, 0, 0)), ("right_knee", (1, 0, 0)), ("left_elbow", (0, -1, 0)),
                        ("right_elbow", (0, 1, 0))):  # fmt: skip
        turns[:, NAMES.index(joint)] = swing(axis, 1.5, 0.4)
    root = np.stack([np.sin(phase), 1 + 0.1 * np.sin(2 * phase), -4 + 0.3 * np.cos(phase)], axis=1)
    return SkeletonMotion(root, turns)
