"""Calibration files of each form, with every optional coefficient: used, or refused in one line."""

import json

import cv2
import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import one_line, quick_and_long, try_mutations
from test_qualisys import CROP, image_of, written

from pose.errors import PoseError
from pose.multiview.calibration_files import MAX_FIT_ERROR_PX, read_cameras

SIZE = 1280, 720
TOLERANCE_PX = MAX_FIT_ERROR_PX + 0.1
COUNTS = (0, 1, 2, 4, 5, 8, 12, 14)


def lens_of(data: st.DataObject) -> list[float]:
    radial = st.floats(-0.3, 0.3)
    lens = [
        data.draw(radial | st.just(0.0)) * scale for scale in (1, 0.3, 0, 0, 0.1, 0.1, 0.02, 0.01, 0, 0, 0, 0, 0, 0)
    ]
    if not data.draw(st.integers(0, 5)):
        lens[data.draw(st.integers(2, 13))] = data.draw(st.sampled_from([0.05, -0.05, 1e-9, np.nan, 1e9]))
    return lens[: data.draw(st.sampled_from(COUNTS))]


def text_of(form: str, matrix: np.ndarray, lens: list[float], turn: np.ndarray, move: np.ndarray) -> str:
    if form == "json":
        first = {"name": "a", "K": matrix.tolist(), "distortion": lens, "R": np.eye(3).tolist(), "t": [0, 0, 0]}
        second = first | {"name": "b", "R": cv2.Rodrigues(turn)[0].tolist(), "t": move.tolist()}
        return json.dumps({"cameras": [first, second]})
    if form == "toml":
        return "".join(
            f'[cam_{number}]\nname = "{name}"\nsize = {list(SIZE)}\nmatrix = {matrix.tolist()}\n'
            f"distortions = {lens}\nrotation = {r}\ntranslation = {t}\n"
            for number, (name, r, t) in enumerate(
                [("a", [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]), ("b", turn.tolist(), move.tolist())]
            )
        )
    arrays = {f"M{n}": matrix for n in (1, 2)} | {f"D{n}": np.array([lens]) for n in (1, 2)}
    arrays |= {"R": cv2.Rodrigues(turn)[0], "T": move[:, None]}
    return "%YAML:1.0\n---\n" + "".join(
        f"{name}: !!opencv-matrix\n   rows: {array.shape[0]}\n   cols: {array.shape[1]}\n   dt: d\n"
        f"   data: [{', '.join('.Nan' if value != value else f'{value:.12f}' for value in array.ravel())}]\n"
        for name, array in arrays.items()
    )


@quick_and_long(60, 2000)
def test_a_camera_of_any_form_projects_as_opencv_does_or_is_refused(tmp_path, examples):
    def check(data: st.DataObject) -> None:
        form = data.draw(st.sampled_from(["json", "toml", "yml"]))
        focal = data.draw(st.floats(600, 2500))
        aspect = data.draw(st.sampled_from([1.0, 1.0, 1.002, 1.02]))
        matrix = np.array([[focal * aspect, 0, 640], [0, focal, 350], [0, 0, 1]])
        turn = np.array([data.draw(st.floats(-1, 1)) for _ in range(3)])
        move = np.array([data.draw(st.floats(-3, 3)) for _ in range(3)])
        lens = lens_of(data)
        path = tmp_path / f"cameras.{form}"
        path.write_text(text_of(form, matrix, lens, turn, move))
        try:
            camera = read_cameras(path, ["a", "b"], [SIZE, SIZE])[1]
        except PoseError as error:
            one_line(error)
            return
        seen = np.random.default_rng(0).uniform((-0.4, -0.2, 1), (0.4, 0.2, 1), (60, 3)) * 4
        points = (seen - move) @ cv2.Rodrigues(turn)[0]
        expected = cv2.projectPoints(points, turn, move, matrix, np.pad(lens, (0, 14 - len(lens))))[0][:, 0]
        inside = ((expected >= 0) & (expected < SIZE)).all(axis=1)
        error = np.abs(camera.project(points) - expected)[inside].max(initial=0)
        assert error < TOLERANCE_PX + (aspect - 1) / 2 * 800, (form, lens)  # fx and fy are averaged

    try_mutations(check, examples)


@quick_and_long(30, 1000)
def test_a_camera_of_qualisys_projects_as_stated_or_is_refused(tmp_path, examples):
    size = CROP[2] - CROP[0] + 1, CROP[3] - CROP[1] + 1

    def check(data: st.DataObject) -> None:
        lens = data.draw(st.floats(-0.2, 0.2)), data.draw(st.floats(-0.2, 0.2))
        third = data.draw(st.sampled_from(["0", "0.01", "-0.05", "5", "nan", "x"]))
        skew = data.draw(st.sampled_from([0.0, 0.0, 0.5, np.nan]))
        path = tmp_path / "a.xml"
        text = written(distortion=lens, skew=skew).replace('radialDistortion3="0"', f'radialDistortion3="{third}"')
        path.write_text(text)
        names = ["21001", "21002", "21003"]
        try:
            cameras = read_cameras(path, names, [size] * 3)
        except PoseError as error:
            one_line(error)
            return
        assert skew == 0
        if third == "0":
            first = cameras[0]
            point = np.array([0.0, 0.2, 1.0])
            assert np.isfinite(first.project(point[None])).all()
            assert np.isfinite(image_of("21001", point, CROP, lens)).all()

    try_mutations(check, examples)


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
