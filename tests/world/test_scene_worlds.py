"""Each scene of a clip with cuts has its own gravity and floor, and all stand in one world."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from pose_apps.support.world import scenes_line
from walker import ANKLE_HEIGHT, ANKLES, LENS, SIZE, average, filmed, standing, walking

from pose.results import MotionInfo, NpzWriter, RunInfo, WorldInfo, load_poses
from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.camera_motion.verdict import STATIC, CameraMotion
from pose.world.clean import Steps
from pose.world.frame import UNKNOWN
from pose.world.run import PlacedRun

CAMERA = Camera.of(SIZE, LENS)
SECONDS = 3.0
LOW, HIGH = {"pitch": -8, "height": 1.4}, {"pitch": -30, "roll": 6, "height": 3.0}


def clip(*filmings, world=None):
    """A clip with a cut before each of these filmings but the first; a person of its own in each."""
    results = []
    for number, filming in enumerate(filmings, 1):
        lifted, seen = filmed(average(walking(SECONDS)) if world is None else world, turn=30, distance=8, **filming)[:2]
        for t in range(len(lifted)):
            pixels = seen.keypoints[t][None]
            box = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)
            ones, at = np.ones((1, 17), np.float32), len(results)
            people = People(at, at / 30, np.array([number]), box, ones[:, 0], pixels, ones, cut=t == 0 and number > 1)
            results.append(FrameResult(people, Poses3D(lifted.joints[t][None], lifted.root[t][None], 30 * ones)))
    return results


@pytest.fixture
def placed():
    with ExitStack() as stack:
        yield lambda results, **options: stack.enter_context(PlacedRun(results, H36M17, CAMERA, **options))


def joints_of(results):
    return np.array([result.placed.joints[0] for result in results], np.float64)


def test_cameras_of_different_tilt_and_height_share_one_floor(placed):
    run = placed(clip(LOW, HIGH))
    first, second = np.split(joints_of(run), 2)
    for part in (first, second):
        up = part[:, H36M17.index("thorax")] - part[:, H36M17.index("pelvis")]
        tilt = np.degrees(np.arccos(up[:, 1] / np.linalg.norm(up, axis=1)))
        assert tilt.mean() < 3
        assert np.percentile(part[:, ANKLES, 1], 10) == pytest.approx(ANKLE_HEIGHT, abs=0.03)
    heights = [scene.camera_height for scene in WorldInfo.of(run).scenes]
    assert heights == pytest.approx([1.4, 3.0], abs=0.2)  # one degree of one body's vertical is 0.14 m at 8 m


def test_the_view_of_every_frame_leads_to_the_common_world(placed):
    results = clip(LOW, HIGH)
    run = placed(results, steps=Steps(feet=False))
    for frame in list(run)[:: len(results) // 7]:
        inside = frame.poses.joints[0] + frame.poses.root[0]
        moved = inside @ frame.view.rotation.T + frame.view.position
        there = run.world.place(moved)
        assert there - frame.placed.joints[0] == pytest.approx(0, abs=0.002)


def test_single_scene_needs_no_alignment(placed):
    both = clip(LOW, HIGH)
    empty = [
        FrameResult(
            People(
                one.index, one.time, np.zeros(0, np.int64), np.zeros((0, 4)), np.zeros(0), np.zeros((0, 17, 2)),
                np.zeros((0, 17)), cut=one.people.cut,
            ),
            Poses3D(np.zeros((0, 17, 3), np.float32), np.zeros((0, 3), np.float32), np.zeros((0, 17), np.float32)),
        )
        for one in both[90:]
    ]  # fmt: skip
    run = placed([*both[:90], *empty])
    assert run.path is None
    assert WorldInfo.of(run).scenes == ()
    assert scenes_line(WorldInfo.of(run)) == ""


def shortened(results, lengths):
    """These scenes of 90 frames, of which only the first `lengths` of each stay; numbered again."""
    kept = [results[90 * scene + t] for scene, length in enumerate(lengths) for t in range(length)]
    return [
        replace(one, people=replace(one.people, index=at, time=at / 30, cut=one.people.cut and at > 0))
        for at, one in enumerate(kept)
    ]


@pytest.mark.parametrize("lengths", [(90, 1), (1, 90), (90, 2), (1, 1), (2, 1), (90, 1, 90), (1,) * 6])
def test_scenes_of_any_length_are_written(placed, tmp_path, lengths):
    run = placed(shortened(clip(*[(LOW, HIGH)[n % 2] for n in range(len(lengths))]), lengths))
    motion = MotionInfo(CameraMotion(STATIC), True)
    info = RunInfo(source="a.mp4", fps=30.0, camera=CAMERA, skeleton=H36M17, world=WorldInfo.of(run), motion=motion)
    with NpzWriter(tmp_path / "poses.npz", info) as writer:
        for result in run:
            writer.write(result)
        writer.close()
    table = load_poses(tmp_path / "poses.npz")
    assert len(table.frames) == sum(lengths)
    assert table.camera_position.shape == (sum(lengths), 3)


def test_scene_without_standing_people_uses_the_common_vertical(placed):
    lying = standing(SECONDS)[:, :, [1, 0, 2]]  # x and y swapped
    results = clip(LOW, {**LOW, "roll": 0.0})
    flat = clip(LOW, world=lying)
    shown = [
        replace(
            one, people=replace(one.people, index=180 + i, time=6.0 + i / 30, ids=np.array([3]), cut=i == 0)
        )
        for i, one in enumerate(flat)
    ]  # fmt: skip
    run = placed([*results, *shown])
    info = WorldInfo.of(run)
    assert [scene.found_by == UNKNOWN for scene in info.scenes] == [False, False, True]
    assert run.scenes[2].ground.world.up == pytest.approx(run.scenes[0].ground.world.up, abs=0.05)
    assert "gravity unknown, taken from all scenes together, from 6.0 s on" in scenes_line(info)


def test_files_round_trip_scenes_and_views(placed, tmp_path):
    run = placed(clip(LOW, HIGH))
    world = WorldInfo.of(run)
    info = RunInfo(
        source="a.mp4",
        fps=30.0,
        camera=CAMERA,
        skeleton=H36M17,
        world=world,
        motion=MotionInfo(CameraMotion(STATIC), True),
    )
    with NpzWriter(tmp_path / "poses.npz", info) as writer:
        for result in run:
            writer.write(result)
        writer.close()
    table = load_poses(tmp_path / "poses.npz")
    assert table.world_info.scenes == WorldInfo.from_json(world.to_dict()).scenes
    assert len(table.world_info.scenes) == 2
    heights = table.world_info.world.place(table.camera_position)[:, 1]
    assert [heights[0], heights[-1]] == pytest.approx([1.4, 3.0], abs=0.2)
