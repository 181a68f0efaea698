"""Attention maps and their metrics, against maps whose metrics are known."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from pose_apps.lab.command import main

from pose.lifting.config import LifterConfig
from pose.lifting.features import observe
from pose.lifting.model import LifterNetwork
from pose.training.laboratory.attention_maps import attention_maps, head_metrics, next_layer_distances

sys.path.append(str(Path(__file__).parents[2] / "lifting"))

FRAMES = 9
TIMES = torch.arange(FRAMES, dtype=torch.float64)[None] / 10


def observed(frames=FRAMES):
    keypoints, scores = torch.rand(1, frames, 17, 2) * 100, torch.ones(1, frames, 17)
    matrix = torch.tensor([[500.0, 0, 50], [0, 500, 50], [0, 0, 1]], dtype=torch.float64)[None]
    flag = torch.zeros(1, dtype=torch.bool)
    times = torch.arange(frames, dtype=torch.float64)[None] / 30
    return observe(keypoints, scores, times, matrix, flag, flag), times


@pytest.mark.parametrize("streaming", [False, True])
def test_maps_are_distributions_over_valid_frames(streaming):
    torch.manual_seed(0)
    network = LifterNetwork(LifterConfig(dim=16, depth=3, heads=2, attention="local", streaming=streaming,
                                         attention_options={"window": 3})).eval()  # fmt: skip
    observations, times = observed()
    maps = attention_maps(network, observations, times)
    assert maps.shape == (3, 1, 2, FRAMES, FRAMES)
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones(3, 1, 2, FRAMES))
    apart = torch.arange(FRAMES)[:, None] - torch.arange(FRAMES)
    outside = (apart.abs() >= 3) | ((apart < 0) & streaming)
    assert (maps[..., outside] == 0).all()
    assert (maps[..., ~outside] > 0).all()
    assert not network.blocks[0].attention._forward_pre_hooks


def test_mechanism_without_maps_is_rejected():
    network = LifterNetwork(LifterConfig(dim=16, depth=1, heads=2, attention="fnet"))
    with pytest.raises(ValueError, match="FNetAttention has no attention map"):
        attention_maps(network, *observed())


def test_map_metrics_of_known_maps_are_exact():
    equal = torch.full((1, 1, 1, FRAMES, FRAMES), 1 / FRAMES)
    alone = torch.eye(FRAMES).expand(1, 1, 1, FRAMES, FRAMES)
    spread, one = head_metrics(equal, TIMES), head_metrics(alone, TIMES)
    assert spread.entropy.item() == pytest.approx(np.log2(FRAMES))
    assert spread.seen.item() == pytest.approx(FRAMES)
    apart = np.abs(np.arange(FRAMES)[:, None] - np.arange(FRAMES)) / 10
    assert spread.reach.item() == pytest.approx(apart.mean())
    assert spread.near.item() == pytest.approx((apart < 0.15).mean())
    assert spread.rank.item() == 1
    assert (one.entropy.item(), one.seen.item(), one.reach.item(), one.near.item()) == (0, 1, 0, 1)
    assert one.rank.item() == 9


def test_map_distance_is_0_for_equal_and_1_for_disjoint_maps():
    maps = torch.zeros(2, 1, 2, FRAMES, FRAMES)
    maps[0, 0, 0], maps[0, 0, 1] = torch.eye(FRAMES), torch.eye(FRAMES).roll(1, 0)
    maps[1, 0, 0], maps[1, 0, 1] = torch.eye(FRAMES), torch.full((FRAMES, FRAMES), 1 / FRAMES)
    apart = next_layer_distances(maps)
    assert apart.shape == (1, 2, 2)
    assert apart[0, 0, 0] == 0
    assert apart[0, 1, 0] == pytest.approx(1)
    p, q = np.eye(FRAMES)[0], np.full(FRAMES, 1 / FRAMES)
    middle = (p + q) / 2
    by_hand = (np.log2(1 / middle[0]) + (q * np.log2(q / middle)).sum()) / 2
    assert apart[0, 0, 1].item() == pytest.approx(np.sqrt(by_hand))


def test_the_command_draws_and_prints_every_head(tmp_path, capsys, tiny_lifter, rng):
    clip, out = tmp_path / "clip.npz", tmp_path / "maps.png"
    np.savez(
        clip, keypoints=rng.uniform(100, 300, (40, 17, 2)), scores=np.ones((40, 17)), timestamps=np.arange(40) / 30,
        image_size=np.array([400, 400]), skeleton="coco17",
    )  # fmt: skip
    assert main(["maps", str(tiny_lifter), str(clip), "--frames", "20", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "| block | head | entropy, bits" in printed
    assert "| 1 | 1 | " in printed
    assert out.read_bytes().startswith(b"\x89PNG")
    assert main(["maps", str(tiny_lifter), str(clip), "--out", str(out)]) == 2
    assert main(["maps", str(tiny_lifter), str(clip), "--start", "39", "--out", str(tmp_path / "b.png")]) == 2
    assert "fewer than two frames" in capsys.readouterr().err
