"""Whether the scenes of a clip have the same vertical in the camera's axes.

Gravity and floor are those of all scenes together. After a cut to a camera with another tilt they are wrong for both.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from pose.world.gravity import Standing, body_direction_sum
from pose.world.rules import RULES, GravityRules
from pose.world.work import Work

_MIN_SECONDS = 1.0  # of upright bodies in a scene
_MIN_DEVIATIONS = 3.0


def scene_tilt(works: Iterable[Work], begins: Sequence[float], rules: GravityRules = RULES.gravity) -> float:
    """Return the largest angle between the verticals of two scenes, in degrees; 0 if none is significant.

    Args:
        works: People before they are placed; iterated once.
        begins: s, start of each scene, increasing.
        rules: Thresholds.
    """
    sums, seconds = np.zeros((len(begins), 3)), np.zeros(len(begins))
    for work in works:
        scene = np.searchsorted(begins, work.times[0], side="right") - 1  # tracks end at cuts
        direction, lasts = body_direction_sum(Standing(work.joints, work.root, work.times), rules)
        sums[scene] += direction
        seconds[scene] += lasts
    rows = (seconds >= _MIN_SECONDS) & (np.linalg.norm(sums, axis=1) > 0)
    up = sums[rows] / np.linalg.norm(sums[rows], axis=1, keepdims=True)
    variance = rules.body_sigma_rad**2 + rules.posture_sigma_rad**2 / seconds[rows]
    angles = np.arccos(np.clip(up @ up.T, -1, 1))
    significant = angles > _MIN_DEVIATIONS * np.sqrt(variance[:, None] + variance)
    return float(np.degrees(angles[significant].max(initial=0.0)))
