"""The Python API checks arrays and numbers as the commands do, before any work, whatever their type and shape."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import one_line, quick_and_long, try_mutations

import pose
from pose import Pipeline, PoseError, UsageError, lift, several
from pose.pipeline import _checked_intrinsics
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D

T, J = 6, 17
CAMERA = Camera.of((640, 480))


def person(**changes) -> Sequence2D:
    keypoints = np.random.default_rng(0).uniform(100, 400, (T, J, 2)).astype(np.float32)
    given = {"keypoints": keypoints, "scores": np.ones((T, J), np.float32), "times": np.arange(T) / 30}
    return Sequence2D(**{**given, "camera": CAMERA, "skeleton": "coco17", **changes})


def with_value(shape: tuple[int, ...], place: tuple[int, ...], value: float, fill: float = 200.0) -> np.ndarray:
    array = np.full(shape, fill, np.float32)
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"keypoints": with_value((T, J, 2), (2, 3, 0), np.nan)}, "NaN or infinity in frame 2, joint 3"),
        ({"keypoints": with_value((T, J, 2), (0, 0, 1), np.inf)}, "NaN or infinity in frame 0, joint 0"),
        ({"keypoints": with_value((T, J, 2), (0, 0, 1), 2e6)}, "expected pixel coordinates"),
        ({"scores": with_value((T, J), (1, 2), np.nan, 1.0)}, "must lie in 0 to 1, got nan in frame 1, joint 2"),
        ({"scores": with_value((T, J), (1, 2), -0.1, 1.0)}, "must lie in 0 to 1"),
        ({"scores": with_value((T, J), (1, 2), 99, 1.0)}, "must lie in 0 to 1"),
        ({"skeleton": "coco18"}, "skeleton: unknown name 'coco18'"),
        ({"skeleton": "halpe26"}, "has 26 keypoints, got 17"),
        ({"keypoints": np.zeros((0, J, 2)), "scores": np.zeros((0, J)), "times": np.zeros(0)}, "contain no frame"),
        ({"camera": Camera(np.diag([np.nan, 1.0, 1.0]), True, (640, 480))}, "intrinsics: expected"),
    ],
)
def test_lift_rejects_keypoints_that_are_not_as_documented(changes, said):
    with pytest.raises(UsageError, match="person 4: ") as caught:
        lift({4: person(**changes)})
    assert said in str(caught.value)


@pytest.mark.parametrize("number", [2**53, 2**70, -1, 1.0, "1", None, True])
def test_lift_rejects_ids_that_cannot_be_stored(number):
    with pytest.raises(UsageError, match="expected track ids from 0 to"):
        lift({number: person()})


@pytest.mark.parametrize("one", [None, 3, np.zeros((T, J, 2)), "text"])
def test_lift_rejects_what_is_no_sequence(one):
    with pytest.raises(UsageError, match="expected a Sequence2D for person 1"):
        lift({1: one})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"keypoints": [[1, 2], [3]]}, "Sequence2D.keypoints: expected an array of numbers"),
        ({"keypoints": "text"}, "Sequence2D.keypoints: expected numbers"),
        ({"scores": np.ones(T)}, r"Sequence2D.scores: expected shape \(T, J\)"),
        ({"scores": np.ones((T, J), complex)}, "Sequence2D.scores: expected numbers, got complex128"),
        ({"times": np.arange(T)[::-1]}, "must increase strictly"),
        ({"times": [0.0] * T}, "must increase strictly"),
        ({"times": [0, 1]}, "Sequence2D.times"),
        ({"times": np.array(["a"] * T)}, "Sequence2D.times: expected numbers"),
        ({"times": np.arange(T).astype("datetime64[s]")}, "Sequence2D.times: expected numbers"),
        ({"camera": np.eye(3)}, "Sequence2D.camera: expected a Camera, got ndarray"),
        ({"skeleton": ["coco17"]}, "Sequence2D.skeleton: expected a str, got list"),
    ],
)
def test_a_sequence_names_the_array_that_is_wrong(changes, said):
    with pytest.raises(ValueError, match=said):
        person(**changes)


def test_lists_and_other_number_types_are_converted():
    given = person()
    same = person(
        keypoints=given.keypoints.tolist(),
        scores=given.scores.astype(np.int64),
        times=(given.times.astype(np.float32)).tolist(),
    )
    assert (same.keypoints.dtype, same.scores.dtype, same.times.dtype) == (np.float32, np.float32, np.float64)
    np.testing.assert_array_equal(same.keypoints, given.keypoints)


@pytest.mark.parametrize("intrinsics", [np.eye(2), "text", [[1]], np.zeros((3, 3)), np.full((3, 3), np.nan), object()])
def test_a_pipeline_rejects_intrinsics_that_are_no_camera(intrinsics):
    with pytest.raises(UsageError, match="intrinsics: "):
        Pipeline(intrinsics=intrinsics, lazy=True)


@pytest.mark.parametrize("size", [None, "640x480", ("640", "480"), 640, (640,), (640, 480, 3), (0, 480), (6.5, 4)])
def test_a_camera_rejects_a_size_that_is_not_width_and_height(size):
    with pytest.raises(UsageError, match="size: expected width and height in px, got "):
        Camera.of(size)


@pytest.mark.parametrize("intrinsics", ["text", np.eye(2), object(), [[1], [2, 3]]])
def test_a_camera_rejects_intrinsics_that_are_no_matrix(intrinsics):
    with pytest.raises(UsageError, match=r"intrinsics: expected \(3, 3\) numbers, got "):
        Camera.of((640, 480), intrinsics)


@pytest.mark.parametrize("values", [(500, 500, 1e9, 0), (500, 500, 0, -1e9), (1e9, 500, 0, 0)])
def test_intrinsics_that_do_not_fit_the_image_are_rejected(values):
    fx, fy, cx, cy = values
    with pytest.raises(UsageError, match="too much for an image of 640 x 480 px"):
        _checked_intrinsics(np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]), (640, 480))


@pytest.mark.parametrize("heights", [0, "", [], False, 1.8])
def test_heights_that_are_no_mapping_are_rejected(heights):
    with pytest.raises(UsageError, match="heights: expected a mapping from ids to metres"):
        lift({1: person()}, world=True, heights=heights)


@pytest.mark.parametrize("height", [0, -1, 99, np.nan, np.inf, "1.8", True])
def test_several_checks_the_height_before_any_work(height, tmp_path):
    videos = [tmp_path / "a.mp4", tmp_path / "b.mp4"]
    for video in videos:
        video.write_bytes(b"no video")
    with pytest.raises(UsageError, match="height: "):
        several(videos, height=height)


def test_settings_of_opencv_that_are_no_numbers_count_as_not_set():
    """OpenCV would end the process."""
    names = ("PIXELS", "WIDTH", "HEIGHT")
    settings = {f"OPENCV_IO_MAX_IMAGE_{name}": "x" for name in names}
    code = (
        "import pose, cv2, numpy; print(cv2.imdecode(cv2.imencode('.png', numpy.zeros((4, 4, 3), 'u1'))[1], 1).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **settings}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("(4, 4, 3)\n", "")


def test_shipped_weights_are_listed_without_utf8():
    settings = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = "from pose.networks.weights.packaged import packaged_weights as w; print(len(w()) > 1)"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **settings}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pose.load(None), "path: expected a path, got None"),
        (lambda: pose.load("a\0b"), "path: expected a path, got"),
        (lambda: pose.lift({1: person()}, lifter=3), "lifter: expected a path, got 3"),
        (lambda: pose.convert("x.npz", 5, "out"), "formats: expected names of formats, got 5"),
        (lambda: pose.convert("x.npz", ["csv", 5], "out"), "formats: expected names of formats"),
        (lambda: pose.analyse(7), "path: expected a path, got 7"),
        (lambda: pose.several(None), "videos: expected a list of paths"),
        (lambda: pose.lift({1: person()}, edits=[1, 2]), r"edits: expected a path or a list of edits, got \[1, 2\]"),
        (lambda: Pipeline(lazy=True).process("x.mp4", progress=3), "progress: expected a function, got 3"),
        (lambda: Pipeline(lazy=True).process("x.mp4", start="1"), "start: expected a number, got '1'"),
        (lambda: Pipeline(lazy=True).process("x.mp4", end="1"), "end: expected a number, got '1'"),
        (lambda: Pipeline(lazy=True, detector=3), "detector: expected the name of a detector or a Detector, got 3"),
        (lambda: pose.Frame.from_bgr("x", 0, 0.0), r"image: expected \(H, W, 3\) uint8, got str"),
        (lambda: pose.Frame.from_bgr(np.zeros((5, 3)), 0, 0.0), r"image: .*, got float64 of shape \(5, 3\)"),
        (lambda: pose.Frame.from_bgr(np.zeros((5, 3, 4), "u1"), 0, 0.0), r"image: .*, got uint8 of shape \(5, 3, 4\)"),
        (lambda: Pipeline(lazy=True).process("x.mp4", edits=3), "edits: expected a path or a list of edits, got 3"),
    ],
)
def test_an_argument_of_another_type_is_named(call, said):
    with pytest.raises(UsageError, match=said):
        call()


TYPES = ("f4", "f8", "f2", "i4", "u1", "i8", "?", "c8", "O", "U3", "M8[s]", ">f4")
VALUES = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e38, 1e-40, 255.0, 2.0**31)


def array_of(data: st.DataObject, usual: np.ndarray) -> object:
    """The usual array with another type, shape, order or value, or something else."""
    array = usual.copy()
    for kind in data.draw(st.lists(st.sampled_from(["type", "shape", "order", "value", "other"]), max_size=2)):
        if not isinstance(array, np.ndarray):
            return array
        if kind == "type":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                array = array.astype("i8").astype(data.draw(st.sampled_from(TYPES)))
        elif kind == "shape":
            array = array[data.draw(st.sampled_from([np.s_[:0], np.s_[:1], np.s_[..., :1], np.s_[None], np.s_[1:]]))]
        elif kind == "order":
            array = data.draw(st.sampled_from([np.asfortranarray, np.flip, np.ndarray.tolist, np.broadcast_arrays]))(
                array
            )
        elif kind == "value" and array.size and array.dtype.kind == "f":
            array = array.copy()
            array.flat[data.draw(st.integers(0, array.size - 1))] = data.draw(st.sampled_from(VALUES))
        elif kind == "other":
            array = data.draw(st.sampled_from([None, "text", 3, [], {}, b"", [[1], [2, 3]]]))
    return array


@quick_and_long(25, 1000)
def test_any_array_ends_in_a_finite_result_or_one_line(examples):
    rng = np.random.default_rng(0)
    frames, joints = 8, 17
    keypoints = rng.uniform(100, 400, (frames, joints, 2)).astype(np.float32)
    usual = {"keypoints": keypoints, "scores": np.ones((frames, joints), np.float32), "times": np.arange(frames) / 25}

    def check(data: st.DataObject) -> None:
        arrays = {name: array_of(data, array) for name, array in usual.items()}
        number = data.draw(st.sampled_from([1, 0, -1, 2**53, 2**70, 1.5, "a", np.int64(3)]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = lift(
                    {number: Sequence2D(**arrays, camera=Camera.of((640, 480)), skeleton="coco17")}, lifter="stream"
                )
        except (PoseError, ValueError) as error:
            one_line(error)
            return
        assert np.isfinite(result.joints()).all()
        assert np.isfinite(result.times).all()

    try_mutations(check, examples)
