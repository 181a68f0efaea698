"""Current rotation and zoom of the camera from past frames only, for live results."""

from collections import OrderedDict, deque

import numpy as np

from pose.structures.camera_rotations import to_matrix, to_vector
from pose.structures.types import F64, NO_LINK, Background
from pose.world.camera_motion.fit import IDENTITY_VIEW, View
from pose.world.camera_motion.parallax import MAX_FOCAL_RATIO, MIN_TRANSLATION_RAD
from pose.world.camera_motion.verdict import (  # fmt: skip
    MAX_SHAKE_DEGREES,
    MIN_ZOOM,
    ROTATING,
    STATIC,
    TRANSLATING,
    UNKNOWN,
    median_focal_ratio,
    proves_rotation,
)

_MAX_STATIC_RAD, _MAX_STATIC_ZOOM = np.radians(0.15), 0.006  # tolerances of a static camera: rad, and relative zoom
_LOST_S = 0.5  # s without a view after which the state is unknown
_EXTRAPOLATED_S = 0.15  # s of extrapolation
_MAX_VIEWS = 2000  # measured frames whose views are stored
# Parallax tests: s for which they are kept, minimum number, and percentile that is compared.
_MEMORY_S, _MIN_TESTS, _PERCENTILE = 10.0, 3, 60
_REST_S = 3.0  # s at rest, or without a test that shows translation, after which a carried camera has stopped


class CameraWatch:
    """Live estimate of the camera's view and of the kind of its motion."""

    def __init__(self, ignore_translation: bool = False) -> None:
        """Start without frames; `ignore_translation` treats a translating camera as a rotating one."""
        self._ignore = ignore_translation
        self._tests: deque[tuple[float, float, float, float]] = (
            deque()
        )  # time (s), parallax (rad), focal ratio, its sigma
        self._translated_at = -np.inf  # s, time of the last test that showed translation
        self._time = -np.inf  # s, time of the last measured view
        self._rest, self._moved = IDENTITY_VIEW, -np.inf  # view since the last motion, and time of this motion in s
        self._recent: deque[tuple[float, F64]] = deque()  # time (s), rotation vector and log zoom (4,)
        self.state = STATIC  # kind of motion in the last frame: 'static', 'rotating', 'translating' or 'unknown'
        self._views: OrderedDict[int, View] = OrderedDict()  # views by frame index, relative to the reference frame
        self._now, self._speed = IDENTITY_VIEW, np.zeros(3)  # last view, and angular velocity in rad/s

    @property
    def checks_feet(self) -> bool:
        """Whether standing feet must confirm the last view before it is used for world coordinates."""
        return self.state == ROTATING and not self._ignore

    @property
    def at_rest(self) -> bool:
        """Whether the camera has been at rest for some seconds."""
        return self._time - self._moved > _REST_S

    @property
    def excludes_translation(self) -> bool:
        """Whether the background proves, as in `CameraMotion`, that the camera did not translate of late."""
        views = np.array([view for _, view in self._recent]).reshape(-1, 4)
        if not len(views):
            return True
        if np.ptp(views[:, 3]) > np.log1p(MIN_ZOOM):
            return False
        if np.linalg.norm(np.ptp(views[:, :3], axis=0)) < np.radians(MAX_SHAKE_DEGREES):
            return True
        tests = [(ratio, sigma) for _, _, ratio, sigma in self._tests]
        return proves_rotation(*median_focal_ratio(np.array(tests).reshape(-1, 2)))

    def update(self, background: Background | None, index: int, time: float, cut: bool = False) -> View:
        """Process the next frame; return its view relative to the last reference frame, identity unless rotating."""
        if cut:
            self._tests.clear()
            self._translated_at = -np.inf
        if cut or self.state in (TRANSLATING, UNKNOWN):
            self._begin()
        linked = True if background is None else self._take(background, index, time)
        self.state = self._classify(time, linked or cut)
        if self.state != ROTATING:
            return IDENTITY_VIEW
        ahead = min(time - self._time, _EXTRAPOLATED_S)
        return View(to_matrix(self._speed * ahead) @ self._now.rotation, self._now.zoom)

    def _begin(self) -> None:
        self.state, self._now, self._speed, self._rest = STATIC, IDENTITY_VIEW, np.zeros(3), IDENTITY_VIEW
        self._views.clear()
        self._recent.clear()

    def _take(self, background: Background, index: int, time: float) -> bool:
        """Store a measured frame, and return whether it is connected to earlier ones, or its view is unknown."""
        if not np.isnan(background.parallax):
            self._tests.append((time, background.parallax, background.focal_ratio, background.focal_sigma))
        links = [row for row in background.links if row[0] != NO_LINK]
        views = {int(row[0]): View(to_matrix(row[1:4]).T, float(np.exp(row[4]))) for row in links}
        if not views:
            return True  # keep the last view until `_LOST_S`
        known = next((key for key in views if key in self._views), None)
        linked = known is not None or not self._views
        if not linked:
            self._begin()
        now = IDENTITY_VIEW if known is None else views[known].compose(self._views[known])
        for key, view in views.items():
            self._views.setdefault(key, view.inverse.compose(now))
            self._views.move_to_end(key)
        self._views[index] = now
        while len(self._views) > _MAX_VIEWS:
            self._views.popitem(last=False)
        if known is not None and 0 < time - self._time < _LOST_S:
            self._speed = to_vector(now.rotation @ self._now.rotation.T) / (time - self._time)
        self._now, self._time = now, time
        self._recent.append((time, np.append(to_vector(now.rotation), np.log(now.zoom))))
        while self._recent[0][0] < time - _MEMORY_S:
            self._recent.popleft()
        if not _are_equal(now, self._rest):
            self._rest, self._moved = now, time
        return linked

    def _classify(self, time: float, linked: bool) -> str:
        """Return the state, from the frames up to `time` (s)."""
        while self._tests and self._tests[0][0] < time - _MEMORY_S:
            self._tests.popleft()
        if self._shows_translation() and not self._ignore:
            self._translated_at = self._tests[-1][0]
        if not linked or time - self._time > _LOST_S:
            return UNKNOWN
        if time - self._translated_at < _REST_S:
            return TRANSLATING
        return ROTATING if self.state == ROTATING or not _are_equal(self._now, IDENTITY_VIEW) else STATIC

    def _shows_translation(self) -> bool:
        if len(self._tests) < _MIN_TESTS:
            return False
        _, parallaxes, ratios, _ = np.array(self._tests).T
        return bool(np.percentile(parallaxes, _PERCENTILE) > MIN_TRANSLATION_RAD or np.median(ratios) > MAX_FOCAL_RATIO)


def _are_equal(one: View, other: View) -> bool:
    turned = np.linalg.norm(to_vector(one.rotation @ other.rotation.T))
    return bool(turned <= _MAX_STATIC_RAD and abs(np.log(one.zoom / other.zoom)) <= _MAX_STATIC_ZOOM)
