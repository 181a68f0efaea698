"""A moving skeleton as a depth camera gives it."""

import numpy as np

from pose.structures.skeletons import H36M17


def motion(frames=40, seed=0):
    """Return joints (1, T, 17, 3) m of a person who faces z, and times (1, T)."""
    rng = np.random.default_rng(seed)
    times = np.arange(frames)[None] / 30
    rest = rng.uniform(-0.4, 0.4, (17, 3))
    rest[H36M17.index("left_hip"), 0], rest[H36M17.index("left_shoulder"), 0] = 0.3, 0.4
    rest[H36M17.index("right_hip"), 0], rest[H36M17.index("right_shoulder"), 0] = -0.3, -0.4
    return rest + 0.1 * np.sin(3 * times[..., None, None] + rng.uniform(0, 6, (17, 3))) + [0.5, 1, -3], times
