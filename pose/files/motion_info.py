"""Camera motion in result files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from pose.camera_motion.verdict import KINDS, CameraMotion
from pose.system.json_values import Json, member, number, text

if TYPE_CHECKING:
    from pose.camera_motion.decision import Decision
    from pose.world.run import PlacedRun

_DIGITS = 4
_OPTIONAL = (
    "focal_ratio",
    "focal_sigma",
    "distance",
    "distance_sigma",
    "drift",
)  # results written before they were measured lack them


@dataclass(frozen=True, slots=True)
class MotionInfo:
    """Camera motion of a run.

    Attributes:
        motion: The measured motion.
        compensated: Whether the world accounts for it, or aligns several scenes; each frame then has a view.
    """

    motion: CameraMotion
    compensated: bool = False

    @classmethod
    def of(cls, decision: "Decision", run: "PlacedRun | None") -> Self:
        """Motion of a run, which is None without a world."""
        return cls(decision.motion, run is not None and run.path is not None)

    def to_dict(self) -> dict[str, Json]:
        """Plain values; unknown numbers are None."""
        numbers = {
            entry.name: None if math.isnan(value := getattr(self.motion, entry.name)) else round(value, _DIGITS)
            for entry in fields(self.motion)
            if entry.name != "kind"
        }
        return {"kind": self.motion.kind, "compensated": self.compensated, **numbers}

    @classmethod
    def from_json(cls, document: Json) -> Self:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for other values."""
        kind, found = text(member(document, "kind")), document if isinstance(document, Mapping) else {}
        if kind not in KINDS:
            raise ValueError(f"camera_motion: expected one of {', '.join(KINDS)}, got {kind!r}")
        numbers = {
            entry.name: math.nan if (value := member(document, entry.name)) is None else number(value)
            for entry in fields(CameraMotion)
            if entry.name != "kind" and not (entry.name in _OPTIONAL and entry.name not in found)
        }
        return cls(CameraMotion(kind, **numbers), member(document, "compensated") is True)
