"""Untrusted keypoint files: read into finite numbers, or one line; NumPy has nothing to warn of."""

import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import quick_and_long, try_mutations

from pose.errors import PoseError, PoseWarning
from pose.results.keypoints import read_keypoints

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
