"""Every detector alike: boxes around the people of real clips, in original pixels, best first."""

import importlib.util

import numpy as np
import pytest
from pose_detectors.full_frame import FullFrameDetector
from pose_detectors.mobilenet import MobileNetDetector, SSDLiteDetector
from pose_detectors.rtmdet import RTMDetDetector
from pose_detectors.yolo import YoloDetector
from pose_detectors.yolox import YoloXDetector, grid

from pose.errors import PoseError, UsageError
from pose.networks.crops import box_iou
from pose.networks.options import StageOptions

# xyxy px around the one person in view, read off the images by eye, to a few pixels.
PEOPLE = {("walk-by.mp4", 400): (386, 2, 545, 382), ("dance.mp4", 100): (105, 76, 281, 438)}

FILES = {
    "rtmdet": (RTMDetDetector, "rtmdet-nano-person-320.onnx"),
    "yolox": (YoloXDetector, "yolox-nano-coco-416.onnx"),
    "mobilenet": (MobileNetDetector, "ssd-mobilenet-v1-coco-300-int8.tflite"),
}


@pytest.fixture(scope="module", params=[*FILES, "yolo"])
def detector(request, weights_dir):
    if request.param == "yolo":
        options = StageOptions(threads=1)
        return YoloDetector(model=weights_dir / "yolo26n-person-320-int8.onnx", options=options)
    build, file = FILES[request.param]
    return build(model=weights_dir / file, options=StageOptions(threads=1))


@pytest.mark.parametrize(("clip", "index"), PEOPLE, ids=[clip for clip, _ in PEOPLE])
def test_single_person_is_detected(detector, clip, index, clip_frame):
    boxes = detector.detect([clip_frame(clip, index)])[0]
    assert len(boxes) == 1
    assert box_iou(boxes.xyxy, np.array([PEOPLE[clip, index]], np.float32))[0, 0] > 0.85


def test_crowd_is_detected_in_order_of_score(detector, clip_frame):
    boxes = detector.detect([clip_frame("street.mp4", 0)])[0]
    assert len(boxes) >= 5
    assert (np.diff(boxes.scores) <= 0).all()
    assert ((boxes.scores > 0) & (boxes.scores <= 1)).all()
    assert boxes.xyxy.dtype == boxes.scores.dtype == np.float32
    assert (boxes.xyxy[:, 2:] > boxes.xyxy[:, :2]).all()


def test_batch_equals_single_images(detector, clip_frame):
    images = [clip_frame("dance.mp4", 100), clip_frame("walk-by.mp4", 400)]
    for together, image in zip(detector.detect(images), images, strict=True):
        np.testing.assert_array_equal(together.xyxy, detector.detect([image])[0].xyxy)
    assert detector.detect([]) == []


@pytest.mark.parametrize("name", FILES)
def test_thresholds_and_classes_filter_detections(name, weights_dir, clip_frame):
    build, file = FILES[name]
    image = clip_frame("street.mp4", 0)
    everyone = build(model=weights_dir / file, options=StageOptions(threads=1)).detect([image])[0]
    sure = build(model=weights_dir / file, options=StageOptions(threads=1, score=0.62)).detect([image])[0]
    assert 0 < len(sure) < len(everyone)
    np.testing.assert_array_equal(sure.xyxy, everyone.xyxy[everyone.scores >= 0.62])
    assert len(build(model=weights_dir / file, classes=(17,)).detect([image])[0]) == 0


def test_rtmdet_supports_other_input_sizes(weights_dir, clip_frame):
    model = weights_dir / "rtmdet-nano-person-320.onnx"
    small, large = (RTMDetDetector(model=model, options=StageOptions(threads=1, size=side)) for side in (320, 640))
    image = clip_frame("street.mp4", 0)
    assert len(large.detect([image])[0]) > len(small.detect([image])[0])  # people far away are seen as well
    with pytest.raises(UsageError, match="500 is not a positive multiple of 32 px"):
        RTMDetDetector(model=model, options=StageOptions(size=500))
    with pytest.raises(PoseError, match="exported for 416 px, not 640"):
        YoloXDetector(model=weights_dir / "yolox-nano-coco-416.onnx", options=StageOptions(size=640))


def test_the_grid_of_yolox_is_row_by_row():
    cells, strides = grid(64)
    assert len(cells) == len(strides) == 64 + 16 + 4
    assert cells[1].tolist() == [1, 0]
    assert cells[8].tolist() == [0, 1]
    assert cells[-1].tolist() == [1, 1]
    assert strides[[0, 64, -1], 0].tolist() == [8, 16, 32]


def test_full_frame_is_one_box_from_edge_to_edge():
    first, second = FullFrameDetector().detect([np.zeros((10, 20, 3), np.uint8), np.zeros((7, 5, 3), np.uint8)])
    assert first.xyxy.tolist() == [[0, 0, 20, 10]]
    assert second.xyxy.tolist() == [[0, 0, 5, 7]]
    assert first.scores.tolist() == [1]


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision, an extra")
def test_ssdlite_equals_torchvision(tmp_path, clip_frame):
    """Parameters of an untrained network: its boxes are nonsense, and must be torchvision's nonsense."""
    import torch
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large

    torch.manual_seed(0)
    theirs = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None).eval()
    torch.save(theirs.state_dict(), tmp_path / "ssdlite.pth")
    image = clip_frame("dance.mp4", 0)
    with torch.inference_mode():
        rows = theirs([torch.from_numpy(image).permute(2, 0, 1).float() / 255])[0]
    kind = int(rows["labels"][0])
    ours = SSDLiteDetector(
        model=tmp_path / "ssdlite.pth", classes=(kind,), options=StageOptions(device="cpu", score=0.0)
    ).detect([image])[0]
    assert len(ours) == int((rows["labels"] == kind).sum()) > 0
    np.testing.assert_allclose(ours.xyxy, rows["boxes"][rows["labels"] == kind].numpy(), atol=1e-3)
    (tmp_path / "other.pth").write_bytes(b"no parameters")
    with pytest.raises(PoseError, match="not the parameters of SSDLite320"):
        SSDLiteDetector(model=tmp_path / "other.pth", options=StageOptions(device="cpu"))


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is not None, reason="torchvision is installed")
def test_ssdlite_names_the_extra(tmp_path):
    with pytest.raises(PoseError, match=r"pip install 'pose-run\[torchvision\]'"):
        SSDLiteDetector(model=tmp_path / "ssdlite.pth", options=StageOptions(device="cpu"))


def test_ssdlite_refuses_half_precision(tmp_path):
    with pytest.raises(PoseError, match="does not run in float16"):
        SSDLiteDetector(model=tmp_path / "ssdlite.pth", options=StageOptions(precision="float16"))
