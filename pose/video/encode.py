"""Writing H.264 video for browsers."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import av

from pose.errors import PoseError
from pose.structures.types import U8
from pose.utils.whole_file import WholeFile
from pose.video.h264 import DEFAULT_TIME_BASE, MAX_KEY_INTERVAL_S, ImageEncoder, check_size
from pose.video.planes import Colours, Planes
from pose.video.sound import SoundTrack
from pose.video.source import Sound

if TYPE_CHECKING:
    from av.container import OutputContainer


class VideoWriter:
    """Writer of an MP4 file (H.264, yuv420p, index at the front), named at `close()`, or deleted on an error."""

    def __init__(
        self,
        path: Path,
        size: tuple[int, int],
        *,
        fps: float,
        time_base: Fraction = DEFAULT_TIME_BASE,
        colours: Colours | None = None,
        sound: Sound | None = None,
        key_interval_s: float = MAX_KEY_INTERVAL_S,
    ) -> None:
        """Create the file under a temporary name; PoseError if the file cannot be created."""
        self.path = path  # path of the file
        # One message for each request that could not be satisfied, such as sound that cannot be copied.
        self.problems: list[str] = []
        self._whole = WholeFile(path)
        self._size = size
        self._sound: SoundTrack | None = None
        self._container: OutputContainer | None = None
        with self._guarded():
            self._container = output = av.open(
                f"file:{self._whole.path}", "w", format="mp4", options={"movflags": "faststart"}
            )
            self._encoder = ImageEncoder(output, size, fps, time_base, colours, key_interval_s=key_interval_s)
            if not self._encoder.is_h264:
                self.problems.append(f"{path}: PyAV has no libx264 here; MPEG-4 Part 2 was written instead of H.264")
            if sound is not None:
                self._add_sound(sound, output)
            output.start_encoding()

    def _add_sound(self, sound: Sound, output: "OutputContainer") -> None:
        try:
            self._sound = SoundTrack(sound, output)
        except (PoseError, av.FFmpegError) as error:
            self.problems.append(f"{self.path}: audio of {sound.target.display_name} not copied: {error}")

    def write(self, image: U8, time: float) -> None:
        """Append an image (H, W, 3) uint8 RGB, shown from `time` (s), increasing and 0 at the first."""
        check_size(image, self._size)
        self._append(image, time)

    def write_planes(self, planes: Planes, time: float) -> None:
        """Append packed planes in the encoding of the file, shown from `time` (s); their memory may be reused."""
        self._append(planes, time)

    def _append(self, image: U8 | Planes, time: float) -> None:
        assert self._container is not None, "closed"
        with self._guarded():
            if self._sound is not None and not self._encoder.started:
                self._sound.begin(time)
            since = self._encoder.write(image, time)
            if self._sound is not None:
                self._sound.feed(since)

    def close(self) -> None:
        """Complete the file and rename it. If no image was written, no file is made."""
        if self._container is None:
            return
        if not self._encoder.started:
            self.abort()
            return
        with self._guarded():
            self._encoder.finish()
            if self._sound is not None:
                self._sound.finish(self._encoder.end)
                self.problems += [self._sound.problem] if self._sound.problem else []
            self._container.close()
            self._container = None
            self._whole.commit()

    def abort(self) -> None:
        """Delete the file. No effect after `close()`."""
        if self._sound is not None:
            self._sound.close()
        if self._container is not None:
            with suppress(av.FFmpegError):
                self._container.close()
            self._container = None
        self._whole.discard()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Run the block; on any error delete the incomplete file, and convert write errors to a `PoseError`."""
        try:
            yield
        except (av.FFmpegError, OSError) as error:
            self.abort()
            raise PoseError(f"cannot write {self.path}: {(error.strerror or str(error)).lower()}") from error
        except BaseException:
            self.abort()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
