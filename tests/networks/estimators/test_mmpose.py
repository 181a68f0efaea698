"""MMPose's own models. Most of it needs the package (`pose-setup mmpose`); what is said without it does not."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from pose.errors import PoseError
from pose.networks.estimators.mmpose import MissingOperatorError, MMPose, _OperatorFinder
from pose.networks.estimators.rtmpose import RTMPose
from pose.networks.estimators.rtmpose_net import RTMPoseNetwork
from pose.networks.options import StageOptions
from pose.structures.types import Boxes, Regions

INSTALLED = importlib.util.find_spec("mmpose") is not None
needs_mmpose = pytest.mark.skipif(not INSTALLED, reason="needs mmpose: run `pose-setup mmpose`")
# MMPose and MMDetection 3 warn about much of what they do with current libraries.
their_warnings = pytest.mark.filterwarnings("ignore")


def _models() -> Path:
    import mmpose

    return Path(mmpose.__file__).parent / ".mim/configs/body_2d_keypoint"


@pytest.fixture
def checkpoint(tmp_path):
    """RTMPose-t with random weights, MMPose's config beside it."""
    shutil.copytree(_models().parent, tmp_path / "configs")
    path = tmp_path / "configs/body_2d_keypoint/rtmpose/body8/rtmpose-t_8xb256-420e_body8-256x192.pth"
    torch.manual_seed(0)
    torch.save({"state_dict": RTMPoseNetwork("t", 17).state_dict()}, path)
    return path


@needs_mmpose
@their_warnings
def test_mmpose_equals_our_rtmpose(checkpoint, dance):
    text = checkpoint.with_suffix(".py").read_text().replace("flip_test=True", "flip_test=False")
    checkpoint.with_suffix(".py").write_text(text)
    boxes = Boxes(np.array([[120, 60, 260, 420], [-40, -20, 90, 200]], np.float32), np.ones(2, np.float32))
    theirs, ours = (
        MMPose(model=checkpoint, options=StageOptions(device="cpu")),
        RTMPose(model=checkpoint, options=StageOptions(device="cpu")),
    )
    a = theirs.estimate(dance[:1], [theirs.regions(boxes)])[0]
    b = ours.estimate(dance[:1], [ours.regions(boxes)])[0]
    assert theirs.skeleton == ours.skeleton
    seen = b.scores > 0
    assert seen.any()
    np.testing.assert_allclose(a.xy[seen], b.xy[seen], atol=0.01)
    np.testing.assert_allclose(a.scores, b.scores, atol=1e-4)
    assert len(theirs.estimate(dance[:1], [Regions.empty()])[0]) == 0


@needs_mmpose
@their_warnings
def test_invalid_parameters_give_a_one_line_error(checkpoint):
    torch.save({"state_dict": {"a": torch.zeros(1)}}, checkpoint)
    with pytest.raises(PoseError, match="does not contain the parameters"):
        MMPose(model=checkpoint, options=StageOptions(device="cpu"))


@needs_mmpose
@their_warnings
def test_missing_config_is_named(tmp_path):
    torch.save({"state_dict": {}}, tmp_path / "model.pth")
    with pytest.raises(PoseError, match=r"model\.py: not found"):
        MMPose(model=tmp_path / "model.pth", options=StageOptions(device="cpu"))


@needs_mmpose
@their_warnings
def test_model_needing_compiled_operators_is_reported(checkpoint):
    """mmdet's deformable convolution in MMPose's ResNet."""
    config = checkpoint.with_suffix(".py")
    plain = _models() / "topdown_heatmap/coco/td-hm_res50_8xb64-210e_coco-256x192.py"
    text = plain.read_text().replace("../../../", str(_models().parent) + "/")
    deformable = "dict(type='DCNv2', deform_groups=1, fallback_on_stride=False)"
    extra = f"dcn={deformable}, stage_with_dcn=(False, True, True, True), _scope_='mmdet', init_cfg=None"
    config.write_text(f"{text}\nmodel['backbone'] = dict(type='ResNet', depth=50, {extra})\n")
    with pytest.raises(PoseError, match="compiled operator"):
        MMPose(model=checkpoint, options=StageOptions(device="cpu"))


@pytest.mark.skipif(INSTALLED, reason="mmpose is here")
def test_without_the_package_the_command_that_installs_it_is_named(tmp_path):
    with pytest.raises(PoseError, match="pose-setup mmpose"):
        MMPose(model=tmp_path / "model.pth", options=StageOptions(device="cpu"))


def test_missing_operator_is_named_when_used():
    finder = _OperatorFinder()
    operators = finder.create_module(finder.find_spec("mmcv.ops", None))

    class Layer(operators.DeformConv2d):
        pass

    with pytest.raises(MissingOperatorError, match="compiled operator DeformConv2d"):
        Layer(3, 3)
    assert finder.find_spec("mmcv.cnn", None) is None


def test_half_precision_is_refused(tmp_path):
    with pytest.raises(PoseError, match="float32"):
        MMPose(model=tmp_path / "model.pth", options=StageOptions(precision="float16"))
