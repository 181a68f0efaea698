"""Parts of the benchmarks of the world that the tests of their names do not run."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from pose.structures.types import FrameResult, People, Placed, Poses3D

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RNG = np.random.default_rng(3)
POSE = RNG.normal(size=(1, 17, 3)).astype(np.float32)


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module


def seen(index, placed=False):
    people = People(
        index=index,
        time=index / 10,
        ids=np.array([1]),
        boxes=np.array([[10, 10, 60, 160]], np.float32),
        box_scores=np.ones(1, np.float32),
        keypoints=np.zeros((1, 17, 2), np.float32),
        scores=np.ones((1, 17), np.float32),
    )
    root = np.array([[0.1 * index, 0, 4]], np.float32)
    poses = Poses3D(POSE, root, np.full((1, 17), 30, np.float32))
    return FrameResult(people, poses, Placed.unknown(1) if placed else None)


def test_a_crowd_is_the_same_person_side_by_side(benchmark):
    world_live = benchmark("world_live")
    crowd = world_live._crowd(seen(0))
    assert len(crowd.people) == len(crowd.poses) == world_live.TOGETHER
    assert (crowd.poses.joints == POSE).all()
    assert np.diff(crowd.poses.root[:, 0]).tolist() == [1.0] * (world_live.TOGETHER - 1)


def test_clips_are_compared_over_the_frames_of_the_world(benchmark):
    class Run:
        heights, joined = {1: (1.7, 0.5)}, {}

        def __iter__(self):
            return (seen(index, placed=True) for index in range(3, 40))

    [(lifted, placed)] = benchmark("world_clips").before_and_after([seen(index) for index in range(40)], Run())
    assert lifted.times.tolist() == placed.times.tolist() == [index / 10 for index in range(3, 40)]
    assert np.allclose(lifted.joints, placed.joints, atol=1e-5)
