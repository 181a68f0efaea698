"""Time offsets from sound: one room, two microphones, and what must not count as agreement."""

import numpy as np
import pytest
import scenes

from pose.multiview.clocks import DATE, MOTION, SOUND, TIMECODE, ClockHint, clock_hints, sound_lag
from pose.multiview.rig import find_rig
from pose.video.recorded import Recorded, read_date, read_timecode
from pose.video.waveform import RATE, Waveform

NAMES = ["left", "right"]


def source(seed: int, seconds: float):
    """Noise that comes and goes, with less of high frequencies."""
    rng = np.random.default_rng(seed)
    count = int(seconds * RATE)
    loud = np.repeat((rng.random(count // 1200 + 1) < 0.35) * rng.random(count // 1200 + 1), 1200)[:count]
    spectrum = np.fft.rfft(rng.standard_normal(count) * loud) / (1 + np.fft.rfftfreq(count, 1 / RATE) / 500)
    return np.fft.irfft(spectrum, count)


def recording(sound, seed: int, first: float, seconds: float, drift: float = 0.0, snr: float = 10.0, delay=0.004):
    """What a microphone hears in a room that echoes for 0.4 s."""
    rng = np.random.default_rng(seed)
    at = first * RATE + np.arange(int(seconds * RATE)) * (1 + drift)
    heard = np.interp(at, np.arange(len(sound)), sound)
    taps = int(0.4 * RATE)
    room = 0.15 * rng.standard_normal(taps) * np.exp(-6.9 * np.arange(taps) / taps)
    room[int(delay * RATE)] += 1
    heard = np.fft.irfft(np.fft.rfft(heard, 2 * len(heard)) * np.fft.rfft(room, 2 * len(heard)))[: len(heard)]
    heard += heard.std() * 10 ** (-snr / 20) * rng.standard_normal(len(heard))
    return Waveform((0.1 * heard / heard.std()).astype(np.float32), 0.0)


@pytest.mark.parametrize(
    ("seconds", "offset", "drift", "snr"),
    [(30, 3.2, 80e-6, 10), (30, 3.2, 0, 0), (60, 40, 150e-6, 6), (9, 1.1, 0, 10)],
)
def test_sound_offset_is_found_for_two_microphones(seconds, offset, drift, snr):
    sound = source(1, seconds + 5)
    one = recording(sound, 2, 0, seconds, snr=snr)
    other = recording(sound, 3, offset, seconds - offset, drift, snr=snr, delay=0.010)
    found = sound_lag(one, other)
    middle = offset + drift * (seconds - offset) / 2
    assert found is not None
    assert found.seconds == pytest.approx(middle, abs=0.015)


@pytest.mark.parametrize("case", ["another room", "a tone", "too short", "noise"])
def test_unrelated_sounds_give_no_offset(case):
    sound = source(1, 32)
    one = recording(sound, 2, 0, 30)
    other = recording(sound, 3, 3, 25, snr=-30 if case == "noise" else 10)
    if case == "another room":
        other = recording(source(9, 32), 3, 3, 25)
    elif case == "a tone":
        tone = np.sin(2 * np.pi * 120 * np.arange(32 * RATE) / RATE)
        one, other = recording(tone, 2, 0, 30), recording(tone, 3, 3, 25)
    elif case == "too short":
        other = Waveform(other.samples[: 2 * RATE], 0.0)
    assert sound_lag(one, other) is None


def test_file_timestamps_are_read():
    assert read_date({"creation_time": "2026-05-04T10:00:00.5Z"}) == pytest.approx(1777888800.5)
    assert read_date({"creation_time": "1970-01-01T00:00:00Z"}) is None
    assert read_date({"creation_time": "yesterday", "date": "2026"}) is None
    assert read_timecode("10:22:33:15", 30.0) == pytest.approx(10 * 3600 + 22 * 60 + 33.5)
    assert read_timecode("noon", 30.0) is None


def test_file_timestamps_hint_the_offset():
    found = clock_hints([None, None], [Recorded(100.0, 5.0), Recorded(102.0, None)])
    assert found == [ClockHint(0, 1, 2.0, DATE)]
    [found] = clock_hints([None, None], [Recorded(None, 5.0), Recorded(None, 7.5)])
    assert found == ClockHint(0, 1, 2.5, TIMECODE)


@pytest.fixture(scope="module")
def filmed():
    points = scenes.person(1)
    views = scenes.cameras(people=[points], offset=1.0, seed=2)
    return views, [scenes.track(view, i, points, noise_px=1.0) for i, view in enumerate(views)]


def test_rig_reports_the_source_of_time_offsets(filmed):
    views, tracks = filmed
    hints = [ClockHint(0, 1, views[1].offset + 0.004, SOUND), ClockHint(0, 1, views[1].offset - 1.0, DATE)]
    rig = find_rig(tracks, scenes.told(views), NAMES, hints=hints)
    assert rig.clocks == [(), (MOTION, DATE, SOUND)]
    assert rig.cameras[1].offset == pytest.approx(views[1].offset, abs=0.01)
    assert not any("start" in note for note in rig.notes)


def test_sound_contradicted_by_poses_is_reported(filmed):
    views, tracks = filmed
    rig = find_rig(tracks, scenes.told(views), NAMES, hints=[ClockHint(0, 1, views[1].offset + 1.3, SOUND)])
    assert rig.clocks[1] == (MOTION,)
    assert rig.cameras[1].offset == pytest.approx(views[1].offset, abs=0.01)
    [note] = [note for note in rig.notes if "sound says" in note]
    assert note.startswith("right: ")
