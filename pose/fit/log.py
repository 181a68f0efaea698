"""Statistics of the changes made by the fit to the 2D, for summaries."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pose.types import F64


@dataclass(slots=True)
class FitLog:
    """Statistics of fits.

    Attributes:
        windows: Per window of a person, the number of frames, the median change of the joints relative to the
            pelvis (mm), and the median noise of the 2D (mm). Lasting errors of the 2D count several times.
    """

    windows: list[tuple[int, float, float]] = field(default_factory=list)

    def add(self, before: NDArray[np.floating], after: NDArray[np.floating], noise: float) -> None:
        """Add a window.

        Args:
            before: (T, 17, 3) m, joints relative to the pelvis.
            after: (T, 17, 3) m, these joints after the fit.
            noise: Median standard deviation of the 2D at the distance of the body, m.
        """
        moved = np.linalg.norm(after[:, 1:] - before[:, 1:], axis=-1)
        self.windows.append((len(before), 1000 * float(np.median(moved)), 1000 * noise))

    @property
    def line(self) -> str:
        """A line for summaries, empty if nothing was fitted."""
        if not self.windows:
            return ""
        frames, moved, noise = np.array(self.windows).T
        people_frames = int(frames.sum())
        return (
            f"fit to the 2D: {people_frames} poses, changed by {_median(moved, frames):.1f} mm (median over joints); "
            f"assumed 2D error: {_median(noise, frames):.0f} mm at the distance of the body"
        )


def _median(values: F64, weights: F64) -> float:
    """The weighted median."""
    order = np.argsort(values)
    share = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(share, share[-1] / 2)])
