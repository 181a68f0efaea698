"""Video from a server on this machine."""

import tempfile
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from picture_codes import number_of, numbered

from pose.errors import PoseError
from pose.video import open_source


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Nothing on the terminal."""


class Endless(BaseHTTPRequestHandler):
    """Sends a transport stream without saying how long it is, as a camera does."""

    def __init__(self, data: bytes, *args: object) -> None:
        self._data = data
        super().__init__(*args)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "video/mp2t")
        self.end_headers()
        self.wfile.write(self._data)

    def log_message(self, *_args: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def serve():
    """Starts a server with the given handler and returns its address."""
    servers = []

    def start(handler) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=partial(server.serve_forever, poll_interval=0.01), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_http_file_is_read(make_video, serve):
    path = make_video(numbered(30))
    address = serve(partial(Quiet, directory=path.parent))
    with open_source(f"{address}/{path.name}", start=0.5) as source, open_source(str(path), start=0.5) as local:
        assert not source.info.is_live
        for _ in range(2):
            for a, b in zip(source, local, strict=True):
                assert a.time == b.time
                np.testing.assert_array_equal(a.image, b.image)


@pytest.mark.parametrize("start", [0.0, 17.5])
def test_index_at_the_end_without_range_requests_is_read(videos, serve, start, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    address = serve(partial(Quiet, directory=videos))
    with open_source(f"{address}/dance.mp4", start=start) as source:
        assert not source.info.is_live
        first = [frame.time for frame in source]
        again = [frame.time for frame in source.replay()]
        assert list(tmp_path.iterdir())
    assert first == again
    assert (first[0], len(first)) == (pytest.approx(start), 545 - round(30 * start))
    assert source.problems == []
    assert source.name == f"{address}/dance.mp4"
    assert list(tmp_path.iterdir()) == []


def test_downloaded_non_video_leaves_no_copy(videos, serve, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    address = serve(partial(Quiet, directory=videos))
    with pytest.raises(PoseError, match=r"cannot read http:.*/README\.md: not a video"):
        open_source(f"{address}/README.md")
    assert list(tmp_path.iterdir()) == []


class Trickling(BaseHTTPRequestHandler):
    """Sends a few bytes in each response, and counts the requests."""

    requests, data, portion = 0, bytes(1_000_000), 1

    def do_GET(self) -> None:
        type(self).requests += 1
        first = int(self.headers.get("Range", "bytes=0-").partition("=")[2].partition("-")[0])
        part = self.data[first : first + self.portion]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(self.data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_args: object) -> None:
        """Nothing on the terminal."""


def test_a_server_that_sends_one_byte_per_request_is_left_alone(serve):
    with pytest.raises(PoseError, match="its server sends too little per request"):
        open_source(f"{serve(Trickling)}/a.mp4")
    assert Trickling.requests < 10


@pytest.mark.parametrize("portion", [1, 1500])
def test_such_a_server_is_left_alone_without_a_suffix(make_video, serve, monkeypatch, portion):
    monkeypatch.setattr("pose.video.container.TIMEOUT", 0.3)  # one byte at a time, the file is not open after this
    path = make_video(numbered(500))
    handler = type("Few", (Trickling,), {"data": path.read_bytes(), "portion": portion})
    with pytest.raises(PoseError, match="its server sends too little per request"):
        open_source(f"{serve(handler)}/video")


def test_playlist_cannot_reach_local_files(make_video, serve, tmp_path):
    path = make_video(numbered(5), "local.ts")
    site = tmp_path / "site"
    site.mkdir()
    (site / "list.m3u8").write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://{path}\n#EXT-X-ENDLIST\n")
    address = serve(partial(Quiet, directory=site))
    with pytest.raises(PoseError, match="cannot read"):
        open_source(f"{address}/list.m3u8")


def test_live_stream_is_recorded_for_a_second_pass(make_video, serve):
    path = make_video(numbered(25, 63, 47), "live.ts", codec="mpeg2video", fps=25)
    address = serve(partial(Endless, path.read_bytes()))
    with open_source(f"{address}/live", keep=True) as source:
        first = list(source)
        again = list(source.replay())
        folder = source._recording._folder
        assert source.info.is_live
    assert len(first) == len(again) == 25
    assert not folder.exists()
    for a, b in zip(first, again, strict=True):
        assert (a.index, b.time) == (b.index, pytest.approx(a.time, abs=1e-4))
        assert a.image.shape == b.image.shape
        assert number_of(b.image, 25) == number_of(a.image, 25)


def test_live_stream_is_read_once_unless_kept(make_video, serve):
    path = make_video(numbered(25), "live.ts", codec="mpeg2video", fps=25)
    with open_source(f"{serve(partial(Endless, path.read_bytes()))}/live") as source:
        assert sum(1 for _ in source) == 25
        with pytest.raises(PoseError, match="can be read only once"):
            source.replay()
