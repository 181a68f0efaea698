"""Random dialects of scores: what is seen stays seen, each sequence has its own, and some change nothing."""

import torch

from pose.training.dialects import MIN_DETECTED_SCORE, transform_scores


def drawn(scores: torch.Tensor, seed: int = 0) -> torch.Tensor:
    return transform_scores(scores, torch.Generator().manual_seed(seed))


def test_what_is_not_seen_stays_so_and_all_else_is_a_score():
    scores = torch.rand(500, 6, 17, generator=torch.Generator().manual_seed(1))
    scores[torch.rand(scores.shape, generator=torch.Generator().manual_seed(2)) < 0.2] = 0
    said = drawn(scores)
    assert torch.equal(said == 0, scores == 0)
    assert (said >= scores.clamp(max=MIN_DETECTED_SCORE)).all()
    assert said.max() <= 1


def test_a_seed_gives_the_same_dialects_and_another_gives_others():
    scores = torch.rand(20, 4, 17, generator=torch.Generator().manual_seed(1))
    assert torch.equal(drawn(scores), drawn(scores))
    assert not torch.equal(drawn(scores), drawn(scores, seed=1))


def test_all_kinds_of_dialects_occur():
    """As they are; one level for all; the order of the scores of a joint kept; and anything else."""
    scores = 0.05 + 0.9 * torch.rand(3000, 8, 17, generator=torch.Generator().manual_seed(1))
    said = drawn(scores)
    plain = (said == scores).flatten(1).all(dim=1)
    level = (said.flatten(1).amax(1) - said.flatten(1).amin(1)) < 1e-6
    one = level & (said[:, 0, 0] == 1)
    within = torch.diff(said.gather(1, scores.argsort(dim=1)), dim=1).amin(dim=(1, 2)) >= 0
    assert 0.25 < plain.float().mean() < 0.4
    assert 0.08 < level.float().mean() < 0.35
    assert 0.03 < one.float().mean() < 0.2
    assert 0.4 < within.float().mean() < 0.9
