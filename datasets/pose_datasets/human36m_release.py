"""Preparation of Human3.6M for the protocol of VideoPose3D, from the raw release.

The arrays equal those of the file `data_3d_h36m.npz` that VideoPose3D's scripts make.

The release has one CDF file per take, `S1/MyPoseFeatures/D3_Positions/Walking 1.cdf`, with `Pose` (1, T, 96): 32 joints
in millimetres, world frame.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pose.errors import PoseError, UsageError
from pose.structures.skeletons import H36M17
from pose.structures.types import F32
from pose.utils.archives import write_arrays
from pose.utils.options import REQUIRED, option
from pose.utils.written_files import writing
from pose_datasets.catalogue import PREPARED_FOLDER, Log, Preparation
from pose_datasets.human36m import (
    EXCLUDED_TAKES,
    FILE_3D,
    FILES_2D,
    KEPT_JOINTS,
    RAW_JOINTS,
    SUBJECTS,
    Positions2D,
    Positions3D,
    canonical_take,
    load_cameras,
    require_metres,
)

TAKES_PER_SUBJECT = 30


def prepare(source: Path, out: Path, progress: Callable[[str], None]) -> tuple[Path, Path]:
    """Write VideoPose3D's files from the CDF files of the release; UsageError without a subject."""
    found = {one: sorted((source / one / "MyPoseFeatures" / "D3_Positions").glob("*.cdf")) for one in SUBJECTS}
    if not any(found.values()):
        raise UsageError(
            f"{source}: contains no S1/MyPoseFeatures/D3_Positions/*.cdf; see docs/reference/benchmark-data.md"
        )
    positions: Positions3D = {}
    for subject, files in found.items():
        whole = "" if len(files) == TAKES_PER_SUBJECT else f"; the whole release has {TAKES_PER_SUBJECT}"
        progress(f"{subject}: {len(files)} takes{whole}")
        if files:
            positions[subject] = {
                canonical_take(file.stem): read_cdf(file)
                for file in files
                if (subject, file.stem) not in EXCLUDED_TAKES
            }
    out.mkdir(parents=True, exist_ok=True)
    path_3d, path_2d = out / FILE_3D, out / FILES_2D["gt"]
    metadata = {"layout_name": "h36m", "num_joints": len(H36M17), "keypoints_symmetry": _symmetry()}
    _save(path_3d, positions_3d=positions)
    _save(path_2d, positions_2d=project_all(positions), metadata=metadata)
    return path_3d, path_2d


def read_cdf(path: Path) -> F32:
    """Read one CDF file of `D3_Positions`, with its 32 joints (T, 32, 3) m in the world frame."""
    try:
        import cdflib
    except ImportError as error:
        raise PoseError("reading CDF files needs cdflib: pip install 'pose-run[human36m]'") from error
    try:
        pose = np.asarray(cdflib.CDF(path).varget("Pose"))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise PoseError(f"{path}: not a readable CDF file with a variable 'Pose' ({error})") from error
    if pose.shape[-1] != RAW_JOINTS * 3:
        raise PoseError(f"{path}: expected 96 numbers per frame (32 joints), got {pose.shape[-1]}")
    world = (pose.reshape(-1, RAW_JOINTS, 3) / 1000).astype(np.float32)
    require_metres(world, str(path))
    return world


def project_all(positions: Positions3D) -> Positions2D:
    """Project all recordings to the four cameras with distortion: lists of (T, 17, 2) px by subject and recording."""
    cameras = load_cameras()
    return {
        subject: {
            take: [
                camera.project(camera.to_camera(world[:, KEPT_JOINTS])).astype(np.float32)
                for camera in cameras[subject]
            ]
            for take, world in takes.items()
        }
        for subject, takes in positions.items()
    }


def _symmetry() -> list[list[int]]:
    return [[joint for joint in range(len(H36M17)) if H36M17.side(joint) == side] for side in ("left", "right")]


def _save(path: Path, **contents: object) -> None:
    with writing([path]):
        write_arrays(path, {key: np.array(value, dtype=object) for key, value in contents.items()}, compressed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Human36mPreparation(Preparation):
    """Options of `pose-prepare human36m`."""

    source: str = option(REQUIRED, "folder of the release, which contains S1/MyPoseFeatures/D3_Positions/*.cdf etc.")
    out: str = option(REQUIRED, PREPARED_FOLDER)

    @property
    def targets(self) -> list[Path]:
        """The files that `prepare` writes."""
        return [Path(self.out) / FILE_3D, Path(self.out) / FILES_2D["gt"]]

    def prepare(self, log: Log) -> None:
        """Write the prepared files, and report them by calling `log`."""
        for path in prepare(Path(self.source), Path(self.out), log):
            log(f"wrote {path}")
