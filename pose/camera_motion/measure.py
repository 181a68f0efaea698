"""The stage beside the detector: how each frame's background lies compared with key frames, from the past alone.

A frame is compared with the key frame that is in use, so that errors do not add up from frame to frame. When little of
that is left in view, another takes its place: an earlier one that looked there, which closes a loop, or this frame.
`pose.camera_motion.graph` puts the comparisons together.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.fit import SAME, View
from pose.camera_motion.key_frames import FEWEST, KeyFrame, Match, Reduced, centre, compare, most_alike
from pose.camera_motion.parallax import Parallax
from pose.camera_motion.reduced import features_at, find_features, people_mask, reduce
from pose.camera_motion.turns import to_matrix, to_vector
from pose.camera_motion.witness import Witness, tested
from pose.skeletons import Skeleton
from pose.types import NO_LINK, U8, Background, People

F64 = NDArray[np.float64]

_STILL_EVERY = 0.09  # s between two frames that are measured while nothing moves
_MOVING_EVERY, _SHAKING_EVERY = 0.09, 0.03  # where the view is, or is not, where it was expected
_MOVING, _EXPECTED = 0.3, 2.0  # px of the reduced image
_EASY = 25  # points; with fewer every frame counts
_LEAST_KEPT = 0.5  # of a key frame's features; with fewer another one is used
_LEAST_SHARE = 0.6  # of the points found again that agree
_MOST_ZOOM = 1.2
_MOST_ROLL = 0.2  # rad; small windows around features do not turn
_LOST = 0.5  # s without a view after which a key frame begins that is linked to none
_TRY_EVERY = 0.4  # s between two trials of another key frame
_LOOP_AFTER = 3.0  # s by which a key frame is older than the one in use whose match closes a loop
_LOOP_NEAR = 0.15  # rad between a frame and such a key frame
_LOOK_AT = 60  # key frames, the latest, when one is searched that shows the same
_MOST_KEYS = 150
_TEST_EVERY = 0.75  # s


class BackgroundMotion:
    """Frames and the people in them in, the background's motion out. Times must increase."""

    def __init__(self, focal: float, skeleton: Skeleton, known: bool = False) -> None:
        """focal: px of the original image. skeleton: of people's keypoints. known: whether the focal length is."""
        self._focal, self._skeleton, self._known = focal, skeleton, known
        self._stretches = 0
        self._forget()

    def _forget(self) -> None:
        self._keys: list[KeyFrame] = []
        self._key: KeyFrame | None = None
        self._view = self._before = SAME  # compared with the key frame: of the last measured frame, and the one before
        self._time = self._before_time = self._next = self._next_try = self._next_test = -np.inf
        self._lost_since: float | None = None
        self._witness: Witness | None = None
        self._last: Reduced | None = None  # the last frame whose view was found
        self._plain: Reduced | None = None  # a frame without features

    def step(self, image: U8, people: People) -> Background | None:
        """What the next frame says; None where it was not measured.

        image: (H, W, 3) RGB. people: in it.
        """
        if people.cut:
            self._forget()
        time = people.time
        if time < self._next - 1e-3:
            return None
        grey = reduce(image)
        scale = grey.shape[1] / image.shape[1]
        mask = people_mask(grey.shape, scale, people, self._skeleton)
        small = Reduced(people.index, time, grey, mask, self._focal * scale, scale, self._known)
        if self._key is None:
            return self._begin(small)
        expected = self._expected(time)
        match = self._match(self._key, small, expected)
        steady = match is not None and match.agreeing >= _EASY and _off(match, expected) * small.focal < _EXPECTED
        match = match or self._found_again(small)
        if match is not None:
            moved = self._key is not match.key or _apart(match.fit.view.of(self._view.inverse)) * small.focal > _MOVING
            moving = moved or match.shift > _MOVING
            self._next = time + (_SHAKING_EVERY if not steady else _MOVING_EVERY if moving else _STILL_EVERY)
            return self._take(match, small)
        self._lost_since = time if self._lost_since is None else self._lost_since
        self._next = time + (_SHAKING_EVERY if time - self._lost_since < 0.3 else _STILL_EVERY)
        return self._begin(small) if time - self._lost_since > _LOST else _unknown()

    def _begin(self, image: Reduced) -> Background:
        """A key frame that is linked to none."""
        features = find_features(image.grey, image.mask)
        self._next = image.time + _SHAKING_EVERY
        if len(features) < FEWEST:
            self._next = image.time + _STILL_EVERY
            return self._without_features(image)
        self._stretches += 1
        self._use(KeyFrame.of(image, features, SAME, self._stretches), SAME, image.time)
        self._before_time, self._last = -np.inf, image
        return Background(_links((image.index, SAME, 0.0)), len(features), 1.0, 0.0)

    def _without_features(self, image: Reduced) -> Background:
        """A frame that shows nothing to track: its view is known where it is the same image as before, bit for bit."""
        before = self._plain
        if before is not None and before.grey.shape == image.grey.shape:
            both = np.minimum(image.mask, before.mask)
            if np.array_equal(before.grey[both > 0], image.grey[both > 0]):
                return Background(_links((before.index, SAME, 0.0)), 0, 1.0, 0.0)
        self._plain = image
        return Background(_links((image.index, SAME, 0.0)), 0, 1.0, 0.0)

    def _use(self, key: KeyFrame, view: View, time: float) -> None:
        """Compare with a key frame from now on. view: of the last frame, compared with it."""
        if key not in self._keys:
            self._keys.append(key)
            if len(self._keys) > _MOST_KEYS:
                self._keys.pop(1)
        self._before = self._before.of(self._view.inverse).of(view)
        self._key, self._view, self._time, self._lost_since = key, view, time, None

    def _expected(self, time: float) -> View:
        """Where the camera should look now if it goes on as it did."""
        elapsed = self._time - self._before_time
        if not 0 < elapsed < 0.3 or time - self._time > 0.3:
            return self._view
        turn = to_vector(self._view.turn @ self._before.turn.T) * (time - self._time) / elapsed
        return View(to_matrix(turn) @ self._view.turn, self._view.zoom)

    def _match(self, key: KeyFrame, image: Reduced, expected: View, levels: int = 2) -> Match | None:
        before = self._view if key is self._key else expected
        match = compare(key, image, expected, before, levels)
        return match if match is not None and match.good else None

    def _found_again(self, image: Reduced) -> Match | None:
        """A match where the first trial failed: after a fast turn, or after something hid the background."""
        assert self._key is not None
        if self._lost_since is None and self._last is not None:  # from the frame before
            last = self._last
            place = self._view.of(self._key.place)
            key = KeyFrame.of(last, find_features(last.grey, last.mask), place, self._key.stretch)
            return self._match(key, image, self._expected(image.time).of(self._view.inverse), levels=3)
        match = self._match(self._key, image, self._view, levels=3)
        if match is not None or image.time < self._next_try:
            return match
        self._next_try = image.time + _TRY_EVERY
        key, turned = most_alike(self._keys[-_LOOK_AT:], image)
        return self._match(key, image, turned, levels=3)

    def _take(self, match: Match, image: Reduced) -> Background:
        """A frame whose view is found."""
        view, time = match.fit.view, image.time
        if match.key is not self._key:
            self._use(match.key, view, time)
            self._before_time = -np.inf
        else:
            self._before, self._before_time = self._view, self._time
            self._view, self._time, self._lost_since = view, time, None
        self._last = image
        match.remember(image)
        links = [(match.key.index, view, match.fit.sigma)]
        other = self._other_key(match, image)
        if other is not None:
            links.append((other.key.index, other.fit.view, other.fit.sigma))
        found = self._tested(match, image)
        numbers = (len(match.seen), match.share, match.shift / image.scale)
        if found is None:
            return Background(_links(*links), *numbers)
        return Background(_links(*links), *numbers, found.parallax, found.lens, found.lens_sigma)

    def _tested(self, match: Match, image: Reduced) -> Parallax | None:
        """Whether the camera moved from its place; None where it is too early to tell."""
        key, view, found = match.key, match.fit.view, None
        assert self._key is not None
        last = self._key is not key
        if last or image.time >= self._next_test:
            self._next_test = image.time + _TEST_EVERY
            found = tested(key, match.points, view, image)
        witness = self._witness
        if witness is not None and witness.key is not self._key:
            other = witness.step(image, self._view.of(self._key.place).of(witness.key.place.inverse))
            found = _both(found, other)
            self._witness = None if witness.over else witness
        if last and self._witness is None and not _out_of_reach(match, image):
            self._witness = Witness(key, image.time)
        return found

    def _other_key(self, match: Match, image: Reduced) -> Match | None:
        """Change the key frame where another serves better; the match with an earlier one that took its place."""
        key, view = match.key, match.fit.view
        worn = match.kept < _LEAST_KEPT or match.share < _LEAST_SHARE or _out_of_reach(match, image)
        if not worn and image.time < self._next_try:
            return None
        self._next_try = image.time + _TRY_EVERY
        now = view.of(key.place)
        found = self._earlier_key(key, image, now, 0.8 * _apart(view) if worn else 0.0)
        if found is not None:
            self._use(found.key, found.fit.view, image.time)
        elif worn:
            # Where the camera stays, only what is known to stay is taken along: something else may hide the background.
            still = match.shift < 5 * _MOVING
            known = match.seen[match.fit.inliers] + centre(image.grey)
            features = features_at(image.grey, known) if still else find_features(image.grey, image.mask)
            if len(features) >= FEWEST and not (still and match.kept > _LEAST_KEPT):
                self._use(KeyFrame.of(image, features, now, key.stretch), SAME, image.time)
        return found

    def _earlier_key(self, key: KeyFrame, image: Reduced, now: View, nearer: float) -> Match | None:
        """The match with an earlier key frame: one of another stretch, one that closes a loop, or one that is `nearer`,
        rad. now: the frame's view, compared with what places of key frames are compared with.
        """
        strange = [other for other in self._keys if other.stretch != key.stretch][-_LOOK_AT:]
        if strange:
            other, expected = most_alike(strange, image)
            found = self._match(other, image, expected, levels=3)
            if found is not None and found.kept > _LEAST_KEPT:
                self._join(key.stretch, now, other.stretch, found.fit.view.of(other.place))
                return found
        trials = []
        for other in self._keys:
            away = _apart(now.of(other.place.inverse))
            old = key.time - other.time > _LOOP_AFTER
            if other.stretch == key.stretch and other is not key and away < (_LOOP_NEAR if old else nearer):
                trials.append((not old, away, other))
        for recent, _, other in sorted(trials, key=lambda trial: trial[:2])[:1]:
            found = self._match(other, image, now.of(other.place.inverse), levels=2 if recent else 3)
            if found is not None and found.kept > _LEAST_KEPT:
                return found
        return None

    def _join(self, stretch: int, now: View, other: int, now_there: View) -> None:
        """Two stretches of key frames are one: the first's are put where they are in the other."""
        shift = now.inverse.of(now_there)
        for key in self._keys:
            if key.stretch == stretch:
                key.place, key.stretch = key.place.of(shift), other


def _both(one: Parallax | None, other: Parallax | None) -> Parallax | None:
    """The larger parallax, and the focal length of the test that determines it better."""
    if one is None or other is None:
        return one or other
    lens = one if one.lens_sigma < other.lens_sigma else other
    return replace(lens, parallax=max(one.parallax, other.parallax))


def _out_of_reach(match: Match, image: Reduced) -> bool:
    """Whether much of the key frame is out of view, or turned or zoomed beyond what small windows bear."""
    view = match.fit.view
    roll = abs(float(to_vector(view.turn)[2]))
    height, width = image.grey.shape
    shown = view.project(match.key.rays, image.focal) + centre(image.grey)
    inside = ((shown > 0) & (shown < [width, height])).all(axis=1)
    return bool(inside.mean() < _LEAST_KEPT or abs(np.log(view.zoom)) > np.log(_MOST_ZOOM) or roll > _MOST_ROLL)


def _apart(view: View) -> float:
    """How far a view is from none, rad and zoom together."""
    return float(np.linalg.norm(to_vector(view.turn))) + abs(float(np.log(view.zoom)))


def _off(match: Match, expected: View) -> float:
    return _apart(match.fit.view.of(expected.inverse))


def _links(*views: tuple[int, View, float]) -> F64:
    """The array of `Background` of key frames, views compared with them and standard deviations."""
    links = np.zeros((2, 6))
    links[:, 0] = NO_LINK
    for row, (key, view, sigma) in enumerate(views):
        links[row] = [key, *to_vector(view.turn.T), np.log(view.zoom), sigma]
    return links


def _unknown() -> Background:
    return Background(_links(), 0, 0.0, 0.0)
