"""Reading video files: order, time, orientation, colour."""

import itertools
from fractions import Fraction

import cv2
import numpy as np
import pytest
from picture_codes import corners, number_of, numbered, quadrants

from pose.errors import UsageError
from pose.video import open_source
from pose.video.decode import DecodingPass
from pose.video.source import RepairedTimeline
from pose.video.upright import orientation_of, oriented


@pytest.mark.parametrize(
    ("clip", "count", "size", "fps"),
    [
        ("dance", 545, (384, 496), 30),
        ("squats", 65, (720, 1280), 5),
        ("street", 5, (960, 540), 5),
        ("walk-by", 1394, (768, 432), 10),
    ],
)
def test_real_clips_are_decoded(videos, clip, count, size, fps):
    with open_source(str(videos / f"{clip}.mp4")) as source:
        times = [(frame.index, frame.time, frame.size) for frame in source]
    assert source.info.size == size
    assert source.info.fps == fps
    assert source.info.frame_count == count
    assert times == [(n, pytest.approx(n / fps), size) for n in range(count)]
    assert source.problems == []


def test_replay_gives_the_same_frames(make_video):
    with open_source(str(make_video(numbered(12)))) as source:
        first = list(source)
        for again in (source.replay(), source):
            for a, b in zip(first, again, strict=True):
                assert (a.index, a.time) == (b.index, b.time)
                np.testing.assert_array_equal(a.image, b.image)


@pytest.mark.parametrize("kind", ["video", "pictures"])
def test_closed_source_delivers_nothing(make_video, tmp_path, kind):
    """Neither who begins to read it, nor who is at it, nor who reads it again gets a frame."""
    spec = str(make_video(numbered(12)))
    if kind == "pictures":
        with open_source(spec) as video:
            for frame in video:
                assert cv2.imwrite(str(tmp_path / f"{frame.index}.png"), frame.image)
        spec = str(tmp_path / "*.png")
    source = open_source(spec)
    source.close()
    source.close()
    assert list(source) == []
    assert list(source.replay()) == []
    source = open_source(spec)
    reading = iter(source)
    assert next(reading).index == 0
    source.close()
    assert list(reading) == []
    source = open_source(spec)
    not_begun = iter(source)
    source.close()
    assert list(not_begun) == []


@pytest.mark.parametrize("fps", [24, 25, 50, 60, 120, 240])
def test_frame_rates_are_read(make_video, fps):
    with open_source(str(make_video(numbered(10), fps=fps))) as source:
        frames = list(source)
    assert source.info.fps == pytest.approx(fps)
    np.testing.assert_allclose([frame.time for frame in frames], np.arange(10) / fps, atol=1e-9)
    assert [number_of(frame.image, 10) for frame in frames] == list(range(10))


def test_variable_frame_rate_is_kept_exactly(make_video):
    stamps = [0, 3003, 3004, 9000, 9375, 90000, 90001, 123456]
    path = make_video(numbered(8), stamps=stamps, time_base=Fraction(1, 90000))
    with open_source(str(path)) as source:
        times = [frame.time for frame in source]
    assert times == [stamp / 90000 for stamp in stamps]
    assert source.problems == []


def test_time_counts_from_the_first_frame(make_video):
    path = make_video(numbered(4), "late.mkv", stamps=[5000, 5040, 5080, 5120], time_base=Fraction(1, 1000), fps=25)
    with open_source(str(path)) as source:
        assert [frame.time for frame in source] == [0.0, 0.04, 0.08, 0.12]


COLOURS = ["red", "green", "blue", "white"]


@pytest.mark.parametrize(
    ("turn", "size", "seen"),
    [
        ((0, False, False), (64, 48), ["red", "green", "blue", "white"]),
        ((-90, False, False), (48, 64), ["blue", "red", "white", "green"]),  # clockwise, as phones held upright write
        ((90, False, False), (48, 64), ["green", "white", "red", "blue"]),
        ((180, False, False), (64, 48), ["white", "blue", "green", "red"]),
        ((0, True, False), (64, 48), ["green", "red", "white", "blue"]),
        ((0, False, True), (64, 48), ["blue", "white", "red", "green"]),
    ],
)
def test_rotation_metadata_is_applied(make_video, turn, size, seen):
    path = make_video([quadrants(64, 48)] * 3, turn=turn)
    with open_source(str(path)) as source:
        images = [frame.image for frame in source]
    assert source.info.size == size
    assert [corners(image) for image in images] == [seen] * 3
    assert images[0].flags.c_contiguous


@pytest.mark.parametrize(
    "matrix",
    [(sx, 0, 0, sy) for sx, sy in itertools.product((-1, 1), repeat=2)]
    + [(0, sx, sy, 0) for sx, sy in itertools.product((-1, 1), repeat=2)],
)
def test_every_display_matrix_moves_pixels_as_it_says(matrix, rng):
    a, b, c, d = matrix
    image = rng.integers(0, 255, (3, 5, 3), np.uint8)
    out = oriented(
        image, orientation_of(np.array([a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30], np.int32).tobytes())
    )
    where = {(x, y): (a * x + c * y, b * x + d * y) for x in range(5) for y in range(3)}
    left = min(x for x, _ in where.values())
    top = min(y for _, y in where.values())
    for (x, y), (shown_x, shown_y) in where.items():
        np.testing.assert_array_equal(out[shown_y - top, shown_x - left], image[y, x])


@pytest.mark.parametrize(
    ("codec", "pix_fmt", "name"),
    [
        ("libx264", "yuv420p10le", "ten.mp4"),
        ("libx264", "yuv444p", "full.mp4"),
        ("libx265", "yuv420p10le", "hevc.mp4"),
        ("ffv1", "yuva420p", "alpha.mkv"),
        ("png", "rgba", "rgba.mov"),
        ("mjpeg", "yuvj422p", "motion.avi"),
        ("mpeg4", "yuv420p", "old.avi"),
    ],
)
def test_pixel_formats_become_rgb(make_video, codec, pix_fmt, name):
    path = make_video([quadrants(64, 48)] * 3, name, codec=codec, pix_fmt=pix_fmt, options=_quiet(codec))
    with open_source(str(path)) as source:
        images = [frame.image for frame in source]
    assert len(images) == 3
    assert corners(images[1]) == COLOURS
    assert np.abs(images[1].astype(int) - quadrants(64, 48))[8:16, 8:24].mean() < 8


def _quiet(codec: str) -> dict[str, str]:
    return {"x265-params": "log-level=none"} if codec == "libx265" else {}


PQ, BT2020 = 16, 9  # numbers of ITU-T H.273


@pytest.mark.parametrize(
    ("transfer", "primaries", "matrix", "full"),
    [(1, 1, 1, False), (1, 1, 1, True), (PQ, BT2020, BT2020, False), (1, 1, 8, False), (PQ, BT2020, 10, False)],
)
def test_colour_tags_are_respected(make_video, transfer, primaries, matrix, full):
    """High dynamic range is shown as it is coded; a matrix swscale cannot undo (YCgCo: 8) still gives images."""
    tags = f"transfer={transfer}:colorprim={primaries}:colormatrix={matrix}:range={'full' if full else 'limited'}"
    options = {"x265-params": f"log-level=none:{tags}"}
    path = make_video(numbered(4), codec="libx265", pix_fmt="yuv420p10le", options=options)
    with open_source(str(path)) as source:
        images = [frame.image for frame in source]
    assert source.problems == []
    levels = [image.mean() for image in images]
    # `numbered` codes limited range: read as full range, its black is 16 and its white 235
    expected = np.array([20, 86, 153, 220]) * (219 / 255 if full else 1) + (16 if full else 0)
    np.testing.assert_allclose(levels, expected, atol=2)


@pytest.mark.parametrize("name", ["fields.mp4", "fields.avi"])
def test_interlaced_video_is_deinterlaced(make_video, name):
    images = []
    for n in range(20):
        image = np.full((96, 128, 3), 30, np.uint8)
        image[0::2, 8 + 4 * n : 28 + 4 * n] = 220
        image[1::2, 10 + 4 * n : 30 + 4 * n] = 220  # half a frame later the bar has moved on
        images.append(image)
    path = make_video(images, name, fps=25, options={"x264-params": "tff=1:interlaced=1"})
    with open_source(str(path)) as source:
        frames = list(source)
    assert [frame.time for frame in frames] == pytest.approx(np.arange(20) / 25)
    assert source.problems == []
    for image, frame in zip(images, frames, strict=True):
        assert combing(image) > 5
        assert combing(frame.image) < 1
        left = int(np.flatnonzero(frame.image[48, :, 0] > 125)[0])
        assert abs(left - int(np.flatnonzero(image[48, :, 0] > 125)[0])) <= 2


def combing(image: np.ndarray) -> float:
    """How much rows differ from the mean of their neighbours, in grey levels."""
    grey = image.mean(axis=2)
    return float(np.abs(grey[1:-1] - (grey[:-2] + grey[2:]) / 2).mean())


def test_changed_frame_size_is_scaled_to_the_first(make_video, tmp_path):
    parts = [make_video([quadrants(*size)] * 3, f"{size[0]}.h264").read_bytes() for size in ((64, 48), (128, 96))]
    path = tmp_path / "both.h264"
    path.write_bytes(b"".join(parts))
    with open_source(str(path)) as source:
        images = [frame.image for frame in source]
    assert [image.shape for image in images] == [(48, 64, 3)] * 6
    assert corners(images[5]) == COLOURS
    assert any("3 frames of different size" in problem for problem in source.problems)


def test_stream_without_timestamps_uses_the_rate(make_video):
    with open_source(str(make_video(numbered(10), "raw.h264", fps=50))) as source:
        times = [frame.time for frame in source]
    np.testing.assert_allclose(np.diff(times), 1 / source.info.fps, atol=1e-9)
    assert len(times) == 10
    assert source.problems == []


def test_non_square_pixels_become_square(make_video):
    with open_source(str(make_video([quadrants(64, 48)] * 2, aspect=Fraction(3, 2)))) as source:
        image = next(iter(source)).image
    assert source.info.size == (96, 48)
    assert image.shape == (48, 96, 3)


@pytest.mark.parametrize(("start", "end"), [(None, 0.5), (0.7, None), (0.33, 1.01), (1.0, 1.2), (0.0, 10.0)])
@pytest.mark.parametrize("name", ["clip.mp4", "clip.mkv", "clip.ts", "clip.avi"])
def test_start_and_end_select_frames(make_video, start, end, name):
    path = make_video(numbered(60), name, options={"g": "12", "bf": "2"})
    with open_source(str(path)) as source:
        whole = list(source)
    np.testing.assert_allclose([frame.time for frame in whole], np.arange(60) / 30, atol=1e-3)
    assert source.problems == []
    with open_source(str(path), start=start, end=end) as source:
        clip = list(source)
    low, high = start or 0.0, end or 9.0
    expected = [frame for frame in whole if low - 1e-9 <= frame.time < high - 1e-9]
    assert [frame.index for frame in clip] == list(range(len(expected)))
    assert [frame.time for frame in clip] == [frame.time for frame in expected]
    assert source.info.frame_count == pytest.approx(len(expected), abs=1)
    for a, b in zip(clip, expected, strict=True):
        np.testing.assert_array_equal(a.image, b.image)


@pytest.mark.parametrize("start", [0.5, 1.7, 2.4])
@pytest.mark.parametrize("lengths", [(60, 45), (45, 60)])
def test_start_selects_frames_of_joined_recordings(make_video, lengths, start):
    """The time stamps of each recording begin at 0, so that a seek to a time ends in any of them."""
    parts = [make_video(numbered(n), f"{n}.ts", options={"g": "12", "bf": "2"}).read_bytes() for n in lengths]
    path = make_video(numbered(2), "joined.ts")
    path.write_bytes(b"".join(parts))
    with open_source(str(path)) as source:
        expected = [frame for frame in source if frame.time >= start - 1e-9]
    with open_source(str(path), start=start) as source:
        for frames in (list(source), list(source.replay())):
            assert [frame.time for frame in frames] == [frame.time for frame in expected]
            for a, b in zip(frames, expected, strict=True):
                np.testing.assert_array_equal(a.image, b.image)


def test_start_seeks_instead_of_decoding(videos, monkeypatch):
    walks = []
    monkeypatch.setattr(
        "pose.video.decode.DecodingPass", lambda *parts: walks.append(DecodingPass(*parts)) or walks[-1]
    )
    with open_source(str(videos / "dance.mp4"), start=17.0) as source:
        count = sum(1 for _ in source)
    assert count == 545 - 17 * 30
    assert sum(walk.decoded for walk in walks) < 300


@pytest.mark.parametrize(("start", "end"), [(-1.0, None), (2.0, 1.0), (1.0, 1.0), (50.0, None), (float("nan"), None)])
def test_invalid_spans_are_rejected(make_video, start, end):
    path = str(make_video(numbered(30)))
    with pytest.raises(UsageError, match=r"^start: |^end: "):
        open_source(path, start=start, end=end)


def test_timeline_changes_only_invalid_times():
    timeline = RepairedTimeline(0.04)
    stamps = [0.0, 0.04, 0.04, 0.03, 0.12, None, 0.2]
    assert [timeline.add(stamp) for stamp in stamps] == pytest.approx([0.0, 0.04, 0.041, 0.042, 0.12, 0.16, 0.2])
    assert timeline.repaired == 2
