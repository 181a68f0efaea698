"""Window of `pose-webcam`: its content and keys."""

import math
import threading
import time
from pathlib import Path

from pose.config import PipelineConfig, with_networks_of
from pose.errors import PoseError
from pose.live import LiveResult, Loop
from pose.live.meter import Meter
from pose.structures.types import U8
from pose.utils.presets import preset_names
from pose.utils.whole_file import file_errors, write_whole
from pose_apps.webcam.canvas import VIEWS, FrameRenderer, LiveBodies
from pose_apps.webcam.display import Display
from pose_apps.webcam.live_outputs import LiveOutputs, load_pipeline
from pose_apps.webcam.options import WebcamConfig
from pose_apps.webcam.run import run_live

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
