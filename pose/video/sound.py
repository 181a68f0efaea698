"""Sound for a written video, taken from the source: copied if MP4 supports the codec, else encoded as AAC."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import av
from av.packet import Packet

from pose.errors import PoseError
from pose.video.container import reason
from pose.video.source import Sound

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import OutputContainer

    Piece = Packet[AudioStream] | AudioFrame  # a packet is copied, a frame is encoded

COPIED = frozenset({"aac", "mp3"})  # supported by all browsers in MP4
RATES = (48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)


class SoundTrack:
    """Writer of a source's sound to an output container, interleaved with the video, in s from the first image."""

    def __init__(self, sound: Sound, output: "OutputContainer") -> None:
        """Open the sound and add a track to the container."""
        self.problem: str | None = None  # reason why the sound is incomplete; None if it is complete
        self._sound = sound
        self._output = output
        self._input = sound.target.open()
        self._source = self._input.streams.audio[0]
        if self._source.codec_context is None:
            raise PoseError("its codec is not supported")
        self._copies = self._source.codec.canonical_name in COPIED
        self._target = output.add_stream_from_template(self._source) if self._copies else self._encoder()
        self._pieces: Iterator[tuple[float, Piece]] | None = None
        self._waiting: tuple[float, Piece] | None = None

    def _encoder(self) -> "AudioStream":
        rate = next((rate for rate in RATES if rate <= self._source.rate), RATES[-1])
        stream = self._output.add_stream("aac", rate=rate)
        stream.layout = "mono" if self._source.channels == 1 else "stereo"
        return stream

    def begin(self, first: float) -> None:
        """Start the sound at the time in the source of the first written image, second 0 of the file."""
        self._pieces = self._shifted(first)
        self._advance()

    def feed(self, until: float) -> None:
        """Write the sound before second `until` of the file."""
        while self._waiting is not None and self._waiting[0] < until:
            piece = self._waiting[1]
            self._output.mux(piece if isinstance(piece, Packet) else self._target.encode(piece))
            self._advance()

    def finish(self, until: float) -> None:
        """Write the remaining sound before second `until` of the file, and close the source."""
        self.feed(until)
        if not self._copies:
            self._output.mux(self._target.encode(None))
        self.close()

    def close(self) -> None:
        """Close the source."""
        self._input.close()

    def _advance(self) -> None:
        assert self._pieces is not None
        try:
            self._waiting = next(self._pieces, None)
        except av.FFmpegError as error:
            self._waiting = None
            self.problem = f"{self._sound.target.display_name}: the audio ends early: {reason(error)}"

    def _shifted(self, first: float) -> "Iterator[tuple[float, Piece]]":
        """Yield pieces of sound (packets, or frames to encode) from the first image on, with times in the file."""
        if first > 0:
            self._input.seek(int((self._sound.origin + first) * av.time_base))
        zero = self._sound.origin + first
        pieces = self._input.demux(self._source) if self._copies else self._input.decode(self._source)
        for piece in pieces:
            if piece.pts is None or piece.time_base is None:
                continue  # the empty packet at the end
            time = float(piece.pts * piece.time_base) - zero
            if time < 0:
                continue
            piece.pts -= round(zero / piece.time_base)
            if isinstance(piece, Packet):
                piece.dts = piece.pts
                piece.stream = self._target
            yield time, piece
