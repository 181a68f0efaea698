"""Depth images of Matroska files, such as those of the Azure Kinect and of Orbbec cameras in its format.

The recorder of the Azure Kinect SDK writes a track `DEPTH` of uncompressed 16-bit images in mm (`b16g`), and an
attachment `calibration.json`. Its cameras have `ModelParameters` for an image of size 1 x 1: cx, cy, fx, fy, k1 to k6
(the rational model of OpenCV), two unused ones, p2, p1; and `Rt`, from the axes of the device to those of the camera,
in m. Images are cut out of one of the size that is calibrated (`transformation_mode_specific_calibration.c`).
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pose.errors import PoseError
from pose.structures.camera import Camera
from pose.structures.lenses import RadialLens
from pose.structures.types import F32, F64
from pose.utils.json_values import Json, items, member, number, strict_json, text
from pose.utils.shown import in_brief
from pose.video.depth_video import DepthVideo

_UNIT_M, _MAX_M, _MAX_SIDE, _MAX_IMAGES = 0.001, 20.0, 4096, 1_000_000
# Size of depth images -> calibrated size, and the place of the image in it, px.
_CUT_OUT = {
    (320, 288): ((512, 512), (96, 90)), (640, 576): ((1024, 1024), (192, 180)), (512, 512): ((512, 512), (0, 0)),
    (1024, 1024): ((1024, 1024), (0, 0)),
}  # fmt: skip
_DEPTH, _COLOUR = "CALIBRATION_CameraLocationD0", "CALIBRATION_CameraLocationPV0"


@dataclass(frozen=True)
class _Model:
    """A camera of a calibration file."""

    matrix: F64  # (3, 3) px
    distortion: F64  # (8,) in the order of OpenCV
    pose: F64  # (4, 4) from the axes of the device
    size: tuple[int, int]

    @classmethod
    def of(cls, document: Json, place: str, size: tuple[int, int]) -> "_Model":
        cameras = items(member(member(document, "CalibrationInformation"), "Cameras"))
        (camera,) = [one for one in cameras if text(member(one, "Location")) == place]
        values = [number(value) for value in items(member(member(camera, "Intrinsics"), "ModelParameters"))]
        cx, cy, fx, fy, k1, k2, k3, k4, k5, k6, _, _, p2, p1 = values[:14]
        (width, height), (left, top) = _CUT_OUT.get(size, (size, (0, 0)))
        if place == _COLOUR and 9 * size[0] == 16 * size[1]:  # cut out of an image of 4 x 3
            height = size[0] * 3 // 4
            top = (height - size[1]) // 2
        matrix = np.array(
            [[fx * width, 0, cx * width - left - 0.5], [0, fy * height, cy * height - top - 0.5], [0, 0, 1]]
        )
        turn = np.array([number(value) for value in items(member(member(camera, "Rt"), "Rotation"))]).reshape(3, 3)
        shift = np.array([number(value) for value in items(member(member(camera, "Rt"), "Translation"))]).reshape(3, 1)
        if not (fx > 0 and fy > 0 and np.abs(turn @ turn.T - np.eye(3)).max() < 1e-3):
            raise ValueError("focal lengths must be above 0, and Rt a rotation and a translation")
        pose = np.vstack([np.hstack([turn, shift]), [0, 0, 0, 1]])
        return cls(matrix, np.array([k1, k2, p1, p2, k3, k4, k5, k6]), pose, size)

    @cached_property
    def lens(self) -> RadialLens:
        """The lens with two coefficients that is nearest within the image."""
        corner = (np.array(self.size) / 2) / np.diag(self.matrix)[:2]
        square = np.linspace(0, corner @ corner, 50)[1:]
        k1, k2, _, _, k3, k4, k5, k6 = self.distortion
        factor = (1 + square * (k1 + square * (k2 + square * k3))) / (1 + square * (k4 + square * (k5 + square * k6)))
        terms = np.stack([square, square**2], axis=1) * np.sqrt(square)[:, None]
        (first, second), *_ = np.linalg.lstsq(terms, (factor - 1) * np.sqrt(square), rcond=None)
        return RadialLens((float(first), float(second)))

    def undistortion(self) -> tuple[F32, F32]:
        """Return the pixels (H, W) from which an image without distortion is taken: columns and rows."""
        import cv2

        kind: int = cv2.CV_32FC1
        return cv2.initUndistortRectifyMap(self.matrix, self.distortion, np.eye(3), self.matrix, self.size, kind)  # type: ignore[return-value]


def open_mkv(path: Path) -> DepthVideo:
    """Open the depth track of a Matroska file, with colour's viewpoint by default; PoseError if damaged."""
    import av

    try:
        track = _Track(path)
        if track.calibration is None:
            return DepthVideo(track.times, None, None, track.read, begin=track.begin)
        document = strict_json(track.calibration)
        depth = _Model.of(document, _DEPTH, track.size)
        track.pixels = depth.undistortion()
        if track.colour_size is None:
            return DepthVideo(track.times, depth.matrix, depth.size, track.read, begin=track.begin)
        colour = _Model.of(document, _COLOUR, track.colour_size)
    except PoseError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError, av.FFmpegError) as error:
        raise PoseError(f"{path}: not a readable Matroska file with depth images ({in_brief(error)})") from error
    return DepthVideo(
        track.times, depth.matrix, depth.size, track.read, depth.pose @ np.linalg.inv(colour.pose), begin=track.begin,
        colour=Camera(colour.matrix, True, colour.size, colour.lens),
    )  # fmt: skip


class _Track:
    """The depth track of a file, decoded from where it was read last."""

    def __init__(self, path: Path) -> None:
        import av
        from av.stream import AttachmentStream

        self._path, self._file = path, av.open(str(path))
        videos = self._file.streams.video
        grey = [one for one in videos if (one.codec_context.pix_fmt or "").startswith("gray16")]
        named = [one for one in grey if one.metadata.get("title", "").upper() == "DEPTH"]
        if not grey:
            raise ValueError("it contains no track of 16-bit grey images")
        self._stream = (named or grey)[0]
        colour = [one for one in videos if one not in grey]
        self.size = self._stream.codec_context.width, self._stream.codec_context.height
        self.colour_size = (colour[0].codec_context.width, colour[0].codec_context.height) if colour else None
        if not 0 < min(self.size) <= max(self.size) <= _MAX_SIDE:
            raise ValueError(f"images of {self.size[0]} x {self.size[1]} px")
        self.pixels: tuple[F32, F32] | None = None
        self.calibration: bytes | None = None
        for one in self._file.streams:
            if isinstance(one, AttachmentStream) and one.metadata.get("filename", "").lower() == "calibration.json":
                self.calibration = one.data
        self._stamps: list[int] = []
        starts = list[float]()
        for packet in self._file.demux(self._stream, *colour[:1]):
            if packet.pts is not None and packet.size and len(self._stamps) < _MAX_IMAGES:
                if packet.stream_index == self._stream.index:
                    self._stamps.append(packet.pts)
                elif not starts:
                    starts.append(float(packet.pts * packet.time_base))
        base = self._stream.time_base
        if not self._stamps or base is None:
            raise ValueError("it contains no depth images")
        self.times = np.array(self._stamps) * float(base)
        self.begin = starts[0] if starts else float(self.times[0])
        self._frames: Any = None
        self._next = -1

    def read(self, index: int) -> F32:
        """Return an image (H, W) in m, without the distortion of the lens; PoseError if it is damaged."""
        import av

        try:
            if index != self._next:
                self._file.seek(self._stamps[index], stream=self._stream)
                self._frames = self._file.decode(self._stream)
            self._next = -1
            frame = next(one for one in self._frames if one.pts is not None and one.pts >= self._stamps[index])
            values = frame.to_ndarray()
            if values.shape != self.size[::-1]:
                raise ValueError(f"its size is {values.shape[1]} x {values.shape[0]} px")
            self._next = index + 1
        except (StopIteration, ValueError, av.FFmpegError) as error:
            raise PoseError(f"{self._path}: image {index} is damaged ({in_brief(error)})") from error
        depth: F32 = values.astype(np.float32) * np.float32(_UNIT_M)
        depth[depth > _MAX_M] = 0
        if self.pixels is not None:
            import cv2

            return np.asarray(cv2.remap(depth, *self.pixels, cv2.INTER_NEAREST), np.float32)
        return depth
