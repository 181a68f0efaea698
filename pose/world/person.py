"""One person over time during the world steps: lifted 3D poses with their 2D keypoints."""

from dataclasses import dataclass

import numpy as np

from pose.structures.columns import column
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import H36M17, get_skeleton, to_h36m17
from pose.structures.types import F64

_J = len(H36M17)


@dataclass(frozen=True, slots=True)
class Person:
    """One person in T frames."""

    joints: F64 = column("", (_J, 3))  # (T, 17, 3) m relative to the pelvis, camera axes
    root: F64 = column("", (3,))  # (T, 3) m, position of the pelvis, camera axes
    sigma: F64 = column("", (_J,))  # (T, 17) mm, uncertainty of the joints
    times: F64 = column("", dtype="<f8")  # (T,) s, increasing
    # (T, 17, 2) detected joints in normalised camera coordinates, 0 where not detected.
    rays: F64 = column("", (_J, 2))
    scores: F64 = column("", (_J,))  # (T, 17) detection scores

    def __len__(self) -> int:
        return len(self.times)


def person_of(lifted: Sequence3D, seen: Sequence2D) -> Person:
    """Combine the 3D poses `lifted` of a person and the 2D keypoints `seen` from which they were lifted."""
    pixels, scores = to_h36m17(seen.keypoints, seen.scores, get_skeleton(seen.skeleton))
    rays = np.where(scores[..., None] > 0, seen.camera.unproject(pixels), 0.0)
    joints, root, sigma = (part.astype(np.float64) for part in (lifted.joints, lifted.root, lifted.sigma))
    return Person(joints, root, sigma, lifted.times, rays, scores.astype(np.float64))
