"""A virtual camera that shows the overlay, for OBS, Zoom and other programs that read cameras."""

import time
from typing import Any

from pose.errors import PoseError
from pose.live.links.base import Address, LinkKind
from pose.live.links.frames import LinkFrame
from pose.structures.skeletons import Skeleton
from pose.structures.types import U8
from pose.view.insets import OFF
from pose.view.overlay import Overlay

FPS = 30.0
RETRY_S = 2.0  # time after which a lost device is opened again


class VirtualCameraLink:
    """Sender of the images of one run to a virtual camera of the system."""

    def __init__(self, address: Address) -> None:
        """Check that the system has a virtual camera.

        Raises:
            PoseError: If it has none.
        """
        import pyvirtualcam

        self._library: Any = pyvirtualcam
        self._device = address.path or None
        self._camera: Any = None
        self._failed_at = -RETRY_S
        self._overlay: tuple[tuple[int, int], Skeleton, Overlay] | None = None
        self.trouble = ""
        try:
            self._library.Camera(640, 480, FPS, device=self._device).close()
        except RuntimeError as error:
            raise PoseError(f"{address.option}: no virtual camera: {str(error).splitlines()[0]}") from error

    def send(self, frame: LinkFrame) -> None:
        """Draw and show the image of a frame."""
        live = frame.live
        if not live.size[0]:
            return
        size, skeleton = live.size, live.skeleton
        if self._overlay is None or self._overlay[:2] != (size, skeleton):
            self._close_camera()
            self._overlay = size, skeleton, Overlay(size, skeleton, inset=OFF)
        image = self._overlay[2].draw(live.image, live.result)
        try:
            self._show(image)
        except RuntimeError as error:
            self._close_camera()
            self._failed_at = time.monotonic()
            raise OSError(f"the virtual camera is away: {str(error).splitlines()[0]}") from error

    def _show(self, image: U8) -> None:
        if self._camera is None:
            if time.monotonic() - self._failed_at < RETRY_S:
                raise RuntimeError("waiting to open it again")
            self._camera = self._library.Camera(image.shape[1], image.shape[0], FPS, device=self._device)
        self._camera.send(image)

    def _close_camera(self) -> None:
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def close(self) -> None:
        """Close the device."""
        self._close_camera()


KIND = LinkKind(VirtualCameraLink, "a virtual camera", "virtual-camera", ("pyvirtualcam",), path="")
