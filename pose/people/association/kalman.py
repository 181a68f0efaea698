"""A Kalman filter of four measured quantities that move at constant velocity, for steps of any length.

Noise is given for a step of one frame of the reference rate. A step that is nearly one frame long takes it as it is.
Another takes the noise of a random acceleration that is constant over the step, with the velocity's noise for its
variance (Y. Bar-Shalom, X. R. Li and T. Kirubarajan, "Estimation with applications to tracking and navigation", 2001,
6.3.2): step^4 / 4 for a position, step^2 for its velocity, step^3 / 2 for both together.
"""

import numpy as np

from pose.types import F64

MEASURED = 4
NEARLY_ONE = 0.12  # frames: 4 ms at 30 Hz, for rounded and jittering time stamps


class KalmanFilter:
    """state (4 + V,): the measured quantities, then the velocities of the first V of them, a frame. covariance: of it.

    process (4 + V,) and measurement (4,): variances of the noise of one frame; they may be set before each step.
    """

    def __init__(self, measured: F64, covariance: F64, process: F64, measurement: F64) -> None:
        """measured: (4,) what was seen first. covariance: (4 + V,) variances to begin with."""
        self.state = np.zeros(len(covariance))
        self.state[:MEASURED] = measured
        self.covariance = np.diag(covariance)
        self.process = process
        self.measurement = measurement

    def predict(self, step: float) -> None:
        """Go on by `step` frames."""
        size = len(self.state)
        moving = np.arange(size - MEASURED)
        transition = np.eye(size)
        transition[moving, MEASURED + moving] = step
        self.state = transition @ self.state
        self.covariance = transition @ self.covariance @ transition.T + self._process_noise(step)

    def _process_noise(self, step: float) -> F64:
        noise = np.diag(self.process)
        if abs(step - 1) <= NEARLY_ONE:
            return noise
        position = np.arange(len(self.state) - MEASURED)
        velocity = MEASURED + position
        variance = self.process[MEASURED:]
        noise[position, position] = variance * step**4 / 4
        noise[velocity, velocity] = variance * step**2
        noise[position, velocity] = noise[velocity, position] = variance * step**3 / 2
        return noise

    def update(self, measured: F64) -> None:
        """Take in a measurement (4,). The covariance is that of Joseph's form, which stays symmetric and positive."""
        seen = np.eye(MEASURED, len(self.state))
        noise = np.diag(self.measurement)
        spread = self.covariance @ seen.T
        gain = spread @ np.linalg.inv(seen @ spread + noise)
        self.state = self.state + gain @ (measured - seen @ self.state)
        rest = np.eye(len(self.state)) - gain @ seen
        self.covariance = rest @ self.covariance @ rest.T + gain @ noise @ gain.T
