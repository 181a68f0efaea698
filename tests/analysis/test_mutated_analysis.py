"""Results with a world and a moving camera whose arrays are changed: analysed and shown, or refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import one_line, quick_and_long, try_mutations
from stick_figures import squats
from test_analyse_command import write

from pose.analysis import GROUPS, analyse
from pose.analysis.metrics import Metric
from pose.errors import PoseError
from pose.export import export, open_selection
from pose.results import load_poses

VALUES = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-30, 1e6, 1e30])
ARRAYS = ["world", "joints3d", "root", "sigma", "contacts", "time", "timestamps", "root_sigma", "filled", "id"]
VIEWS = ["camera_rotation", "camera_zoom", "camera_sigma"]


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("analysis") / "poses.npz", {1: squats(1)[0]})
    with np.load(path) as known:
        found = dict(known)
    frames = len(found["timestamps"])
    found["camera_rotation"] = np.tile(np.eye(3, dtype=np.float32), (frames, 1, 1))
    found["camera_zoom"] = np.ones(frames, np.float32)
    found["camera_sigma"] = np.full(frames, 0.1, np.float32)
    return found


def changed(data: st.DataObject, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One to three arrays with some entries that are something else, or without their end, or not there."""
    found = dict(arrays)
    for name in data.draw(st.lists(st.sampled_from(ARRAYS + VIEWS), min_size=1, max_size=3, unique=True)):
        kind = data.draw(st.sampled_from(["values", "values", "rows", "shuffle", "drop"]))
        if kind == "drop":
            del found[name]
            continue
        array = found[name] = found[name].copy()
        if kind == "values" and array.dtype.kind == "f":
            at = data.draw(st.integers(0, len(array) - 1))
            array[at : at + data.draw(st.sampled_from([1, 20, len(array)]))] = data.draw(VALUES)
        elif kind == "rows":
            found[name] = array[: data.draw(st.integers(0, len(array)))]
        else:
            np.random.default_rng(data.draw(st.integers(0, 9))).shuffle(array)
    return found


def analysed(path: Path) -> list[Metric]:
    """The figures of a result, which must be finite."""
    metrics = analyse(load_poses(path), GROUPS).metrics
    assert all(np.isfinite([metric.value, metric.low, metric.high]).all() for metric in metrics)
    return metrics


@quick_and_long(10, 1000)
def test_mutated_results_are_analysed_or_rejected(arrays, tmp_path, examples):
    path = tmp_path / "poses.npz"

    def check(data: st.DataObject) -> None:
        np.savez(path, **changed(data, arrays))
        try:
            analysed(path)
            list(export(open_selection(path), ["csv", "angles"], tmp_path, "poses"))
        except PoseError as error:
            one_line(error)

    np.savez(path, **arrays)
    assert analysed(path)
    try_mutations(check, examples)


@pytest.mark.parametrize("value", [0.0, 1e30])
@pytest.mark.parametrize("frames", [slice(0, 1), slice(20, 30), slice(None)])
def test_frames_with_degenerate_joints_count_as_missing(arrays, value, frames, tmp_path):
    world = arrays["world"].copy()
    world[frames] = value
    np.savez(tmp_path / "poses.npz", **(arrays | {"world": world}))
    try:
        metrics = analysed(tmp_path / "poses.npz")
    except PoseError as error:
        one_line(error)
        assert value > 0, "only joints out of range are refused"
    else:
        assert value == 0
        assert bool(metrics) == (frames != slice(None)), "only the frames without a body are left out"
