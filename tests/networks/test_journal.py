"""The journal of a run: an interrupted run continues without its networks, and its results are the same."""

import numpy as np
import pytest

from pose.networks.journal import Journal
from pose.structures.types import Boxes, Keypoints2D, Regions


def boxes(rng, people, regions):
    rows = Regions(*(rng.random(shape).astype(np.float32) for shape in ((people, 2), (people, 2), people)))
    corners, scores = (rng.random(shape).astype(np.float32) for shape in ((people, 4), people))
    return Boxes(corners, scores, rows if regions else None)


def keypoints(rng, people):
    shapes = (people, 5, 2), (people, 5), people
    return Keypoints2D(*(rng.random(shape).astype(np.float32) for shape in shapes), boxes(rng, people, True).regions)


def same(one, two):
    return repr(one) == repr(two)


@pytest.mark.parametrize("kept", [1.0, 0.999, 0.6, 0.0])
def test_a_run_continues_where_its_journal_ends(tmp_path, rng, kept):
    calls = [(Boxes, [boxes(rng, n, n % 2 == 1)]) if n % 3 else (Keypoints2D, [keypoints(rng, n)]) for n in range(12)]
    path = tmp_path / "journal"
    with Journal(path, "run") as journal:
        for kind, answer in calls:
            journal.answers(kind, lambda answer=answer: answer)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])  # the end was not written
    computed = []
    with Journal(path, "run") as journal:
        for number, (kind, answer) in enumerate(calls):
            found = journal.answers(kind, lambda number=number, answer=answer: computed.append(number) or answer)
            assert same(found, answer)
    assert computed == list(range(12 - len(computed), 12))
    assert len(computed) == {1.0: 0, 0.999: 1, 0.0: 12}.get(kept, len(computed))
    assert 0 < len(computed) < 12 or kept in (0.0, 1.0)
    assert path.read_bytes() == whole


def test_the_journal_of_another_run_is_not_used(tmp_path, rng):
    path, old, new = tmp_path / "journal", [boxes(rng, 1, True)], [boxes(rng, 2, False)]
    with Journal(path, "one") as journal:
        journal.answers(Boxes, lambda: old)
    with Journal(path, "two") as journal:
        assert journal.answers(Boxes, lambda: new) is new
