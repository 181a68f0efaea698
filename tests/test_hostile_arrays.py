"""Arrays of any type, shape, order and value given to the Python API: a finite result, or one line."""

import warnings

import numpy as np
from hypothesis import strategies as st
from mutations import one_line, quick_and_long, try_mutations

from pose import PoseError, lift
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D

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
