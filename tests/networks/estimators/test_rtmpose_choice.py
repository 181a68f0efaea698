"""RTMPose chosen by name, with weights of a file."""

import numpy as np
import pytest
import torch

from pose.config import PipelineConfig
from pose.errors import PoseError
from pose.networks.estimators.rtmpose_net import SIZES, RTMPoseNetwork
from pose.networks.weights import WEIGHTS
from pose.registry import ESTIMATORS, build
from pose.structures.types import Boxes


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("rtmpose") / "halpe.pth"
    torch.save({"state_dict": RTMPoseNetwork("t", 26).state_dict()}, path)
    return path


def test_every_size_and_skeleton_has_a_name_and_published_weights():
    names = [f"rtmpose-{size}{skeleton}" for size in SIZES for skeleton in ("", "-halpe26")]
    weights = [WEIGHTS[ESTIMATORS[name].weight] for name in names]
    assert all(
        weight.name.startswith(name.removesuffix("-halpe26")) for name, weight in zip(names, weights, strict=True)
    )
    assert len({weight.name for weight in weights}) == 10


def test_a_file_takes_the_place_of_the_published_weights(checkpoint, dance):
    config = PipelineConfig(estimator="rtmpose-t-halpe26", device="cpu")
    estimator = build(ESTIMATORS, config.estimator, config.stage_options, str(checkpoint))
    regions = estimator.regions(Boxes(np.array([[120, 60, 260, 420]], np.float32), np.ones(1, np.float32)))
    found = estimator.estimate(dance[:1], [regions])[0]
    assert estimator.skeleton.name == "halpe26"
    assert found.xy.shape == (1, 26, 2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_pipeline_device_reaches_the_network(checkpoint):
    config = PipelineConfig(estimator="rtmpose-t", detector="rtmdet", device="cuda")
    with pytest.raises(PoseError, match="cuda was requested"):
        build(ESTIMATORS, config.estimator, config.stage_options, str(checkpoint))
