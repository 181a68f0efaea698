"""Vicon's `.xcp` and Theia's XML: files written from their descriptions give the cameras they were written from."""

import numpy as np
import pytest
import scenes
from setups import ONE

from pose.errors import PoseError
from pose.multiview.calibration_files import read_cameras, read_lab

VIEWS = scenes.cameras((0.0, 75.0, 200.0), people=[ONE], seed=4)
EXACT = scenes.exact(VIEWS)
NAMES = ["2101", "2102", "2103"]
SIZES = [view.size for view in VIEWS]
Z_UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # axes of the laboratory in those of the scene, as columns


def quaternion(matrix) -> list[float]:
    """x y z w, from the eigenvector of Bar-Itzhack's matrix."""
    m = matrix
    k = np.array([
        [m[0, 0] - m[1, 1] - m[2, 2], m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], m[2, 1] - m[1, 2]],
        [m[1, 0] + m[0, 1], m[1, 1] - m[0, 0] - m[2, 2], m[2, 1] + m[1, 2], m[0, 2] - m[2, 0]],
        [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
        [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
    ])  # fmt: skip
    return np.linalg.eigh(k)[1][:, -1].tolist()


def written_xcp(views=VIEWS, head="", **changes) -> str:
    cameras = ""
    for name, view in zip(NAMES, views, strict=True):
        rotation = view.rotation @ Z_UP
        position = -1000 * rotation.T @ view.translation
        values = {
            "FOCAL_LENGTH": view.matrix[0, 0], "ORIENTATION": quaternion(rotation), "POSITION": position.tolist(),
            "PRINCIPAL_POINT": view.matrix[:2, 2].tolist(),
            "VICON_RADIAL2": f"ViconRadial2 {view.matrix[0, 2]} {view.matrix[1, 2]} 0.05 0.01 0",
        } | changes  # fmt: skip
        spelled = " ".join(f'{key}="{str(value).strip("[]").replace(",", "")}"' for key, value in values.items())
        size = f"{view.size[0]} {view.size[1]}"
        cameras += (
            f'<Camera DEVICEID="{name}" TYPE="Vue" SENSOR_SIZE="{size}" PIXEL_ASPECT_RATIO="1" SKEW="0"><KeyFrames>'
            f"<KeyFrame {spelled}/></KeyFrames></Camera>"
        )
    marker = '<Camera DEVICEID="9" TYPE="T40S"><KeyFrames><KeyFrame FOCAL_LENGTH="9"/></KeyFrames></Camera>'
    return f'<?xml version="1.0" encoding="UTF-8"?>{head}<Cameras>{marker}{cameras}</Cameras>'


def written_theia(views=VIEWS) -> str:
    cameras = ""
    for name, view in zip(NAMES, views, strict=True):
        rotation, (width, height) = view.rotation @ Z_UP, view.size
        rows = "".join(f' r{i + 1}{j + 1}="{rotation[i, j]:.12f}"' for i in range(3) for j in range(3))
        x, y, z = 1000 * view.translation
        (fx, _, cx), (_, fy, cy), _ = view.matrix
        cameras += (
            f'<camera active="1" serial="{name}" viewrotation="0"><transform x="{x}" y="{y}" z="{z}"{rows}/>'
            f'<intrinsic sensorMinU="0" sensorMaxU="{width - 1}" sensorMinV="0" sensorMaxV="{height - 1}" '
            f'focalLengthU="{fx}" focalLengthV="{fy}" centerPointU="{cx}" centerPointV="{cy}" skew="0" '
            f'radialDistortion1="0.05" radialDistortion2="0.01" tangentialDistortion1="0"/></camera>'
        )
    return f"<calibration><cameras>{cameras}</cameras></calibration>"


@pytest.mark.parametrize(("file", "text"), [("a.xcp", written_xcp()), ("a.txt", written_theia())])
def test_cameras_are_those_that_were_written(tmp_path, file, text):
    (tmp_path / file).write_text(text)
    for found, exact in zip(read_cameras(tmp_path / file, NAMES, SIZES), EXACT, strict=True):
        np.testing.assert_allclose(found.rotation, exact.rotation, atol=1e-6)
        np.testing.assert_allclose(found.translation, exact.translation, atol=1e-5)
        assert found.focal == pytest.approx(exact.focal)
        np.testing.assert_allclose(found.centre, exact.centre)
        assert found.lens.coefficients == (0.05, 0.01)
    lab = read_lab(tmp_path / file, NAMES, SIZES)
    np.testing.assert_allclose(lab.axes[:, 2], VIEWS[0].rotation[:, 1], atol=1e-6)  # z is up
    np.testing.assert_allclose(lab.origin, VIEWS[0].translation, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<Cameras/>", "contains no calibrated camera"),
        ("2101", "not XML"),
        (written_xcp(head='<!DOCTYPE a [<!ENTITY b "c">]>'), "document type definition"),
        (written_xcp(ORIENTATION=[0, 0, 0, 2]), "not a unit quaternion"),
        (written_xcp(POSITION=[1, 2]), "POSITION: expected 3 numbers"),
        (written_xcp(FOCAL_LENGTH="nan"), "FOCAL_LENGTH is not a finite number"),
        (written_xcp().replace("</KeyFrames>", "<KeyFrame/></KeyFrames>"), "moving camera"),
        (written_xcp().replace('RATIO="1"', 'RATIO="0"'), "PIXEL_ASPECT_RATIO"),
        (written_xcp().replace("POSITION", "PLACE"), "'POSITION' is missing"),
    ],
)
def test_an_invalid_xcp_gives_a_one_line_error(tmp_path, text, message):
    (tmp_path / "a.xcp").write_text(text)
    with pytest.raises(PoseError, match=message) as caught:
        read_cameras(tmp_path / "a.xcp", NAMES, SIZES)
    assert "\n" not in str(caught.value)
