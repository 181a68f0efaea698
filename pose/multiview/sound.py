"""Time offsets between cameras from their sound.

Onsets (increases of the energy in frequency bands) are correlated over all lags. Each candidate lag is then tested on
pieces of a few seconds. The test is the generalised cross-correlation with phase transform (GCC-PHAT; C. Knapp and G.
Carter, 1976), which is robust against reverberation and different microphones. The lags of the pieces must lie on one
line, which gives offset and drift of the clocks.

Sound takes 3 ms per metre, so the offset is exact to about 10 ms in a room; the images refine it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from pose.types import F32, F64
from pose.video.waveform import RATE, Waveform

HOP = 40  # samples between onsets: 200/s
BANDS = ((100.0, 400.0), (400.0, 1000.0), (1000.0, 2000.0), (2000.0, 3800.0))  # Hz
MOST_LAGS = 6  # maximum lags that are tested
LEAST_ONSETS = 4.0  # minimum peak, in standard deviations of the onsets' correlation over the lags
LEAST_OVERLAP = 3.0  # s, minimum overlap of two recordings
PIECE = 4.0  # s, maximum length of a piece
MOST_PIECES = 16  # maximum number of pieces
REACH = 0.15  # s; search range of pieces around a candidate lag
AGREE = 0.012  # s; maximum distance from the common line
LEAST_SHARE = 0.6  # minimum fraction of agreeing pieces
LEAST_PEAK = 7.0  # minimum peak, in standard deviations of a piece's correlation; other pieces are ignored
FEWEST = 3  # minimum agreeing pieces
UNIQUE = 0.97  # maximum second peak more than `AGREE` away, relative to the highest
SMOOTH = 4  # samples; width of a peak due to drift within a piece


@dataclass(frozen=True, slots=True)
class HeardLag:
    """Lag between the sound of two recordings.

    Attributes:
        seconds: Time that converts the second camera's clock to the first's when added to it, at the middle of the
            overlap.
        pieces: Number of pieces whose lags agree.
        share: Fraction of agreeing pieces among those with a clear peak.
    """

    seconds: float
    pieces: int
    share: float


def heard_lag(one: Waveform, other: Waveform) -> HeardLag | None:
    """Return the lag between two recordings of one scene; None if their sound does not determine the lag."""
    for lag in _likely(onsets(one), onsets(other)):
        found = _tested(one, other, lag + one.first - other.first)
        if found is not None:
            return found
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


def _likely(one: F64, other: F64) -> list[float]:
    """Return candidate lags of the second recording relative to the starts of both, s, best first.

    Args:
        one: (K,) onsets of the first recording.
        other: Onsets of the second recording.
    """
    n, m = len(one), len(other)
    if min(n, m) < 2:
        return []
    size = 1 << (n + m - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(one, size) * np.conj(np.fft.rfft(other, size)), size)
    together = np.concatenate([product[size - m + 1 :], product[:n]])
    lag = np.arange(-(m - 1), n)
    overlap = np.minimum(n, lag + m) - np.maximum(0, lag)
    step = HOP / RATE
    worth = np.where(overlap * step >= LEAST_OVERLAP, together / np.sqrt(np.maximum(overlap, 1)), -np.inf)
    spread = float(np.std(worth[np.isfinite(worth)])) if np.isfinite(worth).any() else 0.0
    found: list[float] = []
    for index in np.argsort(-worth)[:400]:
        if worth[index] < LEAST_ONSETS * spread:
            break
        seconds = float(lag[index] * step)
        if np.isfinite(worth[index]) and all(abs(seconds - known) > REACH / 2 for known in found):
            found.append(seconds)
        if len(found) == MOST_LAGS:
            break
    return found


def _tested(one: Waveform, other: Waveform, lag: float) -> HeardLag | None:
    """Test a candidate lag (s) on pieces of the overlap; return the refined lag, or None if they do not agree."""
    begin = max(one.first, other.first + lag)
    end = min(one.first + one.seconds, other.first + other.seconds + lag)
    if end - begin < LEAST_OVERLAP:
        return None
    length = min(PIECE, (end - begin) / FEWEST)
    count = min(int((end - begin) / length + 1e-6), MOST_PIECES)
    starts = np.linspace(begin, end - length, count)
    offs, at = list[float](), list[float]()
    for start in starts.tolist():
        lagging = _piece(_cut(one, start, length), _cut(other, start - lag, length))
        if lagging is not None:
            offs.append(lagging)
            at.append(start)
    if len(offs) < FEWEST:
        return None
    off, middle = np.array(offs), (begin + end) / 2
    fit = _line(np.array(at) - middle, off)
    near = np.abs(off - fit[0] - fit[1] * (np.array(at) - middle)) < AGREE
    if near.sum() < FEWEST or near.mean() < LEAST_SHARE:
        return None
    height = float(np.median((off - fit[1] * (np.array(at) - middle))[near]))
    return HeardLag(lag + height, int(near.sum()), float(near.mean()))


def _line(at: F64, off: F64) -> tuple[float, float]:
    """Fit a line robustly to lags, and return its offset in s and its slope (at most 300 ppm).

    Args:
        at: (K,) s, times of the pieces.
        off: (K,) s, lags of the pieces.
    """
    best, score = (float(np.median(off)), 0.0), -1
    for slope in np.linspace(-300e-6, 300e-6, 25):
        flat = off - slope * at
        for height in flat:
            agreeing = int((np.abs(flat - height) < AGREE / 2).sum())
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
    cross = cross * np.exp(-0.5 * (2 * np.pi * hertz * SMOOTH / RATE / 2) ** 2)
    whole = np.fft.irfft(cross, size)
    reach = int(REACH * RATE)
    values = np.abs(np.concatenate([whole[-reach:], whole[: reach + 1]]))
    peak = int(np.argmax(values))
    if values[peak] < LEAST_PEAK * float(np.sqrt((whole**2).mean())):
        return None
    others = np.abs(np.arange(len(values)) - peak) > AGREE * RATE
    if values[others].max() > UNIQUE * values[peak]:
        return None  # a tone has many peaks
    return (peak - reach) / RATE
