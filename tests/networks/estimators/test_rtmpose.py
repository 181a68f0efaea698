"""RTMPose: the network against MMPose's own numbers, and the way from an image to joints and back.

No trained weights lie beside the checkout, so networks get random ones that are the same everywhere.
"""

import collections
import json
from pathlib import Path

import numpy as np
import pytest
import rtmpose_weights as random_weights
import torch

from pose.errors import PoseError
from pose.networks.estimators.rtmpose import MEAN_RGB, STD_RGB, RTMPose, box_regions, decode
from pose.networks.estimators.rtmpose_net import BINS_PER_PIXEL, RTMPoseNetwork, load_checkpoint
from pose.networks.input import NetworkInput
from pose.networks.options import StageOptions
from pose.structures.types import Boxes, Regions

REFERENCE = json.loads(Path(__file__).with_name("rtmpose_mmpose.json").read_text("utf-8"))
CROP = (192, 256)


@pytest.fixture(scope="session")
def tiny():
    return random_weights.random_network("t", 17)


@pytest.fixture(scope="session")
def checkpoint(tiny, tmp_path_factory):
    """Size t as MMPose publishes it: parameters beside what was trained on what."""
    path = tmp_path_factory.mktemp("rtmpose") / "rtmpose-t.pth"
    about = {"dataset_meta": {"sigmas": np.ones(17, np.float32), "num_keypoints": 17}, "epoch": 420}
    torch.save({"meta": about, "state_dict": tiny.state_dict()}, path)
    return path


@pytest.fixture(scope="session")
def onnx_file(tiny, tmp_path_factory):
    path = tmp_path_factory.mktemp("rtmpose") / "end2end.onnx"
    random_weights.export_onnx(tiny, path)
    return path


@pytest.fixture(scope="session")
def by_torch(checkpoint):
    return RTMPose(model=checkpoint, options=StageOptions(device="cpu"))


@pytest.fixture(scope="session")
def by_onnx(onnx_file):
    return RTMPose(model=onnx_file, options=StageOptions(device="cpu", threads=1))


@pytest.fixture(scope="session")
def people(dance):
    """Two images, three boxes in the first, one in the second."""
    boxes = np.array([[120, 60, 260, 420], [30, 100, 200, 480], [-40, -20, 90, 200]], np.float32)
    return [dance[0], dance[30]], [Boxes(boxes, np.ones(3, np.float32)), Boxes(boxes[:1], np.ones(1, np.float32))]


@pytest.mark.parametrize("case", REFERENCE["cases"], ids=lambda case: f"{case['size']}-{case['joints']}")
def test_equals_mmpose_with_the_same_weights(case):
    network = random_weights.random_network(case["size"], case["joints"])
    with torch.inference_mode():
        scores = network(random_weights.random_crops(len(case["keypoints"])))
    for ours, theirs in zip(scores, (case["simcc_x"], case["simcc_y"]), strict=True):
        np.testing.assert_allclose(ours[:, :, :: case["step"]].numpy(), theirs, atol=1e-4)
    points, _ = decode(*(axis.numpy() for axis in scores))
    np.testing.assert_allclose(points, case["keypoints"], atol=0.01)


@pytest.mark.parametrize(("size", "joints", "crop"), [("t", 26, (192, 256)), ("s", 17, (288, 384))])
def test_checkpoint_metadata_names_size_and_skeleton(size, joints, crop, tmp_path):
    network = RTMPoseNetwork(size, joints, crop)
    torch.save({"state_dict": network.state_dict()}, tmp_path / "a.pth")
    loaded = load_checkpoint(tmp_path / "a.pth")
    assert (loaded.joints, loaded.crop) == (joints, crop)
    assert torch.equal(loaded.head.cls_x.weight, network.head.cls_x.weight)


def test_every_parameter_can_be_fine_tuned():
    network = random_weights.random_network("t", 17, crop=(64, 64)).train()
    simcc_x, simcc_y = network(torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0)))
    (simcc_x.square().mean() + simcc_y.square().mean()).backward()
    without = [name for name, p in network.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert without == []


@pytest.mark.slow
def test_network_compiles_to_one_graph():
    network = random_weights.random_network("t", 17, crop=(64, 64))
    samples = torch.randn(1, 3, 64, 64)
    program = torch.export.export(network, (samples,))
    torch.testing.assert_close(program.module()(samples), network(samples))


def test_onnx_and_torch_give_the_same_joints(by_onnx, by_torch, people):
    images, boxes = people
    regions = [by_onnx.regions(rows) for rows in boxes]
    for a, b in zip(by_onnx.estimate(images, regions), by_torch.estimate(images, regions), strict=True):
        np.testing.assert_allclose(a.xy, b.xy, atol=0.01)
        np.testing.assert_allclose(a.scores, b.scores, atol=1e-4)
        np.testing.assert_allclose(a.presence, b.presence, atol=1e-4)
        np.testing.assert_allclose(a.next_regions.sizes, b.next_regions.sizes, atol=0.05)


def test_batch_equals_single_crops(by_onnx, people):
    images, boxes = people
    regions = [by_onnx.regions(rows) for rows in boxes]
    together = by_onnx.estimate(images, regions)
    for row in range(3):
        alone = by_onnx.estimate(images[:1], [regions[0][[row]]])[0]
        np.testing.assert_allclose(together[0].xy[row], alone.xy[0], atol=0.01)
        np.testing.assert_allclose(together[0].scores[row], alone.scores[0], atol=1e-5)


@pytest.mark.parametrize("counts", [[], [0], [0, 0]])
def test_empty_batch_runs_no_network(by_onnx, dance, counts):
    found = by_onnx.estimate(dance[: len(counts)], [Regions.empty() for _ in counts])
    assert [keypoints.xy.shape for keypoints in found] == [(count, 17, 2) for count in counts]


@pytest.mark.slow
def test_half_precision_stays_close_and_is_really_half(checkpoint, by_torch, people):
    half = RTMPose(model=checkpoint, options=StageOptions(device="cpu", precision="float16"))
    images, boxes = people
    one = images[:1], [by_torch.regions(boxes[0])[[0]]]  # halves take a processor long
    (exact,), (rough,) = by_torch.estimate(*one), half.estimate(*one)
    assert np.abs(exact.presence - rough.presence).max() < 0.02
    assert not np.array_equal(exact.presence, rough.presence)


@pytest.mark.parametrize("file", ["onnx_file", "checkpoint"])
def test_crops_made_by_torch_give_the_same_joints(file, request, people):
    """What runs on a GPU, run on the CPU: 8 joints in 10 in the same place, the others half a crop pixel beside it."""
    images, boxes = people
    estimator = RTMPose(model=request.getfixturevalue(file), options=StageOptions(device="cpu", threads=1))
    regions = [estimator.regions(rows) for rows in boxes]
    by_numpy = estimator.estimate(images, regions)
    estimator._network.input = NetworkInput("cpu", mean=MEAN_RGB, std=STD_RGB, by_torch=True)
    by_torch = estimator.estimate(images, regions)
    for a, b, rows in zip(by_numpy, by_torch, regions, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, atol=0.02)
        distances = np.linalg.norm(a.xy - b.xy, axis=2) / rows.sizes[:, :1] * CROP[0]
        assert np.mean(distances < 0.01) > 0.8
        assert distances.max() <= 0.71


def test_unsupported_precision_is_rejected(onnx_file):
    with pytest.raises(PoseError, match="exported in float32, not float16"):
        RTMPose(model=onnx_file, options=StageOptions(device="cpu", precision="float16"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
@pytest.mark.parametrize("file", ["checkpoint", "onnx_file"])
def test_unavailable_cuda_is_an_error(file, request):
    with pytest.raises(PoseError, match="cuda was requested"):
        RTMPose(model=request.getfixturevalue(file), options=StageOptions(device="cuda"))


def test_decoding_finds_the_peaks():
    x, y = np.zeros((1, 2, 384), np.float32), np.zeros((1, 2, 512), np.float32)
    x[0, 0, 101], y[0, 0, 40] = 0.8, 0.6
    x[0, 1, 383], y[0, 1, 511] = 1.4, 1.2
    points, scores = decode(x, y)
    np.testing.assert_array_equal(points[0], [[50.5, 20], [191.5, 255.5]])
    np.testing.assert_allclose(scores[0], [0.6, 1])


@pytest.mark.parametrize(
    ("box", "size"),
    [((0, 0, 96, 128), (120, 160)), ((0, 0, 120, 10), (150, 200)), ((10, 10, 20, 170), (150, 200))],
    ids=["already 3:4", "wide", "tall"],
)
def test_region_keeps_the_box_inside_at_three_to_four(box, size):
    regions = box_regions(np.array([box], np.float32), CROP)
    np.testing.assert_allclose(regions.sizes[0], size, rtol=1e-6)
    np.testing.assert_allclose(regions.centers[0], [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2])


class Lamp:
    """Stands for a network: finds the brightest pixel of every crop, as joint 0 and as all the others."""

    crop, joints, input = CROP, 17, NetworkInput("cpu")

    def __call__(self, crops):
        scores = [np.zeros((len(crops), 17, side * BINS_PER_PIXEL), np.float32) for side in CROP]
        for row, crop in enumerate(crops):
            y, x = np.unravel_index(crop[0].argmax(), crop.shape[1:])
            scores[0][row, :, x * BINS_PER_PIXEL] = scores[1][row, :, y * BINS_PER_PIXEL] = 0.9
        return scores[0], scores[1]


class Fixed:
    """Stands for a network that always says the same."""

    crop, joints, input = CROP, 17, NetworkInput("cpu")

    def __init__(self, *scores):
        self.scores = scores

    def __call__(self, crops):
        return self.scores


def test_joints_map_back_to_image_coordinates(onnx_file, rng):
    estimator = RTMPose(model=onnx_file, options=StageOptions(device="cpu", threads=1))
    estimator._network = Lamp()
    image = np.zeros((480, 640, 3), np.uint8)
    image[199:202, 299:302], image[200, 300] = 200, 255
    boxes = np.stack(
        [rng.uniform(0, 250, 8), rng.uniform(0, 150, 8), rng.uniform(320, 600, 8), rng.uniform(220, 470, 8)]
    )
    regions = estimator.regions(Boxes(boxes.T.astype(np.float32), np.ones(8, np.float32)))
    found = estimator.estimate([image], [regions])[0]
    pixel = regions.sizes[:, 0] / CROP[0]  # of a crop, in the image's
    assert (np.abs(found.xy - [300, 200]).max(axis=(1, 2)) <= np.maximum(pixel, 1)).all()
    np.testing.assert_allclose(found.presence, 0.9)


def test_next_region_encloses_visible_joints(onnx_file):
    """Crop and image are the same here: joints from (48, 64) to (144, 192), and one that was not observed."""
    simcc_x, simcc_y = np.zeros((1, 17, 384), np.float32), np.zeros((1, 17, 512), np.float32)
    simcc_x[:, 0::2, 96], simcc_x[:, 1::2, 288] = 0.9, 0.9
    simcc_y[:, 0::2, 128], simcc_y[:, 1::2, 384] = 0.9, 0.9
    simcc_x[0, 16], simcc_y[0, 16] = 0, 0
    estimator = RTMPose(model=onnx_file, options=StageOptions(device="cpu", threads=1))
    estimator._network = Fixed(simcc_x, simcc_y)
    whole = Regions(np.array([[96, 128]], np.float32), np.array([CROP], np.float32), np.zeros(1, np.float32))
    found = estimator.estimate([np.zeros((256, 192, 3), np.uint8)], [whole])[0]
    np.testing.assert_allclose(found.scores[0], [0.9] * 16 + [0])
    np.testing.assert_allclose(found.next_regions.centers, [[96, 128]])
    np.testing.assert_allclose(found.next_regions.sizes, [[96 * 1.2 * 1.25, 128 * 1.2 * 1.25]], rtol=1e-6)


@pytest.mark.parametrize("content", ["code", "other network", "no checkpoint", "training state"])
def test_invalid_checkpoint_gives_a_one_line_error(content, tmp_path):
    path = tmp_path / "bad.pth"
    if content == "no checkpoint":
        path.write_bytes(b"not a checkpoint")
    else:
        what = {
            "code": {"state_dict": {"a": print}},
            "other network": {"state_dict": {"conv.weight": torch.zeros(1)}},
            "training state": {"state_dict": {}, "message_hub": collections.ChainMap()},
        }
        torch.save(what[content], path)
    with pytest.raises(PoseError, match=r"bad\.pth: ") as error:
        RTMPose(model=path, options=StageOptions(device="cpu"))
    assert "\n" not in str(error.value)


def test_unknown_joint_count_is_rejected(tmp_path):
    torch.save({"state_dict": RTMPoseNetwork("t", 21).state_dict()}, tmp_path / "hand.pth")
    with pytest.raises(PoseError, match="outputs 21 joints"):
        RTMPose(model=tmp_path / "hand.pth", options=StageOptions(device="cpu"))
