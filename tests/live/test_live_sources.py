"""Live sources: files at their own speed, and streams that die and come back."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import av
import numpy as np
import pytest
from live_fakes import FakePipeline, picture, wait_until

from pose.errors import PoseError, UsageError
from pose.live import LiveLoop, PushedFrames, open_live
from pose.live import sources as module
from pose.live.sources import Played, Reconnecting
from pose.live.thinning import Thinning
from pose.structures.types import Frame
from pose.video import Source, VideoInfo, open_source, upright


class FakeSource(Source):
    """Frames of numbered images at `times` s; then it ends, or raises `error`."""

    def __init__(self, times, error: Exception | None = None, fps: float = 100.0, name: str = "camera 7") -> None:
        self.name, self.problems, self.closed = name, [], False
        self.info = VideoInfo(64, 48, fps, Fraction(1, 1000), None, None, False, True)
        self._times, self._error = list(times), error

    def __iter__(self) -> Iterator[Frame]:
        for index, moment in enumerate(self._times):
            yield Frame(picture(index), index, float(moment))
        if self._error is not None:
            raise self._error

    def replay(self) -> Iterator[Frame]:
        return iter(self)

    def close(self) -> None:
        self.closed = True


def read(source, count: int | None = None) -> list:
    """All of it, or its first `count` images."""
    stop, captured = threading.Event(), []
    for item in source.frames(stop):
        captured.append(item)
        if len(captured) == count:
            stop.set()
    return captured


@pytest.fixture
def always_catches_up(monkeypatch) -> None:
    """However long the machine stands still meanwhile."""
    monkeypatch.setattr(module, "MAX_FILE_LAG_S", 3600.0)


@pytest.mark.usefixtures("always_catches_up")
def test_file_plays_in_real_time():
    times = [0.0, 0.02, 0.1, 0.2]
    begun = time.monotonic()
    captured = read(Played(FakeSource(times)))
    assert time.monotonic() - begun >= 0.2
    assert [item.frame.time for item in captured] == times
    due = np.array([item.at for item in captured])
    np.testing.assert_allclose(due - due[0], times, atol=1e-9)
    assert begun <= due[0] <= time.monotonic() - 0.2


def test_looped_file_has_continuous_time():
    captured = read(Played(FakeSource([0.0, 0.01, 0.02]), loop=True), count=7)
    assert [item.frame.index for item in captured] == list(range(7))
    np.testing.assert_allclose([item.frame.time for item in captured], np.arange(7) * 0.01, atol=1e-9)


class Clock(threading.Event):
    """A clock that advances only in waits, and an event that is waited for."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        return self.is_set()


def test_late_file_playback_resumes_without_catching_up(monkeypatch):
    clock, late = Clock(), []
    monkeypatch.setattr(module, "time", clock)
    for number, item in enumerate(Played(FakeSource(np.arange(40) / 100)).frames(clock)):
        clock.now += {10: 0.3, 20: 1.2}.get(number, 0.0)  # less than MAX_FILE_LAG_S, and more
        late.append(clock.now - item.at)
    np.testing.assert_allclose(late[:10], 0, atol=1e-9)
    np.testing.assert_allclose(late[10:20], 0.3 - np.arange(10) / 100, atol=1e-9)
    assert late[20] == pytest.approx(1.2 + 0.2)
    np.testing.assert_allclose(late[21:], 0, atol=1e-9)


def test_truncated_file_reports_it():
    broken = FakeSource([0.0, 0.01])
    broken.cut_short = "clip.mp4: stopped after 0.02 s"
    source = Played(broken)
    assert len(read(source)) == 2
    assert source.message == "clip.mp4: stopped after 0.02 s"


@pytest.mark.parametrize(("spec", "error"), [("no.mp4", UsageError), ("99", UsageError), ("ftp://x/y", UsageError)])
def test_missing_source_is_reported_at_once(spec, error):
    with pytest.raises(error, match="cannot read"):
        open_live(spec)


@pytest.fixture
def connections(monkeypatch):
    """What opening the source again gives, one after the other: a source, or the error that it meets."""
    given: list[Source | Exception] = []

    def opened(spec: str, *, watch: bool) -> Source:
        assert (spec, watch) == ("7", True)
        answer = given.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(module, "open_source", opened)
    monkeypatch.setattr(module, "MIN_RETRY_S", 0.02)
    monkeypatch.setattr(module, "MAX_UNREAD_S", 3600.0)  # a loop that is made may load a forecaster before it reads
    return given


def test_failed_camera_is_reopened_with_continuous_time(connections):
    first = FakeSource([0, 0.01, 0.02], PoseError("cannot read camera 7: unplugged"))
    second = FakeSource([0, 0.01])
    connections += [PoseError("cannot read camera 7: no such device"), second]
    source = Reconnecting("7", first)
    begun = time.monotonic()
    captured = read(source, count=5)
    assert [item.frame.index for item in captured] == list(range(5))
    times = np.array([item.frame.time for item in captured])
    assert (np.diff(times) > 0).all()
    assert times[3] >= 0.06  # two waits, the second twice the first
    assert times[3] <= times[2] + time.monotonic() - begun
    assert first.closed
    assert second.closed
    assert source.message == ""


def test_reconnect_message_states_reason_and_delay(connections, monkeypatch):
    monkeypatch.setattr(module, "MIN_RETRY_S", 3600.0)
    source = Reconnecting("7", FakeSource([0], PoseError("cannot read camera 7: unplugged")))
    with LiveLoop(FakePipeline(), source) as loop:
        wait_until(lambda: loop.status().message != "")
        wait_until(lambda: "reconnecting" in loop.status().message)
        assert re.fullmatch(r"camera 7 is gone \(unplugged\), reconnecting in 3\d\d\d s", loop.status().message)
        assert "camera 7 is gone (unplugged), reconnecting in" in loop.status().line()
        begun = time.monotonic()
    assert time.monotonic() - begun < 1000  # stopping does not wait for the camera


class OneClipAConnection(BaseHTTPRequestHandler):
    """A stream without an announced length that breaks off after one clip, as if the cable were pulled."""

    def __init__(self, data: bytes, *args: object) -> None:
        self._data = data
        super().__init__(*args)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "video/mp2t")
        self.end_headers()
        with suppress(OSError):  # who has enough goes
            for start in range(0, len(self._data), 376):  # two packets of the transport stream at a time
                self.wfile.write(self._data[start : start + 376])
                time.sleep(0.01)

    def log_message(self, *_args: object) -> None:
        """Nothing on the terminal."""


def test_interrupted_network_stream_is_reopened(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MIN_RETRY_S", 0.05)
    path = tmp_path / "live.ts"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg2video", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(100):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture(2 * number))))
        container.mux(stream.encode(None))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(OneClipAConnection, path.read_bytes()))
    threading.Thread(target=partial(server.serve_forever, poll_interval=0.01), daemon=True).start()
    try:
        source = open_live(f"http://127.0.0.1:{server.server_address[1]}/live")
        assert isinstance(source, Reconnecting)
        captured = read(source, count=130)  # each connection has fewer than 100
    finally:
        server.shutdown()
        server.server_close()
    assert (np.diff([item.frame.time for item in captured]) > 0).all()


def test_pushed_images_keep_their_times_and_indices():
    source = PushedFrames("browser")
    assert [source.push(picture(n), at=100 + n / 10) for n in range(3)] == [0, 1, 2]
    source.close()
    captured = read(source)
    np.testing.assert_allclose([item.frame.time for item in captured], [0, 0.1, 0.2])
    assert [item.at for item in captured] == [100.0, 100.1, 100.2]


def test_frames_that_are_dropped_are_neither_converted_nor_all_decoded(tmp_path, monkeypatch):
    """Most of the frames of a fast file never reach the networks."""
    path, count = tmp_path / "fast.mp4", 40
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"bf": "3", "b-pyramid": "none"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in [*range(count), None]:
            image = None if number is None else np.full((48, 64, 3), 5 * number, np.uint8)
            container.mux(stream.encode(None if image is None else av.VideoFrame.from_ndarray(image, format="rgb24")))
    read = []
    rgb = upright.UprightRGB.__call__
    monkeypatch.setattr(upright.UprightRGB, "__call__", lambda self, frame: read.append(frame.pts) or rgb(self, frame))
    with open_source(path) as source:
        for _ in range(2):  # the second time, as in a loop
            read.clear()
            late = list(source.late_frames())
            assert not read
            assert late[30].image.read().mean() == pytest.approx(150, abs=5)
            assert len(read) == 1
    with open_source(path) as whole:
        every = [frame.time for frame in whole]
    for level, most in ((1, 0.7), (2, 0.4)):
        with open_source(path) as source:
            source.thinning = level
            times = [frame.time for frame in source]
            assert 0.2 * count < len(times) < most * count
            assert set(times) < set(every)


def level_after(seconds, taken, arriving, lag=0.0):
    """The level of a source after so many seconds, with `arriving` frames/s at each level, of which `taken` are used.

    lag: delay of the decoder by level, s.
    """
    thinning, dropped, level, now = Thinning(), 0.0, 0, 0.0
    levels = []
    while now < seconds:
        now += 1 / arriving[level]
        dropped += max(0.0, 1 - taken / arriving[level])
        level = thinning.level(now, lag if level < 2 else 0.0, round(dropped))
        levels.append(level)
    return levels


def test_frames_are_left_out_while_the_networks_drop_them():
    assert level_after(5.0, taken=60, arriving=(60, 30, 15))[-1] == 0
    assert level_after(5.0, taken=20, arriving=(60, 30, 15))[-1] == 1
    assert level_after(5.0, taken=14, arriving=(60, 30, 15))[-1] == 2
    assert level_after(5.0, taken=60, arriving=(60, 30, 15), lag=0.3)[-1] == 2, "the decoder is too slow"
    # a codec that predicts nearly every frame from later ones
    assert level_after(60.0, taken=10, arriving=(60, 30, 1))[-1] == 1
    levels = level_after(120.0, taken=14.5, arriving=(60, 30, 15))
    assert np.mean(np.array(levels) < 2) < 0.2, "more frames are rarely tried"
