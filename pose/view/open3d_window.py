"""The window of `pose-view`, in which the user plays a run in 3D, moves in time and rotates the view."""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pose.errors import PoseError
from pose.structures.colours import PAPER, mix
from pose.view.open3d_scene import (
    AZIMUTH_DEGREES,
    ELEVATION_DEGREES,
    FOV_DEGREES,
    Label,
    Open3DScene,
    import_open3d,
    labels,
)
from pose.view.scene import SceneData, orbit_eye

if TYPE_CHECKING:
    from open3d.visualization import gui

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
HELP = "space: play or pause   left, right: one frame   up, down: speed   home: start   mouse: orbit, pan, zoom"


class Player:
    """Playback state, independent of a window."""

    def __init__(self, data: SceneData) -> None:
        self._data = data
        self.position = 0  # index of the frame to show
        self.playing = True  # whether playback runs
        self.speed = 1.0  # playback speed, one of `SPEEDS`
        self._time = float(data.times[0])
        self._now: float | None = None

    def tick(self, now: float) -> bool:
        """Advance to the monotonic time `now` (s), again after the end, and return whether the frame changed."""
        elapsed = 0.0 if self._now is None else now - self._now
        self._now = now
        if not self.playing:
            return False
        self._time += elapsed * self.speed
        if self._time > self._data.end:
            self._time = float(self._data.times[0])
        return self._go(self._data.position_at(self._time))

    def seek(self, position: int) -> bool:
        """Move to a frame, limited to those of the run, and return whether the frame changed."""
        position = min(max(position, 0), len(self._data) - 1)
        self._time = float(self._data.times[position])
        return self._go(position)

    def step(self, frames: int) -> bool:
        """Pause, move by `frames` frames, which may be negative, and return whether the frame changed."""
        self.playing = False
        return self.seek(self.position + frames)

    def change_speed(self, steps: int) -> None:
        """Change the playback speed by `steps` entries of `SPEEDS`, which may be negative."""
        self.speed = SPEEDS[min(max(SPEEDS.index(self.speed) + steps, 0), len(SPEEDS) - 1)]

    def _go(self, position: int) -> bool:
        changed = position != self.position
        self.position = position
        return changed


class SceneWindow:
    """An Open3D window with the scene, a slider and a line of help."""

    def __init__(self, data: SceneData, title: str) -> None:
        o3d = import_open3d()
        self._gui = o3d.visualization.gui
        self._data = data
        self._player = Player(data)
        self._labels: list[gui.Label3D] = []
        self._window = self._gui.Application.instance.create_window(f"pose-view: {title}", 1280, 800)
        self._view = self._gui.SceneWidget()
        self._view.scene = o3d.visualization.rendering.Open3DScene(self._window.renderer)
        self._scene = Open3DScene(data, self._view.scene)
        self._bar = self._make_bar()
        self._window.add_child(self._view)
        self._window.add_child(self._bar)
        self._window.set_on_layout(self._layout)
        self._window.set_on_tick_event(self._tick)
        self._window.set_on_key(self._key)
        self._look()
        self._show()

    def _make_bar(self) -> "gui.Vert":
        gui, em = self._gui, self._window.theme.font_size
        bar = gui.Vert(0.3 * em, gui.Margins(em, 0.4 * em, em, 0.4 * em))
        row = gui.Horiz(0.6 * em)
        self._button = gui.Button("Pause")
        self._button.set_on_clicked(self._toggle)
        self._slider = gui.Slider(gui.Slider.INT)
        self._slider.set_limits(0, max(len(self._data) - 1, 1))
        self._slider.set_on_value_changed(self._scrub)
        self._clock = gui.Label("0000.00 s   frame 000000   speed x0.25")
        for widget in (self._button, self._slider, self._clock):
            row.add_child(widget)
        bar.add_child(row)
        bar.add_child(gui.Label(HELP))
        return bar

    def _look(self) -> None:
        middle, radius = self._data.middle, self._data.radius
        reach = np.full(3, 4 * radius)
        bounds = import_open3d().geometry.AxisAlignedBoundingBox(middle - reach, middle + reach)
        self._view.setup_camera(FOV_DEGREES, bounds, middle)
        azimuth, elevation, fov = map(math.radians, (AZIMUTH_DEGREES, ELEVATION_DEGREES, FOV_DEGREES))
        eye = orbit_eye(middle, radius, azimuth, elevation, fov)
        self._view.set_view_controls(self._gui.SceneWidget.Controls.ROTATE_CAMERA_SPHERE)  # keeps the floor horizontal
        self._view.look_at(middle, eye.astype(np.float32), np.array([0, 0, 1], np.float32))

    def _layout(self, context: "gui.LayoutContext") -> None:
        area = self._window.content_rect
        height = self._bar.calc_preferred_size(context, self._gui.Widget.Constraints()).height
        self._view.frame = self._gui.Rect(area.x, area.y, area.width, area.height - height)
        self._bar.frame = self._gui.Rect(area.x, area.get_bottom() - height, area.width, height)

    def _tick(self) -> bool:
        return self._player.tick(time.monotonic()) and self._show()

    def _show(self) -> bool:
        position = self._player.position
        self._scene.show(position)
        for label in self._labels:
            self._view.remove_3d_label(label)
        self._labels = [self._label(label) for label in labels(self._data, position)]
        self._slider.int_value = position
        self._say()
        return True

    def _label(self, label: Label) -> "gui.Label3D":
        shown = self._view.add_3d_label(label.position.astype(np.float32), label.words)
        red, green, blue = mix(label.colour, PAPER, 0.4)
        shown.color = self._gui.Color(red / 255, green / 255, blue / 255)
        shown.scale = 1.5
        return shown

    def _say(self) -> None:
        seconds = self._data.times[self._player.position]
        self._clock.text = f"{seconds:.2f} s   frame {self._player.position}   speed x{self._player.speed:g}"
        self._button.text = "Pause" if self._player.playing else "Play"
        self._view.force_redraw()

    def _toggle(self) -> None:
        self._player.playing = not self._player.playing
        self._say()

    def _scrub(self, value: float) -> None:
        self._player.playing = False
        if self._player.seek(int(value)):
            self._show()

    def _key(self, event: "gui.KeyEvent") -> bool:
        """Handle a key event, and return whether the key has a function."""
        key = self._gui.KeyName
        actions: dict[object, Callable[[], object]] = {
            key.SPACE: self._toggle,
            key.LEFT: lambda: self._player.step(-1) and self._show(),
            key.RIGHT: lambda: self._player.step(1) and self._show(),
            key.HOME: lambda: self._player.seek(0) and self._show(),
            key.UP: lambda: self._player.change_speed(1),
            key.DOWN: lambda: self._player.change_speed(-1),
        }
        if event.key not in actions:
            return False
        if event.type == self._gui.KeyEvent.Type.DOWN:
            actions[event.key]()
            self._say()
        return True


def open_window(data: SceneData, title: str) -> None:
    """Show a scene until the window is closed. Call `check_window` first; PoseError if the window cannot be opened."""
    application = import_open3d().visualization.gui.Application.instance
    try:
        application.initialize()
        SceneWindow(data, title)
    except RuntimeError as error:
        raise PoseError(f"Open3D cannot open a window ({error}); use --save clip.mp4 to render without one") from error
    application.run()
