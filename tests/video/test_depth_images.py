"""Depth images in folders and Matroska files: layouts, times, and damaged ones."""

import json
import struct
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest

from pose.errors import PoseError, UsageError
from pose.video.depth import open_depth
from tests.sensor_files import check_damaged_depths

CAMERA = {"width": 64, "height": 48, "intrinsic_matrix": [50, 0, 0, 0, 51, 0, 31, 24, 1], "depth_scale": 500, "fps": 15}


def write_images(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for at, name in enumerate(names):
        cv2.imwrite(str(folder / name), np.full((12, 16), 1000 + at, np.uint16))


def test_open3d_folder(tmp_path):
    write_images(tmp_path / "depth", [f"{at:05d}.png" for at in range(4)])
    (tmp_path / "intrinsic.json").write_text(json.dumps(CAMERA))
    depth = open_depth(tmp_path, offset=2.0)
    np.testing.assert_allclose(depth.times, 2 + np.arange(4) / 15)
    np.testing.assert_array_equal(depth.matrix, [[50, 0, 31], [0, 51, 24], [0, 0, 1]])
    assert depth.size == (64, 48)
    np.testing.assert_allclose(depth.read(3), 1003 / 500)
    assert depth.at(2.06) == 1
    assert depth.at(9.0) is None


def test_redwood_names_give_the_times(tmp_path):
    write_images(tmp_path / "depth", ["0000001-000000100000.png", "0000002-000000133000.png"])
    depth = open_depth(tmp_path)
    np.testing.assert_allclose(depth.times, [0, 0.033])
    assert depth.matrix is None


def test_stray_scanner_folder(tmp_path):
    write_images(tmp_path / "depth", ["000000.png", "000001.png"])
    (tmp_path / "camera_matrix.csv").write_text("1500,0,960\n0,1500,720\n0,0,1\n")
    (tmp_path / "odometry.csv").write_text("timestamp, frame, x\n10.5, 0, 0\n10.6, 1, 0\n")
    depth = open_depth(tmp_path)
    np.testing.assert_allclose(depth.times, [0, 0.1])
    assert depth.size == (1920, 1440)
    assert depth.odometry is None
    np.testing.assert_allclose(depth.read(0), 1.0)


def test_stray_scanner_path_and_images_of_some_frames(tmp_path):
    """Depth of every second colour image, named after it; the quaternion is x, y, z, w."""
    write_images(tmp_path / "depth", ["000001.png", "000003.png"])
    rows = [f"{10 + at / 10}, {at:06d}, {at / 4}, 1.5, 0, 0, 0.6, 0, 0.8" for at in range(4)]
    (tmp_path / "odometry.csv").write_text("timestamp, frame, x, y, z, qx, qy, qz, qw\n" + "\n".join(rows) + "\n")
    depth = open_depth(tmp_path, offset=2.0)
    np.testing.assert_allclose(depth.times, [2.1, 2.3])
    np.testing.assert_allclose(depth.odometry.times, [2, 2.1, 2.2, 2.3])
    np.testing.assert_allclose(depth.odometry.positions[3], [0.75, 1.5, 0])
    np.testing.assert_allclose(depth.odometry.rotations[0] @ [0, 0, 1], [0.96, 0, 0.28], atol=1e-9)
    for wrong in ("0.6, 0, 0.9", "nan, 0, 0.8"):
        (tmp_path / "odometry.csv").write_text(
            "\n".join(["t,f,x,y,z,qx,qy,qz,qw", *rows]).replace("0.6, 0, 0.8", wrong)
        )
        with pytest.raises(PoseError, match="a pose for each image"):
            open_depth(tmp_path)


def test_formats_without_a_reader_are_named(tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"")
    with pytest.raises(UsageError, match="--depth"):
        open_depth(tmp_path / "a.mp4")


def test_sixty_damaged_folders_are_read_or_refused_in_one_line(tmp_path):
    refused = 0
    for seed in range(60):
        folder = tmp_path / str(seed)
        write_images(folder / "depth", ["000000.png", "000001.png"])
        (folder / "intrinsic.json").write_text(json.dumps(CAMERA))
        rows = [f"10.{at}, {at}, 0.1, 1.4, 0, 0, 0, 0, 1" for at in (5, 6)]
        (folder / "odometry.csv").write_text("\n".join(["timestamp, frame, x, y, z, qx, qy, qz, qw", *rows]))
        rng = np.random.default_rng(seed)
        victim = folder / ["depth/000000.png", "intrinsic.json", "odometry.csv"][seed % 3]
        content = bytearray(victim.read_bytes())
        at = int(rng.integers(len(content)))
        parts = content[:at], content[at:]
        kinds = (parts[0], parts[1] + parts[0], parts[0] + rng.bytes(40), b"", content.replace(b"1", b"-"))
        victim.write_bytes(bytes(kinds[seed // 3 % 5]))
        message = ""
        try:
            depth = open_depth(folder)
            assert (np.diff(depth.times) > 0).all()
            assert np.isfinite(depth.read(1)).all()
        except PoseError as error:
            message = str(error)
        refused += bool(message)
        assert "\n" not in message, seed
    assert refused > 20


SIZE, COLOUR = (320, 288), (1280, 720)
# cx, cy, fx, fy, k1 to k6, two unused, p2, p1
DEPTH_MODEL = [0.512, 0.4945, 0.4921, 0.4922, 3.13, 2.325, 0.13, 3.459, 3.35, 0.663, 0, 0, -5e-5, 8e-5]
COLOUR_MODEL = [0.4968, 0.5109, 0.4709, 0.6274, 0.723, -2.886, 1.633, 0.602, -2.72, 1.565, 0, 0, -1e-4, 8e-4]
TURN = cv2.Rodrigues(np.array([0.1, 0.01, -0.02]))[0]
SHIFT = np.array([-0.032, -0.002, 0.004])


def calibration():
    def camera(place, model, turn, shift):
        return {
            "Location": f"CALIBRATION_CameraLocation{place}",
            "Intrinsics": {"ModelParameters": model, "ModelType": "CALIBRATION_LensDistortionModelBrownConrady"},
            "Rt": {"Rotation": turn.ravel().tolist(), "Translation": shift.tolist()},
        }

    cameras = [camera("D0", DEPTH_MODEL, np.eye(3), np.zeros(3)), camera("PV0", COLOUR_MODEL, TURN, SHIFT)]
    return json.dumps({"CalibrationInformation": {"Cameras": cameras}}).encode()


def write_mkv(path, depths, *, size=SIZE, colour=COLOUR, attached=True, late_s=0.1):
    """Write images of 16 bit; those of colour begin 0.1 s before."""
    with av.open(str(path), "w", format="matroska", options={"allow_raw_vfw": "1"}) as file:
        streams = [file.add_stream("mjpeg", rate=30), file.add_stream("rawvideo", rate=30)]
        for stream, title, (width, height), kind in zip(
            streams, ("COLOR", "DEPTH"), (colour, size), ("yuvj420p", "gray16be"), strict=True
        ):
            stream.width, stream.height, stream.pix_fmt, stream.metadata["title"] = width, height, kind, title
        if attached:
            file.add_attachment("calibration.json", "application/octet-stream", calibration())
        for at, depth in enumerate(depths):
            picture = av.VideoFrame.from_ndarray(np.zeros((colour[1], colour[0], 3), np.uint8), format="rgb24")
            image = av.VideoFrame.from_ndarray(depth, format="gray16le").reformat(format="gray16be")
            for stream, frame, late in zip(streams, (picture, image), (0, late_s), strict=True):
                frame.pts, frame.time_base = at + round(30 * late), Fraction(1, 30)
                file.mux(stream.encode(frame))
        for stream in streams:
            file.mux(stream.encode())
    data = path.read_bytes()
    at = data.index(struct.pack("<ii", 40, size[0]))  # the header of a bitmap; FFmpeg writes no name for this format
    path.write_bytes(data[: at + 16] + b"b16g" + data[at + 20 :])
    return path


def test_azure_kinect_gives_depth_cameras_and_times(tmp_path):
    """A point is where OpenCV projects it, by the lens of the file, and is read where a pinhole camera shows it."""
    points = np.array([[0.4, 0.3, 1.5], [-0.6, -0.2, 2.0]])
    k = DEPTH_MODEL
    raw = np.array([[k[2] * 512, 0, k[0] * 512 - 96 - 0.5], [0, k[3] * 512, k[1] * 512 - 90 - 0.5], [0, 0, 1]])
    lens = np.array([k[4], k[5], k[13], k[12], *k[6:10]])
    seen = cv2.projectPoints(points, np.zeros(3), np.zeros(3), raw, lens)[0][:, 0].round().astype(int)
    depths = np.zeros((4, SIZE[1], SIZE[0]), np.uint16)
    for at in range(4):
        for (column, row), point in zip(seen, points, strict=True):
            depths[at, row - 3 : row + 4, column - 3 : column + 4] = round(1000 * point[2]) + at
    depth = open_depth(write_mkv(tmp_path / "a.mkv", depths), offset=1.0)
    np.testing.assert_allclose(depth.times, 1.1 + np.arange(4) / 30, atol=2e-3)
    for index in (2, 3, 0, 1):
        image = depth.read(index)
        for (x, y, z), value in zip(points, points[:, 2] + index / 1000, strict=True):
            column, row = (depth.matrix @ [x / z, y / z, 1])[:2].round().astype(int)
            assert image[row, column] == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(depth.extrinsics @ [*SHIFT, 1], [0, 0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(depth.extrinsics[:3, :3], TURN.T, atol=1e-9)
    # The colour image of 16 x 9 is cut out of the middle of one of 4 x 3.
    assert depth.colour.matrix[1, 2] == pytest.approx(0.5109 * 960 - 120 - 0.5)
    far = np.array([[0.55, 0.3, 1.0], [-0.2, 0.1, 1.0]])
    lens = np.array([COLOUR_MODEL[4], COLOUR_MODEL[5], COLOUR_MODEL[13], COLOUR_MODEL[12], *COLOUR_MODEL[6:10]])
    pixels = cv2.projectPoints(far, np.zeros(3), np.zeros(3), depth.colour.matrix, lens)[0][:, 0]
    np.testing.assert_allclose(depth.colour.unproject(pixels[None])[0][:, :2], far[:, :2], atol=0.004)


def test_depth_without_calibration_has_the_view_of_the_colour_images(tmp_path):
    depths = np.full((2, 24, 18), 1500, np.uint16)
    depth = open_depth(write_mkv(tmp_path / "a.mkv", depths, size=(18, 24), colour=(64, 48), attached=False))
    assert depth.matrix is depth.extrinsics is depth.colour is None
    np.testing.assert_allclose(depth.read(1), 1.5)


def test_file_without_depth_is_refused_in_one_line(tmp_path):
    with av.open(str(tmp_path / "a.mkv"), "w") as file:
        stream = file.add_stream("mjpeg", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuvj420p"
        file.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")))
        file.mux(stream.encode())
    with pytest.raises(PoseError, match="no track of 16-bit grey images"):
        open_depth(tmp_path / "a.mkv")


def test_sixty_damaged_files_are_read_or_refused_in_one_line(tmp_path):
    depths = np.full((3, 24, 18), 1500, np.uint16)
    content = write_mkv(tmp_path / "whole.mkv", depths, size=(18, 24), colour=(64, 48)).read_bytes()
    check_damaged_depths(content, tmp_path / "a.mkv")
