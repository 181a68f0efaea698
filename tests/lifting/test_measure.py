"""What is measured is what `Lifter` gives: windows that are blended offline, nothing seen after the end of a stream."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pose_datasets.mocap import Clip
from pose_datasets.synthesis import evaluation_batches

from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.training.measure import calibrate, lift_batch, measure

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from motion import waving_clip


@pytest.fixture(scope="module")
def batch():
    """Two sequences of different length, both longer than a window."""
    clips: list[Clip] = [waving_clip("01", seconds=seconds) for seconds in (5.0, 3.4)]
    return next(iter(evaluation_batches(clips, condition="gt", frames=200)))


@pytest.mark.parametrize(("streaming", "lookahead"), [(False, 0), (True, 0), (True, 4)])
def test_batched_sequences_are_lifted_independently(make_lifter, batch, streaming, lookahead):
    lifter = make_lifter(streaming)
    lifted = lift_batch(lifter.network, batch, lookahead)
    lengths = batch.valid.sum(axis=1)
    assert min(lengths) > 81
    assert lengths[0] != lengths[1]
    for row, count in enumerate(lengths):
        sequence = Sequence2D(
            batch.keypoints[row, :count], batch.scores[row, :count], batch.times[row, :count],
            Camera.of((int(batch.image_size[row, 0]), int(batch.image_size[row, 1])), batch.intrinsics[row]), "h36m17",
        )  # fmt: skip
        alone = lifter.lift(sequence, lookahead)
        np.testing.assert_allclose(lifted.joints[row, :count], alone.joints, atol=1e-5)
        np.testing.assert_allclose(lifted.root[row, :count], alone.root, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(lifted.sigma[row, :count], alone.sigma, rtol=1e-4)


def test_calibration_puts_68_percent_within_one_sigma(make_lifter, batch):
    network = make_lifter().network
    calibrate(network, [[batch]])
    assert measure(network, [batch]).inside == pytest.approx(0.6827, abs=0.01)


def test_root_error_is_a_median_that_outliers_do_not_move(make_lifter, batch):
    network = make_lifter().network
    lifted = lift_batch(network, batch)
    root = lifted.root.numpy() * np.float32(1.1)
    root[:, ::9] += np.float32(1000)  # m
    found = measure(network, [replace(batch, root=root)])
    near = np.arange(root.shape[1]) % 9 > 0
    errors = 1000 * np.linalg.norm(root - lifted.root.numpy(), axis=-1)[:, near][batch.valid[:, near]]
    assert found.root_share == pytest.approx(100 * 0.1 / 1.1, rel=1e-3)
    assert np.median(errors) <= found.root < np.quantile(errors, 0.7)


def test_calibration_holds_for_easy_and_hard_input(make_lifter, batch):
    """A network that is too timid where it errs little and too bold where it errs much."""
    network = make_lifter().network
    lifted = lift_batch(network, batch)
    easy, hard = (
        replace(batch, joints=(lifted.joints.numpy() + (batch.joints - lifted.joints.numpy()) * share).astype("f4"))
        for share in (0.3, 1.0)
    )
    calibrate(network, [[easy], [hard]])
    once = network.calibration.clone()
    shares = [measure(network, [each]).inside for each in (easy, hard)]
    assert np.mean(shares) == pytest.approx(0.6827, abs=0.01)
    assert shares[0] > 0.6827 > shares[1]  # nothing in the input tells one from the other
    calibrate(network, [[easy], [hard]])
    torch.testing.assert_close(network.calibration, once)
