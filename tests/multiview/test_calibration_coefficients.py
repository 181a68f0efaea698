"""Every optional coefficient of a calibration file is used, or refused in one line."""

import json

import cv2
import numpy as np
import pytest

from pose.errors import PoseError
from pose.multiview.calibration_files import read_cameras

SIZE = 1280, 720
K = [[1000.0, 0.0, 640.0], [0.0, 1000.0, 360.0], [0.0, 0.0, 1.0]]


def cameras(tmp_path, distance=1.0, **changes):
    first = {"name": "a", "K": K, "distortion": [], "R": np.eye(3).tolist(), "t": [0, 0, 0], "size": SIZE}
    path = tmp_path / "cameras.json"
    path.write_text(json.dumps({"cameras": [first | changes, first | {"name": "b", "t": [distance, 0, 0]}]}))
    return read_cameras(path, ["a", "b"], [SIZE, SIZE])


@pytest.mark.parametrize("more", [[0.05], [-0.02], [0.03, 0.01, -0.02, 0.01]])
def test_more_radial_coefficients_move_no_point_by_a_pixel(tmp_path, more, rng):
    lens = [-0.2, 0.05, 0.0, 0.0, *more]
    camera = cameras(tmp_path, distortion=lens)[0]
    points = np.c_[rng.uniform(-0.6, 0.6, 500), rng.uniform(-0.34, 0.34, 500), np.ones(500)]
    zero = np.zeros(3)
    expected = cv2.projectPoints(points, zero, zero, np.array(K), np.array(lens))[0][:, 0]
    square = (points[:, :2] ** 2).sum(axis=1)
    bent = points[:, :2] * camera.lens.factor(square)[:, None]
    inside = ((expected >= 0) & (expected < SIZE)).all(axis=1)
    assert np.abs(camera.focal * bent + camera.centre - expected)[inside].max() < 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"distortion": [0, 0, 0, 0, 30.0]}, "cannot replace k3 to k6"),
        ({"distortion": [0, 0, 0, 0, -30.0]}, "fold the image"),
        ({"distortion": [0, 0, 0, 0, 0, 0, 0, 0, 0.1]}, "thin prism"),
        ({"K": [[1000, 5, 640], K[1], K[2]]}, "intrinsics: expected"),
        ({"K": [K[0], [5, 1000, 360], K[2]]}, "intrinsics: expected"),
        ({"K": [K[0], K[1], [0, 0, 2]]}, "intrinsics: expected"),
        ({"K": [[-1000, 0, 640], [0, -1000, 360], K[2]]}, "intrinsics: expected"),
        ({"K": [[1000, 0, 640], [0, 1100, 360], K[2]]}, "fx and fy differ"),
    ],
)
def test_what_the_camera_model_lacks_is_refused_in_one_line(tmp_path, changes, why):
    with pytest.raises(PoseError, match=why) as error:
        cameras(tmp_path, **changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("given", "metres"), [(31.0, 31.0), (99.0, 99.0), (3000.0, 3.0)])
def test_the_unit_of_positions(tmp_path, given, metres):
    found = cameras(tmp_path, distance=given)
    assert np.linalg.norm(found[1].position - found[0].position) == pytest.approx(metres)


@pytest.mark.parametrize("suffix", ["json", "toml", "yml"])
def test_a_mark_of_byte_order_is_accepted(tmp_path, suffix):
    cameras(tmp_path)
    text = (tmp_path / "cameras.json").read_text()
    part = "matrix = [[1000.0, 0, 640], [0, 1000, 360], [0, 0, 1]]\nrotation = [0.0, 0, 0]\n"
    texts = {
        "json": text,
        "toml": f'[cam_0]\nname = "a"\n{part}translation = [0.0, 0, 0]\n'
        f'[cam_1]\nname = "b"\n{part}translation = [1.0, 0, 0]\n',
        "yml": "%YAML:1.0\n---\n"
        + "".join(
            f"{name}: !!opencv-matrix\n   rows: {rows}\n   cols: {cols}\n   dt: d\n   data: {data}\n"
            for name, rows, cols, data in (
                *((f"M{n}", 3, 3, [1000, 0, 640, 0, 1000, 360, 0, 0, 1]) for n in (1, 2)),
                *((f"D{n}", 1, 4, [0, 0, 0, 0]) for n in (1, 2)),
                ("R", 3, 3, [1, 0, 0, 0, 1, 0, 0, 0, 1]),
                ("T", 3, 1, [1, 0, 0]),
            )
        ),
    }
    path = tmp_path / f"marked.{suffix}"
    path.write_text(texts[suffix], encoding="utf-8-sig")
    found = read_cameras(path, ["a", "b"], [SIZE, SIZE])
    assert np.linalg.norm(found[1].position) == pytest.approx(1)
