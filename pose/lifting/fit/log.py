"""Statistics of the changes made by the fit to 2D keypoints, for summaries."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F64


@dataclass(slots=True)
class FitLog:
    """Statistics of fits."""

    # Tuple for each fitted window of a person: number of frames; median change in mm of the joints relative to the
    # pelvis; median distance in mm between 2D keypoints and lifted joints before the fit (NaN without keypoints).
    windows: list[tuple[int, float, float]] = field(default_factory=list)

    def add(self, before: NDArray[np.floating], after: NDArray[np.floating], distance: F64) -> None:
        """Add the statistics of one fitted window."""
        change = np.linalg.norm(after[:, 1:] - before[:, 1:], axis=-1)
        detected = distance[np.isfinite(distance)]
        distance_m = float(np.median(detected)) if len(detected) else np.nan
        self.windows.append((len(before), 1000 * float(np.median(change)), 1000 * distance_m))

    @property
    def line(self) -> str:
        """One line of text that summarises all windows; empty if nothing was fitted."""
        if not self.windows:
            return ""
        frames, change, distance = np.array(self.windows).T
        line = (
            f"fit to the 2D keypoints: {frames.sum():.0f} poses, "
            f"changed by {_median(change, frames):.1f} mm (median over joints)"
        )
        detected = np.isfinite(distance)
        if not detected.any():
            return line
        distance_mm = _median(distance[detected], frames[detected])
        return (
            f"{line}; before it, 2D keypoints and lifted joints were {distance_mm:.0f} mm apart "
            "(median, at the distance of the body)"
        )


def _median(values: F64, weights: F64) -> float:
    """Return the weighted median."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulative, cumulative[-1] / 2)])
