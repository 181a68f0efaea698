"""The loss against plain loops, and what must not change it."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from pose.lifting.features import Lifted
from pose.training.config import LossWeights
from pose.training.losses import lifting_loss

B, T, J = 2, 6, 17
LIMBS = ((1, 2, 3), (4, 5, 6), (11, 12, 13), (14, 15, 16))


@pytest.fixture
def case():
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    truth, root = random(B, T, J, 3), random(B, T, 3) + torch.tensor([0, 0, 4.0])
    truth[:, :, 0] = 0
    lifted = Lifted(truth + 0.1 * random(B, T, J, 3), root + 0.2 * random(B, T, 3), 50 + 1000 * random(B, T, J).abs())
    times = torch.cumsum(torch.rand(B, T, generator=generator, dtype=torch.float64) * 0.03 + 0.01, dim=1)
    valid = torch.ones(B, T, dtype=torch.bool)
    valid[1, 4:] = False
    return lifted, truth, root, times, valid


def bend_by_hand(joints, near, middle, far) -> float:
    """2 sin(half the angle between the two bones), by the angle itself."""
    upper, lower = joints[middle] - joints[near], joints[far] - joints[middle]
    cosine = upper @ lower / np.linalg.norm(upper) / np.linalg.norm(lower)
    return 2 * np.sin(np.arccos(cosine) / 2)


def by_hand(lifted: Lifted, truth, root, times, valid) -> dict[str, float]:
    """Each part as its definition says, frame by frame."""
    parts: dict[str, list[float]] = {name: [] for name in ("position", "velocity", "shape", "root", "bend", "spread")}
    p, q, s = (x.numpy().astype(np.float64) for x in (lifted.joints, truth, lifted.sigma))
    r, g, t = lifted.root.numpy(), root.numpy(), times.numpy()
    for b, i in np.argwhere(valid.numpy()):
        error = np.linalg.norm(p[b, i] - q[b, i], axis=-1)
        parts["position"].append(error.mean())
        scale = (p[b, i] * q[b, i]).sum() / (p[b, i] ** 2).sum()
        parts["shape"].append(np.linalg.norm(scale * p[b, i] - q[b, i], axis=-1).mean())
        parts["root"].append(min(1.0, np.linalg.norm(r[b, i] - g[b, i]) / max(g[b, i, 2], 0.3)))
        parts["bend"].append(
            np.mean([abs(bend_by_hand(p[b, i], *limb) - bend_by_hand(q[b, i], *limb)) for limb in LIMBS])
        )
        parts["spread"].append((np.log(s[b, i, 1:]) + (1000 * error[1:] / s[b, i, 1:]) ** 2 / 2).mean())
        if i + 1 < T and valid[b, i + 1]:
            moved = (p[b, i + 1] - q[b, i + 1]) - (p[b, i] - q[b, i])
            frames = max(30 * (t[b, i + 1] - t[b, i]), 0.25)
            parts["velocity"].append(np.linalg.norm(moved, axis=-1).mean() / frames)
    return {name: float(np.mean(values)) for name, values in parts.items()}


def test_loss_terms_equal_their_definition(case):
    weights = LossWeights(position=0.5, velocity=2.0, shape=0.25, root=0.125, bend=0.375, spread=0.0625)
    total, parts = lifting_loss(*case, weights)
    expected = by_hand(*case)
    for name, value in expected.items():
        assert parts[name].item() == pytest.approx(value, rel=1e-4), name
    counted = asdict(weights)
    del counted["ponder"]  # of adaptive depth, which is not part of the error of the outputs
    assert total.item() == pytest.approx(sum(w * expected[n] for n, w in counted.items()), rel=1e-4)


def test_perfect_prediction_costs_only_its_sigma(case):
    lifted, truth, root, times, valid = case
    perfect = Lifted(truth, root, torch.full_like(lifted.sigma, 1.0))
    total, parts = lifting_loss(perfect, truth, root, times, valid, LossWeights())
    assert total.item() == pytest.approx(0, abs=1e-6)
    assert all(abs(part.item()) < 1e-6 for part in parts.values())


def test_the_root_mean_square_error_is_the_best_sigma(case):
    """Of one sigma for all joints: the half-normal likelihood is largest where it equals the root mean square."""
    lifted, truth, _, _, valid = case
    error = (lifted.joints - truth).norm(dim=-1)[valid][:, 1:]
    best = error.square().mean().sqrt()

    def cost(factor: float) -> float:
        sigma = torch.full_like(lifted.sigma, (1000 * factor * best).item())
        return lifting_loss(Lifted(lifted.joints, lifted.root, sigma), *case[1:], LossWeights())[1]["spread"].item()

    assert cost(1.0) < min(cost(0.9), cost(1.1))


def test_frames_without_truth_have_no_weight(case):
    lifted, truth, root, times, valid = case
    garbage = truth.clone()
    garbage[~valid] += 100
    before = lifting_loss(lifted, truth, root, times, valid, LossWeights())[0]
    after = lifting_loss(lifted, garbage, root, times, valid, LossWeights())[0]
    torch.testing.assert_close(after, before)
    assert lifting_loss(lifted, garbage, root, times, torch.ones_like(valid), LossWeights())[0] > 2 * before
