"""Which frames are exported, at which times, and what is missing in them."""

import numpy as np
import pytest
from export_fakes import wave
from memory_grown import megabytes_grown, needs_proc

from pose.body.skeleton import joint_positions
from pose.body.tracks import open_selection
from pose.errors import PoseError, UsageError
from pose.export import export
from pose.export.result import load
from pose.results import load_poses
from pose.world.frame import FEET, World, rotation_of, up_of

IMPORTS = "from pathlib import Path; from pose.body.tracks import open_selection"
READ_ALL = """
recording = open_selection(Path(sys.argv[1]))
print(sum(len(span.times) for span in recording.track(1, recording.uniform).spans()))
"""


def all_places(track):
    return np.concatenate([span.joints for span in track.spans()])


def test_even_timestamps_are_not_resampled(recorded):
    """Containers round to a millisecond; no number may change for that."""
    times = np.round(np.arange(60) / 29.97, 3)
    recording, places = recorded(60, times=times)
    track = recording.track(1, recording.uniform)
    assert not track.resampled
    assert track.rate == pytest.approx(29.97, rel=1e-3)
    np.testing.assert_allclose(recording.space.to_file(all_places(track)), places[0], atol=1e-5)
    np.testing.assert_array_equal(track.times, times)


def test_uneven_timestamps_are_resampled_where_a_format_needs_it(recorded, rng):
    times = np.cumsum(rng.choice([0.02, 0.04, 0.06], 100))
    recording, places = recorded(100, times=times)
    track = recording.track(1, recording.uniform)
    assert track.resampled
    assert track.rate == pytest.approx(25, rel=1e-3)
    np.testing.assert_allclose(np.diff(track.times), 1 / track.rate)
    expected = np.stack([np.interp(track.times, times, places[0, :, 0, axis]) for axis in range(3)], axis=1)
    np.testing.assert_allclose(recording.space.to_file(all_places(track))[:, 0], expected, atol=1e-5)
    np.testing.assert_array_equal(recording.track(1, recording.timeline).times, times)


def test_gaps_are_missing_values(recorded):
    present = np.ones((2, 60), bool)
    present[0, :7] = present[0, 20:25] = present[0, 40] = present[0, 55:] = False
    recording, _ = recorded(60, 2, present=present)
    track = recording.track(1, recording.uniform)
    assert (track.first, len(track)) == (7, 48)
    assert track.gaps == [(13, 17), (33, 33)]
    assert np.isnan(all_places(track)[13:18]).all()
    assert np.isfinite(all_places(track)[track.known]).all()
    assert recording.track(2, recording.uniform).gaps == []


def test_unknown_poses_are_missing_values(save, body, rng):
    from export_fakes import wave

    from pose.body.skeleton import joint_positions

    places = joint_positions(body, wave(30, rng))[None]
    places[0, :5] = np.nan
    places[0, 12, 3] = np.nan
    recording = open_selection(save(places))
    track = recording.track(1, recording.uniform)
    assert (track.first, track.gaps) == (5, [(7, 7)])
    places[:] = np.nan
    assert open_selection(save(places, name="none")).track(1, recording.uniform) is None


def test_a_part_of_the_video(recorded):
    recording, places = recorded(60, start=0.5, end=1.0)
    track = recording.track(1, recording.uniform)
    np.testing.assert_allclose(recording.space.to_file(all_places(track)), places[0, 15:30], atol=1e-5)
    with pytest.raises(UsageError, match=r"no frame from 7 s on; the result has 0 to 1.96667 s"):
        recorded(60, start=7)


@pytest.mark.parametrize("space", [None, "world"])
def test_points_are_exported_in_the_world_of_the_result(save, body, rng, space):
    world = World(rotation_of(up_of(-25, 5)), -1.6, FEET, 2.0)
    path = save(joint_positions(body, wave(60, rng))[None], world=world)
    recording = open_selection(path, space=space)
    assert (recording.space.name, recording.space.note[:11]) == ("world", "world frame")
    points = recording.space.to_file(all_places(recording.track(1, recording.timeline)))
    placed = load_poses(path).placed
    assert placed is not None
    np.testing.assert_allclose(points, placed.joints, atol=1e-5)


def test_partial_frames_are_trimmed_unless_all_are(save, body, rng):
    world = World(rotation_of(up_of(-25, 5)), -1.6, FEET, 2.0)
    path = save(joint_positions(body, wave(60, rng))[None], world=world)
    arrays = dict(np.load(path))
    arrays["partial"] = np.isin(np.arange(60), [*range(8), 30, *range(55, 60)])
    np.savez(path, **arrays)
    trimmed, whole = (open_selection(path, trim=trim) for trim in (True, False))
    track = trimmed.track(1, trimmed.uniform)
    assert (track.first, len(track), track.gaps) == (8, 47, [(22, 22)])
    assert len(whole.track(1, whole.uniform)) == 60
    pandas = pytest.importorskip("pandas")
    (written,) = export(whole, ["csv"], path.parent, "whole")
    tables = pandas.read_csv(written.path), load(path).to_dataframe()
    for table in tables:
        assert (table["partial"].astype(bool) == np.repeat(arrays["partial"], 17)).all()
    np.testing.assert_allclose(tables[0]["root_sigma_mm"], tables[1]["root_sigma_mm"], atol=0.06)
    assert (load(path).partial()[0] == arrays["partial"]).all()
    np.savez(path, **(arrays | {"partial": np.ones(60, bool)}))
    recording = open_selection(path)
    assert len(recording.track(1, recording.uniform)) == 60


def test_given_vertical_requires_a_world(save, rng):
    path = save(rng.normal(size=(1, 40, 17, 3)))
    assert open_selection(path).space.name == "camera"
    assert open_selection(path, up=up_of(-10, 0)).space.name == "world"
    assert open_selection(path, space="camera").space.name == "camera"


def test_result_without_frames_is_reported(save):
    with pytest.raises(PoseError, match=r"poses.npz: contains no frame"):
        open_selection(save(np.zeros((1, 0, 17, 3))))


def test_world_frame_places_people_on_the_floor(save, body, rng):
    from pose_datasets.rotations import about_axis

    motion = wave(200, rng, size=0.2)
    places = joint_positions(body, motion)[None]
    tilted = places @ about_axis("x", np.radians(-20)).T + np.array([0, 0.3, 0])
    recording = open_selection(save(tilted), space="world")
    placed = recording.space.to_file(all_places(recording.track(1, recording.timeline)))
    straight = placed[:, 8] - placed[:, [3, 6]].mean(axis=1)
    straight /= np.linalg.norm(straight, axis=1, keepdims=True)
    assert np.degrees(np.arccos(straight.mean(axis=0)[1])) < 8
    assert np.percentile(placed[:, [3, 6], 1], 2) == pytest.approx(0.08, abs=0.02), "ankles above the floor"
    assert "world" in recording.space.note


def test_memory_mapped_arrays_equal_the_arrays(save, rng):
    path = save(rng.normal(size=(2, 400, 17, 3)))
    mapped, read = load_poses(path, mapped=True), load_poses(path)
    assert isinstance(mapped.joints3d, np.memmap)
    for name in ("joints3d", "root", "sigma", "keypoints", "id", "frame_index", "timestamps"):
        np.testing.assert_array_equal(getattr(mapped, name), getattr(read, name))


@needs_proc
def test_reading_a_long_result_takes_bounded_memory(tmp_path):
    frames = 108_000
    path = tmp_path / "hour.npz"
    np.savez(
        path, timestamps=np.arange(frames) / 30, joints3d=np.zeros((frames, 17, 3), np.float32),
        root=np.ones((frames, 3), np.float32), sigma=np.ones((frames, 17), np.float32),
    )  # fmt: skip
    taken, read = megabytes_grown(IMPORTS, READ_ALL, path)
    assert int(read) == frames
    # The arrays hold 31 MB, and as float64 twice that. What stays is a few numbers a frame.
    assert taken < 25
