"""Several live cameras: calibration from the people, one world, and what goes wrong."""

import gc
import json
import shutil
import threading
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from live_fakes import FakePipeline, picture, wait_until
from pose_fakes import run_info
from several_fakes import Player, rigging_of, scenes, setups, stage_of

from benchmarks.cameras.virtual import truth_at
from pose.errors import UsageError
from pose.live import PushedFrames
from pose.live.recording import RecordingFolder, finish_interrupted
from pose.live.result import STALL_SECONDS
from pose.live.several import SeveralLoop
from pose.multiview.calibration_files import read_cameras
from pose.multiview.types import POINTS

SECONDS = 12.0


def filmed(people, azimuths=(0.0, 90.0), seconds=SECONDS, rates=(30.0,), seed=2):
    views = scenes.cameras(azimuths, people=people, seed=seed, seconds=seconds, rates=rates)
    tracks = [
        scenes.track(view, index, points, number=number + 1, noise_px=2.0)
        for index, view in enumerate(views)
        for number, points in enumerate(people)
    ]
    return views, tracks


@pytest.fixture(scope="module")
def played():
    """Two people before two cameras: views, truth, player and rigging after all frames."""
    people = [scenes.person(1, SECONDS, away=(-0.8, 0.0)), scenes.person(5, SECONDS, away=(0.8, 0.3))]
    views, tracks = filmed(people)
    rigging = rigging_of(views)
    player = Player(stage_of(rigging, world=False), scenes.exact(views))
    player.play(tracks)
    return views, people, player, rigging


def test_the_people_calibrate_the_cameras(played):
    views, _, _, rigging = played
    found, exact = rigging.calibration, scenes.exact(views)
    assert found is not None
    assert scenes.degrees_between(found.cameras[1].rotation, exact[1].rotation) < 0.5
    ratio = np.linalg.norm(found.cameras[1].position) / np.linalg.norm(exact[1].position)
    assert 0.9 < ratio < 1.1, "the scale is the lifter's"
    assert abs(found.cameras[1].offset) < 0.02
    assert "2 cameras, rotation ±" in rigging.status_text()
    assert rigging.message == ""


def test_four_cameras_calibrate():
    person = scenes.person(1, SECONDS)
    views, tracks = filmed([person], azimuths=(0.0, 90.0, 180.0, 270.0))
    rigging = rigging_of(views)
    Player(stage_of(rigging, world=False), scenes.exact(views)).play(tracks)
    found = rigging.calibration
    assert found is not None
    assert sorted(found.cameras) == [0, 1, 2, 3]
    assert "4 cameras, rotation ±" in rigging.status_text()
    for index, exact in enumerate(scenes.exact(views)[1:], 1):
        assert scenes.degrees_between(found.cameras[index].rotation, exact.rotation) < 1.0
        off = np.linalg.norm(found.cameras[index].position - exact.position)
        assert off < 2 * found.accuracy[index].position, "the size of the person is that of an average adult"


def test_fused_people_have_one_id_across_cameras(played):
    _, _, player, _ = played
    last = player.shown[-1]
    assert len(last.stream.cameras) == 2
    assert last.result.people.ids.tolist() == [1, 2]
    assert (last.result.poses.seen_by == 3).mean() > 0.8
    assert last.stream.camera.known


def test_fused_people_are_more_accurate_than_those_of_one_camera(played):
    views, people, player, _ = played

    def error(live):
        """Median distance of the joints from the truth, relative to the pelvis and for the right size, mm."""
        at = np.array([live.captured - player.begin])
        off = []
        for row in range(len(live.result.people)):
            joints = live.result.poses.joints[row].astype(np.float64)
            truths = [truth_at(points, scenes.RATE, at)[0, :17] @ views[0].rotation.T for points in people]
            truths = [truth - truth[:1] for truth in truths]
            size = [np.linalg.norm(joints) / np.linalg.norm(truth) for truth in truths]
            each = [np.linalg.norm(joints - s * t, axis=1)[POINTS].mean() for s, t in zip(size, truths, strict=True)]
            off.append(1000 * min(each))
        return np.mean(off)

    alone = [error(live) for live in player.shown if not live.stream.cameras]
    fused = [error(live) for live in player.shown if live.stream.cameras][15:]
    assert np.median(fused) < 0.7 * np.median(alone)


def test_recorded_cameras_can_be_reused(played, tmp_path):
    views, _, player, rigging = played

    def info_of(live):
        info = run_info(live.skeleton, live.size)
        return replace(info, camera=live.stream.camera or info.camera, cameras=live.stream.cameras)

    folder = RecordingFolder(tmp_path / "done", info_of, video=False)
    for live in player.shown[-3:]:
        folder.write(live)
    killed = tmp_path / "killed" / folder.folder.name  # a copy of the unfinished files
    shutil.copytree(folder.folder, killed)
    folder.finish()
    (line,) = finish_interrupted(tmp_path / "killed")
    assert "poses.json, poses.npz, cameras.json" in line
    report = tmp_path / "report.json"  # as that of `--report`
    report.write_text(json.dumps({"format": "pose-webcam-report", "cameras": rigging.calibration.listed}))
    for path in (folder.files["cameras.json"], killed / "cameras.json", report):
        found = read_cameras(path, ["left", "right"], [view.size for view in views])
        for camera, known in zip(found, rigging.calibration.cameras.values(), strict=True):
            np.testing.assert_allclose(camera.rotation, known.rotation, atol=1e-6)
            np.testing.assert_allclose(camera.translation, known.translation, atol=1e-4)
            assert camera.focal == pytest.approx(known.focal, abs=0.01)
            assert camera.known

    alone = RecordingFolder(tmp_path / "alone", info_of, video=False)
    alone.write(player.shown[0])
    alone.finish()
    assert sorted(alone.files) == ["poses.json", "poses.npz"], "not calibrated yet"


def test_ended_camera_does_not_stop_the_others(played):
    views, people, player, rigging = played
    own = Player(player.stage, scenes.exact(views), begin=player.begin + SECONDS + 1)
    views, tracks = filmed(people, seconds=4.0)
    shown = own.play([track for track in tracks if track.camera == 1], ended=frozenset({0}))
    assert shown, "the second camera is shown"
    assert shown[-1].captured - shown[0].captured > 3.5
    assert (shown[-1].result.poses.seen_by & 1 == 0).all()
    assert rigging.calibration is not None


def test_duplicate_camera_is_reported():
    person = [scenes.person(1, SECONDS)]
    views, tracks = filmed(person)
    twice = [tracks[0], replace(tracks[0], camera=1)]
    rigging = rigging_of(views)
    player = Player(stage_of(rigging), scenes.exact(views))
    player.play(twice)
    assert rigging.calibration is None
    assert "shows the same view" in rigging.message
    assert len(player.shown[-1].result.people) == 1


def test_given_calibration_is_used_immediately():
    views, tracks = filmed([scenes.person(1, 2.0)], seconds=2.0)
    exact = scenes.exact(views)
    rigging = rigging_of(views, given=lambda sizes: exact)
    player = Player(stage_of(rigging), exact)
    player.play(tracks)
    assert len(player.shown[-1].stream.cameras) == 2
    assert (player.shown[-1].result.poses.seen_by == 3).mean() > 0.8
    assert rigging.status_text() == "2 cameras, calibration given"
    root = truth_at(scenes.person(1, 2.0), scenes.RATE, np.array([player.shown[-1].captured - player.begin]))[0, 0]
    expected = views[0].rotation @ root + views[0].translation
    assert np.linalg.norm(player.shown[-1].result.poses.root[0] - expected) < 0.06


@pytest.mark.slow
def test_memory_of_a_long_multi_camera_run_is_bounded(monkeypatch):
    """People leave and return under new ids; frames are kept for 6 s instead of 40."""
    monkeypatch.setattr("pose.live.several.rigging.KEPT_SECONDS", 6.0)
    lap = 3.0
    people = [scenes.person(1, lap, away=(-0.8, 0.0)), scenes.person(5, lap, away=(0.8, 0.3))]
    views, tracks = filmed(people, seconds=lap, rates=(10.0,))
    exact = scenes.exact(views)
    player = Player(stage_of(rigging_of(views, given=lambda sizes: exact)), exact)
    sizes = []
    tracemalloc.start()
    try:
        for number in range(14):
            player.play([replace(t, times=t.times + number * lap, number=t.number + 2 * number) for t in tracks])
            player.shown.clear()
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0] / 1e6)
    finally:
        tracemalloc.stop()
    assert max(sizes[12:]) - max(sizes[7:9]) < 0.1, "MB; the frames of five laps have 0.3"
    assert len(player.stage.rigging.identities.people) <= 8


def several(count=2, pipeline=None):
    sources = [PushedFrames(f"camera {index}") for index in range(count)]
    return sources, SeveralLoop(pipeline or FakePipeline(), sources)


def test_loop_ends_with_its_last_camera():
    sources, loop = several()
    begin = time.monotonic()  # capture time of the first images, whatever the machine does meanwhile
    with loop:
        box = loop.subscribe(maxlen=100)
        for number in range(5):
            for source, own in zip(sources, loop._loops, strict=True):
                source.push(picture(number), at=begin + 0.1 * number)
                wait_until(lambda own=own, number=number: own.status().processed == number + 1)
            wait_until(lambda number=number: loop.status().processed == number + 1)
        sources[0].close()
        sources[1].push(picture(9), at=begin + 1.0 + STALL_SECONDS)  # the first was silent so long
        wait_until(lambda: loop.status().processed == 6)
        sources[1].close()
        assert loop.wait(60)
    shown = list(box)
    assert [live.result.index for live in shown] == list(range(6))
    assert int(shown[-1].image[0, 0, 0]) == 9
    status = loop.status()
    assert status.frames_in == 11
    assert status.cameras.startswith("calibrating: ")


def test_stop_does_not_wait_for_calibration():
    sources, loop = several()
    hold = threading.Event()
    with loop:
        loop.rigging._calibrating.start(hold.wait)
        sources[0].push(picture(1))
        wait_until(lambda: loop.status().processed == 1)
    is_running = loop.running
    hold.set()
    assert not is_running


def test_network_error_ends_all_cameras():
    sources, loop = several(pipeline=FakePipeline(fails_at=0))
    loop.start()
    sources[0].push(picture(1))
    with pytest.raises(RuntimeError, match="a bug in the estimator"):
        wait_until(lambda: loop.wait(0.05))


@pytest.mark.parametrize("count", [1, 9])
def test_invalid_camera_count_is_rejected(count):
    with pytest.raises(UsageError, match="2 to 8 cameras"):
        several(count)


def bumped(azimuths, which, degrees=6.0):
    """Player and rigging after a camera was turned, the cameras before and after it, and what was said."""
    before = 14.0
    person = scenes.person(1, before)
    views = scenes.cameras(azimuths, people=[person], seed=2, seconds=before, rates=(25.0,))
    later = list(views)
    turn = setups.turned(degrees, axis=2) @ setups.turned(degrees, axis=0)
    later[which] = setups.moved_camera(views[which], turn @ views[which].rotation)
    rigging = rigging_of(views)
    player = Player(stage_of(rigging), scenes.exact(views))
    player.play([scenes.track(view, index, person, noise_px=2.0) for index, view in enumerate(views)])
    assert rigging.count == 1
    assert rigging.message == ""
    said = set()
    tracks = [scenes.track(view, index, person, noise_px=2.0) for index, view in enumerate(later)]
    for second in range(int(before)):
        parts = [track[(track.times >= second) & (track.times < second + 1)] for track in tracks]
        player.play([replace(part, times=part.times + before) for part in parts])
        said.add(rigging.message)
    return rigging, later, said


def test_moved_camera_is_recalibrated():
    rigging, later, said = bumped((0.0, 90.0), which=1)
    assert any("a camera was moved: calibrating again" in words for words in said)
    assert rigging.count == 2
    assert rigging.message == ""
    found, exact = rigging.calibration.cameras, scenes.exact(later)
    assert scenes.degrees_between(found[1].rotation, exact[1].rotation) < 0.5


@pytest.mark.slow
def test_moved_camera_of_three_is_recalibrated():
    rigging, later, said = bumped((0.0, 90.0, 200.0), which=2)
    assert any("a camera was moved" in words for words in said)
    assert rigging.count == 2
    found, exact = rigging.calibration.cameras, scenes.exact(later)
    assert scenes.degrees_between(found[2].rotation, exact[2].rotation) < 0.5


@pytest.mark.slow
def test_time_offsets_of_a_given_calibration_are_refined():
    """Images of the second camera arrive late."""
    late = 0.08
    views, tracks = filmed([scenes.person(1, SECONDS)])
    exact = scenes.exact(views)
    rigging = rigging_of(views, given=lambda sizes: exact)
    tracks[1] = replace(tracks[1], times=tracks[1].times + late)
    Player(stage_of(rigging), exact).play(tracks)
    assert rigging.count == 2
    found = rigging.calibration.cameras[1]
    assert abs(found.offset + late) < 0.02
    np.testing.assert_allclose(found.rotation, exact[1].rotation, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rate", [8.0, 15.0])
def test_fused_people_stay_in_place_at_low_frame_rates(rate):
    """The solution of a frame starts from that of the frame before; an error there must not grow."""
    seconds = 9.0
    person = scenes.person(1, seconds)
    views, tracks = filmed([person], seconds=seconds, rates=(rate,))
    rng = np.random.default_rng(3)
    for track in tracks:  # a detector that mistakes single joints, for some frames each
        for _ in range(int(seconds)):
            row, joint = rng.integers(len(track)), rng.integers(1, 17)
            track.keypoints[row : row + 4, joint] += rng.normal(scale=120.0, size=2).astype(np.float32)
    exact = scenes.exact(views)
    player = Player(stage_of(rigging_of(views, given=lambda sizes: exact), world=False), exact)
    off = []
    for live in player.play(tracks):
        if live.stream.cameras and len(live.result.people) == 1:
            at = np.array([live.captured - player.begin])
            truth = truth_at(person, scenes.RATE, at)[0, :17] @ views[0].rotation.T + views[0].translation
            placed = live.result.poses.joints[0] + live.result.poses.root[0]
            off.append(np.linalg.norm(placed - truth, axis=1)[POINTS].mean())
    assert len(off) > 0.8 * rate * seconds
    assert np.median(off) < 0.08
    assert max(off[2:]) < 0.25
