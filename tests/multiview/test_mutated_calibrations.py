"""Untrusted calibration files: read into cameras of finite numbers, or one line; NumPy has no warnings."""

import json

import cv2
import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import damaged, one_line, other_value, quick_and_long, try_mutations
from test_qualisys import written
from test_vicon import NAMES as VICON_NAMES
from test_vicon import SIZES as VICON_SIZES
from test_vicon import written_theia, written_xcp

from pose.errors import PoseError
from pose.multiview.calibration_files import read_cameras

NAMES, SIZES = ["left", "right"], [(640, 480), (640, 480)]
MATRIX = [[600.0, 0.0, 320.0], [0.0, 600.0, 240.0], [0.0, 0.0, 1.0]]
CAMERA = {
    "name": "left", "size": [640, 480], "matrix": MATRIX, "distortions": [0.1, 0.0, 0.0, 0.0],
    "rotation": [0.0, 0.0, 0.0], "translation": [0.0, 0.0, 0.0], "fisheye": False,
}  # fmt: skip
DOCUMENT = {"cam_0": CAMERA, "cam_1": CAMERA | {"name": "right", "rotation": [0.0, 1.5, 0.0]}}
TOML = "".join(
    f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in camera.items())
    for name, camera in DOCUMENT.items()
)


def read(path, names=NAMES, sizes=SIZES) -> None:
    try:
        cameras = read_cameras(path, names, sizes)
    except PoseError as error:
        one_line(error)
        return
    for camera in cameras:
        assert np.isfinite([camera.focal, *camera.lens.coefficients]).all()
        for part in (camera.matrix, camera.rotation, camera.translation):
            assert np.isfinite(part).all()


def stereo(path) -> bytes:
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    for name in ("M1", "M2"):
        storage.write(name, np.array(MATRIX))
    for name in ("D1", "D2", "T"):
        storage.write(name, np.array([[0.1], [0.0], [0.0]]))
    storage.write("R", np.eye(3))
    storage.release()
    return path.read_bytes()


@quick_and_long(50, 4000)
def test_calibration_values_of_any_type_are_read_or_rejected(tmp_path, examples):
    def check(data: st.DataObject) -> None:
        path = tmp_path / "a.json"
        path.write_text(json.dumps(other_value(data, DOCUMENT)))
        read(path)

    try_mutations(check, examples)


@pytest.mark.parametrize("suffix", ["json", "toml", "yml", "xml", "xcp", "txt"])
@quick_and_long(30, 2000)
def test_damaged_calibration_files_are_read_or_rejected(tmp_path, suffix, examples):
    path = tmp_path / f"a.{suffix}"
    qualisys = written((0, 0, 639, 479), names=("21001", "21002")).encode()
    texts = {
        "json": json.dumps(DOCUMENT).encode(), "toml": TOML.encode(), "yml": b"", "xml": qualisys,
        "xcp": written_xcp().encode(), "txt": written_theia().encode(),
    }  # fmt: skip
    whole = texts[suffix] or stereo(path)
    names, sizes = (VICON_NAMES, VICON_SIZES) if suffix in ("xcp", "txt") else (NAMES, SIZES)

    def check(data: st.DataObject) -> None:
        path.write_bytes(damaged(data, whole))
        read(path, names, sizes)

    path.write_bytes(whole)
    assert len(read_cameras(path, names, sizes)) == len(names)
    try_mutations(check, examples)


@pytest.mark.parametrize(
    "change",
    [
        {"rotation": [0.0, float("inf"), 0.0]},
        {"rotation": None}, {"rotation": [1e308, 0.0, 0.0]}, {"translation": [1e308, 0.0, 0.0]},
        {"distortions": None}, {"distortions": [float("nan")]}, {"size": [0, 0]}, {"size": 640},
        {"matrix": [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}, {"name": "a\nb"},
    ],
)  # fmt: skip
def test_calibration_inputs_that_failed_before_are_rejected(tmp_path, change):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"cam_0": CAMERA | change, "cam_1": DOCUMENT["cam_1"]}))
    read(path)


def test_an_image_size_of_zero_is_named(tmp_path):
    """It was a division by zero."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"cam_0": CAMERA | {"size": [0, 480]}, "cam_1": DOCUMENT["cam_1"]}))
    with pytest.raises(PoseError, match="left: expected an image size above 0, got 0 x 480 px"):
        read_cameras(path, NAMES, SIZES)


def test_yaml_that_crashes_opencv_is_rejected(tmp_path):
    (tmp_path / "a.yml").write_bytes(stereo(tmp_path / "whole.yml")[1:])
    with pytest.raises(PoseError, match="not a calibration") as caught:
        read_cameras(tmp_path / "a.yml", NAMES, SIZES)
    one_line(caught.value)


def test_yaml_alias_is_rejected(tmp_path):
    path = tmp_path / "a.yml"
    path.write_text("M1: &a [1, 2]\nD1: *a\n")
    with pytest.raises(PoseError, match="aliases"):
        read_cameras(path, NAMES, SIZES)


@pytest.mark.parametrize("content", ["%\ufeff", "[\ufeff%", "NaN\n\ufeff---\n"])
def test_invisible_characters_in_errors_are_escaped(content, tmp_path):
    path = tmp_path / "a.yml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(PoseError) as caught:
        read_cameras(path, ["a", "b"], [(640, 480)] * 2)
    one_line(caught.value)
