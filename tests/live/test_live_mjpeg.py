"""MJPEG over HTTP: images without time stamps, from a real server, as they come."""

import threading
import time
from functools import partial
from itertools import count, islice

import numpy as np
import pytest
from live_fakes import FakePipeline
from mjpeg_camera import Shot, mjpeg_camera
from test_live_sources import read

from pose.live import LiveLoop, open_live
from pose.live import sources as module
from pose.live.sources import Reconnecting
from pose.video import arrival, open_source

SLACK = 0.7  # s, that a busy machine may take to pass an image on; what is wrong is wrong by more than twice that


def numbers(captured) -> list[int]:
    return [round(float(item.frame.image.mean())) for item in captured]


def delays(captured, sent) -> np.ndarray:
    """s from the sending of each image to the time that it was given, less the same of the first."""
    at = dict(sent)
    late = np.array([item.frame.time - at[number] for item, number in zip(captured, numbers(captured), strict=True)])
    return late - late[0]


def uneven(_connection):
    """About 17 frames/s, not 25, with a stall."""
    for number in range(200):
        yield Shot(number, 1.2 if number == 10 else (0.02, 0.1)[number % 2])


def test_mjpeg_image_without_timestamp_uses_its_arrival_time():
    with mjpeg_camera(uneven) as camera:
        source = open_live(camera.address)
        captured = read(source, count=24)
        late = delays(captured, camera.sent)
    assert isinstance(source, Reconnecting)
    # 24 frames at the 25 frames/s that FFmpeg makes up are 1.0 s, less than half of what they took: `late` would drift.
    assert np.abs(late[-1]) < SLACK
    assert captured[-1].frame.time > 2.0
    assert source.fps != 25


@pytest.mark.parametrize("keep", [False, True])
def test_recorded_mjpeg_stream_has_equal_times(keep):
    with mjpeg_camera(lambda _: islice(uneven(0), 24)) as camera, open_source(camera.address, keep=keep) as source:
        times = [frame.time for frame in source]
        again = [frame.time for frame in source.replay()] if keep else times
    assert not source.has_clock
    # At FFmpeg's 25 frames/s it would be 0.8 s in place of 2.5. The first images are read at opening.
    assert times[-1] == pytest.approx(camera.sent[23][1] - camera.sent[2][1], abs=SLACK)
    np.testing.assert_allclose(again, times, atol=1e-3)


def two_sizes(_connection):
    for number in range(200):
        yield Shot(number, 0.03, (64, 48) if number < 50 else (48, 96))


def test_mjpeg_size_change_restarts_tracking_with_a_message(monkeypatch):
    monkeypatch.setattr(module, "NOTICE_SECONDS", 3600.0)
    with mjpeg_camera(two_sizes) as camera:
        source = open_live(camera.address)
        pipeline = FakePipeline()
        loop = LiveLoop(pipeline, source, backlog=200)
        mailbox = loop.subscribe(200)
        with loop:
            seen = list(islice(mailbox, 60))
            assert loop.status().message == f"{source.name} sends 48x96 now: track ids restart"
    assert pipeline.sizes == [(64, 48), (48, 96)]
    assert [live.image.shape[:2] for live in seen] == [(48, 64)] * (50 - first(seen)) + [(96, 48)] * (10 + first(seen))
    assert {tuple(live.result.people.ids) for live in seen if live.size == (64, 48)} == {(1,)}
    assert {tuple(live.result.people.ids) for live in seen if live.size == (48, 96)} == {(2,)}
    assert len({id(live.stream) for live in seen}) == 2


def first(seen) -> int:
    return round(float(seen[0].image.mean()))


def test_mjpeg_size_message_expires(monkeypatch):
    monkeypatch.setattr(module, "NOTICE_SECONDS", 0.2)
    with mjpeg_camera(two_sizes) as camera:
        source, said = open_live(camera.address), [""]
        for _ in source.frames(threading.Event()):
            if said[-1] and not source.message:
                break
            said.append(source.message)
    assert "48x96" in said[-1]


def endless(_connection, wait=0.04):
    yield from (Shot(number % 250, wait) for number in count())


@pytest.mark.parametrize(("stale", "connections"), [(60.0, 1), (1.0, 2)])
def test_mjpeg_backlog_before_the_first_read_is_skipped(stale, connections, monkeypatch):
    """Buffered images are discarded: below MAX_UNREAD_S alone, above it with the whole connection."""
    monkeypatch.setattr(module, "MAX_UNREAD_S", stale)
    monkeypatch.setattr(arrival, "MAX_DROP_S", 60.0)  # on a busy machine it takes longer to read what waited,
    monkeypatch.setattr(arrival, "MIN_FRESH_S", 0.1)  # and a thread may not get its turn for a while
    with mjpeg_camera(partial(endless, wait=0.2)) as camera:
        source = open_live(camera.address)
        time.sleep(1.5)
        captured = read(source, count=6)
        begun = [item.at for item in captured]
        sent = camera.sent[:]
    assert camera.connections == connections
    fresh = [at for number, at in sent if number == numbers(captured)[0]]
    assert begun[0] - fresh[-1] < SLACK  # else 1.5 s
    assert np.median(np.diff([item.frame.time for item in captured])) > 0.01  # what waited comes all at once


def test_mjpeg_stalls_keep_their_duration(monkeypatch):
    monkeypatch.setattr(module, "MIN_RETRY_S", 1.5)

    def breaks_off(connection):
        yield from (Shot(number + 100 * connection) for number in range(30))

    with mjpeg_camera(breaks_off) as camera:
        captured = read(open_live(camera.address), count=40)
        late = delays(captured, camera.sent)
    assert camera.connections == 2
    assert np.abs(late).max() < 2 * SLACK  # of the wait that is to be seen
    assert np.diff([item.frame.time for item in captured]).max() > 1.5
