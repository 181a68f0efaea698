import numpy as np
import pytest
import torch

import pose.training.research  # noqa: F401  adds the mechanisms and forms of the laboratory
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def small_lifter(streaming: bool = False, **changes) -> TorchLifter:
    """A random lifter whose answers depend strongly on its input."""
    attention = {"attention": "local", "attention_options": {"window": 8}} if streaming else {}
    config = LifterConfig(**{"dim": 32, "depth": 2, "heads": 2, "streaming": streaming} | attention | changes)
    network = LifterNetwork(config)
    torch.nn.init.normal_(network.head.weight, std=0.1)
    return TorchLifter(network, "test")


def walk(
    rng: np.random.Generator, frames: int, fps: float = 30.0, skeleton: str = "h36m17", joints: int = 17
) -> Sequence2D:
    """Smooth made-up 2D motion with a few joints and frames not seen."""
    times = np.cumsum(rng.uniform(0.8, 1.2, frames)) / fps
    phase = rng.uniform(0, 6, (joints, 2))
    centre = np.array([320.0, 240.0]) + 80 * rng.normal(size=(joints, 2))
    keypoints = centre + 20 * np.sin(2 * times[:, None, None] + phase)
    scores = rng.uniform(0.3, 1, (frames, joints))
    scores[rng.random((frames, joints)) < 0.05] = 0
    scores[frames // 2 : frames // 2 + 2] = 0
    return Sequence2D(keypoints.astype(np.float32), scores.astype(np.float32), times, Camera.of((640, 480)), skeleton)


@pytest.fixture
def make_lifter():
    return small_lifter


@pytest.fixture
def make_walk(rng):
    return lambda frames, **options: walk(rng, frames, **options)
