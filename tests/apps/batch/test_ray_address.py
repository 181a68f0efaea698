"""A wrong `--address` is one line within seconds: Ray itself tries for minutes."""

import socket
import threading
from contextlib import suppress

import pytest
from pose_apps.batch import ray_engine

from pose.errors import PoseError, UsageError


@pytest.fixture
def server(monkeypatch):
    """Starts a server that sends `answer` to its first client; returns its address."""
    monkeypatch.setattr(ray_engine, "CONNECT_SECONDS", 0.5)
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    listening = socket.create_server(("127.0.0.1", 0))
    threads = []

    def start(answer: bytes | None) -> str:
        def serve():
            connection, _ = listening.accept()
            with connection, suppress(ConnectionError):
                if answer is not None:
                    connection.sendall(answer)
                while connection.recv(1000):
                    pass

        threads.append(threading.Thread(target=serve))
        threads[0].start()
        return f"127.0.0.1:{listening.getsockname()[1]}"

    yield start
    for thread in threads:
        thread.join()
    listening.close()


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9\r\n"])
def test_server_that_is_not_ray_is_rejected(server, answer):
    address = server(answer)
    with pytest.raises(PoseError, match=f"no Ray cluster answers at {address} "):
        ray_engine._check_answers(address)


def test_http2_server_passes_as_ray(server):
    assert ray_engine._check_answers(server(bytes([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]))) is None


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:99999", "host:1x", "host:²"])
def test_invalid_ray_address_is_a_usage_error(address):
    with pytest.raises(UsageError, match="expected HOST:PORT or auto"):
        ray_engine._check_answers(address)


def test_closed_port_gives_a_one_line_error():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(PoseError, match="no Ray cluster answers"):
            ray_engine._check_answers(f"127.0.0.1:{closed.getsockname()[1]}")
