"""Causal measurement of the camera's rotation and zoom in each frame, relative to key frames.

Frames are compared with the current key frame, so that errors do not accumulate from frame to frame. When little of the
key frame remains in view, another key frame replaces it: an earlier one with the same view, which closes a loop, or the
current frame. `pose.world.camera_motion.path` combines the comparisons.
"""

from dataclasses import replace

import numpy as np

from pose.structures.camera_rotations import to_matrix, to_vector
from pose.structures.skeletons import Skeleton
from pose.structures.types import F64, NO_LINK, U8, Background, People
from pose.world.camera_motion.fit import IDENTITY_VIEW, View
from pose.world.camera_motion.key_frames import (
    MIN_POINTS,
    KeyFrame,
    Match,
    ReducedFrame,
    centre,
    compare,
    most_similar_key,
)
from pose.world.camera_motion.parallax import Parallax
from pose.world.camera_motion.reduced import LEVELS, BurntIn, burnt_in, features_at, find_features, people_mask, reduce
from pose.world.camera_motion.replaced_key import ReplacedKey, measure_parallax

_STATIC_INTERVAL_S = 0.09  # s between two measured frames of a static camera
_MOVING_INTERVAL_S, _UNSTEADY_INTERVAL_S = 0.09, 0.03  # s between measured frames if motion is as expected, and if not
# px of the reduced image: minimum motion of a moving camera, maximum deviation from the expected motion
_MIN_MOTION_PX, _MAX_DEVIATION_PX = 0.3, 2.0
_MANY_POINTS = 25  # points; with fewer, every frame is measured
_MIN_TRACKED_SHARE = 0.5  # minimum fraction of a key frame's features; with fewer, another one is used
_MIN_INLIER_SHARE = 0.6  # minimum fraction of inliers
_MAX_ZOOM = 1.2  # maximum zoom relative to the key frame, or its inverse
_MAX_ROLL_RAD = 0.2  # rad, maximum roll relative to the key frame, because feature windows are not rotated
_LOST_S = 0.5  # s without a view after which an unconnected key frame is started
_RETRY_INTERVAL_S = 0.4  # s between two attempts with another key frame
_MIN_LOOP_S = 3.0  # s; minimum age difference of key frames for a loop closure
_MAX_LOOP_RAD = 0.15  # rad; maximum angle between a frame and such a key frame
_SEARCHED_KEYS = 60  # latest key frames that are searched for the same view
_MAX_KEYS = 150  # maximum number of key frames in memory
_TEST_INTERVAL_S = 0.75  # s between two parallax tests


class BackgroundMotion:
    """Measurement of the background's motion, frame by frame, after people, whom it leaves out, are detected."""

    def __init__(self, focal: float, skeleton: Skeleton, focal_known: bool = False) -> None:
        """Start without frames."""
        self._focal, self._skeleton, self._focal_known = focal, skeleton, focal_known
        self._components = 0
        self._burnt_in = BurntIn()
        self._reset()

    def _reset(self) -> None:
        self._keys: list[KeyFrame] = []
        self._key: KeyFrame | None = None
        # Views of the last measured frame, and of the one before, relative to the key frame.
        self._view = self._before = IDENTITY_VIEW
        self._time = self._before_time = self._next = self._next_try = self._next_test = -np.inf
        self._lost_since: float | None = None
        self._replaced: ReplacedKey | None = None
        self._last: ReducedFrame | None = None  # last frame with a known view
        self._plain: ReducedFrame | None = None  # last frame without features

    def step(self, image: U8, people: People) -> Background | None:
        """Measure the next (H, W, 3) RGB frame without its people, relative to key frames; None if it was skipped."""
        if people.cut:
            self._reset()
        time = people.time
        if time < self._next - 1e-3:
            return None
        grey = reduce(image)
        scale = grey.shape[1] / image.shape[1]
        mask = self._burnt_in.exclude_from(people_mask(grey.shape, scale, people, self._skeleton))
        small = ReducedFrame(people.index, time, grey, mask, self._focal * scale, scale, self._focal_known)
        if self._key is None:
            return self._begin(small)
        expected = self._expected(time)
        match = self._match(self._key, small, expected)
        steady = (
            match is not None
            and match.inlier_count >= _MANY_POINTS
            and _deviation(match, expected) * small.focal < _MAX_DEVIATION_PX
        )
        match = match or self._match_again(small)
        if match is not None:
            moved = (
                self._key is not match.key
                or _distance_from_identity(match.fit.view.compose(self._view.inverse)) * small.focal > _MIN_MOTION_PX
            )
            moving = moved or match.shift > _MIN_MOTION_PX
            self._next = time + (
                _UNSTEADY_INTERVAL_S if not steady else _MOVING_INTERVAL_S if moving else _STATIC_INTERVAL_S
            )
            return self._take(match, small)
        self._lost_since = time if self._lost_since is None else self._lost_since
        self._next = time + (_UNSTEADY_INTERVAL_S if time - self._lost_since < 0.3 else _STATIC_INTERVAL_S)
        return self._begin(small) if time - self._lost_since > _LOST_S else _unknown()

    def _begin(self, image: ReducedFrame) -> Background:
        """Make the frame a key frame that is not connected to earlier ones."""
        features = find_features(image.grey, image.mask)
        self._next = image.time + _UNSTEADY_INTERVAL_S
        if len(features) < MIN_POINTS:
            self._next = image.time + _STATIC_INTERVAL_S
            return self._without_features(image)
        self._components += 1
        self._use(KeyFrame.of(image, features, IDENTITY_VIEW, self._components), IDENTITY_VIEW, image.time)
        self._before_time, self._last = -np.inf, image
        return Background(_links((image.index, IDENTITY_VIEW, 0.0)), len(features), 1.0, 0.0)

    def _without_features(self, image: ReducedFrame) -> Background:
        """Process a frame without features, connected to the previous such frame only if both images are identical."""
        before = self._plain
        if before is not None and before.grey.shape == image.grey.shape:
            both = np.minimum(image.mask, before.mask)
            if np.array_equal(before.grey[both > 0], image.grey[both > 0]):
                return Background(_links((before.index, IDENTITY_VIEW, 0.0)), 0, 1.0, 0.0)
        self._plain = image
        return Background(_links((image.index, IDENTITY_VIEW, 0.0)), 0, 1.0, 0.0)

    def _use(self, key: KeyFrame, view: View, time: float) -> None:
        """Use another key frame, relative to which the last frame has the given view."""
        if key not in self._keys:
            self._keys.append(key)
            if len(self._keys) > _MAX_KEYS:
                self._keys.pop(1)
        self._before = self._before.compose(self._view.inverse).compose(view)
        self._key, self._view, self._time, self._lost_since = key, view, time, None

    def _expected(self, time: float) -> View:
        """Return the view extrapolated to `time`."""
        elapsed = self._time - self._before_time
        if not 0 < elapsed < 0.3 or time - self._time > 0.3:
            return self._view
        rotation = to_vector(self._view.rotation @ self._before.rotation.T) * (time - self._time) / elapsed
        return View(to_matrix(rotation) @ self._view.rotation, self._view.zoom)

    def _match(self, key: KeyFrame, image: ReducedFrame, expected: View, levels: int = LEVELS) -> Match | None:
        before = self._view if key is self._key else expected
        match = compare(key, image, expected, before, levels)
        return match if match is not None and match.is_reliable else None

    def _match_again(self, image: ReducedFrame) -> Match | None:
        """Match again with other initial views after a failure, such as a fast rotation or an occluded background."""
        assert self._key is not None
        if self._lost_since is None and self._last is not None:  # make the previous frame a key frame
            last = self._last
            view = self._view.compose(self._key.view)
            key = KeyFrame.of(last, find_features(last.grey, last.mask), view, self._key.component)
            return self._match(key, image, self._expected(image.time).compose(self._view.inverse), levels=3)
        match = self._match(self._key, image, self._view, levels=3)
        if match is not None or image.time < self._next_try:
            return match
        self._next_try = image.time + _RETRY_INTERVAL_S
        key, turned = most_similar_key(self._keys[-_SEARCHED_KEYS:], image)
        return self._match(key, image, turned, levels=3)

    def _take(self, match: Match, image: ReducedFrame) -> Background:
        """Store a frame whose view was found, and return its background motion."""
        view, time = match.fit.view, image.time
        if match.key is not self._key:
            self._use(match.key, view, time)
            self._before_time = -np.inf
        else:
            self._before, self._before_time = self._view, self._time
            self._view, self._time, self._lost_since = view, time, None
        self._last = image
        match.store_residuals(image)
        rays, seen = match.key.rays[match.points.rows], match.points.seen
        self._burnt_in.add(seen[burnt_in(rays, seen, view, image.focal)] + centre(image.grey), image.grey.shape)
        links = [(match.key.index, view, match.fit.sigma)]
        other = self._other_key(match, image)
        if other is not None:
            links.append((other.key.index, other.fit.view, other.fit.sigma))
        found = self._measure_parallax(match, image)
        numbers = (len(match.seen), match.inlier_share, match.shift / image.scale)
        if found is None:
            return Background(_links(*links), *numbers)
        return Background(_links(*links), *numbers, found.parallax, found.focal_ratio, found.focal_sigma)

    def _measure_parallax(self, match: Match, image: ReducedFrame) -> Parallax | None:
        """Test for camera translation; return None if it is too early."""
        key, view, found = match.key, match.fit.view, None
        assert self._key is not None
        last = self._key is not key
        if last or image.time >= self._next_test:
            self._next_test = image.time + _TEST_INTERVAL_S
            found = measure_parallax(key, match.points, view, image)
        replaced = self._replaced
        if replaced is not None and replaced.key is not self._key:
            other = replaced.step(image, self._view.compose(self._key.view).compose(replaced.key.view.inverse))
            found = _combined(found, other)
            self._replaced = None if replaced.ended else replaced
        if last and self._replaced is None and not _is_untrackable(match, image):
            self._replaced = ReplacedKey(key, image.time)
        return found

    def _other_key(self, match: Match, image: ReducedFrame) -> Match | None:
        """Switch to a better key frame, and return the match with an earlier key frame if one was chosen."""
        key, view = match.key, match.fit.view
        needs_other_key = (
            match.tracked_share < _MIN_TRACKED_SHARE
            or match.inlier_share < _MIN_INLIER_SHARE
            or _is_untrackable(match, image)
        )
        if not needs_other_key and image.time < self._next_try:
            return None
        self._next_try = image.time + _RETRY_INTERVAL_S
        now = view.compose(key.view)
        earlier = self._earlier_key(key, image, now, 0.8 * _distance_from_identity(view) if needs_other_key else 0.0)
        if earlier is not None:
            self._use(earlier.key, earlier.fit.view, image.time)
        elif needs_other_key:
            # For a static camera keep only static points: the background may be occluded.
            still = match.shift < 5 * _MIN_MOTION_PX
            static_points = match.seen[match.fit.inliers] + centre(image.grey)
            features = features_at(image.grey, static_points) if still else find_features(image.grey, image.mask)
            if len(features) >= MIN_POINTS and not (still and match.tracked_share > _MIN_TRACKED_SHARE):
                self._use(KeyFrame.of(image, features, now, key.component), IDENTITY_VIEW, image.time)
        return earlier

    def _earlier_key(self, key: KeyFrame, image: ReducedFrame, now: View, max_distance: float) -> Match | None:
        """Return the match with an earlier key frame that joins components, closes a loop or is closer, or None."""
        unconnected = [other for other in self._keys if other.component != key.component][-_SEARCHED_KEYS:]
        if unconnected:
            other, expected = most_similar_key(unconnected, image)
            found = self._match(other, image, expected, levels=3)
            if found is not None and found.tracked_share > _MIN_TRACKED_SHARE:
                self._join(key.component, now, other.component, found.fit.view.compose(other.view))
                return found
        trials = []
        for other in self._keys:
            distance = _distance_from_identity(now.compose(other.view.inverse))
            old = key.time - other.time > _MIN_LOOP_S
            if (
                other.component == key.component
                and other is not key
                and distance < (_MAX_LOOP_RAD if old else max_distance)
            ):
                trials.append((not old, distance, other))
        for recent, _, other in sorted(trials, key=lambda trial: trial[:2])[:1]:
            found = self._match(other, image, now.compose(other.view.inverse), levels=LEVELS if recent else 3)
            if found is not None and found.tracked_share > _MIN_TRACKED_SHARE:
                return found
        return None

    def _join(self, component: int, now: View, other: int, now_there: View) -> None:
        """Merge two components of key frames by the two views of one frame: the first gets the axes of the other."""
        shift = now.inverse.compose(now_there)
        for key in self._keys:
            if key.component == component:
                key.view, key.component = key.view.compose(shift), other


def _combined(one: Parallax | None, other: Parallax | None) -> Parallax | None:
    """Return the larger parallax, with the focal length of the more accurate test."""
    if one is None or other is None:
        return one or other
    accurate = one if one.focal_sigma < other.focal_sigma else other
    return replace(accurate, parallax=max(one.parallax, other.parallax))


def _is_untrackable(match: Match, image: ReducedFrame) -> bool:
    """Return whether much of the key frame is out of view, or roll or zoom is too large for small feature windows."""
    view = match.fit.view
    roll = abs(float(to_vector(view.rotation)[2]))
    height, width = image.grey.shape
    shown = view.project(match.key.rays, image.focal) + centre(image.grey)
    inside = ((shown > 0) & (shown < [width, height])).all(axis=1)
    return bool(
        inside.mean() < _MIN_TRACKED_SHARE or abs(np.log(view.zoom)) > np.log(_MAX_ZOOM) or roll > _MAX_ROLL_RAD
    )


def _distance_from_identity(view: View) -> float:
    """Return the distance of a view from identity: the angle in rad plus the absolute logarithm of the zoom."""
    return float(np.linalg.norm(to_vector(view.rotation))) + abs(float(np.log(view.zoom)))


def _deviation(match: Match, expected: View) -> float:
    return _distance_from_identity(match.fit.view.compose(expected.inverse))


def _links(*views: tuple[int, View, float]) -> F64:
    """Return the `links` of a `Background`, from up to two key frames: index, view and standard deviation in rad."""
    links = np.zeros((2, 6))
    links[:, 0] = NO_LINK
    for row, (key, view, sigma) in enumerate(views):
        links[row] = [key, *to_vector(view.rotation.T), np.log(view.zoom), sigma]
    return links


def _unknown() -> Background:
    return Background(_links(), 0, 0.0, 0.0)
