"""Clock offsets of cameras from sound and from the files' time stamps.

Onsets (increases of the energy in frequency bands) are correlated over all lags. Each candidate lag is then tested on
pieces of a few seconds. The test is the generalised cross-correlation with phase transform (GCC-PHAT; C. Knapp and G.
Carter, 1976), which is robust against reverberation and different microphones. The lags of the pieces must lie on one
line, which gives offset and drift of the clocks.

Sound takes 3 ms per metre, so the offset is exact to about 10 ms in a room; the images refine it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from pose.multiview.types import ViewCamera
from pose.structures.types import F32, F64
from pose.video.recorded import Recorded
from pose.video.waveform import RATE, Waveform

SOUND, TIMECODE, DATE, MOTION, GIVEN = "sound", "timecode", "date", "motion", "given"
SYNCHRONOUS = "synchronous"  # clock of a calibrated camera that people do not contradict
CAPTURE = "capture"  # source of clocks: time stamps of live images
SIGMAS = {
    SOUND: 0.015,
    TIMECODE: 0.03,
    DATE: 1.5,
    CAPTURE: 0.1,
}  # s, standard deviations by source; sound takes 3 ms per metre


@dataclass(frozen=True, slots=True)
class ClockHint:
    """Offset between two cameras' clocks, estimated from sound or time stamps."""

    first: int  # index of the first camera
    second: int  # index of the second camera
    seconds: float  # time that converts the second camera's clock to the first's when added to it
    source: str  # name of the source, a key of `SIGMAS`

    @property
    def sigma(self) -> float:
        """Standard deviation of `seconds`, s."""
        return SIGMAS[self.source]

    def agrees(self, cameras: Sequence[ViewCamera]) -> bool:
        """Return whether the cameras' clocks agree with this offset within three standard deviations."""
        off = cameras[self.second].offset - cameras[self.first].offset - self.seconds
        return abs(off) < 3 * self.sigma


def clock_hints(waves: Sequence[Waveform | None], recorded: Sequence[Recorded]) -> list[ClockHint]:
    """Return the clock offsets of all pairs of cameras that sound or time stamps give."""
    hints = []
    for second in range(len(recorded)):
        for first in range(second):
            first_wave, second_wave = waves[first], waves[second]
            found_lag = (
                sound_lag(first_wave, second_wave) if first_wave is not None and second_wave is not None else None
            )
            if found_lag is not None:
                hints.append(ClockHint(first, second, found_lag.seconds, SOUND))
            for source in (TIMECODE, DATE):
                first_stamp, second_stamp = (getattr(recorded[index], source) for index in (first, second))
                if first_stamp is not None and second_stamp is not None:
                    hints.append(ClockHint(first, second, second_stamp - first_stamp, source))
    return hints


HOP = 40  # samples between onsets: 200/s
BANDS = ((100.0, 400.0), (400.0, 1000.0), (1000.0, 2000.0), (2000.0, 3800.0))  # Hz
MAX_LAGS = 6  # maximum lags that are tested
MIN_ONSET_PEAK = 4.0  # minimum peak, in standard deviations of the onsets' correlation over the lags
MIN_OVERLAP_S = 3.0  # s, minimum overlap of two recordings
PIECE_S = 4.0  # s, maximum length of a piece
MAX_PIECES = 16  # maximum number of pieces
PIECE_SEARCH_S = 0.15  # s; search range of pieces around a candidate lag
MAX_LINE_DISTANCE_S = 0.012  # s; maximum distance from the common line
MIN_AGREEING_SHARE = 0.6  # minimum fraction of agreeing pieces
MIN_PIECE_PEAK = 7.0  # minimum peak, in standard deviations of a piece's correlation; other pieces are ignored
MIN_PIECES = 3  # minimum agreeing pieces
MAX_SECOND_PEAK = 0.97  # maximum second peak more than `MAX_LINE_DISTANCE_S` away, relative to the highest
PEAK_WIDTH = 4  # samples; width of a peak due to drift within a piece


@dataclass(frozen=True, slots=True)
class SoundLag:
    """Lag between the sound of two recordings."""

    seconds: float  # time to add to times of the second recording to get times of the first
    pieces: int  # number of pieces of the overlap, a few seconds each, whose lags agree
    agreeing_share: float  # fraction of agreeing pieces among those whose correlation has a clear peak


def sound_lag(one: Waveform, other: Waveform) -> SoundLag | None:
    """Return the lag between two recordings of one scene; None if their sound does not determine the lag."""
    for lag in _candidate_lags(onsets(one), onsets(other)):
        verified = _verified_lag(one, other, lag + one.first - other.first)
        if verified is not None:
            return verified
    return None


def onsets(wave: Waveform) -> F64:
    """Return the increase of energy, summed over frequency bands: (K,) at 200 samples/s, with mean 0."""
    window = 4 * HOP
    count = max((len(wave.samples) - window) // HOP + 1, 0)
    rise = np.zeros(count)
    if count < 2:
        return rise
    taper = np.hanning(window).astype(np.float32)
    hertz = np.fft.rfftfreq(window, 1 / RATE)
    inside = [(hertz >= low) & (hertz < high) for low, high in BANDS]
    before = np.zeros(len(BANDS))
    for first in range(0, count, 4096):  # in pieces, to bound the memory
        rows = sliding_window_view(wave.samples, window)[first * HOP :: HOP][: min(4096, count - first)]
        power = np.abs(np.fft.rfft(rows * taper, axis=1)) ** 2
        level = np.log(np.stack([power[:, band].sum(axis=1) for band in inside], axis=1) + 1e-4)
        steps = np.diff(level, axis=0, prepend=level[:1] if first == 0 else before[None])
        rise[first : first + len(rows)] = np.maximum(steps, 0).sum(axis=1)
        before = level[-1]
    rise = np.minimum(rise, np.percentile(rise, 99.5))
    centred: F64 = rise - rise.mean()
    return centred


def _candidate_lags(one: F64, other: F64) -> list[float]:
    """Return candidate lags in s of the second recording relative to the starts of both, best first."""
    n, m = len(one), len(other)
    if min(n, m) < 2:
        return []
    size = 1 << (n + m - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(one, size) * np.conj(np.fft.rfft(other, size)), size)
    correlation = np.concatenate([product[size - m + 1 :], product[:n]])
    lag = np.arange(-(m - 1), n)
    overlap = np.minimum(n, lag + m) - np.maximum(0, lag)
    step = HOP / RATE
    normalised = np.where(overlap * step >= MIN_OVERLAP_S, correlation / np.sqrt(np.maximum(overlap, 1)), -np.inf)
    spread = float(np.std(normalised[np.isfinite(normalised)])) if np.isfinite(normalised).any() else 0.0
    candidates: list[float] = []
    for index in np.argsort(-normalised)[:400]:
        if normalised[index] < MIN_ONSET_PEAK * spread:
            break
        seconds = float(lag[index] * step)
        if np.isfinite(normalised[index]) and all(
            abs(seconds - candidate) > PIECE_SEARCH_S / 2 for candidate in candidates
        ):
            candidates.append(seconds)
        if len(candidates) == MAX_LAGS:
            break
    return candidates


def _verified_lag(one: Waveform, other: Waveform, lag: float) -> SoundLag | None:
    """Test a candidate lag (s) on pieces of the overlap; return the refined lag, or None if they do not agree."""
    begin = max(one.first, other.first + lag)
    end = min(one.first + one.seconds, other.first + other.seconds + lag)
    if end - begin < MIN_OVERLAP_S:
        return None
    length = min(PIECE_S, (end - begin) / MIN_PIECES)
    count = min(int((end - begin) / length + 1e-6), MAX_PIECES)
    starts = np.linspace(begin, end - length, count)
    offs, at = list[float](), list[float]()
    for start in starts.tolist():
        lagging = _piece(_cut(one, start, length), _cut(other, start - lag, length))
        if lagging is not None:
            offs.append(lagging)
            at.append(start)
    if len(offs) < MIN_PIECES:
        return None
    off, middle = np.array(offs), (begin + end) / 2
    fit = _line(np.array(at) - middle, off)
    near = np.abs(off - fit[0] - fit[1] * (np.array(at) - middle)) < MAX_LINE_DISTANCE_S
    if near.sum() < MIN_PIECES or near.mean() < MIN_AGREEING_SHARE:
        return None
    height = float(np.median((off - fit[1] * (np.array(at) - middle))[near]))
    return SoundLag(lag + height, int(near.sum()), float(near.mean()))


def _line(at: F64, off: F64) -> tuple[float, float]:
    """Fit a line robustly to lags (K,) s, and return its offset in s and its slope (at most 300 ppm)."""
    best, score = (float(np.median(off)), 0.0), -1
    for slope in np.linspace(-300e-6, 300e-6, 25):
        flat = off - slope * at
        for height in flat:
            agreeing = int((np.abs(flat - height) < MAX_LINE_DISTANCE_S / 2).sum())
            if agreeing > score or (agreeing == score and abs(slope) < abs(best[1])):
                best, score = (float(height), float(slope)), agreeing
    return best


def _cut(wave: Waveform, start: float, seconds: float) -> F32:
    first = round((start - wave.first) * RATE)
    return wave.samples[max(first, 0) : max(first, 0) + round(seconds * RATE)]


def _piece(one: F32, other: F32) -> float | None:
    """Return the additional lag of a piece of the second recording in s, or None without a clear peak of GCC-PHAT."""
    count = min(len(one), len(other))
    if count < RATE // 2 or not one[:count].any() or not other[:count].any():
        return None
    size = 1 << (2 * count - 1).bit_length()
    cross = np.fft.rfft(one[:count], size) * np.conj(np.fft.rfft(other[:count], size))
    hertz = np.fft.rfftfreq(size, 1 / RATE)
    cross = np.where((hertz > BANDS[0][0]) & (hertz < BANDS[-1][1]), cross / np.maximum(np.abs(cross), 1e-12), 0)
    cross = cross * np.exp(-0.5 * (2 * np.pi * hertz * PEAK_WIDTH / RATE / 2) ** 2)
    correlation = np.fft.irfft(cross, size)
    reach = int(PIECE_SEARCH_S * RATE)
    values = np.abs(np.concatenate([correlation[-reach:], correlation[: reach + 1]]))
    peak = int(np.argmax(values))
    if values[peak] < MIN_PIECE_PEAK * float(np.sqrt((correlation**2).mean())):
        return None
    others = np.abs(np.arange(len(values)) - peak) > MAX_LINE_DISTANCE_S * RATE
    if values[others].max() > MAX_SECOND_PEAK * values[peak]:
        return None  # a tone has many peaks
    return (peak - reach) / RATE
