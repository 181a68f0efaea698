"""The overlay as a file: what is not drawn on equals the decoded video, whatever its size and pixel format."""

import av
import cv2
import numpy as np
import pytest
from pose_fakes import random_result

from pose.structures.skeletons import BLAZEPOSE33
from pose.structures.types import U8
from pose.video import VideoWriter, open_source
from pose.video.planes import Planes
from pose.view.overlay import Overlay
from pose.view.planar_overlay import PlanarOverlay

# Every height and every width modulo 16, each with an even and an odd partner.
SIZES = [(160 + (5 * n) % 16, 112 + n) for n in range(16)]
FORMATS = {"yuv420p": "ffv1", "yuvj420p": "mjpeg", "yuv422p": "ffv1", "yuv444p": "ffv1", "yuv420p10le": "ffv1"}
CONVERTED = ("yuv422p", "yuv444p", "yuv420p10le")  # to 4:2:0 of 8 bit before they are drawn on


def waves(size: tuple[int, int]) -> U8:
    """Soft colours that differ from row to row and from column to column."""
    columns, rows = np.meshgrid(np.linspace(0, 7, size[0]), np.linspace(0, 7, size[1]))
    return (128 + 90 * np.stack([np.sin(columns), np.cos(rows), np.sin(columns + rows)], axis=-1)).astype(np.uint8)


def write_video(path, image: U8, pix_fmt: str, codec: str) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=30, options={"qmin": "1", "qmax": "1"} if codec == "mjpeg" else {})
        stream.height, stream.width = image.shape[:2]
        stream.pix_fmt = pix_fmt
        container.mux(stream.encode(av.VideoFrame.from_ndarray(image).reformat(format=pix_fmt)))
        container.mux(stream.encode(None))


def decoded_planes(path) -> Planes:
    with open_source(str(path)) as source:
        return next(iter(source.replay_planes())).planes


def check_equal(written: Planes, wanted: Planes, free: np.ndarray, what: str) -> None:
    """Y, U and V of a file against those that went in, where nothing was drawn: (H, W) flags `free`."""
    small = cv2.erode(free.astype(np.uint8), np.ones((5, 5)))[::2, ::2].astype(bool)
    for name, mine, true, mask in zip(
        "yuv", (written.y, written.u, written.v), (wanted.y, wanted.u, wanted.v), (free, small, small), strict=True
    ):
        height, width = mask.shape
        apart = np.abs(mine[:height, :width].astype(int) - true[:height, :width])[mask]
        assert apart.mean() < 1.5, f"{what}: {name} is {apart.mean():.1f} off on average"
        assert np.percentile(apart, 99.5) < 8, f"{what}: {name}"


@pytest.mark.parametrize("pix_fmt", FORMATS)
def test_undrawn_pixels_equal_the_video(tmp_path, rng, pix_fmt):
    for size in SIZES[:: 5 if pix_fmt in CONVERTED else 1]:
        path, out = tmp_path / "clip.mkv", tmp_path / "overlay.mp4"
        image = waves(size)
        write_video(path, image, pix_fmt, FORMATS[pix_fmt])
        planes = decoded_planes(path)
        result = random_result(rng, 0, 1)
        overlay = PlanarOverlay(size, BLAZEPOSE33, planes.colours)
        with VideoWriter(out, overlay.output_size, fps=30, colours=planes.colours) as writer:
            writer.write_planes(overlay.draw(planes, result), 0.0)
        drawn = (Overlay(size, BLAZEPOSE33).draw(image, result)[: size[1], : size[0]] != image).any(axis=2)
        free = ~cv2.dilate(drawn.astype(np.uint8), np.ones((17, 17))).astype(bool)  # a block of the encoder around it
        assert free.mean() > 0.1
        check_equal(decoded_planes(out), planes, free, f"{size} {pix_fmt}")


def test_rgb_images_of_every_size_are_written_as_they_are(tmp_path):
    for size in SIZES:
        path = tmp_path / "out.mp4"
        with VideoWriter(path, size, fps=30) as writer:
            writer.write(waves(size), 0.0)
        check_equal(decoded_planes(path), Planes.of_rgb(waves(size)), np.ones(size[::-1], bool), str(size))
