"""The current camera view from past frames only, for live results."""

from collections import OrderedDict, deque

import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.fit import SAME, View
from pose.camera_motion.parallax import LONG_LENS, MIN_CARRIED_RAD
from pose.camera_motion.turns import to_matrix, to_vector
from pose.camera_motion.verdict import ROTATING, STATIC, TRANSLATING, UNKNOWN
from pose.types import NO_LINK, Background

F64 = NDArray[np.float64]

_STILL, _STILL_ZOOM = np.radians(0.15), 0.006  # tolerances of a static camera: rad, and relative zoom
_LOST_S = 0.5  # s without a view after which the state is unknown
_EXTRAPOLATED_S = 0.15  # s of extrapolation
_MAX_VIEWS = 2000  # measured frames whose views are stored
_LATELY, _TESTS, _SHARE = 10.0, 3, 60  # s of tests, minimum number, and percentile that must be below
_CALM_S = 3.0  # s without such a test, or static, after which a carried camera has stopped


class CameraWatch:
    """Tracks the state of the camera.

    Attributes:
        state: `static`, `rotating`, `translating` or `unknown`, in the last frame.
    """

    def __init__(self, ignore_translation: bool = False) -> None:
        """Start without frames.

        Args:
            ignore_translation: Treat a carried camera as a rotating one.
        """
        self._ignore = ignore_translation
        self._tests: deque[tuple[float, float, float]] = deque()  # s, parallax and lens
        self._suspect = -np.inf  # s, time of the last test that showed translation
        self._time = -np.inf  # s, time of the last measured view
        self.state = STATIC
        self._places: OrderedDict[int, View] = OrderedDict()  # by index, relative to the first frame
        self._now, self._speed = SAME, np.zeros(3)  # rad/s

    def see(self, background: Background | None, index: int, time: float, cut: bool = False) -> View:
        """The view of the next frame, relative to the first since the camera was static, carried or lost.

        Args:
            background: None if it was not measured.
            index: Index of the frame.
            time: s.
            cut: Whether another scene starts.
        """
        if cut:
            self._tests.clear()
            self._suspect = -np.inf
        if cut or self.state in (TRANSLATING, UNKNOWN):
            self._begin()
        linked = True if background is None else self._take(background, index, time)
        self.state = self._judge(time, linked or cut)
        if self.state != ROTATING:
            return SAME
        ahead = min(time - self._time, _EXTRAPOLATED_S)
        return View(to_matrix(self._speed * ahead) @ self._now.turn, self._now.zoom)

    def _begin(self) -> None:
        self.state, self._now, self._speed = STATIC, SAME, np.zeros(3)
        self._places.clear()

    def _take(self, background: Background, index: int, time: float) -> bool:
        """Whether the frame is connected to earlier ones."""
        if not np.isnan(background.parallax):
            self._tests.append((time, background.parallax, background.lens))
        links = [row for row in background.links if row[0] != NO_LINK]
        views = {int(row[0]): View(to_matrix(row[1:4]).T, float(np.exp(row[4]))) for row in links}
        if not views:
            return True  # keep the last view for a while
        known = next((key for key in views if key in self._places), None)
        linked = known is not None or not self._places
        if not linked:
            self._begin()
        now = SAME if known is None else views[known].of(self._places[known])
        for key, view in views.items():
            self._places.setdefault(key, view.inverse.of(now))
            self._places.move_to_end(key)
        self._places[index] = now
        while len(self._places) > _MAX_VIEWS:
            self._places.popitem(last=False)
        if known is not None and 0 < time - self._time < _LOST_S:
            self._speed = to_vector(now.turn @ self._now.turn.T) / (time - self._time)
        self._now, self._time = now, time
        return linked

    def _judge(self, time: float, linked: bool) -> str:
        """The state, from the frames up to `time` (s)."""
        while self._tests and self._tests[0][0] < time - _LATELY:
            self._tests.popleft()
        if self._is_carried() and not self._ignore:
            self._suspect = self._tests[-1][0]
        if not linked or time - self._time > _LOST_S:
            return UNKNOWN
        if time - self._suspect < _CALM_S:
            return TRANSLATING
        moved = np.linalg.norm(to_vector(self._now.turn)) > _STILL or abs(np.log(self._now.zoom)) > _STILL_ZOOM
        return ROTATING if moved or self.state == ROTATING else STATIC

    def _is_carried(self) -> bool:
        if len(self._tests) < _TESTS:
            return False
        _, shares, lenses = np.array(self._tests).T
        return bool(np.percentile(shares, _SHARE) > MIN_CARRIED_RAD or np.median(lenses) > LONG_LENS)
