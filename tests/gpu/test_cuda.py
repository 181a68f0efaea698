"""On a GPU everything that takes a device gives the CPU's answers. `pytest -m gpu` on a machine that has one."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pose.lifting.attention import Context
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.lifting.stream import LifterStream
from pose.lifting.torch_lifter import TorchLifter
from pose.networks import crops
from pose.networks.estimators.rtmpose_net import RTMPoseNetwork
from pose.networks.input import NetworkInput
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17
from pose.structures.types import Regions
from pose.training.batches import TensorBatch
from pose.training.measure import lift_batch
from pose.training.trainer import Trainer

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("lifting/attention", "training")]
from attention_forms import FORMS, STREAMING, for_each, make_batch
from test_batches import Numbered
from training_fixtures import train_config

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
STREAMED = LifterConfig(dim=32, depth=2, heads=2, attention="local", attention_options={"window": 8}, streaming=True)


def walk(frames: int = 120) -> Sequence2D:
    """A body of 17 joints that drifts across the image, with joints missing now and then."""
    rng = np.random.default_rng(0)
    body = rng.uniform(-120, 120, (17, 2))
    keypoints = body + np.cumsum(rng.normal(0, 2, (frames, 17, 2)), axis=0) + (640, 360)
    scores = rng.uniform(0.2, 1, (frames, 17)) * (rng.random((frames, 17)) > 0.1)
    times = np.arange(frames) / 30
    return Sequence2D(
        keypoints.astype(np.float32), scores.astype(np.float32), times, Camera.of((1280, 720)), H36M17.name
    )


def lifter(config: LifterConfig, device: str) -> TorchLifter:
    """A random one whose answers depend on its input."""
    torch.manual_seed(0)
    network = LifterNetwork(config)
    torch.nn.init.normal_(network.head.weight, std=0.2)
    return TorchLifter(network, "random", device=device)


def on_gpu(context: Context) -> Context:
    valid = None if context.valid is None else context.valid.cuda()
    times = None if context.times is None else context.times.cuda()
    return Context(context.cos.cuda(), context.sin.cuda(), valid, times)


@for_each(FORMS)
def test_every_mechanism_equals_the_cpu(form):
    layer, batch = form.build(), make_batch()
    want = layer(batch.x, batch.context())
    got = layer.cuda()(batch.x.cuda(), on_gpu(batch.context()))
    torch.testing.assert_close(got.cpu(), want, rtol=1e-8, atol=1e-8)


@for_each(STREAMING)
def test_every_stream_equals_the_cpu(form):
    layer, batch = form.build().cuda(), make_batch()
    want = form.build()(batch.x, batch.context())
    cache, answers = layer.init_cache(len(batch.x), device="cuda", dtype=batch.x.dtype), []
    for t in range(batch.x.shape[1]):
        frame = batch.frames(slice(t, t + 1))
        y, cache = layer.step(frame.x.cuda(), on_gpu(frame.context()), cache)
        answers.append(y.cpu())
    torch.testing.assert_close(torch.cat(answers, dim=1), want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("config", [LifterConfig(dim=32, depth=2, heads=2), STREAMED], ids=["offline", "stream"])
def test_lifter_equals_the_cpu(config):
    want, got = (lifter(config, device).lift(walk()) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(got.joints, want.joints, atol=2e-4)
    np.testing.assert_allclose(got.root, want.root, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(got.sigma, want.sigma, rtol=2e-3)


def test_live_stream_equals_the_cpu():
    sequence = walk(40)
    answers = []
    for device in ("cpu", "cuda"):
        stream = LifterStream(lifter(STREAMED, device), H36M17, sequence.camera, lookahead=3)
        person = [stream.new_person()]
        rows = zip(sequence.keypoints, sequence.scores, sequence.times.tolist(), strict=True)
        steps = [stream.step(person, keypoints[None], scores[None], time)[0] for keypoints, scores, time in rows]
        answers.append(np.stack([answer for answer in steps if answer is not None]))
    np.testing.assert_allclose(answers[1], answers[0], rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_training_steps_equal_the_cpu(tmp_path, monkeypatch, precision):
    config = train_config(steps=4, precision=precision, dialects=False, consistency=0.3, workers=2)
    told: dict[str, list[float]] = {"cuda": [], "cpu": []}
    for device, losses in told.items():
        if device == "cpu":
            monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
            from accelerate.state import AcceleratorState

            AcceleratorState._reset_state(reset_partial_state=True)
        trainer = Trainer(config, Numbered(), tmp_path / device)
        trainer.run(lambda step, figures, losses=losses: losses.append(figures["loss"]))
    assert told["cuda"] == pytest.approx(told["cpu"], rel=1e-3 if precision == "fp32" else 3e-2)


def test_network_metrics_on_gpu_equal_the_cpu():
    batch = Numbered().batch(0)
    want, got = (
        lift_batch(lifter(LifterConfig(dim=32, depth=2, heads=2), device).network, batch) for device in ("cpu", "cuda")
    )
    torch.testing.assert_close(got.joints, want.joints, rtol=1e-3, atol=2e-4)
    assert TensorBatch.of(batch).to(torch.device("cuda")).mirrored().keypoints.is_cuda


def test_crops_and_letterboxes_equal_the_cpu():
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (480, 640, 3), np.uint8)
    regions = Regions(
        rng.uniform(100, 400, (5, 2)).astype(np.float32),
        rng.uniform(60, 300, (5, 2)).astype(np.float32),
        rng.uniform(-3, 3, 5).astype(np.float32),
    )
    matrices = [crops.crop_matrices(regions, (192, 256))]
    want = NetworkInput("cpu", by_torch=True).cropped([picture], matrices, (192, 256))
    got = NetworkInput("cuda").cropped([picture], matrices, (192, 256))
    assert (got.cpu() - want).abs().max() <= 1
    boxed, _ = NetworkInput("cuda").letterboxed([picture], (320, 320))
    plain, _ = NetworkInput("cpu", by_torch=True).letterboxed([picture], (320, 320))
    assert (boxed.cpu() - plain).abs().max() <= 1


def test_half_precision_moves_rtmpose_by_less_than_a_hundredth():
    torch.manual_seed(0)
    network = RTMPoseNetwork("m", 17).cuda().eval()
    samples = torch.randn(4, 3, 256, 192, device="cuda")
    with torch.inference_mode():
        want = network(samples)
        got = network.half()(samples.half())
    for one, other in zip(got, want, strict=True):
        assert (one.float() - other).norm() < 0.01 * other.norm()
