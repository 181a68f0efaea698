"""Weights: found in the right place, checked, and fetched from a real server, wheel and index."""

import hashlib
import http.server
import io
import os
import socket
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pose.errors import UsageError
from pose.networks.weights import CorruptWeightError, FetchError, Store, UnverifiedWeightError, locate
from pose.networks.weights.catalogue import WEIGHTS, Download, ManualSource, Weight, WheelMember, ZipMember
from pose.networks.weights.packaged import packaged_weights
from pose.utils.written_files import RECORD

CONTENT = bytes(range(256)) * 4096  # 1 MiB, so that a transfer is cut in its middle


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


class Server(http.server.ThreadingHTTPServer):
    """Serves `body` at every path with Range, and misbehaves as told."""

    daemon_threads = False  # closing waits for requests in flight

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = CONTENT
        self.cuts: list[int] = []  # after how many bytes to break off, one entry a request
        self.ignores_range = False
        self.status = 200
        self.redirect = ""
        self.ranges: list[str | None] = []  # what was asked for

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/model.bin"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, asked = self.server, self.headers.get("Range")
        server.ranges.append(asked)
        if server.redirect:
            self.send_response(302)
            self.send_header("Location", server.redirect)
            self.end_headers()
            return
        if server.status != 200:
            self.send_error(server.status)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and not server.ignores_range else 0
        if start >= len(server.body):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.body) - 1}/{len(server.body)}")
        self.send_header("Content-Length", str(len(server.body) - start))
        self.end_headers()
        rest = server.body[start:]
        with suppress(IndexError):  # of several requests at a time one takes the last
            rest = rest[: server.cuts.pop(0)]
        self.wfile.write(rest)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def a_weight(source, content: bytes | None = CONTENT) -> Weight:
    digest = None if content is None else sha256(content)
    return Weight(name="model", file="model.bin", licence="MIT", sha256=digest, size=None, source=source)


def a_store(tmp_path: Path, weight: Weight, *folders: Path) -> Store:
    return Store(folders, tmp_path / "cache", {weight.name: weight}, schemes=("http",))


def visible(store: Store) -> list[str]:
    return sorted(path.name for path in store.cache.iterdir() if path.name != RECORD)


# The catalogue


def test_catalogue_matches_the_real_files(weights_dir):
    checked = [w for w in WEIGHTS.values() if (weights_dir / w.file).is_file()]
    assert len(checked) == 9
    for weight in checked:
        content = (weights_dir / weight.file).read_bytes()
        assert (len(content), sha256(content)) == (weight.size, weight.sha256), weight.name


def test_catalogue_entries_are_complete():
    assert len({w.file for w in WEIGHTS.values()}) == len(WEIGHTS)
    for weight in WEIGHTS.values():
        assert Path(weight.file).name == weight.file
        assert weight.licence
        assert weight.sha256 is None or len(bytes.fromhex(weight.sha256)) == 32
        if isinstance(weight.source, Download | ZipMember):
            assert weight.source.url.startswith("https://")
    default = [w for w in WEIGHTS.values() if w.default]
    assert [w.name for w in default] == [
        "blazepose-detector", "blazepose-landmark-full", "movenet-thunder", "movenet-thunder-graph",
        "rtmdet-nano-person-320",
    ]  # fmt: skip
    assert {w.licence for w in default} == {"Apache-2.0"}
    assert all(isinstance(WEIGHTS[w.fallback or w.name].source, WheelMember) for w in default)  # a mirror is enough


def test_packaged_weights_are_found_in_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr("pose.networks.weights.store.MODELS", tmp_path)
    path = tmp_path / "offline.safetensors"
    path.write_bytes(CONTENT)
    plain = packaged_weights(tmp_path)["offline"]
    assert (plain.size, plain.sha256, str(plain.source)) == (len(CONTENT), None, "in the package")
    assert Store((), tmp_path / "cache", {"offline": plain}).locate("offline") == path
    (tmp_path / "offline.json").write_text(f'{{"licence": "CC0", "sha256": "{sha256(b"other")}"}}')
    carded = packaged_weights(tmp_path)["offline"]
    assert carded.licence == "CC0"
    with pytest.raises(CorruptWeightError):
        Store((), tmp_path / "cache", {"offline": carded}).locate("offline")


# Finding


def test_weight_folders_are_searched_in_order(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setenv("POSE_WEIGHTS_DIR", os.pathsep.join([str(tmp_path / "absent"), str(first), "", str(second)]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store = replace(Store.from_environment(), catalogue={"model": a_weight(ManualSource("nowhere"))})
    assert store.cache == tmp_path / "pose-run" / "weights"
    assert store.find("model") is None
    for folder in (store.cache, second, first):
        folder.mkdir(parents=True)
        (folder / "model.bin").write_bytes(CONTENT)
        assert store.locate("model") == folder / "model.bin"


def test_weights_in_the_old_cache_folder_are_found(tmp_path, monkeypatch):
    monkeypatch.delenv("POSE_WEIGHTS_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Store.from_environment().folders == ()
    old = tmp_path / "pose-pipeline" / "weights"
    old.mkdir(parents=True)
    (old / "model.bin").write_bytes(CONTENT)
    store = replace(Store.from_environment(), catalogue={"model": a_weight(ManualSource("nowhere"))})
    assert store.cache == tmp_path / "pose-run" / "weights"
    assert store.locate("model") == old / "model.bin"


def test_damaged_file_is_an_error_despite_a_later_good_one(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder, content in ((good, CONTENT), (bad, CONTENT[:-1])):
        folder.mkdir()
        (folder / "model.bin").write_bytes(content)
    store = a_store(tmp_path, a_weight(ManualSource("nowhere")), bad, good)
    with pytest.raises(CorruptWeightError, match="is damaged") as caught:
        store.locate("model")
    assert str(bad / "model.bin") in str(caught.value)
    assert sha256(CONTENT) in str(caught.value)
    with pytest.raises(CorruptWeightError):
        store.fetch("model")
    status = store.status("model")
    assert (status.state, status.path, status.problem) == ("corrupt", bad / "model.bin", str(caught.value))


def test_an_unknown_name_is_a_usage_error_with_a_hint():
    with pytest.raises(UsageError, match=r"did you mean 'blazepose-detector'"):
        locate("blazepose-detektor")


def test_weight_without_url_names_its_folder(tmp_path):
    store = a_store(tmp_path, a_weight(ManualSource("an export")))
    with pytest.raises(FetchError, match="an export") as caught:
        store.locate("model")
    assert all(
        part in str(caught.value) for part in ("model.bin", sha256(CONTENT), str(store.cache), "POSE_WEIGHTS_DIR")
    )
    assert "\n" not in str(caught.value)


# Downloads


def test_download_puts_the_file_into_the_cache_silently_when_not_on_a_terminal(tmp_path, server, capfd):
    store = a_store(tmp_path, a_weight(Download(server.url)))
    path = store.locate("model")
    assert path.read_bytes() == CONTENT
    assert visible(store) == ["model.bin"]
    assert store.locate("model") == path
    assert server.ranges == [None]
    assert capfd.readouterr() == ("", "")


def test_interrupted_download_is_resumed(tmp_path, server):
    server.cuts = [300_000, 200_000]
    store = a_store(tmp_path, a_weight(Download(server.url)))
    assert store.locate("model").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-", "bytes=500000-"]


def test_failed_download_is_resumed_in_the_next_run(tmp_path, server):
    server.cuts = [300_000, 0]
    store = a_store(tmp_path, a_weight(Download(server.url)))
    with pytest.raises(FetchError, match="closed early"):
        store.locate("model")
    assert store.find("model") is None
    assert store.locate("model").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-", "bytes=300000-"]
    assert visible(store) == ["model.bin"]


def test_only_own_partial_downloads_are_removed(tmp_path, server):
    store = a_store(tmp_path, a_weight(Download(server.url)))
    store.cache.mkdir(parents=True)
    ours = f".model.bin-{'0a' * 4}.part-{'0f' * 16}"
    for name in (ours, ".thesis.part-1", ".fetch-notes", ".model.bin.part-old"):
        (store.cache / name).write_text("x")
        os.utime(store.cache / name, (0, 0))
    store._remove_partial()
    assert sorted(path.name for path in store.cache.iterdir()) == [
        ".fetch-notes",
        ".model.bin.part-old",
        ".thesis.part-1",
    ]


@pytest.mark.parametrize("left", [b"something else", CONTENT + b"more"], ids=["other bytes", "too long"])
def test_invalid_partial_download_is_restarted(tmp_path, server, left):
    server.cuts = [1000, 0]
    store = a_store(tmp_path, a_weight(Download(server.url)))
    with pytest.raises(FetchError):
        store.locate("model")
    [partial] = store.cache.iterdir()
    partial.write_bytes(left)
    assert store.locate("model").read_bytes() == CONTENT
    assert visible(store) == ["model.bin"]


def test_server_without_range_restarts_the_download(tmp_path, server):
    server.cuts = [300_000]
    server.ignores_range = True
    store = a_store(tmp_path, a_weight(Download(server.url)))
    assert store.locate("model").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-"]


def test_wrong_content_is_rejected(tmp_path, server):
    server.body = CONTENT[::-1]
    store = a_store(tmp_path, a_weight(Download(server.url)))
    with pytest.raises(FetchError, match=sha256(CONTENT[::-1])):
        store.locate("model")
    assert visible(store) == []


def test_a_damaged_file_in_the_cache_is_replaced_by_fetch_only(tmp_path, server):
    store = a_store(tmp_path, a_weight(Download(server.url)))
    store.cache.mkdir()
    (store.cache / "model.bin").write_bytes(b"damaged")
    with pytest.raises(CorruptWeightError, match="pose-weights fetch model"):
        store.locate("model")
    for _ in range(2):
        assert store.fetch("model").read_bytes() == CONTENT
    assert (store.cache / "model.bin.kept").read_bytes() == b"damaged"  # who knows what it is


def test_unrelated_files_in_the_cache_are_kept(tmp_path):
    store = a_store(tmp_path, a_weight(Download("https://example.org/model.bin")))
    store.cache.mkdir()
    with store.scratch() as scratch:
        (scratch / "model.bin").write_text("half")
        (scratch / "thesis.txt").write_text("years")
    assert [path.name for path in scratch.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("problem", ["refused", "404", "scheme", "redirect"])
def test_a_failed_fetch_is_one_line_with_file_hash_and_folder(tmp_path, server, problem):
    url, reason = server.url, {"scheme": "only https", "redirect": "only http", "404": "404"}.get(problem, "refused")
    server.status = 404 if problem == "404" else 200
    server.redirect = "ftp://127.0.0.1/model.bin" if problem == "redirect" else ""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and no other program gets the port meanwhile
        if problem == "refused":
            url = f"http://127.0.0.1:{closed.getsockname()[1]}/model.bin"
        store = a_store(tmp_path, a_weight(Download(url)))
        if problem == "scheme":
            store = replace(store, schemes=("https",))
        with pytest.raises(FetchError, match=reason) as caught:
            store.locate("model")
    message = str(caught.value)
    assert all(part in message for part in ("model.bin", sha256(CONTENT), str(store.cache), "POSE_WEIGHTS_DIR"))
    assert "\n" not in message
    assert len(server.ranges) == (1 if problem in ("404", "redirect") else 0)


def test_a_cache_that_cannot_be_written_is_named(tmp_path, server):
    (tmp_path / "cache").write_text("a file where the folder should be")
    store = a_store(tmp_path, a_weight(Download(server.url)))
    with pytest.raises(FetchError, match="cannot be written") as caught:
        store.locate("model")
    assert str(store.cache) in str(caught.value)


def test_concurrent_fetches_are_independent(tmp_path, server):
    server.cuts = [100_000, 200_000, 300_000]
    store = a_store(tmp_path, a_weight(Download(server.url)))
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: store.locate("model"), range(8)))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert visible(store) == ["model.bin"]


def test_a_zip_member_is_taken_by_its_name(tmp_path, server):
    server.body = zipped({"2023/onnx/end2end.onnx": CONTENT, "2023/onnx/notend2end.onnx": b"", "../evil": b""})
    server.cuts = [300_000]
    store = a_store(tmp_path, a_weight(ZipMember(server.url, "end2end.onnx")))
    assert store.locate("model").read_bytes() == CONTENT
    assert visible(store) == ["model.bin"]
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (zipped({"a/m.onnx": CONTENT, "b/m.onnx": CONTENT}), "contains 2 files"),
        (zipped({"other": CONTENT}), "contains 0 files"),
        (zipped({"m.onnx": b"x" * 1000}), "sha256"),
        (b"PK no zip at all", "damaged"),
    ],
    ids=["ambiguous", "absent", "other content", "damaged"],
)
def test_a_zip_without_the_one_right_member_is_refused(tmp_path, server, body, reason):
    server.body = body
    store = a_store(tmp_path, a_weight(ZipMember(server.url, "m.onnx")))
    with pytest.raises(FetchError, match=reason):
        store.locate("model")
    assert visible(store) == []


# Weights without a published hash


def test_unverified_weight_needs_consent_and_keeps_its_hash(tmp_path, server):
    store = a_store(tmp_path, a_weight(Download(server.url), content=None))
    with pytest.raises(UnverifiedWeightError, match="--allow-unverified"):
        store.locate("model")
    assert server.ranges == []
    path = store.fetch("model", allow_unverified=True)
    assert store.locate("model") == path
    assert (store.cache / "model.bin.sha256").read_text() == f"{sha256(CONTENT)}  model.bin\n"
    path.write_bytes(b"changed later")
    with pytest.raises(CorruptWeightError):
        store.locate("model", allow_unverified=True)


def test_an_unverified_file_put_there_by_hand_needs_its_hash_beside_it(tmp_path):
    store = a_store(tmp_path, a_weight(ManualSource("nowhere"), content=None), tmp_path)
    path = tmp_path / "model.bin"
    path.write_bytes(CONTENT)
    with pytest.raises(UnverifiedWeightError, match=r"sha256sum model\.bin"):
        store.locate("model")
    assert (store.status("model").state, store.status("model").path) == ("unverified", path)
    assert store.locate("model", allow_unverified=True) == path
    (tmp_path / "model.bin.sha256").write_text(f"{sha256(CONTENT)} *model.bin\n")
    assert store.locate("model") == path
