"""What networks get, and their runtimes: plain formulas, fewer outputs, devices and precisions."""

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pose_detectors.rtmdet import MEAN_BGR, STD_BGR, RTMDetDetector
from pose_detectors.yolox import YoloXDetector

from pose.errors import PoseError
from pose.networks import crops
from pose.networks.crops import box_iou
from pose.networks.input import NetworkInput, shared_uploads, upload
from pose.networks.letterbox import GREY, letterbox, suppress
from pose.networks.litert import LiteRTModel
from pose.networks.onnx import OnnxNetwork
from pose.networks.options import StageOptions
from pose.networks.yolo import YoloOnnx
from pose.structures.types import Regions
from pose.video import open_source

STATISTICS = {"mean": MEAN_BGR, "std": STD_BGR, "bgr": True}


@pytest.fixture(scope="module")
def pictures(videos):
    """Two frames of different clips, and so of different sizes."""
    found = []
    for clip in ("dance.mp4", "walk-by.mp4"):
        with open_source(str(videos / clip)) as source:
            found.append(next(iter(source)).image)
    return found


def regions(rng, count):
    """Rotated ones, some of them partly or wholly outside an image."""
    return Regions(
        rng.uniform(-50, 500, (count, 2)).astype(np.float32),
        rng.uniform(40, 400, (count, 2)).astype(np.float32),
        rng.uniform(-3, 3, count).astype(np.float32),
    )


def test_input_sample_is_the_normalised_image(rng):
    picture = rng.integers(0, 256, (24, 32, 3), np.uint8)
    samples, (fit,) = NetworkInput("cpu", **STATISTICS).letterboxed([picture], (32, 24))
    expected = (picture[..., ::-1].astype(np.float64) - MEAN_BGR) / STD_BGR
    np.testing.assert_allclose(samples[0], expected.transpose(2, 0, 1), atol=1e-6)
    assert (fit.scale, fit.offset) == ((1, 1), (0, 0))
    half, _ = NetworkInput("cpu", np.float16, **STATISTICS).letterboxed([picture], (32, 24))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, samples, atol=2e-3)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("size", [(320, 320), (416, 256), (512, 640)])
def test_device_letterbox_equals_cpu(pictures, size, centred):
    by_numpy, fits = NetworkInput("cpu").letterboxed(pictures, size, centred=centred)
    by_torch, same = NetworkInput("cpu", by_torch=True).letterboxed(pictures, size, centred=centred)
    assert same == fits
    assert np.abs(by_numpy - by_torch.numpy()).max() <= 1  # a grey level, of 255
    assert np.mean(by_numpy == by_torch.numpy()) > 0.9


def test_device_crops_equal_cpu(pictures, rng):
    matrices = [crops.crop_matrices(regions(rng, count), (192, 256)) for count in (5, 3)]
    by_numpy = NetworkInput("cpu").cropped(pictures, matrices, (192, 256))
    by_torch = NetworkInput("cpu", by_torch=True).cropped(pictures, matrices, (192, 256)).numpy()
    assert by_numpy.shape == by_torch.shape == (8, 3, 256, 192)
    difference = np.abs(by_numpy - by_torch)
    assert difference.mean() < 0.3  # grey levels: OpenCV rounds positions to 1/32 px
    assert np.mean(difference <= 2) > 0.99


def test_device_crop_is_bilinear(rng):
    picture = rng.integers(0, 256, (40, 50, 3), np.uint8)
    matrix = crops.crop_matrices(regions(rng, 1), (16, 24))
    crop = NetworkInput("cpu", by_torch=True).cropped([picture], [matrix], (16, 24))[0].numpy()
    around = np.pad(picture.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    for y, x in np.ndindex(24, 16):
        px, py = matrix[0].astype(np.float64) @ [x, y, 1]
        left, top = int(np.floor(px)), int(np.floor(py))
        expected = np.zeros(3)
        for row, column in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
            if -1 <= row <= 40 and -1 <= column <= 50:
                weight = (1 - abs(px - column)) * (1 - abs(py - row))
                expected += weight * around[row + 1, column + 1]
        np.testing.assert_allclose(crop[:, y, x], expected, atol=0.51)


def test_image_is_uploaded_once_per_frame(pictures):
    with shared_uploads():
        first = upload(pictures[0], "cpu")
        assert upload(pictures[0], "cpu") is first
        assert upload(pictures[1], "cpu") is not first
        assert upload(pictures[0], "cpu") is first
    assert upload(pictures[0], "cpu") is not first
    np.testing.assert_array_equal(first.permute(1, 2, 0).numpy(), pictures[0])


def test_onnx_runtime_takes_tensors(weights_dir, rng):
    fixed = OnnxNetwork(weights_dir / "yolox-nano-coco-416.onnx", StageOptions(device="cpu", threads=1))
    samples = rng.uniform(0, 255, (2, 3, 416, 416)).astype(np.float32)
    np.testing.assert_array_equal(fixed.run(torch.from_numpy(samples))[0], fixed.run(samples)[0])
    turned = torch.from_numpy(samples).transpose(2, 3)  # not in one piece
    np.testing.assert_array_equal(fixed.run(turned)[0], fixed.run(samples.transpose(0, 1, 3, 2).copy())[0])


@pytest.mark.parametrize("name", ["rtmdet", "yolox"])
def test_device_detectors_equal_cpu(name, weights_dir, pictures):
    file, make = {
        "rtmdet": ("rtmdet-nano-person-320.onnx", RTMDetDetector),
        "yolox": ("yolox-nano-coco-416.onnx", YoloXDetector),
    }[name]
    detector = make(model=weights_dir / file, options=StageOptions(device="cpu", threads=1))
    by_numpy = detector.detect(pictures[:1])[0]
    detector._input._by_torch = True
    by_torch = detector.detect(pictures[:1])[0]
    assert len(by_numpy) == len(by_torch) > 0
    np.testing.assert_allclose(by_numpy.xyxy, by_torch.xyxy, atol=1.0)
    np.testing.assert_allclose(by_numpy.scores, by_torch.scores, atol=0.02)


def test_device_yolo_equals_cpu(weights_dir, pictures):
    options = StageOptions(device="cpu", threads=1)
    network = YoloOnnx(weights_dir / "yolo26n-pose-256-int8.onnx", "pose", options)
    by_numpy = network(pictures[:1])[0]
    network._input._by_torch = True
    by_torch = network(pictures[:1])[0]
    assert len(by_numpy) == len(by_torch) > 0
    # The file computes in 8 bits: a grey level's difference can move an edge by one of its steps, some px.
    assert crops.box_iou(by_numpy.xyxy, by_torch.xyxy).max(axis=1).min() > 0.95
    assert np.median(np.abs(by_numpy.keypoints - by_torch.keypoints)) < 1


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("width", "height"), [(64, 64), (100, 30), (31, 97), (7, 200), (1, 1)])
def test_letterbox_round_trips_the_corners(width, height, centred):
    image = np.full((height, width, 3), 7, np.uint8)
    canvas, fit = letterbox(image, (64, 64), centred=centred)
    assert canvas.shape == (64, 64, 3)
    rows, columns = np.nonzero((canvas == 7).all(axis=2))
    inside = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1], np.float32)
    np.testing.assert_allclose(fit.boxes_to_image(inside[None])[0], [0, 0, width, height], atol=1e-3)
    assert max(inside[2] - inside[0], inside[3] - inside[1]) == 64
    outside = np.ones((64, 64), bool)
    outside[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = False
    assert (canvas[outside] == GREY).all()
    if not centred:
        assert inside[:2].tolist() == [0, 0]
    else:
        left_over = np.array([inside[0], 64 - inside[2], inside[1], 64 - inside[3]]).reshape(2, 2)
        assert np.isin(left_over[:, 1] - left_over[:, 0], [0, 1]).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
def test_nms_keeps_the_best_of_overlapping_boxes(seed, overlap):
    random = np.random.default_rng(seed)
    corners = random.uniform(0, 20, size=(30, 2))
    xyxy = np.concatenate([corners, corners + random.uniform(1, 15, size=(30, 2))], axis=1).astype(np.float32)
    scores = random.permutation(30).astype(np.float32) / 30
    kept = suppress(xyxy, scores, overlap)
    assert (np.diff(scores[kept]) < 0).all()
    among = box_iou(xyxy[kept], xyxy[kept]) - np.eye(len(kept))
    assert (among <= overlap).all()
    for gone in set(range(30)) - set(kept.tolist()):
        better = kept[scores[kept] > scores[gone]]
        assert (box_iou(xyxy[better], xyxy[[gone]]) > overlap).any()


@pytest.mark.parametrize("outputs", [(0, 1, 3), (3,), (2, 0), (0, 1, 2, 3, 4)])
def test_earlier_outputs_are_not_overwritten(weights_dir, rng, outputs):
    path = weights_dir / "blazepose-landmark-lite.tflite"
    whole, part = LiteRTModel(path, 1), LiteRTModel(path, 1, outputs)
    whole.input()[:] = part.input()[:] = rng.random((1, 256, 256, 3), np.float32)
    everything = [output.copy() for output in whole.run()]
    kept = [output.copy() for output in part.run()]
    assert len(kept) == len(outputs)
    for position, values in zip(outputs, kept, strict=True):
        np.testing.assert_array_equal(values, everything[position])


def test_missing_model_file_is_named(tmp_path):
    with pytest.raises(PoseError, match=r"nothing\.tflite: No such file"):
        LiteRTModel(tmp_path / "nothing.tflite", 1)


@pytest.mark.parametrize("length", [0, 3, 100, 5000])
@pytest.mark.parametrize("outputs", [None, (0,)])
def test_truncated_model_file_is_named(weights_dir, tmp_path, length, outputs):
    path = tmp_path / "cut.tflite"
    path.write_bytes((weights_dir / "blazepose-landmark-lite.tflite").read_bytes()[:length])
    with pytest.raises(PoseError, match=r"cut\.tflite: not a readable LiteRT model"):
        LiteRTModel(path, 1, outputs)


HAS_CUDA = "CUDAExecutionProvider" in onnxruntime.get_available_providers()


@pytest.fixture(scope="module")
def yolox(weights_dir):
    return OnnxNetwork(weights_dir / "yolox-nano-coco-416.onnx", StageOptions(device="cpu", threads=1))


def test_session_reads_input_metadata(yolox, weights_dir):
    assert yolox.device == "cpu"
    assert (yolox.shape, yolox.batch, yolox.dtype) == ((1, 3, 416, 416), 1, np.float32)
    free = OnnxNetwork(weights_dir / "rtmdet-nano-person-320.onnx", StageOptions(threads=1))
    assert free.shape == (None, 3, None, None)
    assert free.batch is None
    assert OnnxNetwork(weights_dir / "yolo26n-pose-256-int8.onnx", StageOptions(threads=1)).metadata["task"] == "pose"


def test_fixed_batch_model_is_run_per_sample(yolox, rng):
    samples = rng.uniform(0, 255, size=(3, 3, 416, 416)).astype(np.float32)
    together = yolox.run(samples)[0]
    assert together.shape == (3, 3549, 85)
    for row, sample in zip(together, samples, strict=True):
        np.testing.assert_array_equal(row, yolox.run(sample[None])[0][0])


@pytest.mark.skipif(HAS_CUDA, reason="this ONNX Runtime can use CUDA")
def test_unavailable_cuda_is_rejected(weights_dir):
    with pytest.raises(PoseError, match="device: cuda was requested, but this ONNX Runtime is a CPU build"):
        OnnxNetwork(weights_dir / "yolox-nano-coco-416.onnx", StageOptions(device="cuda"))


def test_failing_cuda_provider_is_rejected(weights_dir, monkeypatch):
    """A build with CUDA whose libraries or driver are missing: ONNX Runtime would go on on the CPU."""
    if HAS_CUDA and OnnxNetwork(weights_dir / "yolox-nano-coco-416.onnx").device == "cuda":
        assert OnnxNetwork(weights_dir / "yolox-nano-coco-416.onnx", StageOptions(device="cuda")).device == "cuda"
        return
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    opened = onnxruntime.InferenceSession

    def on_the_cpu(path, options, providers):
        assert providers == ["CUDAExecutionProvider", "CPUExecutionProvider"]
        return opened(path, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "InferenceSession", on_the_cpu)
    with pytest.raises(PoseError, match="ONNX Runtime cannot start CUDA for yolox-nano-coco-416"):
        OnnxNetwork(weights_dir / "yolox-nano-coco-416.onnx", StageOptions(device="cuda"))
    assert OnnxNetwork(weights_dir / "yolox-nano-coco-416.onnx", StageOptions(device="auto")).device == "cpu"


def test_invalid_network_file_is_named(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"not a network")
    with pytest.raises(PoseError, match=r"broken\.onnx: not a readable ONNX model"):
        OnnxNetwork(tmp_path / "broken.onnx")
