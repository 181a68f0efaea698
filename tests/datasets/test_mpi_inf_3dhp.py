"""The MPI-INF-3DHP test set: joint order, valid frames, the camera that its annotations imply."""

import h5py
import numpy as np
import pytest
from benchmark_files import MPI_LENS, walker, write_mpi_inf_3dhp
from pose_datasets import mpi_inf_3dhp

from pose.errors import PoseError

INVALID = (3, 11)


@pytest.fixture
def folder(tmp_path):
    return write_mpi_inf_3dhp(tmp_path / "mpi", {"TS1": 15, "TS6": 12}, invalid=INVALID)


def ours(frames):
    """The walker in the camera frame that the files were written with, in our joint order."""
    return walker(frames)[..., [0, 2, 1]] * [1, -1, 1] + [0, 1, 4]


def test_sequences_in_our_joint_order(folder):
    first, last = mpi_inf_3dhp.load_sequences(folder, truth="annot3")
    assert (first.key, first.action, len(first)) == ("TS1", "TS1", 15)
    assert (first.observed.camera.size, last.observed.camera.size) == ((2048, 2048), (1920, 1080))
    assert np.flatnonzero(~first.counted).tolist() == list(INVALID)
    assert np.abs(first.truth - ours(15))[first.counted].max() < 1e-6
    assert np.allclose(np.diff(first.observed.times), 1 / 25)


def test_universal_truth_is_the_default_and_has_its_own_size(folder):
    universal = mpi_inf_3dhp.load_sequences(folder)[0]
    true = ours(15)
    expected = true[:, :1] + 1.1 * (true - true[:, :1])
    assert np.abs(universal.truth - expected)[universal.counted].max() < 1e-6


def test_camera_reproduces_the_annotations(folder):
    sequence = mpi_inf_3dhp.load_sequences(folder)[0]
    assert np.abs(sequence.observed.camera.matrix - MPI_LENS).max() < 1e-6
    projected = ours(15) @ MPI_LENS.T
    error = np.abs(projected[..., :2] / projected[..., 2:] - sequence.observed.keypoints)
    assert error[sequence.counted].max() < 1e-3


def rewrite(folder, name, make):
    with h5py.File(folder / "TS1" / "annot_data.mat", "r+") as file:
        values = make(file[name][()])
        del file[name]
        if values is not None:
            file[name] = values


def with_nan(values):
    values[5, 0, 2] = np.nan
    return values


BAD_FILES = {
    "joints": ("annot3", lambda x: x[:, :, :16], r"expected annot3 \(15, 1, 17, 3\).*got \(15, 1, 16, 3\)"),
    "length": ("annot2", lambda x: x[:-1], r"expected annot2 \(15, 1, 17, 2\) to go with 15 valid_frame, got \(14"),
    "metres": ("univ_annot3", lambda x: x / 1000, r"univ_annot3 \(as millimetres\): expected metres"),
    "nan": ("univ_annot3", with_nan, "univ_annot3 contains NaN or infinity in a valid frame"),
    "missing": ("annot2", lambda x: None, "not a readable MPI-INF-3DHP annotation file"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_invalid_files_are_rejected(folder, case):
    name, make, message = BAD_FILES[case]
    rewrite(folder, name, make)
    with pytest.raises(PoseError, match=message):
        mpi_inf_3dhp.load_sequences(folder)
