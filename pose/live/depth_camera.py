"""Live colour and depth images of a RealSense camera, or of a bag that one recorded, through Open3D (extra `[depth]`).

Open3D delivers pairs of images whose depth is aligned to colour. A bag is played at its own rate.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pose.errors import PoseError
from pose.live.sources import Captured
from pose.structures.camera import Camera
from pose.structures.odometry import Odometry
from pose.structures.types import F32, F64, U8, Frame
from pose.utils.native_stderr import silenced
from pose.utils.shown import in_brief

_REALSENSE = "realsense"
_KEPT = 64  # depth images, which wait for their poses
_TOLERANCE_S = 1e-4
_IDLE_S = 0.005
_MAX_DEPTH_M = 20.0
_MAX_WAIT_S = 1.0  # between images of a bag
_PROBE = (
    "import sys, open3d as o; r = o.t.io.RSBagReader(); sys.exit(not r.open(sys.argv[1]) or r.next_frame().is_empty())"
)
_PROBE_S = 60.0


class _Pair(NamedTuple):
    colour: U8  # (H, W, 3)
    depth: F32  # (H, W) m
    time: float  # s


class DepthCamera:
    """Live source whose depth images can be read for a while (`pose.world.measured.DepthImages`)."""

    extrinsics: F64 | None = None  # depth is aligned to colour
    odometry: Odometry | None = None

    def __init__(self, spec: str) -> None:
        """Open a camera, `realsense` or `realsense:SERIAL`, or a bag.

        Raises:
            PoseError: If Open3D is missing, sees no such camera, or cannot read the bag.
        """
        try:
            with silenced(sys.stdout, 1):
                import open3d
        except (ImportError, OSError) as error:
            raise PoseError(
                f'--depth {spec}: needs Open3D ({error}); install it: pip install "pose-run[depth]"'
            ) from error
        self.name, self.message = spec, ""
        self._is_bag = not spec.startswith(_REALSENSE)
        io = open3d.t.io
        try:
            quiet = open3d.utility.VerbosityContextManager(open3d.utility.VerbosityLevel.Error)
            with silenced(sys.stdout, 1), quiet:
                self._device: Any = self._opened_bag(io, spec) if self._is_bag else self._opened_camera(io, spec)
                about = self._device.metadata if self._is_bag else self._device.get_metadata()
                self.matrix: F64 | None = np.array(about.intrinsics.intrinsic_matrix, np.float64)
                self.size: tuple[int, int] | None = (int(about.width), int(about.height))
                self.fps, self._scale = float(about.fps), float(about.depth_scale)
        except RuntimeError as error:
            raise PoseError(f"--depth {spec}: Open3D cannot open it ({in_brief(error)})") from error
        if not (self.fps > 0 and self._scale > 0 and np.isfinite(self.matrix).all() and min(self.size) > 0):
            raise PoseError(f"--depth {spec}: states no camera matrix, size, rate or unit of depth")
        self._lock = threading.Lock()
        self._depths: dict[int, tuple[float, F32]] = {}  # time in s and depth image, by number of the frame
        self._closed = threading.Event()

    def _opened_bag(self, io: Any, spec: str) -> Any:
        reader = io.RSBagReader()
        if not _is_readable(spec) or not reader.open(spec):
            raise PoseError(f"--depth {spec}: not a readable bag of a RealSense camera with colour and depth")
        return reader

    def _opened_camera(self, io: Any, spec: str) -> Any:
        serial = spec.partition(":")[2]
        sensor = io.RealSenseSensor()
        if not io.RealSenseSensor.enumerate_devices():
            raise PoseError(f"--depth {spec}: Open3D sees no RealSense camera")
        sensor.init_sensor(io.RealSenseSensorConfig({"serial": serial} if serial else {}), 0)
        sensor.start_capture(False)
        return sensor

    @property
    def colour_camera(self) -> Camera:
        """Camera of the colour images."""
        assert self.matrix is not None
        assert self.size is not None
        return Camera(self.matrix, True, self.size)

    def frames(self, stop: threading.Event) -> Iterator[Captured]:
        """See `pose.live.sources.LiveSource.frames`."""
        begin, first, last = time.monotonic(), None, -1.0
        index = 0
        while not (stop.is_set() or self._closed.is_set()):
            pair = self._next()
            if pair is None:
                if self._is_bag:
                    return
                stop.wait(_IDLE_S)
                continue
            first = pair.time if first is None else first
            at = pair.time - first
            if at <= last:  # Open3D may give a frame twice
                continue
            last = at
            if self._is_bag and stop.wait(min(max(0.0, begin + at - time.monotonic()), _MAX_WAIT_S)):
                return
            with self._lock:
                self._depths[index] = at, pair.depth
                self._depths.pop(index - _KEPT, None)
            yield Captured(Frame(pair.colour, index, at), begin + at if self._is_bag else time.monotonic())
            index += 1

    def _next(self) -> _Pair | None:
        """Return the next pair of images; None at the end of a bag, or while a camera has no new ones."""
        try:
            if self._is_bag:
                image = self._device.next_frame()
                if image.is_empty() or self._device.is_eof():
                    return None
                seconds = self._device.get_timestamp() / 1e6
            else:
                image = self._device.capture_frame(False, True)
                if image.is_empty():
                    return None
                seconds = time.monotonic()
            colour = np.ascontiguousarray(image.color.as_tensor().numpy()[..., :3])
            depth = image.depth.as_tensor().numpy()[..., 0].astype(np.float32) / np.float32(self._scale)
        except RuntimeError as error:
            raise PoseError(f"--depth {self.name}: Open3D cannot read it ({in_brief(error)})") from error
        depth[depth > _MAX_DEPTH_M] = 0
        return _Pair(colour.astype(np.uint8, copy=False), depth, seconds)

    def at(self, time: float) -> int | None:
        """Return the number of the frame of a time in s; None if it is not kept any more."""
        with self._lock:
            return next((n for n, (at, _) in self._depths.items() if abs(at - time) < _TOLERANCE_S), None)

    def read(self, index: int) -> F32:
        """Return the depth image (H, W) m of a frame; empty if it is not kept any more."""
        with self._lock:
            kept = self._depths.get(index)
        return np.zeros((1, 1), np.float32) if kept is None else kept[1]

    def close(self) -> None:
        """See `pose.live.sources.LiveSource.close`."""
        if not self._closed.is_set():
            self._closed.set()
            with silenced(sys.stdout, 1):
                self._device.close() if self._is_bag else self._device.stop_capture()


def _is_readable(bag: str) -> bool:
    """Return whether Open3D reads a bag; in a new process, because damaged ones may end it or never return."""
    try:
        done = subprocess.run([sys.executable, "-c", _PROBE, bag], capture_output=True, timeout=_PROBE_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
