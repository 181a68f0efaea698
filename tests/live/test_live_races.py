"""What two threads do at the same moment: each test stops one of them at the step where the other one comes."""

import threading
from types import SimpleNamespace

from live_fakes import FakePipeline, picture, settled, wait_until
from pose_apps.webcam.live_outputs import LiveOutputs
from pose_apps.webcam.options import WebcamConfig
from pose_fakes import run_info

from pose.live import LiveLoop, PushedFrames, subscriber, websocket
from pose.live import recorder as module
from pose.live.recorder import Recorder
from pose.live.sources import Reconnecting
from pose.live.websocket import WebSocketSink
from pose.results import NpzWriter
from pose.video import open_source


class StopsWhileItReads(PushedFrames):
    """The loop is stopped just when an image came."""

    loop = None

    def frames(self, stop):
        for captured in super().frames(stop):
            if captured.frame.index == 3:
                stopping = self.loop._stopping
                self.loop._stopping = SimpleNamespace(is_set=lambda: False, set=stopping.set)  # as it was looked at
                self.loop._capture_queue.close()
            yield captured


def test_an_image_that_comes_while_the_loop_is_stopped_counts_as_none():
    source = StopsWhileItReads("test", capacity=10)
    source.loop = loop = LiveLoop(FakePipeline(), source, backlog=10)
    with loop:
        for number in range(4):
            source.push(picture(number))
        source.close()
        wait_until(lambda: not loop.running)
    status = loop.status()
    assert status.frames_in == status.processed + status.dropped == 3


def test_both_threads_count_what_clients_lost(monkeypatch):
    """A client goes with what it lost, while the sink itself was too slow for a result."""

    class Lost:
        """Of a client that goes: it is asked for what it lost just when the other thread counts."""

        @property
        def dropped(self) -> int:
            other = threading.Thread(target=sink._send, args=(None,))
            other.start()
            other.join(0.5)  # as far as it comes
            others.append(other)
            return 2

    others = []
    monkeypatch.setattr(websocket, "messages", lambda live: [])
    with LiveLoop(FakePipeline(), PushedFrames("test")) as loop:
        sink = WebSocketSink(loop, "127.0.0.1", 0)
        sink._subscriber._mailbox.dropped = 3
        silent = SimpleNamespace(put=lambda texts: True, dropped=0)
        sink._clients |= {"goes": Lost(), "stays": silent}
        sink._forget("goes")
        others[0].join()
        lost = sink.lost
        sink._clients.clear()
        sink.close()
    assert lost in (2 + 3, 2 + 2 * 3)  # the one who goes has lost it, too, or is gone by then


def test_a_recording_is_waited_for_however_long_its_end_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_run_info", lambda loop, pipeline, size: run_info(pipeline.skeleton, size))
    monkeypatch.setattr(subscriber, "JOIN_SECONDS", 0.0)
    begun, close = threading.Event(), NpzWriter.close

    def slowly(writer, **how):
        begun.wait(0.3)
        close(writer, **how)

    monkeypatch.setattr(NpzWriter, "close", slowly)
    source = PushedFrames("test", capacity=10)
    with LiveLoop(FakePipeline(), source, backlog=10) as loop:
        recorder = Recorder(loop, tmp_path)
        for number in range(5):
            source.push(picture(number))
        settled(loop, 5)
        recorder.close()
        assert None not in recorder.files.values()


def test_a_recording_that_ends_while_it_is_looked_at_is_harmless(tmp_path):
    class Ending(LiveOutputs):
        """The recording is there at the first query, and then no more."""

        @property
        def recorder(self):
            found, self.left = self.left, None
            return found

        @recorder.setter
        def recorder(self, value) -> None:
            self.left = value

    with LiveLoop(FakePipeline(), PushedFrames("test")) as loop:
        outputs = Ending(loop, WebcamConfig(out=str(tmp_path)))
        outputs.left = SimpleNamespace(problem="the disk is full", dropped=3)
        assert outputs.problems() == {"the recording": "the disk is full"}
        outputs.left = SimpleNamespace(problem=None, dropped=3)
        assert outputs.lost() == {"recording": 3}


class Opened:
    """A source without readers."""

    name, info = "camera", SimpleNamespace(fps=25.0)

    def __init__(self) -> None:
        self.closes = 0

    def close(self) -> None:
        self.closes += 1


def test_a_camera_that_is_released_before_any_read_is_free():
    opened = Opened()
    source = Reconnecting("0", opened)
    source.close()
    source.close()
    assert opened.closes == 1
    assert list(source.frames(threading.Event())) == []


def test_a_camera_that_comes_back_when_it_is_no_longer_needed_is_free(monkeypatch):
    monkeypatch.setattr("pose.live.sources.MAX_UNREAD_S", 0.0)
    again = Opened()
    source = Reconnecting("0", Opened())

    def come_back(spec, *, watch):
        source.close()
        return again

    monkeypatch.setattr("pose.live.sources.open_source", come_back)
    assert list(source.frames(threading.Event())) == []
    assert again.closes == 1


class Swaps(threading.Thread):
    """`lock` of a source: while one thread holds it, another one closes the source as far as that goes."""

    def __init__(self, source) -> None:
        super().__init__(target=source.close)
        self._real = threading.Lock()

    def __enter__(self):
        self._real.acquire()
        if self.ident is None:
            self.start()
            self.join(0.3)

    def __exit__(self, *_) -> None:
        self._real.release()


def test_a_video_that_is_closed_while_a_reader_begins(videos):
    """Who reads it has it to the end, so that no thread closes a container that another one is reading."""
    source = open_source(str(videos / "squats.mp4"))
    source._lock = closing = Swaps(source)
    frames = iter(source)
    closing.join()
    assert list(frames) == []  # closed, and nothing failed
