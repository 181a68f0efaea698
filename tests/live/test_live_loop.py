"""The loop never falls behind: what it drops, how late it is, which thread waits for which, and how it ends."""

import threading
import time

import numpy as np
import pytest
from live_fakes import FakePipeline, picture, push, settled, wait_until

from pose.errors import PoseError
from pose.live import LiveLoop, PushedFrames, meter
from pose.live.loop import BACKLOG
from pose.live.result import STALL_SECONDS


def numbers(mailbox) -> list[int]:
    return [live.result.index for live in mailbox]


def live_threads() -> list[str]:
    """`stop` does not wait long for the thread that captures: it ends by itself, on a busy machine a little later."""
    return [t.name for t in threading.enumerate() if t.name in ("capture", "people", "lift")]


def test_frames_come_out_once_in_order_with_their_image():
    source = PushedFrames("test", capacity=100)
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 50)
        settled(loop, 50)
    results = list(mailbox)
    assert [live.result.index for live in results] == list(range(50))
    for live in results:
        assert live.image[0, 0, 0] == live.result.index == live.result.people.keypoints[0, 0, 0]
        assert live.done >= live.captured
    wait_until(lambda: live_threads() == [])


def test_oldest_waiting_frame_is_dropped():
    pipeline, source = FakePipeline(), PushedFrames("test", capacity=100)
    pipeline.gate.clear()
    with LiveLoop(pipeline, source) as loop:
        mailbox = loop.subscribe(maxlen=100)
        source.push(picture(0))
        wait_until(lambda: pipeline.sizes)  # it is in the network now
        for number in range(1, 20):
            source.push(picture(number))
        wait_until(lambda: loop.status().dropped == 19 - BACKLOG)
        pipeline.gate.set()
        settled(loop, 20)
        assert loop.status().dropped == 19 - BACKLOG
    assert numbers(mailbox) == [0, *range(20 - BACKLOG, 20)]


def test_one_large_image_waits(monkeypatch):
    monkeypatch.setattr("pose.live.loop.MAX_BACKLOG_BYTES", picture(0).nbytes)
    pipeline, source = FakePipeline(), PushedFrames("test", capacity=100)
    pipeline.gate.clear()
    with LiveLoop(pipeline, source) as loop:
        mailbox = loop.subscribe(maxlen=100)
        source.push(picture(0))
        wait_until(lambda: pipeline.begun == 1)
        for number in range(1, 9):
            source.push(picture(number))
        wait_until(lambda: loop.status().dropped == 7)
        pipeline.gate.set()
        settled(loop, 9)
    assert numbers(mailbox) == [0, 8]


def test_slow_networks_drop_frames_to_stay_current():
    """Six frames come while the networks have time for one."""
    came, rounds = 6, 20
    pipeline, source = FakePipeline(), PushedFrames("test", capacity=1000)
    pipeline.turns = threading.Semaphore(0)
    with LiveLoop(pipeline, source) as loop:
        mailbox = loop.subscribe(maxlen=1000)
        for before in range(rounds):
            push(source, came)
            wait_until(lambda before=before: loop.status().frames_in == came * (before + 1))
            wait_until(lambda before=before: pipeline.begun == before + 1)
            pipeline.turns.release()
            wait_until(lambda before=before: loop.status().processed == before + 1)
        pipeline.turns.release(came * rounds)
        settled(loop, came * rounds)
        status = loop.status()
    indices = numbers(mailbox)
    assert status.processed == len(indices) == came * rounds - status.dropped
    assert status.dropped >= came * rounds - rounds - BACKLOG - 2
    # A frame waits for those before it at most, however long this goes on: without drops the last is 100 behind.
    newest = came * np.arange(1, rounds + 1) - 1
    assert (newest - indices[:rounds]).max() <= came + BACKLOG + 1


def test_frame_counts_as_processed_after_delivery():
    """Else who waits for the count and leaves, as a recording does that is stopped, misses the last frame."""
    source, counts = PushedFrames("test", capacity=100), []
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=10, notify=lambda: counts.append(loop.status().processed))
        push(source, 3)
        settled(loop, 3)
        loop.unsubscribe(mailbox)
    assert numbers(mailbox) == [0, 1, 2]
    assert counts[:3] == [0, 1, 2]


@pytest.mark.parametrize("lookahead", [0, 1, 5])
def test_lookahead_delays_results_without_loss(lookahead, monkeypatch):
    monkeypatch.setattr(meter, "RECENT_SECONDS", 3600.0)  # however long a busy machine takes
    source = PushedFrames("test", fps=25, capacity=100)
    with LiveLoop(FakePipeline(lookahead=lookahead), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 20)
        wait_until(lambda: loop.status().processed == 20 - lookahead)
    assert numbers(mailbox) == list(range(20))
    status = loop.status()
    assert status.lifter_delay_ms == pytest.approx(1000 * lookahead / status.fps)


def test_pause_discards_frames():
    class Counted(PushedFrames):
        looked_at = 0

        def frames(self, stop):
            for captured in super().frames(stop):
                yield captured
                self.looked_at += 1

    source = Counted("test", capacity=100)
    with LiveLoop(FakePipeline(), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 3)
        settled(loop, 3)
        loop.pause()
        assert "paused" in loop.status().line()
        push(source, 5)
        wait_until(lambda: source.looked_at == 8)
        loop.pause(False)
        push(source, 2)
        settled(loop, 5)
        assert loop.status().dropped == 0
    assert numbers(mailbox) == [0, 1, 2, 8, 9]


def test_source_end_ends_the_loop_after_the_last_frame():
    source = PushedFrames("test", capacity=100)
    with LiveLoop(FakePipeline(seconds=0.005, lookahead=3), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 10)
        source.close()
        assert loop.wait(60)
        assert not loop.running
    assert numbers(mailbox) == list(range(10))


def test_image_size_change_starts_a_new_session():
    pipeline, source = FakePipeline(lookahead=2), PushedFrames("test", capacity=100)
    with LiveLoop(pipeline, source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        for number in range(12):
            source.push(picture(number, (64, 48) if number < 6 else (32, 96)))
        wait_until(lambda: loop.status().frames_in == 12)
    assert pipeline.sizes == [(64, 48), (32, 96)]
    results = list(mailbox)
    assert [live.result.index for live in results] == list(range(12))
    assert [live.size for live in results] == [(64, 48)] * 6 + [(32, 96)] * 6


def test_pipeline_is_replaced_between_frames():
    first, second, source = FakePipeline(lookahead=2), FakePipeline(), PushedFrames("test", capacity=100)
    with LiveLoop(first, source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 4)
        wait_until(lambda: loop.status().processed == 2)
        loop.pipeline = second
        push(source, 3)
        wait_until(lambda: loop.status().processed == 7)
    assert (len(first.sizes), len(second.sizes)) == (1, 1)
    assert numbers(mailbox) == list(range(7))


def test_network_exception_is_raised_in_wait():
    source = PushedFrames("test", capacity=100)
    loop = LiveLoop(FakePipeline(fails_at=2), source, backlog=100).start()
    mailbox = loop.subscribe(maxlen=100)
    push(source, 5)
    with pytest.raises(RuntimeError, match="a bug in the estimator"):
        loop.wait(60)
    with pytest.raises(RuntimeError, match="a bug in the estimator"):
        loop.stop()
    assert numbers(mailbox) == [0, 1]
    wait_until(lambda: live_threads() == [])


def test_lifter_exception_ends_the_loop(monkeypatch):
    pipeline, source = FakePipeline(), PushedFrames("test", capacity=100)
    loop = LiveLoop(pipeline, source, backlog=100)
    monkeypatch.setattr("live_fakes.FakeSession.lift", lambda session, people: 1 / 0)
    loop.start()
    push(source, 50)
    with pytest.raises(ZeroDivisionError):
        loop.wait(60)
    wait_until(lambda: live_threads() == [])
    assert loop.subscribe().closed


def test_permanent_source_failure_ends_the_loop():
    class Broken(PushedFrames):
        def frames(self, stop):
            yield from super().frames(stop)
            raise PoseError("the cable was pulled")

    source = Broken("test", capacity=10)
    loop = LiveLoop(FakePipeline(), source, backlog=10).start()
    mailbox = loop.subscribe(maxlen=10)
    push(source, 3)
    source.close()
    with pytest.raises(PoseError, match="the cable was pulled"):
        loop.wait(60)
    assert numbers(mailbox) == [0, 1, 2]


def test_status_reports_counts_and_latencies(monkeypatch):
    source = PushedFrames("test", capacity=100)
    monkeypatch.setattr(meter, "RECENT_SECONDS", 3600.0)  # however long a busy machine takes
    with LiveLoop(FakePipeline(seconds=0.01), source, backlog=100) as loop:
        mailbox = loop.subscribe(maxlen=100)
        push(source, 20, interval=0.02)
        settled(loop, 20)
        status = loop.status()
    latencies = [1000 * live.latency for live in mailbox]
    assert (status.frames_in, status.processed, status.dropped, status.people) == (20, 20, 0, 1)
    assert 10 <= status.latency_ms <= status.latency_p95_ms
    assert status.latency_ms == pytest.approx(np.median(latencies))
    exact = np.percentile(latencies, 50, method="inverted_cdf")
    assert loop.meter.percentile(50) == pytest.approx(min(exact, meter.MAX_MS), abs=meter.BIN_MS)
    assert status.fps > 0
    assert "1 person | cpu | fake lifter" in status.line()


def test_mirrored_result_flips_sides_and_coordinates():
    source = PushedFrames("test")
    with LiveLoop(FakePipeline(), source) as loop:
        mailbox = loop.subscribe()
        image = picture(3)
        image[:, 0] = 200
        image[0, 0] = 3
        source.push(image)
        live = mailbox.get(timeout=60)
    assert live is not None
    mirrored = live.mirrored()
    np.testing.assert_array_equal(mirrored.image[:, -1], image[:, 0])
    np.testing.assert_array_equal(mirrored.result.people.boxes, [[33, 20, 53, 40]])  # 64 px wide: x becomes 63 - x
    np.testing.assert_array_equal(mirrored.result.people.keypoints[0, 0], [60, 3])
    np.testing.assert_array_equal(live.result.people.keypoints[0, 0], [3, 3])
    np.testing.assert_array_equal(mirrored.mirrored().result.people.boxes, live.result.people.boxes)


def test_stop_before_start_is_allowed():
    loop = LiveLoop(FakePipeline(), PushedFrames("test"))
    mailbox = loop.subscribe()
    loop.stop()
    loop.stop()
    assert list(mailbox) == []  # no caller is left waiting
    assert loop.subscribe().closed
    with loop:  # begun after its end, it ends at once
        assert loop.wait(60)
    assert loop.status().processed == 0
    wait_until(lambda: live_threads() == [])


def test_status_reports_a_frozen_source(monkeypatch):
    """A source may be connected and send nothing."""
    source = PushedFrames("test")
    with LiveLoop(FakePipeline(), source) as loop:
        assert not loop.status().is_stalled  # it has not begun
        push(source, 1)
        settled(loop, 1)
        assert not loop.status().is_stalled
        late = time.monotonic() + STALL_SECONDS + 10.0
        monkeypatch.setattr("pose.live.loop.monotonic", lambda: late)
        monkeypatch.setattr(meter, "monotonic", lambda: late)
        status = loop.status()
        assert status.is_stalled
        assert "no new result" in status.line()
        assert "no image for 13 s" in status.line()
        monkeypatch.undo()
        push(source, 1)
        settled(loop, 2)
        assert not loop.status().is_stalled
