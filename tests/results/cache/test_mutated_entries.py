"""Cache entries with a right hash and changed content: played back, or removed and computed again."""

import pytest
from hypothesis import strategies as st
from mutations import damaged, other_value, quick_and_long, try_mutations
from pose_fakes import random_result
from test_hostile_entries import JOINTS, KEY, OTHER, SAID, content_of, kept, results

from pose.results.cache.checks import check_people, check_poses
from pose.results.cache.store import Cache
from pose.results.records import PeopleRecords, PosesRecords

EXPECTED = (ValueError, TypeError, OSError)  # what `CachedRun` takes for a damaged entry


@pytest.fixture
def cache(tmp_path):
    with Cache(tmp_path) as opened:
        yield opened


def mutated(data: st.DataObject, content: bytes, said: dict) -> tuple[bytes, dict]:
    if data.draw(st.booleans()):
        return damaged(data, content), said
    changed = other_value(data, said)
    return content, changed if isinstance(changed, dict) else said


@quick_and_long(20, 10_000)
def test_mutated_people(cache, rng, examples):
    whole = content_of(results(rng))

    def check(data: st.DataObject) -> None:
        entry = kept(cache, KEY, *mutated(data, whole, SAID))
        if entry is None:
            return
        place = entry.file.tell()
        try:
            check_people(entry, JOINTS)
            entry.file.seek(place)
            found = [PeopleRecords(JOINTS).read(entry.file) for _ in range(entry.metadata["frames"])]
            assert [people.index for people in found] == list(range(len(found)))
        except EXPECTED:
            return
        finally:
            entry.close()

    try_mutations(check, examples)


@quick_and_long(20, 10_000)
def test_mutated_poses(cache, rng, examples):
    whole = [random_result(rng, index, 2) for index in range(3)]
    records = PosesRecords()
    poses = b"".join(records.to_bytes(one.poses) for one in whole)
    people = kept(cache, OTHER, content_of(whole), SAID)
    place = people.file.tell()

    def check(data: st.DataObject) -> None:
        entry = kept(cache, KEY, *mutated(data, poses, {"frames": 3}))
        if entry is None:
            return
        people.file.seek(place)
        try:
            check_poses(entry, people, JOINTS)
        except EXPECTED:
            return
        finally:
            entry.close()

    try_mutations(check, examples)
    people.close()
