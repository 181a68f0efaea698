"""Gravity and floor of each scene of a clip with cuts, as stored in result files."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pose.utils.json_values import Json, member, number, text
from pose.world.frame import UNKNOWN

if TYPE_CHECKING:
    from pose.world.scenes import Scene


@dataclass(frozen=True, slots=True)
class SceneInfo:
    """Description of one scene with people."""

    begin: float  # start of the scene in s
    found_by: str  # source of the vertical direction, one of the values of `World.found_by`
    sigma_degrees: float  # standard deviation of the vertical direction in degrees; NaN if unknown
    camera_height: float  # height of the camera above the floor in m

    @classmethod
    def of(cls, scene: "Scene") -> Self:
        """Make the description from a scene."""
        world, known = scene.ground.world, scene.found_by != UNKNOWN
        return cls(
            scene.begin,
            scene.found_by,
            world.sigma_degrees if known else math.nan,
            -world.floor if scene.floor_known else math.nan,
        )

    def to_dict(self) -> dict[str, Json]:
        """Convert to plain values for JSON; unknown numbers become None."""
        return {
            "begin": round(self.begin, 6),
            "found_by": self.found_by,
            "sigma_degrees": None if math.isnan(self.sigma_degrees) else round(self.sigma_degrees, 3),
            "camera_height": None if math.isnan(self.camera_height) else round(self.camera_height, 4),
        }

    @classmethod
    def from_json(cls, entry: Json) -> Self:
        """Make the object from the output of `to_dict`. Raises KeyError, TypeError or ValueError for invalid input."""
        degrees, height = (
            math.nan if (value := member(entry, name)) is None else number(value)
            for name in ("sigma_degrees", "camera_height")
        )
        return cls(number(member(entry, "begin")), text(member(entry, "found_by")), degrees, height)
