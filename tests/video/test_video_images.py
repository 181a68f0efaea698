"""Folders and globs of images."""

import struct
import zlib

import cv2
import numpy as np
import pytest
from memory_grown import megabytes_grown, needs_proc
from picture_codes import corners, number_of, numbered, quadrants

from pose.errors import PoseError, UsageError
from pose.video import open_source


@pytest.fixture
def folder(tmp_path):
    """Twelve images, frame1.png ... frame12.png, beside things that are none."""
    path = tmp_path / "frames"
    path.mkdir()
    for n, image in enumerate(numbered(12), start=1):
        cv2.imwrite(str(path / f"frame{n}.png"), image)
    (path / "notes.txt").write_text("no picture")
    (path / ".hidden.png").write_bytes(b"")
    (path / "sub.png").mkdir()
    return path


@pytest.mark.parametrize("pattern", ["", "/", "/*", "/frame*.png", "/frame[0-9]*"])
def test_images_are_in_natural_order(folder, pattern):
    with open_source(f"{folder}{pattern}", image_fps=10) as source:
        frames = list(source)
        again = list(source.replay())
    assert [number_of(frame.image, 12) for frame in frames] == list(range(12))
    assert [(frame.index, frame.time) for frame in frames] == [(n, n / 10) for n in range(12)]
    assert source.info.frame_count == len(again) == 12
    assert source.info.duration == pytest.approx(1.2)
    assert not source.info.is_live


def test_start_and_end_select_images(folder):
    with open_source(str(folder), image_fps=10, start=0.3, end=0.6) as source:
        frames = list(source)
    assert [(frame.index, frame.time, number_of(frame.image, 12)) for frame in frames] == [
        (0, 0.3, 3),
        (1, 0.4, 4),
        (2, 0.5, 5),
    ]
    assert source.info.frame_count == 3


@pytest.mark.parametrize("name", ["frame3.png", "frame[3].png"])
def test_tilde_in_image_paths_is_expanded(folder, name, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    with open_source(f"~/{folder.name}/{name}") as source:
        assert [number_of(frame.image, 12) for frame in source] == [2]


@pytest.mark.parametrize("kind", ["gray", "alpha", "deep"])
def test_pixel_formats_become_rgb(tmp_path, kind):
    rgb = numbered(3)[1]
    image = {
        "gray": rgb[..., 0],
        "alpha": np.dstack([rgb, np.full(rgb.shape[:2], 9, np.uint8)]),
        "deep": rgb.astype(np.uint16) * 257,
    }[kind]
    cv2.imwrite(str(tmp_path / "one.png"), image)
    with open_source(str(tmp_path)) as source:
        frame = next(iter(source))
    assert frame.image.dtype == np.uint8
    np.testing.assert_array_equal(frame.image, rgb)


def test_exif_orientation_is_applied(tmp_path):
    _, data = cv2.imencode(".jpg", quadrants(64, 48)[..., ::-1])
    orientation_6 = bytes.fromhex("ffe1 0022 457869660000 4d4d002a00000008 0001 0112 0003 00000001 0006 0000 00000000")
    (tmp_path / "phone.jpg").write_bytes(data.tobytes()[:2] + orientation_6 + data.tobytes()[2:])
    with open_source(str(tmp_path)) as source:
        frame = next(iter(source))
    assert frame.size == source.info.size == (48, 64)
    assert corners(frame.image) == ["blue", "red", "white", "green"]


def test_broken_image_keeps_its_timestamp(folder):
    (folder / "frame2.png").write_bytes(b"\x89PNG broken")
    with open_source(str(folder), image_fps=10) as source:
        frames = list(source)
    assert [(frame.index, frame.time) for frame in frames][:3] == [(0, 0.0), (1, 0.2), (2, 0.3)]
    assert len(source.problems) == 1
    assert "frame2.png" in source.problems[0]


def test_first_image_of_another_size_is_named(folder):
    cv2.imwrite(str(folder / "frame4.png"), np.zeros((50, 60, 3), np.uint8))
    with open_source(str(folder)) as source, pytest.raises(PoseError, match=r"frame4\.png is 60x50.* is 64x48"):
        list(source)


def test_links_out_of_the_folder_are_left_out(folder, tmp_path):
    secret = tmp_path / "secret.png"
    cv2.imwrite(str(secret), np.zeros((48, 64, 3), np.uint8))
    (folder / "frame0.png").symlink_to(secret)
    (folder / "frame13.png").symlink_to(folder / "frame12.png")
    for spec in (str(folder), f"{folder}/*.png"):
        with open_source(spec) as source:
            assert source.info.frame_count == 13
            assert min(number_of(frame.image, 12) for frame in source) == 0


@pytest.mark.parametrize(
    ("spec", "why"),
    [("empty", "no images"), ("empty/*.png", "no image matches"), ("nowhere/*", "no image matches")],
)
def test_empty_image_sources_are_rejected(tmp_path, spec, why):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=f"{tmp_path}/.*{why}"):
        open_source(str(tmp_path / spec))


def test_folder_without_readable_image_is_rejected(tmp_path):
    for n in range(3):
        (tmp_path / f"{n}.jpg").write_text("text")
    with pytest.raises(PoseError, match="none of its 3 images can be decoded"):
        open_source(str(tmp_path))


@pytest.mark.parametrize("fps", [0.0, -5.0, float("nan"), 1e6])
def test_invalid_image_rate_is_rejected(folder, fps):
    with pytest.raises(UsageError, match="image_fps: must be above 0"):
        open_source(str(folder), image_fps=fps)


def test_start_behind_the_last_image(folder):
    with pytest.raises(UsageError, match="start: "):
        open_source(str(folder), image_fps=10, start=3.0)


def png_of(width: int, height: int) -> bytes:
    """A PNG whose header says so, and which holds nearly nothing."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(1 << 16))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg_of(width: int, height: int) -> bytes:
    """A JPEG whose frame header says so, and which holds one of 8 x 8 px."""
    data = cv2.imencode(".jpg", np.zeros((8, 8, 3), np.uint8))[1].tobytes()
    start = data.index(b"\xff\xc0")
    return data[: start + 5] + struct.pack(">HH", height, width) + data[start + 9 :]


READ_ALL = """
try:
    with open_source(sys.argv[1]) as source:
        list(source)
except PoseError as error:
    print(error)
"""


@needs_proc
@pytest.mark.parametrize("data", [png_of(65_535, 65_535), png_of(20_000, 20_000), jpeg_of(30_000, 30_000)])
@pytest.mark.parametrize("alone", [True, False])
def test_oversized_image_is_rejected_before_decoding(tmp_path, data, alone):
    path = tmp_path / "b.png"  # what it is called does not matter
    path.write_bytes(data)
    if not alone:
        cv2.imwrite(str(tmp_path / "a.png"), np.zeros((8, 8, 3), np.uint8))
    imports = "from pose.errors import PoseError; from pose.video import open_source"
    taken, said = megabytes_grown(imports, READ_ALL, path if alone else tmp_path)
    assert said == f"{path} has more than 100000000 pixels; make it smaller"
    assert taken < 200  # the smallest of them is 400 MB


def test_oversized_image_file_is_not_read(tmp_path):
    with (tmp_path / "a.png").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(PoseError, match=r"a\.png: 1048576\.0 MiB; an image may have at most 800 MiB"):
        open_source(str(tmp_path / "a.png"))
