"""The journal of a run: an interrupted run continues without its networks, and its results are the same."""

import numpy as np
import pytest

from pose.config import load_preset
from pose.networks.journal import Journal, JournalledDetector, JournalledEstimator
from pose.pipeline import Pipeline
from pose.results.cache import open_cache
from pose.results.cache.run import CachedRun
from pose.structures.types import Boxes, Keypoints2D, Regions
from pose.video import open_source


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


@pytest.mark.usefixtures("at_hand")
def test_an_interrupted_run_has_the_results_of_a_whole_one(videos, tmp_path, monkeypatch):
    calls = []
    for kind in (JournalledDetector, JournalledEstimator):
        compute = "detect" if kind is JournalledDetector else "estimate"

        def init(self, network, journal, kind=kind, compute=compute, before=kind.__init__):
            before(self, network, journal)
            inner = getattr(network, compute)
            setattr(network, compute, lambda *given: calls.append(compute) or inner(*given))

        monkeypatch.setattr(kind, "__init__", init)
    pipeline = Pipeline(load_preset("fast"), lazy=True)
    journal = tmp_path / "journal"

    def run():
        calls.clear()
        with open_source(str(videos / "street.mp4")) as source, open_cache(str(tmp_path / "cache")) as cache:
            return list(CachedRun(pipeline, source, cache, journal=journal).results())  # not kept, as if killed

    whole, every = run(), len(calls)
    content = journal.read_bytes()
    journal.write_bytes(content[: len(content) // 2])
    continued = run()
    assert 0 < len(calls) < every
    assert journal.read_bytes() == content
    for one, two in zip(whole, continued, strict=True):
        assert np.array_equal(one.people.keypoints, two.people.keypoints)
        assert np.array_equal(one.people.ids, two.people.ids)
        assert np.array_equal(one.poses.joints, two.poses.joints)
