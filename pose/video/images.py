"""Images of a folder or glob pattern as a video source."""

import glob
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

from pose.errors import PoseError, UsageError
from pose.structures.types import U8, Frame
from pose.utils.native_stderr import quiet_image_decoders
from pose.video.lens import focal_35mm
from pose.video.source import Source, Span, VideoInfo

HEIC = frozenset({".heic", ".heif", ".hif"})  # suffixes of HEIC images, which require pillow-heif
SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}) | HEIC
WILDCARDS = re.compile(r"[*?\[]")
MAX_PIXELS = os.environ["OPENCV_IO_MAX_IMAGE_PIXELS"]  # per image; limit of OpenCV, set in `pose/__init__.py`
_HEAD_BYTES = 1 << 16  # in which an animated PNG says that it is one
_ANIMATED = 0x02  # flag of an extended WebP file
MAX_BYTES = 800 << 20  # bytes per file: 100 million pixels of four 16-bit channels, uncompressed


class SizesDifferError(PoseError):
    """An error for images of different sizes, which cannot form a video."""


def natural_key(path: Path) -> list[tuple[int, int, str]]:
    """Return a sort key that puts "img2" before "img10"."""
    parts = re.split(r"(\d+)", path.name)
    return [(0, int(part), part) if part.isdigit() else (1, 0, part.lower()) for part in parts]


def is_still(path: Path) -> bool:
    """Return whether a path is a file of a single image; an animated WebP or PNG is a video."""
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(b"RIFF") and head[8:16] == b"WEBPVP8X":
        return not head[20] & _ANIMATED
    return not (head.startswith(b"\x89PNG") and b"acTL" in head.partition(b"IDAT")[0])


def find_images(spec: str) -> list[Path]:
    """Find images by folder, pattern or name in natural order ("img2" before "img10"), without links to the outside."""
    named = Path(spec)
    if named.is_file():
        return [named]
    if named.is_dir():
        folder, found = named, list(named.iterdir())
    else:
        folder, found = _fixed_part(spec), [Path(name) for name in glob.glob(spec)]
    root = folder.resolve()
    images = [
        path
        for path in found
        if path.suffix.lower() in SUFFIXES
        and not path.name.startswith(".")
        and path.is_file()
        and path.resolve().is_relative_to(root)
    ]
    return sorted(images, key=lambda path: (str(path.parent), natural_key(path)))


def _fixed_part(pattern: str) -> Path:
    """Return the folder of a glob pattern before the first wildcard."""
    parts = Path(pattern).parts
    fixed = next((n for n, part in enumerate(parts) if WILDCARDS.search(part)), len(parts) - 1)
    return Path(*parts[:fixed])


class ImageSource(Source):
    """Source of frames from images at a fixed frame rate, rotated by their EXIF orientation.

    An unreadable image is skipped, without a change of the times of later images. All images must have the size of the
    first image, since the pixel coordinates of people depend on it. While iterating, an image of another size raises
    `SizesDifferError`, which names the image.
    """

    def __init__(self, spec: str, span: Span, *, fps: float) -> None:
        """Find the images, and read the first; UsageError if there is none in the span, PoseError if unreadable."""
        self.name = spec
        self.problems: list[str] = []
        self._paths = find_images(spec)
        if not self._paths:
            folder = Path(spec).is_dir()
            what = "the folder contains no images" if folder else "no image matches"
            advice = "; use pose-batch for a folder of videos" if folder else ""
            raise UsageError(f"cannot read {spec}: {what} ({', '.join(sorted(SUFFIXES))}){advice}")
        check_heic(self._paths)
        self._fps = fps
        self._span = span
        found = ((path, image) for path in self._paths if (image := read_image(path)) is not None)
        where, first = next(found, (None, None))
        if where is None or first is None:
            many = len(self._paths)
            what = "not an image, or a damaged one" if many == 1 else f"none of its {many} images can be decoded"
            raise PoseError(f"cannot read {spec}: {what}")
        duration, _ = span.cut(len(self._paths) / fps, fps)
        height, width = first.shape[:2]
        time_base = 1 / Fraction(fps).limit_denominator(1001)
        count = sum(1 for _ in self._wanted())
        if count == 0:
            end = len(self._paths) / fps
            raise UsageError(f"start: {span.start:g} s is not before the end of {spec} ({end:.2f} s)")
        focal = focal_35mm(where, (width, height))
        self.info = VideoInfo(width, height, fps, time_base, duration, count, False, False, focal)

    def _wanted(self) -> Iterator[tuple[float, Path]]:
        for place, path in enumerate(self._paths):
            time = place / self._fps
            if not self._span.starts_after(time) and not self._span.ends_before(time):
                yield time, path

    def __iter__(self) -> Iterator[Frame]:
        self.problems.clear()
        index = 0
        for time, path in self._wanted():
            if self.closed:
                return
            image = read_image(path)
            if image is None:
                self.problems.append(f"{path}: not a readable image; skipped")
                continue
            height, width = image.shape[:2]
            if (width, height) != self.info.size:
                expected = f"{self.info.width}x{self.info.height}"
                raise SizesDifferError(f"{path} is {width}x{height}, but the first image of {self.name} is {expected}")
            yield Frame(image, index, time)
            index += 1

    def replay(self) -> Iterator[Frame]:
        """Yield the same frames again, as `Source.replay` does."""
        return iter(self)

    def images_with_paths(self) -> Iterator[tuple[Path, U8]]:
        """Yield the path and pixels, (H, W, 3) uint8 RGB, of every readable image in order; sizes may differ."""
        self.problems.clear()
        for _, path in self._wanted():
            image = read_image(path)
            if image is None:
                self.problems.append(f"{path}: not a readable image; skipped")
            else:
                yield path, image

    @property
    def paths(self) -> list[Path]:
        """Paths of all image files, including unreadable ones."""
        return list(self._paths)

    def content(self) -> str | None:
        """Return the hash of all files, the span and the frame rate, as `Source.content` does."""
        digest = hashlib.sha256(repr((self._span, self._fps)).encode())
        for path in self._paths:
            if os.access(path, os.R_OK):
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            digest.update(b"next")
        return digest.hexdigest()


def read_image(path: Path) -> U8 | None:
    """Read an image as upright (H, W, 3) uint8 RGB without alpha, 16 bits as 8; return None if not readable."""
    import cv2
    import numpy as np

    if not os.access(path, os.R_OK):
        return None
    if path.stat().st_size > MAX_BYTES:
        raise PoseError(
            f"{path}: {path.stat().st_size / 2**20:.1f} MiB; an image may have at most {MAX_BYTES >> 20} MiB"
        )
    if path.suffix.lower() in HEIC:
        return _read_heic(path)
    data = np.fromfile(path, np.uint8)  # OpenCV cannot open every path on Windows
    if data.size == 0:
        return None
    try:
        with quiet_image_decoders():
            image = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB)
    except cv2.error as error:
        if error.func != "validateInputImageSize":
            return None
        raise PoseError(f"{path} has more than {MAX_PIXELS} pixels; make it smaller") from error
    return None if image is None else np.asarray(image, np.uint8)


def check_heic(paths: Iterable[Path]) -> None:
    """Check that HEIC images, if there are any, can be read."""
    heic = next((path for path in paths if path.suffix.lower() in HEIC), None)
    if heic is not None and find_spec("pillow_heif") is None:
        raise PoseError(f'{heic}: HEIC images need pillow-heif: pip install "pose-run[heic]"')


def _read_heic(path: Path) -> U8 | None:
    """Read a HEIC image as `read_image` does. The decoder applies the rotation stored in the file."""
    import numpy as np
    import pillow_heif

    with path.open("rb") as file:
        if file.read(12)[4:8] != b"ftyp":
            return None
    try:
        opened = pillow_heif.open_heif(path, convert_hdr_to_8bit=True)
        width, height = opened.size
        if width * height > int(MAX_PIXELS):
            raise PoseError(f"{path} has more than {MAX_PIXELS} pixels; make it smaller")
        image = opened.to_pillow().convert("RGB")
    except (OSError, ValueError, RuntimeError, EOFError, SyntaxError, MemoryError):
        return None
    return np.asarray(image, np.uint8)
