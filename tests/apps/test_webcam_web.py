"""`pose-webcam --web`, as a user calls it."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from pose_apps.support.interrupts import interrupt_on_hangup
from pose_apps.webcam.command import main
from pose_apps.webcam.web import run_until_signal

TOKEN = "correct-horse-battery-staple"


def free_port() -> int:
    """A port that the system gives to no other program before the server has it: ports for 0 are above 32767.

    Where two suites run at a time, each begins to look elsewhere.
    """
    for port in range(21_000 + os.getpid() % 10_000, 32_768):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise AssertionError("every port is taken")


@pytest.fixture
def start(command_line, weights_dir, tmp_path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts `pose-webcam --web` with temporary files in `tmp_path`; whatever happens, it does not outlive the test."""
    with ExitStack() as stack:

        def begin(*arguments: object, **environment: str) -> subprocess.Popen:
            server = subprocess.Popen(
                command_line("webcam", "--web", *arguments),
                env={**os.environ, "POSE_WEIGHTS_DIR": str(weights_dir), "TMPDIR": str(tmp_path), **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(server)
            stack.callback(server.kill)
            return server

        yield begin


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--host", "0.0.0.0"), "error: --host 0.0.0.0 accepts connections from other computers, so --token or"),
        (("--token", "short"), "error: --token: has 5 characters; minimum: 16"),
        (("--cert", "nothing.pem", "--key", "nothing.pem"), "error: --cert nothing.pem: no such file"),
        (("--clients", "0"), "error: --clients: 0 is out of range; allowed: 1 to 64"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(arguments, line, capsys):
    assert main(["--web", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(line)
    assert said.err.count("\n") == 1


def test_missing_aiohttp_is_reported_before_networks_are_loaded(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "aiohttp", None)  # from here on `import aiohttp` is a ModuleNotFoundError
    monkeypatch.setattr("pose_apps.webcam.live_outputs.load_pipeline", None)
    assert main(["--web"]) == 1
    line = 'error: pose-webcam --web needs aiohttp: pip install "pose-run[web]"\n'
    assert capsys.readouterr() == ("", line)


@pytest.mark.usefixtures("usual_signals")
def test_web_server_runs_until_interrupted(start, tmp_path):
    port = free_port()
    server = start("--port", port)
    address = f"http://127.0.0.1:{port}/"
    assert f"open {address} in a browser" in server.stdout.readline()
    with urllib.request.urlopen(address, timeout=100) as answer:
        assert b"<title>pose-webcam</title>" in answer.read()
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=200)
    assert server.returncode == 130
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []  # a recording's folder is created when recording starts


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_end_the_server_after_its_cleanup(name):
    """Whatever it does in `finally`, such as finishing recordings, is done."""
    if not hasattr(signal, name):
        pytest.skip(f"no {name} on this system")
    steps = []

    async def server():
        try:
            os.kill(os.getpid(), getattr(signal, name))
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("finished")

    def serve():
        interrupt_on_hangup()
        asyncio.run(run_until_signal(server()))

    if name == "SIGINT":
        with pytest.raises(KeyboardInterrupt):
            serve()
    else:
        serve()
    assert steps == ["finished"]


@pytest.mark.slow
def test_token_from_the_environment_is_used_and_not_printed(start):
    server = start("--host", "0.0.0.0", "--port", 0, POSE_WEB_TOKEN=TOKEN)
    output = server.stdout.readline()
    assert re.match(r"open http://\S+:\d+/ in a browser", output)
    server.terminate()
    _, errors = server.communicate(timeout=200)
    assert server.returncode == 0
    assert TOKEN not in output + errors
    assert errors.startswith("warning: browsers on other computers allow their camera only over https")
