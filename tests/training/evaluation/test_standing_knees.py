"""Which legs the benchmark takes for straight: those the image shows at full length, not those bent towards it."""

import numpy as np

from benchmarks import standing_knees
from pose.structures.camera import intrinsics_from_fov, project
from pose.structures.skeletons import H36M17

INTRINSICS = intrinsics_from_fov((1280, 720))


def seen(bends: np.ndarray, towards_camera: bool) -> np.ndarray:
    """(T, 17, 2) px of someone 4 m away whose right knee is bent by `bends` (T,), the foot on the same vertical."""
    joints = np.zeros((len(bends), 17, 3))
    joints[:, H36M17.names.index("thorax")] = [0, -0.5, 0]
    half = np.radians(bends) / 2
    knee = np.stack([0.4 * np.sin(half), 0.4 * np.cos(half), 0 * half], axis=-1)
    if towards_camera:
        knee = knee[:, [2, 1, 0]] * [1, 1, -1]
    for side, x in (("right", -0.1), ("left", 0.1)):
        hip, knee_at, ankle = (H36M17.names.index(f"{side}_{part}") for part in ("hip", "knee", "ankle"))
        joints[:, hip] = [x, 0, 0]
        joints[:, knee_at] = joints[:, hip] + (knee if side == "right" else [0, 0.4, 0])
        joints[:, ankle] = joints[:, hip] + (2 * knee * [0, 1, 0] if side == "right" else [0, 0.8, 0])
    return project(joints + np.array([0, 0, 4.0]), INTRINSICS)


def test_bent_knees_do_not_stand_whichever_way_they_point():
    times = np.arange(60) / 30
    bends = np.where(np.arange(60) % 20 < 10, 0.0, 50.0)
    for towards_camera in (False, True):
        straight, _ = standing_knees.standing(times, seen(bends, towards_camera), np.ones((60, 17)))
        assert straight[:, 1].all()
        np.testing.assert_array_equal(straight[:, 0], bends == 0)


def test_a_hidden_ankle_does_not_count():
    scores = np.ones((30, 17))
    scores[10:20, H36M17.names.index("left_ankle")] = 0.2
    straight, bent = standing_knees.standing(np.arange(30) / 30, seen(np.zeros(30), False), scores)
    assert straight[:, 0].all()
    np.testing.assert_array_equal(straight[:, 1], scores[:, H36M17.names.index("left_ankle")] > 0.5)
    assert bent.max() < 1
