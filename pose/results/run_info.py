"""Metadata of a run in result files, with its scenes and camera motion."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera import Camera
from pose.structures.lenses import PINHOLE, Lens, lens_of_file
from pose.structures.skeletons import H36M17, SKELETONS, Skeleton
from pose.utils.json_values import Json, items, member, number, text
from pose.utils.shown import in_utf8
from pose.world.camera_motion.verdict import KINDS, CameraMotion, SceneMotion
from pose.world.frame import UNKNOWN, World

if TYPE_CHECKING:
    from pose.world.camera_motion.decision import Decision
    from pose.world.run import PlacedRun
    from pose.world.scenes import Scene

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


MAX_COEFFICIENT = 1e6  # maximum absolute distortion coefficient
MAX_NAME_CHARS = 4096  # maximum length of a path on Linux; tables repeat the name in every row


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One network of a run."""

    role: str  # 'detector', 'estimator' or 'lifter'
    name: str  # name of the network
    sha256: str  # SHA-256 of its weight file, hexadecimal


def _created_by() -> str:
    return f"pose-run {version('pose-run')}"


@dataclass(frozen=True, slots=True)
class WorldInfo:
    """World coordinates of a run: the world frame, and what is known about the people in it."""

    world: World  # world frame: vertical direction and floor
    # Body height and half the width of its 68 % interval, in m, by track id. The half width is 0 for a height given by
    # the user.
    heights: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    # Pairs (old id, new id) of tracks that were joined because they belong to one person.
    joined: tuple[tuple[int, int], ...] = ()
    dropped: tuple[int, ...] = ()  # ids of tracks removed because they were hardly observed
    doubtful: tuple[int, ...] = ()  # ids of tracks that may be false detections
    # Time in s during which the 2D keypoints of a limb contradict the person's bone lengths, by track id and limb.
    # Limbs without contradictions are omitted.
    inconsistent: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    # Shortest interval (lower, upper end) in m that contains the body height with a probability of 68 %, by track id;
    # only in offline runs.
    height_intervals: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    scenes: tuple[SceneInfo, ...] = ()  # scenes with people; empty unless cuts divide the clip into several of them

    @classmethod
    def of(cls, run: "PlacedRun") -> Self:
        """Make the description from a run with world coordinates."""
        joined, dropped = tuple(sorted(run.joined.items())), tuple(sorted(run.dropped))
        doubtful = tuple(sorted(run.doubtful))
        scenes = tuple(map(SceneInfo.of, run.scenes)) if len(run.scenes) > 1 else ()
        return cls(run.world, run.heights, joined, dropped, doubtful, run.inconsistent, run.height_intervals, scenes)

    def to_dict(self) -> dict[str, Json]:
        """Convert to plain values for JSON; unknown numbers become None."""
        world = self.world
        known = world.found_by != UNKNOWN
        return {
            "found_by": world.found_by,
            "confidence": round(world.confidence, 3),
            "sigma_degrees": round(world.sigma_degrees, 3) if known else None,
            "rotation": [[round(float(value), 6) for value in row] for row in world.rotation],
            "floor": round(world.floor, 4) if world.floor_known else None,
            "people": [
                {
                    "id": person,
                    "height": round(height, 3),
                    "height_sigma": round(sigma, 3),
                    **({"height_interval": [round(end, 3) for end in ends]} if ends else {}),
                    **({"inconsistent": dict(limbs)} if (limbs := self.inconsistent.get(person)) else {}),
                }
                for person, (height, sigma) in self.heights.items()
                for ends in [self.height_intervals.get(person)]
            ],
            "joined": [list(pair) for pair in self.joined],
            "dropped": list(self.dropped),
            "doubtful": list(self.doubtful),
            **({"scenes": [scene.to_dict() for scene in self.scenes]} if self.scenes else {}),
        }

    @classmethod
    def from_json(cls, entry: Json) -> Self:
        """Make the object from the output of `to_dict`. Raises KeyError, TypeError or ValueError for invalid input."""
        rotation = _matrix(member(entry, "rotation"))
        if rotation.shape != (3, 3) or not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-3):
            raise ValueError("world: expected a rotation matrix of 3 x 3 numbers")
        degrees, floor = member(entry, "sigma_degrees"), member(entry, "floor")
        world = World(
            rotation,
            0.0 if floor is None else number(floor),
            text(member(entry, "found_by")),
            float("nan") if degrees is None else number(degrees),
            floor is not None,
        )
        people = {
            int(number(member(one, "id"))): (number(member(one, "height")), number(member(one, "height_sigma")))
            for one in items(member(entry, "people"))
        }
        pairs = ([int(number(person)) for person in items(pair)] for pair in items(member(entry, "joined")))
        dropped, doubtful = (
            tuple(int(number(person)) for person in items(listed))
            for listed in (member(entry, "dropped"), entry.get("doubtful", []) if isinstance(entry, Mapping) else [])
        )
        inconsistent = {
            int(number(member(one, "id"))): {limb: number(member(limbs, limb)) for limb in limbs}
            for one in items(member(entry, "people"))
            if isinstance(one, Mapping) and isinstance(limbs := one.get("inconsistent"), Mapping)
        }
        intervals = {
            int(number(member(one, "id"))): _interval(one["height_interval"])
            for one in items(member(entry, "people"))
            if isinstance(one, Mapping) and "height_interval" in one
        }
        joined = tuple((one, other) for one, other in pairs)
        listed = entry.get("scenes", []) if isinstance(entry, Mapping) else []
        scenes = tuple(SceneInfo.from_json(scene) for scene in items(listed))
        return cls(world, people, joined, dropped, doubtful, inconsistent, intervals, scenes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Metadata of a run in its result file."""

    source: str  # file name or URL of the video
    fps: float  # average frames per second of the source, for information only; the time stamps are authoritative
    camera: Camera  # intrinsics of the camera in whose frame the 3D poses are
    skeleton: Skeleton  # skeleton of the 2D keypoints
    models: tuple[ModelInfo, ...] = ()  # networks of the run
    # Settings that are required to repeat the run, as JSON values.
    settings: Mapping[str, Json] = field(default_factory=dict)
    world: WorldInfo | None = None  # world coordinates of the results; None if the results have none
    doubtful: tuple[int, ...] = ()  # ids of tracks that may be false detections, for results without world coordinates
    motion: MotionInfo | None = None  # camera motion; None if unknown
    # Descriptions of several cameras, as `pose.multiview.calibration_files.camera_json` returns them; empty for one
    # camera.
    cameras: tuple[Mapping[str, Json], ...] = ()
    created_by: str = field(default_factory=_created_by)  # name and version of the program

    @property
    def has_hands(self) -> bool:
        """Whether hands were estimated."""
        return self.settings.get("hands") is True

    @property
    def has_faces(self) -> bool:
        """Whether faces were estimated."""
        return self.settings.get("face") is True

    @property
    def stream(self) -> int | None:
        """Number of the video stream that was chosen; None for the largest."""
        stream = self.settings.get("stream")
        return stream if isinstance(stream, int) and stream >= 0 else None

    def __post_init__(self) -> None:
        """Convert names that are not valid UTF-8 to text that every format supports."""
        object.__setattr__(self, "source", in_utf8(self.source))
        object.__setattr__(self, "created_by", in_utf8(self.created_by))

    @classmethod
    def from_json(cls, head: Json) -> Self:
        """Make the metadata of `to_dict`'s rounded output; KeyError, TypeError or ValueError if it is invalid."""
        source, camera, settings = member(head, "source"), member(head, "camera"), member(head, "settings")
        if not isinstance(head, Mapping) or not isinstance(settings, Mapping):
            raise TypeError("settings: expected an object")
        return cls(
            source=_name(member(source, "name")),
            fps=number(member(source, "fps")),
            camera=Camera(
                _matrix(member(camera, "intrinsics")),
                member(camera, "status") == "known",
                (int(number(member(source, "width"))), int(number(member(source, "height")))),
                _lens(camera),
            ),
            skeleton=SKELETONS[text(member(member(member(head, "skeletons"), "keypoints"), "name"))],
            models=tuple(
                ModelInfo(*(text(member(model, key)) for key in ("role", "name", "sha256")))
                for model in items(member(head, "models"))
            ),
            settings=settings,
            world=None if (entry := head.get("world")) is None else WorldInfo.from_json(entry),
            doubtful=tuple(int(number(track)) for track in items(head.get("doubtful", []))),
            motion=None if (entry := head.get("camera_motion")) is None else MotionInfo.from_json(entry),
            cameras=_cameras(head.get("cameras", [])),
            created_by=text(member(head, "created_by")),
        )

    def to_dict(self) -> dict[str, Json]:
        """Return the header of `poses.json` as plain values."""
        width, height = self.camera.size
        return {
            "created_by": self.created_by,
            "source": {"name": self.source, "width": width, "height": height, "fps": round(self.fps, 6)},
            "camera": {
                "intrinsics": [[round(float(value), 4) for value in row] for row in self.camera.matrix],
                "status": "known" if self.camera.known else "assumed",
                "fov_degrees": round(self.camera.fov_degrees, 3),
                **(
                    {"lens": self.camera.lens.name, "distortion": list(self.camera.lens.in_file)}
                    if self.camera.distorted
                    else {}
                ),
            },
            "skeletons": {"keypoints": _skeleton(self.skeleton), "joints3d": _skeleton(H36M17)},
            "models": [{"role": m.role, "name": m.name, "sha256": m.sha256} for m in self.models],
            "settings": dict(self.settings),
            "camera_motion": None if self.motion is None else self.motion.to_dict(),
            "world": None if self.world is None else self.world.to_dict(),
            **({"doubtful": list(self.doubtful)} if self.world is None else {}),
            **({"cameras": [dict(camera) for camera in self.cameras]} if self.cameras else {}),
        }


def _lens(camera: Json) -> Lens:
    if not isinstance(camera, Mapping) or "lens" not in camera:
        return PINHOLE
    coefficients = tuple(number(value) for value in items(member(camera, "distortion")))
    if not all(abs(value) <= MAX_COEFFICIENT for value in coefficients):
        raise ValueError(f"distortion: expected coefficients of at most {MAX_COEFFICIENT:g}")
    return lens_of_file(text(camera["lens"]), coefficients)


def _name(entry: Json) -> str:
    name = text(entry)
    if len(name) > MAX_NAME_CHARS:
        raise ValueError(f"source: a name of {len(name)} characters; at most {MAX_NAME_CHARS} are read")
    return name


def _cameras(entry: Json) -> tuple[Mapping[str, Json], ...]:
    cameras = tuple(camera for camera in items(entry) if isinstance(camera, Mapping))
    if len(cameras) != len(items(entry)):
        raise TypeError("cameras: expected a list of JSON objects")
    return cameras


def _interval(entry: Json) -> tuple[float, float]:
    shortest, tallest = map(number, items(entry))
    return shortest, tallest


def _matrix(rows: Json) -> NDArray[np.float64]:
    return np.array([[number(value) for value in items(row)] for row in items(rows)], np.float64)


def _skeleton(skeleton: Skeleton) -> dict[str, Json]:
    return {"name": skeleton.name, "joints": list(skeleton.names), "edges": [list(edge) for edge in skeleton.edges]}
