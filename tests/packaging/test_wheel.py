"""The wheel: what is in it, and that it is safe to install. `.ci/release` runs this before a release."""

import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"pose": ROOT / "pose", "pose/configs": ROOT / "configs"} | {
    f"pose_{folder}": ROOT / folder / f"pose_{folder}" for folder in ("apps", "datasets", "detectors")
}
UV = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
pytestmark = [
    pytest.mark.slow,  # and needs the package index
    pytest.mark.skipif(UV is None, reason="needs uv: pip install uv"),
]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    if given := os.environ.get("POSE_TEST_WHEEL"):
        return Path(given)
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([UV, "build", "--quiet", "--out-dir", folder, ROOT], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(path).decode())


def test_wheel_packages_start_with_pose(names):
    tops = {name.partition("/")[0] for name in names}
    (information,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops - {information} == {"pose", "pose_apps", "pose_datasets", "pose_detectors"}
    assert information.startswith("pose_run-")


def test_wheel_contains_all_package_files_and_the_licence(names):
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    expected = {
        f"{place}/{path.relative_to(folder)}"
        for path in (ROOT / line for line in tracked.splitlines())
        for place, folder in SOURCES.items()
        if path.is_relative_to(folder)
    }
    information = {name for name in names if ".dist-info/" in name}
    assert names - information == expected
    assert {"pose/py.typed", "pose/configs/fast.yaml", "pose/results/poses.schema.json"} <= expected
    assert any(name.endswith("/licenses/LICENSE") for name in information)
    assert any(name.endswith("/entry_points.txt") for name in information)


def test_wheel_metadata_names_the_project_and_one_opencv(metadata):
    assert metadata["Name"] == "pose-run"
    assert metadata["License-Expression"] == "Apache-2.0"
    opencv = [line for line in metadata.get_all("Requires-Dist") if "opencv" in line]
    assert [line.partition(">")[0] for line in opencv] == ["opencv-python-headless"]
    assert not any("@" in line for line in metadata.get_all("Requires-Dist"))  # an index refuses addresses


class Environment:
    """An environment of its own, by uv."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)

    def pip(self, command, *words):
        subprocess.run([UV, "pip", command, "--quiet", "--python", self.folder, *words], check=True)

    def python(self, program):
        done = subprocess.run([self.folder / "bin" / "python", "-I", "-c", program], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def check_files(self, distribution):
        """Every file that the distribution installed is there as it was."""
        (record,) = self.folder.glob(f"lib/python*/site-packages/{distribution}-*.dist-info/RECORD")
        for name, digest, _ in csv.reader(record.read_text(encoding="utf-8").splitlines()):
            if digest:
                kind, _, value = digest.partition("=")
                found = hashlib.new(kind, (record.parents[1] / name).read_bytes()).digest()
                assert base64.urlsafe_b64encode(found).rstrip(b"=").decode() == value, name

    def check_ours(self, out):
        self.check_files("pose_run")
        subprocess.run(
            [self.folder / "bin" / "pose-run", "--demo", "--end", "0.5", "--out", out, "--quiet"], check=True
        )
        assert {path.name for path in out.iterdir()} >= {"poses.json", "poses.npz", "overlay.mp4"}

    def check_theirs(self):
        self.check_files("datasets")
        said = self.python("import datasets; print(datasets.Dataset.from_dict({'a': [1, 2]})[1], datasets.__file__)")
        assert said.startswith("{'a': 2}")
        assert "site-packages" in said


@pytest.mark.parametrize("ours_first", [True, False], ids=["ours-first", "theirs-first"])
def test_wheel_installs_beside_hugging_face_datasets(wheel, tmp_path, ours_first):
    """Both names used to be `datasets`: the second wheel overwrote the first."""
    environment = Environment(tmp_path / "env")
    for package in (wheel, "datasets") if ours_first else ("datasets", wheel):
        environment.pip("install", package)
    environment.check_theirs()
    environment.check_ours(tmp_path / "both")
    if ours_first:
        environment.pip("uninstall", "pose-run")
        environment.check_theirs()
        assert not list(environment.folder.glob("lib/python*/site-packages/pose*"))
    else:
        environment.pip("uninstall", "datasets")
        environment.check_ours(tmp_path / "alone")
