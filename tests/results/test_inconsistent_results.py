"""Results that contradict themselves, lie or are damaged anywhere are one line or are read."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import quick_and_long, try_mutations
from pose_apps.convert import main as convert
from pose_apps.support.intrinsics import read_intrinsics
from pose_fakes import random_result, run_info, seen_result

from pose.errors import PoseError, UsageError
from pose.export import FORMATS
from pose.results import NpzWriter, load_poses
from pose.structures.skeletons import H36M17

TEXT_FORMATS = [name for name, form in FORMATS.items() if form.extra is None]


@pytest.fixture
def arrays(tmp_path):
    """Three people in four frames."""
    with NpzWriter(tmp_path / "whole.npz", run_info(H36M17)) as writer:
        for index in range(4):
            writer.write(seen_result([(0, 0, 4), (1, 0, 4), (2, 0, 4)], index=index, time=index / 25))
    with np.load(tmp_path / "whole.npz") as known:
        return dict(known)


def changed(arrays, name, values):
    array = arrays[name].copy()
    array[...] = values(array)
    return {**arrays, name: array}


def said_of(arrays, tmp_path) -> str:
    path = tmp_path / "changed.npz"
    np.savez(path, **arrays)
    with pytest.raises(PoseError) as caught:
        load_poses(path)
    said = str(caught.value).removeprefix(f"{path}: ")
    assert "\n" not in said
    assert len(said) < 300
    return said


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("frame_index", lambda a: a[::-1], "frame_index: rows must be in the order of the frames, but row 3 goes back"),
        ("frame_index", lambda a: np.roll(a, 1), "frame_index: rows must be in the order"),
        ("frame_index", lambda a: a + 1, "frame_index: frame 4 of a person is not in 'frames'"),
        ("frame_index", lambda a: a - 1, "frame_index: frame -1 of a person is not in 'frames'"),
        ("frames", lambda a: a[::-1], "frames: must increase"),
        ("frames", lambda a: 0 * a, "frames: must increase"),
        ("frames", lambda a: a - 2, "frames: expected numbers of at least 0, got -2 to 1"),
        ("id", lambda a: 0 * a + 1, "id: 1 occurs twice in frame 0"),
        ("id", lambda a: -a, "id: expected numbers of at least 0, got -3 to -1"),
        ("id", lambda a: a + 2**60, "id: expected numbers of at least 0, got"),
        ("timestamps", lambda a: a[::-1], "timestamps: must increase, but frame 1"),
        ("timestamps", lambda a: a * np.nan, "timestamps: NaN or infinity at frame 0"),
        ("timestamps", lambda a: a * 1e300, "timestamps: beyond 1e+10 s"),
        ("timestamps", lambda a: a * 1e-9, "timestamps: frames are less than 5e-07 s apart"),
        ("time", lambda a: a + 1, "time: does not match the time stamp of the row's frame"),
        ("time", lambda a: a * np.nan, "time: does not match the time stamp of the row's frame"),
        ("joints3d", lambda a: a + 1e30, "joints3d: expected -1e+06 to 1e+06, got 1e+30"),
        ("joints3d", lambda a: a + np.inf, "joints3d: expected -1e+06 to 1e+06, got inf"),
        ("root", lambda a: a - 1e9, "root: expected -1e+06 to 1e+06, got"),
        ("sigma", lambda a: -a, "sigma: expected 0 to 1e+09, got -20"),
        ("scores", lambda a: a + 1, "scores: expected 0 to 1, got 2"),
        ("keypoints", lambda a: a + 1e20, "keypoints: expected -1e+07 to 1e+07, got 1e+20"),
        ("box", lambda a: a - np.inf, "box: expected -1e+07 to 1e+07, got -inf"),
        ("fps", lambda a: np.nan, "fps: expected frames/s, got nan"),
        ("fps", lambda a: 0, "fps: expected frames/s, got 0"),
        ("image_size", lambda a: -a, "image_size: expected width and height in px, got -640 x -480"),
        ("intrinsics", lambda a: a * np.nan, "intrinsics: expected [[fx, 0, cx]"),
        ("intrinsics", lambda a: 0 * a, "intrinsics: expected [[fx, 0, cx]"),
    ],
)  # fmt: skip
def test_contradictory_arrays_are_named(arrays, tmp_path, name, values, said):
    assert said_of(changed(arrays, name, values), tmp_path).startswith(said)


def head_with(arrays, change) -> dict:
    head = json.loads(str(arrays["run"]))
    change(head)
    return {**arrays, "run": np.array(json.dumps(head))}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda head: head["settings"].update(a=float("nan")), "not JSON (NaN is not a number)"),
        (lambda head: head["settings"].update(a=[float("inf")]), "not JSON (Infinity is not a number)"),
        (lambda head: head["source"].update(name="x" * 1_000_000), "source: a name of 1000000 characters"),
        (lambda head: head["source"].update(name=3), "expected a string, got int"),
        (lambda head: head.update(models=[3]), "expected an object with 'role', got int"),
        (lambda head: head["source"].update(fps=10**400), "expected a finite number"),
        (lambda head: head.update(camera=[]), "expected an object with 'intrinsics', got list"),
    ],
)
def test_invalid_headers_are_named(arrays, tmp_path, change, said):
    assert said_of(head_with(arrays, change), tmp_path).startswith(said)


def test_undecodable_names_are_escaped_and_exported(arrays, tmp_path, capsys):
    np.savez(tmp_path / "a.npz", **head_with(arrays, lambda head: head["source"].update(name="b\ud800 \udcff.mp4")))
    assert load_poses(tmp_path / "a.npz").run.source == "b\\ud800 \\udcff.mp4"
    assert convert([str(tmp_path / "a.npz"), "--to", ",".join(TEXT_FORMATS), "--quiet"]) == 0
    assert "b\\ud800 \\udcff.mp4,0,0.000000,1,pelvis" in (tmp_path / "a.csv").read_text(encoding="utf-8")


def test_unknown_values_of_a_run_are_read(tmp_path, rng):
    """NaN says that a number is not known; a writer's infinity becomes NaN."""
    result = random_result(rng, 0, 3)
    result.poses.joints[0] = np.nan
    result.poses.sigma[1] = np.inf
    result.people.keypoints[2] = -np.inf
    with NpzWriter(tmp_path / "a.npz", run_info()) as writer:
        writer.write(result)
    table = load_poses(tmp_path / "a.npz")
    assert np.isnan(table.joints3d[0]).all()
    assert np.isnan(table.sigma[1]).all()
    assert np.isnan(table.keypoints[2]).all()


@pytest.mark.parametrize("case", ["flat", "huge", "point", "not known", "one frame"])
def test_degenerate_bodies_are_exported_without_warnings(arrays, tmp_path, case):
    odd = {
        "flat": lambda: changed(arrays, "joints3d", lambda a: a * (1, 0, 0)),
        "huge": lambda: changed(arrays, "joints3d", lambda a: a * 1e6),
        "point": lambda: changed(arrays, "joints3d", lambda a: 0 * a),
        "not known": lambda: changed(arrays, "joints3d", lambda a: a * np.nan),
        "one frame": lambda: {
            name: array[: 1 if name in ("frames", "timestamps") else 3]
            if array.ndim and len(array) in (4, 12) and name != "intrinsics"
            else array
            for name, array in arrays.items()
        },
    }[case]()
    np.savez(tmp_path / "a.npz", **odd)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for formats in TEXT_FORMATS if case == "not known" else [",".join(TEXT_FORMATS)]:
            status = convert([str(tmp_path / "a.npz"), "--to", formats, "--quiet"])
            no_body = case == "not known" and FORMATS[formats].__class__.__name__ == "PersonFormat"
            assert status == (1 if no_body else 0), formats


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
