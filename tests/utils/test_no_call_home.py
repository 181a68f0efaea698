"""Nothing is sent anywhere and nothing about the machine is written down, by us or by what we run on."""

import os
import signal
import subprocess
import sys

import no_network
import pytest

pytestmark = pytest.mark.skipif(not no_network.SUPPORTED, reason="the filter is Linux's, on x86-64 and ARM")
COMMAND = "import sys; from pose_apps.{} import main; sys.exit(main())"


@pytest.fixture
def offline(tmp_path, weights_dir):
    """Run Python without any network, with an empty home; gives the finished process and what lies in the home."""

    def run(*arguments):
        home = tmp_path / "home"
        home.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
        environment = kept | {"HOME": str(home), "POSE_WEIGHTS_DIR": str(weights_dir)}
        command = [sys.executable, no_network.__file__, sys.executable, *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500)
        return done, [path for path in home.rglob("*") if path.is_file()]

    return run


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_seccomp_filter_kills_on_socket(offline, family):
    done, _ = offline("-c", f"import socket; print('before', flush=True); socket.socket(socket.{family})")
    assert (done.stdout, done.returncode) == ("before\n", -signal.SIGSYS)


def test_pose_run_opens_no_connection(offline, videos, tmp_path):
    done, written = offline("-c", COMMAND.format("run"), "--video", videos / "dance.mp4", "--end", 0.5, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "poses.json").is_file()
    assert written == []


@pytest.mark.slow
def test_live_demo_opens_no_connection(offline, videos):
    """Reports are sent some seconds after the start."""
    options = ("--headless", "--source", videos / "dance.mp4", "--loop", "--seconds", 20)
    done, written = offline("-c", COMMAND.format("webcam.command"), *options)
    assert done.returncode == 0, done.stderr
    assert written == []
