"""`pose-batch --engine ray` on a Ray of two nodes on this machine: a worker is killed, a node goes, nothing is lost."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from batch_results import lines_of, results_of
from short_clips import beginning

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
CLIPS = 5


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes with a processor each."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")  # a busy machine needs more than the usual 60
    pytest.importorskip("ray", reason="no ray here: pip install 'pose-run[ray]'")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.second = made.add_node(num_cpus=1)
    yield made
    made.shutdown()


@pytest.fixture
def clips(videos, tmp_path) -> Path:
    for number in range(CLIPS):
        beginning(videos / "dance.mp4", tmp_path / "in" / f"{number}.mp4", 1.0 + number / 10)
    return tmp_path / "in"


@pytest.fixture
def batch(command_line, weights_dir, clips, tmp_path):
    """Starts pose-batch with its results in a folder of that name."""

    def start(name: str, *arguments: object) -> subprocess.Popen:
        words = command_line("batch", clips, "--out", tmp_path / name, "--formats", "json,npz")
        environment = {**os.environ, "POSE_WEIGHTS_DIR": str(weights_dir)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*words, *map(str, arguments)], env=environment, **pipes)

    return start


def ended_well(process: subprocess.Popen) -> None:
    printed, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors + printed


def actors() -> list[int]:
    """Processes in which a clip is being worked on."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::ClipActor.process"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def waited_for(condition):
    deadline = time.monotonic() + 200
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


@pytest.mark.parametrize("loss", ["nothing", "a worker", "a node"])
def test_ray_batch_survives_the_loss_of_a_worker_or_node(loss, cluster, batch, tmp_path):
    process = batch("out", "--engine", "ray", "--address", cluster.address, "--workers", 2)
    if loss != "nothing":
        waited_for(lambda: (tmp_path / "out" / "manifest.jsonl").exists())  # one clip is finished
        busy = waited_for(actors)
        if loss == "a worker":
            os.kill(busy[0], signal.SIGKILL)
        else:
            cluster.remove_node(cluster.second, allow_graceful=False)
    ended_well(process)
    lines = lines_of(tmp_path / "out")
    assert sorted(lines) == [str(number) for number in range(CLIPS)]
    assert {line["status"] for line in lines.values()} == {"ok"}
    again = sum(line["attempts"] - 1 for line in lines.values())
    assert again == 0 if loss == "nothing" else again <= 1, lines
    ended_well(batch("local"))
    assert results_of(tmp_path / "out") == results_of(tmp_path / "local")


def test_ray_runs_on_the_local_machine(batch, tmp_path):
    pytest.importorskip("ray", reason="no ray here: pip install 'pose-run[ray]'")
    ended_well(batch("out", "--engine", "ray", "--workers", 1))
    assert len(lines_of(tmp_path / "out")) == CLIPS


def test_missing_ray_names_the_extra_to_install(batch, tmp_path):
    import importlib.util

    if importlib.util.find_spec("ray") is not None:
        pytest.skip("ray is here")
    process = batch("out", "--engine", "ray")
    assert process.communicate(timeout=100)[1] == 'error: --engine ray needs ray: pip install "pose-run[ray]"\n'
    assert process.returncode == 1
