"""The result of a run with an axis for people and one for frames: the public face of a `Recording`.

`Pipeline.process` and `lift` make results, `load` reads one from a file, `convert` exports it to other formats.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pose.body.joint_angles import ALL_NAMES, JointAngles, joint_angles, with_ankles
from pose.body.soles import row_ankles, world_feet
from pose.errors import PoseError, UsageError
from pose.export import Selection
from pose.export.table import OBSERVERS, columns, observer_names, rows
from pose.results import Recording, load_poses
from pose.results.cameras import ResultCamera, result_cameras
from pose.results.recorded import write_results
from pose.structures.defaults import CAMERA, SPACES, WORLD
from pose.structures.hand_points import WRISTS
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, I64, Flags
from pose.utils.whole_file import checked_path
from pose.utils.written_files import saving
from pose.world.contacts import point_contacts

if TYPE_CHECKING:
    import pandas

    from pose.multiview.run import RecordedCameras
    from pose.results.recorded import RecordedRun


class Result:
    """All people of one recording: P people in F frames.

    In arrays of shape (P, F, ...), axis 0 follows `people` and axis 1 follows `times`. Values are NaN in frames without
    the person. Joints are Human3.6M-17 (`joint_names`).

    Attributes:
        table: The recording: columns of `poses.npz`, one row per person and frame.
        name: Name of the source.
    """

    def __init__(self, table: Recording, name: str) -> None:
        self.table, self.name = table, name

    @classmethod
    def of(cls, run: "RecordedRun | RecordedCameras") -> "Result":
        """Make the result of a run."""
        recording = Recording.of(run.results, run.info, complete=run.cut_short is None)
        return cls(recording, run.info.source)

    @property
    def people(self) -> tuple[int, ...]:
        """Track ids in increasing order, (P,)."""
        return self.table.people

    @property
    def times(self) -> F64:
        """Time stamps of the frames, (F,) s."""
        return self.table.timestamps

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the 17 joints, in the order of the arrays."""
        return H36M17.names

    @property
    def has_world(self) -> bool:
        """Whether the result has world coordinates (y up, floor at y = 0)."""
        return self.table.placed is not None

    @property
    def heights(self) -> dict[int, tuple[float, float]]:
        """Body height and half the width of its 68 % interval in m, by track id.

        The half width is 0 for a height given by the user. Empty if the result has no world.
        """
        info = self.table.world_info
        return {} if info is None else dict(info.heights)

    @property
    def doubtful(self) -> tuple[int, ...]:
        """Ids of tracks that may be false detections."""
        return self.table.doubtful_ids

    @property
    def cameras(self) -> list[ResultCamera]:
        """Intrinsics, poses and clock offsets of the cameras of a multi-camera result; empty for one camera."""
        return result_cameras(self.table.run)

    @property
    def seen_by(self) -> F64:
        """Number of cameras that observed each joint, (P, F, 17). 0 with one camera; NaN where a person is missing."""
        counts = np.unpackbits(self.table.seen_by[..., None], axis=-1).sum(axis=-1)
        return self._spread(counts.astype(np.float64), None)

    def joints(self, space: str | None = None, people: Sequence[int] | None = None) -> F64:
        """Return the joint positions. `partial` marks frames in which those of the world are unreliable.

        Args:
            space: 'world' (x to the camera's right, y up, floor at y = 0) or 'camera' (x right, y down, z forward).
                The default is 'world' if the result has a world, else 'camera'.
            people: Track ids; default all people.

        Returns:
            (P, F, 17, 3) m.

        Raises:
            UsageError: If the space or an id is unknown, or the result has no world.
        """
        table = self.table
        if self._space(space) == WORLD:
            assert table.placed is not None
            return self._spread(table.placed.joints, people)
        return self._spread(table.joints3d + table.root[:, None], people)

    def sigma(self, people: Sequence[int] | None = None) -> F64:
        """Return the uncertainty of each joint.

        Args:
            people: Track ids; default all people.

        Returns:
            (P, F, 17) mm, radius around each joint that contains the true joint with a probability of 68 %.

        Raises:
            UsageError: If an id is unknown.
        """
        return self._spread(self.table.sigma, people)

    def contacts(self, people: Sequence[int] | None = None) -> F64:
        """Return the contact probability of the feet.

        Args:
            people: Track ids; default all people.

        Returns:
            (P, F, 2) probability that the left and the right foot stand on the floor.

        Raises:
            UsageError: If an id is unknown, or the result has no world.
        """
        self._space(WORLD)
        assert self.table.placed is not None
        return self._spread(self.table.placed.contacts, people)

    def partial(self, people: Sequence[int] | None = None) -> Flags:
        """Return in which frames world joints are unreliable, because a person enters or leaves the view.

        Exports omit these frames with `trim`.

        Args:
            people: Track ids; default all people.

        Returns:
            (P, F) True for such frames; False where a person is missing.

        Raises:
            UsageError: If an id is unknown, or the result has no world.
        """
        self._space(WORLD)
        assert self.table.placed is not None
        return np.asarray(self._spread(self.table.placed.partial.astype(np.float64), people) == 1)

    def hands(self, space: str | None = None, people: Sequence[int] | None = None) -> F64:
        """Return the points of the hands: wrist, then four points of each finger. Requires the option `hands`.

        Args:
            space: 'world' or 'camera', as for `joints`.
            people: Track ids; default all people.

        Returns:
            (P, F, 2, 21, 3) m, left and right hand; NaN where a hand is not detected.

        Raises:
            UsageError: If the space or an id is unknown, or hands were not estimated.
        """
        table, chosen = self.table, self._space(space)
        if table.hand_joints3d is None:
            raise UsageError(f"{self.name} has no hands; process the video with hands=True (pose-run --hands)")
        points = np.asarray(table.hand_joints3d, np.float64)
        if chosen == CAMERA:
            return self._spread((table.joints3d + table.root[:, None])[:, WRISTS, None] + points, people)
        assert table.placed is not None
        assert table.world_info is not None
        if table.camera_rotation is not None:
            at = np.searchsorted(table.frames, table.frame_index)
            points = np.einsum("nij,nskj->nski", table.camera_rotation[at], points)
        placed = table.placed.joints[:, WRISTS, None] + points @ table.world_info.world.rotation.T
        return self._spread(placed, people)

    def faces(self, people: Sequence[int] | None = None) -> F64:
        """Return the points of the faces. Requires the option `face`.

        `pose.structures.face_points` computes angles and openness from them.

        Args:
            people: Track ids; default all people.

        Returns:
            (P, F, 468, 3) px: x and y in the image, and depth, positive away from the camera, relative to the centre of
            the head; NaN where a face is not detected.

        Raises:
            UsageError: If an id is unknown, or faces were not estimated.
        """
        table = self.table
        if table.face_keypoints is None or table.face_scores is None:
            raise UsageError(f"{self.name} has no faces; process the video with face=True (pose-run --face)")
        return self._spread(np.where(table.face_scores[:, None, None] > 0, table.face_keypoints, np.nan), people)

    def feet(self, space: str | None = None, people: Sequence[int] | None = None) -> F64:
        """Return heels and toes in 3D, computed from their 2D keypoints. docs/studies/feet.md reports the error.

        Args:
            space: 'world' or 'camera', as for `joints`.
            people: Track ids; default all people.

        Returns:
            (P, F, 2, 2, 3) m. Axis 2 is left, right foot, axis 3 is heel, big toe; NaN where not detected.

        Raises:
            UsageError: If the space or an id is unknown, the result has no world, or the 2D skeleton has no heels and
                toes.
        """
        table, chosen = self.table, self._space(space)
        self._space(WORLD)
        feet = world_feet(table, level=True)
        if feet is None:
            raise UsageError(f"{self.name}: the 2D skeleton {table.skeleton.name} has no heels and toes")
        return self._spread(feet[0 if chosen == CAMERA else 1], people)

    def foot_contacts(self, people: Sequence[int] | None = None) -> F64:
        """Return whether heels and toes touch the floor. docs/studies/feet.md reports the error.

        Args:
            people: Track ids; default all people.

        Returns:
            (P, F, 2, 2) 1 or 0. Axis 2 is left, right foot, axis 3 is heel, big toe; NaN where not detected.

        Raises:
            UsageError: If an id is unknown, the result has no world, or the 2D skeleton has no heels and toes.
        """
        self.feet(None, ())
        feet = world_feet(self.table, level=False)
        assert feet is not None
        placed = self._spread(feet[1], people)
        stands = np.array([point_contacts(one, self.times) for one in placed]).reshape(placed.shape[:-1])
        return np.where(np.isfinite(placed).all(axis=-1), stands, np.nan)

    def hand_scores(self, people: Sequence[int] | None = None) -> F64:
        """Return the probability that each hand is visible.

        Args:
            people: Track ids; default all people.

        Returns:
            (P, F, 2) for left and right, 0 if not detected. Sides are those in the image, before repair undoes
            left-right swaps.

        Raises:
            UsageError: If an id is unknown, or hands were not estimated.
        """
        if self.table.hand_scores is None:
            raise UsageError(f"{self.name} has no hands; process the video with hands=True (pose-run --hands)")
        return self._spread(self.table.hand_scores.max(axis=2), people)

    def angles(self, people: Sequence[int] | None = None) -> JointAngles:
        """Compute joint angles with their uncertainty.

        `trunk_lean` is relative to gravity if the result has a world, else to the vertical of the image.

        Args:
            people: Track ids; default all people.

        Returns:
            Angles and their standard deviations in degrees, (P, F, A) each, and the names of the A angles.

        Raises:
            UsageError: If an id is unknown.
        """
        up = np.array([0.0, 1.0, 0.0] if self.has_world else [0.0, -1.0, 0.0])
        ankles = self._spread(row_ankles(self.table, np.arange(len(self.table.id))), people)
        bodies = zip(self.joints(None, people), self.sigma(people), ankles, strict=True)
        parts = [with_ankles(joint_angles(joints, sigma, up), feet) for joints, sigma, feet in bodies]
        shape = (len(parts), len(self.times), len(ALL_NAMES))
        degrees = np.array([part.degrees for part in parts]).reshape(shape)
        return JointAngles(ALL_NAMES, degrees, np.array([part.deviations for part in parts]).reshape(shape))

    def to_dataframe(self, space: str | None = None) -> "pandas.DataFrame":
        """Convert to a table with one row per joint, person and frame.

        The columns are those of the export format `csv`: video, frame, time (s), person, joint, x, y, z (m), sigma_mm,
        root_sigma_mm, score, filled, doubtful, partial and space; with several cameras also observers. Unlike exports,
        the table contains the `partial` frames.

        Args:
            space: 'world' or 'camera', as for `joints`.

        Raises:
            UsageError: If the space is unknown, or the result has no world.
            PoseError: If pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise PoseError("to_dataframe needs pandas: pip install 'pose-run[formats]'") from error
        selection = Selection(self.table, self.name, space=self._space(space), trim=False)
        names = list(columns(selection))
        frames = [pandas.DataFrame(columns=names)]
        for part in rows(selection, selection.people):
            count, joints = part.values.shape[:2]
            values = {
                "video": selection.name, "frame": part.frame.repeat(joints), "time": part.time.repeat(joints),
                "person": part.person.repeat(joints), "joint": np.tile(part.names, count),
                "filled": part.filled.ravel(), "doubtful": np.isin(part.person, self.table.doubtful_ids).repeat(joints),
                "partial": part.partial.repeat(joints), "root_sigma_mm": part.root_sigma.repeat(joints),
                "space": selection.space.name,
            }  # fmt: skip
            measured = part.values.reshape(count * joints, -1)
            values |= dict(zip(("x", "y", "z", "sigma_mm", "score"), measured.T, strict=True))
            if OBSERVERS in names:
                values[OBSERVERS] = np.array(observer_names())[part.observers.ravel()]
            frames.append(pandas.DataFrame(values, columns=names))
        return pandas.concat(frames[1:] or frames, ignore_index=True)

    def save(self, path: Path | str, *, overwrite: bool = False) -> Path:
        """Write a `poses.npz`, which `load`, `pose-view` and `pose-convert` read.

        Args:
            path: File to write. A file that this package wrote, and that has not changed since, is replaced.
            overwrite: Whether the result may take the name of any other file, which is renamed to `NAME.kept`, with a
                warning.

        Returns:
            The path.

        Raises:
            UsageError: If the result was loaded from a file of `pose-lift`, which contains no metadata of a run, or the
                path is an existing file of the user.
            PoseError: If the file cannot be written.
        """
        if self.table.run is None:
            raise UsageError(
                f"{self.name}: cannot be saved as poses.npz, because a file of pose-lift has no metadata of a run"
            )
        target = checked_path(path, "path")
        with saving(target, overwrite=overwrite):
            write_results(self.table, self.table.run, {"npz": target}, complete=self.table.complete)
        return target

    def selection(self, space: str | None = None, heights: Mapping[int | None, float] | None = None) -> Selection:
        """Return the result as input of `pose.export`.

        Args:
            space: 'world' or 'camera', as for `joints`.
            heights: Body heights in m by track id, to which people are scaled; the id None stands for all people.

        Raises:
            UsageError: If the space or an id is unknown, or the result has no world.
        """
        return Selection(self.table, self.name, space=self._space(space), heights=heights)

    def _space(self, space: str | None) -> str:
        if space is None:
            return WORLD if self.has_world else CAMERA
        if space not in SPACES:
            raise UsageError(f"space: {space!r} is unknown; known: {', '.join(SPACES)}")
        if space == WORLD and not self.has_world:
            raise UsageError(
                f"space: {self.name} has no world (world=False, or the camera moved); give space={CAMERA!r}"
            )
        return space

    def _spread(
        self, values: "np.ndarray[tuple[int, ...], np.dtype[np.floating]]", people: Sequence[int] | None
    ) -> F64:
        """Rearrange (N, ...) values, one row per person and frame, to (P, F, ...) with NaN for missing rows."""
        all_people = self.people
        chosen = all_people if people is None else tuple(people)
        for person in chosen:
            if person not in all_people:
                allowed = ", ".join(map(str, all_people)) or "none"
                raise UsageError(f"people: unknown id {person}; allowed: {allowed}")
        spread = np.full((len(chosen), len(self.table.frames), *values.shape[1:]), math.nan)
        frames: I64 = np.searchsorted(self.table.frames, self.table.frame_index)
        for at, person in enumerate(chosen):
            rows = self.table.rows_of(person)
            spread[at, frames[rows]] = values[rows]
        return spread

    def __repr__(self) -> str:
        return f"<Result of {self.name}: {len(self.people)} people in {len(self.times)} frames>"


def load(path: Path | str) -> Result:
    """Read a result of `pose-run`, `pose-webcam` or `pose-lift`.

    Args:
        path: The `.npz` file, or a folder with `poses.npz`.

    Raises:
        UsageError: If the file does not exist.
        PoseError: If it is not a valid result.
    """
    path = checked_path(path, "path")
    table = load_poses(path)
    return Result(table, path.stem if table.run is None else table.run.source)
