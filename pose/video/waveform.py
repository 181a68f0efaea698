"""The sound of a video as mono samples at a low rate, synchronised with the images."""

from dataclasses import dataclass

import av
import numpy as np
from numpy.typing import NDArray

from pose.video.source import Sound

RATE = 8000  # samples per second: two recordings of one room are matched below 4 kHz
MAX_SECONDS = 600.0  # s of a long recording that are read; 20 MB
MAX_GAP_S = 60.0  # s; a larger jump of the time stamps is an error of the file and not filled


@dataclass(frozen=True, slots=True)
class Waveform:
    """Mono sound of a video."""

    samples: NDArray[np.float32]  # (N,) float32, -1 to 1, at `RATE` samples per second
    first: float  # time of the first sample, s; 0 is the video's first image

    @property
    def seconds(self) -> float:
        """Duration in s."""
        return len(self.samples) / RATE


def read_waveform(sound: Sound, max_seconds: float = MAX_SECONDS) -> Waveform | None:
    """Read mono samples, with silence in gaps; None if undecodable, silent or shorter than 1 s."""
    parts: list[NDArray[np.float32]] = []
    first, count = 0.0, 0
    resampler = av.AudioResampler("flt", "mono", RATE)
    try:
        with sound.target.open() as container:
            for frame in container.decode(container.streams.audio[0]):
                if frame.pts is None or frame.time_base is None:
                    continue
                at = float(frame.pts * frame.time_base) - sound.origin
                if not parts:
                    first = at
                gap = round((at - first) * RATE) - count
                if 0.05 * RATE < gap < MAX_GAP_S * RATE:
                    parts.append(np.zeros(gap, np.float32))
                    count += gap
                for part in resampler.resample(frame):
                    values = part.to_ndarray().ravel().astype(np.float32)
                    parts.append(values)
                    count += len(values)
                if count >= max_seconds * RATE:
                    break
    except (av.FFmpegError, ValueError, IndexError):
        if not parts:
            return None
    samples = np.concatenate(parts)[: int(max_seconds * RATE)] if parts else np.zeros(0, np.float32)
    samples = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    if len(samples) < RATE or float(np.abs(samples).max()) < 1e-4:
        return None
    return Waveform(samples, first)
