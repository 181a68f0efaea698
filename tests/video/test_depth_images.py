"""Folders of depth images: layouts, times, and damaged ones."""

import json

import cv2
import numpy as np
import pytest

from pose.errors import PoseError, UsageError
from pose.video.depth import open_depth

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
