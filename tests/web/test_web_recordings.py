"""What the live page records, and what becomes of it."""

import asyncio
import json
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import pytest
from web_fakes import (
    PATIENCE,
    TOKEN,
    Clip,
    FakePipeline,
    receive,
    recording_begins,
    run,
    serving,
    until,
)

from pose.files import load_poses
from pose.files.json import SCHEMA_PATH
from pose.live import LiveLoop, PushedFrames
from pose.system.work_folder import alone_in
from pose.web.recording import KEPT, Recorded, Recording, Recordings


def test_recording_is_the_file_of_pose_run(tmp_path):
    async def test():
        turns = threading.Semaphore(1)
        async with serving(source=Clip(fps=50, turns=turns)) as browser, browser.live() as live:
            await receive(live, "result")
            await recording_begins(browser, live)
            for _ in range(20):
                turns.release()
                await receive(live, "result")
            loop = browser.server._shared._loop
            await until(lambda: loop.status().processed == 21)  # the page may have the last one before its recording
            await live.send_str('{"type":"record","on":false}')
            recorded, _ = await receive(live, "recorded")
            assert recorded["problem"] == ""
            assert recorded["frames"] == 20
            for file in recorded["files"]:
                async with browser.get(file["url"]) as answer:
                    data = await answer.read()
                    assert len(data) == file["bytes"]
                    assert answer.headers["Content-Disposition"] == f'attachment; filename="{file["name"]}"'
                (tmp_path / file["name"]).write_bytes(data)
            return recorded

    recorded = run(test)
    names = [file["name"] for file in recorded["files"]]
    text = json.loads((tmp_path / next(name for name in names if name.endswith(".json"))).read_text())
    jsonschema.validate(text, json.loads(SCHEMA_PATH.read_text()))
    times = [frame["time"] for frame in text["frames"]]
    assert times == pytest.approx([index / 50 for index in range(recorded["frames"])], abs=1e-5)  # misses nothing
    assert len(load_poses(tmp_path / next(name for name in names if name.endswith(".npz")))) == recorded["frames"]


def test_recording_needs_the_token_too():
    async def test():
        async with serving(source=Clip(), token=TOKEN) as browser:
            await browser.sign_in(TOKEN)
            async with browser.live() as live:
                await receive(live, "result")
                await recording_begins(browser, live)
                begun, new = browser.server._shared._loop.status().frames_in, 0
                while new < 2:  # of which the first was recorded before the second came
                    new += (await receive(live, "result"))[0]["number"] >= begun
                await live.send_str('{"type":"record","on":false}')
                (url, *_) = [file["url"] for file in (await receive(live, "recorded"))[0]["files"]]
            browser.session.cookie_jar.clear()
            async with browser.get(url) as answer:
                assert answer.status == 403

    run(test)


def test_recording_that_is_long_enough_ends_by_itself(monkeypatch):
    monkeypatch.setattr("pose.web.recording.LONGEST_SECONDS", 0.3)

    async def test():
        async with serving(source=Clip(fps=50)) as browser, browser.live() as live:
            await live.send_str('{"type":"record","on":true}')
            recorded, _ = await receive(live, "recorded")
            assert recorded["seconds"] >= 0.3
            assert recorded["problem"] == "no recording is longer than 0.3 s"
            assert len(recorded["files"]) == 2

    run(test)


def test_old_recordings_are_deleted(tmp_path):
    recordings = Recordings()
    try:
        made = []
        for number in range(KEPT + 2):
            file = tmp_path / str(number) / "poses.json"
            file.parent.mkdir()
            file.write_text("{}")
            made.append(Recorded(file.parent, {file.name: file}, 1, 0.0, ""))
            recordings.keep(made[-1])
        kept = [False] * 2 + [True] * KEPT
        assert [recordings.file(recorded.key, "poses.json") is not None for recorded in made] == kept
        assert [recorded.folder.exists() for recorded in made] == kept
    finally:
        recordings.close()


def test_deleting_an_old_recording_spares_one_of_the_same_name(monkeypatch):
    """One without frames leaves no `live-...` behind, so that the next in the same second is called the same."""
    monkeypatch.setattr(time, "strftime", lambda form: form)
    recordings = Recordings()
    try:
        for _ in range(KEPT):
            recordings.keep(recordings.start(LiveLoop(FakePipeline(), PushedFrames("test"))).stop())
        turns = threading.Semaphore(0)
        with LiveLoop(FakePipeline(), Clip(count=3, turns=turns)) as loop:
            recording = recordings.start(loop)
            turns.release(3)
            loop.wait(PATIENCE)
            recorded = recording.stop()
        assert len(recorded.files) == 2
        recordings.keep(recorded)
        for _ in range(KEPT - 1):
            recordings.keep(recordings.start(LiveLoop(FakePipeline(), PushedFrames("test"))).stop())
            assert all(path.is_file() for path in recorded.files.values())
    finally:
        recordings.close()


def test_many_begin_to_record_at_once(monkeypatch):
    monkeypatch.setattr(time, "strftime", lambda form: form)
    recordings = Recordings()
    loop = LiveLoop(FakePipeline(), PushedFrames("test"))
    together = threading.Barrier(16)

    def start(_):
        together.wait()
        return recordings.start(loop)

    try:
        with ThreadPoolExecutor(16) as threads:
            begun = list(threads.map(start, range(16)))
        recorded = [recording.stop() for recording in begun]
        assert len({one.folder for one in recorded}) == 16
        assert len({one.folder.parent for one in recorded}) == 1
    finally:
        recordings.close()


@pytest.mark.parametrize("step", ["start", "stop"])
def test_who_goes_while_a_recording_begins_or_ends_leaves_none_running(monkeypatch, step):
    reached, go_on = threading.Event(), threading.Event()
    owner = {"start": Recordings, "stop": Recording}[step]
    usual = getattr(owner, step)

    def held(self, *arguments):
        reached.set()
        assert go_on.wait(PATIENCE)
        return usual(self, *arguments)

    async def test():
        async with serving(source=Clip()) as browser, browser.live() as other:
            await receive(other, "result")
            recordings, followers = browser.server._recordings, browser.server._shared._loop._subscribers
            before = len(followers)
            async with browser.live() as live:
                await receive(live, "result")
                if step == "stop":
                    await recording_begins(browser, live)
                monkeypatch.setattr(owner, step, held)
                await live.send_str(json.dumps({"type": "record", "on": step == "start"}))
                await until(reached.is_set)
                live._response.connection.transport.abort()
                await asyncio.sleep(1)  # in which the server sees it; were it slower, it would have less to mend
            go_on.set()
            await until(lambda: recordings._finished)
            await until(lambda: len(followers) == before)

    run(test)


def test_a_recording_that_cannot_begin_is_said_and_the_poses_go_on(tmp_path, monkeypatch):
    """As where the folder for temporary files is read-only, or full."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))

    async def test():
        async with serving(source=Clip()) as browser, browser.live() as live:
            for _ in range(2):
                await live.send_str('{"type":"record","on":true}')
                recorded, _ = await receive(live, "recorded")
                assert recorded["problem"] == f"cannot record into {tmp_path / 'gone'}: no such file or directory"
                assert (recorded["frames"], recorded["files"]) == (0, [])
            await live.send_str('{"type":"record","on":false}')  # which the page may have sent meanwhile
            await receive(live, "result")

    run(test)


def test_what_a_killed_server_recorded_goes_when_the_next_one_records(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, used = tmp_path / "pose-webcam-left", tmp_path / "pose-webcam-used"
    for folder in (left, used):
        folder.mkdir()
        (folder / "poses.json").write_text("{}")
    recordings = Recordings()
    try:
        with alone_in(used):  # another server
            recordings.start(LiveLoop(FakePipeline(), PushedFrames("test"))).stop()
        assert not left.exists()
        assert used.exists()
        assert len(list(tmp_path.iterdir())) == 2
    finally:
        recordings.close()
    assert [path.name for path in tmp_path.iterdir()] == ["pose-webcam-used"]


def test_recording_without_pictures_says_so():
    async def test():
        async with serving() as browser, browser.live() as live:
            await live.send_str('{"type":"record","on":true}')
            await live.send_str('{"type":"record","on":false}')
            recorded, _ = await receive(live, "recorded")
            assert (recorded["files"], recorded["problem"]) == ([], "nothing was recorded")

    run(test)
