"""Tiny videos that the tests make for themselves."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

MakeVideo = Callable[..., Path]


@pytest.fixture
def make_video(tmp_path: Path) -> MakeVideo:
    """Writes images as a video and returns its path.

    stamps: in ticks of time_base; by default one frame each 1 / fps. options go to the encoder, matrix is the display
    matrix, tone the seconds of sound.
    """

    def make(
        images: Sequence[np.ndarray],
        name: str = "clip.mp4",
        *,
        fps: int = 30,
        stamps: Sequence[int] | None = None,
        time_base: Fraction | None = None,
        codec: str = "libx264",
        pix_fmt: str = "yuv420p",
        options: dict[str, str] | None = None,
        turn: tuple[float, bool, bool] | None = None,
        aspect: Fraction | None = None,
        tone: float = 0.0,
        tone_codec: str = "aac",
        flags: str = "",
    ) -> Path:
        path = tmp_path / name
        with av.open(str(path), "w", options={"movflags": flags} if flags else {}) as container:
            stream = container.add_stream(codec, rate=fps, options=options or {})
            stream.height, stream.width = images[0].shape[:2]
            stream.pix_fmt = pix_fmt
            stream.codec_context.time_base = time_base or Fraction(1, fps)
            if aspect is not None:
                stream.codec_context.sample_aspect_ratio = aspect
            if turn is not None:
                stream.set_display_rotation(turn[0], hflip=turn[1], vflip=turn[2])
            sound = container.add_stream(tone_codec, rate=48000, layout="mono") if tone else None
            for n, image in enumerate(images):
                frame = av.VideoFrame.from_ndarray(image).reformat(format=pix_fmt)
                frame.pts = n if stamps is None else stamps[n]
                frame.time_base = stream.codec_context.time_base
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
            if sound is not None:
                container.mux(_tone(sound, tone))
                container.mux(sound.encode(None))
        return path

    return make


def _tone(stream: av.AudioStream, seconds: float) -> list[av.Packet]:
    wave = 0.3 * np.sin(2 * np.pi * 440 * np.arange(int(48000 * seconds)) / 48000)
    samples = wave[None].astype(np.float32)
    packets = []
    for begin in range(0, samples.shape[1], 1024):
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(samples[:, begin : begin + 1024]), format="fltp", layout="mono"
        )
        frame.rate, frame.pts, frame.time_base = 48000, begin, Fraction(1, 48000)
        packets += stream.encode(frame)
    return packets
