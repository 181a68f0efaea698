"""Weights out of a wheel: through the real package index, from a wheel put in place by hand, and without either."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pose.networks.weights import FetchError, Store, sha256_of
from pose.networks.weights.catalogue import MEDIAPIPE, WEIGHTS, WheelMember
from pose.networks.weights.download import WheelError, download_wheel
from pose.utils.written_files import RECORD

DETECTOR, LANDMARKS = WEIGHTS["blazepose-detector"], WEIGHTS["blazepose-landmark-full"]
IN_WHEEL = [
    weight for weight in WEIGHTS.values() if isinstance(weight.source, WheelMember) and weight.source.wheel == MEDIAPIPE
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The real wheel, fetched once through this machine's package index (1 to 2 s)."""
    try:
        return download_wheel(MEDIAPIPE, tmp_path_factory.mktemp("wheel"))
    except WheelError as error:
        pytest.skip(str(error))


@pytest.fixture
def store(tmp_path) -> Store:
    return Store((), tmp_path / "cache", WEIGHTS)


@pytest.fixture
def no_pip(monkeypatch):
    """An environment as uv makes it: pip cannot be imported, and no uv is on the path either."""
    monkeypatch.setattr("pose.networks.weights.download.PathFinder.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")


def test_package_index_serves_the_catalogued_wheel(wheel):
    assert (wheel.name, wheel.stat().st_size, sha256_of(wheel)) == (MEDIAPIPE.file, MEDIAPIPE.size, MEDIAPIPE.sha256)


@pytest.mark.usefixtures("wheel")  # the index is there
def test_default_weights_are_fetched_from_the_index(store):
    path = store.locate("blazepose-detector")
    assert (path.stat().st_size, sha256_of(path)) == (DETECTOR.size, DETECTOR.sha256)
    # One wheel, all its weights: the second needs no second download, and nothing else is kept.
    assert sorted(entry.name for entry in store.cache.iterdir()) == sorted(
        [RECORD, *(weight.file for weight in IN_WHEEL)]
    )
    assert store.find("blazepose-landmark-full") == store.cache / LANDMARKS.file


@pytest.mark.usefixtures("no_pip")
def test_manually_placed_wheel_is_used(store, wheel):
    store = replace(store, folders=(wheel.parent,))
    assert sha256_of(store.locate("blazepose-landmark-full")) == LANDMARKS.sha256


def test_a_damaged_wheel_is_named(store, tmp_path):
    (tmp_path / MEDIAPIPE.file).write_bytes(b"PK")
    store = replace(store, folders=(tmp_path,))
    with pytest.raises(FetchError, match="expected " + MEDIAPIPE.sha256) as caught:
        store.locate("blazepose-detector")
    assert str(tmp_path / MEDIAPIPE.file) in str(caught.value)


@pytest.mark.usefixtures("no_pip")
def test_without_pip_and_uv_the_error_names_the_wheel(store):
    with pytest.raises(FetchError, match="neither pip nor uv") as caught:
        store.locate("blazepose-detector")
    named = (DETECTOR.file, DETECTOR.sha256, MEDIAPIPE.file, MEDIAPIPE.sha256, str(store.cache), "POSE_WEIGHTS_DIR")
    assert all(part in str(caught.value) for part in named)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("no_pip")
def test_uv_is_used_without_pip(store, tmp_path, monkeypatch, wheel):
    """A stand-in for uv that lays out the wheel's content as `uv pip install --target` does."""
    folder = tmp_path / "bin"
    folder.mkdir()
    lines = [f"#!{sys.executable}", "import sys, zipfile", "target = sys.argv[sys.argv.index('--target') + 1]"]
    lines.append(f"assert sys.argv[-1] == {MEDIAPIPE.requirement!r}")
    members = [weight.source.member for weight in IN_WHEEL if isinstance(weight.source, WheelMember)]
    lines.append(f"zipfile.ZipFile({str(wheel)!r}).extractall(target, {members!r})")
    (folder / "uv").write_text("\n".join(lines))
    (folder / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    assert sha256_of(store.locate("blazepose-detector")) == DETECTOR.sha256


def test_index_without_the_wheel_gives_a_one_line_error(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distutils", ModuleType("distutils"))  # then setuptools' import hook for pip warns
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    (tmp_path / "pip.py").write_text("raise SystemExit('a module named pip in the working folder')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FetchError, match=r"No matching distribution found for mediapipe==0\.10\.21") as caught:
        store.locate("blazepose-detector")
    assert "\n" not in str(caught.value)
    assert list(store.cache.iterdir()) == []


def test_unreachable_index_is_named(store, monkeypatch):
    for name, value in {"CONFIG_FILE": os.devnull, "INDEX_URL": "http://127.0.0.1:9/", "RETRIES": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FetchError, match="the package index cannot be reached; check the network connection"):
        store.locate("blazepose-detector")
