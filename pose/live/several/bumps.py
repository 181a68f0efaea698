"""Detection of a moved camera. Its reprojection errors increase and stay high, or the motion of its people contradicts
all other cameras.
"""

from collections import deque
from collections.abc import Sequence
from math import isfinite
from statistics import median, quantiles

from pose.live.several.calibration import Calibration
from pose.live.several.fusion import CurrentPose
from pose.multiview.observations import BODY_HEIGHT

STAY_SECONDS = 2.0  # time for which errors must stay high
BASELINE_SECONDS = 3.0  # time after a calibration in which the normal error is measured
MIN_FRAMES = 20  # of a median
MIN_ERROR_RATIO = 3.0  # ratio of the latest to the normal error of a moved camera
MIN_ERROR = 0.02  # of a moved camera, relative to the height of a body in the image


class Bumps:
    """Detector of moved cameras. Create a new one for each calibration."""

    def __init__(self, calibration: Calibration) -> None:
        self._calibration = calibration
        self._errors: dict[int, deque[tuple[float, float]]] = {index: deque() for index in calibration.cameras}
        self._baseline: dict[int, float] = {}
        self._since: float | None = None  # time since which a camera is contradicted, s

    def update(self, time: float, people: Sequence[CurrentPose], contradicted: bool) -> bool:
        """Add a frame at `time` on the common clock, and return whether a camera, unknown which, was moved."""
        for index in self._errors:
            self._add(index, time, people)
        if not contradicted:
            self._since = None
        elif self._since is None:
            self._since = time
        stays = self._since is not None and time - self._since >= 0.5 * STAY_SECONDS
        return stays or any(self._error_ratio(index, time) > MIN_ERROR_RATIO for index in self._errors)

    def _add(self, index: int, time: float, people: Sequence[CurrentPose]) -> None:
        """Add a camera's median reprojection error over people, relative to the body height in the image."""
        # The median is over the people that several cameras see.
        camera, errors = self._calibration.cameras[index], self._errors[index]
        shares = []
        for person in people:
            residual = float(person.fused.residual[index, 0])
            if len(person.tracks) > 1 and isfinite(residual):
                depth = max(float(camera.to_camera(person.fused.joints[0, 0])[2]), 0.3)
                shares.append(residual * depth / (camera.focal * BODY_HEIGHT))
        if shares:
            errors.append((time, median(shares)))
        if (
            index not in self._baseline
            and errors
            and time - errors[0][0] > BASELINE_SECONDS
            and len(errors) >= MIN_FRAMES
        ):
            self._baseline[index] = median(share for _, share in errors)
        while errors and index in self._baseline and errors[0][0] < time - STAY_SECONDS:
            errors.popleft()

    def _error_ratio(self, index: int, time: float) -> float:
        """Return the ratio of the latest to the normal error of a camera; 0 if the errors are small or too few."""
        # The latest error is the lower quartile of the last `STAY_SECONDS`, so most of these errors must be large.
        errors = self._errors[index]
        if index not in self._baseline or len(errors) < MIN_FRAMES or time - errors[0][0] < 0.8 * STAY_SECONDS:
            return 0.0
        now = quantiles((share for _, share in errors), method="inclusive")[0]
        return now / max(self._baseline[index], 1e-6) if now > MIN_ERROR else 0.0
