"""What a result file says about the run that made it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import H36M17, Skeleton


@dataclass(frozen=True, slots=True)
class CameraInfo:
    """The pinhole camera that the 3D refers to.

    intrinsics: (3, 3) px. known: False where they follow from the assumed field of view; sizes and distances in space
    are then right only up to that assumption.
    """

    intrinsics: NDArray[np.float64]
    known: bool

    def fov_degrees(self, image_size: tuple[int, int]) -> float:
        """The angle that the longer side of a (width, height) px picture spans."""
        longer = max(image_size)
        focal = self.intrinsics[0, 0] if image_size[0] == longer else self.intrinsics[1, 1]
        return math.degrees(2 * math.atan(longer / 2 / focal))


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

    source: file name or address of the video. image_size: (width, height) px, upright. fps: average frames per second
    of the source; the time stamps are what counts. skeleton: of the 2D keypoints. settings: plain values (what
    `json.dumps` takes) that a reader needs to repeat the run.
    """

    source: str
    image_size: tuple[int, int]
    fps: float
    camera: CameraInfo
    skeleton: Skeleton
    models: tuple[ModelInfo, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    created_by: str = field(default_factory=_created_by)

    def to_dict(self) -> dict[str, Any]:
        """The head of `poses.json`, of plain values."""
        width, height = self.image_size
        return {
            "created_by": self.created_by,
            "source": {"name": self.source, "width": width, "height": height, "fps": round(self.fps, 6)},
            "camera": {
                "intrinsics": [[round(float(value), 4) for value in row] for row in self.camera.intrinsics],
                "status": "known" if self.camera.known else "assumed",
                "fov_degrees": round(self.camera.fov_degrees(self.image_size), 3),
            },
            "skeletons": {"keypoints": _skeleton(self.skeleton), "joints3d": _skeleton(H36M17)},
            "models": [{"role": m.role, "name": m.name, "sha256": m.sha256} for m in self.models],
            "settings": dict(self.settings),
        }


def _skeleton(skeleton: Skeleton) -> dict[str, Any]:
    return {"name": skeleton.name, "joints": list(skeleton.names), "edges": [list(edge) for edge in skeleton.edges]}
