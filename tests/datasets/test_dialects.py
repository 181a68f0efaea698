"""Fixed dialects of scores: not seen stays not seen, and the named ones have the distribution they were measured to."""

import numpy as np
import pytest
from pose_datasets.training import (
    _FRACTIONS,
    _NETWORK_SCORES,
    _SIMULATED_SCORES,
    CHANGES,
    NETWORKS,
    apply_dialect,
    level,
)


@pytest.mark.parametrize("name", [*CHANGES, *NETWORKS])
def test_score_mapping_keeps_zeros_and_stays_in_range(name, rng):
    scores = rng.uniform(0.02, 1, (3, 40, 17)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.2] = 0
    said = apply_dialect({**CHANGES, **NETWORKS}[name], scores)
    assert said.dtype == np.float32
    assert ((said == 0) == (scores == 0)).all()
    assert said.max() <= 1


@pytest.mark.parametrize("name", _NETWORK_SCORES)
def test_score_mapping_matches_the_network_and_keeps_order(name, rng):
    ours = np.interp(rng.random(20000), _FRACTIONS, _SIMULATED_SCORES).astype(np.float32)  # distributed as ours are
    said = apply_dialect(NETWORKS[name], ours)
    np.testing.assert_allclose(np.quantile(said, _FRACTIONS[1:-1]), _NETWORK_SCORES[name][1:-1], atol=0.03)
    assert (np.diff(said[np.argsort(ours)]) >= -1e-6).all()


def test_constant_score_level_is_one_number():
    assert apply_dialect(level(0.7), np.float32([0, 0.2, 1])).tolist() == pytest.approx([0, 0.7, 0.7])
