"""Which frames become samples, and who is estimated between them. The tracker and its people are simulated."""

import numpy as np
import pytest

from pose.structures.skeletons import COCO17
from pose.structures.types import Frame, Keypoints2D, People, Regions
from pose.tracking.sampling import SEARCH_S, SampledTracker

HEIGHT, WRIST = 200.0, COCO17.index("left_wrist")
BODY = np.random.default_rng(0).uniform(0, HEIGHT, (17, 2)).astype(np.float32)
BODY[0], BODY[-1] = 0, HEIGHT


def slow(time):
    return BODY + np.float32(20 * time)


def kick(time):
    """A wrist that moves away and back within a fifth of a second around 1 s."""
    pose = slow(time)
    pose[WRIST, 0] += 150 * np.exp(-(((time - 1) / 0.06) ** 2))
    return pose


def region_at(x):
    return Regions(np.array([[x, 0]], np.float32), np.full((1, 2), HEIGHT, np.float32), np.zeros(1, np.float32))


class Film:
    """A tracker of people whose motion is known; the red channel of an image is the number of the frame."""

    skeleton = COCO17

    def __init__(self, times, **people):
        self.times, self.people = np.asarray(times), {ord(name) - ord("a"): motion for name, motion in people.items()}
        self.tracked, self.estimated, self.cuts, self.regions = [], [], [], {}

    def frames(self):
        for index, time in enumerate(self.times.tolist()):
            image = np.full((64, 64, 3), 128, np.uint8)
            image[:, ::2] = 60  # enough contrast for the detection of cuts
            image[0, 0] = index % 256, index // 256, 0
            yield Frame(image, index, time)

    def seen(self, person, time):
        pose = self.people[person](time)
        return None if pose is None else pose + np.float32(1000 * person)

    def step(self, image, index, time, *, cut):
        self.tracked.append(index)
        self.cuts.append(cut)
        poses = {person: pose for person in self.people if (pose := self.seen(person, time)) is not None}
        self.regions = {person: region_at(1000 * person) for person in poses}
        xy = np.array([*poses.values()], np.float32).reshape(-1, 17, 2)
        count, scores = len(poses), np.ones((len(poses), 17), np.float32)
        ids = np.array([*poses], np.int64)
        return People(index, time, ids, np.zeros((count, 4), np.float32), np.ones(count, np.float32), xy, scores)

    def estimate(self, image, region):
        index, person = int(image[0, 0, 0]) + 256 * int(image[0, 0, 1]), round(region.centers[0, 0] / 1000)
        self.estimated.append(index)
        pose = self.seen(person, self.times[index])
        found = np.float32(pose is not None)
        return Keypoints2D(
            (BODY if pose is None else pose)[None], np.full((1, 17), found), np.array([found]), region_at(0)
        )

    def is_present(self, keypoints):
        return bool(keypoints.presence[0] > 0.5)


def run(film, rate=15.0, frames=None):
    sampled = SampledTracker(film, rate)
    done = [each for frame in frames or film.frames() for each in sampled.push(frame)]
    return [each.people for each in done + sampled.flush()]


@pytest.mark.parametrize("fps", [24, 25, 30, 50, 60, 120, 240])
def test_slow_motion_is_sampled_at_the_rate_whatever_the_frame_rate(fps):
    film = Film(np.arange(2 * fps + 1) / fps, a=slow)
    people = run(film)
    assert [each.index for each in people] == list(range(2 * fps + 1))
    assert [each.index for each in people if each.sampled] == film.tracked
    assert film.tracked[0] == 0
    assert film.tracked[-1] == 2 * fps
    later = [index for index in film.tracked if index >= SEARCH_S * fps]
    assert 11.5 <= (len(later) - 1) / (2 - SEARCH_S) <= 17.5
    assert not film.estimated


def test_variable_frame_rates_are_sampled_by_time():
    rng = np.random.default_rng(1)
    times = np.cumsum(rng.uniform(0.005, 0.04, 400))
    film = Film(times, a=slow)
    run(film)
    steps = np.diff(times[film.tracked])
    assert 0.05 < np.median(steps) < 0.08
    assert steps.max() < 0.1


@pytest.mark.parametrize("count", [57, 58, 59, 60])
@pytest.mark.parametrize("after", [1, 2, 30])
def test_a_person_who_leaves_before_a_gap_in_time_is_found_up_to_the_end(count, after):
    """`after` frames follow the gap, which is longer than samples are kept for."""
    before = np.arange(count) / 60
    film = Film([*before, *(5 + np.arange(after) / 60)], a=lambda time: slow(time) if time < 3 else None, b=slow)
    people = run(film)
    assert [each.index for each in people] == list(range(count + after))
    last = max(each.index for each in people if 0 in each.ids)
    assert last >= count - 3, "up to the last image that is kept"


@pytest.mark.parametrize(("rate", "fps"), [(15, 10), (60, 30), (1000, 240)])
def test_a_rate_above_the_frame_rate_samples_every_frame(rate, fps):
    people = run(Film(np.arange(40) / fps, a=slow), rate)
    assert all(each.sampled for each in people)


@pytest.mark.parametrize("fps", [30, 60, 240])
def test_fast_motion_is_estimated_between_samples(fps):
    film = Film(np.arange(2 * fps) / fps, a=kick)
    people = run(film)
    added = [each.time for each in people if not each.sampled and len(each)]
    assert added
    assert all(abs(time - 1) < 0.3 for time in added)
    (peak,) = (each for each in people if abs(each.time - 1) < 0.4 / fps)
    near = [each for each in people if len(each) and abs(each.time - 1) < 0.15]
    assert np.diff([each.time for each in near]).max() < 0.04  # of 0.067 s
    np.testing.assert_allclose(near[0].keypoints[0], kick(near[0].time))
    assert len(peak) or fps == 240


def test_images_between_samples_are_kept_only_at_the_finest_rate():
    film = Film(np.arange(240) / 240, a=kick)
    sampled, most = SampledTracker(film, 15.0), 0
    for frame in film.frames():
        sampled.push(frame)
        most = max(most, sum(held.image is not None for held in sampled._queue))
    assert most <= 16
    assert np.diff(sorted({*film.tracked, *film.estimated})).min() >= 4


def test_the_last_frame_of_a_scene_and_the_first_of_the_next_are_samples():
    film = Film(np.arange(60) / 30, a=slow)
    frames = list(film.frames())
    for place, frame in enumerate(frames):
        scene = np.random.default_rng(place > 30)
        frame.image[1:] = np.kron(scene.integers(0, 255, (9, 8, 3)), np.ones((7, 8, 1)))[:63]
    people = run(film, frames=frames)
    assert [index for index, cut in zip(film.tracked, film.cuts, strict=True) if cut] == [31]
    assert {30, 31} <= set(film.tracked)
    assert len(people) == 60


def test_entering_and_leaving_people_are_searched_between_samples():
    def passing(time):
        return slow(time) if 0.45 <= time <= 1.22 else None

    film = Film(np.arange(121) / 60, a=slow, b=passing)
    people = run(film)
    seen = [each.time for each in people if 1 in each.ids.tolist()]
    assert min(seen) == pytest.approx(0.45, abs=1 / 120)
    assert max(seen) == pytest.approx(1.22, abs=1 / 60)


def test_a_pose_of_another_person_is_not_added():
    class Confused(Film):
        def estimate(self, image, region):
            return super().estimate(image, region_at(1000))  # the other person's crop

    film = Confused(np.arange(60) / 30, a=kick, b=slow)
    people = run(film)
    assert film.estimated
    assert not any(len(each) for each in people if not each.sampled)
