"""Evidence of a person for the scene."""

from dataclasses import dataclass

from pose.structures.types import F64


@dataclass(frozen=True, slots=True)
class PersonEvidence:
    """Measurements of one person at the lifted size, in the axes of the camera or of its path."""

    directions: F64  # (G, 3) unit vectors from the feet to the centre of mass while standing
    centres: F64  # (G, 3) m, position of the pelvis for each direction
    feet: F64  # (K, 3) m, positions of ankles that stand
    axes: F64  # (K, 3) unit vectors from the feet to the centre of mass in these frames
    height: float  # m
    height_given: bool
    child: float  # probability of a child, from the proportions
    seconds: float  # duration, for the weights of people
