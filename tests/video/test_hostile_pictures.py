"""Images from untrusted sources: mutated files of every format are read, left out or one line, in bounded memory."""

import os
import subprocess
import sys
from functools import cache

import cv2
import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import quick_and_long, try_mutations

from pose.errors import PoseError
from pose.live.web.jpeg import decode_jpeg, jpeg_size
from pose.video import images, open_source
from pose.video.images import read_image
from pose.video.lens import focal_35mm

SUFFIXES = (".png", ".jpg", ".bmp", ".tiff", ".webp")


@cache
def whole(suffix: str) -> bytes:
    image = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    return cv2.imencode(suffix, image)[1].tobytes()


def _mutated(data: st.DataObject, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, min(len(changed) - 1, 200)) | st.integers(0, len(changed) - 1))
        match data.draw(st.sampled_from(["byte", "large", "cut", "double", "insert"])):
            case "byte":
                changed[place] = data.draw(st.integers(0, 255))
            case "large":
                changed[place : place + 2] = b"\xff\xff"
            case "cut":
                del changed[place + 1 :]
            case "double":
                changed[place:place] = changed[place : place + 40]
            case "insert":
                changed[place:place] = data.draw(st.binary(max_size=4) | st.just(b"\xff\x00"))
    return bytes(changed)


def _read(tmp_path, data) -> None:
    suffix = data.draw(st.sampled_from(SUFFIXES))
    content = _mutated(data, whole(suffix))
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    try:
        image, said = read_image(path), ""
    except PoseError as error:
        image, said = None, str(error)
    assert "\n" not in said
    assert image is None or (image.ndim == 3 and image.shape[2] == 3 and image.dtype == np.uint8)
    try:
        picture = decode_jpeg(content, 256)
    except ValueError:
        return
    assert picture.shape == (*jpeg_size(content)[::-1], 3)


@quick_and_long(50, 4000)
def test_mutated_images_are_read_or_rejected(tmp_path, capfd, examples):
    try_mutations(lambda data: _read(tmp_path, data), examples)
    capfd.readouterr()  # the decoders' own complaints


@pytest.mark.parametrize(
    "content",
    [b"P6\n4 4\n255\nxxxxx", b"P5\n", b"II*\0\x08\0\0\0", b"BM" + bytes(30)],
    ids=["ppm", "pgm", "tiff", "bmp"],
)
def test_opencv_writes_nothing_to_the_terminal(content, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(content)
    program = "import sys; from pathlib import Path; from pose.video.images import read_image; "
    call = [sys.executable, "-c", program + "print(read_image(Path(sys.argv[1])))", str(path)]
    environment = {name: value for name, value in os.environ.items() if name != "OPENCV_LOG_LEVEL"}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == ("None\n", "")


def test_intact_images_are_read(tmp_path):
    for suffix in SUFFIXES:
        (tmp_path / f"a{suffix}").write_bytes(whole(suffix))
        assert read_image(tmp_path / f"a{suffix}").shape == (24, 32, 3)


pillow_heif = pytest.importorskip("pillow_heif")


def picture(rng) -> np.ndarray:
    """(60, 96, 3), smooth, so that the codec keeps it."""
    small = rng.integers(0, 255, (5, 8, 3), dtype=np.uint8)
    return cv2.resize(small, (96, 60), interpolation=cv2.INTER_CUBIC)


def write(path, image, orientation=1, focal=26):
    from PIL import Image

    pillow_heif.register_heif_opener()
    picture = Image.fromarray(image)
    exif = picture.getexif()
    exif[0x0112] = orientation  # becomes the file's own rotation, as phones write it
    exif.get_ifd(0x8769)[0xA405] = focal
    picture.save(path, quality=95)


def test_a_heic_image_is_read_upright_with_its_lens(tmp_path, rng):
    image = picture(rng)
    write(tmp_path / "a.heic", image)
    write(tmp_path / "b.HEIC", image, orientation=6)
    read, turned = (images.read_image(tmp_path / name) for name in ("a.heic", "b.HEIC"))
    assert np.abs(read.astype(int) - image).mean() < 4
    assert np.abs(turned.astype(int) - np.rot90(image, -1)).mean() < 4
    assert focal_35mm(tmp_path / "a.heic", (96, 60)) == 26


def test_missing_heif_library_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.heic").write_bytes(b"x")
    monkeypatch.setattr(images, "find_spec", lambda name: None)
    with pytest.raises(PoseError, match=r'a.heic: HEIC images need pillow-heif: pip install "pose-run\[heic\]"'):
        open_source(str(tmp_path))


def test_damaged_heic_image_is_rejected(tmp_path, rng):
    write(tmp_path / "a.heic", picture(rng))
    whole = (tmp_path / "a.heic").read_bytes()
    for _ in range(40):
        content = bytearray(whole[: rng.integers(0, len(whole) + 1)])
        for at in rng.integers(0, max(1, len(content)), 3 if content else 0):
            content[at] = rng.integers(256)
        (tmp_path / "b.heic").write_bytes(content)
        found = images.read_image(tmp_path / "b.heic")
        assert found is None or found.dtype == np.uint8
        focal_35mm(tmp_path / "b.heic", (96, 60))
