"""People predicted to the moment they are shown, and carried on while they are hidden."""

import json
from dataclasses import replace

import numpy as np
import pytest
from live_fakes import FakePipeline, FakeSession, picture, settled
from pose_fakes import SIZE, STANDING, seen_result

from pose.config import LiveConfig
from pose.errors import UsageError
from pose.lifting.forecast import DampedVelocity, ZeroVelocity
from pose.lifting.forecast.stabilized import StabilizedForecaster, carrying_joints
from pose.lifting.forecast.types import PastBuffer
from pose.live import LiveLoop, PushedFrames
from pose.live.ahead import PosePredictor
from pose.live.horizon import MAX_HORIZON_S, Horizon
from pose.live.messages import messages
from pose.structures.camera import Camera, project
from pose.structures.skeletons import BLAZEPOSE33, H36M17, HALPE26, WHOLEBODY133
from pose.structures.types import FrameResult, Placed
from pose.world.frame import World, rotation_of

CAMERA = Camera.of(SIZE)
SPEED = np.array([0.6, 0.0, -0.3])  # m/s


def walker(time, speed=SPEED, start=(-0.5, 0.0, 4.0), index=0):
    return seen_result([np.array(start) + np.array(speed) * time], index=index, time=time)


def without(result, *ids):
    """The same frame, but these people were not found."""
    rows = ~np.isin(result.people.ids, ids)
    return FrameResult(result.people[rows], result.poses[rows])


def played(ahead, frames, seconds):
    return [ahead(frame, seconds) for frame in frames]


def new_ahead(forecaster=None, **options):
    return PosePredictor(H36M17, CAMERA, forecaster=forecaster or DampedVelocity(), **options)


TIMES = np.arange(30) / 30
IRREGULAR = np.cumsum(np.random.default_rng(5).uniform(0.005, 0.07, 30))


@pytest.mark.parametrize("times", [TIMES, IRREGULAR], ids=["even", "irregular"])
def test_constant_velocity_walker_is_predicted_exactly(times):
    """Damping holds the pelvis back by h^2 / 2 tau: 3 mm of these 67."""
    seconds = 0.1
    shown = played(new_ahead(), [walker(time) for time in times.tolist()], seconds)[-1]
    true, late = walker(times[-1] + seconds), walker(times[-1])
    assert np.linalg.norm(shown.poses.root - true.poses.root) < 0.1 * np.linalg.norm(late.poses.root - true.poses.root)
    assert shown.poses.ahead.tolist() == [pytest.approx(seconds)]
    off = np.linalg.norm(shown.people.keypoints - true.people.keypoints, axis=-1)
    assert off.max() < 0.1 * np.linalg.norm(late.people.keypoints - true.people.keypoints, axis=-1).mean()
    assert np.abs(shown.people.boxes - true.people.boxes).max() < 1.0
    assert shown.people.scores.tolist() == late.people.scores.tolist()
    assert (shown.poses.sigma[:, 1:] > late.poses.sigma[:, 1:]).all()
    assert shown.time == late.time


def test_predicted_keypoints_do_not_depend_on_the_world():
    """What is drawn there is what was seen, gone on by as much as the 3D moves, wherever the 3D lies."""
    frames = [walker(time) for time in TIMES.tolist()]
    off = [replace(frame, poses=replace(frame.poses, root=1.1 * frame.poses.root)) for frame in frames]
    drawn, drawn_off = (played(new_ahead(), some, 0.1)[-1].people.keypoints for some in (frames, off))
    gone = np.linalg.norm(drawn - frames[-1].people.keypoints, axis=-1)
    assert gone.min() > 5
    assert np.linalg.norm(drawn - drawn_off, axis=-1).max() < 0.1 * gone.min()


def test_people_without_3d_are_not_predicted():
    ahead = new_ahead()
    for time in TIMES.tolist():
        frame = seen_result([SPEED * time + [0, 0, 4], SPEED * time + [1, 0, 5]], time=time)
        frame.poses.joints[1, 5] = np.nan
        shown = ahead(frame, 0.1)
    assert shown.poses.ahead.tolist() == [pytest.approx(0.1), 0]
    assert np.array_equal(shown.people.keypoints[1], frame.people.keypoints[1])
    assert np.array_equal(shown.poses.root[1], frame.poses.root[1])


def test_world_position_follows_the_predicted_pose():
    world = World(rotation_of([0.1, -0.9, 0.3]), -1.2, "feet", 1.0)

    def placed(result):
        n = len(result.people)
        joints = world.place(result.poses.joints + result.poses.root[:, None]).astype(np.float32)
        one = np.ones(n, np.float32)
        return replace(result, placed=Placed(joints, 30 * one, np.ones((n, 2), np.float32), one < 0, one))

    ahead = new_ahead()
    shown = played(ahead, [placed(walker(time)) for time in TIMES.tolist()], 0.1)[-1]
    want = world.place(shown.poses.joints + shown.poses.root[:, None])
    np.testing.assert_allclose(shown.placed.joints, want, atol=1e-5)
    assert shown.placed.root_sigma[0] > 30
    hidden = ahead(placed(without(walker(TIMES[-1] + 0.1), 1)), 0.1)
    want = world.place(hidden.poses.joints + hidden.poses.root[:, None])
    np.testing.assert_allclose(hidden.placed.joints, want, atol=1e-5)
    assert hidden.placed.filled.tolist() == [True]


def test_hidden_person_is_bridged_with_growing_sigma_then_removed():
    ahead = new_ahead()
    played(ahead, [walker(time) for time in TIMES.tolist()], 0.0)
    carried = []
    for number in range(1, 31):
        time = TIMES[-1] + number / 30
        frame = without(walker(time), 1)
        shown = ahead(frame, 0.0)
        if number / 30 > LiveConfig.bridge + 1e-6:
            assert shown is frame
            continue
        carried.append(shown)
        assert shown.people.ids.tolist() == [1]
        assert shown.people.scores.max() == 0
        assert shown.people.box_scores.tolist() == [0]
        assert shown.poses.ahead[0] == pytest.approx(number / 30, abs=1e-5)
        truth, held = walker(time).poses.root, walker(TIMES[-1]).poses.root
        assert np.linalg.norm(shown.poses.root - truth) < 0.5 * np.linalg.norm(held - truth)
        assert np.abs(shown.people.boxes - walker(time).people.boxes).max() < 25
    assert len(carried) == round(30 * LiveConfig.bridge)
    sigmas = np.array([shown.poses.sigma[0, 1:] for shown in carried])
    assert (np.diff(sigmas, axis=0) > 0).all()


def test_short_departed_or_cut_tracks_are_not_bridged():
    moment = new_ahead()
    played(moment, [walker(time) for time in TIMES[:4].tolist()], 0.0)
    assert len(moment(without(walker(TIMES[4]), 1), 0.0).people) == 0

    renamed = new_ahead()
    played(renamed, [walker(time) for time in TIMES.tolist()], 0.0)
    frame = walker(TIMES[-1] + 0.1)
    frame = replace(frame, people=replace(frame.people, ids=np.array([2])))
    assert renamed(frame, 0.0).people.ids.tolist() == [2]

    gone = new_ahead()
    out = [walker(time, speed=(1.0, 0, 0), start=(0.7, 0, 2.2)) for time in TIMES.tolist()]
    played(gone, out, 0.0)
    assert project(out[-1].poses.root, CAMERA.matrix)[0, 0] > SIZE[0]
    assert len(gone(without(walker(TIMES[-1] + 0.1), 1), 0.0).people) == 0

    cut = new_ahead()
    played(cut, [walker(time) for time in TIMES.tolist()], 0.0)
    frame = without(walker(TIMES[-1] + 0.1), 1)
    assert len(cut(replace(frame, people=replace(frame.people, cut=True)), 0.0).people) == 0


def test_bridge_0_disables_bridging():
    ahead = new_ahead(bridge=0.0)
    played(ahead, [walker(time) for time in TIMES.tolist()], 0.0)
    assert len(ahead(without(walker(TIMES[-1] + 0.1), 1), 0.1).people) == 0


@pytest.mark.parametrize("skeleton", [H36M17, BLAZEPOSE33, HALPE26, WHOLEBODY133], ids=lambda s: s.name)
def test_every_keypoint_follows_its_own_or_parent_joint(skeleton):
    names = [H36M17.names[row] for row in carrying_joints(skeleton)]
    for name, carrier in zip(skeleton.names, names, strict=True):
        if name in H36M17.names:
            assert carrier == name
        elif "left" in name.split("_") and carrier not in ("head",):
            assert carrier.startswith("left_")
    known = dict(zip(skeleton.names, names, strict=True))
    hung = {"left_heel": "left_ankle", "right_foot_index": "right_ankle", "left_big_toe": "left_ankle"}
    hung |= {"left_index": "left_wrist", "right_pinky": "right_wrist", "left_hand_root": "left_wrist"}
    hung |= {"right_middle_finger_4": "right_wrist", "nose": "head", "left_eye": "head", "mouth_left": "head"}
    hung |= {"hip": "pelvis", "chin": "head", "left_brow_3": "head"}
    assert {name: known[name] for name in hung if name in known} == {n: c for n, c in hung.items() if n in known}


def test_horizon_is_fixed_or_follows_measured_latency():
    assert Horizon(0.066).prediction_time(5.0, 5.5) == 0.066
    measured = Horizon()
    assert measured.prediction_time(5.0, 5.02) == pytest.approx(0.02)
    for after in (0.010, 0.012, 0.4, 0.011, 0.013):  # one frame that was held up does not tell how it usually is
        measured.add_display_delay(after)
    assert measured.prediction_time(5.0, 5.02) == pytest.approx(0.032)
    assert measured.prediction_time(5.0, 9.0) == MAX_HORIZON_S
    for _ in range(100):
        measured.add_display_delay(0.05)
    assert measured.prediction_time(5.0, 5.02) == pytest.approx(0.07)
    measured.add_display_delay(-1e9)
    assert 0 <= measured.prediction_time(5.0, 5.0) <= MAX_HORIZON_S


@pytest.mark.parametrize("text", ["now", "", "-5", "501", "nan", "1e9", "auto "])
def test_invalid_horizons_are_rejected(text):
    with pytest.raises(UsageError, match=r"^--ahead: [^\n]*$"):
        Horizon.parse(text)


def test_ahead_and_lookahead_cannot_be_combined():
    with pytest.raises(UsageError, match=r"^--ahead .*--lookahead .*cannot be combined"):
        LiveLoop(FakePipeline(lookahead=2), PushedFrames("test"), LiveConfig(ahead="auto"))
    loop = LiveLoop(FakePipeline(), PushedFrames("test"), LiveConfig(ahead="auto"))
    with pytest.raises(UsageError, match="cannot be combined"):
        loop.pipeline = FakePipeline(lookahead=1)


class WalkingPipeline(FakePipeline):
    """A person who walks, and is not found in some of the frames."""

    def __init__(self, missing=()):
        super().__init__()
        self.missing = missing

    def session(self, size):
        return WalkingSession(self, size)


class WalkingSession(FakeSession):
    def track(self, frame):
        return frame

    def lift(self, frame):
        result = walker(frame.time, index=frame.index)
        return [without(result, 1) if frame.index in self._pipeline.missing else result]

    def flush(self):
        return []


def run_loop(pipeline, count, **options):
    source = PushedFrames("test")
    with LiveLoop(pipeline, source, LiveConfig(**options)) as loop:
        mailbox = loop.subscribe(maxlen=count)
        for number in range(count):
            source.push(picture(number, SIZE), at=number / 30)
            settled(loop, number + 1)
        status = loop.status()
    return list(mailbox), status


def test_loop_predicts_to_the_display_time():
    results, status = run_loop(WalkingPipeline(), 20, ahead="100")
    last = results[-1].result
    assert last.poses.ahead.tolist() == [pytest.approx(0.1)]
    now, late = walker(last.time + 0.1).poses.root[0, 0], walker(last.time).poses.root[0, 0]
    assert 0.5 * (now - late) < last.poses.root[0, 0] - late < now - late
    assert status.ahead_ms == pytest.approx(100)
    assert "100 ms ahead" in status.line()
    results, status = run_loop(WalkingPipeline(), 5)
    assert results[-1].result.poses.ahead.tolist() == [0]
    assert "ahead" not in status.line()


def test_messages_contain_the_prediction_horizon():
    results, _ = run_loop(WalkingPipeline(), 5, ahead="66")
    assert [json.loads(text)["ahead"] for live in results for text in messages(live)] == [0.066] * 5
    results, _ = run_loop(WalkingPipeline(), 5)
    assert all("ahead" not in json.loads(text) for live in results for text in messages(live))


def test_loop_bridges_hidden_people_but_counts_visible_ones():
    results, status = run_loop(WalkingPipeline(missing=(18, 19)), 20)
    hidden = results[-1].result
    assert hidden.people.ids.tolist() == [1]
    assert hidden.poses.ahead.tolist() == [pytest.approx(2 / 30)]
    assert status.people == 0
    assert run_loop(WalkingPipeline(missing=(18, 19)), 20, bridge=0.0)[0][-1].result.people.ids.tolist() == []


def straight_past(speed, seconds=1.0, noise=0.0):
    """A person who glides, (1, T), with the pelvis seen badly."""
    rng = np.random.default_rng(3)
    pasts = PastBuffer()
    for time in np.arange(0, seconds, 1 / 30).tolist():
        root = np.array([-0.5, 0.2, 4.0]) + np.array(speed) * time + rng.normal(0, noise, 3)
        pasts.add(seen_result([root], time=time))
    return pasts.past_of([1])


def test_steadied_pelvis_moves_laterally_at_constant_depth():
    past = straight_past((1.5, 0.0, 0.0))
    times = past.times[:, -1:] + np.array([[0.0, 0.066, 0.1]])
    said = StabilizedForecaster(ZeroVelocity()).predict(past, times)
    start = past.root[0, -1]
    assert np.array_equal(said.root[0, 0], start)
    gone = said.root[0, :, 0] - start[0]
    assert gone[1:] == pytest.approx([1.5 * 0.066, 1.5 * 0.1], rel=0.25)
    assert (gone[1:] < [1.5 * 0.066, 1.5 * 0.1]).all()
    assert said.root[0, :, 2].tolist() == [start[2]] * 3
    away = StabilizedForecaster(DampedVelocity()).predict(straight_past((0.0, 0.0, 1.0)), times)
    assert np.ptp(away.root[0, :, 2]) == 0


@pytest.mark.parametrize(("speed", "kept"), [(0.0, 0.0), (0.15, 1 / 17), (0.3, 0.5), (0.6, 16 / 17)])
def test_steadied_body_moves_only_beyond_noise(speed, kept):
    """Everything but the pelvis moves alike, so the body's speed is theirs times the root of 16 / 17."""
    pasts, body = PastBuffer(), STANDING.copy()
    for time in np.arange(0, 1, 1 / 30).tolist():
        body[1:, 0] = STANDING[1:, 0] + speed * (17 / 16) ** 0.5 * time
        pasts.add(seen_result([[0, 0, 9]], joints=body.copy(), time=time))
    past = pasts.past_of([1])
    times = past.times[:, -1:] + 0.1
    plain = DampedVelocity().predict(past, times).joints[0, 0] - past.joints[0, -1]
    ways = StabilizedForecaster(DampedVelocity()).predict(past, times).joints[0, 0] - past.joints[0, -1]
    np.testing.assert_allclose(ways, kept * plain, atol=1e-5)


def test_steadied_forecast_is_finite_for_degenerate_pasts():
    pasts = PastBuffer()
    pasts.add(seen_result([[0, 0, 3]]))
    once = pasts.past_of([1])
    assert np.array_equal(
        StabilizedForecaster(DampedVelocity()).predict(once, once.times + 0.1).root[0, 0], once.root[0, 0]
    )
    near = straight_past((0, 0, 0))
    near.root[..., 2] = 0.05
    assert np.isfinite(StabilizedForecaster(DampedVelocity()).predict(near, near.times[:, -1:] + 0.1).root).all()


@pytest.mark.parametrize("seconds", [0.05, 0.3])
def test_predicted_sigma_is_never_below_the_source_sigma(seconds):
    """A forecast knows a whole past, and may be more certain of it than the last pose was."""
    ahead = new_ahead()
    for index, time in enumerate(TIMES.tolist()):
        frame = walker(time, index=index)
        unsure = 400.0 if index % 2 else 15.0
        frame = FrameResult(frame.people, replace(frame.poses, sigma=np.full_like(frame.poses.sigma, unsure)))
        assert (ahead(frame, seconds).poses.sigma >= unsure).all()
    frame = walker(1.05, index=31)
    gone = ahead(without(frame, 1), seconds).poses.sigma
    assert len(gone) == 1
    assert (gone >= unsure).all()
