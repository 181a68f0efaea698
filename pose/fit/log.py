"""Statistics of the changes made by the fit to 2D keypoints, for summaries."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pose.types import F64


@dataclass(slots=True)
class FitLog:
    """Statistics of fits.

    Attributes:
        windows: Tuple for each fitted window of a person: number of frames; median change in mm of the joints relative
            to the pelvis; median distance in mm between 2D keypoints and lifted joints before the fit (NaN without
            keypoints).
    """

    windows: list[tuple[int, float, float]] = field(default_factory=list)

    def add(self, before: NDArray[np.floating], after: NDArray[np.floating], distance: F64) -> None:
        """Add a window.

        Args:
            before: (T, 17, 3) m, joints relative to the pelvis.
            after: (T, 17, 3) m, joints relative to the pelvis after the fit.
            distance: (T, 17) m, distances at the depth of the body between 2D keypoints and projected joints before the
                fit; NaN for undetected keypoints.
        """
        moved = np.linalg.norm(after[:, 1:] - before[:, 1:], axis=-1)
        seen = distance[np.isfinite(distance)]
        apart = float(np.median(seen)) if len(seen) else np.nan
        self.windows.append((len(before), 1000 * float(np.median(moved)), 1000 * apart))

    @property
    def line(self) -> str:
        """Line of text for summaries; empty if nothing was fitted."""
        if not self.windows:
            return ""
        frames, moved, distance = np.array(self.windows).T
        line = (
            f"fit to the 2D: {frames.sum():.0f} poses, changed by {_median(moved, frames):.1f} mm (median over joints)"
        )
        seen = np.isfinite(distance)
        if not seen.any():
            return line
        apart = _median(distance[seen], frames[seen])
        return (
            f"{line}; before it, 2D and lifted joints were {apart:.0f} mm apart (median, at the distance of the body)"
        )


def _median(values: F64, weights: F64) -> float:
    """Return the weighted median."""
    order = np.argsort(values)
    share = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(share, share[-1] / 2)])
