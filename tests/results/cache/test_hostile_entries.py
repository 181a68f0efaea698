"""Entries with a right hash and wrong content are removed and computed again; others' files are never read."""

import os
from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import random_result

from pose.errors import PoseError
from pose.results.cache.run import PEOPLE_PARTS, POSES_PARTS, check_people, check_poses, entry_parts
from pose.results.cache.store import MAGIC, Cache
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import BLAZEPOSE33

KEY, OTHER = "ab" * 32, "cd" * 32
SAID = {"rows": [3, 6, 0, 0, 4], "name": "a.mp4", "problems": [], "cut_short": None}


def kept(cache, key, content: bytes, said):
    with cache.create(key) as entry:
        entry.write(content)
        entry.commit(said)
    return cache.find(key)


def results(rng):
    made = [random_result(rng, index, 2) for index in range(3)]
    segments = rng.uniform(0, 100, (4, 2, 2)).astype(np.float32)
    return [replace(made[0], people=replace(made[0].people, segments=segments)), *made[1:]]


def content_of(results, names=PEOPLE_PARTS, change=lambda people: None) -> bytes:
    store = ResultStore(None, BLAZEPOSE33)
    for result in results:
        change(result.people)
        store.write(result)
    return b"".join(rows.tobytes() for name in names for rows in store.parts[name].blocks())


def checked(people, poses=None):
    """Check entries as a run does before it reads them."""
    parts = entry_parts(people, PEOPLE_PARTS, BLAZEPOSE33)
    check_people(ResultStore(None, BLAZEPOSE33, existing=parts), people.metadata)
    if poses is not None:
        parts |= entry_parts(poses, POSES_PARTS, BLAZEPOSE33)
        check_poses(ResultStore(None, BLAZEPOSE33, existing=parts))


@pytest.mark.parametrize(
    "said",
    [
        {}, SAID | {"rows": 3}, SAID | {"rows": [4, 6, 0, 0, 4]}, SAID | {"rows": [3, 5, 0, 0, 4]},
        SAID | {"rows": [3, 6]}, SAID | {"rows": [10**12, 6, 0, 0, 4]},
        SAID | {"rows": ["3", 6, 0, 0, 4]}, SAID | {"rows": [-1, 6, 0, 0, 4]},
        SAID | {"problems": [3]}, SAID | {"problems": "all"}, SAID | {"name": None}, SAID | {"cut_short": 1},
    ],
)  # fmt: skip
def test_cache_entry_metadata_is_validated(tmp_path, rng, said):
    with Cache(tmp_path) as cache:
        entry = kept(cache, KEY, content_of(results(rng)), said)
        with pytest.raises((ValueError, TypeError)):
            checked(entry)
        entry.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda people: people.ids.fill(1),
        lambda people: people.ids.__imul__(-1),
        lambda people: people.boxes.fill(1e30),
        lambda people: people.keypoints.fill(-1e30),
        lambda people: people.segments is not None and people.segments.fill(1e30),
        lambda people: object.__setattr__(people, "index", 5),
        lambda people: object.__setattr__(people, "time", float("nan")),
        lambda people: object.__setattr__(people, "time", 1.0),
    ],
)
def test_cache_entry_people_are_validated(tmp_path, rng, change):
    with Cache(tmp_path) as cache:
        entry = kept(cache, KEY, content_of(results(rng), change=change), SAID)
        with pytest.raises(ValueError, match=r"frames|ids|numbers"):
            checked(entry)
        entry.close()


def test_cached_poses_must_match_their_people(tmp_path, rng):
    with Cache(tmp_path) as cache:
        whole = results(rng)
        people = kept(cache, KEY, content_of(whole), SAID)
        poses = kept(cache, OTHER, content_of(whole, POSES_PARTS), {"rows": [6]})
        checked(people, poses)
        poses.close()
        fewer = content_of([random_result(rng, index, 1) for index in range(3)], POSES_PARTS)
        for wrong, count in ((fewer, 3), (fewer, 6), (b"", 0), (b"x" * 5000, 6)):
            poses = kept(cache, OTHER, wrong, {"rows": [count]})
            people.file.seek(len(MAGIC) + 32)
            with pytest.raises(ValueError, match=r"."):
                checked(people, poses)
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
