"""What a result file says about the run that made it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Self

import numpy as np

from pose.camera import Camera
from pose.skeletons import H36M17, SKELETONS, Skeleton
from pose.world.frame import UNKNOWN, World


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One network that took part. role: 'detector', 'estimator', 'lifter'. sha256: of its weight file, in hex."""

    role: str
    name: str
    sha256: str


def _created_by() -> str:
    return f"pose-run {version('pose-run')}"


@dataclass(frozen=True, slots=True)
class WorldInfo:
    """The world of a run, and what is known of its people.

    world: where the floor is. heights: by id, a person's height and its standard deviation, m; 0 where the height was
    given. joined: (id, the id it became) of tracks that turned out to be one person's.
    """

    world: World
    heights: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    joined: tuple[tuple[int, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values; a number that is not known is None."""
        world = self.world
        known = world.found_by != UNKNOWN
        return {
            "found_by": world.found_by,
            "confidence": round(world.confidence, 3),
            "sigma_degrees": round(world.sigma_degrees, 3) if known else None,
            "rotation": [[round(float(value), 6) for value in row] for row in world.rotation],
            "floor": round(world.floor, 4) if world.floor_known else None,
            "people": [
                {"id": person, "height": round(height, 3), "height_sigma": round(sigma, 3)}
                for person, (height, sigma) in self.heights.items()
            ],
            "joined": [list(pair) for pair in self.joined],
        }

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`. Raises KeyError, TypeError or ValueError for anything else."""
        rotation = np.array(said["rotation"], np.float64)
        if rotation.shape != (3, 3) or not np.isfinite(rotation).all():
            raise ValueError("world: expected a rotation of 3 x 3 numbers")
        sigma = float("nan") if said["sigma_degrees"] is None else float(said["sigma_degrees"])
        floor = said["floor"]
        world = World(rotation, float(floor or 0.0), str(said["found_by"]), sigma, floor is not None)
        people = {int(one["id"]): (float(one["height"]), float(one["height_sigma"])) for one in said["people"]}
        return cls(world, people, tuple((int(a), int(b)) for a, b in said["joined"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Everything about a run that is known before its first frame.

    source: file name or address of the video. fps: average frames per second of the source; the time stamps are what
    counts. camera: that the 3D refers to. skeleton: of the 2D keypoints. settings: plain values (what `json.dumps`
    takes) that a reader needs to repeat the run. world: that the results were put into; None where they were not.
    """

    source: str
    fps: float
    camera: Camera
    skeleton: Skeleton
    models: tuple[ModelInfo, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    world: WorldInfo | None = None
    created_by: str = field(default_factory=_created_by)

    @classmethod
    def from_dict(cls, head: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`, to its decimals. Raises KeyError, TypeError or ValueError for anything else."""
        source, camera = head["source"], head["camera"]
        return cls(
            source=str(source["name"]),
            fps=float(source["fps"]),
            camera=Camera(
                np.array(camera["intrinsics"], np.float64),
                camera["status"] == "known",
                (int(source["width"]), int(source["height"])),
            ),
            skeleton=SKELETONS[head["skeletons"]["keypoints"]["name"]],
            models=tuple(ModelInfo(model["role"], model["name"], model["sha256"]) for model in head["models"]),
            settings=head["settings"],
            world=None if (said := head.get("world")) is None else WorldInfo.from_dict(said),
            created_by=str(head["created_by"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """The head of `poses.json`, of plain values."""
        width, height = self.camera.size
        return {
            "created_by": self.created_by,
            "source": {"name": self.source, "width": width, "height": height, "fps": round(self.fps, 6)},
            "camera": {
                "intrinsics": [[round(float(value), 4) for value in row] for row in self.camera.matrix],
                "status": "known" if self.camera.known else "assumed",
                "fov_degrees": round(self.camera.fov_degrees, 3),
            },
            "skeletons": {"keypoints": _skeleton(self.skeleton), "joints3d": _skeleton(H36M17)},
            "models": [{"role": m.role, "name": m.name, "sha256": m.sha256} for m in self.models],
            "settings": dict(self.settings),
            "world": None if self.world is None else self.world.to_dict(),
        }


def _skeleton(skeleton: Skeleton) -> dict[str, Any]:
    return {"name": skeleton.name, "joints": list(skeleton.names), "edges": [list(edge) for edge in skeleton.edges]}
