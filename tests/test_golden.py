"""The comparison of golden outputs, on small folders."""

import base64
import json
import re

import av
import cv2
import numpy as np
import pytest
from golden_files import compare_folders

NUMBERS = np.linspace(0.5, 30, 12).reshape(4, 3)


def write_npz(path, change):
    np.savez(path, points=NUMBERS + change, ids=np.arange(4), run=json.dumps({"fps": 30.0 + change, "ids": [1, 2]}))


def write_json(path, change):
    path.write_text(
        json.dumps({"created_by": "pose-run 1.2", "people": [{"id": 1, "joints": (NUMBERS + change).tolist()}]})
    )


def write_csv(path, change):
    path.write_text("frame,x\n" + "\n".join(f"{frame},{x + change:.9f}" for frame, x in enumerate(NUMBERS[:, 0])))


def write_glb(path, change):
    from pygltflib import FLOAT, GLTF2, VEC3, Accessor, Buffer, BufferView

    data = (NUMBERS + change).astype("<f4").tobytes()
    gltf = GLTF2(
        accessors=[Accessor(bufferView=0, componentType=FLOAT, count=4, type=VEC3)],
        bufferViews=[BufferView(buffer=0, byteOffset=0, byteLength=len(data))],
        buffers=[Buffer(byteLength=len(data))],
    )
    gltf.set_binary_blob(data)
    gltf.save_binary(str(path))


def write_c3d(path, change):
    import ezc3d

    file = ezc3d.c3d()
    file["parameters"]["POINT"]["RATE"]["value"] = [30]
    file["parameters"]["POINT"]["LABELS"]["value"] = ["a", "b", "c"]
    file["data"]["points"] = np.stack([NUMBERS.T + change] * 4)
    file.write(str(path))


def write_parquet(path, change):
    import pyarrow as pa
    from pyarrow.parquet import write_table

    write_table(pa.table({"x": NUMBERS[:, 0] + change, "joint": ["a", "b", "c", "d"]}), path)


def write_rrd(path, change):
    import rerun as rr

    with rr.RecordingStream("test") as stream:
        stream.save(path)
        stream.set_time("video", duration=1.0)
        stream.log("points", rr.Points3D((NUMBERS + change).astype(np.float32)))


def write_html(path, change):
    image = np.full((64, 64, 3), 90, np.uint8)
    image[10:20, 10:20] = 250 if change > 1e-4 else 200
    quality = 95 if change else 94
    content = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
    path.write_text(f'<img src="data:image/jpeg;base64,{base64.b64encode(content).decode()}">\n<p>{0.5 + change:.9f}')


def write_mp4(path, change):
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=10, options={"threads": "1"})
        stream.width = stream.height = 64
        for shift in range(3):
            image = np.full((64, 64, 3), 90, np.uint8)
            side = 8 if change > 1e-4 else 4
            image[10 : 10 + side, shift : shift + side] = 250
            output.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        output.mux(stream.encode())
    if 0 < change < 1e-4:  # other bytes, the same frames
        path.write_bytes(path.read_bytes() + b"\0\0\0\x08free")


WRITERS = {
    name: globals()[f"write_{name}"] for name in ("npz", "json", "csv", "glb", "c3d", "parquet", "rrd", "mp4", "html")
}


@pytest.mark.parametrize("kind", WRITERS)
def test_numbers_are_equal_within_the_tolerance_only(tmp_path, kind, capsys):
    WRITERS[kind](written(tmp_path / "expected", kind), 0.0)
    for change, differs, printed in (
        (0.0, 0, r"1 files equal \(\d+ bytes, [01] within 1e-06\), 0 different\n"),
        (4e-7, 0, r"1 files equal \(\d+ bytes, 1 within 1e-06\), 0 different\n"),
        (1e-3, 1, rf"case/result\.{kind}: .*\n0 files equal.*\n"),
    ):
        WRITERS[kind](written(tmp_path / f"actual {change}", kind), change)
        assert compare_folders(tmp_path / "expected", tmp_path / f"actual {change}") == differs
        assert re.fullmatch(printed, capsys.readouterr().out)


def written(folder, kind):
    (folder / "case").mkdir(parents=True)
    return folder / "case" / f"result.{kind}"


def compare_texts(tmp_path, expected: str, actual: str, name: str = "a.txt") -> int:
    for folder, text in (("expected", expected), ("actual", actual)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(text)
    return compare_folders(tmp_path / "expected", tmp_path / "actual")


def test_missing_and_new_files_fail(tmp_path, capsys):
    compare_texts(tmp_path, "a", "a")
    (tmp_path / "expected/b.csv").write_text("1")
    (tmp_path / "actual/c.csv").write_text("1")
    assert compare_folders(tmp_path / "expected", tmp_path / "actual") == 1
    lines = ["b.csv: missing", "c.csv: new", "1 files equal (1 bytes, 0 within 1e-06), 2 different"]
    assert capsys.readouterr().out.splitlines()[1:] == lines


def test_only_named_cases_are_compared(tmp_path):
    for name in ("first.txt", "second.txt"):
        compare_texts(tmp_path, "1.0", "1.0" if name == "first.txt" else "2.0", name)
    folders = tmp_path / "expected", tmp_path / "actual"
    assert compare_folders(*folders, ["first"]) == 0
    assert compare_folders(*folders, ["second"]) == 1


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("frame 3", "frame 4"),
        ("x 100000001", "x 100000002"),
        ("data:YWJj12e3", "data:YWJj12e4"),
        ("x 1.5 m", "x 1.5 mm"),
        ("x nan", "x 1.0"),
        ("a\nb", "a"),
    ],
)
def test_texts_that_differ_fail(tmp_path, expected, actual):
    assert compare_texts(tmp_path, expected, actual) == 1


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"a": 1}, {"b": 1}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": None}, {"a": 0}),
        ({"a": True}, {"a": 1}),
        ({"a": "x"}, {"a": "y"}),
    ],
)
def test_json_that_differs_fails(tmp_path, expected, actual):
    assert compare_texts(tmp_path, json.dumps(expected), json.dumps(actual), "a.json") == 1


def test_version_and_duration_of_a_run_may_change(tmp_path):
    assert (
        compare_texts(tmp_path, '{"created_by": "pose-run 0.2.0"}', '{"created_by": "pose-run 0.3.0rc1"}', "a.json")
        == 0
    )
    assert compare_texts(tmp_path, "4 frames; took 1.2 s (3 frames/s)\n", "4 frames; took 2.9 s (1 frames/s)\n") == 0


def test_arrays_of_another_type_or_shape_fail(tmp_path, capsys):
    for folder, array in (("expected", np.zeros(3)), ("actual", np.zeros(3, np.float32))):
        (tmp_path / folder).mkdir()
        np.savez(tmp_path / folder / "a.npz", x=array)
    assert compare_folders(tmp_path / "expected", tmp_path / "actual") == 1
    assert "a.npz: /x: float32 (3,) instead of float64 (3,)" in capsys.readouterr().out
