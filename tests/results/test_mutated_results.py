"""Results whose bytes or arrays are changed anywhere are read or one line."""

import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import quick_and_long, try_mutations
from pose_fakes import random_result, run_info

from pose.errors import PoseError
from pose.results import NpzWriter, load_poses

TYPES = ["f2", "f4", "f8", "i8", "u1", "c16", "?", "U8"]


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    path = tmp_path_factory.mktemp("result") / "whole.npz"
    draw = np.random.default_rng(0)
    with NpzWriter(path, run_info()) as writer:
        for index in range(3):
            writer.write(random_result(draw, index, 2))
    return path


def _load(result, tmp_path, data) -> None:
    path = tmp_path / "a.npz"
    if data.draw(st.booleans()):
        content = bytearray(result.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))])
    else:
        with np.load(result) as known:
            arrays = dict(known)
        name = data.draw(st.sampled_from(sorted(arrays)))
        match data.draw(st.sampled_from(["drop", "type", "shape", "number", "short"])):
            case "drop":
                del arrays[name]
            case "type" if arrays[name].dtype.kind in "fiu":
                arrays[name] = np.zeros(arrays[name].shape, data.draw(st.sampled_from(TYPES)))
            case "shape":
                arrays[name] = arrays[name].reshape(data.draw(st.sampled_from([(-1,), (1, -1), (-1, 1, 1)])))
            case "number" if arrays[name].dtype.kind == "f":
                arrays[name] = np.full_like(arrays[name], data.draw(st.sampled_from([np.nan, np.inf, -1, 1e30])))
            case "short" if arrays[name].ndim:
                arrays[name] = arrays[name][:-1]
        np.savez(path, **arrays)
    try:
        load_poses(path)
    except PoseError as error:
        said = str(error).removeprefix(str(path))
    else:
        said = ""
    assert "\n" not in said
    assert len(said) < 600


@quick_and_long(50, 3000)
def test_mutated_results_are_read_or_rejected(result, tmp_path, examples):
    try_mutations(lambda data: _load(result, tmp_path, data), examples)
