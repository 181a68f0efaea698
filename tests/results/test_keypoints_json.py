"""Keypoints of other programs, in the shapes that these programs write."""

import json

import numpy as np
import pytest

from pose.errors import PoseError, UsageError
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
