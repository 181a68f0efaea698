"""The cache on the disk: what is in it is whole and true, whatever happens to processes and files."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pose_fakes import random_result

from pose.errors import PoseError
from pose.results.cache.run import PEOPLE_PARTS, POSES_PARTS, check_people, check_poses, entry_parts
from pose.results.cache.store import MAGIC, Cache, open_cache
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import BLAZEPOSE33
from pose.utils.work_folder import PREFIX

KEY, OTHER = "ab" * 32, "cd" * 32


def keep(cache: Cache, key: str, content: bytes, metadata: dict | None = None) -> None:
    with cache.create(key) as entry:
        entry.write(content)
        entry.commit(metadata or {})


def content(cache: Cache, key: str) -> bytes | None:
    entry = cache.find(key)
    if entry is None:
        return None
    with entry.file:
        return entry.file.read()


def test_stored_entry_is_found(tmp_path):
    with Cache(tmp_path / "cache") as cache:
        assert cache.find(KEY) is None
        keep(cache, KEY, b"people", {"frames": 3})
        entry = cache.find(KEY)
        assert entry is not None
        assert entry.metadata == {"frames": 3}
        assert entry.file.read(6) == b"people"
        entry.close()
        assert cache.find(OTHER) is None
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"{KEY}.entry"]


@pytest.mark.parametrize("end", ["without commit", "error"])
def test_uncommitted_entry_is_not_stored(tmp_path, end):
    with Cache(tmp_path) as cache:
        try:
            with cache.create(KEY) as entry:
                entry.write(b"half")
                if end == "error":
                    raise ValueError
        except ValueError:
            pass
        assert cache.find(KEY) is None
        assert cache.problem is None
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=60)
@given(place=st.floats(0, 0.999), change=st.integers(1, 255), cut=st.booleans())
def test_damaged_entry_is_never_returned(tmp_path_factory, place, change, cut):
    with Cache(tmp_path_factory.mktemp("cache")) as cache:
        keep(cache, KEY, bytes(range(200)), {"frames": 3})
        path = cache.folder / f"{KEY}.entry"
        data = bytearray(path.read_bytes())
        at = int(place * len(data))
        if cut:
            del data[at:]
        else:
            data[at] ^= change
        path.write_bytes(data)
        assert cache.find(KEY) is None
        assert path.exists() == (not cut and at < len(MAGIC)), "without the mark nobody knows who wrote it"
        keep(cache, KEY, b"again")
        assert (content(cache, KEY) or b"").startswith(b"again")


def test_least_recently_used_entry_is_evicted_first(tmp_path):
    keys = [f"{number:02x}" * 32 for number in range(4)]
    with Cache(tmp_path, max_bytes=3500) as cache:
        for age, key in zip((30, 20, 10), keys, strict=False):
            keep(cache, key, bytes(1000))
            past = time.time() - age
            os.utime(tmp_path / f"{key}.entry", (past, past))
        cache.find(keys[0]).close()  # used now
        keep(cache, keys[3], bytes(1000))
        assert [content(cache, key) is not None for key in keys] == [True, False, True, True]
        keep(cache, OTHER, bytes(5000))  # alone more than all may be
        assert not list(tmp_path.glob("*.entry"))


def test_eviction_removes_only_cache_entries(tmp_path):
    """Whatever else lies in the folder is not the cache's, whatever its name."""
    others = ["notes.entry", f"{OTHER}.entry", "thesis.entry"]
    for name in others:
        (tmp_path / name).write_bytes(bytes(2000))
    with Cache(tmp_path, max_bytes=1500) as cache:
        keep(cache, KEY, bytes(1000))
        keep(cache, "ef" * 32, bytes(1000))
    assert {path.name for path in tmp_path.iterdir()} == {*others, f"{'ef' * 32}.entry"}


def test_full_disk_skips_the_cache_entry(tmp_path, room_for):
    with Cache(tmp_path) as cache:
        with room_for(10_000):
            keep(cache, KEY, bytes(100_000))
        assert cache.find(KEY) is None
        assert cache.problem == f"{tmp_path}: File too large"
    assert list(tmp_path.iterdir()) == []


def test_cache_path_that_is_a_file_is_rejected(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PoseError, match=r"--cache: .*file is not a folder; choose another, or off"):
        open_cache(str(tmp_path / "file"), 1.0)


WRITER = """
import sys, time
from pathlib import Path
from pose.results.cache.store import Cache
with Cache(Path(sys.argv[1])) as cache, cache.create("ab" * 32) as entry:
    entry.write(bytes(100_000))
    print("half", flush=True)
    time.sleep(600)
"""


def test_only_leftovers_of_killed_processes_are_removed(tmp_path):
    living, killed = (
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    with living, killed:
        for process in (living, killed):
            assert process.stdout.readline() == "half\n"
        assert len(list(tmp_path.glob(f"{PREFIX}*"))) == 2
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with Cache(tmp_path) as cache:
            assert len(list(tmp_path.glob(f"{PREFIX}*"))) == 2  # the living one's and this one's
            assert cache.find(KEY) is None
        assert len(list(tmp_path.glob(f"{PREFIX}*"))) == 1
        living.kill()


MANY = """
import sys
from pathlib import Path
from pose.results.cache.store import Cache
for turn in range(30):
    with Cache(Path(sys.argv[1]), max_bytes=6000) as cache:
        key = f"{turn % 5:02x}" * 32
        entry = cache.find(key)
        if entry is not None:
            with entry.file:
                assert entry.file.read(1000) == bytes([turn % 5]) * 1000
            continue
        with cache.create(key) as new:
            new.write(bytes([turn % 5]) * 1000)
            new.commit({})
        assert cache.problem is None, cache.problem
"""


def test_several_processes_share_a_cache(tmp_path):
    processes = [subprocess.Popen([sys.executable, "-c", MANY, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(400) for process in processes] == [0, 0, 0]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".entry"] * 5


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
