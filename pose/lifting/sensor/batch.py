"""Training batches of the sensor network, as arrays."""

from typing import NamedTuple

from pose.lifting.sensor.features import PersonView
from pose.structures.types import F32, F64, Flags


class SensorBatch(NamedTuple):
    """B windows of T frames of noisy skeletons with their truth."""

    features: F32  # (B, T, F) network inputs
    times: F64  # (B, T) s
    corrections: F32  # (B, T, 51) m, true corrections along the person's axes
    valid: Flags  # (B, T) frames with ground truth
    view: PersonView  # what restores joints from corrections
    sensor: F32  # (B, T, 17, 3) m, noisy joints
    truth: F32  # (B, T, 17, 3) m, true joints
