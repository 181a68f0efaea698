"""The lens that images and videos say they were taken with."""

import struct
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest

from pose.structures.camera import Camera, intrinsics_from_focal
from pose.video import open_source
from pose.video.lens import focal_35mm

SIZE = (400, 300)
APPLE = "com.apple.quicktime.camera.focal_length.35mm_equivalent"


def exif(focal, order=">", size=SIZE):
    """A TIFF structure with one directory, and in it EXIF's; the entries are sorted by tag."""
    main = struct.pack(f"{order}H HHII I", 1, 0x8769, 4, 1, 26, 0)
    entries = []
    if size:
        entries += [
            struct.pack(f"{order}HHII", tag, 4, 1, side) for tag, side in zip((0xA002, 0xA003), size, strict=True)
        ]
    if focal is not None:
        entries.append(struct.pack(f"{order}HHIHH", 0xA405, 3, 1, focal, 0))
    inner = struct.pack(f"{order}H", len(entries)) + b"".join(entries) + bytes(4)
    magic = b"MM\0*" if order == ">" else b"II*\0"
    return magic + struct.pack(f"{order}I", 8) + main + inner


def jpeg(path, tiff, size=SIZE):
    _, data = cv2.imencode(".jpg", np.zeros((size[1], size[0], 3), np.uint8))
    body = b"Exif\0\0" + tiff
    data = data.tobytes()
    path.write_bytes(data[:2] + struct.pack(">BBH", 0xFF, 0xE1, len(body) + 2) + body + data[2:])
    return path


def png(path, tiff):
    _, data = cv2.imencode(".png", np.zeros((SIZE[1], SIZE[0], 3), np.uint8))
    data = data.tobytes()
    chunk = struct.pack(">I", len(tiff)) + b"eXIf" + tiff + bytes(4)
    path.write_bytes(data[:33] + chunk + data[33:])
    return path


def webp(path, tiff):
    _, data = cv2.imencode(".webp", np.zeros((SIZE[1], SIZE[0], 3), np.uint8))
    data = data.tobytes() + b"EXIF" + struct.pack("<I", len(tiff)) + tiff
    path.write_bytes(data)
    return path


def video(path, tags, size=SIZE):
    """A short film with tags of the file."""
    with av.open(str(path), "w", options={"movflags": "use_metadata_tags"}) as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height = size
        stream.time_base = Fraction(1, 25)
        container.metadata.update(tags)
        for _ in range(3):
            picture = av.VideoFrame.from_ndarray(np.zeros((size[1], size[0], 3), np.uint8), format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return path


def box(kind, *content):
    body = b"".join(content)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def movie(path, value, kind):
    """Boxes as a phone writes them: the lens in the metadata of the track."""
    key = APPLE.encode()
    keys = box(b"keys", struct.pack(">II", 0, 2), box(b"mdta", b"com.apple.other"), box(b"mdta", key))
    data = box(b"data", struct.pack(">II", kind, 0), value)
    values = box(b"ilst", box(struct.pack(">I", 1), box(b"data", bytes(8), b"99")), box(struct.pack(">I", 2), data))
    track = box(b"trak", box(b"tkhd", bytes(84)), box(b"meta", keys, values))
    path.write_bytes(box(b"ftyp", b"qt  ") + box(b"mdat", bytes(100)) + box(b"moov", box(b"mvhd", bytes(100)), track))
    return path


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize(("name", "write"), [("a.jpg", jpeg), ("a.png", png), ("a.webp", webp)])
def test_focal_length_is_read_from_exif(tmp_path, name, write, order):
    assert focal_35mm(write(tmp_path / name, exif(26, order)), SIZE) == 26


def test_focal_length_is_read_from_tiff(tmp_path):
    (tmp_path / "a.tif").write_bytes(exif(50))
    assert focal_35mm(tmp_path / "a.tif", SIZE) == 50


def test_cropped_images_have_no_focal_length(tmp_path):
    path = jpeg(tmp_path / "a.jpg", exif(26, size=(4000, 3000)))
    assert focal_35mm(path, (400, 300)) == 26
    assert focal_35mm(path, (300, 400)) == 26
    assert focal_35mm(path, (300, 300)) is None
    assert focal_35mm(jpeg(tmp_path / "b.jpg", exif(26, size=None)), (300, 300)) == 26


@pytest.mark.parametrize(
    "tiff", [exif(None), exif(0), exif(3), exif(60000), b"MM\0*", b"", b"II*\0\xff\xff\xff\xff", b"x" * 40]
)
def test_missing_or_invalid_focal_length_is_unknown(tmp_path, tiff):
    assert focal_35mm(jpeg(tmp_path / "a.jpg", tiff), SIZE) is None


def test_damaged_files_have_no_focal_length(tmp_path, rng):
    """Every prefix of a good file, and random changes: an answer or none, never an error."""
    for good in (
        jpeg(tmp_path / "a.jpg", exif(26)),
        png(tmp_path / "a.png", exif(26)),
        movie(tmp_path / "a.mov", b"26", 1),
    ):
        content = good.read_bytes()
        for length in range(0, min(len(content), 700), 7):
            good.write_bytes(content[:length])
            assert focal_35mm(good, SIZE) in (None, 26)
        for _ in range(200):
            changed = np.frombuffer(content, np.uint8).copy()
            changed[rng.integers(0, min(len(content), 400), 3)] = rng.integers(0, 256, 3)
            good.write_bytes(changed.tobytes())
            found = focal_35mm(good, SIZE)
            assert found is None or 5 <= found <= 2000
    assert focal_35mm(tmp_path / "none.jpg", SIZE) is None


def test_focal_length_is_read_from_apple_video(tmp_path):
    with open_source(str(video(tmp_path / "a.mov", {APPLE: "26"}))) as source:
        assert source.info.focal_35mm == 26
    with open_source(str(video(tmp_path / "b.mp4", {"comment": "26"}))) as source:
        assert source.info.focal_35mm is None


@pytest.mark.parametrize(
    ("value", "kind"), [(b"26", 1), (b"26.00mm", 1), (b"\0\0\0\x1a", 21), (struct.pack(">f", 26), 23)]
)
def test_focal_length_is_read_from_the_video_track(tmp_path, value, kind):
    assert focal_35mm(movie(tmp_path / "a.mov", value, kind), SIZE) == 26


def test_focal_length_is_scaled_by_the_diagonal():
    """36 x 24 mm film: 50 mm see 39.6 degrees of its width and 27.0 of its height."""
    camera = Camera.of((3600, 2400), intrinsics_from_focal((3600, 2400), 50))
    assert camera.fov_degrees == pytest.approx(39.6, abs=0.05)
    assert camera.matrix[1, 1] == camera.matrix[0, 0] == pytest.approx(5000)
    assert camera.matrix[:2, 2].tolist() == [1799.5, 1199.5]
    assert intrinsics_from_focal((4000, 3000), 26)[0, 0] == pytest.approx(3004.6, abs=0.1)
