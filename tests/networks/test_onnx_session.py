"""ONNX Runtime: the device and precision that were asked for, or a message."""

import numpy as np
import onnxruntime
import pytest

from pose.errors import PoseError
from pose.networks.onnx import OnnxNetwork
from pose.networks.options import StageOptions

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
