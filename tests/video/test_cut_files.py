"""A file that was cut off is reported, wherever it was cut, in every container that tells."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from picture_codes import numbered

from pose.errors import PoseError
from pose.video import open_source
from pose.video.trailer import is_cut_off

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
