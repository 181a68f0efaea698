"""Human3.6M, protocol M: MotionBERT's pickle and its 2.5D image space. Its errors are not comparable with protocol V.

`h36m_sh_conf_cam_source_final.pkl` holds `train` and `test`, each a dictionary of arrays over all frames of all videos:
`joint_2d` (N, 17, 2) px of a stacked-hourglass detector, `confidence` (N, 17[, 1]), `joint3d_image` (N, 17, 3) px,
`camera_name`, `source` (the video); `test` adds `action`, `2.5d_factor` (N,) mm/px and `joints_2.5d_image` (N, 17, 3)
mm. (W. Zhu et al., "MotionBERT: a unified perspective on learning human motion representations", ICCV 2023.)

The ground truth is `joint3d_image` times the `2.5d_factor` of the frame, not a metric pose. Predictions are multiplied
by the same factor, so the protocol does not evaluate the size of the person.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError, UsageError
from pose.structures.labelled import ImageSpace, LabelledSequence, check_metres
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, Array
from pose.utils.archives import open_arrays, write_arrays
from pose.utils.options import REQUIRED, option
from pose.utils.written_files import writing
from pose_datasets.catalogue import PREPARED_FOLDER, Log, Preparation
from pose_datasets.human36m import ACTIONS, FPS, StudioCamera, canonical_take, load_cameras, require_pixels
from pose_datasets.pickles import load_pickle

Table = dict[str, Array]

FILE = "h36m_sh_conf_cam_source_final.pkl"
PREPARED = "h36m_sh_conf_cam_source_final.npz"
COLUMNS = ("joint_2d", "confidence", "joint3d_image", "camera_name", "source")
TEST_COLUMNS = ("action", "2.5d_factor", "joints_2.5d_image")
CLIP_FRAMES = 243
# The motion capture of these S9 takes is wrong; all their cameras are excluded.
EXCLUDED_VIDEOS = {"s_09_act_05_subact_02", "s_09_act_10_subact_02", "s_09_act_13_subact_01"}
# The training half has no factor. A pose in image space determines the pose up to scale, which is set by this sum of
# the 16 bone lengths, for a person of average height. The protocol's results do not depend on it.
BONE_SUM = 4.2


def load_test(folder: Path, clip_frames: int = CLIP_FRAMES) -> list[LabelledSequence]:
    """Load the Human3.6M test videos for the protocol of MotionBERT, one sequence per video, with the video's name.

    Videos are divided into clips without overlap, and lifters get one clip at a time. Frames after the last complete
    clip of a video are not evaluated; a video shorter than one clip is evaluated completely. The ground truth is
    (T, 17, 3) in MotionBERT's 2.5D space: image coordinates times a factor in m/px per frame.
    """
    table = _read(folder, "test", TEST_COLUMNS)
    truth = (_numbers(table, "joints_2.5d_image") / 1000).astype(np.float32)
    _checked(truth, "joints_2.5d_image (as millimetres)")
    sequences = []
    for rows in _videos(table["source"]):
        name = str(table["source"][rows.start])
        if any(name.startswith(excluded) for excluded in EXCLUDED_VIDEOS):
            continue
        camera = _camera(table, rows)
        frames = rows.stop - rows.start
        clips = [slice(start, start + clip_frames) for start in range(0, frames - clip_frames + 1, clip_frames)]
        clips = clips or [slice(0, frames)]
        counted = np.arange(frames) < clips[-1].stop
        space = ImageSpace(table["2.5d_factor"][rows].astype(np.float64).reshape(-1), camera.focal, camera.centre)
        action = _action(str(table["action"][rows.start]), name)
        observed = _observed(table, rows, camera)
        sequences.append(
            LabelledSequence(
                name, _subject(name), action, camera.id, observed, truth[rows], counted, space, tuple(clips)
            )
        )
    return sequences


def load_poses(folder: Path, part: str) -> list[LabelledSequence]:
    """Load the videos of a `part` of MotionBERT's file, "train" or "test", one sequence per video, with its name.

    `camera_poses` converts the ground truth to metres in the camera frame; `load_test` is the evaluation protocol.
    """
    table = _read(folder, part, ())
    sequences = []
    for rows in _videos(table["source"]):
        name, camera = str(table["source"][rows.start]), _camera(table, rows)
        if any(name.startswith(excluded) for excluded in EXCLUDED_VIDEOS):
            continue
        truth = camera_poses(_numbers(table, "joint3d_image")[rows], camera.focal, camera.centre).astype(np.float32)
        counted = np.ones(len(truth), bool)
        observed = _observed(table, rows, camera)
        sequences.append(LabelledSequence(name, _subject(name), "", camera.id, observed, truth, counted))
    return sequences


def camera_poses(image_poses: NDArray[np.floating], focal: F64, centre: F64) -> F64:
    """Convert poses (T, 17, 3) from MotionBERT's image space (px) to the camera frame (m)."""
    # The size of the person is unknown. It is chosen so that the lengths of the 16 bones have the sum `BONE_SUM`. This
    # inverts `pose.structures.labelled.to_image_space`. Let D be the depth of the pelvis (m) and f the focal length
    # (px). A depth of z px relative to the pelvis corresponds to z / (f / D + 1/2) m. A point at this depth is at 1 + z
    # / (f + D / 2) times D. D determines the size of the person. It is found by fixed-point iterations, since D is
    # small compared with f.
    rays = (image_poses[..., :2] - centre) / focal
    pelvis = np.full((len(image_poses), 1), 5.0)
    for _ in range(8):
        depth = 1 + image_poses[..., 2] / (focal[0] + pelvis / 2)
        unit = np.concatenate([rays * depth[..., None], depth[..., None]], axis=-1)
        parents, children = (list(ends) for ends in zip(*H36M17.edges, strict=True))
        bones = np.linalg.norm(unit[:, children] - unit[:, parents], axis=-1).sum(axis=-1, keepdims=True)
        pelvis = BONE_SUM / bones
    result: F64 = unit * pelvis[..., None]
    return result


def _read(folder: Path, part: str, more: tuple[str, ...]) -> Table:
    """Read one half, "train" or "test", as validated arrays of equal length, with `more` arrays."""
    path = folder / PREPARED if (folder / PREPARED).is_file() else folder / FILE
    if not path.is_file():
        raise UsageError(f"{path} is missing: MotionBERT publishes it; put it there (docs/reference/benchmark-data.md)")
    return _check_part(_part_table(path, part), (*COLUMNS, *more), f"{path}, {part}")


def _part_table(path: Path, part: str) -> Table:
    """Read the arrays of "train" or "test" from the pickle or the prepared file, without validation."""
    if path.suffix == ".npz":
        with open_arrays(path) as arrays:
            return {name.removeprefix(f"{part}/"): arrays[name] for name in arrays if name.startswith(f"{part}/")}
    data = load_pickle(path)
    if not isinstance(data, dict) or not isinstance(data.get(part), dict):
        raise PoseError(f"{path}: expected a dictionary with {part!r}")
    return {name: np.asarray(values) for name, values in data[part].items()}


def prepare(source: Path, out: Path) -> Path:
    """Validate MotionBERT's pickle, and write its arrays to an .npz file that loads faster and needs no pickle."""
    halves = {
        "train": _check_part(_part_table(source, "train"), COLUMNS, f"{source}, train"),
        "test": _check_part(_part_table(source, "test"), (*COLUMNS, *TEST_COLUMNS), f"{source}, test"),
    }
    arrays = {f"{part}/{name}": values for part, table in halves.items() for name, values in table.items()}
    with writing([out / PREPARED]):
        write_arrays(out / PREPARED, arrays)
    return out / PREPARED


def _check_part(table: Table, names: tuple[str, ...], source: str) -> Table:
    if missing := [name for name in names if name not in table]:
        raise PoseError(f"{source}: {', '.join(missing)} is missing")
    table = {name: table[name] for name in names}
    lengths = {name: len(array) for name, array in table.items()}
    if len(set(lengths.values())) != 1:
        raise PoseError(f"{source}: arrays differ in length: {lengths}")
    table["confidence"] = table["confidence"].reshape(len(table["confidence"]), -1)
    joints = {"joint_2d": 2, "joint3d_image": 3, "joints_2.5d_image": 3}
    for name in joints.keys() & table.keys():
        if table[name].ndim != 3 or table[name].shape[1:] != (len(H36M17), joints[name]):
            raise PoseError(f"{source}: expected {name} (N, 17, {joints[name]}), got {table[name].shape}")
    if table["confidence"].shape[1] != len(H36M17):
        raise PoseError(f"{source}: expected confidence (N, 17), got {table['confidence'].shape}")
    for name in (joints.keys() | {"confidence", "2.5d_factor"}) & table.keys():
        if not np.isfinite(table[name]).all():
            raise PoseError(f"{source}: {name} contains NaN or infinity")
    require_pixels(table["joint_2d"].astype(np.float32), f"{source}, joint_2d")
    return table


def _checked(truth: F32, name: str) -> None:
    try:
        check_metres(truth, f"{FILE}, {name}")
    except ValueError as error:
        raise PoseError(str(error)) from error


def _videos(source: Array) -> list[slice]:
    """Return the frame range of each video from the video names (N,) of all frames."""
    edges = [0, *(np.flatnonzero(source[1:] != source[:-1]) + 1).tolist(), len(source)]
    return [slice(*ends) for ends in itertools.pairwise(edges)]


def _subject(source: str) -> str:
    """Return the subject of a video, for example `S9` for `s_09_act_02_subact_01_ca_01`."""
    parts = source.split("_")
    if len(parts) < 2 or not parts[1].isdigit() or f"S{int(parts[1])}" not in load_cameras():
        raise PoseError(
            f"{FILE}: unknown subject in source {source!r}; expected names like s_09_act_02_subact_01_ca_01"
        )
    return f"S{int(parts[1])}"


def _numbers(table: Table, name: str) -> F64:
    return table[name].astype(np.float64)


def _camera(table: Table, rows: slice) -> StudioCamera:
    name, source = str(table["camera_name"][rows.start]), str(table["source"][rows.start])
    for camera in load_cameras()[_subject(source)]:
        if camera.id == name:
            return camera
    raise PoseError(f"{FILE}, {source}: unknown camera {name!r}")


def _action(name: str, source: str) -> str:
    action = canonical_take(name).split(" ")[0]
    if action not in ACTIONS:
        raise PoseError(f"{FILE}, {source}: unknown action {name!r}; known: {', '.join(ACTIONS)}")
    return action


def _observed(table: Table, rows: slice, camera: StudioCamera) -> Sequence2D:
    return Sequence2D(
        keypoints=camera.undistort(_numbers(table, "joint_2d")[rows]).astype(np.float32),
        scores=np.clip(table["confidence"][rows], 0, 1).astype(np.float32),
        times=np.arange(rows.stop - rows.start) / FPS,
        camera=camera.ideal,
        skeleton=H36M17.name,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionBertPreparation(Preparation):
    """Options of `pose-prepare human36m-m`."""

    source: str = option(REQUIRED, "MotionBERT's file h36m_sh_conf_cam_source_final.pkl")
    out: str = option(REQUIRED, PREPARED_FOLDER)

    @property
    def targets(self) -> list[Path]:
        """The file that `prepare` writes."""
        return [Path(self.out) / PREPARED]

    def prepare(self, log: Log) -> None:
        """Write the prepared file, and report it by calling `log`."""
        log(f"wrote {prepare(Path(self.source), Path(self.out))}")
