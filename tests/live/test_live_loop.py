"""The loop never falls behind: what it drops, how late it is, who waits for whom, and how it ends."""

import threading
import time

import numpy as np
import pytest
from live_fakes import FakePipeline, picture, push, settled, wait_until

from pose.errors import PoseError
from pose.live import LiveLoop, PushedFrames
from pose.live.loop import BACKLOG


def numbers(mailbox) -> list[int]:
    return [live.result.index for live in mailbox]


def live_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name in ("capture", "people", "lift")]


def test_every_frame_comes_out_once_in_order_with_its_own_picture():
    source = PushedFrames("test", waiting=100)
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 50)
        settled(loop, 50)
    results = list(mailbox)
    assert [live.result.index for live in results] == list(range(50))
    for live in results:
        assert live.image[0, 0, 0] == live.result.index == live.result.people.keypoints[0, 0, 0]
        assert live.done >= live.captured
    assert live_threads() == []


def test_oldest_waiting_frame_is_dropped_and_never_the_newest():
    pipeline, source = FakePipeline(), PushedFrames("test", waiting=100)
    pipeline.gate.clear()
    with LiveLoop(pipeline, source) as loop:
        mailbox = loop.subscribe(maxlen=100)
        source.push(picture(0))
        wait_until(lambda: not loop._waiting._items and loop.status().frames_in == 1)  # in the network now
        for number in range(1, 20):
            source.push(picture(number))
        wait_until(lambda: loop.status().frames_in == 20)
        pipeline.gate.set()
        settled(loop, 20)
        assert loop.status().dropped == 19 - BACKLOG
    assert numbers(mailbox) == [0, *range(20 - BACKLOG, 20)]


def test_latency_stays_bounded_when_the_networks_are_too_slow():
    slow, interval = 0.03, 0.01
    source = PushedFrames("test")
    with LiveLoop(FakePipeline(seconds=slow), source) as loop:
        mailbox = loop.subscribe(maxlen=1000)
        push(source, 120, interval)
        settled(loop, 120)
        status = loop.status()
    results = list(mailbox)
    latencies = np.array([live.latency for live in results])
    took = float(np.median(np.diff([live.done for live in results])))  # at least `slow`; more on a busy machine
    assert status.dropped > 40
    assert status.processed == len(latencies) == 120 - status.dropped
    # A frame waits for those before it at most, and the last third waits no longer than the first.
    assert np.median(latencies) < (BACKLOG + 2) * took
    third = len(latencies) // 3
    assert np.median(latencies[-third:]) < np.median(latencies[:third]) + 3 * took


def test_slow_subscriber_slows_nobody():
    source = PushedFrames("test", waiting=100)
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        asleep, awake = loop.subscribe(maxlen=2), loop.subscribe(maxlen=100)
        push(source, 40)
        settled(loop, 40)
        assert loop.status().dropped == 0
    assert numbers(awake) == list(range(40))
    assert numbers(asleep) == [38, 39]
    assert asleep.dropped == 38


def test_who_leaves_gets_nothing_more():
    source = PushedFrames("test", waiting=100)
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        leaver, stayer = loop.subscribe(maxlen=10), loop.subscribe(maxlen=10)
        push(source, 3)
        settled(loop, 3)
        loop.unsubscribe(leaver)
        push(source, 2)
        settled(loop, 5)
    assert numbers(leaver) == [0, 1, 2]
    assert numbers(stayer) == [0, 1, 2, 3, 4]
    assert loop.subscribe().closed


@pytest.mark.parametrize("lookahead", [0, 1, 5])
def test_look_ahead_delays_answers_and_loses_none(lookahead):
    source = PushedFrames("test", fps=25, waiting=100)
    with LiveLoop(FakePipeline(lookahead=lookahead), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 20)
        wait_until(lambda: loop.status().processed == 20 - lookahead)
    assert numbers(mailbox) == list(range(20))
    assert loop.status().lifter_delay_ms == pytest.approx(1000 * lookahead / loop.status().fps)


def test_delay_of_the_lifter_is_known_before_the_first_frame():
    loop = LiveLoop(FakePipeline(lookahead=2), PushedFrames("test", fps=25))
    assert loop.status().lifter_delay_ms == pytest.approx(80)
    assert "lifter +80 ms" in loop.status().line()
    assert "no frame yet" in loop.status().line()


def test_pause_lets_frames_pass_unseen():
    source = PushedFrames("test", waiting=100)
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 3)
        settled(loop, 3)
        loop.pause()
        assert "paused" in loop.status().line()
        push(source, 5)
        wait_until(lambda: not source._mailbox._items)
        time.sleep(0.02)
        loop.pause(False)
        push(source, 2)
        settled(loop, 5)
        assert loop.status().dropped == 0
    assert numbers(mailbox) == [0, 1, 2, 8, 9]


def test_end_of_the_source_ends_the_loop_after_its_last_frame():
    source = PushedFrames("test", waiting=100)
    with LiveLoop(FakePipeline(seconds=0.005, lookahead=3), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 10)
        source.close()
        assert loop.wait(10)
        assert not loop.running
    assert numbers(mailbox) == list(range(10))


def test_stop_finishes_what_was_read():
    source = PushedFrames("test", waiting=100)
    loop = LiveLoop(FakePipeline(seconds=0.01, lookahead=2), source, backlog=100).start()
    mailbox = loop.subscribe(maxlen=100)
    push(source, 10)
    wait_until(lambda: loop.status().frames_in == 10)
    loop.stop()
    loop.stop()
    assert numbers(mailbox) == list(range(10))
    assert live_threads() == []


def test_pictures_of_another_size_start_a_session_of_their_own():
    pipeline, source = FakePipeline(lookahead=2), PushedFrames("test", waiting=100)
    with LiveLoop(pipeline, source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        for number in range(12):
            source.push(picture(number, (64, 48) if number < 6 else (32, 96)))
        wait_until(lambda: loop.status().frames_in == 12)
    assert pipeline.sizes == [(64, 48), (32, 96)]
    results = list(mailbox)
    assert [live.result.index for live in results] == list(range(12))
    assert [live.size for live in results] == [(64, 48)] * 6 + [(32, 96)] * 6


def test_another_pipeline_takes_over_between_two_frames():
    first, second, source = FakePipeline(lookahead=2), FakePipeline(), PushedFrames("test", waiting=100)
    with LiveLoop(first, source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 4)
        wait_until(lambda: loop.status().processed == 2)
        loop.pipeline = second
        push(source, 3)
        wait_until(lambda: loop.status().processed == 7)
    assert (len(first.sizes), len(second.sizes)) == (1, 1)
    assert numbers(mailbox) == list(range(7))


def test_a_bug_in_a_network_reaches_whoever_waits():
    source = PushedFrames("test", waiting=100)
    loop = LiveLoop(FakePipeline(fails_at=2), source, backlog=100).start()
    mailbox = loop.subscribe(maxlen=100)
    push(source, 5)
    with pytest.raises(RuntimeError, match="a bug in the estimator"):
        loop.wait(10)
    with pytest.raises(RuntimeError, match="a bug in the estimator"):
        loop.stop()
    assert numbers(mailbox) == [0, 1]
    assert live_threads() == []


def test_a_bug_in_the_lifter_ends_everything(monkeypatch):
    pipeline, source = FakePipeline(), PushedFrames("test", waiting=100)
    loop = LiveLoop(pipeline, source, backlog=100)
    monkeypatch.setattr("live_fakes.FakeSession.lift", lambda session, people: 1 / 0)
    loop.start()
    push(source, 50)
    with pytest.raises(ZeroDivisionError):
        loop.wait(10)
    wait_until(lambda: live_threads() == [])
    assert loop.subscribe().closed


def test_a_source_that_fails_for_good_ends_the_loop():
    class Broken(PushedFrames):
        def frames(self, stop):
            yield from super().frames(stop)
            raise PoseError("the cable was pulled")

    source = Broken("test", waiting=10)
    loop = LiveLoop(FakePipeline(), source, backlog=10).start()
    mailbox = loop.subscribe(maxlen=10)
    push(source, 3)
    source.close()
    with pytest.raises(PoseError, match="the cable was pulled"):
        loop.wait(10)
    assert numbers(mailbox) == [0, 1, 2]


def test_status_counts_and_measures():
    source = PushedFrames("test", waiting=100)
    with LiveLoop(FakePipeline(seconds=0.01), source, backlog=100) as loop:
        push(source, 20, interval=0.02)
        settled(loop, 20)
        status = loop.status()
    assert (status.frames_in, status.processed, status.dropped, status.people) == (20, 20, 0, 1)
    assert 10 <= status.latency_ms <= status.latency_p95_ms
    assert status.fps > 0
    assert loop.meter.percentile(50) == pytest.approx(status.latency_ms, abs=1.0)
    assert "1 person | cpu | fake lifter" in status.line()


def test_mirrored_result_is_what_a_mirror_shows():
    source = PushedFrames("test")
    with LiveLoop(FakePipeline(), source) as loop:
        mailbox = loop.subscribe()
        image = picture(3)
        image[:, 0] = 200
        image[0, 0] = 3
        source.push(image)
        live = mailbox.get(timeout=5)
    assert live is not None
    mirrored = live.mirrored()
    np.testing.assert_array_equal(mirrored.image[:, -1], image[:, 0])
    np.testing.assert_array_equal(mirrored.result.people.boxes, [[33, 20, 53, 40]])  # 64 px wide: x becomes 63 - x
    np.testing.assert_array_equal(mirrored.result.people.keypoints[0, 0], [60, 3])
    np.testing.assert_array_equal(live.result.people.keypoints[0, 0], [3, 3])
    np.testing.assert_array_equal(mirrored.mirrored().result.people.boxes, live.result.people.boxes)


def test_loop_that_never_started_can_be_stopped():
    loop = LiveLoop(FakePipeline(), PushedFrames("test"))
    mailbox = loop.subscribe()
    loop.stop()
    loop.stop()
    assert list(mailbox) == []  # whoever waits is not left waiting
    assert loop.subscribe().closed
    with loop:  # begun after its end, it ends at once
        assert loop.wait(5)
    assert loop.status().processed == 0
    assert live_threads() == []
