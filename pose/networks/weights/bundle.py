"""Archives of weights for offline machines: a reproducible zip of files and a manifest."""

import json
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from pose.errors import PoseError, UsageError
from pose.networks.weights.archive import ArchiveError, extract_member
from pose.networks.weights.catalogue import InPackage, Weight
from pose.networks.weights.store import Store, UnverifiedWeightError, sha256_of
from pose.utils.archives import open_archive
from pose.utils.whole_file import whole_file

_MANIFEST = "manifest.json"
_FORMAT = "pose-weights-bundle/1"
_MAX_MANIFEST_BYTES = 1 << 20


class BundleError(PoseError):
    """A file is not a valid bundle of weights."""


def write_bundle(store: Store, names: Sequence[str], out: Path, *, allow_unverified: bool = False) -> list[Weight]:
    """Write weights, downloaded if missing, into one archive; UsageError for unknown or packaged ones."""
    weights = [store.weight(name) for name in sorted(set(names))]
    for weight in weights:
        if isinstance(weight.source, InPackage):
            raise UsageError(f"{weight.name} is included in the package and need not be bundled")
    paths = [store.locate(weight.name, allow_unverified=allow_unverified) for weight in weights]
    entries = [
        {"name": w.name, "file": w.file, "licence": w.licence, "sha256": w.sha256 or sha256_of(path)}
        for w, path in zip(weights, paths, strict=True)
    ]
    manifest = json.dumps({"format": _FORMAT, "weights": entries}, indent=2) + "\n"
    _write(out, manifest, paths)
    return weights


def install_bundle(store: Store, bundle: Path, *, allow_unverified: bool = False) -> list[Weight]:
    """Copy the weights of a bundle to the cache, and return their catalogue entries.

    Names and hashes are taken from the local catalogue. The manifest supplies a hash only for weights without one.

    Raises:
        BundleError: If the archive contains an unknown file, or a file with the wrong hash. Nothing is then installed.
        UnverifiedWeightError: If a weight has no published hash and `allow_unverified` is False.
    """
    if not bundle.is_file():
        raise UsageError(f"{bundle}: no such file")
    try:
        entries = _entries(store, bundle)
        for weight, _ in entries:
            if weight.sha256 is None and not allow_unverified:
                raise UnverifiedWeightError(
                    f"{bundle}: {weight.file} has no published hash to check it against; add --allow-unverified"
                )
        store.cache.mkdir(parents=True, exist_ok=True)
        with store.scratch() as scratch:
            for weight, sha256 in entries:
                extract_member(bundle, weight.file, scratch / weight.file)
                if (actual := sha256_of(scratch / weight.file)) != sha256:
                    raise BundleError(f"{bundle}: {weight.file} has sha256 {actual}, expected {sha256}")
            for weight, _ in entries:
                store.install(weight, scratch / weight.file)
    except ArchiveError as error:
        raise BundleError(str(error)) from error
    except OSError as error:
        raise BundleError(f"{error.filename or store.cache}: {error.strerror}") from error
    return [weight for weight, _ in entries]


def _write(out: Path, manifest: str, paths: Sequence[Path]) -> None:
    with whole_file(out) as hidden, zipfile.ZipFile(hidden, "w") as archive:
        archive.writestr(_member(_MANIFEST), manifest)
        for path in paths:
            with path.open("rb") as source, archive.open(_member(path.name), "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target, 1 << 20)


def _member(name: str) -> zipfile.ZipInfo:
    """Return a zip entry whose header depends on its name only, so that equal weights give equal bundles."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # Unix, on every system
    info.external_attr = 0o644 << 16
    return info


def _entries(store: Store, bundle: Path) -> list[tuple[Weight, str]]:
    """Return the catalogue entry and the required hash of each weight in the bundle."""
    try:
        with open_archive(bundle) as archive:
            members = archive.names
            if _MANIFEST not in members or archive.size(_MANIFEST) > _MAX_MANIFEST_BYTES:
                raise BundleError(f"{bundle} is not a bundle of weights: it has no {_MANIFEST}")
            manifest = _parse(archive.read(_MANIFEST))
    except BundleError:
        raise
    except PoseError as error:
        raise BundleError(str(error)) from error
    if manifest is None:
        raise BundleError(f"{bundle}: its {_MANIFEST} is not of the form {_FORMAT}")
    entries = []
    for name, sha256 in manifest:
        weight = store.catalogue.get(name)
        if weight is None:
            raise BundleError(f"{bundle} contains the weights {name!r}, which this version does not know")
        entries.append((weight, weight.sha256 or sha256))
    expected = [_MANIFEST, *(weight.file for weight, _ in entries)]
    if sorted(members) != sorted(expected):
        unexpected = sorted(set(members) ^ set(expected)) or ["a file twice"]
        raise BundleError(f"{bundle} does not match its manifest: {', '.join(unexpected)}")
    return entries


def _parse(text: bytes) -> list[tuple[str, str]] | None:
    try:
        content = json.loads(text)
        if content["format"] != _FORMAT:
            return None
        return [(str(entry["name"]), str(entry["sha256"])) for entry in content["weights"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
