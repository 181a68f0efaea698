"""Bundles: the same bytes every time, installed only as the catalogue says."""

import json
import zipfile
from pathlib import Path

import pytest

from pose.errors import PoseError, UsageError
from pose.networks.weights import Store, UnverifiedWeightError, sha256_of
from pose.networks.weights.bundle import BundleError, install_bundle, write_bundle
from pose.networks.weights.catalogue import InPackage, ManualSource, Weight
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
