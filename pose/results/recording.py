"""The result of a whole run: columns of frames and of people in frames."""

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pose.results.column_files import FORMAT_VERSION, ColumnFiles, read_columns
from pose.results.run_info import RunInfo, WorldInfo
from pose.results.schema import NAMES
from pose.structures.camera import Camera
from pose.structures.columns import Array, columns_of
from pose.structures.defaults import RESULT_NPZ
from pose.structures.face_points import Faces
from pose.structures.hand_points import Hands, swapped_with_arms
from pose.structures.skeletons import H36M17, Skeleton, to_h36m17
from pose.structures.types import F32, I64, CameraView, Flags, FrameResult, People, Placed, Poses3D


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The result of a whole run: columns of F frames and N rows, one row per person and frame, sorted by frame.

    The arrays are attributes with their names in `poses.npz` (`pose.results.schema`), such as `joints3d`. Arrays of
    parts
    that the result does not have, such as hands, are None.
    """

    columns: Mapping[str, Array]  # arrays or memory maps by name, (F, ...) or (N, ...)
    skeleton: Skeleton  # skeleton of the keypoints
    world_info: WorldInfo | None = None  # world frame and people's heights; None if the result has no world coordinates
    run: RunInfo | None = None  # metadata of the run; None for results of `pose-lift`
    complete: bool = True  # false if the run was interrupted
    format_version: int | None = None  # version of the file format; None for results of `pose-lift`

    @classmethod
    def of(
        cls, results: Iterable[FrameResult], info: RunInfo, folder: Path | None = None, *, complete: bool = True
    ) -> "Recording":
        """Collect the results of all frames of a run, in order, in unnamed files in a folder; PoseError if it is full.

        `complete` tells whether these are all frames of the source.
        """
        files = ColumnFiles((folder or Path(tempfile.gettempdir())) / RESULT_NPZ, info)
        try:
            for result in results:
                files.write(result)
            columns = read_columns(files.arrays(), len(info.skeleton))
        finally:
            files.close()
        return cls(
            columns=columns, skeleton=info.skeleton, world_info=info.world, run=info, complete=complete,
            format_version=FORMAT_VERSION,
        )  # fmt: skip

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name not in NAMES:
            raise AttributeError(f"a result has no array {name!r}")
        return cast(NDArray[Any], self.columns.get(name))  # None for a part that the result does not have

    def with_columns(self, **arrays: Array | None) -> "Recording":
        """Return the result with other arrays; None removes one."""
        columns = {**self.columns, **arrays}
        return replace(self, columns={name: values for name, values in columns.items() if values is not None})

    @cached_property
    def placed(self) -> Placed | None:
        """People in world coordinates; None if the result has none."""
        return Placed(**self._rows(Placed)) if "world" in self.columns else None

    @cached_property
    def people(self) -> tuple[int, ...]:
        """Track ids in increasing order."""
        return tuple(np.unique(self.id).tolist())

    def rows_of(self, person: int) -> I64:
        """Return the rows of a person, in the order of the frames."""
        order, ids = self._by_person
        first, end = np.searchsorted(ids, [person, person + 1])
        return order[first:end]

    @cached_property
    def _by_person(self) -> tuple[I64, I64]:
        """Order of the rows by id and frame, and the ids in this order."""
        order = np.argsort(self.id, kind="stable")
        return order, np.asarray(self.id)[order]

    @property
    def camera(self) -> Camera | None:
        """Intrinsics of the camera in whose frame the 3D poses are; None if unknown."""
        return None if self.run is None else self.run.camera

    @property
    def fps(self) -> float | None:
        """Average frames per second of the source; None if unknown."""
        return None if self.run is None else self.run.fps

    @property
    def doubtful(self) -> Flags:
        """Mask (N,) of the rows of tracks that may be false detections."""
        return np.isin(self.id, self.doubtful_ids) if self.placed is None else self.placed.doubtful

    @property
    def doubtful_ids(self) -> tuple[int, ...]:
        """Ids of tracks that may be false detections."""
        if self.world_info is not None:
            return self.world_info.doubtful
        return () if self.run is None else self.run.doubtful

    @property
    def keypoint_names(self) -> tuple[str, ...]:
        """Names of the J 2D joints, in the order of `keypoints`."""
        return self.skeleton.names

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the 17 3D joints, in the order of `joints3d`."""
        return H36M17.names

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.frames)

    def __getitem__(self, position: int) -> FrameResult:
        """Return the result of the frame at `position`, from 0 to F - 1."""
        index = int(self.frames[position])
        first, last = np.searchsorted(self.frame_index, [index, index + 1])
        rows = slice(int(first), int(last))
        time, parts = float(self.timestamps[position]), self._rows(People, rows)
        people = People(index, time, **parts, hands=self.hand_rows(rows), faces=self.face_rows(rows))
        return FrameResult(people, Poses3D(**self._rows(Poses3D, rows)), self.placed_rows(rows), self.view(position))

    def _rows(self, kind: type, rows: slice | I64 = slice(None)) -> dict[str, Any]:
        """Return the arguments of a data class of columns, for some rows."""
        return {one.attribute: self.columns[one.name][rows] for one in columns_of(kind)}

    def joint_scores(self, rows: slice | NDArray[np.integer]) -> F32:
        """Return the 2D scores (n, 17) that correspond to the 3D joints in the n table rows `rows`.

        Results of several cameras do not contain scores. For such results, the score is 1 if a camera observed the
        joint, else 0.
        """
        if self.run is not None and self.run.cameras:
            return (self.seen_by[rows] > 0).astype(np.float32)
        return to_h36m17(self.keypoints[rows], self.scores[rows], self.skeleton)[1]

    def view(self, position: int) -> CameraView | None:
        """Return the camera's orientation and position at frame `position`; None if it is static or unknown."""
        if self.camera_rotation is None:
            return None
        rotation = self.camera_rotation[position].astype(np.float64)
        zoom, sigma = float(self.camera_zoom[position]), float(self.camera_sigma[position])
        place = None if self.camera_position is None else self.camera_position[position].astype(np.float64)
        far = self.camera_position_sigma
        return CameraView(rotation, zoom, sigma, place, math.nan if far is None else float(far[position]))

    def hand_rows(self, rows: slice | I64) -> Hands | None:
        """Return the hands of the people in the table rows `rows`; None if hands were not estimated."""
        if self.hand_keypoints is None:
            return None
        swapped, sigma = self.swapped[rows], None
        shapes = np.nan_to_num(swapped_with_arms(self.hand_joints3d[rows], swapped))
        if self.hand_sigma is not None and self.run is not None and self.run.cameras:
            sigma = swapped_with_arms(self.hand_sigma[rows], swapped)
        return Hands(np.asarray(self.hand_keypoints[rows]), np.asarray(self.hand_scores[rows]), shapes, sigma)

    def face_rows(self, rows: slice | I64) -> Faces | None:
        """Return the faces of the people in the table rows `rows`; None if faces were not estimated."""
        if self.face_keypoints is None:
            return None
        return Faces(np.asarray(self.face_keypoints[rows]), np.asarray(self.face_scores[rows]))

    def placed_rows(self, rows: slice | I64) -> Placed | None:
        """Return the poses in world coordinates in the table rows `rows`; None if the result has none."""
        return None if self.placed is None else self.placed[rows]

    def __iter__(self) -> Iterator[FrameResult]:
        return (self[position] for position in range(len(self)))
