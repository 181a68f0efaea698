"""Window (pygame, SDL) of `pose-webcam`: its content, lines of text and keys."""

import math
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from pose.config import PipelineConfig, with_networks_of
from pose.errors import PoseError
from pose.live import LiveResult, Loop
from pose.live.meter import Meter
from pose.live.result import Stream
from pose.structures.skeletons import Skeleton
from pose.structures.types import U8, FrameResult
from pose.utils.native_stderr import silenced
from pose.utils.presets import preset_names
from pose.utils.whole_file import file_errors, write_whole
from pose.view.bodies import BodyMesh
from pose.view.inset import Inset
from pose.view.insets import OFF
from pose.view.mesh_overlay import BodyMeshes
from pose.view.overlay import Overlay
from pose_apps.webcam.live_outputs import LiveOutputs, load_pipeline
from pose_apps.webcam.options import WebcamConfig
from pose_apps.webcam.run import run_live

ADVICE = "use --web for a browser, or --headless to run without a display"
TEXT_SIZE = 17  # px
MARGIN = 8
PAPER, INK, DIM, ALERT = (24, 27, 33), (236, 238, 242), (150, 158, 170), (255, 176, 70)
RECORDING = (230, 50, 50)
NO_DISPLAY = ("dummy", "offscreen")  # SDL's fallback without a display
MIN_WINDOW_SIZE = 760, 420  # px, for the status line
TEXT_ROWS = 4
MAX_SCREEN_FRACTION = 0.85  # of a new window


class Display:
    """A window that is open within its context."""

    def __init__(self, title: str) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            import pygame
        except ImportError as error:
            raise PoseError(f"the window needs pygame: pip install 'pose-run[webcam]'; or {ADVICE}") from error
        self._pygame = pygame
        try:
            with silenced(sys.stderr, 2):  # SDL tries several kinds of displays; the message names what is missing
                pygame.display.init()
            if pygame.display.get_driver() in NO_DISPLAY and "SDL_VIDEODRIVER" not in os.environ:
                raise pygame.error("no display found")
            pygame.font.init()
            pygame.display.set_caption(title)
            screens = pygame.display.get_desktop_sizes()
            self._screen = pygame.display.set_mode(MIN_WINDOW_SIZE, pygame.RESIZABLE)
        except pygame.error as error:
            pygame.quit()
            raise PoseError(f"cannot open a window ({error}): {ADVICE}") from error
        self._max_size = tuple(round(MAX_SCREEN_FRACTION * side) for side in screens[0])
        self._font = pygame.font.Font(None, round(1.35 * TEXT_SIZE))
        self._shape: tuple[int, int] | None = None

    def pressed(self) -> list[str]:
        """Return the names of the keys pressed since the last call, in order. Closing the window counts as key 'q'."""
        pygame, names = self._pygame, []
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                names.append("q")
            elif event.type == pygame.KEYDOWN:
                names.append(pygame.key.name(event.key))
        return names

    def show(self, picture: U8 | None, lines: list[str], alert: str = "", recording: str = "") -> None:
        """Show an image at the largest size that fits, with text below."""
        pygame = self._pygame
        if picture is not None and picture.shape[:2] != self._shape:
            self._shape = picture.shape[:2]
            self._fit(picture.shape[1], picture.shape[0])
        width, height = self._screen.get_size()
        texts = [(row, ALERT) for row in self._wrapped(alert, width)]
        for number, line in enumerate(lines):
            texts += [(row, DIM if number else INK) for row in self._wrapped(line, width)]
        spacing = self._font.get_linesize()
        top = max(0, height - self._text_height(max(TEXT_ROWS, len(texts))))
        self._screen.fill(PAPER)
        if picture is not None and top > 0:
            self._paint(picture, (width, top))
        for row, (text, colour) in enumerate(texts):
            self._screen.blit(self._font.render(text, True, colour), (MARGIN, top + MARGIN + row * spacing))
        if recording:
            pygame.draw.circle(self._screen, RECORDING, (MARGIN + 9, MARGIN + 9), 8)
            self._screen.blit(self._font.render(recording, True, RECORDING, PAPER), (MARGIN + 24, MARGIN))
        pygame.display.flip()

    def _text_height(self, rows: int) -> int:
        return rows * self._font.get_linesize() + 2 * MARGIN

    def _fit(self, width: int, height: int) -> None:
        """Resize the window for an image of a new size, within the screen."""
        below = self._text_height(TEXT_ROWS)
        scale = min(1.0, self._max_size[0] / width, (self._max_size[1] - below) / height)
        size = max(MIN_WINDOW_SIZE[0], round(scale * width)), max(MIN_WINDOW_SIZE[1], round(scale * height) + below)
        if size != self._screen.get_size():
            self._screen = self._pygame.display.set_mode(size, self._pygame.RESIZABLE)

    def _paint(self, picture: U8, area: tuple[int, int]) -> None:
        pygame = self._pygame
        height, width = picture.shape[:2]
        scale = min(area[0] / width, area[1] / height)
        size = max(1, round(scale * width)), max(1, round(scale * height))
        surface = pygame.image.frombuffer(picture, (width, height), "RGB")
        if size != (width, height):
            surface = pygame.transform.smoothscale(surface, size)
        self._screen.blit(surface, ((area[0] - size[0]) // 2, (area[1] - size[1]) // 2))

    def _wrapped(self, text: str, width: int) -> list[str]:
        """Wrap text into rows of at most `width` px."""
        rows: list[str] = []
        for word in text.split(" ") if text else []:
            longer = f"{rows[-1]} {word}" if rows else word
            if rows and self._font.size(longer)[0] > width - 2 * MARGIN:
                rows.append(word)
            else:
                rows[-1:] = [longer]
        return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pygame.quit()


HELP = "q quit   space pause   r record   m mirror   v 2D/3D/both   s snapshot   p next preset"
REFRESH_SECONDS = 0.2  # update interval of the status line without frames
NOTICE_SECONDS = 5.0


def run_window(config: WebcamConfig, pipeline_config: PipelineConfig) -> int:
    """Show the window until the user quits, the source ends or the time is up; return the exit status."""
    with Display("pose-webcam") as display:
        display.show(None, ["loading ..."])
        return run_live(config, pipeline_config, lambda loop, outputs: LiveWindow(loop, display, config, outputs).run())


class LiveWindow:
    """The window of a live run. All work is in the main thread, except for loading another preset."""

    def __init__(self, loop: Loop, display: Display, config: WebcamConfig, outputs: LiveOutputs) -> None:
        self._loop, self._display, self._config, self._outputs = loop, display, config, outputs
        self._mailbox = loop.subscribe(maxlen=1)
        self._mirror, self._view = config.mirror, VIEWS[0]
        self._renderer: FrameRenderer | None = None
        self._bodies = LiveBodies() if config.body else None
        self._last: LiveResult | None = None
        self._picture: U8 | None = None
        self._display_meter = Meter()
        self._notice, self._notice_end = "", 0.0
        self._presets = preset_names()
        self._preset = -1  # current preset, if one was chosen
        self._loading: threading.Thread | None = None
        self.is_open = True  # whether the loop is running and the user has not quit
        self._keys = {
            "q": self._quit,
            "escape": self._quit,
            "space": lambda: loop.pause(not loop.paused),
            "r": self._record_or_stop,
            "m": self._toggle_mirror,
            "v": self._next_view,
            "s": self._snapshot,
            "p": self._next_preset,
        }

    def run(self) -> None:
        """Run until the user quits, the loop ends or the time is up. If the loop failed, its error is raised."""
        seconds = self._config.seconds
        end = math.inf if seconds is None else time.monotonic() + seconds
        try:
            while self.is_open and time.monotonic() < end:
                self.step()
        finally:
            self.stop_recording()

    def step(self) -> None:
        """Wait briefly for the next frame, handle pressed keys, and draw."""
        live = self._mailbox.get(timeout=REFRESH_SECONDS)
        for key in self._display.pressed():
            self._keys.get(key, _nothing)()
        if live is not None:
            self._last = live
            self._draw()
        self._refresh()
        if live is not None:
            now = time.monotonic()
            self._display_meter.add(now, now - live.captured)
            if self._loop.ahead is not None:
                self._loop.ahead.add_display_delay(now - live.done)
        elif self._mailbox.closed:
            self._loop.wait()
            self.is_open = False

    def stop_recording(self) -> None:
        """Finish the files of the current recording, if there is one."""
        if self._outputs.recorder is not None:
            self._set_notice(self._outputs.stop_recording())

    def _draw(self) -> None:
        """Draw the newest frame in the current view."""
        if self._last is None:
            return
        live = self._last
        if self._renderer is None or not self._renderer.fits(live, self._view):
            self._renderer = FrameRenderer(live.size, live.skeleton, self._view, self._bodies)
        self._picture = self._renderer.draw(live, mirror=self._mirror)

    def _refresh(self) -> None:
        status = self._loop.status().line()
        _, median_ms, _ = self._display_meter.recent()
        if not math.isnan(median_ms):
            status += f" | on the screen after {median_ms:.0f} ms"
        recording = ""
        if (recorder := self._outputs.recorder) is not None:
            if recorder.problem is not None:
                self.stop_recording()
            else:
                recording = f"{recorder.frames} frames"
        alert = self._notice if time.monotonic() < self._notice_end else self._loop.source.message
        sinks = [f"{option}: {trouble}" for option, trouble in self._outputs.problems().items() if trouble]
        self._display.show(self._picture, [status, HELP], alert or "; ".join(sinks), recording)

    def _set_notice(self, notice: str) -> None:
        self._notice, self._notice_end = notice, time.monotonic() + NOTICE_SECONDS

    def _quit(self) -> None:
        self.is_open = False

    def _toggle_mirror(self) -> None:
        self._mirror = not self._mirror
        self._draw()

    def _next_view(self) -> None:
        self._view = VIEWS[(VIEWS.index(self._view) + 1) % len(VIEWS)]
        self._draw()

    def _record_or_stop(self) -> None:
        if self._outputs.recorder is not None:
            self.stop_recording()
            return
        try:
            self._outputs.record()
        except PoseError as error:
            self._set_notice(str(error))

    def _snapshot(self) -> None:
        if self._picture is None:
            return
        moment = time.time()
        name = f"live-{time.strftime('%Y%m%d-%H%M%S', time.localtime(moment))}-{int(moment % 1 * 1000):03d}.png"
        try:
            write_png(Path(self._config.out) / name, self._picture)
        except PoseError as error:
            self._set_notice(str(error))
        else:
            self._set_notice(f"saved {name}")

    def _next_preset(self) -> None:
        """Load the networks of the next preset in a separate thread, while the loop continues."""
        if self._loading is not None and self._loading.is_alive():
            return
        self._preset = (self._preset + 1) % len(self._presets)
        self._set_notice(f"loading the preset {self._presets[self._preset]} ...")
        self._loading = threading.Thread(target=self._load, args=(self._presets[self._preset],), daemon=True)
        self._loading.start()

    def _load(self, preset: str) -> None:
        try:
            config = with_networks_of(self._loop.pipeline.config, preset)
            self._loop.pipeline = load_pipeline(config, self._loop.pipeline.intrinsics)
        except PoseError as error:
            self._set_notice(f"preset {preset}: {error}")
        else:
            self._set_notice(f"preset {preset}: {config.detector}, {config.estimator}")


def write_png(path: Path, picture: U8) -> None:
    """Write an image, (H, W, 3) uint8 RGB, as a PNG file."""
    import cv2

    _, data = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data.tobytes())


def _nothing() -> None:
    """Do nothing; the action of unused keys."""


VIEWS = ("both", "2D", "3D")


class LiveBodies:
    """Body meshes of the people nearest to a known camera, mirrored like the image (implements `Bodies`)."""

    def __init__(self) -> None:
        self._stream: Stream | None = None
        self._meshes: BodyMeshes | None = None
        self._current_meshes: list[BodyMesh] = []

    def take(self, live: LiveResult, *, mirror: bool) -> None:
        """Compute the body meshes of a frame, not mirrored, which `of` then returns."""
        if live.stream is not self._stream:
            self._stream, self._meshes = live.stream, None
            if live.stream is not None:
                self._meshes = BodyMeshes(live.stream.session.camera, live.skeleton, live=True)
        self._current_meshes = [] if self._meshes is None else self._meshes.of(live.result)
        if mirror:
            last, side = np.array([live.size[0] - 1, 0], np.float32), np.array([-1, 1], np.float32)
            self._current_meshes = [replace(mesh, corners=last + mesh.corners * side) for mesh in self._current_meshes]

    def of(self, result: FrameResult) -> list[BodyMesh]:
        """Return the body meshes of the last frame given to `take`. The argument `result` is not used."""
        return self._current_meshes


class FrameRenderer:
    """Renderer for frames of one image size and skeleton, in one view."""

    def __init__(
        self, picture: tuple[int, int], skeleton: Skeleton, view: str, bodies: LiveBodies | None = None
    ) -> None:
        """Prepare drawing for one image size, skeleton and view: "2D", "3D" or "both"."""
        width, height = picture
        self.picture, self.skeleton, self.view = picture, skeleton, view
        self._bodies = bodies
        self._overlay = Overlay(picture, skeleton, inset=OFF, bodies=bodies)
        panel = picture if view == "3D" else (round(0.9 * height), height)
        self._inset = Inset(panel)
        self.size = (width + panel[0], height) if view == "both" else picture  # (width, height) of the drawn images, px

    def fits(self, live: LiveResult, view: str) -> bool:
        """Return whether this renderer can draw a result in a view."""
        return (self.picture, self.skeleton, self.view) == (live.size, live.skeleton, view)

    def draw(self, live: LiveResult, *, mirror: bool = False) -> U8:
        """Draw a frame, mirrored or not, and return the image (H, W, 3) uint8 RGB."""
        if self._bodies is not None and self.view != "3D":
            self._bodies.take(live, mirror=mirror)
        live = live.mirrored() if mirror else live
        if self.view == "3D":
            return self._inset.render(live.result)
        drawn = self._overlay.draw(live.image, live.result)
        return drawn if self.view == "2D" else np.concatenate([drawn, self._inset.render(live.result)], axis=1)
