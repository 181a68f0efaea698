"""Points of a person for formats with markers: the 17 joints, and heels and toes where the 2D shows them."""

from collections.abc import Iterator, Sequence

import numpy as np

from pose.body.soles import track_foot_points
from pose.body.space import z_upward
from pose.body.timeline import TrackSpan
from pose.body.tracks import Track
from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.world.foot_points import foot_joints

FOOT_NAMES = ("left_heel", "left_big_toe", "right_heel", "right_big_toe")


def marker_names(track: Track) -> tuple[str, ...]:
    """Return the names of the points: 17 joints, followed by heels and toes if the 2D skeleton has them."""
    table = track.recording.table
    has_feet = table.camera is not None and foot_joints(table.skeleton) is not None
    return (*H36M17.names, *(FOOT_NAMES if has_feet else ()))


def marker_spans(track: Track, names: Sequence[str], *, z_up: bool = False) -> Iterator[tuple[TrackSpan, F64]]:
    """Yield all frames in portions, with the named points (n, M, 3) m in file axes; NaN where a point is missing.

    The axes have y up, or z with `z_up`.
    """
    columns = [(*H36M17.names, *FOOT_NAMES).index(name) for name in names]
    has_feet = max(columns) >= len(H36M17)
    for span in track.spans():
        points = span.joints
        if has_feet:
            feet = track_foot_points(track, np.arange(span.start, span.start + len(span.times)))
            feet[~span.known] = np.nan
            points = np.concatenate([points, feet.reshape(-1, len(FOOT_NAMES), 3)], axis=1)
        placed = track.space.to_file(points[:, columns])
        yield span, z_upward(placed) if z_up else placed
