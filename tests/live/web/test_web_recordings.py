"""What the live page records, and what becomes of it."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import av
import jsonschema
import pytest
from web_fakes import (
    PATIENCE,
    TOKEN,
    Browser,
    Clip,
    FakePipeline,
    closed,
    picture_message,
    receive,
    recording_begins,
    run,
    serving,
    until,
)

from pose.errors import PoseError
from pose.live import LiveLoop, PushedFrames
from pose.live.web.recording import ALL_BROWSERS, MAX_RECORDINGS, FinishedRecording, RecordingStore
from pose.results import load_poses
from pose.results.json import SCHEMA_PATH


def test_recording_equals_the_pose_run_format(tmp_path):
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
    assert {name.removeprefix(f"{recorded['name']}-") for name in names} == {"video.mp4", "poses.json", "poses.npz"}
    with av.open(str(tmp_path / f"{recorded['name']}-video.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) == recorded["frames"]


def test_download_and_studio_of_a_recording_need_the_token():
    async def studio(folder):
        if not (folder / "poses.npz").is_file():
            raise PoseError("no result")
        return f"http://127.0.0.1:1/#{folder.name}"

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
            to_studio = f"{browser.address}{url.rpartition('/')[0]}/studio"
            async with browser.session.post(to_studio, headers=browser.origin) as answer:
                assert answer.status == 403  # this server was started without one
            browser.server._studio = studio
            async with browser.session.post(to_studio, headers=browser.origin) as answer:
                assert (await answer.json())["address"].startswith("http://127.0.0.1:1/#live-")
            for origin in ({}, {"Origin": "http://evil.example"}):
                async with browser.session.post(to_studio, headers=origin) as answer:
                    assert answer.status == 403
            browser.session.cookie_jar.clear()
            async with browser.session.post(to_studio, headers=browser.origin) as answer:
                assert answer.status == 403
            async with browser.get(url) as answer:
                assert answer.status == 403

    run(test)


def test_recording_ends_at_its_maximum_length(monkeypatch):
    monkeypatch.setattr("pose.live.web.recording.MAX_DURATION_S", 0.3)

    async def test():
        async with serving(source=Clip(fps=50)) as browser, browser.live() as live:
            await live.send_str('{"type":"record","on":true}')
            recorded, _ = await receive(live, "recorded")
            assert recorded["seconds"] >= 0.3
            assert recorded["problem"] == "stopped at the maximum length of 0.3 s"
            assert len(recorded["files"]) == 3

    run(test)


def clips(browser_turns: list[threading.Semaphore], count: int) -> Callable[[], Clip]:
    """A source of `count` images each time it is opened, an image for each release of the newest semaphore."""

    def source() -> Clip:
        browser_turns.append(threading.Semaphore(0))
        return Clip(count=count, turns=browser_turns[-1])

    return source


async def listing(browser: Browser) -> list[dict]:
    """What a browser that connects now is offered."""
    async with browser.live() as live:
        return (await receive(live, "recordings"))[0]["recordings"]


def test_recording_is_kept_when_a_looped_clip_ends(tmp_path):
    turns: list[threading.Semaphore] = []

    async def test():
        async with serving(source=clips(turns, 5), out=str(tmp_path)) as browser:
            for number in range(2):
                async with browser.live() as live:
                    assert (await receive(live, "hello"))[0]["replay"] is True
                    await recording_begins(browser, live)
                    turns[-1].release(5)
                    recorded, _ = await receive(live, "recorded")
                    assert (recorded["frames"], recorded["problem"]) == (5, "")
                    assert await closed(live) == (1000, "The video has ended.")
                offered = await listing(browser)
                assert [recording["frames"] for recording in offered] == [5] * (number + 1)
                await until(lambda: browser.server._shared._loop is not None)
                turns[-1].release(5)
                await until(lambda: browser.server._shared._loop is None)
            assert not browser.running.done()

    run(test)
    assert len(list(tmp_path.glob("live-*/poses.npz"))) == 2


def test_once_option_ends_the_server_with_the_clip(tmp_path):
    turns: list[threading.Semaphore] = []

    async def test():
        async with serving(source=clips(turns, 5), out=str(tmp_path), once=True) as browser, browser.live() as live:
            assert (await receive(live, "hello"))[0]["replay"] is False
            await recording_begins(browser, live)
            turns[-1].release(5)
            await asyncio.wait([browser.running], timeout=PATIENCE)
            assert browser.running.done()

    run(test)
    (poses,) = tmp_path.glob("live-*/poses.npz")
    assert len(load_poses(poses)) == 5


def test_browser_recording_is_private_and_survives_a_reload():
    async def test():
        async with serving() as browser:
            async with browser.live() as live:
                await receive(live, "hello")
                await recording_begins(browser, live)
                for number in range(3):
                    await live.send_bytes(picture_message(number / 30))
                    await receive(live, "result")
            await until(browser.server.finished_recordings)  # the page was closed
            (offered,) = await listing(browser)
            assert offered["frames"] in (2, 3)  # the page may have the last one before its recording
            assert len(offered["files"]) == 3
            assert 0 < offered["expires_in"] <= 24 * 3600
            browser.session.cookie_jar.clear()
            assert await listing(browser) == []

    run(test)


def test_recording_is_offered_until_downloaded():
    async def test():
        async with serving(source=Clip(fps=50)) as browser:
            async with browser.live() as live:
                await recording_begins(browser, live)
                for _ in range(3):
                    await receive(live, "result")
            await until(browser.server.finished_recordings)
            (offered,) = await listing(browser)
            for number, file in enumerate(offered["files"]):
                assert len(await listing(browser)) == 1, number
                async with browser.get(file["url"], Range="bytes=0-3") as part:
                    assert len(await part.read()) == 4
                async with browser.session.head(browser.address + file["url"]) as head:
                    assert head.status == 200
                assert len(await listing(browser)) == 1, number
                async with browser.get(file["url"]) as whole:
                    assert len(await whole.read()) == file["bytes"]
            assert await listing(browser) == []
            async with browser.get(offered["files"][0]["url"]) as again:
                assert again.status == 200  # kept until it expires

    run(test)


def kept_in(folder: Path, *, expires: float = 1e12) -> FinishedRecording:
    folder.mkdir()
    files = {f"{folder.name}-{name}": folder / name for name in ("poses.json", "poses.npz")}
    for path in files.values():
        path.write_text("{}")
    return FinishedRecording(ALL_BROWSERS, folder, files, 1, 0.0, "", expires)


def store_in(folder: Path) -> RecordingStore:
    return RecordingStore(folder, 3600.0, lambda kept: None)


def test_expired_recording_deletes_only_its_files(tmp_path):
    async def test():
        store = store_in(tmp_path)
        for name, expires in (("old", 1.0), ("used", 1.0), ("new", 1e12)):
            kept = kept_in(tmp_path / name, expires=expires)
            store._finished_by_key[kept.key] = kept
        (tmp_path / "used" / "notes.txt").write_text("mine")
        assert [kept.folder.name for kept in store.listed(ALL_BROWSERS)] == ["new"]
        assert await store.newer_version(0) > 0

    run(test)
    assert not (tmp_path / "old").exists()
    assert [path.name for path in (tmp_path / "used").iterdir()] == ["notes.txt"]
    assert len(list((tmp_path / "new").iterdir())) == 2


def test_undownloaded_recording_is_not_deleted(tmp_path):
    async def test():
        store, loop = store_in(tmp_path), LiveLoop(FakePipeline(), PushedFrames("test"))
        kept = [kept_in(tmp_path / f"kept-{number}") for number in range(MAX_RECORDINGS)]
        store._finished_by_key = {one.key: one for one in kept}
        with pytest.raises(PoseError, match=f"at most {MAX_RECORDINGS} recordings: download one first"):
            await store.start(loop, ALL_BROWSERS)
        kept[7].downloaded = set(kept[7].files)
        await store.finish(await store.start(loop, ALL_BROWSERS))
        assert [one.folder.exists() for one in kept] == [number != 7 for number in range(MAX_RECORDINGS)]

    run(test)


@pytest.mark.parametrize("step", ["start", "finish"])
def test_client_leaving_ends_its_recording(monkeypatch, step):
    reached, go_on = asyncio.Event(), asyncio.Event()
    usual = getattr(RecordingStore, step)

    async def held(self, *arguments):
        reached.set()
        await go_on.wait()
        return await usual(self, *arguments)

    async def test():
        turns = threading.Semaphore(0)
        async with serving(source=Clip(turns=turns)) as browser, browser.live() as other:
            turns.release()
            await receive(other, "result")
            store, followers = browser.server._store, browser.server._shared._loop._subscribers
            before = len(followers)
            async with browser.live() as live:
                if step == "finish":
                    await recording_begins(browser, live)
                    turns.release()
                    await receive(other, "result")
                monkeypatch.setattr(RecordingStore, step, held)
                await live.send_str(json.dumps({"type": "record", "on": step == "start"}))
                await reached.wait()
                live._response.connection.transport.abort()
                await asyncio.sleep(0.2)  # in which the server sees it; if it is slower, the test is easier
            go_on.set()
            await until(lambda: not store._running and len(followers) == before)
            if step == "finish":
                await until(browser.server.finished_recordings)
            assert not store._running

    run(test)


def test_failed_recording_start_is_reported(tmp_path):
    """As where the folder is read-only, or the disk full."""

    async def test():
        async with serving(source=Clip(), out=str(tmp_path / "file")) as browser, browser.live() as live:
            (tmp_path / "file").write_text("")  # after the start, which refuses a file
            for _ in range(2):
                await live.send_str('{"type":"record","on":true}')
                recorded, _ = await receive(live, "recorded")
                assert recorded["problem"] == f"cannot record into {tmp_path / 'file'}: not a directory"
                assert (recorded["frames"], recorded["files"]) == (0, [])
            await live.send_str('{"type":"record","on":false}')  # which the page may have sent meanwhile
            await receive(live, "result")

    run(test)


def test_an_aborted_download_is_not_logged(tmp_path, caplog):
    async def test():
        async with serving(source=Clip(fps=50)) as browser, browser.live() as live:
            await recording_begins(browser, live)
            await receive(live, "result")
            await live.send_str('{"type":"record","on":false}')
            recorded, _ = await receive(live, "recorded")
            store = browser.server._recordings
            url = recorded["files"][0]["url"]
            _, path = store.find(*url.split("/")[-2:])
            with path.open("ab") as file:
                file.truncate(200 << 20)
            for _ in range(3):
                async with browser.get(url) as answer:
                    await answer.content.readexactly(1000)
                    answer.connection.transport.abort()
            await asyncio.sleep(0.5)

    run(test)
    assert [record.getMessage() for record in caplog.records] == []
