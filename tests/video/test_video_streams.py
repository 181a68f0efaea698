"""Videos with several streams, animated images, rates that vary, and damaged files."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from picture_codes import number_of, numbered
from pose_fakes import seen_result

from pose.errors import PoseError, UsageError
from pose.results import RunInfo
from pose.results.recorded import RecordedRun
from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.video import open_source
from pose.video.trailer import is_cut_off


@pytest.fixture
def two_streams(tmp_path) -> Path:
    """A stream of 2 x 2 px before one of 96 x 64."""
    path = tmp_path / "two.mkv"
    with av.open(str(path), "w") as out:
        streams = [out.add_stream("ffv1", rate=10) for _ in range(2)]
        for stream, (width, height) in zip(streams, ((2, 2), (96, 64)), strict=True):
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(5):
            for stream in streams:
                image = np.full((stream.height, stream.width, 3), 50 * number, np.uint8)
                frame = av.VideoFrame.from_ndarray(image)
                frame.pts, frame.time_base = number, Fraction(1, 10)
                out.mux(stream.encode(frame))
        for stream in streams:
            out.mux(stream.encode(None))
    return path


def test_the_largest_of_several_streams_is_read_and_named(two_streams):
    with open_source(two_streams) as source:
        assert source.info.size == (96, 64)
        assert len(list(source)) == 5
        assert len(list(source.replay())) == 5
        (said,) = source.problems
        assert "stream 1, the largest of 2 video streams (0: 2x2, 1: 96x64), is read" in said
        content = source.content()
    with open_source(two_streams, stream=0) as source:
        assert source.info.size == (2, 2)
        assert (len(list(source)), source.problems) == (5, [])
        assert source.content() != content


@pytest.mark.parametrize("stream", [2, -1, 1.0, "1"])
def test_a_stream_that_does_not_exist_is_a_usage_error(two_streams, stream):
    with pytest.raises(UsageError, match="stream: "):
        open_source(two_streams, stream=stream)


@pytest.mark.parametrize("name", ["a.webp", "a.png"])
def test_animated_images_are_videos(tmp_path, name):
    path, animation = tmp_path / name, cv2.Animation()
    images = numbered(6)
    animation.frames = [np.dstack([image, np.full(image.shape[:2], 255, np.uint8)]) for image in images]
    animation.durations = np.array([40, 50, 60, 70, 80, 90], np.int32)
    assert cv2.imwriteanimation(str(path), animation)
    if name == "a.webp" and int(av.__version__.partition(".")[0]) < 19:  # FFmpeg before 8 cannot decode it
        with pytest.raises(PoseError):
            list(open_source(path))
        return
    with open_source(path) as source:
        frames = list(source)
    assert [number_of(frame.image, 6) for frame in frames] == list(range(6))
    assert [frame.time for frame in frames] == pytest.approx([0, 0.04, 0.09, 0.15, 0.22, 0.3], abs=2e-3)
    assert cv2.imwrite(str(path), images[0])
    with open_source(path) as source:
        assert source.info.frame_count == 1, "a still image stays one"


def test_the_rate_of_a_result_is_the_average_of_its_frames():
    def rate(times: list[float]) -> float:
        info = RunInfo(source="a.mkv", fps=30.0, camera=Camera.of((64, 48)), skeleton=H36M17)
        with RecordedRun(info) as recorded:
            for index, time in enumerate(times):
                recorded.add(seen_result(np.zeros((0, 3), np.float32), index=index, time=time, size=(64, 48)))
            recorded.place(None)
            return recorded.info.fps

    assert rate([0.0, 0.1, 0.3, 0.4, 1.0]) == pytest.approx(4.0)
    assert rate([n / 29.97 for n in range(50)]) == 30.0, "the declared rate is kept if it agrees"
    assert rate([0.0]) == 30.0


@pytest.mark.parametrize(("name", "codec"), [("a.ts", "libx264"), ("a.mp4", "libx264"), ("a.mkv", "libx264")])
def test_a_damaged_file_has_the_same_frames_every_time(make_video, rng, name, codec):
    """Also in the second pass, which draws the overlay."""
    images = [cv2.GaussianBlur(rng.integers(0, 256, (96, 128, 3), np.uint8), (0, 0), 3) for _ in range(48)]
    path = make_video(images, name, codec=codec, options={"g": "12", "bf": "2"})
    data = bytearray(path.read_bytes())
    for place in rng.integers(len(data) // 5, len(data) * 4 // 5, 6):
        data[place : place + 40] = rng.bytes(40)
    path.write_bytes(data)
    seen = set()
    for _ in range(4):
        with open_source(path) as source:
            for frames in (source, source.replay()):
                seen.add(tuple((frame.time, frame.image.tobytes()) for frame in frames))
    assert len(seen) == 1


FRAMES = 60
CONTAINERS = {
    "a.mp4": {"tone": 2.0, "flags": "faststart"},
    "b.mp4": {},
    "a.mkv": {"tone": 2.0},
    "b.mkv": {},
    "a.webm": {"codec": "libvpx", "tone": 2.0, "tone_codec": "libopus"},
    "b.webm": {"codec": "libvpx"},
    "a.avi": {"codec": "mpeg4", "tone": 2.0, "tone_codec": "mp2"},
    "b.avi": {"codec": "mpeg4"},
    "a.ts": {"tone": 2.0},
    "b.ts": {},
    "a.flv": {"codec": "flv", "tone": 2.0},
    "b.flv": {"codec": "flv"},
    "a.mov": {"tone": 2.0},
    "a.mpg": {"codec": "mpeg1video", "fps": 25, "tone": 2.0, "tone_codec": "mp2"},
    "b.mpg": {"codec": "mpeg2video", "fps": 25},
    "b.gif": {"codec": "gif", "pix_fmt": "rgb8"},
}


@pytest.fixture
def film(make_video, request) -> Path:
    return make_video(numbered(FRAMES), request.param, **CONTAINERS[request.param])


def read(path: Path) -> tuple[int, str | None]:
    """Number of frames that could be read, and what is said about the end."""
    try:
        with open_source(path) as source:
            return sum(1 for _ in source), source.cut_short
    except PoseError as error:
        return 0, str(error)


def check_cut(film: Path, percents: Iterable[int]) -> None:
    whole = film.read_bytes()
    for percent in percents:
        length = len(whole) * percent // 100
        film.write_bytes(whole[: length - (length % 188 == 0)])
        frames, said = read(film)
        assert frames <= FRAMES
        assert said is not None, f"{frames} of {FRAMES} frames at {percent} % of {film.name}, and nothing was said"


@pytest.mark.parametrize("film", CONTAINERS, indirect=True)
def test_a_whole_file_is_complete_and_a_cut_one_is_reported(film):
    assert read(film) == (FRAMES, None)
    assert not is_cut_off(film)
    check_cut(film, [50, 90])


@pytest.mark.slow
@pytest.mark.parametrize("film", CONTAINERS, indirect=True)
def test_a_file_cut_anywhere_is_reported(film):
    check_cut(film, range(5, 100, 5))


@pytest.mark.parametrize("start", [b"\x1a\x45\xdf\xa3", b"GIF89a", b"RIFF", b"FLV\x01", b"\0\0\0\x18ftyp", b"G"])
def test_no_bytes_end_in_an_error(tmp_path, start, rng):
    for _ in range(200):
        path = tmp_path / "file"
        path.write_bytes(start + rng.integers(0, 256, rng.integers(0, 600), dtype=np.uint8).tobytes())
        assert is_cut_off(path) in (True, False)


def test_a_transport_stream_that_ends_inside_a_unit_of_sound_is_cut(make_video):
    """At the end of a packet: only the unit states that something is missing."""
    film = make_video(numbered(FRAMES), "a.ts", **CONTAINERS["a.ts"])
    whole = film.read_bytes()
    packets = [whole[at : at + 188] for at in range(0, len(whole), 188)]
    sound = {int.from_bytes(p[1:3], "big") & 0x1FFF for p in packets if b"\0\0\1\xc0" in p[4:40]}
    rows = [n for n, p in enumerate(packets) if int.from_bytes(p[1:3], "big") & 0x1FFF in sound]
    starts = [n for n in rows if packets[n][1] & 0x40 and n + 1 < len(packets) and n + 1 in rows]
    film.write_bytes(b"".join(packets[: starts[len(starts) // 2] + 1]))
    assert is_cut_off(film)
    frames, said = read(film)
    assert frames < FRAMES
    assert "cut short" in said
