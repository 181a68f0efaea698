"""A weight that another one stands in for is fetched where its server answers, and never waited for."""

import http.server
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pose.networks.weights import FetchError, Store, reachable
from pose.networks.weights.catalogue import WEIGHTS, Weight, WheelMember, ZipMember
from pose.networks.weights.reachable import locate_if_reachable
from pose.utils.written_files import RECORD

CONTENT = bytes(range(256)) * 64
BULK = os.urandom(20_000_000)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves a zip with one small and one large member; in parts unless told otherwise."""

    body = b""
    whole = False
    offered = 0
    asked = 0

    def do_GET(self) -> None:
        kind = type(self)
        kind.asked += 1
        first, _, last = (self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")
        parts = "Range" in self.headers and not kind.whole
        part = kind.body[int(first) : int(last) + 1 if last else None] if parts else kind.body
        self.send_response(206 if parts else 200)
        if parts:
            self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(kind.body)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        kind.offered += len(part)  # before the client can go on with it
        try:
            self.wfile.write(part)
        except ConnectionError:  # the client closed the connection
            self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def served(monkeypatch) -> Iterator[type[Handler]]:
    import io
    import zipfile

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(reachable, "MAX_WAIT_S", 600.0)  # for a busy machine, which answers
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/bulk.onnx", BULK)
        archive.writestr("a/small.onnx", CONTENT)
    kind = type("Served", (Handler,), {"body": packed.getvalue()})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        kind.url = f"http://127.0.0.1:{server.server_port}/all.zip"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield kind
        server.shutdown()
        thread.join()


def a_store(tmp_path: Path, url: str) -> Store:
    import hashlib

    weight = Weight(
        name="small",
        file="small.onnx",
        licence="MIT",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
        source=ZipMember(url, "small.onnx", small=True),
        fallback="other",
    )
    return Store((), tmp_path / "cache", {"small": weight}, schemes=("http",))


@pytest.mark.parametrize("whole", [False, True])
def test_archive_member_is_fetched_by_range_requests(whole, served, tmp_path):
    served.whole = whole
    store = a_store(tmp_path, served.url)
    path = locate_if_reachable(store, "small")
    assert path == store.cache / "small.onnx"
    assert path.read_bytes() == CONTENT
    assert sorted(entry.name for entry in store.cache.iterdir()) == [RECORD, "small.onnx"]
    assert (served.offered < 1_000_000) != whole
    asked = served.asked
    assert locate_if_reachable(store, "small") == path
    assert served.asked == asked


def test_wrong_content_is_rejected(served, tmp_path):
    served.body = served.body.replace(CONTENT[:64], CONTENT[1:65])
    answer = locate_if_reachable(a_store(tmp_path, served.url), "small")
    assert isinstance(answer, str)
    assert "damaged" in answer or "sha256" in answer


def test_unreachable_server_is_cached_for_a_day(served, tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and no other program gets the port meanwhile
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/all.zip"
        answer = locate_if_reachable(a_store(tmp_path, nobody), "small")
    assert answer == f"{nobody} could not be read: Connection refused"
    with pytest.raises(FetchError, match="could not be read: Connection refused") as caught:
        a_store(tmp_path, nobody).fetch("small")
    assert "urlopen" not in str(caught.value)
    there = a_store(tmp_path, served.url)
    assert locate_if_reachable(there, "small") == answer
    assert served.asked == 0
    record = there.cache / "small.unreachable"
    os.utime(record, (time.time() - reachable.FAILURE_EXPIRY_S - 1,) * 2)
    assert locate_if_reachable(there, "small") == there.cache / "small.onnx"


def test_hanging_server_times_out(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(reachable, "MAX_WAIT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        store = a_store(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}/all.zip")
        answer = locate_if_reachable(store, "small")
    assert isinstance(answer, str)
    assert re.search(r"within 0\.3 s|timed out", answer)
    with pytest.raises(FetchError):
        a_store(tmp_path, "http://127.0.0.1:9/all.zip").fetch("small")


def test_fallback_networks_come_from_the_package_index():
    replaced = {name: weight.fallback for name, weight in WEIGHTS.items() if weight.fallback}
    assert replaced == {
        "rtmdet-nano-person-320": "blazepose-detector",
        "movenet-thunder": "blazepose-landmark-full",
        "movenet-thunder-graph": "blazepose-landmark-full",
    }
    assert all(isinstance(WEIGHTS[name].source, WheelMember) for name in replaced.values())
