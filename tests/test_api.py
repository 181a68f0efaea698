"""The public API gives what the commands give, with the same defaults."""

import inspect
import math
from dataclasses import fields
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import cv2
import numpy as np
import pytest
from pose_apps.clip import RunConfig
from pose_apps.convert import main as pose_convert
from pose_apps.lift import LiftConfig
from pose_apps.lift import main as pose_lift
from pose_apps.run import main as pose_run
from pose_fakes import random_result, run_info

import pose
from pose import Pipeline, PoseError, Result, UsageError, convert, lift, load
from pose.config import PipelineChanges, PipelineConfig, PresetName, default_preset
from pose.results import NpzWriter
from pose.utils.archives import open_arrays
from pose.utils.presets import preset_names


@pytest.fixture(autouse=True)
def at_hand(weights_dir, monkeypatch) -> None:
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))


@pytest.fixture(scope="module")
def processed(tmp_path_factory, weights_dir, videos, tiny_lifter):
    """The folder of a `pose-run`, and the result of the same by Python."""
    folder = tmp_path_factory.mktemp("api")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
        clip = str(videos / "dance.mp4")
        words = [clip, "--out", str(folder), "--formats", "npz,csv", "--end", "0.3", "--lifter", str(tiny_lifter)]
        assert pose_run([*words, "--quiet"]) == 0
        result = Pipeline.from_preset(default_preset("auto"), lifter=str(tiny_lifter)).process(clip, end=0.3)
    return folder, result


@pytest.fixture
def flat(tmp_path) -> Result:
    """Three frames without a world: people 1 and 2, then 1, then no person."""
    rng = np.random.default_rng(0)
    with NpzWriter(tmp_path / "flat.npz", run_info()) as writer:
        for index, count in enumerate((2, 1, 0)):
            writer.write(random_result(rng, index, count))
    return load(tmp_path / "flat.npz")


def arrays_of(path):
    with open_arrays(path) as arrays:
        return {name: arrays[name] for name in arrays}


def test_process_equals_pose_run(processed, tmp_path):
    folder, result = processed
    mine, theirs = arrays_of(result.save(tmp_path / "poses.npz")), arrays_of(folder / "poses.npz")
    assert mine.keys() == theirs.keys()
    assert "world" in mine
    for name in mine:
        np.testing.assert_array_equal(mine[name], theirs[name], name)


def test_process_defaults_equal_pose_run():
    ours = inspect.signature(Pipeline.process).parameters
    theirs = {entry.name: entry.default for entry in fields(RunConfig)}
    names = ("world", "pitch", "roll", "smooth", "fill_gaps", "join_tracks", "foot_lock", "cutoff", "start", "end")
    assert {name: ours[name].default for name in names} == {name: theirs[name] for name in names}


def test_lift_defaults_equal_pose_lift():
    ours = inspect.signature(lift).parameters
    theirs = {entry.name: entry.default for entry in fields(LiftConfig)}
    names = (ours.keys() & theirs.keys()) - {"keypoints"}
    assert names >= {"lifter", "lookahead", "repair", "constant_bones", "fit", "world", "smooth", "foot_lock", "device"}
    assert {name: ours[name].default for name in names} == {name: theirs[name] for name in names}


def test_joints_equal_the_file_in_both_spaces(processed):
    folder, result = processed
    arrays = arrays_of(folder / "poses.npz")
    assert result.people == tuple(np.unique(arrays["id"]))
    assert result.has_world
    for space, points in (("world", arrays["world"]), ("camera", arrays["joints3d"] + arrays["root"][:, None])):
        joints = result.joints(space)
        assert joints.shape == (len(result.people), len(result.times), 17, 3)
        person = result.people.index(arrays["id"][0])
        frame = np.flatnonzero(arrays["frames"] == arrays["frame_index"][0])[0]
        np.testing.assert_allclose(joints[person, frame], points[0], rtol=1e-6)
    np.testing.assert_array_equal(result.joints(), result.joints("world"))
    marked = arrays["partial"] if "partial" in arrays else np.zeros(len(arrays["id"]), bool)
    assert result.partial().shape == result.joints().shape[:2]
    assert result.partial().sum() == marked.sum()


def test_convert_equals_pose_convert(processed, tmp_path):
    folder, result = processed
    made = convert(result, ["bvh", "csv"], tmp_path / "python")
    words = ["--to", "bvh,csv", "--out", str(tmp_path / "command"), "--quiet"]
    assert pose_convert([str(folder / "poses.npz"), *words]) == 0
    for path in made:
        assert path.read_bytes() == (tmp_path / "command" / path.name).read_bytes()
    with pytest.raises(UsageError, match=r"poses\.csv exists; give overwrite=True"):
        convert(result, "csv", tmp_path / "python")


@pytest.mark.parametrize("stem", ["../x", "a/b", "", "..", "/x"])
def test_a_stem_that_leaves_the_folder_is_refused(processed, tmp_path, stem):
    with pytest.raises(UsageError, match="is not the start of a file name"):
        convert(processed[1], "csv", tmp_path / "out", stem=stem)
    assert not list(tmp_path.rglob("*.csv"))


def test_saving_replaces_what_it_wrote_and_no_other_file(processed, tmp_path):
    result, path = processed[1], tmp_path / "poses.npz"
    path.write_text("mine")
    with pytest.raises(UsageError, match="give overwrite=True"):
        result.save(path)
    assert path.read_text() == "mine"
    with pytest.warns(UserWarning, match=r"kept as poses\.npz\.kept"):
        result.save(path, overwrite=True)
    assert (tmp_path / "poses.npz.kept").read_text() == "mine"
    assert load(result.save(path)).people == result.people


def test_data_frame_contains_all_columns(processed):
    pandas = pytest.importorskip("pandas")
    folder, result = processed
    table, written = result.to_dataframe(), pandas.read_csv(folder / "poses.csv")
    assert list(table.columns) == list(written.columns)
    assert (table["joint"] == written["joint"]).all()
    np.testing.assert_allclose(table[["x", "y", "z"]], written[["x", "y", "z"]], atol=5.1e-5)
    assert set(table["space"]) == {"world"}


def test_angles_are_named(processed):
    _, result = processed
    angles = result.angles()
    assert angles.degrees.shape == (len(result.people), len(result.times), len(angles.names))
    np.testing.assert_array_equal(angles["trunk_lean"], angles.degrees[..., angles.names.index("trunk_lean")])
    with pytest.raises(KeyError, match="known: left_hip_flexion"):
        angles["knee"]


def test_missing_people_are_nan(flat):
    assert flat.people == (7, 8)
    joints = flat.joints()
    assert np.isfinite(joints).all(axis=(2, 3)).tolist() == [[True, True, False], [True, False, False]]
    assert flat.joints(people=[8]).shape == (1, 3, 17, 3)
    assert np.isnan(flat.angles()["trunk_lean"]).tolist() == [[False, False, True], [False, True, True]]


def test_world_of_a_result_without_one_is_an_error(flat):
    assert not flat.has_world
    assert flat.heights == {}
    with pytest.raises(UsageError, match=r"has no world \(world=False, or the camera moved\); give space='camera'"):
        flat.joints("world")
    with pytest.raises(UsageError, match="'moon' is unknown; known: world, camera"):
        flat.joints("moon")
    with pytest.raises(UsageError, match="unknown id 9; allowed: 7, 8"):
        flat.sigma([9])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_people": "two"}, "max_people: expected a whole number, got 'two'"),
        ({"max_people": True}, "max_people: expected a whole number, got True"),
        ({"hands": 1}, "hands: expected True or False, got 1"),
        ({"detect_every": "often"}, "detect_every: expected a number, got 'often'"),
        ({"seed": -1}, f"seed: -1 is out of range; allowed: 0 to {2**63 - 1}"),
        ({"detector": "nosuch"}, "detector: 'nosuch' is unknown; known: auto, blazepose"),
    ],
)
def test_invalid_option_gives_a_one_line_error(options, message):
    with pytest.raises(UsageError) as caught:
        Pipeline.from_preset("fast", **options)
    assert str(caught.value).startswith(message)


def test_detector_is_selected_by_name():
    assert Pipeline.from_preset("fast", detector="full-frame").config.detector == "full-frame"
    assert Pipeline.from_preset("fast", max_people=np.int64(2), detect_every=1).config.max_people == 2


@pytest.mark.parametrize("source", [None, np.zeros((4, 4, 3), np.uint8), ["a.mp4"]])
def test_source_of_wrong_type_is_rejected(source):
    kind = type(source).__name__
    with pytest.raises(UsageError, match=f"^source: expected a path, an address or a camera number, got {kind}$"):
        Pipeline.from_preset("fast").process(source)
    with pytest.raises(
        UsageError, match=f"^keypoints: expected a path, a Sequence2D, or Sequence2D by id, got {kind}$"
    ):
        lift(source)


def test_a_video_without_people_has_an_empty_result(tmp_path):
    for index in range(3):
        cv2.imwrite(str(tmp_path / f"{index}.png"), np.full((120, 160, 3), 90, np.uint8))
    result = Pipeline.from_preset("fast").process(tmp_path)
    assert result.people == ()
    assert result.joints("camera").shape == (0, len(result.times), 17, 3)
    assert result.angles().degrees.shape[:2] == (0, len(result.times))


@pytest.mark.parametrize("world", [False, True])
def test_lift_equals_pose_lift(tmp_path, world, capsys):
    rng = np.random.default_rng(0)
    keypoints = (100 + 20 * rng.random((40, 17, 2)) + 200 * rng.random((17, 2))).astype(np.float32)
    path = tmp_path / "seen.npz"
    np.savez(
        path, keypoints=keypoints, scores=np.full((40, 17), 0.9, np.float32), timestamps=np.arange(40) / 30,
        image_size=np.array([640, 480]), skeleton="coco17",
    )  # fmt: skip
    pose_lift([str(path), "--out", str(tmp_path / "lifted.npz"), *(["--world"] if world else [])])
    result, written = lift(path, world=world), load(tmp_path / "lifted.npz")
    np.testing.assert_allclose(result.joints("camera"), written.joints("camera"), atol=1e-4)
    np.testing.assert_allclose(result.sigma(), written.sigma(), rtol=1e-5)
    assert result.has_world == written.has_world == world
    if world:
        np.testing.assert_allclose(result.joints("world"), written.joints("world"), atol=1e-4)
    assert load(result.save(tmp_path / "saved.npz")).people == (1,)
    with pytest.raises(UsageError, match="cannot be saved"):
        written.save(tmp_path / "again.npz")


def test_public_names_are_listed_and_exist():
    assert sorted(pose.__all__) == pose.__all__
    assert {getattr(pose, name).__name__ for name in pose.__all__} == set(pose.__all__)
    assert set(pose.__all__) <= set(dir(pose))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        pose.nonsense  # noqa: B018 - asking is the test
    assert issubclass(UsageError, PoseError)
    assert math.isinf(inspect.signature(Pipeline.process).parameters["end"].default)


def test_reference_lists_every_public_name():
    page = (Path(__file__).parents[1] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert {name for name in pose.__all__ if f"::: pose.{name}\n" not in page} == set()


def test_typed_changes_of_a_preset_are_the_fields_of_the_config():
    types = get_type_hints(PipelineConfig)
    changes = get_type_hints(PipelineChanges)
    assert changes.keys() == types.keys() - {"detector"}
    for name, hint in changes.items():
        known = {type(one) for one in get_args(hint)} if get_origin(hint) is Literal else {hint}
        assert known == {types[name]}, name
    assert set(get_args(PresetName)) == set(preset_names())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("'fats'", "has incompatible type \"Literal['fats']\""),
        ("'fast', max_peopel=2", 'Unexpected keyword argument "max_peopel"'),
        ("'fast', max_people='2'", 'has incompatible type "str"; expected "int"'),
    ],
)
def test_mypy_finds_wrong_presets_and_options(tmp_path, call, words):
    from mypy import api

    script = tmp_path / "script.py"
    script.write_text(f"from pose import Pipeline\nPipeline.from_preset({call})\n")
    said, _, status = api.run(["--strict", "--config-file=", "--follow-imports=silent", str(script)])
    assert status == 1
    assert words in said


@pytest.mark.slow
def test_user_script_passes_mypy_strict(tmp_path):
    from mypy import api

    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from pose import Pipeline, Result, convert, lift, load\n"
        "result: Result = Pipeline.from_preset('fast').process('clip.mp4', heights={1: 1.8})\n"
        "knees = result.angles()['left_knee_flexion'].max(axis=1)\n"
        "print(result.people, result.times, knees, result.joints(space='world', people=[1]).shape)\n"
        "files: list[Path] = convert(load('poses.npz'), ['bvh'], 'out')\n"
        "print(files, lift('keypoints.npz', world=True).heights)\n"
    )
    said, problems, status = api.run(["--strict", "--no-incremental", "--config-file=", str(script)])
    assert status == 0, said + problems


def test_process_reuses_a_cache_and_reports_progress(tmp_path, videos, tiny_lifter, monkeypatch):
    seen, clip = [], videos / "dance.mp4"
    options = {"end": 0.2, "world": False, "cache": tmp_path / "cache"}
    first = Pipeline.from_preset("fast", lifter=str(tiny_lifter)).process(clip, **options)
    monkeypatch.setattr("pose.session.Session.tracked", None)  # nothing is computed again
    again = Pipeline.from_preset("fast", lifter=str(tiny_lifter)).process(
        clip, **options, progress=lambda count, expected: seen.append((count, expected))
    )
    np.testing.assert_array_equal(again.joints(), first.joints())
    assert seen == [(count, seen[0][1]) for count in range(1, len(first.times) + 1)]
