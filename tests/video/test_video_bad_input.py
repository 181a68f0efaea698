"""What cannot be read says so in one line, and what is damaged gives what it holds."""

import random
import shutil
import socket
from fractions import Fraction

import av
import numpy as np
import pytest
from picture_codes import number_of, numbered

import pose.video.container as container_module
from pose.errors import PoseError, UsageError
from pose.video import open_source


def check_refused(spec: str, why: str, kind: type[PoseError] = PoseError) -> None:
    """Opening fails with one line that names the source and the reason."""
    with pytest.raises(kind, match=why) as caught:
        open_source(spec)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert spec.split("?")[0].rpartition("@")[2] in str(caught.value)


def test_missing_file_gives_a_one_line_error(tmp_path):
    check_refused(str(tmp_path / "no.mp4"), "no such file", UsageError)
    for name, target in {"dangling.mp4": "no.mp4", "loop.mp4": "loop.mp4"}.items():
        (tmp_path / name).symlink_to(target)
        check_refused(str(tmp_path / name), "a symbolic link without a target", UsageError)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("text.mp4", "Only text.\n" * 100, "not a video"),
        ("notes.txt", "Only text.\n" * 100, "not a video file"),  # FFmpeg would draw the text
        ("empty.mp4", "", "the file is empty"),
    ],
)
def test_text_and_empty_files_are_rejected(tmp_path, name, text, why):
    (tmp_path / name).write_text(text)
    check_refused(str(tmp_path / name), why)


def test_playlists_are_not_followed(tmp_path, videos):
    shutil.copy(videos / "street.mp4", tmp_path / "other.mp4")
    playlists = {
        "concat.mp4": "ffconcat version 1.0\nfile 'other.mp4'\n",
        "list.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nother.mp4\n#EXT-X-ENDLIST\n",
    }
    for name, text in playlists.items():
        (tmp_path / name).write_text(text)
        check_refused(str(tmp_path / name), "cannot read")


def test_unreadable_file_gives_a_one_line_error(make_video, monkeypatch):
    path = make_video(numbered(2))
    monkeypatch.setattr(container_module.os, "access", lambda *_: False)  # root may read everything
    check_refused(str(path), "permission denied")


def test_sound_only_file_is_rejected(tmp_path):
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 16000), np.float32), format="fltp", layout="mono")
        frame.rate = 16000
        container.mux([*stream.encode(frame), *stream.encode(None)])
    check_refused(str(path), "only sound")


def test_header_without_frames_is_rejected(make_video):
    path = make_video(numbered(3), "none.mkv", codec="ffv1")
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"\x1f\x43\xb6\x75")])  # up to the first Matroska cluster
    check_refused(str(path), "contains no complete frame")


def test_truncated_video_returns_decodable_frames(make_video):
    rng = np.random.default_rng(1)
    images = [np.clip(image + rng.normal(0, 20, image.shape), 0, 255).astype(np.uint8) for image in numbered(40)]
    path = make_video(images, flags="faststart", options={"bf": "0"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with open_source(str(path)) as source:
        numbers = [number_of(frame.image, 40) for frame in source]
        again = sum(1 for _ in source.replay())
    assert 10 < len(numbers) == again < 35
    assert numbers[:10] == pytest.approx(range(10), abs=1)
    assert len(source.problems) >= 1
    assert any("of 40 frames" in problem and str(path) in problem for problem in source.problems)


def test_video_truncated_before_its_index_is_rejected(make_video):
    path = make_video(numbered(20))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    check_refused(str(path), "cut short before its index")


def test_matroska_lacking_under_a_second_is_complete(make_video):
    path = make_video(numbered(50), "short.mkv", codec="ffv1")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with open_source(str(path)) as source:
        assert 15 < sum(1 for _ in source) < 35
    assert "1.67 s expected" in str(source.cut_short)


@pytest.mark.parametrize("name", ["still.mkv", "still.mp4"])
def test_long_last_frame_is_not_a_missing_end(tmp_path, name):
    path = tmp_path / name
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuvj420p"
        for n in range(3):
            frame = av.VideoFrame(64, 48, "yuvj420p")
            frame.pts, frame.time_base = n, Fraction(1, 25)
            for packet in stream.encode(frame):
                packet.duration = 100 if n == 2 else 1
                container.mux(packet)
    with open_source(str(path)) as source:
        assert [frame.time for frame in source] == [0, 0.04, 0.08]
        assert source.info.duration == pytest.approx(4.08, abs=0.01)
    assert source.problems == []


def test_damaged_middle_is_reported(videos, tmp_path):
    data = bytearray((videos / "dance.mp4").read_bytes())
    noise = random.Random(0)
    for begin in range(60_000, len(data) - 60_000, 20_000):
        data[begin : begin + 300] = noise.randbytes(300)
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)
    with open_source(str(path)) as source:
        times = [frame.time for frame in source]
    assert 400 < len(times) < 545
    assert (np.diff(times) > 0).all()
    assert any("damaged" in problem for problem in source.problems)


def test_duplicate_time_stamps_are_reported(make_video):
    path = make_video(
        numbered(6), "twice.mkv", codec="ffv1", stamps=[0, 40, 40, 80, 120, 160], time_base=None, fps=1000
    )
    with open_source(str(path)) as source:
        times = [frame.time for frame in source]
    assert times == pytest.approx([0, 0.04, 0.0405, 0.08, 0.12, 0.16])
    assert any("1 time stamps" in problem for problem in source.problems)


def test_missing_camera_gives_a_one_line_error():
    check_refused("99", "camera 99|no such device", UsageError)


def test_unknown_scheme_is_rejected():
    with pytest.raises(UsageError, match="cannot read ftp://"):
        open_source("ftp://127.0.0.1/clip.mp4")


@pytest.fixture
def closed_port():
    """A port of this machine without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]


@pytest.mark.parametrize("scheme", ["http", "rtsp"])
def test_refused_connection_hides_the_password(closed_port, scheme):
    with pytest.raises(PoseError, match=rf"{scheme}://127\.0\.0\.1:{closed_port}/clip: connection refused") as caught:
        open_source(f"{scheme}://me:secret@127.0.0.1:{closed_port}/clip?token=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "rtsp"])
def test_silent_server_times_out(monkeypatch, scheme):
    monkeypatch.setattr(container_module, "TIMEOUT", 0.5)
    open_container, limits = av.open, []

    def noted(*arguments, timeout, **options):
        limits.append(timeout)
        return open_container(*arguments, timeout=timeout, **options)

    monkeypatch.setattr(container_module.av, "open", noted)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        check_refused(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/clip", "no answer")
    assert set(limits) == {(0.5, 0.5)}


def test_ffmpeg_writes_nothing_to_the_terminal(videos, tmp_path, capfd):
    path = tmp_path / "cut.mp4"
    path.write_bytes((videos / "dance.mp4").read_bytes()[:300_000])
    with pytest.raises(PoseError):
        open_source(str(path))
    assert capfd.readouterr() == ("", "")


def test_odd_file_names_are_read(tmp_path, make_video):
    path = make_video(numbered(3), "clip.mp4")
    for name in ("a:b.mp4", "100%d.mp4", "[x] é ü.mp4", "\udcff.mp4", "-.mp4"):
        renamed = tmp_path / name
        shutil.copy(path, renamed)
        with open_source(str(renamed)) as source:
            assert sum(1 for _ in source) == 3


def test_unlistable_folder_is_rejected(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "iterdir", refuse)  # root may list everything
    check_refused(str(tmp_path), "permission denied")


def test_randomly_damaged_videos_give_pose_errors(make_video, tmp_path):
    whole = make_video(numbered(10), tone=0.3, options={"g": "4"}).read_bytes()
    chance = random.Random(5)
    path = tmp_path / "damaged.mp4"
    read, refusals = 0, []
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 3, 30])):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            with open_source(str(path)) as source:
                times = [frame.time for frame in source]
            assert (np.diff(times) > 0).all()
            read += 1
        except PoseError as error:
            refusals.append(str(error))
    assert read > 10
    assert len(refusals) > 10
    assert all(str(path) in line and "\n" not in line for line in refusals)
