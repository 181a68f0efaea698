"""The description of camera motion in result files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from pose.utils.json_values import Json, items, member, number, text
from pose.world.camera_motion.verdict import KINDS, CameraMotion, SceneMotion

if TYPE_CHECKING:
    from pose.world.camera_motion.decision import Decision
    from pose.world.run import PlacedRun

_DIGITS = 4
# Older results do not contain these numbers.
_OPTIONAL = (
    "focal_ratio",
    "focal_sigma",
    "distance",
    "distance_sigma",
    "drift",
)
_NUMBERS = tuple(entry.name for entry in fields(CameraMotion) if entry.name not in ("kind", "scenes"))


@dataclass(frozen=True, slots=True)
class MotionInfo:
    """Camera motion of a run."""

    motion: CameraMotion  # the measured camera motion
    # Whether world coordinates take the camera motion, or the cuts between scenes, into account. If True, each frame
    # has a `CameraView`.
    compensated: bool = False

    @classmethod
    def of(cls, decision: "Decision", run: "PlacedRun | None") -> Self:
        """Make the description from the decision on the camera motion, and the run in world coordinates if any."""
        return cls(decision.motion, run is not None and run.path is not None)

    def to_dict(self) -> dict[str, Json]:
        """Convert to plain values for JSON; unknown numbers become None."""
        numbers = {name: _rounded(getattr(self.motion, name)) for name in _NUMBERS}
        result: dict[str, Json] = {"kind": self.motion.kind, "compensated": self.compensated, **numbers}
        if self.motion.scenes:
            result["scenes"] = [
                {"number": scene.number, "begin": round(scene.begin, _DIGITS), "end": round(scene.end, _DIGITS),
                 "kind": scene.motion.kind, "world": scene.world}
                for scene in self.motion.scenes
            ]  # fmt: skip
        return result

    @classmethod
    def from_json(cls, document: Json) -> Self:
        """Make the object from the output of `to_dict`. Raises KeyError, TypeError or ValueError for invalid input."""
        found = document if isinstance(document, Mapping) else {}
        numbers = {
            name: _number(member(document, name)) for name in _NUMBERS if not (name in _OPTIONAL and name not in found)
        }
        scenes = tuple(_scene(one) for one in items(found.get("scenes", [])))
        return cls(CameraMotion(_kind(document), **numbers, scenes=scenes), member(document, "compensated") is True)


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, _DIGITS)


def _number(value: Json) -> float:
    return math.nan if value is None else number(value)


def _kind(document: Json) -> str:
    kind = text(member(document, "kind"))
    if kind not in KINDS:
        raise ValueError(f"camera_motion: expected one of {', '.join(KINDS)}, got {kind!r}")
    return kind


def _scene(document: Json) -> SceneMotion:
    begin, end = (number(member(document, name)) for name in ("begin", "end"))
    found = document if isinstance(document, Mapping) else {}
    motion = CameraMotion(_kind(document))
    # older results have no member `world`
    return SceneMotion(
        int(number(member(document, "number"))), begin, end, motion, world=found.get("world") is not False
    )
