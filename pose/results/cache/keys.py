"""Cache keys: one hash of everything that a result depends on."""

import functools
import hashlib
import json
import platform
import sys
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from pose.results.run_info import ModelInfo
from pose.structures.camera import Camera
from pose.structures.types import People, Poses3D
from pose.video import Source

SCHEMA = 5  # version of the entries' format; increasing it invalidates all existing entries
# Settings without effect on 2D.
LIFTING_SETTINGS = frozenset({"lifter", "lookahead", "repair", "constant_bones", "fit"})
# Settings that name files. A key contains the hashes of these files, not their paths.
FILE_SETTINGS = frozenset({"detector_model", "estimator_model"})
PACKAGES = ("pose", "pose_detectors")
# Libraries that decode, compute or draw: other versions may round differently.
LIBRARIES = ("ai-edge-litert", "av", "numpy", "onnxruntime", "onnxruntime-gpu", "opencv-python-headless", "torch")


class Computes(Protocol):
    """What a key depends on in a pipeline."""

    @property
    def config(self) -> Any:
        """Configuration, a dataclass."""

    @property
    def device(self) -> str:
        """Device of the networks."""

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """Networks with the hashes of their weights."""

    def camera(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> Camera:
        """Return the camera of the results."""


def hash_of(value: Any) -> str:
    """Return the SHA-256 of JSON-like values, in hexadecimal."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, allow_nan=False).encode()).hexdigest()


def people_key(pipeline: Computes, source: Source) -> str | None:
    """Return the cache key of the 2D people of a source; None without fixed content, as for cameras and streams."""
    content = source.content()
    if content is None:
        return None
    config = asdict(pipeline.config)
    settings = {name: value for name, value in config.items() if name not in LIFTING_SETTINGS | FILE_SETTINGS}
    networks = [[model.role, model.name, model.sha256] for model in pipeline.models if model.role != "lifter"]
    return hash_of(["people", content, settings, networks, pipeline.device, _names(People), environment()])


def poses_key(pipeline: Computes, source: Source, people: str) -> str:
    """Return the cache key of the 3D poses of a source with the key `people`; it covers all settings."""
    camera = pipeline.camera(source.info.size, source.info.focal_35mm)
    lifter = next(model for model in pipeline.models if model.role == "lifter")
    config = {name: value for name, value in asdict(pipeline.config).items() if name not in FILE_SETTINGS}
    seen = [camera.matrix.tolist(), camera.known, camera.size, camera.lens.name, camera.lens.coefficients]
    return hash_of(["poses", people, config, lifter.name, lifter.sha256, seen, _names(Poses3D)])


@functools.cache
def environment() -> list[Any]:
    """Return JSON values on which results depend: hash of the code, versions, processor and operating system."""
    python = [platform.machine(), sys.platform, *sys.version_info[:2]]
    return [SCHEMA, _code(), {name: _version(name) for name in LIBRARIES}, python]


def _code() -> str:
    digest = hashlib.sha256()
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None, package
        folder = Path(str(spec.origin)).parent
        for path in sorted(folder.rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _names(kind: type[Any]) -> list[str]:
    return [entry.name for entry in fields(kind)]
