"""JPEG images from and for browsers. The size is read before decoding, so a small file cannot allocate much memory."""

import struct

import cv2
import numpy as np

from pose.structures.types import U8
from pose.utils.native_stderr import quiet_image_decoders

MAX_SCANS = 16  # a progressive JPEG may have thousands of scans, each of which takes a pass over the image
_START = b"\xff\xd8"
_SCAN = b"\xff\xda"
_FRAME_HEADERS = frozenset({0xC0, 0xC1, 0xC2})  # baseline, extended and progressive, Huffman coded
_MARKERS_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD8)})
# Tables, restart intervals, segments of applications, comments.
_SKIPPED_SEGMENTS = frozenset({0xC4, 0xDB, 0xDD, *range(0xE0, 0xF0), 0xFE})


def jpeg_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) in px from the frame header of a JPEG (ISO/IEC 10918-1, annex B)."""
    # The result must be the size that a decoder produces. Files that decoders interpret differently are therefore
    # rejected, for example files with bytes between two segments.
    if data[:2] != _START:
        raise ValueError("not a JPEG file")
    if data.count(_SCAN) > MAX_SCANS:
        raise ValueError(f"JPEG with more than {MAX_SCANS} scans")
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            break
        marker = data[position + 1]
        if marker == 0xFF:  # fill byte
            position += 1
        elif marker in _MARKERS_WITHOUT_LENGTH:
            position += 2
        elif marker in _FRAME_HEADERS:
            if position + 9 > len(data):
                break
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        elif marker not in _SKIPPED_SEGMENTS:
            raise ValueError(f"unsupported JPEG (marker {marker:02X})")
        else:
            (length,) = struct.unpack_from(">H", data, position + 2)
            if length < 2:  # the length includes its own two bytes
                break
            position += 2 + length
    raise ValueError("JPEG without a frame header")


def decode_jpeg(data: bytes, max_side_px: int) -> U8:
    """Decode a JPEG to (H, W, 3) uint8 RGB."""
    width, height = jpeg_size(data)
    if not (0 < width <= max_side_px and 0 < height <= max_side_px):
        raise ValueError(f"image of {width} x {height} px; at most {max_side_px} px per side are allowed")
    try:
        with quiet_image_decoders():
            image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise ValueError("JPEG that cannot be decoded") from error
    if image is None or image.shape != (height, width, 3):
        raise ValueError("JPEG that cannot be decoded")
    return np.asarray(image, np.uint8)


def encode_jpeg(image: U8, max_side_px: int, quality: int = 80) -> tuple[bytes, float]:
    """Encode an image (H, W, 3) as JPEG, scaled down if too large; return it and its scale, at most 1."""
    bgr = image[:, :, ::-1]  # OpenCV uses BGR
    height, width = bgr.shape[:2]
    scale = min(1.0, max_side_px / max(width, height))
    if scale < 1:
        size = (max(1, round(scale * width)), max(1, round(scale * height)))
        bgr = np.asarray(cv2.resize(bgr, size, interpolation=cv2.INTER_AREA), np.uint8)
    done, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done
    return data.tobytes(), scale
