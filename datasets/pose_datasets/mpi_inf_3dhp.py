"""MPI-INF-3DHP test set: `TS1` ... `TS6`, each with an `annot_data.mat` (MATLAB 7.3, which is HDF5).

The files contain `annot2` (N, 1, 17, 2) px, `annot3` and `univ_annot3` (N, 1, 17, 3) mm in the camera frame,
`valid_frame` (N). (D. Mehta et al., "Monocular 3D human pose estimation in the wild using improved CNN supervision",
3DV 2017.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from pose.errors import PoseError, UsageError
from pose.structures.camera import Camera
from pose.structures.labelled import LabelledSequence, check_metres
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.utils.archives import open_archive
from pose.utils.options import REQUIRED, option
from pose.utils.whole_file import whole_file
from pose.utils.written_files import writing
from pose_datasets.catalogue import (
    PREPARED_FOLDER,
    EvaluationTask,
    LabelledEvaluation,
    Log,
    Preparation,
    make_benchmark,
)

SEQUENCES = ("TS1", "TS2", "TS3", "TS4", "TS5", "TS6")
IMAGE_SIZES = {"TS5": (1920, 1080), "TS6": (1920, 1080)}
STUDIO_SIZE = (2048, 2048)
FILE = "annot_data.mat"
# Index of each of our joints in their order: 14 is the pelvis, 8-10 the right leg, 0 the top of the head, and so on.
JOINT_ORDER = (14, 8, 9, 10, 11, 12, 13, 15, 1, 16, 0, 5, 6, 7, 2, 3, 4)
# The annotations have no time stamps.
DEFAULT_FPS = 25.0
TRUTHS = ("univ_annot3", "annot3")


def load_sequences(folder: Path, truth: str = "univ_annot3", fps: float = DEFAULT_FPS) -> list[LabelledSequence]:
    """Load the test sequences, in Human3.6M-17; UsageError without one, PoseError if one is invalid."""
    paths = [folder / name / FILE for name in SEQUENCES if (folder / name / FILE).is_file()]
    if not paths:
        raise UsageError(
            f"{folder / 'TS1' / FILE} is missing, and so are TS2 to TS6: take them out of the test set with "
            f"pose-prepare mpi-inf-3dhp --source TEST_SET --out {folder} (see docs/reference/benchmark-data.md)"
        )
    return [_sequence(path, truth, fps) for path in paths]


def prepare(source: Path, out: Path) -> list[Path]:
    """Extract the annotations, without images, and validate them; UsageError if `source` has none."""
    files = _annotations(source)
    if not files:
        raise UsageError(f"{source}: contains no TS1/{FILE} (see docs/reference/benchmark-data.md)")
    written = []
    for name, content in sorted(files.items()):
        target = out / name / FILE
        with writing([target]), whole_file(target) as hidden:
            hidden.write_bytes(content())
            _read(hidden, target)
        written.append(target)
    return written


def prepared_paths(source: Path, out: Path) -> list[Path]:
    """Return the paths that `prepare` writes; none if `source` contains no annotations."""
    return [out / name / FILE for name in sorted(_annotations(source))]


def _annotations(source: Path) -> dict[str, Callable[[], bytes]]:
    """Return functions that read the annotation files of a folder or ZIP file, by name of the sequence."""
    return _in_zip(source) if source.is_file() else _in_folder(source)


def _in_folder(source: Path) -> dict[str, Callable[[], bytes]]:
    paths = {path.parent.name: path for path in source.glob(f"**/{FILE}") if path.parent.name in SEQUENCES}
    return {name: path.read_bytes for name, path in paths.items()}


def _in_zip(source: Path) -> dict[str, Callable[[], bytes]]:
    with open_archive(source) as archive:
        names = archive.names
    members = {PurePosixPath(name).parent.name: name for name in names if PurePosixPath(name).name == FILE}
    return {name: partial(_read_member, source, member) for name, member in members.items() if name in SEQUENCES}


def _read_member(archive: Path, name: str) -> bytes:
    with open_archive(archive) as opened:
        return opened.read(name)


def _sequence(path: Path, truth: str, fps: float) -> LabelledSequence:
    name = path.parent.name
    arrays = _read(path)
    pixels, true = arrays["annot2"], arrays["annot3"] / 1000
    poses = (arrays[truth] / 1000).astype(np.float32)
    counted = arrays["valid_frame"] != 0
    try:
        check_metres(poses[counted], f"{path}, {truth} (as millimetres)")
    except ValueError as error:
        raise PoseError(str(error)) from error
    lens = fit_pinhole(true[counted], pixels[counted]) if counted.any() else None
    observed = Sequence2D(
        keypoints=np.nan_to_num(pixels).astype(np.float32),
        scores=np.asarray(np.isfinite(pixels).all(axis=-1), np.float32),
        times=np.arange(len(pixels)) / fps,
        camera=Camera.of(IMAGE_SIZES.get(name, STUDIO_SIZE), lens),
        skeleton=H36M17.name,
    )
    return LabelledSequence(name, name, name, "0", observed, poses, counted)


def _read(path: Path, reported_path: Path | None = None) -> dict[str, F64]:
    """Read and validate the arrays of one sequence; errors name `reported_path`."""
    try:
        import h5py
    except ImportError as error:
        raise PoseError("reading annot_data.mat needs h5py: pip install 'pose-run[mpi-inf-3dhp]'") from error
    reported_path = reported_path or path
    shapes = {"annot2": (17, 2), "annot3": (17, 3), "univ_annot3": (17, 3)}
    try:
        with h5py.File(path, "r") as file:
            arrays = {name: np.asarray(file[name], np.float64) for name in (*shapes, "valid_frame")}
    except (OSError, KeyError) as error:
        raise PoseError(f"{reported_path}: not a readable MPI-INF-3DHP annotation file ({error})") from error
    arrays["valid_frame"] = arrays["valid_frame"].reshape(-1)
    frames = len(arrays["valid_frame"])
    for name, shape in shapes.items():
        if arrays[name].shape != (frames, 1, *shape):
            raise PoseError(
                f"{reported_path}: expected {name} ({frames}, 1, {shape[0]}, {shape[1]}) to go with {frames} "
                f"valid_frame, got {arrays[name].shape}"
            )
        arrays[name] = arrays[name][:, 0][:, JOINT_ORDER]
        if not np.isfinite(arrays[name][arrays["valid_frame"] != 0]).all():
            raise PoseError(f"{reported_path}: {name} contains NaN or infinity in a valid frame")
    return arrays


def fit_pinhole(points: F64, pixels: F64) -> F64:
    """Fit a camera matrix (3, 3) px to points (N, J, 3) m and pixels by least squares, separately for x and y."""
    rays = (points[..., :2] / points[..., 2:]).reshape(-1, 2)
    lens = np.eye(3)
    for axis in range(2):
        system = np.stack([rays[:, axis], np.ones(len(rays))], axis=-1)
        lens[axis, axis], lens[axis, 2] = np.linalg.lstsq(system, pixels[..., axis].reshape(-1), rcond=None)[0]
    return lens


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiInf3dhpPreparation(Preparation):
    """Options of `pose-prepare mpi-inf-3dhp`, which extracts the annotations of the test set."""

    source: str = option(REQUIRED, "the folder mpi_inf_3dhp_test_set, or its .zip file")
    out: str = option(REQUIRED, PREPARED_FOLDER)

    @property
    def targets(self) -> list[Path]:
        """The files that `prepare` writes."""
        return prepared_paths(Path(self.source), Path(self.out))

    def prepare(self, log: Log) -> None:
        """Write the prepared files, and report them by calling `log`."""
        for path in prepare(Path(self.source), Path(self.out)):
            log(f"wrote {path}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiInf3dhpEvaluation(LabelledEvaluation):
    """Options of `pose-eval mpi-inf-3dhp`, with the 2D keypoints of the data set."""

    data: str = option(REQUIRED, "folder with TS1 ... TS6, see docs/reference/benchmark-data.md", metavar="DIR")
    truth: str = option(TRUTHS[0], "ground truth scaled to one body height (universal), or unscaled", choices=TRUTHS)
    fps: float = option(DEFAULT_FPS, "frame rate in frames/s; the files do not contain it")

    def task(self) -> EvaluationTask:
        """Read the sequences and describe the protocol of the evaluation."""
        if not self.fps > 0:
            raise UsageError(f"--fps: expected a number above 0, got {self.fps}")
        sequences = load_sequences(Path(self.data), self.truth, self.fps)
        benchmark = make_benchmark("MPI-INF-3DHP", self.truth, "annotated", sequences, "frames", SEQUENCES)
        return EvaluationTask(sequences, benchmark, self.fps, f"mpi-inf-3dhp-{self.truth}")
