"""Hands of several cameras: triangulated where two see the hand, else of one camera, and all of it in the files."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
import scenes

from pose.export import export, open_selection
from pose.export.result import load
from pose.multiview.bundle import rotation_matrix
from pose.multiview.hands import SeenHands, fuse_hands
from pose.multiview.results import MultiviewResults
from pose.results import JsonWriter, NpzWriter, load_poses
from pose.results.json import SCHEMA_PATH
from pose.structures.face_points import Faces
from pose.structures.hand_points import ELBOWS, HAND_PER_FOREARM, WRISTS, Hands, lengths
from pose.structures.types import FrameResult, Poses3D

FOREARM = 0.25


def hand(seed: int = 0) -> np.ndarray:
    """(21, 3) m from the wrist: five straight fingers."""
    rng = np.random.default_rng(seed)
    points = np.zeros((21, 3))
    for finger in range(5):
        direction = np.array([0.5 * (finger - 2), 1.0, 0.3]) + 0.1 * rng.standard_normal(3)
        direction /= np.linalg.norm(direction)
        for point in range(4):
            points[1 + 4 * finger + point] = direction * (0.08 + 0.03 * point)
    return points


@pytest.fixture(scope="module")
def views():
    return scenes.exact(scenes.cameras((0.0, 80.0, 190.0), people=[scenes.person(1)], seed=2))


@pytest.fixture(scope="module")
def wrists(views):
    """(2, 3) m of a left and a right wrist in the middle of the scene, in the frame of the first camera."""
    return views[0].to_world(views[0].to_camera(np.array([[0.3, 0, 0], [-0.3, 0, 0.1]]))) + np.array([0, 0, 4.0])


def seen_by(views, wrists, hands, noise_px=0.0, seed=0):
    """What cameras see of hands (2, 21, 3): shapes that are a fifth too large and turned by 15 degrees."""
    rng = np.random.default_rng(seed)
    seen = SeenHands.none(len(views), 2)
    wrong = rotation_matrix(np.radians(15) * np.array([0.0, 0.6, 0.8]))
    for index, view in enumerate(views):
        pixels = view.project(wrists[:, None] + hands)
        seen.pixels[index] = pixels + noise_px * rng.standard_normal(pixels.shape)
        seen.shapes[index] = 1.2 * hands @ view.rotation.T @ wrong.T
        seen.scores[index] = 0.9
    return seen


def test_two_cameras_recover_hand_size_and_shape(views, wrists):
    hands = np.stack([hand(1), hand(2)])
    seen = seen_by(views[:2], wrists, hands, noise_px=0.5)
    found = fuse_hands(seen, views[:2], wrists + 0.02, np.full(2, FOREARM))
    off = 1000 * np.linalg.norm(found.shapes - hands, axis=-1)
    assert np.median(off[:, 1:]) < 8
    one = np.linalg.norm(seen.shapes[0] @ views[0].rotation - hands, axis=-1)
    assert np.median(off[:, 1:]) < 0.3 * 1000 * np.median(one[:, 1:])
    assert np.isfinite(found.sigma).all()
    assert (found.sigma[:, 0] == 0).all()
    assert (off[:, 1:] < found.sigma[:, 1:]).mean() > 0.6


def test_single_camera_hand_has_world_orientation(views, wrists):
    hands = np.stack([hand(1), hand(2)])
    seen = seen_by(views, wrists, hands)
    seen.scores[0] = 0
    seen.scores[2] = 0
    seen.scores[1, 0] = 0
    found = fuse_hands(seen, views, wrists, np.full(2, FOREARM))
    np.testing.assert_allclose(found.shapes[1], seen.shapes[1, 1] @ views[1].rotation, atol=1e-9)
    assert np.isnan(found.sigma).all()
    assert (found.shapes[0] == 0).all()


def test_swapped_hands_of_one_camera_are_corrected(views, wrists):
    hands = np.stack([hand(1), hand(2)])
    seen = seen_by(views, wrists, hands)
    for values in (seen.pixels, seen.scores, seen.shapes):
        values[1] = values[1, ::-1].copy()
    found = fuse_hands(seen, views, wrists, np.full(2, FOREARM))
    assert np.isfinite(found.sigma).all()
    assert np.abs(found.shapes - hands).max() < 0.01


def test_camera_observing_another_hand_is_excluded(views, wrists):
    hands = np.stack([hand(1), hand(2)])
    seen = seen_by(views, wrists, hands)
    seen.pixels[1, 0] = seen.pixels[1, 0, :1] - (seen.pixels[1, 0] - seen.pixels[1, 0, :1])  # points to the other side
    found = fuse_hands(seen, views, wrists, np.full(2, FOREARM))
    assert np.abs(found.shapes - hands).max() < 0.01
    alone = fuse_hands(
        SeenHands(*(getattr(seen, name)[:2] for name in SeenHands.__slots__)), views[:2], wrists, np.full(2, FOREARM)
    )
    assert np.isnan(alone.sigma[0]).all(), "two cameras that contradict each other measure nothing"
    assert np.isfinite(alone.sigma[1]).all()
    assert (alone.shapes[0] != 0).any()


def test_hand_away_from_the_wrist_is_rejected(views, wrists):
    hands = np.stack([hand(1), hand(2)])
    seen = seen_by(views, wrists, hands)
    seen.pixels[:, 0] += 200.0
    found = fuse_hands(seen, views, wrists, np.full(2, FOREARM))
    assert (found.shapes[0] == 0).all()
    assert np.isfinite(found.sigma[1]).all()


def filmed(scene, swapped=()):
    """Results of both cameras of the scene with hands at the wrists of the motion; the last third of the first camera's
    frames, and one side of the second camera's, have none. Cameras in `swapped` take left arms for right ones."""
    _, _, rig, line, motions, _, _ = scene
    shapes = np.stack([hand(1), hand(2)])
    streams = []
    for index, camera in enumerate(rig.cameras):
        frames = []
        for at, (number, joints) in enumerate(zip(motions[0].frames, motions[0].joints, strict=True)):
            own = float(camera.own_time(line.times[[number]])[0])
            placed = joints[list(WRISTS)][:, None] + shapes
            points, found = camera.project(placed.astype(np.float64)), np.full((2, 21), 0.9)
            if index == 0 and at > 2 * len(motions[0].frames) // 3:
                found[:] = 0
            if index == 1:
                found[0] = 0
            order = [1, 0] if index in swapped else [0, 1]
            hands = Hands(
                points[None, order].astype(np.float32), found[None, order].astype(np.float32),
                (shapes @ camera.rotation.T)[None, order].astype(np.float32),
            )  # fmt: skip
            keypoints, scores = np.zeros((1, 17, 2), np.float32), np.ones((1, 17), np.float32)
            faces = Faces(np.full((1, 468, 3), 5.0, np.float32), np.ones(1, np.float32))
            people = scene[5].__iter__().__next__().people
            people = replace(
                people, index=at, time=own, ids=np.array([1]), boxes=np.zeros((1, 4), np.float32),
                box_scores=np.ones(1, np.float32), keypoints=keypoints, scores=scores, hands=hands, faces=faces,
            )  # fmt: skip
            arms = np.array([[False, index in swapped]])
            poses = Poses3D(
                np.zeros((1, 17, 3), np.float32), np.ones((1, 3), np.float32), np.ones((1, 17), np.float32), arms
            )
            frames.append(FrameResult(people, poses))
        streams.append(frames)
    return streams


@pytest.mark.parametrize("swapped", [*(pytest.param(of, marks=pytest.mark.slow) for of in ((), (0,))), (1,)])
def test_hands_and_faces_reach_every_file(scene, tmp_path, swapped):
    _, _, rig, line, motions, plain, info = scene
    info = replace(info, settings={"hands": True, "face": True})
    results = MultiviewResults(rig, motions, line, plain._world, filmed(scene, swapped), info)
    with JsonWriter(tmp_path / "poses.json", info) as one, NpzWriter(tmp_path / "poses.npz", info) as other:
        for result in results:
            one.write(result)
            other.write(result)
    document = json.loads((tmp_path / "poses.json").read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()))
    table, whole = load_poses(tmp_path / "poses.npz"), load(tmp_path / "poses.npz")
    hands = whole.hands("camera")[0]
    wrists = whole.joints("camera")[0][:, WRISTS]
    middle, late = len(hands) // 2, len(hands) - 3
    shapes = np.stack([hand(1), hand(2)])
    # Both cameras see the right hand: its true size, which is not that of the forearm.
    assert np.abs(hands[middle, 1] - wrists[middle, 1] - shapes[1]).max() < 0.015
    # The left one is that of the first camera and in proportion to the forearm.
    joints = whole.joints("camera")[0][middle]
    forearm = np.linalg.norm(joints[list(WRISTS)] - joints[list(ELBOWS)], axis=-1).mean()
    alone = (hands[middle, 0] - wrists[middle, 0]).astype(np.float32)
    assert lengths(alone) == pytest.approx(HAND_PER_FOREARM * forearm, rel=1e-3)
    assert np.isnan(hands[late, 0]).all(), "no camera sees it"
    assert np.isfinite(hands[late, 1]).all(), "the second camera sees it"
    assert (table.hand_scores[late] == 0).all(), "the first does not"
    person = document["frames"][late]["people"][0]["hands"]
    assert set(person["right"]) == {"joints3d"}
    assert (whole.faces()[0, middle] == 5).all()
    recording = open_selection(tmp_path / "poses.npz")
    track = recording.track(1, recording.timeline)
    span = track.hands(np.arange(len(track)))
    assert span.score[middle].all()
    assert span.score[late, 1].all()
    shape = span.points[middle, 1] - span.points[middle, 1, 0]
    assert np.linalg.norm(shape, axis=-1) == pytest.approx(np.linalg.norm(shapes[1], axis=-1), abs=0.015)
    # The sigma of the measured hand is that of the solution, not the share of its length of one camera.
    sigma = np.load(tmp_path / "poses.npz")["hand_sigma"]
    assert not np.allclose(sigma[middle, 1], sigma[middle, 0], rtol=0.05)
    written = list(export(recording, ["csv", "bvh", "coco", "openpose"], tmp_path, "poses", recording.people))
    assert all(one.path.stat().st_size for one in written)
