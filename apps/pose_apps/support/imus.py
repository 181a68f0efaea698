"""`pose-lift` with recordings of inertial sensors."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import UsageError

if TYPE_CHECKING:
    from pose.structures.types import Array

DEFAULT_HEIGHT_M = 1.7
_DISTANCE_M = 4.0  # of the assumed camera from the person, at least


def are_imus(paths: Sequence[Path]) -> bool:
    """Return whether the inputs are recordings of sensors; UsageError if some are and others are not."""
    # Only these can be recordings; other files are not opened here.
    candidates = [path for path in paths if path.is_dir() or path.suffix.lower() in (".zip", ".mvnx", ".sto")]
    if not candidates:
        return False
    from pose.body.imu import is_imu_file

    found = [path for path in candidates if is_imu_file(path)]
    if found and len(found) < len(paths):
        other = next(path for path in paths if path not in found)
        raise UsageError(f"{other}: give 2D keypoints and recordings of inertial sensors in separate calls")
    return bool(found)


def imu_arrays(path: Path, height: float | None, heading: float | None) -> "tuple[dict[str, Array], str]":
    """Return the arrays of a recording's output file, and a line on it; default: 1.7 m, and an estimated heading."""
    import numpy as np

    from pose.body.imu import read_imus, solve_imus
    from pose_apps.support.sensors import placed_arrays

    metres = DEFAULT_HEIGHT_M if height is None else height
    motion = solve_imus(read_imus(path), metres, heading=None if heading is None else np.radians(heading))
    frames = len(motion.times)
    # The person faces an assumed level camera on the floor.
    placed = motion.joints - [0, 0, _DISTANCE_M + motion.joints[:, 0, 2].max()]
    names = list(motion.angles)
    arrays = placed_arrays(placed, 0.0, motion.times, np.tile(motion.sigma, (frames, 1)), metres) | {
        "contacts": motion.contacts.astype(np.float32),
        "angles": np.stack([motion.angles[name] for name in names], axis=1).astype(np.float32)
        if names
        else np.zeros((frames, 0), np.float32),
        "angle_names": np.array(names, np.str_),
        "sensors": np.array([" ".join(segments) for segments in motion.sensors], np.str_),
    }
    return arrays, _line(motion.calibration.heading_known, motion.calibration.heading_spread, list(motion.orientations))


def _line(heading_known: bool, spread: float, segments: list[str]) -> str:
    import numpy as np

    heading = "heading unknown (no knee or elbow bent): hip and shoulder angles may be swapped; give --imu-heading"
    if heading_known:
        heading = (
            "heading given" if np.isnan(spread) else f"heading from bending joints, +- {np.degrees(spread):.0f} degrees"
        )
    return f"sensors on {', '.join(segments)}; {heading}"
