"""A run with a cache gives what a run without gives, and computes only what it must."""

from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from pose_apps.run import main
from pose_fakes import random_result
from short_clips import beginning

from pose.config import PipelineConfig
from pose.lifting.backends import OnnxGraph
from pose.networks.litert import LiteRTModel
from pose.networks.onnx import OnnxNetwork
from pose.pipeline import Pipeline
from pose.registry import ESTIMATORS
from pose.results import load_poses
from pose.results.cache import Cache
from pose.results.cache.keys import FILE_SETTINGS, LIFTING_SETTINGS, people_key, poses_key
from pose.results.cache.run import CachedRun
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import BLAZEPOSE33
from pose.structures.types import People, Poses3D
from pose.video import open_source

pytestmark = pytest.mark.usefixtures("at_hand")


class Opened:
    """Counts the networks that runtimes open, by kind."""

    def __init__(self, monkeypatch) -> None:
        self.files: list[str] = []
        for kind in (OnnxNetwork, LiteRTModel, OnnxGraph):
            monkeypatch.setattr(kind, "__init__", self._noted(kind.__init__))

    def _noted(self, opens):
        def init(network, path, *arguments, **options):
            self.files.append(Path(path).name)
            opens(network, path, *arguments, **options)

        return init


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run(dance, out, lifter, *more):
    call = ["--video", dance, "--out", str(out), "--end", "0.2", "--lifter", str(lifter), "--verbose"]
    assert main([*call, "--formats", "json,npz", *map(str, more)]) == 0
    return files(out)


def test_cached_run_writes_equal_files_without_recomputing(dance, tmp_path, tiny_lifter, monkeypatch, capsys):
    plain = run(dance, tmp_path / "plain", tiny_lifter)
    cached = ("--cache", tmp_path / "cache")
    assert run(dance, tmp_path / "first", tiny_lifter, *cached) == plain
    assert "from the cache" not in capsys.readouterr().out
    with monkeypatch.context() as nothing_runs:
        for stage in ("tracked", "lift", "lift_end"):
            nothing_runs.setattr(f"pose.session.Session.{stage}", lambda *_: pytest.fail("computed again"))
        assert run(dance, tmp_path / "second", tiny_lifter, *cached) == plain
        assert "2D and 3D: read from the cache" in capsys.readouterr().out
    without_repair = run(dance, tmp_path / "plain2", tiny_lifter, "--no-repair", "--no-constant-bones")
    with monkeypatch.context() as no_2d:
        no_2d.setattr("pose.session.Session.tracked", lambda *_: pytest.fail("computed again"))
        changed = run(dance, tmp_path / "third", tiny_lifter, "--no-repair", "--no-constant-bones", *cached)
    assert changed == without_repair != plain
    assert "2D: read from the cache" in capsys.readouterr().out


def test_aborted_run_leaves_no_cache_entry(dance, tmp_path):
    pipeline = Pipeline(PipelineConfig(lifter="stream"))  # which answers at once
    with Cache(tmp_path) as cache, open_source(dance, end=0.5) as source:
        results = CachedRun(pipeline, source, cache).results()
        next(results)
        results.close()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def pipelines(weights_dir, tiny_lifter):
    """A pipeline whose settings can be changed as if it had been made with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
        pipeline = Pipeline(PipelineConfig(lifter=str(tiny_lifter)))

        def changed(**settings):
            pipeline.config = replace(original, **settings)
            return pipeline

        original = pipeline.config
        yield changed


def test_only_settings_that_change_the_2d_change_its_key(pipelines, dance):
    with open_source(dance, end=1.0) as source, open_source(dance, start=0.5) as other:
        key = people_key(pipelines(), source)
        assert people_key(pipelines(), other) != key
        for settings in ({"max_people": 3}, {"threads": 1}, {"detect_every": 1.0}, {"tracker": "bytetrack"}):
            assert people_key(pipelines(**settings), source) != key, settings
        for settings in ({"repair": False}, {"constant_bones": False}, {"fit": False}, {"lifter": "offline"}):
            assert people_key(pipelines(**settings), source) == key, settings
            assert poses_key(pipelines(**settings), source, key) != poses_key(pipelines(), source, key), settings


def test_cache_key_depends_on_video_content_not_path(pipelines, dance, tmp_path):
    copy = tmp_path / "copy.mp4"
    copy.write_bytes(Path(dance).read_bytes())
    with open_source(dance) as source, open_source(str(copy)) as copied:
        assert people_key(pipelines(), source) == people_key(pipelines(), copied)
    with copy.open("ab") as file:
        file.write(b"\0\0\0\x08free")
    with open_source(dance) as source, open_source(str(copy)) as changed:
        assert people_key(pipelines(), source) != people_key(pipelines(), changed)


def test_settings_excluded_from_cache_keys_exist():
    assert {entry.name for entry in fields(PipelineConfig)} >= LIFTING_SETTINGS | FILE_SETTINGS


@pytest.mark.parametrize("memory", [0, 2000, 1 << 20])
def test_a_store_of_frames_holds_every_field_bit_for_bit(rng, tmp_path, memory):
    results = [random_result(rng, index, people) for index, people in enumerate((2, 0, 3))]
    results[2] = replace(results[2], people=replace(results[2].people, untracked=4))
    store = ResultStore(tmp_path, BLAZEPOSE33, memory)
    for result in results:
        store.write(result)
    with closing(store):
        for result, read in zip(results, store, strict=True):
            for part, kind in (("people", People), ("poses", Poses3D)):
                for entry in fields(kind):
                    want, got = (getattr(getattr(one, part), entry.name) for one in (result, read))
                    np.testing.assert_array_equal(got, want, err_msg=entry.name)
                    if isinstance(want, np.ndarray):
                        assert got.dtype == want.dtype
                        assert got.flags.c_contiguous


def test_warnings_of_a_cached_video_name_the_video(dance, tmp_path, tiny_lifter, capsys):
    """The same damaged content under two names."""
    whole, names = tmp_path / "whole.mp4", ("one.mp4", "two.mp4")
    beginning(Path(dance), whole, 1, front=True)
    data = whole.read_bytes()
    for name in names:
        (tmp_path / name).write_bytes(data[: len(data) * 2 // 3])
        call = ["--video", str(tmp_path / name), "--formats", "npz", "--out", str(tmp_path / f"{name}-out")]
        assert main([*call, "--lifter", str(tiny_lifter), "--cache", str(tmp_path / "cache"), "--verbose"]) == 1
        said = capsys.readouterr()
        assert str(tmp_path / name) in said.err.splitlines()[-1]
    assert "from the cache" in said.out
    assert len(load_poses(tmp_path / "one.mp4-out" / "poses.npz")) == len(
        load_poses(tmp_path / "two.mp4-out" / "poses.npz")
    )


def test_networks_are_loaded_only_for_what_must_be_computed(dance, tmp_path, monkeypatch):
    """The shipped lifter, which runs in ONNX Runtime; 2D in LiteRT."""
    cached, opened = ("--cache", tmp_path / "cache"), Opened(monkeypatch)
    first = run(dance, tmp_path / "first", "offline", *cached)
    assert any(name.endswith(".tflite") for name in opened.files)
    assert opened.files.count("offline.onnx") == 1
    opened.files.clear()
    assert run(dance, tmp_path / "second", "offline", *cached) == first
    assert opened.files == []
    run(dance, tmp_path / "third", "offline", "--no-repair", *cached)
    assert opened.files == ["offline.onnx"]


@pytest.mark.parametrize("estimator", ["blazepose", "blazepose-lite", "movenet", "rtmpose-m", "rtmpose-x-halpe26"])
def test_skeleton_is_known_before_loading_its_network(estimator, weights_dir):
    from pose.networks.weights import WEIGHTS

    pipeline = Pipeline(PipelineConfig(estimator=estimator), lazy=True)
    known = pipeline.skeleton
    if estimator.startswith("rtmpose"):  # its file may not be here; the catalogue says what it is
        assert known.name in str(WEIGHTS[ESTIMATORS[estimator].weight].file)
    else:
        assert Pipeline(PipelineConfig(estimator=estimator))._found_by[0] == known


def test_people_between_samples_are_not_lifted_from_the_cache(dance, tmp_path, tiny_lifter, capsys):
    """They are interpolated after the lifter, also where the cache has the 2D only."""
    sampled = ("--keypoint-rate", "10", "--formats", "npz")
    cached, changed = ("--cache", tmp_path / "cache"), ("--no-repair",)
    run(dance, tmp_path / "first", tiny_lifter, *sampled, *cached)
    capsys.readouterr()
    again = run(dance, tmp_path / "again", tiny_lifter, *sampled, *cached, *changed)
    assert "2D: read from the cache" in capsys.readouterr().out
    assert again == run(dance, tmp_path / "plain", tiny_lifter, *sampled, *changed)
    assert load_poses(tmp_path / "again").interpolated.any()
