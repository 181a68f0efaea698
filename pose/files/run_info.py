"""What a result file says about the run that made it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Self

import numpy as np

from pose.camera import Camera
from pose.skeletons import H36M17, SKELETONS, Skeleton


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One network that took part. role: 'detector', 'estimator', 'lifter'. sha256: of its weight file, in hex."""

    role: str
    name: str
    sha256: str


def _created_by() -> str:
    return f"pose-run {version('pose-run')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Everything about a run that is known before its first frame.

    source: file name or address of the video. fps: average frames per second of the source; the time stamps are what
    counts. camera: that the 3D refers to. skeleton: of the 2D keypoints. settings: plain values (what `json.dumps`
    takes) that a reader needs to repeat the run.
    """

    source: str
    fps: float
    camera: Camera
    skeleton: Skeleton
    models: tuple[ModelInfo, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
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
        }


def _skeleton(skeleton: Skeleton) -> dict[str, Any]:
    return {"name": skeleton.name, "joints": list(skeleton.names), "edges": [list(edge) for edge in skeleton.edges]}
