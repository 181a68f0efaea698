"""Files of predictions: one .npz with an array (T, 17, 3) float32 per sequence, under the sequence's key.

Joints are in metres in the camera frame, root-relative or absolute. For protocol M of Human3.6M they are in the space
of its ground truth: 2.5D image space, scaled to metres with the factor of the ground truth. Files of protocols V and M
therefore cannot be confused.
"""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pose.errors import PoseError, UsageError
from pose.structures.labelled import LabelledSequence, check_metres
from pose.structures.types import F32, Array
from pose.utils.archives import format_names, open_arrays
from pose.utils.whole_file import whole_file

Predictions = dict[str, F32]


def save_predictions(path: Path, predictions: Predictions) -> None:
    """Write poses (T, 17, 3) by sequence key to an .npz file; PoseError if that fails."""
    with whole_file(path) as hidden, zipfile.ZipFile(hidden, "w", zipfile.ZIP_STORED) as archive:
        for key, poses in predictions.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(poses, np.float32), allow_pickle=False)


def load_predictions(path: Path, sequences: Sequence[LabelledSequence]) -> Predictions:
    """Read predictions from an .npz file: one for each of `sequences`, of its length, with 17 joints, finite.

    A missing file is a UsageError, an invalid or missing prediction a PoseError that names the sequence.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected an .npz with one (T, 17, 3) array per sequence")
    with open_arrays(path) as arrays:
        missing = [sequence.key for sequence in sequences if sequence.key not in arrays]
        if missing:
            raise PoseError(
                f"{path}: {len(missing)} of {len(sequences)} sequences are missing, first {missing[0]!r}; "
                f"it contains {format_names(arrays)}"
            )
        return {sequence.key: _checked(arrays[sequence.key], sequence, path) for sequence in sequences}


def _checked(stored: Array, sequence: LabelledSequence, path: Path) -> F32:
    source = f"{path}, {sequence.key}"
    if stored.shape != sequence.truth.shape:
        raise PoseError(f"{source}: expected {sequence.truth.shape} (frames, joints, xyz), got {stored.shape}")
    if stored.dtype.kind not in "fiu":
        raise PoseError(f"{source}: expected numbers, got {stored.dtype}")
    with np.errstate(over="ignore"):  # values beyond float32 become infinity
        poses = stored.astype(np.float32)
    if not np.isfinite(poses).all():
        frame = int(np.flatnonzero(~np.isfinite(poses).all(axis=(1, 2)))[0])
        raise PoseError(f"{source}: NaN or infinity in frame {frame}")
    try:
        check_metres(poses, source)
    except ValueError as error:
        raise PoseError(str(error)) from error
    return poses
