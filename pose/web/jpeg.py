"""Pictures of browsers: a JPEG is measured before it is decoded, so that a small file cannot ask for much memory."""

import struct

import cv2
import numpy as np

from pose.types import U8

MOST_SCANS = 16  # a progressive picture may hold thousands, each of which costs a whole pass
_START = b"\xff\xd8"
_SCAN = b"\xff\xda"
_FRAMES = frozenset({0xC0, 0xC1, 0xC2})  # baseline, extended and progressive, Huffman coded
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD8)})
_SEGMENTS = frozenset({0xC4, 0xDB, 0xDD, *range(0xE0, 0xF0), 0xFE})  # tables, restarts, applications' own, comments


def jpeg_size(data: bytes) -> tuple[int, int]:
    """(width, height) px that the frame header of a JPEG announces (ISO/IEC 10918-1, annex B).

    Raises ValueError for what is no JPEG of a usual kind. So is whatever decoders read each in its own way, such as
    bytes between two segments, or a segment shorter than its length: what is measured must be what is decoded.
    """
    if data[:2] != _START or data.count(_SCAN) > MOST_SCANS:
        raise ValueError("not a JPEG of a usual kind")
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            break
        marker = data[position + 1]
        if marker == 0xFF:  # filling
            position += 1
        elif marker in _WITHOUT_LENGTH:
            position += 2
        elif marker in _FRAMES:
            if position + 9 > len(data):
                break
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        elif marker not in _SEGMENTS:
            raise ValueError(f"a JPEG of an unusual kind (marker {marker:02X})")
        else:
            (length,) = struct.unpack_from(">H", data, position + 2)
            if length < 2:  # it counts itself
                break
            position += 2 + length
    raise ValueError("a JPEG without a frame header")


def decode_jpeg(data: bytes, longest: int) -> U8:
    """(H, W, 3) uint8 RGB. Raises ValueError when it is no JPEG, or a side is above `longest` px."""
    width, height = jpeg_size(data)
    if not (0 < width <= longest and 0 < height <= longest):
        raise ValueError(f"a picture of {width} x {height} px; at most {longest} px a side are taken")
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise ValueError("a JPEG that cannot be decoded") from error
    if image is None or image.shape != (height, width, 3):
        raise ValueError("a JPEG that cannot be decoded")
    return np.asarray(image, np.uint8)


def encode_jpeg(image: U8, longest: int, quality: int = 80) -> tuple[bytes, float]:
    """A JPEG of (H, W, 3) uint8 RGB, with sides of at most `longest` px, and by what it was scaled for that."""
    picture = image[:, :, ::-1]  # OpenCV takes BGR
    height, width = picture.shape[:2]
    scale = min(1.0, longest / max(width, height))
    if scale < 1:
        size = (max(1, round(scale * width)), max(1, round(scale * height)))
        picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    done, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done
    return data.tobytes(), scale
