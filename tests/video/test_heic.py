"""HEIC images, as phones make them."""

import cv2
import numpy as np
import pytest

from pose.errors import PoseError
from pose.video import images, open_source
from pose.video.lens import focal_35mm

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
