"""YOLO on ONNX Runtime against `ultralytics`: numbers it gave once, and itself where it is installed."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from pose_detectors.yolo import YoloDetector

from pose.errors import PoseError, UsageError
from pose.networks.estimators.whole_image import YoloPose
from pose.networks.options import StageOptions
from pose.networks.yolo import OVERLAP_THRESHOLD, SCORE_THRESHOLD, YoloOnnx, load_yolo
from pose.structures.types import Boxes

# Two CPUs: where sums of 8-bit products saturate (x86 without VNNI), the network itself says other things.
REFERENCES = [
    json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))["pictures"]
    for name in ("ultralytics.json", "ultralytics_without_vnni.json")
]
FRAMES = [name for name in REFERENCES[0] if "#" in name]
ONE_THREAD = StageOptions(threads=1)


@pytest.fixture(scope="module")
def detector(weights_dir):
    return YoloDetector(model=weights_dir / "yolo26n-person-320-int8.onnx", options=ONE_THREAD)


@pytest.fixture(scope="module")
def pose(weights_dir):
    return YoloPose(model=weights_dir / "yolo26n-pose-256-int8.onnx", options=ONE_THREAD)


@pytest.fixture(scope="module")
def reference(detector, clip_frame):
    """Of the CPU whose arithmetic is this one's, told by one image; the others must be its, too."""
    clip, index = FRAMES[0].split("#")
    found = detector.detect([clip_frame(clip, int(index))])[0].xyxy

    def distance(pictures):
        return np.abs(found - np.array(pictures[FRAMES[0]]["detect"])[:, :4]).max()

    return min(REFERENCES, key=distance)


def check_boxes(found, rows):
    """rows: (P, 5 or more) of Ultralytics, as tests/detectors/ultralytics_reference.py writes them."""
    expected = np.array([row[:5] for row in rows]).reshape(-1, 5)
    np.testing.assert_allclose(found.xyxy, expected[:, :4], atol=1.0)
    np.testing.assert_allclose(found.scores, expected[:, 4], atol=0.02)


def check_joints(keypoints, rows):
    expected = np.array([row[5:] for row in rows]).reshape(-1, 17, 3)
    np.testing.assert_allclose(keypoints.xy, expected[..., :2], atol=1.0)
    inside = keypoints.scores > 0
    np.testing.assert_allclose(keypoints.scores[inside], expected[..., 2][inside], atol=0.02)


@pytest.mark.parametrize("name", FRAMES)
def test_boxes_equal_ultralytics(name, detector, clip_frame, reference):
    clip, index = name.split("#")
    found = detector.detect([clip_frame(clip, int(index))])[0]
    assert len(found) == len(reference[name]["detect"])
    check_boxes(found, reference[name]["detect"])


@pytest.mark.parametrize("name", FRAMES)
def test_joints_equal_ultralytics(name, pose, clip_frame, reference):
    clip, index = name.split("#")
    boxes, keypoints = pose.find([clip_frame(clip, int(index))])[0]
    assert len(boxes) == len(reference[name]["pose"])
    check_boxes(boxes, reference[name]["pose"])
    check_joints(keypoints, reference[name]["pose"])


@pytest.mark.skipif(importlib.util.find_spec("ultralytics") is None, reason="needs ultralytics (AGPL-3.0), an extra")
def test_reference_outputs_equal_installed_ultralytics(detector, pose, weights_dir, clip_frame):
    import cv2
    from ultralytics import YOLO
    from ultralytics.utils import ASSETS

    images = [cv2.imread(str(ASSETS / name))[..., ::-1].copy() for name in ("bus.jpg", "zidane.jpg")]
    images += [clip_frame("street.mp4", 1), clip_frame("dance.mp4", 50)]
    detect = YOLO(weights_dir / "yolo26n-person-320-int8.onnx", task="detect")
    joints = YOLO(weights_dir / "yolo26n-pose-256-int8.onnx", task="pose")
    for image in images:
        theirs = detect.predict(image[..., ::-1].copy(), imgsz=320, device="cpu", verbose=False)[0]
        ours = detector.detect([image])[0]
        assert len(ours) == len(theirs.boxes) > 0
        check_boxes(ours, theirs.boxes.data[:, :5].numpy())
        theirs = joints.predict(image[..., ::-1].copy(), imgsz=256, device="cpu", verbose=False)[0]
        boxes, keypoints = pose.find([image])[0]
        assert len(boxes) == len(theirs.boxes) > 0
        check_boxes(boxes, theirs.boxes.data[:, :5].numpy())
        rows = np.concatenate([theirs.boxes.data[:, :5], theirs.keypoints.data.reshape(len(boxes), 51)], axis=1)
        check_joints(keypoints, rows)


@pytest.mark.skipif(importlib.util.find_spec("ultralytics") is None, reason="needs ultralytics (AGPL-3.0), an extra")
def test_pt_files_equal_ultralytics(tmp_path, clip_frame):
    """An untrained network: its people are nonsense, and must be Ultralytics' nonsense."""
    import torch
    from ultralytics import YOLO

    torch.manual_seed(0)
    YOLO("yolo11n-pose.yaml").save(tmp_path / "untrained.pt")
    image = clip_frame("dance.mp4", 0)
    theirs = YOLO(tmp_path / "untrained.pt").predict(
        image[..., ::-1].copy(), conf=1e-5, classes=[0], imgsz=320, device="cpu", verbose=False
    )[0]
    options = StageOptions(score=1e-5, size=320, device="cpu")
    ours = load_yolo(tmp_path / "untrained.pt", "pose", options)([image])[0]
    assert len(ours) == len(theirs.boxes) > 0
    np.testing.assert_allclose(ours.xyxy, theirs.boxes.xyxy.numpy(), atol=1e-3)
    np.testing.assert_allclose(ours.keypoints, theirs.keypoints.xy.numpy(), atol=1e-3)
    with pytest.raises(PoseError, match="a YOLO file for 'pose', not for 'detect'"):
        load_yolo(tmp_path / "untrained.pt", "detect", options)
    (tmp_path / "broken.pt").write_bytes(b"no network")
    with pytest.raises(PoseError, match="not a readable YOLO file"):
        load_yolo(tmp_path / "broken.pt", "detect", options)


def test_batch_equals_single_images(detector, clip_frame):
    images = [clip_frame("street.mp4", 0), clip_frame("dance.mp4", 0), clip_frame("street.mp4", 2)]
    for together, image in zip(detector.detect(images), images, strict=True):
        alone = detector.detect([image])[0]
        np.testing.assert_array_equal(together.xyxy, alone.xyxy)
    assert detector.detect([]) == []


def test_thresholds_change_the_detections(weights_dir, clip_frame):
    image = clip_frame("street.mp4", 0)
    model = weights_dir / "yolo26n-person-320-int8.onnx"

    def found(options=ONE_THREAD, **more):
        return YoloDetector(model=model, options=options, **more).detect([image])[0]

    everyone = found()
    sure = found(StageOptions(threads=1, score=0.7))
    assert 0 < len(sure) < len(everyone)
    np.testing.assert_array_equal(sure.xyxy, everyone.xyxy[everyone.scores > 0.7])
    assert len(found(classes=(1,))) == 0
    assert len(found(overlap_threshold=0.01)) < len(everyone)


def test_crop_returns_the_central_person(detector, pose, clip_frame):
    image = clip_frame("street.mp4", 0)
    boxes = detector.detect([image])[0]
    keypoints = pose.estimate([image], [pose.regions(boxes)])[0]
    big = (boxes.xyxy[:, 3] - boxes.xyxy[:, 1]) > 80
    assert big.sum() >= 3
    assert (keypoints.presence[big] > 0.5).all()
    for row in np.flatnonzero(big):
        low, high = boxes.xyxy[row, :2], boxes.xyxy[row, 2:]
        seen = keypoints.xy[row][keypoints.scores[row] > 0.5]
        assert len(seen) >= 8
        assert ((seen > low - 0.1 * (high - low)) & (seen < high + 0.1 * (high - low))).all()


def test_a_crop_without_a_person_has_presence_0(pose, empty_picture):
    boxes = np.array([[100, 50, 180, 200]], np.float32)
    regions = pose.regions(Boxes(boxes, np.ones(1, np.float32)))
    keypoints = pose.estimate([empty_picture], [regions])[0]
    assert keypoints.presence.tolist() == [0]
    assert not keypoints.scores.any()
    np.testing.assert_array_equal(keypoints.next_regions.centers, regions.centers)


def test_final_rows_need_no_suppression(pose):
    """An export that ends in (300, 57) rows: the same people as its raw head says."""
    network = YoloOnnx.__new__(YoloOnnx)
    network._score_threshold, network._overlap_threshold, network._classes = SCORE_THRESHOLD, OVERLAP_THRESHOLD, (0,)
    network.joints, network._values, network.side = 17, 3, 256
    from pose.networks.letterbox import LetterboxTransform

    image, fit = np.zeros((100, 200, 3), np.uint8), LetterboxTransform((0.5, 0.5), (10, 20))
    rows = np.zeros((300, 57), np.float32)
    rows[0, :6] = [20, 30, 60, 60, 0.9, 0]
    rows[0, 6:] = np.tile([30, 40, 0.8], 17)
    head = np.zeros((56, 1344), np.float32)
    head[:5, 7] = [40, 45, 40, 30, 0.9]
    head[5:, 7] = rows[0, 6:]
    for output in (rows, head):
        found = network._findings(output, fit, image)
        np.testing.assert_allclose(found.xyxy, [[20, 20, 100, 80]])
        np.testing.assert_allclose(found.scores, [0.9])
        np.testing.assert_allclose(found.keypoints, np.tile([40, 40], (1, 17, 1)))
        np.testing.assert_allclose(found.keypoint_scores, np.full((1, 17), 0.8), rtol=1e-6)


def test_invalid_weight_files_are_rejected(weights_dir, tmp_path):
    person = weights_dir / "yolo26n-person-320-int8.onnx"
    with pytest.raises(PoseError, match=r"not a YOLO export for 'pose'.*'detect'"):
        load_yolo(person, "pose", ONE_THREAD)
    with pytest.raises(PoseError, match="exported for 320 px, not 640"):
        load_yolo(person, "detect", StageOptions(size=640))
    with pytest.raises(UsageError, match=r"an \.onnx or \.pt file"):
        load_yolo(tmp_path / "yolo.engine", "detect", ONE_THREAD)
    with pytest.raises(PoseError, match="not a YOLO export"):
        load_yolo(weights_dir / "yolox-nano-coco-416.onnx", "detect", ONE_THREAD)
    with pytest.raises(PoseError, match="not a readable ONNX model"):
        load_yolo(tmp_path / "missing.onnx", "detect", ONE_THREAD)


@pytest.mark.skipif(importlib.util.find_spec("ultralytics") is not None, reason="ultralytics is installed")
def test_pt_files_name_the_install_command(tmp_path):
    with pytest.raises(PoseError, match="pose-setup ultralytics"):
        load_yolo(tmp_path / "yolo11n.pt", "detect", ONE_THREAD)
