"""Weights in bundles and out of wheels."""

import json
import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pose.errors import PoseError, UsageError
from pose.networks.weights import FetchError, Store, UnverifiedWeightError, sha256_of
from pose.networks.weights.bundle import BundleError, install_bundle, write_bundle
from pose.networks.weights.catalogue import MEDIAPIPE, WEIGHTS, InPackage, ManualSource, Weight, WheelMember
from pose.networks.weights.download import WheelError, download_wheel
from pose.utils.written_files import RECORD


def a_weight(name: str, sha256: str | None) -> Weight:
    return Weight(
        name=name, file=f"{name}.bin", licence="MIT", sha256=sha256, size=None, source=ManualSource("nowhere")
    )


@pytest.fixture
def full(tmp_path) -> Store:
    """A machine with two weights in its cache."""
    cache = tmp_path / "full"
    cache.mkdir()
    catalogue = {}
    for name in ("a", "b"):
        (cache / f"{name}.bin").write_bytes(name.encode() * 1000)
        catalogue[name] = a_weight(name, sha256_of(cache / f"{name}.bin"))
    return Store((), cache, catalogue)


@pytest.fixture
def empty(tmp_path, full) -> Store:
    """The machine without network."""
    return Store((), tmp_path / "inner" / "empty", full.catalogue)


def rewrite(bundle: Path, **changes: str | bytes | None) -> None:
    """Replace, add or (None) drop members."""
    with zipfile.ZipFile(bundle) as archive:
        members: dict[str, str | bytes | None] = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(bundle, "w") as archive:
        for name, content in (members | changes).items():
            if content is not None:
                archive.writestr(name, content)


def test_bundle_round_trips(full, empty, tmp_path):
    assert [weight.name for weight in write_bundle(full, ["b", "a"], tmp_path / "w.zip")] == ["a", "b"]
    assert [weight.name for weight in install_bundle(empty, tmp_path / "w.zip")] == ["a", "b"]
    assert empty.locate("a").read_bytes() == full.locate("a").read_bytes()
    assert sorted(path.name for path in empty.cache.iterdir()) == [RECORD, "a.bin", "b.bin"]


def test_bundle_lists_its_contents(full, tmp_path):
    write_bundle(full, ["a"], tmp_path / "w.zip")
    with zipfile.ZipFile(tmp_path / "w.zip") as archive:
        [entry] = json.loads(archive.read("manifest.json"))["weights"]
    assert entry == {"name": "a", "file": "a.bin", "licence": "MIT", "sha256": sha256_of(full.cache / "a.bin")}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"../evil.bin": b"x"}, r"\.\./evil\.bin"),
        ({"/etc/evil": b"x"}, "/etc/evil"),
        ({"a.bin": None}, r"a\.bin"),
        ({"a.bin": b"other"}, "expected [0-9a-f]{64}"),
        ({"manifest.json": None}, "no manifest"),
        ({"manifest.json": "["}, "not of the form"),
        ({"manifest.json": '{"format": "pose-weights-bundle/2", "weights": []}'}, "not of the form"),
        (
            {
                "manifest.json": '{"format": "pose-weights-bundle/1", "weights": [{"name": "../evil", "sha256": ""}]}',
                "../evil.bin": b"x",
            },
            "this version does not know",
        ),
    ],
)
def test_bundle_with_other_content_is_rejected(full, empty, tmp_path, changes, reason):
    bundle = tmp_path / "w.zip"
    write_bundle(full, ["a", "b"], bundle)
    rewrite(bundle, **changes)
    before = sorted(path for path in tmp_path.rglob("*") if "empty" not in path.parts)
    with pytest.raises(BundleError, match=reason) as caught:
        install_bundle(empty, bundle)
    assert str(bundle) in str(caught.value)
    assert not empty.cache.exists() or list(empty.cache.iterdir()) == []
    assert before == [p for p in sorted(tmp_path.rglob("*")) if p not in (empty.cache, empty.cache.parent)]


def test_a_cut_bundle_is_refused(full, empty, tmp_path):
    bundle = tmp_path / "w.zip"
    write_bundle(full, ["a"], bundle)
    bundle.write_bytes(bundle.read_bytes()[:-30])
    with pytest.raises(BundleError, match=str(bundle)):
        install_bundle(empty, bundle)


def test_an_unverified_weight_keeps_its_hash_through_a_bundle(full, empty, tmp_path):
    weight = a_weight("u", None)
    full, empty = (Store((), store.cache, {"u": weight}) for store in (full, empty))
    (full.cache / "u.bin").write_bytes(b"content")
    write_bundle(full, ["u"], tmp_path / "w.zip", allow_unverified=True)
    with pytest.raises(UnverifiedWeightError, match="--allow-unverified"):
        install_bundle(empty, tmp_path / "w.zip")
    install_bundle(empty, tmp_path / "w.zip", allow_unverified=True)
    assert empty.locate("u").read_bytes() == b"content"


def test_unbundlable_weights_are_reported(full, tmp_path):
    ours = Weight(name="ours", file="ours", licence="", sha256=None, size=None, source=InPackage())
    with pytest.raises(UsageError, match="is included in the package"):
        write_bundle(Store((), full.cache, {"ours": ours}), ["ours"], tmp_path / "w.zip")
    with pytest.raises(PoseError, match=r"w\.zip: No such file"):
        write_bundle(full, ["a"], tmp_path / "absent" / "w.zip")
    with pytest.raises(UsageError, match="no such file"):
        install_bundle(full, tmp_path / "absent.zip")


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
