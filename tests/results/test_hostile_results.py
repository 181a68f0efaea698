"""Result files that lie about themselves are one line."""

import json

import numpy as np
import pytest
from pose_apps.support.world import read_intrinsics
from pose_fakes import random_result, run_info

from pose.errors import PoseError, UsageError
from pose.results import NpzWriter, load_poses


@pytest.mark.parametrize(
    "change",
    [
        {"run": np.array("[" * 100_000)}, {"run": np.array("[]")}, {"run": np.array("{")}, {"run": np.zeros(3)},
        {"format_version": np.arange(3)}, {"format_version": np.array("one")}, {"format_version": np.array(np.inf)},
        {"image_size": np.arange(5)}, {"image_size": np.array([np.inf, 1])}, {"id": np.array(["a", "b"])},
        {"fps": np.zeros((2, 2))}, {"complete": np.arange(4)}, {"skeleton": np.arange(4)}, {"frames": np.array(7)},
        {"keypoints": np.full((2, 33, 2), "a")}, {"keypoints": np.zeros((2, 33, 2), complex)},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_result_arrays_are_rejected(tmp_path, rng, change):
    with NpzWriter(tmp_path / "a.npz", run_info()) as writer:
        writer.write(random_result(rng, 0, 2))
    with np.load(tmp_path / "a.npz") as known:
        arrays = dict(known) | change
    np.savez(tmp_path / "b.npz", **arrays)
    with pytest.raises(PoseError, match=r"b\.npz: ") as error:
        load_poses(tmp_path / "b.npz")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["a.npy", "a.json", "a.txt"])
def test_deeply_nested_camera_is_rejected(tmp_path, name):
    (tmp_path / name).write_text("[" * 100_000)
    with pytest.raises(UsageError, match="intrinsics: cannot read"):
        read_intrinsics(str(tmp_path / name))


def test_a_long_name_is_cut_in_the_message(tmp_path, rng):
    """A skeleton that names a joint it does not have, with 5,000 characters."""
    with NpzWriter(tmp_path / "a.npz", run_info()) as writer:
        writer.write(random_result(rng, 0, 1))
    with np.load(tmp_path / "a.npz") as known:
        arrays = dict(known)
    run = json.loads(str(arrays["run"]))
    run["skeletons"]["keypoints"]["name"] = "a" * 5000
    np.savez(tmp_path / "b.npz", **arrays | {"run": np.array(json.dumps(run))})
    with pytest.raises(PoseError, match=r"b\.npz: ") as error:
        load_poses(tmp_path / "b.npz")
    assert len(str(error.value).removeprefix(str(tmp_path))) < 300
