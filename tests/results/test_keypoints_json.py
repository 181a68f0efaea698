"""Keypoints of other programs, in the shapes that these programs write, and damaged ones: one line."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import quick_and_long, try_mutations

from pose.errors import PoseError, PoseWarning, UsageError
from pose.results.keypoints import read_keypoints
from pose.results.keypoints_json import _BODY_25, read_people
from pose.structures.skeletons import COCO_NAMES

RNG = np.random.default_rng(5)


def person(joints=17):
    return np.concatenate([RNG.uniform(50, 400, (joints, 2)), RNG.uniform(0.2, 1, (joints, 1))], axis=1)


def read(path, document, **options):
    path.write_text(json.dumps(document))
    return read_people(path, options.pop("fps", 25), options.pop("size", (640, 480)))


def test_coco_results_with_track_ids_are_people_over_time(tmp_path):
    points = {(frame, track): person() for frame in (4, 5, 7) for track in (2, 9)}
    entries = [
        {"image_id": f, "category_id": 1, "track_id": t, "keypoints": p.ravel().tolist(), "score": 0.9}
        for (f, t), p in points.items()
    ]
    people = read(tmp_path / "results.json", entries)
    assert list(people) == [2, 9]
    one = people[9]
    assert (one.skeleton, one.camera.size) == ("coco17", (640, 480))
    np.testing.assert_allclose(one.times, np.array([4, 5, 6, 7]) / 25)
    np.testing.assert_allclose(one.keypoints[3], points[7, 9][:, :2], rtol=1e-6)
    np.testing.assert_allclose(one.scores[0], points[4, 9][:, 2], rtol=1e-6)
    assert (one.scores[2] == 0).all(), "frame 6 is missing"


def test_coco_annotations_bring_their_size_and_flags(tmp_path):
    flags = person()
    flags[:, 2] = [0, 1, 2] * 5 + [2, 2]
    document = {
        "images": [{"id": 70 + i, "file_name": f"clip/{i:06d}.png", "width": 320, "height": 200} for i in range(3)],
        "annotations": [{"image_id": 72, "keypoints": flags.ravel().tolist(), "category_id": 1}],
    }
    (one,) = read(tmp_path / "gt.json", document, size=None).values()
    assert one.camera.size == (320, 200)
    assert one.times.tolist() == [2 / 25]
    np.testing.assert_array_equal(one.scores[0], flags[:, 2] > 0)
    assert (one.keypoints[0, flags[:, 2] == 0] == 0).all()


@pytest.mark.parametrize(
    ("joints", "skeleton"), [(17, "coco17"), (26, "halpe26"), (136, "halpe26"), (133, "wholebody133")]
)
def test_alphapose_names_images_and_people(tmp_path, joints, skeleton):
    points = person(joints)
    entries = [
        {
            "image_id": f"{frame}.jpg",
            "category_id": 1,
            "keypoints": points.ravel().tolist(),
            "score": 2.9,
            "idx": [3, 4],
        }
        for frame in (10, 11)
    ]
    people = read(tmp_path / "alphapose-results.json", entries)
    assert list(people) == [3]
    assert people[3].skeleton == skeleton
    assert people[3].times.tolist() == [10 / 25, 11 / 25]
    np.testing.assert_allclose(people[3].keypoints[0], points[: people[3].keypoints.shape[1], :2], rtol=1e-6)


@pytest.mark.parametrize(("key", "values", "ids"), [("people", "pose_keypoints_2d", [-1]), ("bodies", "joints", None)])
def test_openpose_folder_has_one_file_per_frame(tmp_path, key, values, ids):
    joints = 25 if key == "people" else 18
    points = person(joints)
    points[4] = 0
    entry = {values: points.ravel().tolist()} | ({"person_id": ids} if ids else {})
    for frame in (0, 1, 12):
        (tmp_path / f"clip_{frame:012d}_keypoints.json").write_text(json.dumps({"version": 1.3, key: [entry]}))
    (one,) = read_people(tmp_path, 50, (640, 480)).values()
    assert (len(one), one.skeleton) == (13, "coco17")
    at = COCO_NAMES.index("left_elbow")
    np.testing.assert_allclose(one.keypoints[12, at], points[6, :2], rtol=1e-6)
    assert one.scores[0, COCO_NAMES.index("right_wrist")] == 0
    assert one.times[-1] == 12 / 50


def test_our_json_exports_are_read_back(tmp_path):
    from pose_fakes import random_result, run_info

    from pose.export import export, open_selection
    from pose.results import NpzWriter
    from pose.structures.skeletons import COCO17

    results = [random_result(RNG, frame, 2, COCO17) for frame in range(4)]
    with NpzWriter(tmp_path / "poses.npz", run_info(COCO17)) as writer:
        for result in results:
            writer.write(result)
    made = [one.path for one in export(open_selection(tmp_path / "poses.npz"), ["coco", "openpose"], tmp_path, "poses")]
    for path in made:
        people = read_people(path, 25, (640, 480))
        assert list(people) == [7, 8]
        expected = np.stack([result.people.keypoints[1] for result in results])
        np.testing.assert_allclose(people[8].keypoints, expected, atol=0.01)
    assert len(_BODY_25) == 25


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("nothing", "expected COCO keypoint JSON, AlphaPose JSON, or a folder .*; the file contains a single value"),
        (None, "the file contains a single value, not an object or a list"),
        ([[1, 2], [3]], "a list, object or number is missing where the format has one"),
        ([{"image_id": 1, "keypoints": {}}, 7], "a list, object or number is missing"),
        ([], "contains no keypoints"),
        ([{"image_id": 1, "bbox": []}], "expected COCO keypoint JSON.*; 'keypoints' is missing"),
        ([{"image_id": 1, "keypoints": [1, 2, 3]}], r"x, y, score of 17, 18, 25.* joints.*got \(3,\)"),
        ([{"image_id": "first", "keypoints": [1.0] * 51}], "'first' has no frame number"),
        ([{"image_id": 1, "keypoints": [1.5] * 51}] * 2, "several people without ids in frame 1; one person"),
        ({"images": []}, "'annotations' is missing"),
        ({"images": [{"id": 1, "width": 0, "height": 9}], "annotations": []}, "its images have 0 x 9 px"),
        ([{"image_id": 0, "keypoints": [1.5] * 51}, {"image_id": 10**9, "keypoints": [1.5] * 51}], "frames are miss"),
    ],
)  # fmt: skip
def test_wrong_files_get_one_line_that_says_what_was_expected(tmp_path, document, complaint):
    with pytest.raises(PoseError, match=complaint) as caught:
        read(tmp_path / "wrong.json", document)
    assert "\n" not in str(caught.value)


def test_missing_rate_and_size_must_be_given(tmp_path):
    entries = [{"image_id": 1, "keypoints": person().ravel().tolist()}]
    with pytest.raises(UsageError, match=r"contains no time stamps; .* --fps"):
        read(tmp_path / "a.json", entries, fps=None)
    with pytest.raises(UsageError, match=r"contains no image size; .* --image-size"):
        read(tmp_path / "a.json", entries, size=None)
    with pytest.raises(UsageError, match="no such file or folder"):
        read_people(tmp_path / "none.json", 25, (640, 480))
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(PoseError, match=r"invalid JSON \(nested too deeply\)"):
        read_people(tmp_path / "deep.json", 25, (640, 480))
    with pytest.raises(PoseError, match="invalid JSON"):
        read_people(tmp_path / "binary.json", 25, (640, 480))
    (tmp_path / "folder").mkdir()
    with pytest.raises(PoseError, match=r"the folder contains no .json file"):
        read_people(tmp_path / "folder", 25, (640, 480))


NUMBERS = [0.0, -1.0, 1e38, -1e38, 1e300, 5e-324, 1e-40, np.inf, -np.inf, np.nan, 1e6, 2.0**63]


def usual() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    return {
        "keypoints": draw.uniform(0, 100, (5, 17, 2)),
        "scores": draw.uniform(0.1, 1, (5, 17)),
        "timestamps": np.arange(5) / 30,
        "image_size": np.array([100, 100]),
        "skeleton": np.array("coco17"),
        "intrinsics": np.array([[100.0, 0, 50], [0, 100, 50], [0, 0, 1]]),
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"keypoints": np.full((5, 17, 2), 1e38)}, "keypoints: beyond 1e+06 px"),
        ({"keypoints": np.full((5, 17, 2), -1e300)}, "keypoints: beyond 1e+06 px"),
        ({"timestamps": np.arange(5) * 5e-324}, "timestamps: frames are less than 5e-07 s apart"),
        ({"timestamps": np.arange(5) * 1e300}, "timestamps: beyond 1e+10 s"),
        ({"image_size": np.array([1e38, 100])}, "image_size"),
        ({"skeleton": np.array(9999 * "x")}, f"skeleton: unknown name '{40 * 'x'}'; known: "),
    ],
)
def test_impossible_keypoint_numbers_are_rejected(tmp_path, change, said):
    np.savez(tmp_path / "a.npz", **usual() | change)
    with pytest.raises(PoseError) as error:
        read_keypoints(tmp_path / "a.npz")
    assert str(error.value).startswith(f"{tmp_path / 'a.npz'}: {said}")


def test_long_texts_of_damaged_files_are_cut(tmp_path):
    """zipfile quotes the name of a member in full, however long damage made it."""
    np.savez(tmp_path / "a.npz", **usual())
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[27] = 27  # the name's length, of which this is the upper byte
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(PoseError, match="damaged") as error:
        read_keypoints(tmp_path / "a.npz")
    assert len(str(error.value).removeprefix(str(tmp_path))) < 300


def test_seconds_since_1970_at_a_thousand_frames_a_second_are_read(tmp_path):
    times = 1.7e9 + np.arange(5) / 1000
    np.savez(tmp_path / "a.npz", **usual() | {"timestamps": times})
    assert read_keypoints(tmp_path / "a.npz").times.tolist() == times.tolist()


def _mutated(tmp_path, data) -> None:
    arrays = usual()
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(arrays)))
        array = arrays[name]
        match data.draw(st.sampled_from(["number", "type", "shape", "drop", "text"])):
            case "number" if array.dtype.kind == "f" and array.size:
                with np.errstate(all="ignore"):  # as half precision, 1e38 is infinite
                    array.flat[data.draw(st.integers(0, array.size - 1))] = data.draw(st.sampled_from(NUMBERS))
            case "type" if array.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    arrays[name] = array.astype(data.draw(st.sampled_from(["f2", "f4", "i8", "u1", "c16", "?", "U8"])))
            case "shape":
                arrays[name] = array.reshape(data.draw(st.sampled_from([(-1,), (1, -1), (-1, 1, 1)])))
            case "drop" if len(arrays) > 1:
                del arrays[name]
            case "text":
                arrays[name] = np.array(data.draw(st.sampled_from(["", "h36m17", "x" * 9999])))
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    if data.draw(st.booleans()):
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("ignore", PoseWarning)
        try:
            sequence, said = read_keypoints(path), ""
        except PoseError as error:
            sequence, said = None, str(error).removeprefix(str(path))
    assert "\n" not in said
    assert len(said) < 600
    if sequence is None:
        return
    assert np.isfinite(sequence.keypoints).all()
    assert np.isfinite(sequence.times).all()
    assert ((sequence.scores >= 0) & (sequence.scores <= 1)).all()


@quick_and_long(50, 4000)
def test_mutated_keypoint_files_are_read_or_rejected(tmp_path, examples):
    try_mutations(lambda data: _mutated(tmp_path, data), examples)
