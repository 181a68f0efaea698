"""Writing video: images, time stamps and sound survive, and nothing half-made is left."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from picture_codes import number_of, numbered, quadrants

from pose.errors import PoseError
from pose.video import VideoWriter, open_source
from pose.video.growing import GrowingVideo


def copy(source, path, **options) -> list[float]:
    """Writes all frames of a source and returns their times."""
    info = source.info
    with VideoWriter(path, info.size, fps=info.fps, time_base=info.time_base, **options) as writer:
        times = []
        for frame in source:
            writer.write(frame.image, frame.time)
            times.append(frame.time)
    assert writer.problems == []
    return times


def sound_of(path) -> tuple[str, float, float]:
    """Codec, start and end in s of a file's sound, on the clock of its first image."""
    with av.open(str(path)) as container:
        zero = next(container.decode(video=0)).time
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        frames = [(frame.time - zero, frame.samples / frame.rate) for frame in container.decode(stream)]
        return stream.codec.canonical_name, frames[0][0], frames[-1][0] + frames[-1][1]


def test_encoded_colours_are_kept(tmp_path):
    out = tmp_path / "out.mp4"
    image = quadrants(64, 48)
    with VideoWriter(out, (64, 48), fps=10) as writer:
        for n in range(3):
            writer.write(image, n / 10)
    with open_source(str(out)) as source:
        for frame in source:
            assert np.abs(frame.image[4:20, 4:28].astype(int) - image[4:20, 4:28]).max() < 8
            assert np.abs(frame.image[28:44, 36:60].astype(int) - image[28:44, 36:60]).max() < 8


@pytest.mark.parametrize(
    ("stamps", "time_base"),
    [
        ([0, 3003, 3004, 9000, 9375, 90000, 90001, 123456], Fraction(1, 90000)),
        ([0, 33, 66, 67, 1000, 1001, 1500, 4242], Fraction(1, 1000)),
        ([0, 1, 2, 5, 6, 7, 30, 240], Fraction(1, 240)),
        ([0, 1, 2, 7, 30, 31, 64, 512], Fraction(1, 64)),
        ([0, 1, 2, 5, 6, 7, 30, 240], Fraction(1001, 24000)),
    ],
)
def test_variable_frame_rate_is_kept_exactly(make_video, tmp_path, stamps, time_base):
    path = make_video(
        numbered(8), "in.mkv" if time_base.denominator == 1000 else "in.mp4", stamps=stamps, time_base=time_base
    )
    with open_source(str(path)) as source:
        times = copy(source, tmp_path / "out.mp4")
    with open_source(str(tmp_path / "out.mp4")) as written:
        frames = list(written)
    assert [frame.time for frame in frames] == pytest.approx(times, abs=1e-12)
    assert [number_of(frame.image, 8) for frame in frames] == list(range(8))


def test_wrong_size_is_refused(tmp_path):
    with (
        pytest.raises(ValueError, match="expected an image"),
        VideoWriter(tmp_path / "o.mp4", (64, 48), fps=1) as writer,
    ):
        writer.write(np.zeros((64, 48, 3), np.uint8), 0.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "tone_codec", "codec"),
    [
        ("in.mp4", "aac", "aac"),
        ("in.mkv", "mp3", "mp3"),
        ("in.ts", "aac", "aac"),
        ("in.mkv", "flac", "aac"),
        ("in.avi", "pcm_s16le", "aac"),
    ],
)
def test_sound_is_copied(make_video, tmp_path, name, tone_codec, codec):
    path = make_video(numbered(60), name, tone=2.0, tone_codec=tone_codec)
    out = tmp_path / "out.mp4"
    with open_source(str(path)) as source:
        assert source.info.has_audio
        times = copy(source, out, sound=source.sound)
    with open_source(str(out)) as written:
        assert [frame.time for frame in written] == pytest.approx(times, abs=1e-12)
    name, start, end = sound_of(out)
    assert name == codec
    assert start == pytest.approx(0.0, abs=0.05)
    assert end == pytest.approx(2.0, abs=0.06)


@pytest.mark.parametrize("tone_codec", ["aac", "flac"])
def test_sound_of_a_span_is_cut(make_video, tmp_path, tone_codec):
    path = make_video(numbered(90), "in.mkv", tone=3.0, tone_codec=tone_codec)
    out = tmp_path / "out.mp4"
    with open_source(str(path), start=1.0, end=2.0) as source:
        copy(source, out, sound=source.sound)
    _, start, end = sound_of(out)
    assert start == pytest.approx(0.0, abs=0.06)
    assert end == pytest.approx(1.0, abs=0.06)


def test_error_leaves_no_file(tmp_path):
    out = tmp_path / "out.mp4"
    out.write_text("what was there before")

    def interrupted() -> None:
        with VideoWriter(out, (64, 48), fps=10) as writer:
            for n, image in enumerate(numbered(50)):
                writer.write(image, n / 10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_text() == "what was there before"


def test_without_images_there_is_no_file(tmp_path):
    with VideoWriter(tmp_path / "out.mp4", (64, 48), fps=10):
        pass
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_gives_a_one_line_error(tmp_path):
    with pytest.raises(PoseError, match=r"cannot write .*no/out\.mp4: no such file or directory"):
        VideoWriter(tmp_path / "no" / "out.mp4", (64, 48), fps=10)


def test_full_disk_gives_a_one_line_error(tmp_path):
    """A limit on the size of files stands for a disk that fills up while writing."""
    program = f"""
import resource
from pathlib import Path
import numpy as np
from pose.errors import PoseError
from pose.video import VideoWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
rng = np.random.default_rng(0)
try:
    with VideoWriter(Path({str(tmp_path / "out.mp4")!r}), (320, 240), fps=30) as writer:
        for n in range(100):
            writer.write(rng.integers(0, 255, (240, 320, 3), np.uint8), n / 30)
except PoseError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert done.stderr == ""
    assert done.stdout.strip() == f"cannot write {tmp_path / 'out.mp4'}: file too large"
    assert list(tmp_path.iterdir()) == []


def growing(path: Path, size: tuple[int, int], fps: float) -> GrowingVideo:
    return GrowingVideo(path, Path(f"{path}.part"), size, fps=fps)


@pytest.mark.parametrize("writer", [VideoWriter, growing])
def test_a_colon_in_a_relative_path_is_not_a_protocol(tmp_path, monkeypatch, writer):
    monkeypatch.chdir(tmp_path)
    Path("12:30").mkdir()
    video = writer(Path("12:30/a:b.mp4"), (64, 48), fps=30)
    for number in range(3):
        video.write(np.full((48, 64, 3), 60 * number, np.uint8), number / 30)
    video.close()
    assert [path.name for path in Path("12:30").iterdir()] == ["a:b.mp4"]
