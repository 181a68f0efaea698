"""Made-up motion for tests: a standing body with constant bone lengths that waves its limbs."""

import numpy as np
from pose_datasets import rotations
from pose_datasets.mapping import POINTS
from pose_datasets.mocap import Clip

# Metres, y up, facing z, left towards x; in the order of POINTS.
STANDING = np.array(
    [
        [0, 0.93, 0], [-0.1, 0.93, 0], [-0.1, 0.5, 0.02], [-0.1, 0.08, 0], [0.1, 0.93, 0], [0.1, 0.5, 0.02],
        [0.1, 0.08, 0], [0, 1.17, 0], [0, 1.43, 0], [0, 1.57, 0.03], [0, 1.69, 0], [0.18, 1.42, 0],
        [0.2, 1.14, -0.02], [0.22, 0.88, 0.05], [-0.18, 1.42, 0], [-0.2, 1.14, -0.02], [-0.22, 0.88, 0.05],
        [0, 1.6, 0.11], [0, 1.61, 0.01],
    ]
)  # fmt: skip
assert len(STANDING) == len(POINTS)


def waving_clip(subject: str = "01", seconds: float = 6.0, rate: float = 60.0, speed: float = 1.0) -> Clip:
    """A person who turns on the spot, walks along z and swings both arms about the shoulders."""
    times = np.arange(int(seconds * rate) + 1) / rate
    points = np.tile(STANDING, (len(times), 1, 1))
    for shoulder, arm, sign in ((11, [12, 13], 1), (14, [15, 16], -1)):
        swing = rotations.about_axis("x", sign * 0.8 * np.sin(2 * np.pi * 0.7 * speed * times))
        points[:, arm] = points[:, [shoulder]] + (points[:, arm] - points[:, [shoulder]]) @ np.swapaxes(swing, -1, -2)
    points = points @ np.swapaxes(rotations.about_axis("y", 0.4 * speed * times), -1, -2)
    points[..., 2] += 0.5 * speed * times[:, None]
    return Clip(subject, f"{subject}_01", points.astype(np.float32), times)
