"""Conversion of one camera's results to tracks."""

from collections.abc import Iterable

import numpy as np

from pose.multiview.types import Track
from pose.repair.sides import with_lifted_sides
from pose.skeletons import Skeleton, to_h36m17
from pose.types import FrameResult

FEWEST_FRAMES = 5  # minimum frames of a useful track


def collect_tracks(results: Iterable[FrameResult], skeleton: Skeleton, camera: int) -> list[Track]:
    """All tracks of one camera.

    Args:
        results: Results of its pipeline.
        skeleton: Joint set of its keypoints.
        camera: Its index.
    """
    rows: dict[int, list[tuple[float, tuple[np.ndarray, ...]]]] = {}
    for result in results:
        if not len(result.people):
            continue
        sided, scores = with_lifted_sides(result, skeleton)
        xy, sure = to_h36m17(sided, scores, skeleton)
        for row, number in enumerate(result.people.ids.tolist()):
            poses = result.poses
            if not np.isfinite(poses.joints[row]).all() or not np.isfinite(poses.root[row]).all():
                continue
            parts = xy[row], sure[row], poses.joints[row], poses.root[row], poses.sigma[row]
            rows.setdefault(number, []).append((result.time, parts))
    return [
        Track(
            camera,
            number,
            np.array([time for time, _ in seen]),
            *map(np.stack, zip(*(p for _, p in seen), strict=True)),
        )
        for number, seen in sorted(rows.items())
        if len(seen) >= FEWEST_FRAMES
    ]
