"""Objectives: nothing that is asked for leaks, order is order, densities are densities, and what is learnt is kept."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.training.batches import TensorBatch
from pose.training.config import ObjectiveConfig, PretrainConfig, TrainConfig
from pose.training.objectives.pretraining import (
    Mixture,
    Pretrainer,
    Pretraining,
    interpolated,
    sample_mask,
    sample_order,
)
from pose.training.objectives.sampling import continued
from pose.training.trainer import Trainer

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
sys.path.append(str(Path(__file__).parent))
from motion import waving_clip
from training_fixtures import source_of, train_config

OFFLINE = LifterConfig(dim=16, depth=2, heads=2, expansion=2)
STREAM = replace(OFFLINE, streaming=True)
FRAMES = 12


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    clips = [waving_clip(subject, seconds=3.0, speed=speed) for subject, speed in (("01", 1.0), ("39", 1.3))]
    return source_of(clips, tmp_path_factory.mktemp("mocap"))


@pytest.fixture(scope="module")
def batch(source):
    """Everything is seen, so that all of it could be asked for."""
    batch = TensorBatch.of(source.batch(0))
    return batch._replace(scores=torch.ones_like(batch.scores), valid=torch.ones_like(batch.valid))


def network(objective, model=OFFLINE, seed=0):
    torch.manual_seed(seed)
    made = Pretraining(LifterNetwork(model), ObjectiveConfig(name=objective)).eval()
    torch.nn.init.normal_(made.head.linear.weight)  # so that what it sees shows
    return made


def moved(batch, where):
    """The same batch with other coordinates at `where` (B, T, J)."""
    other = batch.keypoints + torch.where(where[..., None], 40.0, 0.0)
    return batch._replace(keypoints=other)


@torch.inference_mode()
def test_masked_targets_do_not_leak(batch):
    made = network("masked")
    hidden = sample_mask(batch.times, made.objective, torch.Generator().manual_seed(1))
    assert hidden.any()
    said = made.masked(batch, hidden).density.means
    torch.testing.assert_close(made.masked(moved(batch, hidden), hidden).density.means, said, rtol=0, atol=0)
    assert (made.masked(moved(batch, ~hidden), hidden).density.means - said).abs().max() > 1e-3


def test_masking_hides_the_requested_share_in_spans():
    times = torch.arange(81, dtype=torch.float64).expand(64, 81) / 30
    objective = ObjectiveConfig(frames=0.3, joints=0.2)
    hidden = sample_mask(times, objective, torch.Generator().manual_seed(0))
    assert float(hidden.all(dim=-1).float().mean()) == pytest.approx(0.3, abs=0.03)
    assert float(hidden.float().mean()) == pytest.approx(1 - 0.7 * 0.8, abs=0.02)
    ends = hidden.float().mean(dim=(0, 2))
    assert float(ends[:5].mean()) == pytest.approx(float(ends[38:43].mean()), abs=0.12)
    alone = sample_mask(times, replace(objective, frames=0.0, joints=0.02), torch.Generator().manual_seed(0))
    runs = [
        len(run) for row in alone.transpose(1, 2).flatten(0, 1)
        for run in "".join("x" if here else " " for here in row).strip("x").split()  # whole ones
    ]  # fmt: skip
    assert min(runs) >= 3
    assert np.mean(runs) > 8


@pytest.mark.parametrize("model", [STREAM, OFFLINE, LifterConfig(model="gru", dim=16, depth=1)],
                         ids=["stream", "offline", "gru"])  # fmt: skip
@torch.inference_mode()
def test_next_pose_depends_on_earlier_poses_only(batch, model):
    made = network("next", model)
    said = made.next(batch).density.means
    later = torch.zeros_like(batch.scores, dtype=torch.bool)
    later[:, 7:] = True
    after = made.next(moved(batch, later)).density.means
    torch.testing.assert_close(after[:, :7], said[:, :7], rtol=0, atol=1e-6)  # frame 7 from frames up to 6
    assert (after[:, 7:] - said[:, 7:]).abs().max() > 1e-3
    assert said.shape[1] == batch.times.shape[1] - 1


@torch.inference_mode()
def test_any_order_prediction_depends_on_earlier_in_order(batch):
    made = network("any-order")
    ranks = sample_order(*batch.times.shape, 0.5, torch.Generator().manual_seed(2))
    assert sorted(ranks[0].tolist()) == [-1] * 6 + list(range(6))
    said = made.any_order(batch, ranks).density.means
    for rank in range(6):
        there = (ranks == rank)[..., None].expand_as(batch.scores)
        change = (made.any_order(moved(batch, there), ranks).density.means - said).abs().amax(dim=(2, 3, 4))
        assert float(change[(ranks <= rank) & (ranks >= 0)].max()) == 0  # itself among them
        if rank < 5:
            assert float(change[ranks == rank + 1].min()) > 1e-4


@torch.inference_mode()
def test_time_order_equals_the_causal_mask(batch):
    """The content stream in the order of the frames is what `next` sees."""
    from pose.training.objectives import pretraining as module

    made = network("any-order")
    ranks = torch.arange(FRAMES).expand(batch.times.shape)
    content, context = made.lifter.tokens(batch.observe(), batch.times)
    query = made.lifter.add_time_encoding(made.query.expand_as(content), batch.times)
    past = torch.ones(FRAMES, FRAMES, dtype=torch.bool).tril()[None]
    by_time = content
    before = ranks[:, None, :] < ranks[:, :, None]
    for block in made.lifter.blocks:
        by_time = module._content(block, by_time, past, context)
        content, query = module._two_streams(block, content, query, before | torch.eye(FRAMES, dtype=bool), before,
                                             context)  # fmt: skip
    torch.testing.assert_close(content, by_time)


@torch.inference_mode()
def test_first_in_order_sees_only_its_time(batch):
    made = network("any-order")
    ranks = torch.arange(FRAMES).expand(batch.times.shape)
    everything = torch.ones_like(batch.scores, dtype=torch.bool)
    said = made.any_order(batch, ranks).density.means
    assert said.isfinite().all()
    torch.testing.assert_close(made.any_order(moved(batch, everything), ranks).density.means[:, 0], said[:, 0])


@torch.inference_mode()
def test_last_in_order_equals_a_single_masked_token(batch):
    """The query stream is one stream in which the asked token is the query and is never a key."""
    made, at = network("any-order"), 5
    ranks = torch.full(batch.times.shape, -1)
    ranks[:, at] = 0
    x, context = made.lifter.tokens(batch.observe(), batch.times)
    x = x.clone()
    x[:, at] = made.query
    visible = torch.ones(1, FRAMES, FRAMES, dtype=torch.bool)
    visible[:, :, at] = False
    for block in made.lifter.blocks:
        attention, seen = block.attention, block.norm1(x)
        q, k, v = attention.project(seen, context)
        weights = (q @ k.mT / attention.head_dim**0.5).masked_fill(~visible[:, None], -torch.inf).softmax(-1)
        x = x + attention.out_proj(attention.merge(weights @ v))
        x = x + block.ffn(block.norm2(x))
    expected = made.head(made.lifter.norm(x)).means[:, at]
    torch.testing.assert_close(made.any_order(batch, ranks).density.means[:, at], expected, rtol=1e-4, atol=1e-5)


def test_density_is_normalised_and_sampled():
    torch.manual_seed(0)
    mixture = Mixture(torch.randn(1, 3).log_softmax(-1), torch.randn(1, 3), torch.randn(1, 3) * 0.5)
    grid = torch.linspace(-60, 60, 1_200_001)[:, None].double()
    density = torch.exp(-Mixture(*(part.double() for part in mixture)).nll(grid[:, 0]))
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(1, abs=1e-5)
    assert float(torch.trapezoid(density * grid[:, 0], grid[:, 0])) == pytest.approx(float(mixture.mean()), abs=1e-4)
    many = Mixture(*(part.expand(200_000, 3) for part in mixture))
    drawn = many.sample(torch.Generator().manual_seed(1)).double()
    cumulative = torch.cumulative_trapezoid(density, grid[:, 0])
    for share in (0.1, 0.5, 0.9):
        quantile = float(grid[1:, 0][cumulative >= share][0])
        assert float((drawn < quantile).double().mean()) == pytest.approx(share, abs=0.005)


def test_interpolation_equals_numpy(batch):
    rng = np.random.default_rng(0)
    poses = rng.normal(size=(2, 9, 3, 2)).astype(np.float32)
    times = np.cumsum(rng.uniform(0.02, 0.1, (2, 9)), axis=1)
    known = rng.random((2, 9, 3)) < 0.5
    known[1, :, 2] = False
    got = interpolated(*map(torch.from_numpy, (poses, known, times))).numpy()
    for b, j, d in np.ndindex(2, 3, 2):
        at = known[b, :, j]
        expected = np.interp(times[b], times[b, at], poses[b, at, j, d]) if at.any() else np.zeros(9)
        np.testing.assert_allclose(got[b, :, j, d], expected, rtol=1e-5, atol=1e-6)


def test_unseen_and_padded_frames_are_not_targets(source):
    batch = TensorBatch.of(source.batch(1))
    scores, valid = batch.scores.clone(), batch.valid.clone()
    scores[:, 3:6, 4], valid[:, 9:] = 0, False
    batch = batch._replace(scores=scores, valid=valid)
    for objective in ("masked", "next", "any-order"):
        predicted = network(objective)(batch, torch.Generator().manual_seed(0))
        times = slice(1, None) if objective == "next" else slice(None)
        assert predicted.target_mask.any()
        assert not (predicted.target_mask & ~((scores > 0) & valid[..., None])[:, times]).any()
        assert not predicted.target_mask[..., 0].any()


@pytest.mark.parametrize("objective", ["masked", "next", "any-order"])
def test_pretraining_learns_and_initialises_a_lifter(source, tmp_path, objective):
    values = vars(train_config(model=OFFLINE, steps=25, ema=0.0, checkpoint_every=25))
    shared = {
        name: values[name] for name in ("model", "optimizer", "schedule", "steps", "ema", "precision", "log_every")
    }
    trainer = Pretrainer(PretrainConfig(**shared, objective=ObjectiveConfig(name=objective)), source, tmp_path)

    def loss():
        return np.mean([trainer.loss(TensorBatch.of(source.batch(s)), s)[0].item() for s in range(3)])

    before = loss()
    trainer.run()
    assert loss() < before - 0.3
    body = load_checkpoint(tmp_path / "last.safetensors")
    tuned = Trainer(TrainConfig(**{**shared, "steps": 1}, start_from=str(tmp_path / "last.safetensors")), source,
                    tmp_path / "tuned")  # fmt: skip
    for name, weights in tuned.bare_network.state_dict().items():
        torch.testing.assert_close(weights, body.state_dict()[name], rtol=0, atol=0)


@pytest.mark.parametrize(
    "model", [STREAM, LifterConfig(model="gru", dim=16, depth=1, streaming=True)], ids=["softmax", "gru"]
)
def test_cached_sampling_equals_the_whole_past(batch, model):
    made = network("next", model)
    drawn = continued(made, batch, 5, torch.Generator().manual_seed(3))
    assert drawn.shape == (len(batch.times), 5, 17, 2)
    torch.testing.assert_close(continued(made, batch, 2, torch.Generator().manual_seed(3)), drawn[:, :2])
    pelvis = batch.keypoints[:, -1:, 0]
    torch.testing.assert_close(drawn[:, :, 0], pelvis.expand(-1, 5, -1), rtol=1e-4, atol=1e-2)
    step = batch.times[:, -1:] - batch.times[:, -2:-1]
    anew, generator = batch, torch.Generator().manual_seed(3)
    for t in range(5):
        whole = anew._replace(
            keypoints=torch.cat([anew.keypoints, drawn[:, t : t + 1]], dim=1),
            scores=torch.cat([anew.scores, torch.ones_like(anew.scores[:, :1])], dim=1),
            times=torch.cat([anew.times, anew.times[:, -1:] + step], dim=1),
            valid=torch.cat([anew.valid, anew.valid[:, :1]], dim=1),
        )
        with torch.inference_mode():
            said, seen = made.next(whole).density, anew.observe()
        offsets = Mixture(*(part[:, -1] for part in said)).sample(generator)
        offsets[:, 0] = 0
        rays = seen.centres[:, -1, None] + seen.spreads[:, -1, None, None] * offsets
        focal, centre = batch.intrinsics[:, None, (0, 1), (0, 1)], batch.intrinsics[:, None, :2, 2]
        torch.testing.assert_close(drawn[:, t], (rays * focal + centre).float(), rtol=1e-3, atol=0.05)
        anew = whole


def test_generation_needs_the_next_pose_objective(batch):
    for made in (network("next", OFFLINE), network("masked", STREAM)):
        with pytest.raises(ValueError, match="pre-trained with the objective 'next'"):
            continued(made, batch, 2, torch.Generator())


@pytest.mark.parametrize(
    ("objective", "model", "message"),
    [
        ("next", LifterConfig(attention="fnet", dim=16, heads=2), "fnet sees the whole window"),
        ("next", LifterConfig(model="bigru", dim=16), "bigru sees the whole window"),
        ("any-order", STREAM, "needs softmax attention over the whole window"),
        ("any-order", LifterConfig(model="gru", dim=16), "needs softmax attention"),
        ("any-order", replace(OFFLINE, shared_maps=2), "needs softmax attention"),
    ],
)
def test_invalid_objectives_are_rejected(objective, model, message):
    with pytest.raises(ValueError, match=message):
        Pretraining(LifterNetwork(model), ObjectiveConfig(name=objective))


@pytest.mark.parametrize(
    "values",
    [{"name": "magic"}, {"frames": 1.0}, {"frames": 0.0, "joints": 0.0}, {"longest": 0.01}, {"asked": 0.0}],
)
def test_invalid_objective_settings_are_rejected(values):
    with pytest.raises(ValueError, match="objective"):
        ObjectiveConfig(**values)
