"""A Kalman filter of four measured quantities with constant velocity, for time steps of any length.

The unit of time is one frame at the reference rate (30 frames/s). The caller sets the process noise for a step of one
frame, and steps of 0.88 to 1.12 frames use it unchanged. For other steps, the acceleration is random, constant over the
step, and has the variance v of the velocity noise. The process noise then has the variances v step^4 / 4 for a position
and v step^2 for its velocity, and their covariance is v step^3 / 2. Source: Y. Bar-Shalom, X. R. Li and T. Kirubarajan,
"Estimation with applications to tracking and navigation", 2001, section 6.3.2.
"""

import numpy as np

from pose.structures.types import F64

MEASURED = 4
MAX_JITTER_FRAMES = 0.12  # tolerance for rounded and jittering time stamps, 4 ms at 30 Hz


class KalmanFilter:
    """The Kalman filter of one track; its state has four measured quantities and the velocities of the first V."""

    def __init__(self, measured: F64, covariance: F64, process: F64, measurement: F64) -> None:
        """Start with a first measurement and zero velocities; the variances are diagonals."""
        self.state = np.zeros(len(covariance))  # (4 + V,) the four measured quantities
        self.state[:MEASURED] = measured
        self.covariance = np.diag(covariance)  # (4 + V, 4 + V) covariance matrix of the state
        self.process = process  # (4 + V,) variances of the process noise of one frame
        self.measurement = measurement  # (4,) variances of the measurement noise; may be set before each update

    def predict(self, step: float) -> None:
        """Predict state and covariance `step` frames ahead; `step` may be fractional."""
        size = len(self.state)
        moving = np.arange(size - MEASURED)
        transition = np.eye(size)
        transition[moving, MEASURED + moving] = step
        self.state = transition @ self.state
        self.covariance = transition @ self.covariance @ transition.T + self._process_noise(step)

    def _process_noise(self, step: float) -> F64:
        noise = np.diag(self.process)
        if abs(step - 1) <= MAX_JITTER_FRAMES:
            return noise
        position = np.arange(len(self.state) - MEASURED)
        velocity = MEASURED + position
        variance = self.process[MEASURED:]
        noise[position, position] = variance * step**4 / 4
        noise[velocity, velocity] = variance * step**2
        noise[position, velocity] = noise[velocity, position] = variance * step**3 / 2
        return noise

    def update(self, measured: F64) -> None:
        """Update the state with a measurement (4,)."""
        # The covariance is updated in Joseph form, which keeps it symmetric and positive definite.
        seen = np.eye(MEASURED, len(self.state))
        noise = np.diag(self.measurement)
        spread = self.covariance @ seen.T
        gain = spread @ np.linalg.inv(seen @ spread + noise)
        self.state = self.state + gain @ (measured - seen @ self.state)
        rest = np.eye(len(self.state)) - gain @ seen
        self.covariance = rest @ self.covariance @ rest.T + gain @ noise @ gain.T
