"""Which blocks share a map, as learnt from their maps: the arithmetic of the policy, and the trainings it asks for."""

import numpy as np
import pytest
import torch
from waving import trial_setup

from pose.lifting.attention.shared_maps import MapFollower
from pose.lifting.config import LifterConfig
from pose.training.laboratory.attention_maps import layer_similarities
from pose.training.laboratory.studies import map_sharing
from pose.training.laboratory.studies.map_sharing import merged
from pose.training.laboratory.trial import Clock, OutOfTime, Setup

DEEP = {"dim": 8, "depth": 3, "heads": 2, "expansion": 1}
FEW = {"steps": 2, "frames": 9, "sequences": 2, "evaluated": 1}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    return trial_setup(tmp_path_factory.mktemp("mocap"))


def test_layer_similarity_is_1_minus_the_row_divergence(rng):
    maps = rng.dirichlet(np.ones(5), size=(3, 2, 2, 5))  # 3 layers, 2 sequences, 2 heads, 5 frames

    def bits(one, other):  # of Kullback and Leibler
        return sum(p * np.log2(p / q) for p, q in zip(one, other, strict=True))

    def divergence(one, other):
        return (bits(one, (one + other) / 2) + bits(other, (one + other) / 2)) / 2

    rows = maps.reshape(3, -1, 5)
    want = [
        [1 - np.mean([divergence(p, q) for p, q in zip(one, other, strict=True)]) for other in rows] for one in rows
    ]
    alike = layer_similarities(torch.from_numpy(maps))
    np.testing.assert_allclose(alike, want, atol=1e-12)
    assert torch.equal(alike.diagonal(), torch.ones(3, dtype=torch.float64))
    apart = torch.stack([torch.eye(4), torch.eye(4).roll(1, 0)])[:, None, None]
    assert layer_similarities(apart)[0, 1] == 0  # nothing in common


@pytest.mark.parametrize(
    ("groups", "pairs", "threshold", "want"),
    [
        ([1, 1, 1, 1], {}, 0.5, [1, 1, 1, 1]),
        ([1, 1, 1, 1], {(1, 2): 0.5}, 0.5, [1, 2, 1]),  # as alike as asked for is enough
        ([1, 1, 1, 1], {(0, 1): 0.9, (2, 3): 0.9}, 0.5, [2, 2]),
        ([1, 1, 1], {(0, 1): 0.9, (1, 2): 0.9}, 0.5, [2, 1]),  # the third is not alike the first
        ([1, 1, 1], {(0, 1): 0.9, (1, 2): 0.9, (0, 2): 0.6}, 0.5, [3]),
        ([1, 1, 1], {(0, 2): 1.0}, 0.5, [1, 1, 1]),  # no neighbours
        ([2, 1, 3], {(1, 2): 0.7}, 0.6, [2, 4]),  # groups of an earlier round stay together
    ],
)
def test_adjacent_similar_layers_are_merged(groups, pairs, threshold, want):
    alike = torch.eye(len(groups))
    for (one, other), value in pairs.items():
        alike[one, other] = alike[other, one] = value
    assert merged(groups, alike, threshold) == want


def test_merged_blocks_use_the_first_map():
    network = map_sharing.shared(LifterConfig(**DEEP), [1, 2], 0)
    first, leader, follower = (block.attention for block in network.blocks)
    assert isinstance(follower, MapFollower)
    assert follower.leader is leader
    assert not isinstance(first, MapFollower)
    again = map_sharing.shared(LifterConfig(**DEEP), [1, 2], 0)
    for one, other in zip(network.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("threshold", "trainings", "maps"), [(0.0, 2, 1), (1.0, 1, 3)])
def test_map_sharing_trains_until_no_merge(given, threshold, trainings, maps):
    settings = map_sharing.MapSharingSettings(model=DEEP, threshold=threshold, **FEW)
    outcome = map_sharing.run(settings, given)
    assert (outcome.results["trainings"], outcome.results["maps"]) == (trainings, maps)
    assert outcome.examples == trainings * 2 * 2
    assert 0 < outcome.results["alike"] < 1
    assert (outcome.results["gt"] == outcome.results["gt_before"]) == (trainings == 1)
    assert list(given.state.parent.glob("*.pt")) == []


def test_map_sharing_resumes_after_its_budget(given, monkeypatch):
    settings = map_sharing.MapSharingSettings(model=DEEP, threshold=0.0, **FEW)
    want = map_sharing.run(settings, given).results
    checks = iter([None, None, None, OutOfTime()])  # in the second training

    class Budget(Clock):
        def check(self):
            if error := next(checks, None):
                raise error

    with pytest.raises(OutOfTime):
        map_sharing.run(settings, Setup(0, Budget(), given.motion, given.state))
    assert len(list(given.state.parent.glob("*.pt"))) == 2
    results = map_sharing.run(settings, given).results
    for name in ("gt", "gt_before", "alike", "maps"):
        assert results[name] == want[name]


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"threshold": 1.5}, "threshold: must be 0 to 1"),
        ({"model": {**DEEP, "shared_maps": 3}}, "shared_maps must be 1"),
        ({"model": {**DEEP, "tokens": "joints"}}, "tokens must be frames"),
    ],
)
def test_unmergeable_layers_are_reported(changed, complaint):
    with pytest.raises(ValueError, match=complaint):
        map_sharing.MapSharingSettings(**({"model": DEEP} | changed))
