"""What two do at the same moment: each test stops one of them at the step where the other one comes."""

import asyncio
import gc
import threading
import time
from contextlib import suppress

from aiohttp import ClientError, web
from web_fakes import PATIENCE, Clip, FakePipeline, receive, run, serving, until

from pose.errors import PoseError
from pose.live import LiveLoop, PushedFrames
from pose.live.mailbox import Mailbox
from pose.live.web import shared
from pose.live.web.feed import Feed
from pose.live.web.server import WebServer


class EndsBehind(Mailbox):
    """Another thread puts `last` and closes it just after the check that found nothing."""

    last = None

    def take(self):
        found = super().take()
        if found is None and self.last is not None:
            last, self.last = self.last, None
            self.put(last)
            self.close()
        return found


def test_the_last_result_is_not_lost_where_the_loop_ends_at_once(monkeypatch):
    seen = []

    async def test():
        loop = LiveLoop(FakePipeline(), PushedFrames("test"))
        with monkeypatch.context() as patch:
            patch.setattr("pose.live.base.Mailbox", EndsBehind)
            feed = Feed(loop, with_images=False)
            patch.setattr(feed, "_publish", lambda message, number: seen.append(number))
            patch.setattr(feed, "_message", lambda live: "")
            following = asyncio.create_task(feed.run())
            await until(lambda: loop._subscribers)
            (subscription,) = loop._subscribers
            mailbox = subscription.mailbox
            mailbox.last = result(1)
            mailbox.put(result(0))
            await following

    run(test)
    assert seen == [0, 1]


def result(index: int):
    class Live:
        class result:  # noqa: N801 - as of a `LiveResult`
            pass

    Live.result.index = index
    return Live


def test_all_clients_are_told_of_the_end_at_once(monkeypatch):
    """A client that does not answer delays no other client."""
    monkeypatch.setattr("pose.live.web.server.SHUTDOWN_SECONDS", 10 * PATIENCE)

    async def test():
        async with serving(clients=5) as browser:
            address = f"{browser.address}/live"
            guests = [
                await browser.session.ws_connect(address, headers=browser.origin, autoclose=False) for _ in range(5)
            ]
            await until(lambda: len(browser.server._sockets) == 5)
            browser.running.cancel()
            for guest in guests:
                async with asyncio.timeout(PATIENCE):
                    while (message := await guest.receive()).type.name != "CLOSE":
                        pass
                assert message.data == 1001
            for guest in guests:
                await guest.close()

    run(test)


def test_an_answer_in_the_moment_in_which_a_servers_time_to_end_is_over_is_not_an_error(monkeypatch, caplog):
    """Where the machine stands still meanwhile, aiohttp gives up the answer and has it in one turn of the loop."""
    monkeypatch.setattr("pose.live.listener.SHUTDOWN_SECONDS", 0.5)
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def late(self, request):
        asked.set()
        await may_answer.wait()
        return web.Response(status=204)

    monkeypatch.setattr(WebServer, "_session", late)

    async def test():
        async with serving() as browser, asyncio.TaskGroup() as tasks:
            tasks.create_task(ended(browser.get("/session")))
            await asked.wait()
            browser.running.cancel()
            await asyncio.sleep(0.1)  # the server waits for its answer, 0.4 s from here
            asyncio.get_running_loop().call_later(0.1, may_answer.set)
            time.sleep(1.0)

    async def ended(asking):
        with suppress(ClientError):
            async with asking:
                pass

    run(test)
    assert [record.getMessage() for record in caplog.records] == []


def test_the_first_result_is_not_missed_however_soon_it_comes(monkeypatch):
    start = LiveLoop.start

    def start_and_wait(loop):
        start(loop)
        end = time.monotonic() + PATIENCE
        while loop.status().processed < 1 and time.monotonic() < end:
            time.sleep(0.01)
        return loop

    monkeypatch.setattr(LiveLoop, "start", start_and_wait)

    async def test():
        async with serving(source=Clip(turns=threading.Semaphore(1))) as browser, browser.live() as live:
            assert (await receive(live, "result", 20))[0]["number"] == 0

    run(test)


class Unplugged(Clip):
    """It fails when it is released."""

    def frames(self, stop):
        yield from super().frames(stop)
        raise PoseError("unplugged")


def test_a_source_that_fails_while_it_is_released_is_opened_for_the_next(monkeypatch, caplog):
    monkeypatch.setattr(shared, "CLOSE_DELAY_S", 0.01)
    sources = iter([Unplugged(), Clip()])

    async def test():
        async with serving(source=lambda: next(sources)) as browser:
            async with browser.live() as live:
                await receive(live, "result")
            await until(lambda: browser.server._shared._close_task is not None)
            await until(browser.server._shared._close_task.done)
            async with browser.live() as live:
                await receive(live, "result")

    run(test)
    gc.collect()  # when asyncio says what a task failed with that was not awaited
    assert not [record for record in caplog.records if record.name == "asyncio"]
