"""An image is measured before it is decoded, and nothing that a browser sends breaks that."""

import struct

import cv2
import numpy as np
import pytest
from web_fakes import jpeg

from pose.live.web.jpeg import MAX_SCANS, decode_jpeg, encode_jpeg, jpeg_size


def with_size(data: bytes, width: int, height: int) -> bytes:
    """The same file, whose frame header lies."""
    start = data.index(b"\xff\xc0")
    return data[: start + 5] + struct.pack(">HH", height, width) + data[start + 9 :]


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("size", [(64, 48), (7, 501), (1, 1)])
def test_size_and_pixels_are_those_of_the_image(size, progressive):
    data = jpeg(size, progressive=progressive)
    assert jpeg_size(data) == size
    image = decode_jpeg(data, 1000)
    assert image.shape == (size[1], size[0], 3)
    assert np.abs(image.astype(int) - 90).max() <= 2


def test_jpeg_colours_round_trip():
    image = np.zeros((32, 32, 3), np.uint8)
    image[..., 0] = 200
    data, scale = encode_jpeg(image, 100)
    red, green, blue = decode_jpeg(data, 100)[16, 16].tolist()
    assert scale == 1
    assert red > 180
    assert green < 30
    assert blue < 30


def test_jpeg_bomb_is_rejected_before_decoding(monkeypatch):
    def never(*_):
        raise AssertionError("decoded")

    monkeypatch.setattr(cv2, "imdecode", never)
    with pytest.raises(ValueError, match="65500 x 65500 px; at most 1920"):
        decode_jpeg(with_size(jpeg(), 65500, 65500), 1920)
    with pytest.raises(ValueError, match="0 x 48 px"):
        decode_jpeg(with_size(jpeg(), 0, 48), 1920)


@pytest.mark.parametrize(
    "between",
    [b"\xff\x00\x00\x13", b"\x00", b"\xff\xe0\x00\x00", b"\xff\xf0\x00\x13", b"\xff\xd9\x00\x13"],
    ids=bytes.hex,
)
def test_jpeg_size_is_read_like_the_decoder(between):
    """What decoders skip in their own way hides a second header: 100 x 100 was measured, 30000 x 30000 decoded."""
    data = jpeg((100, 100))
    start = data.index(b"\xff\xc0")
    header = data[start : start + 19]
    large = with_size(data, 30_000, 30_000)
    hidden = large[:start] + between + header + large[start:]
    with pytest.raises(ValueError, match="JPEG"):
        jpeg_size(hidden)
    with pytest.raises(ValueError, match="JPEG"):
        decode_jpeg(hidden, 1920)


def test_jpeg_with_thousands_of_scans_is_rejected():
    data = jpeg((64, 64), progressive=True)
    scan = data[data.index(b"\xff\xda") : -2]
    with pytest.raises(ValueError, match="scans"):
        jpeg_size(data[:-2] + MAX_SCANS * scan + data[-2:])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8",
        b"\xff\xd8\xff\xe0\x00",
        b"\xff\xd8" + 100 * b"\xff",
        b"\xff\xd8\xff\xe0\x00\x00" + 8 * b"\xff\xe0\x00\x00",
        b"\xff\xd8\xff\xc9\x00\x11\x08" + 20 * b"\x01",
        b"\x89PNG\r\n\x1a\n" + 100 * b"\x00",
        b"GIF89a" + 100 * b"\x00",
    ],
)
def test_invalid_jpeg_is_rejected(data):
    with pytest.raises(ValueError, match="JPEG"):
        decode_jpeg(data, 1920)


def test_damaged_images_are_refused_or_have_the_size_they_announce(rng, capfd):
    whole, _ = encode_jpeg(rng.integers(256, size=(48, 64, 3), dtype=np.uint8), 64)
    sizes = []
    for _ in range(300):
        data = bytearray(whole)
        data[rng.integers(2, len(data))] = rng.integers(256)
        if rng.random() < 0.5:
            del data[rng.integers(4, len(data)) :]
        data = bytes(data)
        try:
            image = decode_jpeg(data, 256)
        except ValueError:
            continue
        sizes.append(image.shape[:2])
        assert image.shape == (*jpeg_size(data)[::-1], 3)
    assert (48, 64) in sizes
    capfd.readouterr()  # the decoder's own complaints
