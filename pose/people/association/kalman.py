"""A Kalman filter of four measured quantities with constant velocity, for time steps of any length.

Noise is given for a step of one frame of the reference rate. A step of nearly one frame uses it unchanged. Other steps
use the noise of a random acceleration that is constant over the step, whose variance is the velocity's noise
(Y. Bar-Shalom, X. R. Li and T. Kirubarajan, "Estimation with applications to tracking and navigation", 2001, 6.3.2):
step^4 / 4 for a position, step^2 for its velocity, step^3 / 2 for their covariance.
"""

import numpy as np

from pose.types import F64

MEASURED = 4
MAX_JITTER_FRAMES = 0.12  # 4 ms at 30 Hz, for rounded and jittering time stamps


class KalmanFilter:
    """A filter of one track.

    Attributes:
        state: (4 + V,) the measured quantities, then the velocities of the first V of them per frame.
        covariance: (4 + V, 4 + V) of the state.
        process: (4 + V,) variances of the process noise of one frame; may be set before each step.
        measurement: (4,) variances of the measurement noise; may be set before each step.
    """

    def __init__(self, measured: F64, covariance: F64, process: F64, measurement: F64) -> None:
        """Start at rest.

        Args:
            measured: (4,) first measurement.
            covariance: (4 + V,) initial variances.
            process: (4 + V,) variances of the process noise of one frame.
            measurement: (4,) variances of the measurement noise.
        """
        self.state = np.zeros(len(covariance))
        self.state[:MEASURED] = measured
        self.covariance = np.diag(covariance)
        self.process = process
        self.measurement = measurement

    def predict(self, step: float) -> None:
        """Predict `step` frames ahead."""
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
        """Update with a measurement (4,). The covariance is in Joseph form, which stays symmetric and positive."""
        seen = np.eye(MEASURED, len(self.state))
        noise = np.diag(self.measurement)
        spread = self.covariance @ seen.T
        gain = spread @ np.linalg.inv(seen @ spread + noise)
        self.state = self.state + gain @ (measured - seen @ self.state)
        rest = np.eye(len(self.state)) - gain @ seen
        self.covariance = rest @ self.covariance @ rest.T + gain @ noise @ gain.T
