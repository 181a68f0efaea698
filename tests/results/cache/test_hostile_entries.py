"""Entries with a right hash and wrong content are removed and computed again; others' files are never read."""

import os

import pytest
from pose_fakes import random_result

from pose.errors import PoseError
from pose.results.cache.checks import check_people, check_poses
from pose.results.cache.store import Cache
from pose.results.records import PeopleRecords, PosesRecords

KEY, OTHER = "ab" * 32, "cd" * 32
JOINTS = 33
SAID = {"frames": 3, "name": "a.mp4", "problems": [], "cut_short": None}


def kept(cache, key, content: bytes, said):
    with cache.create(key) as entry:
        entry.write(content)
        entry.commit(said)
    return cache.find(key)


def results(rng):
    return [random_result(rng, index, 2) for index in range(3)]


def content_of(results, change=lambda people: None) -> bytes:
    for result in results:
        change(result.people)
    return b"".join(PeopleRecords(JOINTS).to_bytes(result.people) for result in results)


@pytest.mark.parametrize(
    "said",
    [
        {}, SAID | {"frames": "3"}, SAID | {"frames": 4}, SAID | {"frames": 2}, SAID | {"frames": 10**12},
        SAID | {"problems": [3]}, SAID | {"problems": "all"}, SAID | {"name": None}, SAID | {"cut_short": 1},
        SAID | {"frames": -1}, SAID | {"frames": True},
    ],
)  # fmt: skip
def test_cache_entry_metadata_is_validated(tmp_path, rng, said):
    with Cache(tmp_path) as cache:
        entry = kept(cache, KEY, content_of(results(rng)), said)
        with pytest.raises((ValueError, TypeError)):
            check_people(entry, JOINTS)
        entry.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda people: people.ids.fill(1),
        lambda people: people.ids.__imul__(-1),
        lambda people: people.boxes.fill(1e30),
        lambda people: people.keypoints.fill(-1e30),
        lambda people: object.__setattr__(people, "index", 5),
        lambda people: object.__setattr__(people, "time", float("nan")),
        lambda people: object.__setattr__(people, "time", 1.0),
    ],
)
def test_cache_entry_people_are_validated(tmp_path, rng, change):
    with Cache(tmp_path) as cache:
        entry = kept(cache, KEY, content_of(results(rng), change), SAID)
        with pytest.raises(ValueError, match=r"frames|ids|numbers"):
            check_people(entry, JOINTS)
        entry.close()


def test_cached_poses_must_match_their_people(tmp_path, rng):
    with Cache(tmp_path) as cache:
        whole = results(rng)
        people = kept(cache, KEY, content_of(whole), SAID)
        start = people.file.tell()
        check_people(people, JOINTS)
        records = PosesRecords()
        poses = kept(cache, OTHER, b"".join(records.to_bytes(one.poses) for one in whole), {"frames": 3})
        people.file.seek(start)
        check_poses(poses, people, JOINTS)
        poses.close()
        for wrong in (b"".join(records.to_bytes(random_result(rng, 0, 1).poses) for _ in range(3)), b"", b"x" * 5000):
            poses = kept(cache, OTHER, wrong, {"frames": 3})
            people.file.seek(start)
            with pytest.raises(ValueError, match=r"."):
                check_poses(poses, people, JOINTS)
            poses.close()
        people.close()


def test_pipes_links_and_foreign_entries_are_not_opened(tmp_path, monkeypatch):
    with Cache(tmp_path) as cache:
        kept(cache, OTHER, b"x", SAID).close()
        os.mkfifo(tmp_path / f"{KEY}.entry")
        assert cache.find(KEY) is None, "and nobody waits for a writer"
        (tmp_path / f"{KEY}.entry").unlink()
        (tmp_path / f"{KEY}.entry").symlink_to(tmp_path / f"{OTHER}.entry")
        assert cache.find(KEY) is None
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert cache.find(OTHER) is None
    assert (tmp_path / f"{OTHER}.entry").exists()


def test_a_cache_of_another_user_is_refused_and_entries_are_private(tmp_path, monkeypatch):
    with Cache(tmp_path) as cache:
        kept(cache, KEY, b"x", SAID).close()
    assert (tmp_path / f"{KEY}.entry").stat().st_mode & 0o077 == 0
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(PoseError, match="belongs to another user"), Cache(tmp_path):
        pass
