"""The second look at a video, in the planes that its decoder gives: the same images as in RGB."""

from fractions import Fraction

import av
import cv2
import numpy as np
import pytest
from pose_fakes import rgb_of

from pose.video import VideoWriter, open_source
from pose.video.planes import BT709, SMPTE170M, Area, Colours, Planes


def waves(width: int, height: int, count: int = 3) -> list[np.ndarray]:
    """Images of soft colours, different in every corner."""
    columns, rows = np.meshgrid(np.linspace(0, 3, width), np.linspace(0, 3, height))
    return [
        (128 + 90 * np.stack([np.sin(columns + n), np.cos(rows), np.sin(columns * 0.5 + rows)], axis=-1)).astype(
            np.uint8
        )
        for n in range(count)
    ]


def as_rgb(planes: Planes) -> np.ndarray:
    """RGB of planes of any size: an even copy with the edges repeated, cut again."""
    width, height = planes.size
    even = Planes.empty((width + width % 2, height + height % 2), planes.colours)
    even.y[:] = np.pad(planes.y, ((0, height % 2), (0, width % 2)), mode="edge")
    even.u[:], even.v[:] = planes.u, planes.v
    return rgb_of(even)[:height, :width]


@pytest.mark.parametrize("size", [(64, 48), (31, 515), (18, 513), (17, 256)])
def test_strips_of_rgb_equal_the_whole_image(size):
    (image,) = waves(*size, 1)
    for got, expected in zip(*((p.y, p.u, p.v) for p in (Planes.of_rgb(image), whole(image))), strict=True):
        np.testing.assert_array_equal(got, expected)


def whole(image: np.ndarray) -> Planes:
    return Planes.of_coded(Colours().coded(image), Colours())


@pytest.mark.parametrize(
    ("pix_fmt", "codec", "size", "more"),
    [
        ("yuv420p", "libx264", (64, 48), {}),
        ("yuvj420p", "mjpeg", (64, 48), {}),
        ("yuv444p", "libx264", (64, 48), {}),
        ("yuv420p10le", "libx265", (64, 48), {}),
        ("yuv420p", "ffv1", (63, 47), {}),
        ("yuv420p", "libx264", (64, 48), {"aspect": Fraction(3, 2)}),
        ("yuv420p", "libx264", (64, 48), {"turn": (90, False, False)}),
        ("yuv420p", "libx264", (64, 48), {"turn": (180, False, False)}),
        ("yuv420p", "libx264", (64, 48), {"turn": (90, True, False)}),
        ("yuv420p", "mpeg4", (63, 47), {"turn": (0, True, False)}),
    ],
)
def test_planes_equal_the_replayed_frames(make_video, pix_fmt, codec, size, more):
    if codec not in av.codecs_available:
        pytest.skip(f"PyAV has no {codec} here")
    name = "clip.mkv" if codec in ("ffv1", "mjpeg") and not more.get("turn") else "clip.mov"
    path = make_video(waves(*size), name, codec=codec, pix_fmt=pix_fmt, **more)
    with open_source(str(path)) as source:
        pairs = list(zip(source.replay(), source.replay_planes(), strict=True))
    assert len(pairs) == 3
    for frame, planar in pairs:
        assert (planar.index, planar.time) == (frame.index, frame.time)
        assert planar.planes.size == frame.size
        apart = np.abs(as_rgb(planar.planes).astype(int) - frame.image)
        assert apart.mean() < 2.5
        assert np.percentile(apart, 99) < 12


def test_planes_of_a_span_and_of_images_are_read(make_video, tmp_path):
    path = make_video(waves(64, 48, 30))
    with open_source(str(path), start=0.2, end=0.5) as source:
        assert [(f.index, f.time) for f in source.replay_planes()] == [(f.index, f.time) for f in source.replay()]
    for n, image in enumerate(waves(33, 21)):
        cv2.imwrite(str(tmp_path / f"{n}.png"), image[:, :, ::-1])
    with open_source(str(tmp_path / "*.png")) as source:
        for frame, planar in zip(source.replay(), source.replay_planes(), strict=True):
            assert planar.planes.size == (34, 22)
            assert np.abs(rgb_of(planar.planes)[:21, :33].astype(int) - frame.image).mean() < 3


@pytest.mark.parametrize("colours", [Colours(BT709), Colours(SMPTE170M), Colours(BT709, full_range=True)], ids=str)
def test_written_planes_keep_their_colours(tmp_path, colours):
    """A file says what its planes mean, and FFmpeg shows the colours that were put in."""
    image = np.zeros((48, 64, 3), np.uint8)
    image[:24, :32], image[:24, 32:], image[24:, :32], image[24:] = (200, 40, 60), (30, 180, 90), (60, 70, 220), 128
    path = tmp_path / "out.mp4"
    with VideoWriter(path, (64, 48), fps=10, colours=colours) as writer:
        for n in range(4):
            writer.write_planes(Planes.of_rgb(image, colours), n / 10)
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    assert int(frames[0].colorspace) == colours.matrix
    assert (frames[0].color_range == 2 or frames[0].format.name == "yuvj420p") == colours.full_range
    with open_source(str(path)) as source:
        for frame in source:
            inner = (slice(4, None, 16), slice(4, None, 16))
            assert np.abs(frame.image[inner].astype(int) - image[inner]).max() < 8


@pytest.mark.parametrize("wrong", [Planes.empty((64, 46), Colours()), Planes.empty((64, 48), Colours(SMPTE170M))])
def test_planes_of_another_file_are_rejected(tmp_path, wrong):
    writer = VideoWriter(tmp_path / "out.mp4", (64, 48), fps=10)
    writer.write_planes(Planes.of_rgb(waves(64, 48, 1)[0]), 0.0)
    with pytest.raises(ValueError, match="expected an image of"):
        writer.write_planes(wrong, 0.1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("edges", [(0, 0, 3, 5), (1, 1, 4, 4), (5, 2, 6, 3)])
def test_even_area_covers_whole_chroma_samples(edges):
    area = Area(*edges)
    even = area.even()
    assert all(edge % 2 == 0 for edge in even)
    assert even.x0 <= area.x0 < area.x1 <= even.x1
    assert even.y0 <= area.y0 < area.y1 <= even.y1
    assert even.pixels <= (area.x1 - area.x0 + 2) * (area.y1 - area.y0 + 2)
